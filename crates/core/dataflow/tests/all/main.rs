//! Components among each other, one message after the other, without a network.

mod any_frame;
mod assignment;
mod event_builder;
mod event_builder_serving;
mod filter_daemon;
mod gate;
mod level1;
mod level2;
mod level2_cost;
mod links;
mod lives;
mod matching;
mod orphans;
mod pass;
mod processors;
mod pushing;
mod recovery;
mod regressions;
mod roc;
mod roib;
mod slices;
mod steering;
mod streams;
mod valid_bound;
mod window;
mod wire;

//! Whole partitions in situations made for them.

mod attacks;
mod crate_links;
mod matches;
mod overload;
mod phased;
mod processors;
mod push;
mod recovery;
mod regressions;
mod shaping;
mod slow_stop;
mod sources;
mod supervisors;
mod watching;

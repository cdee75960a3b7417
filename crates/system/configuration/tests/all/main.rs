//! The language of configurations: what it takes, what it says of errors, and what it stands for.

mod boards;
mod constants;
mod emulated;
mod errors;
mod inputs;
mod matching;
mod partition;
mod schema;
mod simulation;
mod streams;

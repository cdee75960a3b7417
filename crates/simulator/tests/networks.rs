//! Networks as a world uses them.

#[path = "networks/ethernet.rs"]
mod ethernet;

//! Networks as a world uses them.

#[path = "networks/atm.rs"]
mod atm;
#[path = "networks/ethernet.rs"]
mod ethernet;
#[path = "networks/reference_tcp.rs"]
mod reference_tcp;

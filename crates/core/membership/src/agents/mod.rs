//! Agents: one for each host. It starts, watches and ends the applications of its host for run control.
//!
//! [`Roster`] is run control's side, [`Household`] that of an agent. Both are pure: each is told what happens, and says what is to
//! be done through a trait that its driver implements. They speak in [`words`]. By a [`Handshake`] they prove to each other who
//! they are, and a [`Seal`] keeps others from speaking for them afterwards.
//!
//! `docs/protocols/agents.md` describes the protocol.

mod handshake;
mod household;
mod lease;
mod roster;
pub mod words;

pub use handshake::{Forged, Handshake, Met, Seal, Step, secret_of_agents};
pub use household::{Household, HouseholdDriver, NotDone, Resident};
pub use lease::{Lease, Leases};
pub use roster::{Inheritance, Roster, RosterDriver, agent};

use base::ids::Incarnation;
use dataflow::node::RUN_CONTROL;

use crate::challenge::Member;

/// Run control in one of its lives. It begins another one when it takes over what its former life has left.
pub const fn control(life: Incarnation) -> Member {
    (RUN_CONTROL, life)
}

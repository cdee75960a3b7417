//! Which applications are started again when they are lost.

use base::ids::Role;
use configuration::{LossAction, Partition};

/// Whether the protocols of a role let it die within a run and return. Its peers bring it up to date, and the data that
/// it held are either with them still or lost and counted.
pub const fn recovers(role: Role) -> bool {
    match role {
        Role::L2sv | Role::L2pu | Role::Pros | Role::Ros | Role::Dfm | Role::Sfi | Role::Efd | Role::Sfo => true,
        Role::Trg | Role::Ebif => true,
        Role::RunControl | Role::Level1 => false,
    }
}

/// Whether an application of a role that is lost is started again.
pub fn returns(role: Role, partition: &Partition) -> bool {
    partition.processes.on_loss.of(role) == LossAction::Restart && recovers(role)
}

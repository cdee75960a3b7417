//! Who says what to whom: the senders and receivers that the documentation of each [`Message`] names, as a table.

use alloc::format;
use alloc::string::String;

use base::ids::Role;

use super::Message;
use crate::ledger::EVENTS_MAX;

impl Message {
    /// Whether an application of role `from` may say this to one of role `to`.
    #[inline]
    pub fn may_go(&self, from: Role, to: Role) -> bool {
        self.ways().iter().any(|(senders, receivers)| senders & bit(from) != 0 && receivers & bit(to) != 0)
    }

    /// Whether it is for those in front of the gates of components, who connect them.
    pub const fn is_about_connections(&self) -> bool {
        matches!(
            self,
            Self::Challenge { .. }
                | Self::Response { .. }
                | Self::Confirm { .. }
                | Self::Greet { .. }
                | Self::Welcome { .. }
                | Self::Peers(_)
                | Self::Gone(_)
        )
    }

    /// Whether the counts that a receiver takes over agree with one another, as those of somebody who has counted do.
    #[inline]
    pub fn adds_up(&self) -> bool {
        match self {
            Self::Held(holdings) => holdings.ledger.tally.adds_up(),
            Self::Ledger(ledger) => ledger.tally.adds_up(),
            &Self::Resume { rejected, accepted, forced, incomplete, .. } => {
                [rejected, accepted, forced, incomplete].into_iter().all(|count| count <= EVENTS_MAX)
            }
            _ => true,
        }
    }

    /// For the arm of a component that takes what its gate does not let through.
    #[cold]
    pub(crate) fn passes_no_gate(&self) -> ! {
        panic!("{} passes no gate to this component", self.name())
    }

    /// Its kind in words. It takes as long as to print the message.
    pub fn name(&self) -> String {
        let text = format!("{self:?}");
        text.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default().into()
    }

    /// Senders and receivers, as sets of roles.
    #[inline]
    fn ways(&self) -> &'static [(u16, u16)] {
        match self {
            Self::L1Accept { .. } => &[(LEVEL1, ROS | TRG | DFM), (TRG, ROS)],
            Self::L1Result { .. } | Self::Resume { .. } | Self::L1Again { .. } | Self::SettledTaken => {
                &[(LEVEL1, L2SV)]
            }
            Self::LinkTriggers { .. } | Self::Passed(_) => &[(ROS, LEVEL1)],
            Self::Lead(_) | Self::PassedTaken => &[(LEVEL1, ROS)],
            Self::IssuedUpTo(_) => &[(LEVEL1, ROS | TRG | L2SV | DFM), (TRG, ROS)],
            Self::NoMore => &[(LEVEL1, L2SV | DFM), (L2SV | SFI, DFM)],
            Self::Taken(_) | Self::Busy { .. } => &[(ROS | TRG | L2SV | DFM, LEVEL1), (ROS, TRG)],
            Self::Assign { .. } => &[(L2SV, L2PU)],
            Self::RoiRequest { .. } => &[(L2PU, ROS | TRG), (TRG, ROS)],
            Self::RoiReply { .. } => &[(ROS | TRG, L2PU), (ROS, TRG)],
            Self::L2Result { .. } => &[(L2PU, PROS)],
            Self::L2ResultTaken(_) => &[(PROS, L2PU)],
            Self::L2Decision { .. } => &[(L2PU, L2SV)],
            Self::Collected { .. } => &[(L2PU, SFI)],
            Self::Settled { .. } => &[(L2SV, LEVEL1)],
            Self::Forget { .. } | Self::Decisions { .. } => &[(L2SV, DFM)],
            Self::TakenBefore { .. } | Self::AcceptedBefore(_) | Self::DecisionsTaken { .. } => &[(DFM, L2SV)],
            Self::FinishedBelow(_) => &[(DFM, LEVEL1)],
            Self::Build { .. } | Self::Granted(_) | Self::Revoked(_) => &[(DFM, SFI)],
            Self::EventRequest { .. } => &[(SFI, READOUT | EBIF), (EBIF, ROS)],
            Self::Credit(_) => &[(SFI, READOUT | EBIF)],
            Self::EventReply { .. } => &[(READOUT | EBIF, SFI), (ROS, EBIF)],
            Self::Push(_) => &[(DFM, READOUT | TRG), (TRG, EBIF)],
            Self::Destinations(_) => &[(DFM, ROS | TRG)],
            Self::EndOfEvent(_) | Self::SfiBusy(_) => &[(SFI, DFM)],
            Self::Held(_) => &[(ROS | LEVEL1 | L2SV | SFI | EFD, DFM)],
            Self::Ledger(_) => &[(DFM, LEVEL1 | L2SV | SFI | EFD)],
            Self::Clear { .. } => &[(DFM | L2SV, READOUT | TRG), (TRG, ROS)],
            Self::ClearAsk(_) => &[(READOUT | TRG, DFM | L2SV), (ROS, TRG)],
            Self::Pull(_) => &[(EFD, SFI)],
            Self::BuiltEvent(_) => &[(SFI, EFD)],
            Self::Record(_) => &[(EFD, SFO)],
            Self::Refused(_) | Self::Recorded { .. } => &[(SFO, EFD)],
            Self::Orphaned { .. } => &[(DFM, EFD)],
            Self::Orphans { .. } => &[(EFD, DFM)],
            Self::Finished(_) => &[(EFD, SFI | DFM), (SFI, DFM)],
            Self::Challenge { .. } | Self::Response { .. } | Self::Confirm { .. } | Self::Greet { .. } => {
                &[(ANY | RUN_CONTROL, ANY | RUN_CONTROL)]
            }
            Self::Command(_) | Self::Welcome { .. } | Self::Peers(_) | Self::Gone(_) => &[(RUN_CONTROL, ANY)],
            Self::Exhausted => &[(LEVEL1 | DFM, RUN_CONTROL)],
            Self::FileClosed(_) => &[(SFO, RUN_CONTROL)],
            Self::Sample(_) => &[(ROS | EBIF | SFI | EFD, RUN_CONTROL)],
            Self::Join { .. }
            | Self::Ready { .. }
            | Self::Failed(_)
            | Self::Lost { .. }
            | Self::Drained
            | Self::Report(_)
            | Self::Progress(_)
            | Self::Stamped(_)
            | Self::Notice(_)
            | Self::News(_) => &[(ANY, RUN_CONTROL)],
        }
    }
}

const fn bit(role: Role) -> u16 {
    1 << role as u16
}

const RUN_CONTROL: u16 = bit(Role::RunControl);
const LEVEL1: u16 = bit(Role::Level1);
const L2SV: u16 = bit(Role::L2sv);
const L2PU: u16 = bit(Role::L2pu);
const PROS: u16 = bit(Role::Pros);
const DFM: u16 = bit(Role::Dfm);
const SFI: u16 = bit(Role::Sfi);
const EFD: u16 = bit(Role::Efd);
const SFO: u16 = bit(Role::Sfo);
const READOUT: u16 = bit(Role::Ros) | PROS;
const ROS: u16 = bit(Role::Ros);
const TRG: u16 = bit(Role::Trg);
const EBIF: u16 = bit(Role::Ebif);
/// Every application.
const ANY: u16 = LEVEL1 | L2SV | L2PU | DFM | SFI | EFD | SFO | READOUT | TRG | EBIF;

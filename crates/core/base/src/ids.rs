//! Identifiers: events, nodes, runs.

use core::fmt;

/// An event, numbered in 64 bits, so that a number never comes twice.
///
/// Formats and links hold 32 bits ([`Lvl1Id`]); [`EventId::unwrap_near`] makes the one from the other on entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(pub u64);

/// The extended level-1 id of a fragment header: event-counter-reset (ECR) counter in bits 24–31, level-1 counter in bits
/// 0–23.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lvl1Id(pub u32);

impl EventId {
    /// How far from the newest event a 32-bit id may lie to be unwrapped.
    pub const UNWRAP_WINDOW: u64 = 1 << 30;

    /// The event with the 32 low bits `lvl1_id` that lies nearest to `newest`, if it is within ± 2³⁰ of it.
    ///
    /// An ECR step moves the id forward by up to 2²⁴ and is a legal sequence: event numbers rise but are not dense.
    pub fn unwrap_near(newest: Self, lvl1_id: Lvl1Id) -> Option<Self> {
        let distance = i64::from(lvl1_id.0.wrapping_sub(newest.0 as u32).cast_signed());
        if distance.unsigned_abs() > Self::UNWRAP_WINDOW {
            return None;
        }
        newest.0.checked_add_signed(distance).map(Self)
    }

    /// The 32 bits that formats and links hold.
    pub const fn lvl1_id(self) -> Lvl1Id {
        Lvl1Id(self.0 as u32)
    }

    /// The number after this one.
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Lvl1Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

/// A run; unique in a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunNumber(pub u32);

/// An application of the partition: its index in the list of applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

impl NodeId {
    /// The receiver of a multicast: all read-out systems and the pseudo-ROS.
    pub const READOUT: Self = Self(u16::MAX);
}

/// Which life of an application a message comes from. A peer that restarts within a run gets a higher number, so it
/// cannot be mistaken for its former self.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Incarnation(pub u32);

impl Incarnation {
    /// Nothing of this application was in the run before.
    pub const FIRST: Self = Self(0);
}

/// What an application is in the dataflow (DESIGN §1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Role {
    /// Run control: the parent process.
    RunControl = 0,
    /// The source of level-1 triggers, emulated or replayed.
    Level1 = 1,
    /// Level-2 supervisor.
    L2sv = 2,
    /// Level-2 processing unit.
    L2pu = 3,
    /// Pseudo-ROS, which keeps level-2 results for event building.
    Pros = 4,
    /// Dataflow manager.
    Dfm = 5,
    /// Sub-farm input: the event builder.
    Sfi = 6,
    /// Event-filter dataflow daemon.
    Efd = 7,
    /// Sub-farm output: the recorder.
    Sfo = 8,
    /// Read-out system.
    Ros = 9,
    /// Trigger distributor: the front of a read-out crate.
    Trg = 10,
    /// Event-builder interface of a read-out crate.
    Ebif = 11,
}

impl Role {
    /// All roles that take part in a run, in the order in which a stop drains them.
    pub const IN_DRAIN_ORDER: [Self; 11] = [
        Self::Level1,
        Self::L2sv,
        Self::L2pu,
        Self::Dfm,
        Self::Sfi,
        Self::Efd,
        Self::Sfo,
        Self::Pros,
        Self::Ebif,
        Self::Trg,
        Self::Ros,
    ];

    /// The stem of application names: `sfi` for `sfi-1`.
    pub const fn stem(self) -> &'static str {
        match self {
            Self::RunControl => "rc",
            Self::Level1 => "level1",
            Self::L2sv => "l2sv",
            Self::L2pu => "l2pu",
            Self::Pros => "pros",
            Self::Dfm => "dfm",
            Self::Sfi => "sfi",
            Self::Efd => "efd",
            Self::Sfo => "sfo",
            Self::Ros => "ros",
            Self::Trg => "trg",
            Self::Ebif => "ebif",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.stem())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_unwraps_forward_and_backward_across_the_wrap() {
        let below = EventId(0xffff_fff0);
        assert_eq!(EventId::unwrap_near(below, Lvl1Id(5)), Some(EventId(0x1_0000_0005)));
        let above = EventId(0x1_0000_0005);
        assert_eq!(EventId::unwrap_near(above, Lvl1Id(0xffff_fff0)), Some(below));
    }

    #[test]
    fn an_id_outside_the_window_or_below_zero_is_refused() {
        let newest = EventId(0x1_0000_0000);
        assert_eq!(EventId::unwrap_near(newest, Lvl1Id(0x4000_0001)), None);
        assert_eq!(EventId::unwrap_near(newest, Lvl1Id(0x4000_0000)), Some(EventId(0x1_4000_0000)));
        assert_eq!(EventId::unwrap_near(EventId(3), Lvl1Id(0xffff_ffff)), None);
    }

    #[test]
    fn an_ecr_step_is_a_step_forward() {
        let last_before = EventId(0x0100_0123);
        assert_eq!(EventId::unwrap_near(last_before, Lvl1Id(0x0200_0000)), Some(EventId(0x0200_0000)));
    }
}

//! Words that messages and reports have in common: grounds, fates, reasons and causes.

/// On what level 2 has accepted an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Grounds {
    /// On all the data that it asked for.
    #[default]
    Data = 0,
    /// On some of them, as others were missing or damaged: what it would have rejected goes on as well.
    PartOfData = 1,
    /// On none, by a time-out.
    Timeout = 2,
}

impl Grounds {
    /// From the wire value.
    pub const fn from_u8(value: u8) -> Option<Self> {
        match value {
            0 => Some(Self::Data),
            1 => Some(Self::PartOfData),
            2 => Some(Self::Timeout),
            _ => None,
        }
    }
}

/// What the chains of a menu said of an event: one bit per chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chains {
    /// Chains that looked at it: their level-1 item had fired and their prescale let it through.
    pub input: u64,
    /// Of these, chains that accepted it.
    pub passed: u64,
}

/// Why the event filter could not decide on an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum DebugReason {
    /// The processing task died of it.
    Crash = 1,
    /// The algorithm raised an exception or returned an error.
    Exception = 2,
    /// No decision within the time allowed.
    Timeout = 3,
    /// The task needed more memory than it may have.
    Memory = 4,
    /// The event is larger than the memory that tasks see.
    TooLarge = 5,
    /// The task answered with something that is no decision.
    BadAnswer = 6,
    /// No processing task could be started.
    NoTask = 7,
    /// The event's bytes are not fragments one behind the other.
    Malformed = 8,
    /// Data are missing of a source whose events shall not go on without.
    Incomplete = 9,
}

/// What became of a built event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fate {
    /// Rejected by the event filter.
    Rejected = 0,
    /// Accepted and recorded.
    Accepted = 1,
    /// Sent to the debug stream and recorded.
    Debug = 2,
    /// Accepted, but not recorded: the recorder is gone or the run was forced to end.
    Unrecorded = 3,
    /// Given up before the event filter took it.
    Abandoned = 4,
}

/// Why triggers are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum BusyCause {
    /// A ROS runs out of pages.
    Pages = 0,
    /// An L2SV holds as many events as it may.
    EventsInSystem = 1,
    /// Too many level-2 time-outs.
    ForcedLimit = 2,
    /// The DFM has too many events that wait for an SFI.
    BuildQueue = 3,
    /// The window of triggers in flight is used up.
    Window = 4,
    /// A source that sends by itself is not there yet.
    Source = 5,
}

impl Fate {
    /// Number of fates.
    pub const COUNT: usize = 5;
    /// All fates, each at its wire value.
    pub const ALL: [Self; Self::COUNT] =
        [Self::Rejected, Self::Accepted, Self::Debug, Self::Unrecorded, Self::Abandoned];

    /// From its wire value.
    pub fn from_u8(value: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|fate| *fate as u8 == value)
    }
}

impl DebugReason {
    /// All reasons.
    pub const ALL: [Self; 9] = [
        Self::Crash,
        Self::Exception,
        Self::Timeout,
        Self::Memory,
        Self::TooLarge,
        Self::BadAnswer,
        Self::NoTask,
        Self::Malformed,
        Self::Incomplete,
    ];

    /// From its wire value.
    pub fn from_u8(value: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| *reason as u8 == value)
    }

    /// The name of its stream.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Crash => "FilterCrash",
            Self::Exception => "FilterException",
            Self::Timeout => "FilterTimeout",
            Self::Memory => "FilterMemory",
            Self::TooLarge => "FilterTooLarge",
            Self::BadAnswer => "FilterBadAnswer",
            Self::NoTask => "FilterNoTask",
            Self::Malformed => "FilterMalformed",
            Self::Incomplete => "Incomplete",
        }
    }
}

impl BusyCause {
    /// All causes.
    pub const ALL: [Self; 6] =
        [Self::Pages, Self::EventsInSystem, Self::ForcedLimit, Self::BuildQueue, Self::Window, Self::Source];

    /// From its wire value.
    pub fn from_u8(value: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|c| *c as u8 == value)
    }

    /// In words, for the table of who blocks whom.
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Pages => "buffer pages in use",
            Self::EventsInSystem => "events in level 2",
            Self::ForcedLimit => "level-2 time-outs",
            Self::BuildQueue => "events waiting to be built",
            Self::Window => "triggers not yet taken",
            Self::Source => "a source that has not come",
        }
    }
}

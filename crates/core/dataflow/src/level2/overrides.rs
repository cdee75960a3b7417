//! Flags that override recommendations of level 2 `[L2SCI2000 §2.1.5]`.

/// What becomes of the decision of an L2PU, whatever it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Override {
    /// It stands.
    #[default]
    None,
    /// Accepted: level 2 runs along and rejects nothing.
    ForceAccept,
    /// Rejected.
    ForceReject,
}

/// All flags of a supervisor. They act on decisions; an event without one is still forced by its time-out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// For every event; stronger than the masks.
    pub all: Override,
    /// Events with any of these level-1 items are accepted, unless vetoed.
    pub force_accept_items: u32,
    /// Events with any of these level-1 items are rejected.
    pub veto_items: u32,
}

impl Overrides {
    /// The decision on an event with these level-1 items for which level 2 recommends `accept`.
    pub const fn decide(&self, items: u32, accept: bool) -> bool {
        match self.all {
            Override::ForceAccept => true,
            Override::ForceReject => false,
            Override::None => items & self.veto_items == 0 && (accept || items & self.force_accept_items != 0),
        }
    }
}

//! How far a component has come towards its end.

/// Each step is final: a component that drains takes nothing new, and one that has abandoned keeps nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ending {
    #[default]
    NotYet,
    Draining,
    Abandoned,
}

impl Ending {
    pub(crate) fn drain(&mut self) {
        *self = Self::Draining.max(*self);
    }

    pub(crate) fn abandon(&mut self) {
        *self = Self::Abandoned;
    }

    /// Whether nothing new is taken.
    pub(crate) fn is_draining(self) -> bool {
        self != Self::NotYet
    }

    /// Whether what was in hand was given up.
    pub(crate) fn is_abandoned(self) -> bool {
        self == Self::Abandoned
    }
}

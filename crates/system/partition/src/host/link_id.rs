//! Names of connections.

/// Names a connection of this process; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub(super) usize);

#[cfg(test)]
impl LinkId {
    pub(super) fn of_number(number: usize) -> Self {
        Self(number)
    }
}

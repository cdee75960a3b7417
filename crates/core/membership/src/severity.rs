//! How much a line for people matters.

/// How much a line for people matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// All is as it should be.
    Notice,
    /// Somebody should look.
    Warning,
    /// What was wanted did not come to be, or is lost.
    Error,
}

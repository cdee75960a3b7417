//! What people should read.

use std::fmt;

use membership::severity::Severity;

/// A line for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// How much it matters.
    pub severity: Severity,
    /// The words.
    pub text: String,
}

impl Said {
    pub(crate) fn notice(text: impl Into<String>) -> Self {
        Self { severity: Severity::Notice, text: text.into() }
    }

    pub(crate) fn warning(text: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, text: text.into() }
    }

    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self { severity: Severity::Error, text: text.into() }
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

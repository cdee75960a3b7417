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
    /// What has led to it, the nearest cause first. The words do not say it.
    pub causes: Vec<String>,
}

impl Said {
    pub(crate) fn notice(text: impl Into<String>) -> Self {
        Self::of(Severity::Notice, text)
    }

    pub(crate) fn warning(text: impl Into<String>) -> Self {
        Self::of(Severity::Warning, text)
    }

    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self::of(Severity::Error, text)
    }

    pub(crate) fn of(severity: Severity, text: impl Into<String>) -> Self {
        Self { severity, text: text.into(), causes: Vec::new() }
    }

    /// The same, with what has led to it.
    #[must_use]
    pub(crate) fn because(self, causes: Vec<String>) -> Self {
        Self { causes, ..self }
    }
}

/// All of it, in one line.
impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.causes.iter().try_for_each(|cause| write!(f, ", because: {cause}"))
    }
}

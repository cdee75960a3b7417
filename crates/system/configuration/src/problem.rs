//! What is wrong with a configuration, and where.

use core::error::Error;
use core::fmt;

/// Everything that is wrong with a configuration, in the order of the file; the overrides come last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigurationError {
    /// The problems; at least one.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong; prints as `file:line:column: key: message`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where the offending key or value stands.
    pub place: Place,
    /// The dotted key, such as `sfi.outstanding_requests`; empty if the text is not TOML or cannot be read.
    pub key: String,
    /// What was expected and what was found.
    pub message: String,
}

/// Where a key or value comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The file as a whole: something is absent.
    File {
        /// The file's name.
        name: String,
    },
    /// A character of the file.
    At {
        /// The file's name.
        name: String,
        /// The line, from 1.
        line: usize,
        /// The column in characters, from 1.
        column: usize,
    },
    /// An override `--set key=value`.
    Override {
        /// The dotted key of the override.
        key: String,
    },
}

impl Error for ConfigurationError {}

impl fmt::Display for ConfigurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        let said = matches!(&self.place, Place::Override { key } if *key == self.key);
        if !self.key.is_empty() && !said {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name } => f.write_str(name),
            Self::At { name, line, column } => write!(f, "{name}:{line}:{column}"),
            Self::Override { key } => write!(f, "--set {key}"),
        }
    }
}

/// `; did you mean …?`, or nothing if no name is near.
pub(crate) fn did_you_mean(found: &str, names: &[&str]) -> String {
    nearest(found, names).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// The name that differs from `found` in at most a third of its letters, case and kind of dash aside.
pub(crate) fn nearest<'a>(found: &str, names: &[&'a str]) -> Option<&'a str> {
    let plain = |name: &str| name.to_lowercase().replace('-', "_");
    let wanted = plain(found);
    if wanted.chars().count() > LONGEST_NAME {
        return None;
    }
    names
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&wanted, &plain(name)), *name))
        .filter(|(distance, name)| *distance * 3 <= name.chars().count().max(wanted.chars().count()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Names longer than this are not compared: the comparison is quadratic.
const LONGEST_NAME: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_near() {
        let names = ["count", "copy_below", "round-robin"];
        assert_eq!(nearest("cuont", &names), Some("count"));
        assert_eq!(nearest("round_robin", &names), Some("round-robin"));
        assert_eq!(nearest("Copy-Below", &names), Some("copy_below"));
        assert_eq!(nearest("speed", &names), None);
        assert_eq!(nearest(&"count".repeat(1000), &names), None);
    }
}

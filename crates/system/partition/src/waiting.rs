//! Whom a partition waits for on its way to another state.

use core::fmt;

use serde::Serialize;

/// Whom a partition waits for on its way to another state, and for how long at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// What goes on, such as `the applications start`.
    pub what: &'static str,
    /// The first of those that are waited for, each with its host if it has one: `sfi-1 (host b)`.
    pub whom: Vec<String>,
    /// So many are waited for.
    pub missing: usize,
    /// Of so many.
    pub of: usize,
    /// For how long at most, and the key that says so.
    pub limit: String,
}

impl Waiting {
    /// The first of them are named.
    pub(crate) fn new(what: &'static str, all: Vec<String>, of: usize, limit: String) -> Option<Self> {
        let missing = all.len();
        let whom = all.into_iter().take(NAMED).collect();
        (missing > 0).then_some(Self { what, whom, missing, of, limit })
    }

    /// Those that are named, and how many are not.
    pub fn names(&self) -> String {
        let (named, others) = (self.whom.join(", "), self.missing - self.whom.len());
        if others == 0 { named } else { format!("{named} and {others} more") }
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, missing, of, limit, .. } = self;
        write!(f, "{what}: run control waits for {} ({missing} of {of}), {limit}", self.names())
    }
}

pub(crate) const NAMED: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(missing: usize) -> Option<Waiting> {
        let all = (1..=missing).map(|number| format!("sfi-{number} (host b)")).collect();
        Waiting::new("the applications start", all, 300, "at most 30 s (processes.start_timeout)".into())
    }

    #[test]
    fn it_says_who_is_missing_and_until_when() {
        let said = "the applications start: run control waits for sfi-1 (host b), sfi-2 (host b) (2 of 300), at most 30 s \
                    (processes.start_timeout)";
        assert_eq!(waiting(2).unwrap().to_string(), said);
        assert_eq!(waiting(0), None);
    }

    #[test]
    fn of_many_the_first_are_named() {
        let many = waiting(11).unwrap();
        assert_eq!((many.whom.len(), many.missing), (8, 11));
        assert!(many.names().ends_with(", sfi-8 (host b) and 3 more"), "{many}");
    }
}

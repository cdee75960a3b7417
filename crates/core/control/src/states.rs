//! The states of a partition and what leads from one to another (DESIGN §6).

use alloc::string::String;
use core::fmt::{self, Write};

/// The state of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No application runs.
    Absent,
    /// The applications start.
    Booting,
    /// The applications run and have joined.
    Booted,
    /// They have their configuration.
    Configured,
    /// They have found one another.
    Connected,
    /// Events are taken.
    Running,
    /// Triggers are held back.
    Paused,
    /// The run ends: what is in hand is finished.
    Draining,
    /// Something went wrong; no run can begin before the applications have disconnected.
    Fault,
}

/// What moves a partition from state to state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Start the applications.
    Boot,
    /// All of them run and have joined.
    Joined,
    /// Give them their configuration.
    Configure,
    /// Connect them.
    Connect,
    /// Begin a run.
    Start,
    /// Hold back triggers.
    Pause,
    /// Go on.
    Resume,
    /// End the run.
    Stop,
    /// Everything is drained and accounted for.
    Drained,
    /// Give up connections and configuration. The applications live on, for another run.
    Disconnect,
    /// An application was lost or did not answer.
    Fail,
    /// End the applications.
    Shutdown,
}

/// The table: in this state, this verb leads to that state. All other pairs are refused.
pub const TRANSITIONS: &[(State, Verb, State)] = &[
    (State::Absent, Verb::Boot, State::Booting),
    (State::Booting, Verb::Joined, State::Booted),
    (State::Booted, Verb::Configure, State::Configured),
    (State::Configured, Verb::Connect, State::Connected),
    (State::Connected, Verb::Start, State::Running),
    (State::Running, Verb::Pause, State::Paused),
    (State::Paused, Verb::Resume, State::Running),
    (State::Running, Verb::Stop, State::Draining),
    (State::Paused, Verb::Stop, State::Draining),
    (State::Draining, Verb::Drained, State::Connected),
    (State::Connected, Verb::Disconnect, State::Booted),
    (State::Configured, Verb::Disconnect, State::Booted),
    (State::Fault, Verb::Disconnect, State::Booted),
    (State::Fault, Verb::Boot, State::Booting),
    (State::Absent, Verb::Fail, State::Fault),
    (State::Booting, Verb::Fail, State::Fault),
    (State::Booted, Verb::Fail, State::Fault),
    (State::Configured, Verb::Fail, State::Fault),
    (State::Connected, Verb::Fail, State::Fault),
    (State::Booting, Verb::Shutdown, State::Absent),
    (State::Booted, Verb::Shutdown, State::Absent),
    (State::Configured, Verb::Shutdown, State::Absent),
    (State::Connected, Verb::Shutdown, State::Absent),
    (State::Fault, Verb::Shutdown, State::Absent),
];

/// A verb that the table does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Illegal {
    /// The state.
    pub state: State,
    /// The verb.
    pub verb: Verb,
}

impl State {
    /// All states.
    pub const ALL: [Self; 9] = [
        Self::Absent,
        Self::Booting,
        Self::Booted,
        Self::Configured,
        Self::Connected,
        Self::Running,
        Self::Paused,
        Self::Draining,
        Self::Fault,
    ];

    /// In one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Booting => "booting",
            Self::Booted => "booted",
            Self::Configured => "configured",
            Self::Connected => "connected",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Draining => "draining",
            Self::Fault => "fault",
        }
    }

    /// The next state.
    ///
    /// # Errors
    /// If the table does not allow the verb in this state.
    pub fn after(self, verb: Verb) -> Result<Self, Illegal> {
        let row = TRANSITIONS.iter().find(|(from, by, _)| (*from, *by) == (self, verb));
        row.map(|(_, _, to)| *to).ok_or(Illegal { state: self, verb })
    }

    /// What is allowed in this state.
    pub fn verbs(self) -> impl Iterator<Item = Verb> {
        TRANSITIONS.iter().filter(move |(from, _, _)| *from == self).map(|(_, verb, _)| *verb)
    }
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {:?} a partition that is {:?}; allowed are:", self.verb, self.state)?;
        self.state.verbs().try_for_each(|verb| write!(f, " {verb:?}"))
    }
}

impl core::error::Error for Illegal {}

/// The table as a graph in the DOT language.
pub fn graph() -> String {
    let mut dot = String::from("digraph partition {\n");
    for (from, verb, to) in TRANSITIONS {
        writeln!(dot, "  {from:?} -> {to:?} [label=\"{verb:?}\"];").expect("a string takes text");
    }
    dot.push_str("}\n");
    dot
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_run_goes_through_its_states() {
        let verbs = [
            Verb::Boot,
            Verb::Joined,
            Verb::Configure,
            Verb::Connect,
            Verb::Start,
            Verb::Pause,
            Verb::Resume,
            Verb::Stop,
            Verb::Drained,
        ];
        let end = verbs.into_iter().try_fold(State::Absent, State::after);
        assert_eq!(end, Ok(State::Connected));
    }

    #[test]
    fn runs_follow_one_another_in_the_same_processes() {
        let run = [Verb::Configure, Verb::Connect, Verb::Start, Verb::Stop, Verb::Drained, Verb::Disconnect];
        let verbs = [Verb::Boot, Verb::Joined].into_iter().chain(run).chain(run).chain([Verb::Shutdown]);
        assert_eq!(verbs.into_iter().try_fold(State::Absent, State::after), Ok(State::Absent));
        assert_eq!(State::Booted.after(Verb::Fail).unwrap().after(Verb::Disconnect), Ok(State::Booted));
    }

    #[test]
    fn an_illegal_verb_says_what_is_legal() {
        let refused = State::Paused.after(Verb::Start).unwrap_err();
        assert_eq!(refused.to_string(), "cannot Start a partition that is Paused; allowed are: Resume Stop");
    }

    #[test]
    fn the_table_is_unambiguous_and_every_state_can_be_left() {
        for (index, (from, verb, _)) in TRANSITIONS.iter().enumerate() {
            assert!(!TRANSITIONS[..index].iter().any(|(f, v, _)| (f, v) == (from, verb)), "{from:?} {verb:?} twice");
        }
        assert!(TRANSITIONS.iter().all(|(_, _, to)| to.verbs().next().is_some()));
    }

    #[test]
    fn the_graph_is_the_one_in_the_golden_file() {
        assert_eq!(graph(), include_str!("../tests/golden/states.dot"));
    }
}

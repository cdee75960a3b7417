//! What everybody may see of a partition.

use configuration::Partition;
use control::states::{Illegal, State, Verb};
use partition::{Figures, Waiting};
use serde::Serialize;

use crate::attribution::Attribution;
use crate::operator::Operator;
use crate::rates::{Rates, Recent};

/// A partition now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// Its name.
    pub partition: String,
    /// Its state, by the name in the table.
    pub state: String,
    /// What an operator may order in this state.
    pub verbs: Vec<String>,
    /// Who commands.
    pub operator: Option<Operator>,
    /// Whom the partition waits for on its way to another state.
    pub waiting: Option<Waiting>,
    /// The run that goes on.
    pub run: Option<RunStatus>,
    /// So many runs begin by themselves, each when the one before has reached its limit.
    pub follow: u32,
    /// The run before.
    pub last: Option<LastRun>,
    /// So many histograms differ from their references.
    pub alarms: usize,
    /// How often another configuration was put into force since the service began.
    pub configured: u32,
    /// Where the time goes or what is wrong, in one sentence.
    pub sentence: String,
}

/// A run that goes on.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunStatus {
    /// Its number, if it is known yet.
    pub number: Option<u32>,
    /// Time since its start, in seconds.
    pub elapsed_s: f64,
    /// Level-1 events issued.
    pub level1: u64,
    /// Events built.
    pub built: u64,
    /// Events recorded.
    pub recorded: u64,
    /// Bytes recorded.
    pub bytes_recorded: u64,
    /// How fast it is now.
    pub rates: Rates,
    /// The stage that drains, while the run is being stopped.
    pub stopping: Option<String>,
    /// What goes wrong at this moment.
    pub troubles: Vec<String>,
    /// What holds it up.
    #[serde(skip)]
    pub(crate) cause: Option<Attribution>,
}

/// How the run before went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastRun {
    /// Its number; none if it did not begin.
    pub number: Option<u32>,
    /// `ok`, `degraded`, `residual`, `aborted`, or `not started`.
    pub state: String,
    /// Why it did not end well.
    pub reason: Option<String>,
    /// Distinct events recorded.
    pub recorded: u64,
}

/// What an operator orders; the table has further verbs, which follow by themselves.
pub(crate) const ORDERED: [Verb; 6] = [Verb::Boot, Verb::Start, Verb::Pause, Verb::Resume, Verb::Stop, Verb::Shutdown];

/// Ends a run at once: of the table it is a stop.
const FORCE: &str = "force";

/// A booted partition is configured and connected on the way to a run.
const ON_THE_WAY: [Verb; 2] = [Verb::Configure, Verb::Connect];

/// Whether an operator may order a verb in this state.
pub(crate) fn may(state: State, verb: Verb) -> bool {
    let leads = |state: State| state.after(verb).is_ok();
    let on_the_way = || {
        let connected = ON_THE_WAY.into_iter().try_fold(state, State::after);
        verb == Verb::Start && connected.is_ok_and(leads)
    };
    leads(state) || on_the_way()
}

impl RunStatus {
    pub(crate) fn new(number: Option<u32>, figures: &Figures, recent: &Recent, partition: &Partition) -> Self {
        Self {
            number,
            elapsed_s: figures.elapsed.as_secs_f64(),
            level1: figures.issued,
            built: figures.built,
            recorded: figures.recorded,
            bytes_recorded: figures.bytes_recorded,
            rates: recent.rates(),
            stopping: figures.stopping.map(|role| role.to_string()),
            troubles: figures.troubles.clone(),
            cause: recent.cause(partition),
        }
    }
}

/// Names of the verbs that an operator may order. A run that drains may be ended at once.
pub(crate) fn verbs(state: State) -> Vec<String> {
    let force = (state == State::Draining).then(|| FORCE.to_owned());
    ORDERED.into_iter().filter(|verb| may(state, *verb)).map(name).chain(force).collect()
}

/// Why an order is not for this state, and what is.
pub(crate) fn not_now(Illegal { state, verb }: Illegal) -> String {
    format!("cannot {} while the partition is {}: possible is {}", name(verb), name(state), verbs(state).join(" or "))
}

/// The name of a verb or a state, as in paths and JSON.
pub(crate) fn name(word: impl core::fmt::Debug) -> String {
    format!("{word:?}").to_lowercase()
}

/// Where the time goes or what is wrong.
pub(crate) fn sentence(
    state: State,
    waiting: Option<&Waiting>,
    run: Option<&RunStatus>,
    last: Option<&LastRun>,
) -> String {
    if let Some(trouble) = run.and_then(|run| run.troubles.first()) {
        return trouble.clone();
    }
    if let Some(waiting) = waiting {
        return waiting.to_string();
    }
    match (state, run) {
        (State::Draining, Some(RunStatus { stopping: Some(stage), .. })) => format!("the run stops: {stage} drains"),
        (State::Draining, _) => "the run stops".to_owned(),
        (State::Paused, _) => "the run is paused: triggers are held back".to_owned(),
        (State::Running, Some(RunStatus { cause: Some(cause), .. })) => cause.to_string(),
        (State::Running, _) => "the run goes on; nobody waits for another".to_owned(),
        (State::Fault, _) => {
            let why = last.and_then(|last| last.reason.clone()).unwrap_or_else(|| "an application is lost".to_owned());
            format!("{why}; boot again")
        }
        (State::Absent, _) => "no application runs".to_owned(),
        (State::Booting, _) => "the applications start".to_owned(),
        _ => match last {
            Some(LastRun { number: Some(number), state, reason, .. }) => {
                let why = reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
                format!("run {number} ended {state}{why}")
            }
            Some(LastRun { number: None, reason, .. }) => {
                format!("no run began: {}", reason.as_deref().unwrap_or("nobody knows why"))
            }
            None => "ready for a run".to_owned(),
        },
    }
}

/// The state that people see. A run that has drained is over when what is known of it is kept.
pub(crate) fn shown(state: State, run_goes_on: bool) -> State {
    if state == State::Booted && run_goes_on { State::Draining } else { state }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_drains_until_it_is_kept() {
        assert_eq!(shown(State::Booted, true), State::Draining);
        assert_eq!(shown(State::Booted, false), State::Booted);
        assert_eq!(shown(State::Running, true), State::Running);
    }

    #[test]
    fn verbs_are_those_of_the_table() {
        assert_eq!(verbs(State::Absent), ["boot"]);
        assert_eq!(verbs(State::Booting), ["shutdown"]);
        assert_eq!(verbs(State::Booted), ["start", "shutdown"]);
        assert_eq!(verbs(State::Running), ["pause", "stop"]);
        assert_eq!(verbs(State::Paused), ["resume", "stop"]);
        assert_eq!(verbs(State::Draining), ["force"]);

        assert_eq!(verbs(State::Fault), ["boot", "shutdown"]);
        let refused = not_now(Illegal { state: State::Running, verb: Verb::Shutdown });
        assert_eq!(refused, "cannot shutdown while the partition is running: possible is pause or stop");
    }

    #[test]
    fn one_sentence_says_where_the_time_goes() {
        let words = "the DFM waits for SFIs".to_owned();
        let cause = Some(Attribution { words, share: 0.4, remedy: "more help".into() });
        let run = RunStatus { cause, ..RunStatus::default() };
        assert_eq!(
            sentence(State::Running, None, Some(&run), None),
            "the DFM waits for SFIs (40 % of the time); more help"
        );
        let run = RunStatus { troubles: vec!["sfo-1: the disk is full".into()], ..run };
        assert_eq!(sentence(State::Running, None, Some(&run), None), "sfo-1: the disk is full");
        let run = RunStatus { stopping: Some("SFI".into()), ..RunStatus::default() };
        assert_eq!(sentence(State::Draining, None, Some(&run), None), "the run stops: SFI drains");
        let waiting = Waiting {
            what: "the run stops, SFIs drain",
            whom: vec!["sfi-1".into()],
            missing: 1,
            of: 2,
            limit: "at most 10 s without progress (run.stop_timeout)".into(),
        };
        let said = "the run stops, SFIs drain: run control waits for sfi-1 (1 of 2), at most 10 s without progress \
                    (run.stop_timeout)";
        assert_eq!(sentence(State::Draining, Some(&waiting), Some(&run), None), said);
        let run = RunStatus { troubles: vec!["sfi-1 has said nothing".into()], ..run };
        assert_eq!(sentence(State::Draining, Some(&waiting), Some(&run), None), "sfi-1 has said nothing");
        let last = LastRun { number: Some(3), state: "ok".into(), reason: None, recorded: 5 };
        assert_eq!(sentence(State::Booted, None, None, Some(&last)), "run 3 ended ok");
    }
}

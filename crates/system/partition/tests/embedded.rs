//! A partition within another program.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use configuration::{Partition, Size};
use control::states::{Illegal, State, Verb};
use partition::summary::RunState;
use partition::{News, Placement, Run, RunSettings, Running, Session, StartError};
use testkit::TempDir;

#[path = "../../../../examples/embed.rs"]
#[expect(dead_code, reason = "its `main` is for those who run it as a program")]
mod embed;

#[test]
fn the_example_takes_data_pauses_goes_on_and_stops_and_then_has_another_run() {
    let folder = TempDir::new("embedded");
    let [first, second] = embed::take_data(folder.path(), Placement::local()).unwrap().map(|outcome| outcome.summary());
    assert_eq!((first.state, first.accounting.residual), (RunState::Ok, 0));
    assert!(first.accounting.level1 >= 2000, "{:?}", first.accounting);
    assert_eq!((second.state, second.accounting.residual, second.accounting.level1), (RunState::Ok, 0, 500));
    assert!(second.run_number > first.run_number, "each run has its number");
}

#[test]
fn the_example_is_a_program_that_prints_the_account_of_both_runs() {
    let folder = TempDir::new("embed");
    // Cargo builds examples beside the tests, and does not say where.
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("examples/embed");
    assert!(program.is_file(), "{} is not there: run `cargo build -p partition --examples`", program.display());
    let output = Command::new(&program).arg(folder.path()).output().unwrap();
    let (text, errors) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(output.status.success(), "{text}{errors}");
    assert_eq!(text.matches("residual 0").count(), 2, "{text}");
    let refused = Command::new(&program).output().unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8(refused.stderr).unwrap().contains("usage: embed FOLDER"));
}

#[test]
fn a_run_that_is_paused_issues_nothing_until_it_goes_on() {
    let run = started();
    let control = run.control();
    assert!(built_after(&run, 0) > 0);
    run.pause().unwrap();
    assert_eq!(run.pause().unwrap_err().verb, Verb::Pause, "it is paused already");
    // What was in hand is finished, then nothing changes any more, however long one looks.
    let paused_at = built(&run).take(PATIENCE).fold((0, 0), |(last, same), built| match built == last {
        true => (last, same + 1),
        false => (built, 0),
    });
    assert!(paused_at.1 > PATIENCE / 2, "events were built while the run was paused");
    let paused_at = paused_at.0;
    assert_eq!(control.state(), State::Paused);
    run.resume().unwrap();
    assert!(built_after(&run, paused_at) > paused_at);
    run.stop();
    let outcome = run.wait().unwrap();
    let summary = outcome.summary();
    assert_eq!((summary.state, summary.accounting.residual), (RunState::Ok, 0), "{}", outcome.to_text());
    assert_eq!(control.state(), State::Absent);
}

/// Each run of a program has everything of its own, also behind one that was interrupted.
#[test]
fn runs_follow_one_another() {
    for events in [500, 300] {
        let mut configuration = configuration();
        configuration.run.events = Some(events);
        let outcome = Run::new(configuration).start().unwrap().wait().unwrap();
        let accounting = outcome.summary().accounting;
        assert_eq!((accounting.level1, accounting.residual), (events, 0), "{}", outcome.to_text());
    }
}

#[test]
fn a_run_that_is_dropped_ends() {
    let control = started().control();
    assert_eq!(control.state(), State::Absent);
}

#[test]
fn a_run_that_cannot_begin_says_why() {
    let mut configuration = configuration();
    configuration.input.files = vec!["no-such-file.data".into()];
    configuration.ros.input = configuration::RosInput::Replay;
    let error = Run::new(configuration).start().unwrap_err();
    assert!(matches!(error, StartError::Input(_)), "{error}");
}

#[test]
fn a_run_that_was_ended_before_it_began_does_not_begin() {
    let run = Run::new(configuration());
    run.control().stop();
    assert!(matches!(run.start().unwrap_err(), StartError::Interrupted));
}

/// Each run has counters, limits and a number of its own.
#[test]
fn runs_follow_one_another_in_the_same_session() {
    let mut partition = Run::new(configuration()).boot().unwrap();
    assert_eq!(partition.state(), State::Booted);
    for (number, events) in [(1, 500), (2, 300), (3, 700)] {
        let run = partition.start(events_of(&partition, events)).unwrap();
        let outcome = run.wait().unwrap();
        let summary = outcome.summary();
        assert_eq!((summary.run_number, summary.accounting.level1, summary.accounting.residual), (number, events, 0));
        assert_eq!((outcome.stale, partition.state()), (0, State::Booted), "{}", outcome.to_text());
    }
    let control = partition.control();
    partition.shut_down().unwrap();
    assert_eq!(control.state(), State::Absent);
}

#[test]
fn a_second_run_waits_until_the_first_is_over() {
    let mut partition = Run::new(configuration()).boot().unwrap();
    let run = partition.start(partition.settings()).unwrap();
    let error = partition.start(partition.settings()).unwrap_err();
    assert!(matches!(error, StartError::State(Illegal { verb: Verb::Start, .. })), "{error}");
    drop(run);
    let outcome = partition.start(events_of(&partition, 100)).unwrap().wait().unwrap();
    assert_eq!((outcome.summary().accounting.level1, outcome.interrupted), (100, false), "the first one was stopped");
}

#[test]
fn a_run_that_was_forced_or_could_not_begin_leaves_room_for_the_next() {
    let mut partition = Run::new(configuration()).boot().unwrap();
    let run = partition.start(partition.settings()).unwrap();
    partition.control().force();
    assert!(run.wait().unwrap().ending.forced);
    let again = RunSettings { number: Some(1), ..partition.settings() };
    let error = partition.start(again).unwrap_err().to_string();
    assert!(error.contains("run 1 was a run of these processes already"), "{error}");
    partition.control().stop();
    assert!(matches!(partition.start(partition.settings()).unwrap_err(), StartError::Interrupted));
    let summary = partition.start(events_of(&partition, 200)).unwrap().wait().unwrap().summary();
    assert_eq!((summary.state, summary.run_number, summary.accounting.level1), (RunState::Ok, 2, 200));
}

#[test]
fn inputs_of_a_run_that_was_refused_are_not_those_of_the_next() {
    let bytes_built = |seed_of_refused: Option<u64>| {
        let mut configuration = configuration();
        configuration.ros.fragment.kind = configuration::FragmentKind::Exponential;
        configuration.ros.fragment.mean = Some(Size::from_bytes(2000));
        let mut partition = Run::new(configuration).boot().unwrap();
        partition.start(events_of(&partition, 10)).unwrap().wait().unwrap();
        if let Some(seed) = seed_of_refused {
            let refused = RunSettings { number: Some(1), seed, ..partition.settings() };
            assert!(matches!(partition.start(refused).unwrap_err(), StartError::RunNumber(_)));
        }
        let summary = partition.start(events_of(&partition, 100)).unwrap().wait().unwrap().summary();
        (summary.throughput_bytes_per_s.built * summary.duration_s).round()
    };
    assert_eq!(bytes_built(Some(99)), bytes_built(None));
}

#[test]
fn settings_that_no_configuration_could_have_are_refused() {
    let mut partition = Run::new(configuration()).boot().unwrap();
    let error = partition.start(events_of(&partition, 0)).unwrap_err();
    let StartError::Settings(error) = error else { panic!("{error}") };
    assert_eq!(error.problems[0].key, "run.events", "{error}");
    assert_eq!(partition.start(events_of(&partition, 100)).unwrap().wait().unwrap().summary().accounting.level1, 100);
}

#[test]
fn a_stop_that_comes_late_does_not_cancel_the_next_run() {
    let mut partition = Run::new(configuration()).boot().unwrap();
    let first = partition.start(events_of(&partition, 100)).unwrap();
    let late = first.control();
    first.wait().unwrap();
    late.stop();
    let second = partition.start(events_of(&partition, 200)).unwrap();
    late.force();
    assert_eq!(late.pause().unwrap_err().verb, Verb::Pause);
    let outcome = second.wait().unwrap();
    assert_eq!((outcome.summary().accounting.level1, outcome.interrupted), (200, false), "{}", outcome.to_text());
}

#[test]
fn only_settings_of_a_run_change_between_runs() {
    let partition = Run::new(configuration()).boot().unwrap();
    let mut other = configuration();
    (other.run.seed, other.run.events) = (99, Some(5));
    assert_eq!(partition.settings_of(&other), Ok(other.run.clone()));
    other.ros.count += 1;
    let error = partition.settings_of(&other).unwrap_err();
    assert_eq!(error.key, "ros.count");
}

#[test]
fn a_session_that_is_dropped_in_a_run_ends() {
    let mut partition = Run::new(configuration()).boot().unwrap();
    let (control, run) = (partition.control(), partition.start(partition.settings()).unwrap());
    drop(partition);
    assert_eq!(control.state(), State::Absent);
    assert_eq!(run.wait().unwrap().summary().accounting.residual, 0);
}

fn events_of(partition: &Session, events: u64) -> RunSettings {
    RunSettings { events: Some(events), ..partition.settings() }
}

fn started() -> Running {
    Run::new(configuration()).start().unwrap()
}

/// Builds events until somebody ends it.
fn configuration() -> Partition {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/event-builder.toml");
    let mut partition = Partition::load(&example, &["dfm.rate = 1 kHz".into()]).unwrap();
    partition.run.duration = None;
    partition
}

/// Waits until more events are built.
fn built_after(run: &Running, before: u64) -> u64 {
    built(run).take(PATIENCE).find(|built| *built > before).expect("the run goes on")
}

fn built(run: &Running) -> impl Iterator<Item = u64> + '_ {
    run.reports().filter_map(|news| match news {
        News::Figures(figures) if figures.elapsed > Duration::ZERO => Some(figures.built),
        News::Figures(_) | News::Said(_) | News::Sample(_) => None,
    })
}

/// So many figures, four per second, are looked at.
const PATIENCE: usize = 12;

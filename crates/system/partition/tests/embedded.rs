//! A partition within another program.

use std::path::Path;
use std::time::Duration;

use configuration::Partition;
use dataflow::control::states::{State, Verb};
use partition::summary::RunState;
use partition::{News, Run, Running, StartError};
use testkit::TempDir;

#[path = "../../../../examples/embed.rs"]
#[expect(dead_code, reason = "its `main` is for those who run it as a program")]
mod embed;

#[test]
fn the_example_takes_data_pauses_goes_on_and_stops() {
    let folder = TempDir::new("embedded");
    let summary = embed::take_data(folder.path()).unwrap().summary();
    assert_eq!((summary.state, summary.accounting.residual), (RunState::Ok, 0));
    assert!(summary.accounting.level1 >= 2000, "{:?}", summary.accounting);
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
        News::Figures(_) | News::Said(_) => None,
    })
}

/// So many figures, four per second, are looked at.
const PATIENCE: usize = 12;

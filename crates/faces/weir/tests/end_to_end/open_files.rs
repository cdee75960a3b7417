//! A run has more connections than many systems let a process have open files, unless it asks for more.

use crate::running::Job;

#[test]
fn a_run_takes_as_many_as_it_may_have() {
    job().limited("-Sn 24".into()).run().expect_all_built(100);
}

/// Not only who did not answer: they could not. Within this time many connect, on a busy machine too.
#[test]
fn that_there_are_too_few_is_told() {
    let ended = that_cannot_begin().set("processes.start_timeout", "30 s").run().expect(2);
    let expected = ["ros-1", " and ", " more did not answer", "cannot accept a connection", "Too many open files"];
    assert!(expected.iter().all(|words| ended.stderr.contains(words)), "{}", ended.stderr);
}

/// Its processes start, but cannot all be ready.
pub(crate) fn that_cannot_begin() -> Job {
    job().limited("-n 24".into())
}

/// More processes than 24 files can be connected to.
fn job() -> Job {
    Job::example("event-builder").patient().events(100).processes(true).set("ros.count", "32")
}

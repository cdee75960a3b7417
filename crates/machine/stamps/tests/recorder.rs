//! Arming and disarming, for the whole process: one test, because the stamps of a process are one.

use stamps::file::Trace;
use stamps::recorder::{arm, disarm, drain, section_names, source};
use stamps::writer::TraceWriter;
use stamps::{NOWHERE, StampKind, clock, enter, leave, name_place, section, sends, serves};
use testkit::TempDir;

#[test]
fn stamps_are_taken_while_they_are_armed_and_by_every_thread() {
    let (outer, inner) = (section("outer"), section("inner"));
    assert_eq!(section("outer"), outer);
    enter(outer, NOWHERE, NOWHERE, None);
    leave();
    assert_eq!((source(), drain()), (None, Vec::new()));

    let before = clock::now().as_ns();
    arm(4);
    enter(outer, 3, NOWHERE, Some(17));
    serves(18);
    sends(inner, 3, 4, Some(17));
    leave();
    let other = std::thread::Builder::new().name("other".into());
    other.spawn(move || (0..6).for_each(|event| enter(inner, 4, 3, Some(event)))).unwrap().join().unwrap();
    disarm();
    enter(outer, 3, NOWHERE, Some(19));

    let threads = drain();
    let after = clock::now().as_ns();
    let kinds: Vec<_> = threads[0].stamps.iter().map(|stamp| (stamp.kind, stamp.event)).collect();
    let expected = [
        (StampKind::Enter, Some(17)),
        (StampKind::Further, Some(18)),
        (StampKind::Send, Some(17)),
        (StampKind::Leave, None),
    ];
    assert_eq!(kinds, expected);
    assert!(threads[0].stamps.iter().all(|stamp| (before..=after).contains(&stamp.at_ns)));
    assert_eq!((&*threads[1].name, threads[1].lost, threads[1].stamps.len()), ("other", 2, 4));
    assert_eq!(section_names()[usize::from(inner.0)], "inner");

    arm(4);
    let directory = TempDir::new("trace");
    let mut writer = TraceWriter::create(directory.path(), "sfi-1", source().unwrap()).unwrap();
    name_place(3, "sfi-1");
    enter(outer, 3, NOWHERE, Some(20));
    writer.write().unwrap();
    let torn = Trace::read(writer.path()).unwrap();
    assert!(torn.torn_at.is_some());
    assert_eq!((torn.threads.len(), torn.counts()), (1, (1, 0)), "threads that have ended are forgotten");
    (0..6).for_each(|_| leave());
    disarm();
    let read = Trace::read(&writer.finish().unwrap()).unwrap();
    assert_eq!((read.torn_at, read.counts(), read.threads[0].pieces.len()), (None, (5, 2), 2));
    assert_eq!((read.place(3), read.section(read.threads[0].pieces[0][0].section)), ("sfi-1", "outer"));

    arm(4);
    let second = TraceWriter::create(directory.path(), "sfi-1", source().unwrap()).unwrap().limit(0);
    enter(outer, 3, NOWHERE, Some(21));
    assert_eq!(second.path().file_name().unwrap(), "sfi-1.2.weirtrace", "nothing is overwritten");
    disarm();
    let full = Trace::read(&second.finish().unwrap()).unwrap();
    assert_eq!(full.counts(), (0, 1), "what has no room is counted");
}

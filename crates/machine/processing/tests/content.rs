//! What a task in Python sees of an event.
#![forbid(unsafe_code)]

#[allow(dead_code, unreachable_pub, reason = "shared by several test programs")]
mod common;

use common::{Algorithms, PATIENCE, rob, start};
use eformat::{LOST_ROB_BYTES, RobParams, RodHeader, SourceId, lost_rob};
use processing::{EventHead, FailReason, NoticeKind, TasksOptions, Verdict};
use timing::Interval;
use trigger::windows::Window;

const ALGORITHMS: &str = r#"
import struct
import numpy as np
from weir import Decision, Window

class Returns:
    """The whole event, through every way to it."""
    def process(self, event):
        head = struct.pack(
            "<QQQQIIHBB", event.event_number, event.ordinal, event.items, event.level2_chains, event.lvl1_id,
            event.run_number, event.bcid, event.trigger_type, event.forced)
        fragments = event.fragments
        assert list(fragments) == fragments.source_ids.tolist() == [one.source_id for one in fragments.values()]
        parts = [head, struct.pack("<II", len(event.missing), len(fragments)), np.array(event.missing, "<u4").tobytes()]
        robs = b""
        for source_id, fragment in fragments.items():
            alone = event.fragments[source_id]
            assert source_id in fragments and not alone.damaged
            assert (alone.data == fragment.data).all() and (alone.rod == fragment.rod).all()
            assert alone.rod[0] == 0xEE1234EE and alone.rod[3] == source_id
            assert len(alone.rod) == len(alone.data) + 13
            parts += [struct.pack("<III", source_id, alone.status, len(alone.data)), alone.data.tobytes()]
            robs += alone.rob.tobytes()
        assert robs == event.data.tobytes()
        assert 1 not in fragments and fragments.get(1) is None
        return Decision.accept(streams=["express"], result=b"".join(parts), chains=1 << 63, input=3)

class Windows:
    """An answer of each kind, right and wrong, by the number of the event."""
    def process(self, event):
        largest = [Window(number, number + 5, sources=[number, 1 << 31]) for number in range(1024)]
        answers = [
            [Window(5, 1 << 60), Window(sources=(7, 8)), Window(9, 9, sources=[2])], largest, [(5, 9)], largest + largest[:1],
            [Window(sources=[1 << 32])], [Window(sources=[1] * 8192)],
        ]
        if event.event_number == 7:
            answers.append([Window(9, 5)])
        return Decision.accept(result=bytes(32 << 10), windows=answers[event.event_number - 1])

class Places:
    def process(self, event):
        data = event.fragments[0x420001].data
        address = data.__array_interface__["data"][0]
        maps = [line.split() for line in open("/proc/self/maps") if "weir events" in line]
        ranges = [(*(int(end, 16) for end in line[0].split("-")), line[1]) for line in maps]
        assert len(ranges) == 1, maps
        start, end, rights = ranges[0]
        assert rights == "r--s", rights
        assert start <= address and address + data.nbytes <= end
        assert data.dtype == np.uint32 and not data.flags.owndata and not data.flags.writeable
        for attempt in (lambda: data.setflags(write=True), lambda: data.__setitem__(0, 1)):
            try:
                attempt()
            except ValueError:
                continue
            raise AssertionError("a view can be written to")
        return True

class Prints:
    def __init__(self, setup):
        print(setup.name, setup.task, setup.streams, setup.parameters)

    def process(self, event):
        import sys
        assert sys.stdin.read() == ""
        print("event", event.event_number)
        return np.bool_(event.event_number == 2)
"#;

fn expected(head: &EventHead<'_>, fragments: &[(u32, u32, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for long in [head.event_number, head.ordinal, head.items, head.level2_chains] {
        out.extend(long.to_le_bytes());
    }
    out.extend(head.lvl1_id.to_le_bytes());
    out.extend(head.run_number.to_le_bytes());
    out.extend(head.bcid.to_le_bytes());
    out.extend([head.trigger_type, u8::from(head.forced)]);
    for count in [head.missing.len(), fragments.len()] {
        out.extend((count as u32).to_le_bytes());
    }
    out.extend(head.missing.iter().flat_map(|rob| rob.to_le_bytes()));
    for (source, status, data) in fragments {
        for word in [*source, *status, data.len() as u32 / 4] {
            out.extend(word.to_le_bytes());
        }
        out.extend(data);
    }
    out
}

#[test]
fn a_task_sees_exactly_what_was_submitted() {
    let Some(algorithms) = Algorithms::new("a_task_sees_exactly", ALGORITHMS) else { return };
    let mut tasks = start(algorithms.options("Returns"));
    for event in 0..60_u32 {
        let len = |module: u32| ((event * 37 + module * 101) % 120 * 4) as usize;
        let fragments: Vec<(u32, u32, Vec<u8>)> = (0..event)
            .map(|module| (0x42_0000 + event * 64 + module, 0, vec![(event ^ module) as u8; len(module)]))
            .collect();
        let robs: Vec<Vec<u8>> = fragments.iter().map(|(source, _, data)| rob(*source, data)).collect();
        // Several ROBs in a part, and parts of one.
        let (first, others) = robs.split_at(robs.len() / 2);
        let first = first.concat();
        let parts = std::iter::once(first.as_slice()).chain(others.iter().map(Vec::as_slice));
        let missing: Vec<u32> = (0..event % 4).collect();
        let head = EventHead {
            event_number: u64::from(event) << 33,
            ordinal: event.into(),
            lvl1_id: 0xff00_0000 | event,
            run_number: 5,
            bcid: 3563,
            trigger_type: 0x84,
            items: u64::MAX - u64::from(event),
            level2_chains: 1 << event,
            forced: event % 2 == 1,
            missing: &missing,
        };
        tasks.submit(event.into(), &head, parts);
        let (ticket, verdict) = tasks.wait_done(PATIENCE).unwrap();
        assert_eq!(ticket, u64::from(event));
        let Verdict::Accepted { streams, chains, input, result, .. } = verdict else { panic!("{verdict:?}") };
        assert_eq!((streams, chains, input), (2, 1 << 63, 3));
        assert!(result == expected(&head, &fragments), "event {event}");
    }
}

#[test]
fn a_lost_rob_is_a_fragment_without_data_and_with_its_status() {
    let Some(algorithms) = Algorithms::new("a_lost_rob", ALGORITHMS) else { return };
    let mut tasks = start(algorithms.options("Returns"));
    let rod = RodHeader { source_id: SourceId(0x51_0001), ..RodHeader::default() };
    let lost: [u8; LOST_ROB_BYTES] = lost_rob(&RobParams { rod, ..RobParams::default() });
    let head = EventHead::default();
    tasks.submit(1, &head, [lost.as_slice()]);
    let (_, verdict) = tasks.wait_done(PATIENCE).unwrap();
    let Verdict::Accepted { result, .. } = verdict else { panic!("{verdict:?}") };
    assert!(result == expected(&head, &[(0x51_0001, eformat::StatusWord::LOST.0, Vec::new())]));
}

#[test]
fn a_task_asks_for_windows_and_wrong_ones_fail_their_event() {
    let Some(algorithms) = Algorithms::new("a_task_asks_for_windows", ALGORITHMS) else { return };
    let mut tasks = start(algorithms.options("Windows"));
    let mut verdicts = common::decide(&mut tasks, 7).into_iter();
    let window = |begin, end, sources: &[u32]| Window { sources: sources.to_vec(), time: Interval { begin, end } };
    let largest = (0..1024).map(|at| window(at, at + 5, &[at as u32, 1 << 31])).collect();
    let few = vec![window(5, 1 << 60, &[]), Window::of(vec![7, 8]), window(9, 10, &[2])];
    for expected in [few, largest] {
        let Some(Verdict::Accepted { windows, result, .. }) = verdicts.next() else { panic!("no windows") };
        assert_eq!((windows, result.len()), (expected, 32 << 10));
    }
    let failures: Vec<_> = verdicts
        .map(|verdict| match verdict {
            Verdict::Failed { reason, message } => (reason, message),
            other => panic!("{other:?}"),
        })
        .collect();
    let words = ["expected a weir.Window", "1025 windows", "of 32 bits", "32788 bytes", "a window from 9 to 5 ns"];
    for ((reason, message), (place, words)) in failures.iter().zip(words.into_iter().enumerate()) {
        let expected = if place == 4 { FailReason::Exception } else { FailReason::BadAnswer };
        assert_eq!(*reason, expected, "{message}");
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(failures.len(), words.len());
}

#[test]
fn an_algorithm_can_be_tried_out_without_weir() {
    let Some(algorithms) = Algorithms::new("an_algorithm_can_be_tried_out", ALGORITHMS) else { return };
    let data = [vec![1; 40], vec![], vec![2; 8]];
    let robs: Vec<u8> = (0x42_0001..).zip(&data).flat_map(|(source, data)| rob(source, data)).collect();
    std::fs::write(algorithms.directory.join("robs"), robs).unwrap();
    let script = "
import sys, algorithms, weir
event = weir.Event.from_bytes(open('robs', 'rb').read(), event_number=9, lvl1_id=4)
sys.stdout.buffer.write(algorithms.Returns().process(event).result)
";
    let output = run(&algorithms, script);
    let head = EventHead { event_number: 9, lvl1_id: 4, ..EventHead::default() };
    let fragments: Vec<_> = (0x42_0001..).zip(data).map(|(source, data)| (source, 0, data)).collect();
    assert!(output == expected(&head, &fragments), "{output:?}");
}

/// Sources by time, by count and with a clock of their own are told apart by the setup.
#[test]
fn times_of_chunks_are_those_of_the_event_where_its_clock_is_known() {
    let Some(algorithms) = Algorithms::new("times_of_chunks_are_those", ALGORITHMS) else { return };
    let script = "
import json, struct
from weir import Event, Setup, Window

def rob(source, head, chunks):
    data = struct.pack('<QQII', *head, len(chunks), 0)
    data += b''.join(struct.pack('<QQII', begin, end, 4, 0) + b'abcd' for begin, end in chunks)
    size = 8 + 9 + len(data) // 4 + 4
    words = [0xdd1234dd, size, 8, 0x05000000, source, 1, 0, 0, 0xee1234ee, 9, 0x03010001, source, 0, 0, 0, 0, len(chunks)]
    return struct.pack('<17I', *words) + data + struct.pack('<4I', 0, 1, len(data) // 4, 1)

AGREED, EARLY, COUNTED = 0x510000, 0x510001, 0x510002
sources = [('agreed', AGREED, 0), ('early', EARLY, -100), ('counted', COUNTED, None)]
setup = Setup(setup=json.dumps({'sources': [dict(name=name, id=id, offset=offset) for name, id, offset in sources]}))
assert setup.sources == {name: id for name, id, _ in sources} and setup.offsets == {AGREED: 0, EARLY: -100}
never = (1 << 64) - 1
robs = rob(AGREED, (1000, 2000), [(1000, 1500), (1600, 1550), (never, 0)])
robs += rob(EARLY, (1000, 2000), [(1100, 1600), (50, 20), (50, 120)]) + rob(COUNTED, (7, 8), [(5, 9)])
event = Event.from_bytes(robs, offsets=setup.offsets)
assert event.interval == (1000, 2000)
assert [one.interval for one in event.fragments.values()] == [(1000, 2000), (1000, 2000), None]
found = [[(chunk.begin, chunk.end) for chunk in one.chunks] for one in event.fragments.values()]
assert found == [[(1000, 1500), (1600, 1601), (never, never)], [(1000, 1500), (0, 1), (0, 20)], [(5, 9)]], found
assert [chunk.said for chunk in event.fragments[EARLY].chunks] == [(1100, 1600), (50, 20), (50, 120)]
for one in event.fragments.values():
    for chunk in one.chunks:
        Window(chunk.begin, chunk.end)
        assert bytes(chunk.data) == b'abcd'
assert Event.from_bytes(robs).interval == (7, 2000)
assert Event.from_bytes(robs, offsets={}).interval is None
";
    run(&algorithms, script);
}

/// Runs a script with the package.
fn run(algorithms: &Algorithms, script: &str) -> Vec<u8> {
    let options = algorithms.options("Returns");
    let output = std::process::Command::new(&options.command[0])
        .args(["-c", script])
        .envs(options.environment)
        .current_dir(algorithms.directory.path())
        .stderr(std::process::Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    output.stdout
}

/// However small and large answers follow one another.
#[test]
fn answers_never_overrun_a_frame() {
    let Some(algorithms) = Algorithms::new("answers_never_overrun_a_frame", ALGORITHMS) else { return };
    let script = "
import weir
from weir import pt
from weir.decision import Decision, Window

MAX = 1 << 17
windows = [Window(0, 1, sources=range(8187))]
LARGEST = Decision.accept(result=bytes(32 << 10), windows=windows)

class Owner:
    def __init__(self, count):
        given = b''.join(pt._GIVEN.pack(sequence, 0, 64) for sequence in range(count))
        self.frames = [pt._HEADER.pack(pt._EVENTS, count, count) + given, b'']
        self.sent = []
    def recv(self, _):
        return self.frames.pop(0)
    def send(self, frame):
        assert len(frame) <= MAX, len(frame)
        self.sent.append(frame)

setup = dict(slot_bytes=64, result_bytes_max=32 << 10, message_bytes_max=1000, windows_max=1024, windows_bytes_max=32 << 10,
             frame_bytes_max=MAX, streams=[], setup='')
for rejects in [0, 1000, 1636, 1637, 1638, 1639, 3200, 3276, 3277]:
    owner, decisions = Owner(rejects + 2), iter([False] * rejects + [LARGEST] * 2)
    assert pt._Server(owner, bytes(64), [0], setup).run(lambda event: next(decisions), {}) == 0
    counts = [pt._HEADER.unpack_from(frame)[1] for frame in owner.sent]
    assert sum(counts) == rejects + 2 and min(counts) > 0, counts
    assert sum(map(len, owner.sent)) == 8 * len(counts) + 40 * rejects + 2 * (40 + (64 << 10)), counts
";
    run(&algorithms, script);
}

#[test]
fn what_asks_for_nothing_or_for_parts_of_a_nanosecond_is_refused() {
    let Some(algorithms) = Algorithms::new("what_asks_for_nothing", ALGORITHMS) else { return };
    let script = "
import numpy
from weir import Decision, Window

def refused(kind, words, make):
    try:
        made = make()
    except kind as error:
        assert words in str(error), error
    else:
        raise AssertionError(made)

refused(ValueError, 'leave `windows` out', lambda: Decision.accept(windows=[]))
refused(ValueError, 'leave `windows` out', lambda: Decision.accept(windows=iter(())))
refused(ValueError, 'leave `sources` out', lambda: Window(0, 5, sources=[]))
refused(TypeError, 'the begin of a window in ns is 1.5', lambda: Window(1.5, 5))
refused(TypeError, 'the end of a window in ns is 5.0', lambda: Window(1, 5.0))
refused(TypeError, 'a source identifier is 7.0', lambda: Window(sources=[7.0]))
refused(TypeError, 'a source identifier is', lambda: Window(sources='ab'))
assert Decision.accept().windows == () and Window(0, 5).sources == ()
window = Window(numpy.uint64(3), numpy.int64(5), sources=numpy.array([7, 8], numpy.uint32))
assert (window.begin, window.end, window.sources) == (3, 5, (7, 8))
";
    run(&algorithms, script);
}

#[test]
fn views_lie_in_the_shared_memory_and_cannot_be_written_to() {
    let Some(algorithms) = Algorithms::new("views_lie_in_the_shared_memory", ALGORITHMS) else { return };
    let mut tasks = start(algorithms.options("Places"));
    for verdict in common::decide(&mut tasks, 3) {
        assert!(matches!(verdict, Verdict::Accepted { .. }), "{verdict:?}");
    }
}

#[test]
fn an_event_that_does_not_fit_or_is_none_has_its_verdict_at_once() {
    let Some(algorithms) = Algorithms::new("an_event_that_does_not_fit", ALGORITHMS) else { return };
    let mut tasks = start(TasksOptions { slots: 2, slot_bytes: 1000, ..algorithms.options("Returns") });
    tasks.submit(1, &EventHead::default(), [rob(4, &[0; 1024]).as_slice()]);
    tasks.submit(2, &EventHead::default(), [[1; 100].as_slice()]);
    tasks.submit(3, &EventHead::default(), [rob(4, &[0; 512]).as_slice()]);
    assert!(tasks.has_done());
    let mut reasons = std::iter::from_fn(|| tasks.wait_done(PATIENCE)).take(3).map(|(ticket, verdict)| {
        let reason = if let Verdict::Failed { reason, .. } = verdict { Some(reason) } else { None };
        (ticket, reason)
    });
    assert_eq!(reasons.next(), Some((1, Some(FailReason::TooLarge))));
    assert_eq!(reasons.next(), Some((2, Some(FailReason::Malformed))));
    assert_eq!(reasons.next(), Some((3, None)));
}

#[test]
fn what_a_task_prints_comes_as_notices() {
    let Some(algorithms) = Algorithms::new("what_a_task_prints", ALGORITHMS) else { return };
    let options = TasksOptions {
        name: "efd-1".into(),
        setup: r#"{"parameters": {"cut": [1, 2]}}"#.into(),
        ..algorithms.options("Prints")
    };
    let mut tasks = start(options);
    let verdicts = common::decide(&mut tasks, 2);
    assert!(matches!(verdicts[..], [Verdict::Rejected { .. }, Verdict::Accepted { .. }]), "{verdicts:?}");
    for line in ["efd-1 0 ('physics', 'express') {'cut': [1, 2]}", "event 1", "event 2"] {
        let notice = tasks.wait_notice(PATIENCE).unwrap();
        assert_eq!((notice.task.as_str(), notice.kind, notice.text.as_str()), ("efd-1 pt-1", NoticeKind::Output, line));
    }
}

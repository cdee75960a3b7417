//! Triggers from level-1 processors over TCP.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base::ids::{EventId, Lvl1Id};
use dataflow::level1::roib::SourceRecord;
use dataflow::level1::trigger::Trigger;
use dataflow::message::Roi;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use rol::{BadLevel1Frame, Incoming, Level1Frame, NetworkParameters, NetworkTriggers};
use transport::idle::IdleStrategy;
use transport::scheduler::{Context, Scheduler, Task};

/// What came until the sources ended or `enough` of it came.
struct Take<'a> {
    triggers: &'a NetworkTriggers,
    enough: &'a mut dyn FnMut(&[Incoming]) -> bool,
    taken: &'a mut Vec<Incoming>,
}

impl Task for Take<'_> {
    fn poll(&mut self, _: &mut Context<'_, ()>) -> bool {
        self.triggers.has_some()
    }

    fn action(&mut self, context: &mut Context<'_, ()>) {
        self.taken.extend(self.triggers.take());
        if (self.enough)(self.taken) {
            context.stop();
        }
    }
}

struct Level1 {
    waker_of: Scheduler<'static, ()>,
    triggers: NetworkTriggers,
}

impl Level1 {
    fn new(sources: usize, events_waiting: usize, join_timeout: Duration) -> Self {
        Self::with_silence(sources, events_waiting, join_timeout, Duration::from_secs(100))
    }

    fn with_silence(sources: usize, events_waiting: usize, join_timeout: Duration, silence: Duration) -> Self {
        let waker_of = Scheduler::new(park()).unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let first = EventId(0);
        let parameters = NetworkParameters { listen, sources, join_timeout, events_waiting, first, silence };
        let triggers = NetworkTriggers::start(&parameters, waker_of.waker()).unwrap();
        Self { waker_of, triggers }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.triggers.address()).unwrap()
    }

    /// Takes until `enough`.
    fn until(self, mut enough: impl FnMut(&[Incoming]) -> bool) -> Vec<Incoming> {
        let mut taken = Vec::new();
        {
            let mut scheduler: Scheduler<'_, ()> = self.waker_of;
            scheduler.add("take", Take { triggers: &self.triggers, enough: &mut enough, taken: &mut taken });
            scheduler.run(&mut ()).unwrap();
        }
        taken
    }

    fn until_the_end(self) -> (Vec<Trigger>, Vec<String>) {
        let taken = self.until(|taken| taken.last() == Some(&Incoming::Ended));
        let (mut triggers, mut notices) = (Vec::new(), Vec::new());
        for incoming in taken {
            match incoming {
                Incoming::Trigger(trigger) => triggers.push(trigger),
                Incoming::Notice(text) => notices.push(text),
                Incoming::Ended => {}
            }
        }
        (triggers, notices)
    }
}

fn park() -> IdleStrategy {
    IdleStrategy::Park { yield_for: Duration::ZERO }
}

fn record(id: u32, source: u32) -> Level1Frame {
    let roi =
        Roi { kind: source as u8 % 5, ieta: 3, iphi: 9, eta: -0.5, phi: 1.5, et_mev: id as i32, ..Roi::default() };
    let record = SourceRecord {
        lvl1_id: Lvl1Id(id),
        bcid: (source == 0).then_some(77),
        trigger_type: (source == 1).then_some(0x84),
        items: 1 << (source % 32),
        rois: vec![roi; 2],
    };
    Level1Frame { source, record: Some(record) }
}

fn end(source: u32) -> Vec<u8> {
    Level1Frame { source, record: None }.encode()
}

/// A level-1 processor that sends so many events and ends.
fn processor(mut stream: TcpStream, source: u32, events: u32) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        for id in 0..events {
            stream.write_all(&record(id, source).encode()).unwrap();
        }
        stream.write_all(&end(source)).unwrap();
    })
}

#[test]
fn records_of_several_processors_are_joined_in_order() {
    let level1 = Level1::new(3, 16, Duration::from_secs(100));
    let processors: Vec<_> = (0..3).map(|source| processor(level1.connect(), source, 2000)).collect();
    let (triggers, notices) = level1.until_the_end();
    processors.into_iter().for_each(|processor| processor.join().unwrap());
    assert_eq!(triggers.len(), 2000);
    for (id, trigger) in triggers.iter().enumerate() {
        assert_eq!((trigger.bcid, trigger.trigger_type, trigger.items), (77, 0x84, 7));
        let rois: Vec<(u8, i32)> = trigger.rois.iter().map(|roi| (roi.kind, roi.et_mev)).collect();
        let id = id as i32;
        assert_eq!(rois, [(0, id), (0, id), (1, id), (1, id), (2, id), (2, id)]);
    }
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(notices[1].starts_with("level-1 processors: 2000 events complete, 0 incomplete"), "{notices:?}");
    assert!(notices[0].starts_with("waits for 3 level-1 processors at 127.0.0.1:"), "{notices:?}");
}

#[test]
fn processors_wait_while_nobody_asks() {
    let level1 = Level1::new(1, 4, Duration::from_secs(100));
    let mut stream = level1.connect();
    let frame = Level1Frame {
        source: 0,
        record: record(0, 0).record.map(|r| SourceRecord { rois: vec![Roi::default(); 255], ..r }),
    };
    let done = Arc::new(AtomicBool::new(false));
    // The buffers of the kernel take some megabytes, and then a write takes nothing for as long as one cares to wait.
    let stopped = Arc::clone(&done);
    let sender = std::thread::spawn(move || {
        let (mut sent, mut id, mut pending) = (0_u64, 0, Vec::new());
        stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
        loop {
            if pending.is_empty() {
                let Some(record) = frame.record.clone() else { unreachable!("a record") };
                pending =
                    Level1Frame { source: 0, record: Some(SourceRecord { lvl1_id: Lvl1Id(id), ..record }) }.encode();
                id += 1;
            }
            match stream.write(&pending) {
                Ok(len) => {
                    sent += len as u64;
                    pending.drain(..len);
                }
                Err(_) => {
                    stopped.store(true, Ordering::Release);
                    return (sent, id);
                }
            }
            assert!(sent < 1 << 30, "nothing holds the processor back");
        }
    });
    let (sent, events) = sender.join().unwrap();
    assert!(done.load(Ordering::Acquire) && sent > 0 && events > 4);
    let taken = level1.until(|taken| taken.len() > 4);
    assert!(taken.iter().skip(1).all(|incoming| matches!(incoming, Incoming::Trigger(_))), "{taken:?}");
}

#[test]
fn bad_frames_close_their_connection_alone() {
    let level1 = Level1::new(1, 16, Duration::from_secs(100));
    let good = record(0, 0).encode();
    let changed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        bytes
    };
    let bad: [Vec<u8>; 7] = [
        changed(4, 2),
        changed(8, 1),
        changed(17, 0xf0),
        changed(19, 0xff),
        changed(24, 9),
        vec![0xff; 100],
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
    ];
    let count = bad.len() as u64;
    for bytes in bad {
        let mut stream = level1.connect();
        stream.write_all(&bytes).unwrap();
        // Closed by the other side, in good order or not.
        let read = stream.read(&mut [0; 1]);
        assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    }
    assert_eq!(level1.triggers.refused(), count);
    let mut stream = level1.connect();
    stream.write_all(&[good, end(0)].concat()).unwrap();
    let (triggers, notices) = level1.until_the_end();
    assert_eq!((triggers.len(), notices.len() as u64), (1, count + 2), "{notices:?}");
    assert!(notices[1].contains("number 1: byte 4: expected 0x314c0001"), "{notices:?}");
    assert!(notices[2].contains("source 1: expected one below level1.sources, which is 1"), "{notices:?}");
}

#[test]
fn a_processor_may_come_back_and_the_missing_are_counted() {
    let level1 = Level1::new(2, 16, Duration::from_secs(100));
    let mut other = level1.connect();
    other.write_all(&record(0, 1).encode()).unwrap();
    let mut first = level1.connect();
    first.write_all(&record(0, 0).encode()).unwrap();
    first.shutdown(Shutdown::Write).unwrap();
    assert_eq!(first.read(&mut [0; 1]).unwrap(), 0, "it was noticed");
    let mut again = level1.connect();
    again.write_all(&[record(2, 0).encode(), end(0)].concat()).unwrap();
    other.write_all(&end(1)).unwrap();
    let (triggers, notices) = level1.until_the_end();
    assert_eq!(triggers.iter().map(|trigger| trigger.rois.len()).sum::<usize>(), 6);
    assert!(notices.iter().any(|text| text == "level-1 processor 0 is gone: closed by peer"), "{notices:?}");
    assert!(notices.last().unwrap().contains(" 1 events complete, 1 incomplete"), "{notices:?}");
}

#[test]
fn what_was_counted_is_told_also_after_a_stop() {
    let mut level1 = Level1::new(1, 16, Duration::from_secs(100));
    let mut stream = level1.connect();
    let wild = record(1 << 27, 0);
    let bytes = [record(0, 0).encode(), record(0, 0).encode(), wild.encode(), record(1, 0).encode()].concat();
    stream.write_all(&bytes).unwrap();
    // The processor goes on, but the run ends: all that it sent has been read when the connection is closed for this.
    stream.write_all(&[0xff; 24]).unwrap();
    assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)));
    let notices = level1.triggers.finish();
    let has = |text: &str| notices.iter().any(|notice| notice.contains(text));
    assert!(has("an id far from those of all others, for the first time"), "{notices:?}");
    let last = notices.last().unwrap();
    assert!(last.starts_with("level-1 processors: 2 events complete, 0 incomplete"), "{last}");
    assert!(last.contains(" 1 of wild ids") && last.ends_with(" 1 connections closed"), "{last}");
    assert_eq!(level1.triggers.finish(), Vec::<String>::new());
}

#[test]
fn the_newest_connection_of_a_source_replaces_a_silent_one() {
    let level1 = Level1::with_silence(1, 16, Duration::from_secs(100), Duration::ZERO);
    let mut half_open = level1.connect();
    half_open.write_all(&record(0, 0).encode()).unwrap();
    let mut again = level1.connect();
    again.write_all(&record(1, 0).encode()).unwrap();
    assert!(matches!(half_open.read(&mut [0; 1]), Ok(0) | Err(_)));
    again.write_all(&[record(2, 0).encode(), end(0)].concat()).unwrap();
    let (triggers, notices) = level1.until_the_end();
    assert_eq!(triggers.len(), 3, "{notices:?}");
    assert!(notices.iter().any(|text| text.starts_with("level-1 processor 0 has connected again")), "{notices:?}");
}

#[test]
fn frames_come_back() {
    let full = SourceRecord {
        rois: vec![Roi { kind: 4, aux_mev: [-1, 1], ..Roi::default() }; 255],
        ..record(9, 0).record.unwrap()
    };
    for frame in [
        record(1, 0),
        record(u32::MAX, 63),
        Level1Frame { source: 3, record: None },
        Level1Frame { source: 0, record: Some(full) },
    ] {
        assert_eq!(Level1Frame::decode(&frame.encode()), Ok(frame));
    }
    assert_eq!(Level1Frame::decode(&[0; 25]), Err(BadLevel1Frame::Length { bytes: 25 }));
}

proptest! {
    #[test]
    fn any_frame_is_answered(start in any::<bool>(), bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = bytes;
        if start && bytes.len() >= 24 {
            bytes[4..8].copy_from_slice(&0x314c_0001_u32.to_le_bytes());
            bytes[16..20].fill(0);
        }
        if let Ok(frame) = Level1Frame::decode(&bytes) {
            let again = frame.encode();
            prop_assert!(again.len() <= bytes.len());
            prop_assert_eq!(Level1Frame::decode(&again), Ok(frame));
        }
    }
}

//! The bare machine for a supervisor with sinks in one process. The same records go through the same number of
//! queues, between plain structs, in one thread.
//!
//! Each event is five records: to the read-out, to the supervisor, to a sink, back, and the permission to go on.
//! Each is as large as a message with its envelope. Those that carry regions of interest own a list of them, and
//! the supervisor keeps a copy until the decision is back. Nothing is checked, counted or timed, and no data are
//! read out.

use std::collections::VecDeque;
use std::time::Duration;

use dataflow::message::{Envelope, Message, Roi};
use nix::sys::resource::UsageWho;
use transport::clock;

use partition::cpu::cpu_seconds;

/// Events, wall-clock seconds and processor seconds of a run of at least this many seconds.
pub(super) fn run(seconds: f64, in_flight: usize, rois: usize) -> (u64, f64, f64) {
    let mut machine = Machine { queue: VecDeque::new(), undecided: VecDeque::new(), issued: 0, decided: 0 };
    let rois = vec![Roi::default(); rois];
    let (began, cpu) = (clock::now(), cpu_seconds(UsageWho::RUSAGE_SELF));
    let end = began + Duration::from_secs_f64(seconds);
    while machine.decided == 0 || clock::now() < end {
        while machine.issued - machine.decided < in_flight as u64 {
            machine.issue(&rois);
        }
        while let Some(record) = machine.queue.pop_front() {
            machine.deliver(record);
        }
    }
    let measured = clock::now().since(began).as_secs_f64();
    (machine.decided, measured, cpu_seconds(UsageWho::RUSAGE_SELF) - cpu)
}

struct Machine {
    queue: VecDeque<Record>,
    undecided: VecDeque<(u64, Vec<Roi>)>,
    issued: u64,
    decided: u64,
}

struct Record {
    to: Place,
    event: u64,
    rois: Vec<Roi>,
    _rest: [u8; REST_BYTES],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    ReadOut,
    Supervisor,
    Sink,
    Back,
    Level1,
}

impl Machine {
    fn issue(&mut self, rois: &[Roi]) {
        let event = self.issued;
        self.issued += 1;
        self.send(Place::ReadOut, event, Vec::new());
        self.send(Place::Supervisor, event, rois.to_vec());
    }

    fn deliver(&mut self, record: Record) {
        let Record { to, event, rois, .. } = record;
        match to {
            Place::ReadOut | Place::Level1 => {}
            Place::Supervisor => {
                self.undecided.push_back((event, rois.clone()));
                self.send(Place::Sink, event, rois);
                self.send(Place::Level1, event, Vec::new());
            }
            Place::Sink => self.send(Place::Back, event, Vec::new()),
            Place::Back => {
                let first = self.undecided.pop_front().expect("an event that is decided was undecided");
                assert_eq!(first.0, event, "events are decided in their order");
                self.decided += 1;
            }
        }
    }

    fn send(&mut self, to: Place, event: u64, rois: Vec<Roi>) {
        self.queue.push_back(Record { to, event, rois, _rest: [0; REST_BYTES] });
    }
}

const REST_BYTES: usize = size_of::<(Envelope, Message)>() - size_of::<(Place, u64, Vec<Roi>)>();
const _: () = assert!(size_of::<Record>() == size_of::<(Envelope, Message)>());

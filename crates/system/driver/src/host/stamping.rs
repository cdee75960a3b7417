//! Time stamps of this process, as run control orders them. A thread of its own makes and ends the files: data wait for no disk.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use base::ids::NodeId;
use base::time::Time;
use dataflow::message::{Command, Envelope, Message};
use dataflow::node::RUN_CONTROL;
use stamps::file::TraceError;
use stamps::switch::{self, Owner};

use super::Host;

/// What run control has ordered, and what has come of it.
#[derive(Default)]
pub(super) struct Stamping {
    clerk: Option<Clerk>,
    /// How many orders have no answer yet.
    pending: usize,
}

/// The ends of a thread that carries out one order after the other.
struct Clerk {
    orders: SyncSender<Order>,
    answers: Receiver<Answer>,
}

#[derive(Debug)]
struct Order {
    to: NodeId,
    command: Command,
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// An order to this component is carried out; where the file is, or what went wrong.
    Done { to: NodeId, file: Result<String, String> },
    /// A trace ended by itself: one that run control had begun, or one of the process. This component was the last to be told to begin one.
    Broken { to: NodeId, reason: String },
}

impl Clerk {
    fn start() -> std::io::Result<Self> {
        let ((orders, ordered), (answer, answers)) = (sync_channel(ORDERS_MAX), sync_channel(ORDERS_MAX));
        thread::Builder::new().name("stamps".into()).spawn(move || work(&ordered, &answer, switch::broken))?;
        Ok(Self { orders, answers })
    }
}

/// Until nobody orders any more, or hears answers. `broken` says why a trace of this owner ended by itself, once.
fn work(ordered: &Receiver<Order>, answer: &SyncSender<Answer>, broken: impl Fn(Owner) -> Option<TraceError>) {
    let mut begun = None;
    loop {
        let (owners, done) = match ordered.recv_timeout(BETWEEN_LOOKS) {
            Ok(Order { to, command }) => {
                begun = (command != Command::NoStamps).then_some(to);
                // It may have followed a broken one: without this look, the end of a whole trace would fail with the reason of the one
                // before. The owner of one of the process looks no more until the process ends.
                (&[Owner::RunControl, Owner::Process][..], Some(Answer::Done { to, file: carry_out(command) }))
            }
            Err(RecvTimeoutError::Timeout) => (&[Owner::RunControl][..], None),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let ended = owners.iter().filter_map(|owner| {
            let (to, error) = (begun?, broken(*owner)?);
            Some(Answer::Broken { to, reason: error.to_string() })
        });
        if ended.chain(done).any(|next| answer.send(next).is_err()) {
            return;
        }
    }
}

fn carry_out(command: Command) -> Result<String, String> {
    let done = match command {
        Command::NoStamps => switch::end(Owner::RunControl),
        command => switch::begin(Owner::RunControl, command == Command::StampPolls),
    };
    let file = switch::file().map(|file| file.display().to_string());
    done.map(|()| file.unwrap_or_default()).map_err(|error| error.to_string())
}

impl Host {
    /// Has done what run control orders about time stamps. Whether it was such an order.
    pub(super) fn stamp(&mut self, envelope: &Envelope, message: &Message) -> bool {
        let Message::Command(command @ (Command::Stamps | Command::StampPolls | Command::NoStamps)) = message else {
            return false;
        };
        if envelope.from != RUN_CONTROL || !self.is_current(envelope) {
            return false;
        }
        match self.stamping.order(Order { to: envelope.to, command: *command }) {
            Ok(()) => self.stamping.pending += 1,
            Err(reason) => self.say_stamped(envelope.to, Err(reason)),
        }
        true
    }

    /// Says what has come of orders.
    pub(super) fn tell_stamps(&mut self) {
        while let Some(answer) = self.stamping.clerk.as_ref().and_then(|clerk| clerk.answers.try_recv().ok()) {
            match answer {
                Answer::Done { to, file } => {
                    self.stamping.pending -= 1;
                    self.say_stamped(to, file);
                }
                Answer::Broken { to, reason } => self.notice(to, format!("time stamps end early: {reason}")),
            }
        }
    }

    fn say_stamped(&mut self, from: NodeId, file: Result<String, String>) {
        if let Err(reason) = &file {
            self.notice(from, format!("time stamps: {reason}"));
        }
        let answer = self.envelope(from, RUN_CONTROL);
        self.send(answer, Message::Stamped(file.unwrap_or_default()));
    }

    fn is_current(&self, envelope: &Envelope) -> bool {
        let hosted = self.nodes.get(usize::from(envelope.to.0)).and_then(Option::as_ref);
        hosted.is_some_and(|hosted| hosted.node.is_current(envelope))
    }
}

impl Stamping {
    fn order(&mut self, order: Order) -> Result<(), String> {
        let clerk = match self.clerk.take() {
            Some(clerk) => clerk,
            None => Clerk::start().map_err(|error| format!("there is no thread for them: {error}"))?,
        };
        let sent = self.clerk.insert(clerk).orders.try_send(order);
        sent.map_err(|_| "too many orders wait for the disk".to_owned())
    }

    /// When it is looked at again whether orders are carried out.
    pub(super) fn next_look(&self, now: Time) -> Option<Time> {
        (self.pending > 0).then(|| now + BETWEEN_ANSWERS)
    }
}

/// So many orders wait for a disk: some for each application of a process.
const ORDERS_MAX: usize = 4096;
/// How often it is looked at whether a trace goes on.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// How soon an answer is seen by a process that has nothing else to do.
const BETWEEN_ANSWERS: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io;
    use std::path::Path;

    use super::*;

    /// Nobody else would hear of it before the process ends.
    #[test]
    fn a_broken_trace_is_told_when_run_control_begins_another_in_its_place() {
        // Nothing can begin there: this is no test of files.
        let nowhere = Path::new("/dev/null/nothing");
        switch::prepare(nowhere, "test");
        let left = [Cell::new(true), Cell::new(true)];
        let broken = |owner| {
            let cause = io::Error::other("the disk is full");
            let (path, left) =
                if owner == Owner::Process { ("of-process", &left[0]) } else { ("of-control", &left[1]) };
            left.take().then(|| TraceError::File { path: path.into(), cause })
        };
        let ((orders, ordered), (answer, answers)) = (sync_channel(4), sync_channel(8));
        let to = NodeId(3);
        for command in [Command::NoStamps, Command::Stamps, Command::StampPolls] {
            orders.send(Order { to, command }).unwrap();
        }
        drop(orders);
        work(&ordered, &answer, broken);
        drop(answer);
        let told = answers.iter().map(|answer| match answer {
            Answer::Done { file, .. } => file,
            Answer::Broken { reason, .. } => Ok(reason),
        });
        let told: Vec<_> = told.collect();
        let full = |path| Ok(format!("{path}: the disk is full"));
        assert_eq!(told[..3], [Ok(String::new()), full("of-control"), full("of-process")]);
        assert!(told[3..].iter().all(|file| file.as_ref().is_err_and(|why| why.starts_with("/dev/null/nothing"))));
        assert_eq!(told.len(), 5, "each is told once: {told:?}");
    }
}

//! A process and its connections, without components.

use std::time::Duration;

use base::ids::{NodeId, RunNumber};
use configuration::Partition;
use dataflow::message::Message;
use dataflow::node::RUN_CONTROL;
use transport::challenge::{Member, Prover};
use transport::clock;
use transport::idle::IdleStrategy;
use transport::run_secret::RunSecret;
use transport::scheduler::Scheduler;

use super::{FIRST_LIFE, Host, Kind, LinkEvent, Links, NetworkOptions, Part};

/// What a peer sent before it went is delivered, although sending to it has failed meanwhile.
#[test]
fn a_peer_that_takes_no_more_is_heard_to_its_end() {
    for connections in ["tcp", "shm"] {
        let (mut first, mut second) = (process(connections, FIRST), process(connections, SECOND));
        let (waker, now) = (first.scheduler.waker(), clock::now());
        let address = second.host.links.address().unwrap();
        let kind = if connections == "shm" { Kind::Shm } else { Kind::Tcp };
        let (part, poller) = (Part { kind, port: None }, first.scheduler.poller());
        let link = first.host.links.connect((SECOND, &address), part, now, poller, &waker).unwrap();
        let proven = |process: &mut Process| {
            process.scheduler.poller().wait(Some(Duration::ZERO)).unwrap();
            let waker = process.scheduler.waker();
            let _ = process.host.links.accept(clock::now(), process.scheduler.poller(), &waker).unwrap();
            process.host.hear_unproven(clock::now());
            process.host.links.flush(clock::now());
            match process.host.link_events.pop_front() {
                Some(LinkEvent::Proven { link }) => Some(link),
                None => None,
                event => panic!("{event:?}"),
            }
        };
        let (mut at_first, mut at_second) = (None, None);
        let from_first = until(|| {
            at_first = at_first.or_else(|| proven(&mut first));
            at_second = at_second.or_else(|| proven(&mut second));
            at_second.filter(|_| at_first == Some(link))
        });
        let envelope = second.host.envelope(RUN_CONTROL, RUN_CONTROL);
        for _ in 0..FRAMES {
            second.host.send_over(from_first, &envelope, &Message::NoMore);
        }
        until(|| {
            first.scheduler.poller().wait(Some(Duration::ZERO)).unwrap();
            second.scheduler.poller().wait(Some(Duration::ZERO)).unwrap();
            second.host.links.flush(clock::now());
            first.host.links.flush(clock::now());
            let _ = second.host.links.fill(clock::now(), from_first);
            second.host.links.is_flushed().then_some(())
        });
        second.host.links.close(from_first);
        let is_lost = |first: &mut Process| {
            let connection = first.host.links.connection(link).unwrap().link_mut();
            connection.flush(clock::now()).is_err()
        };
        until(|| {
            first.scheduler.poller().wait(Some(Duration::ZERO)).unwrap();
            first.host.send_over(link, &envelope, &Message::NoMore);
            is_lost(&mut first).then_some(())
        });
        first.host.send_over(link, &envelope, &Message::NoMore);
        assert!(first.host.link_events.is_empty(), "{connections}: {:?}", first.host.link_events);
        let mut heard = Vec::new();
        until(|| {
            first.scheduler.poller().wait(Some(Duration::ZERO)).unwrap();
            first.host.receive(clock::now(), link);
            heard.extend(first.host.link_events.drain(..));
            matches!(heard.last(), Some(LinkEvent::Lost { .. })).then_some(())
        });
        let messages = heard.iter().filter(|event| matches!(event, LinkEvent::Message { .. })).count();
        assert_eq!((messages, heard.len()), (FRAMES, FRAMES + 1), "{connections}");
    }
}

struct Process {
    host: Host,
    scheduler: Scheduler<'static, Host>,
}

fn process(connections: &str, here: Member) -> Process {
    let text = "partition.name = \"p\"\nros.count = 1\nsfi.count = 1\n";
    let partition = Partition::parse("p", text, &[format!("transport.connections={connections}")]).unwrap();
    let mut scheduler = Scheduler::<Host>::new(IdleStrategy::Yield).unwrap();
    let waker = scheduler.waker();
    let options = NetworkOptions::new(&partition, &[1]);
    let shares = options.shares();
    let prover = Prover::new(&RunSecret::new("key", &[1; 16]), RunNumber(1), here);
    let mut links = Links::listen(options, prover, shares, scheduler.poller(), &waker).unwrap();
    links.share(Vec::new(), &waker).unwrap();
    Process { host: Host::empty(links), scheduler }
}

/// What is about to happen between the two has happened.
fn until<T>(mut happens: impl FnMut() -> Option<T>) -> T {
    let deadline = clock::now() + PATIENCE;
    loop {
        if let Some(done) = happens() {
            return done;
        }
        assert!(clock::now() < deadline, "nothing happens between the two");
    }
}

const FIRST: Member = (NodeId(1), FIRST_LIFE);
const SECOND: Member = (NodeId(2), FIRST_LIFE);
const FRAMES: usize = 100;

/// What needs milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(600);

//! How many fragments a link moves in a second, and what each costs both ends together in processor time; beside a bare socket
//! over which the same payloads go with calls as large, and nobody looks at them.
//!
//! `cargo run --release -p link --example rate -- [BYTES] [FRAGMENTS]`

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use link::wire::HEAD_BYTES;
use link::{Address, Arrival, Head, Intake, IntakeParameters, LinkOrder, Order, Secret, Sender, Settings};
use rustix::time::ClockId;
use transport::clock;
use transport::idle::IdleStrategy;
use transport::scheduler::{Context, Scheduler, Task};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<usize>().expect("a number"));
    let bytes = arguments.next().unwrap_or(1024);
    let fragments = arguments.next().unwrap_or(2_000_000);
    let folder = testkit::TempDir::new("link-rate");
    let shared = format!("shm:{}", folder.path().join("rate.sock").display());
    report("bare", bytes, fragments, measure_bare(bytes, fragments));
    for at in ["tcp://127.0.0.1:0", &shared] {
        report(&at[..3], bytes, fragments, measure(at, bytes, fragments));
    }
}

fn report(name: &str, bytes: usize, fragments: usize, (seconds, cpu): (f64, f64)) {
    let (rate, each) = (fragments as f64 / seconds, cpu / fragments as f64 * 1e9);
    let moved = rate * bytes as f64 / 1e9;
    println!("{name:4} {bytes} bytes: {rate:.0} fragments/s, {moved:.2} GB/s, {each:.0} ns of processor each");
}

fn measure_bare(bytes: usize, fragments: usize) -> (f64, f64) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut sender = TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    let (mut receiver, _) = listener.accept().expect("a connection");
    let (begin, cpu) = (clock::now(), cpu_seconds());
    let pushing = std::thread::spawn(move || {
        let mut buffer = vec![0; (64_usize << 10).next_multiple_of(bytes + HEAD_BYTES)];
        let (mut filled, mut number) = (0, 0);
        while number < fragments {
            buffer[filled + HEAD_BYTES..filled + HEAD_BYTES + bytes].fill(number as u8);
            (filled, number) = (filled + HEAD_BYTES + bytes, number + 1);
            if filled == buffer.len() || number == fragments {
                sender.write_all(&buffer[..filled]).expect("a connection");
                filled = 0;
            }
        }
    });
    let mut buffer = vec![0; 256 << 10];
    while receiver.read(&mut buffer).expect("a connection") > 0 {}
    pushing.join().expect("a source");
    (clock::now().since(begin).as_secs_f64(), cpu_seconds() - cpu)
}

/// Seconds by the clock and of processor time.
fn measure(at: &str, bytes: usize, fragments: usize) -> (f64, f64) {
    let parameters = IntakeParameters {
        at: Address::of_intake(at, "rate").expect("an address"),
        name: "rate".into(),
        id: 1,
        key: Some(Secret::new("key")),
        size_max: bytes.max(1),
        headroom: 92,
        tailroom: 20,
        pages: 4096,
        run: 1,
        shared: false,
        frames: None,
        from: None,
    };
    let mut scheduler = Scheduler::new(IdleStrategy::default()).expect("a scheduler");
    let mut intake = Intake::open(parameters, scheduler.waker()).expect("an intake");
    intake.register(scheduler.poller()).expect("a poller");
    intake.order(LinkOrder::Start { run: 1 });
    let at = intake.address();
    scheduler.add("intake", Sink { intake, is_done: false });
    let pushing = std::thread::spawn(move || push(&at, bytes, fragments));
    scheduler.run(&mut ()).expect("a run");
    // The source ends when the other end is gone.
    drop(scheduler);
    pushing.join().expect("a source")
}

fn push(at: &str, bytes: usize, fragments: usize) -> (f64, f64) {
    let key = Some(Secret::new("key"));
    let settings = Settings { name: "rate".into(), id: None, key, patience: Duration::from_secs(10) };
    let mut sender = Sender::open(at, &settings).expect("a link");
    while sender.wait(Duration::from_secs(1)).expect("a link") == Order::Nothing {}
    let (begin, cpu) = (clock::now(), cpu_seconds());
    for number in 0..fragments {
        let head = Head { number: Some(number as u64), ..Head::default() };
        loop {
            if let Some(place) = sender.reserve(bytes).expect("a link") {
                place.fill(number as u8);
                break sender.commit(&head, bytes).expect("a link");
            }
            sender.wait(Duration::from_secs(1)).expect("a link");
        }
    }
    sender.end().expect("a link");
    // The other end goes when it has all.
    while sender.wait(Duration::from_secs(1)).is_ok_and(|order| order != Order::Closed) {}
    (clock::now().since(begin).as_secs_f64(), cpu_seconds() - cpu)
}

struct Sink {
    intake: Intake,
    is_done: bool,
}

impl Task for Sink {
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.intake.is_ready(context.now, ROOM)
    }

    fn action(&mut self, context: &mut Context<'_>) {
        let is_done = &mut self.is_done;
        self.intake.poll(context.now, context.poller, ROOM, &mut |arrival| {
            *is_done |= matches!(arrival, Arrival::Ended { .. });
        });
        if self.is_done {
            context.stop();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the processor time of a measurement")]
fn cpu_seconds() -> f64 {
    let read = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    read.tv_sec as f64 + read.tv_nsec as f64 / 1e9
}

const ROOM: usize = 256;

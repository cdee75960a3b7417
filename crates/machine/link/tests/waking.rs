//! Ends that sleep are woken: whatever is missed shows as a test that waits for ever.

mod bench;

use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use bench::CARRIERS;
use link::{Address, Arrival, Head, Intake, LinkOrder, Order, Secret, Sender, Settings};
use transport::idle::IdleStrategy;
use transport::scheduler::{Context, Scheduler, Task};

const PATIENCE: Duration = Duration::from_secs(60);
const COUNT: u64 = 300;

/// A read-out system that sleeps whenever it can.
struct ReadOut {
    intake: Intake,
    arrived: SyncSender<u64>,
    came: u64,
}

impl Task for ReadOut {
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.intake.is_ready(context.now, usize::MAX >> 1)
    }

    fn action(&mut self, context: &mut Context<'_>) {
        let Self { intake, arrived, came } = self;
        let mut is_over = false;
        intake.poll(context.now, context.poller, usize::MAX >> 1, &mut |arrival| match arrival {
            Arrival::Fragment { head, .. } => {
                *came += 1;
                // Who does not listen wants the count alone.
                let _ = arrived.try_send(head.number.unwrap());
            }
            Arrival::Ended { received, .. } => is_over = received == *came,
            _ => {}
        });
        if is_over {
            context.stop();
        }
    }
}

/// Runs a read-out system and a source, each in a thread.
fn run(at: Address, pages: usize, source: impl FnOnce(Sender, std::sync::mpsc::Receiver<u64>) + Send) {
    let park = IdleStrategy::Park { yield_for: Duration::ZERO };
    let mut scheduler = Scheduler::new(park).unwrap();
    let mut parameters = bench::parameters(at, Some(Secret::new("key")));
    parameters.pages = pages;
    let mut intake = Intake::open(parameters, scheduler.waker()).unwrap();
    intake.register(scheduler.poller()).unwrap();
    intake.order(LinkOrder::Start { run: 7 });
    let at = intake.address();
    let (arrived, arrivals) = sync_channel(1);
    scheduler.add("readout", ReadOut { intake, arrived, came: 0 });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let key = Some(Secret::new("key"));
            let settings = Settings { name: "tlu".into(), id: None, key, patience: PATIENCE };
            let mut sender = Sender::open(&at, &settings).unwrap();
            assert_eq!(sender.wait(PATIENCE).unwrap(), Order::Start { run: 7 });
            source(sender, arrivals);
        });
        scheduler.run(&mut ()).unwrap();
    });
}

fn address(carrier: bench::Carrier, folder: &testkit::TempDir) -> Address {
    match carrier {
        bench::Carrier::Tcp => Address::Tcp("127.0.0.1:0".into()),
        bench::Carrier::Shared => Address::Shared(folder.path().join("tlu.sock")),
    }
}

#[test]
fn a_read_out_system_that_sleeps_is_woken_by_each_fragment() {
    for carrier in CARRIERS {
        let folder = testkit::TempDir::new("link");
        run(address(carrier, &folder), 16, |mut sender, arrivals| {
            for number in 0..COUNT {
                sender.reserve(10).unwrap().unwrap().fill(1);
                sender.commit(&Head { number: Some(number), ..Head::default() }, 10).unwrap();
                sender.flush().unwrap();
                assert_eq!(arrivals.recv_timeout(PATIENCE), Ok(number), "{carrier:?}");
            }
            end(&mut sender);
        });
    }
}

#[test]
fn a_source_that_sleeps_is_woken_when_there_is_room() {
    for carrier in CARRIERS {
        let folder = testkit::TempDir::new("link");
        run(address(carrier, &folder), 1, |mut sender, _| {
            for number in 0..10 * COUNT {
                while sender.reserve(1000).unwrap().is_none() {
                    assert_eq!(sender.wait(10 * PATIENCE).unwrap(), Order::Nothing, "{carrier:?}");
                }
                sender.commit(&Head { number: Some(number), ..Head::default() }, 1000).unwrap();
            }
            end(&mut sender);
        });
    }
}

fn end(sender: &mut Sender) {
    sender.end().unwrap();
    while !sender.is_flushed() {
        sender.wait(Duration::from_millis(10)).unwrap();
    }
}

//! Sources in processes of their own, which are killed: this program runs itself again.

mod bench;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bench::{Bench, CARRIERS, Came, Carrier};
use link::{Head, LinkOrder, Lost, Order, Secret, Sender, Settings};

const CHILD: &str = "WEIR_TEST_LINK_CHILD";
const COUNT: usize = 7;

/// The part of the source: sends, keeps pages that it never commits, says so, and waits for its end.
#[test]
fn child() {
    let Ok(at) = std::env::var(CHILD) else { return };
    let key = at.starts_with("tcp").then(|| Secret::new("key"));
    let settings = Settings { name: "tlu".into(), id: None, key, patience: Duration::from_secs(60) };
    let mut sender = Sender::open(&at, &settings).unwrap();
    assert_eq!(sender.wait(Duration::from_secs(60)).unwrap(), Order::Start { run: 7 });
    for index in 0..COUNT {
        sender.reserve(100).unwrap().unwrap().fill(index as u8);
        sender.commit(&Head { number: Some(index as u64), ..Head::default() }, 100).unwrap();
    }
    while !sender.is_flushed() {
        sender.wait(Duration::from_millis(10)).unwrap();
    }
    sender.reserve(100).unwrap().unwrap().fill(99);
    println!("{SENT}");
    // Until the parent kills this process, or is gone.
    let _ = std::io::stdin().read(&mut [0]);
}

fn spawn(at: &str) -> Child {
    let program = std::env::current_exe().unwrap();
    let arguments = ["child", "--exact", "--nocapture", "--test-threads=1"];
    let mut command = Command::new(program);
    command.args(arguments).env(CHILD, at).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn a_killed_source_has_delivered_what_it_committed_and_its_pages_come_home() {
    for carrier in CARRIERS {
        let mut bench = Bench::new(carrier);
        bench.intake.order(LinkOrder::Start { run: 7 });
        // Nothing is taken before the source is dead.
        bench.room = 0;
        let mut child = spawn(bench.at());
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let has_sent = std::thread::scope(|scope| {
            let reading = scope.spawn(move || said.any(|line| line.unwrap().contains(SENT)));
            while !reading.is_finished() {
                bench.poll();
            }
            reading.join().unwrap()
        });
        assert!(has_sent, "{carrier:?}: the source said so");
        child.kill().unwrap();
        child.wait().unwrap();
        bench.room = COUNT - 2;
        let pool = bench.intake.pool().clone();
        let came = bench.until(|came| matches!(came.last(), Some(Came::Down(_))));
        let fragments: Vec<_> = came.iter().filter_map(Came::fragment).collect();
        assert_eq!(fragments.len(), COUNT, "{carrier:?}");
        assert!(fragments.iter().enumerate().all(|(index, fragment)| fragment.payload == [index as u8; 100]));
        assert_eq!(came.last(), Some(&Came::Down(Lost::Closed)), "{carrier:?}");
        if carrier == Carrier::Shared {
            assert_eq!(pool.counters().in_use, 0, "the page that it kept came home");
        }
        let mut sender = bench.started(7);
        bench.push(&mut sender, &Head::default(), b"next");
        bench.until_with(&mut sender, |came| !came.is_empty());
    }
}

const SENT: &str = "all was sent";

//! The key of a partition stays where it is: no command line, environment or open file shows it, and it does not travel.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::Signal;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, setsockopt, socket, sockopt};
use nix::sys::time::TimeVal;

use crate::children::{marked, name};
use crate::running::Job;

#[test]
fn the_key_of_a_partition_is_nowhere_to_be_seen() {
    check_key_is_hidden("the_key_of_a_partition_is_nowhere_to_be_seen", "[]");
}

#[test]
fn the_key_is_nowhere_to_be_seen_with_agents() {
    check_key_is_hidden(
        "the_key_is_nowhere_to_be_seen_with_agents",
        "[{name=\"a\"}, {name=\"b\", data=\"127.0.0.2\"}]",
    );
}

fn check_key_is_hidden(test: &str, hosts: &str) {
    let capture = match Capture::start() {
        Ok(capture) => capture,
        Err(error) => return testkit::skip(test, &format!("packets cannot be captured: {error}")),
    };
    let captured = capture.during(|| {
        let job = Job::example("trigger")
            .with_key(KEY)
            .set("partition.name", NAME)
            .set("host", hosts)
            .set("level1.rate", "200 Hz")
            .set("processes.on_loss", "restart");
        let mut running = job.endless().processes(true).start();
        running.until_recording();
        let processes = marked(running.directory().path());
        assert!(processes.len() > 10, "applications and processing tasks: {processes:?}");
        for pid in processes {
            let mut seen = vec![read(format!("/proc/{pid}/environ")), read(format!("/proc/{pid}/cmdline"))];
            seen.extend(open_files(pid).iter().map(read));
            assert!(!seen.iter().any(|bytes| contains(bytes, KEY)), "process {pid}");
            let input = fs::read_link(format!("/proc/{pid}/fd/0")).unwrap();
            assert!(name(pid).is_none() || input == Path::new("/dev/null"), "{pid}: {}", input.display());
        }
        running.signal(Signal::SIGKILL);
    });
    assert!(captured.any(|packet| contains(packet, NAME)), "the configuration was captured");
    assert!(!captured.any(|packet| contains(packet, KEY)), "the key has travelled");
}

/// Files and memory without a name that a process has open.
fn open_files(pid: i32) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let is_file = |path: &PathBuf| fs::metadata(path).is_ok_and(|file| file.is_file());
    entries.map(|entry| entry.path()).filter(is_file).collect()
}

/// The beginning of a file; nothing if it is gone.
fn read(path: impl AsRef<Path>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(path) {
        // Some are not readable.
        let _ = file.take(READ_MAX).read_to_end(&mut bytes);
    }
    bytes
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// All packets on the interfaces of this machine.
struct Capture {
    socket: OwnedFd,
}

struct Captured(Vec<Vec<u8>>);

impl Capture {
    fn start() -> nix::Result<Self> {
        let socket = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::EthAll)?;
        setsockopt(&socket, sockopt::RcvBufForce, &BUFFER_BYTES)?;
        // Looks now and then whether it is to end.
        setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::new(0, 20_000))?;
        Ok(Self { socket })
    }

    /// Those packets that hold what is looked for, of a run.
    fn during(self, run: impl FnOnce()) -> Captured {
        let is_over = AtomicBool::new(false);
        let mut kept = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut packet = vec![0; PACKET_MAX];
                loop {
                    match recv(self.socket.as_raw_fd(), &mut packet, MsgFlags::empty()) {
                        Ok(len) if [KEY, NAME].iter().any(|text| contains(&packet[..len], text)) => {
                            kept.push(packet[..len].to_vec());
                        }
                        Ok(_) => {}
                        Err(_) if is_over.load(Ordering::Relaxed) => break,
                        Err(_) => {}
                    }
                }
            });
            let ended = catch_unwind(AssertUnwindSafe(run));
            is_over.store(true, Ordering::Relaxed);
            ended.unwrap_or_else(|panic| resume_unwind(panic));
        });
        Captured(kept)
    }
}

impl Captured {
    fn any(&self, holds: impl Fn(&[u8]) -> bool) -> bool {
        self.0.iter().any(|packet| holds(packet))
    }
}

const KEY: &str = "a-key-that-nobody-may-see-3f9a1c";
const NAME: &str = "a-name-that-travels-3f9a1c";
const READ_MAX: u64 = 16 << 20;
const BUFFER_BYTES: usize = 64 << 20;
const PACKET_MAX: usize = 1 << 17;

//! Strangers at every port that a partition and its run control open, whatever is behind it.

use std::collections::BTreeSet;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testkit::TempDir;

use crate::children::{MARK, listening, marked, name, resident_bytes};
use crate::files::check_all;
use crate::hostile::{RESIDENT_BYTES_MAX, bad_frames, half_a_frame, is_closed, say};
use crate::running::{Job, program, send, within_deadline};
use crate::served::Served;

const KEY: &str = "a key of devices";
/// Level-1 processor and source.
const DEVICES: [&str; 2] = ["calo", "board"];

/// A processor and a source come over TCP, and `weir host` starts the agent. `weir serve` listens for people, at loopback and encrypted. None
/// of them takes what a stranger says, keeps it, or waits for it.
#[test]
fn strangers_at_every_port_change_nothing() {
    let directory = TempDir::new("every-port");
    fs::write(directory.join("key"), KEY).unwrap();
    let devices = free_ports();
    // How long a stranger may say nothing, too.
    let job = Job::of(&configuration(&directory, &devices)).patient().set("processes.start_timeout", "30 s");
    // An agent that a busy machine holds up is not lost.
    let job = job.set("processes.lease", "30 s");
    let farm = Farm::start(&directory, job.directory());
    let host = "[{name=\"here\", launcher=\"service\"";
    let job = job.set("host", &format!("{host}, address=\"{}\", options=[\"--key\", {:?}]}}]", farm.door, farm.key));
    let mut served = Served::start_encrypted(job, "doors");
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    let feeds = devices.map(|(name, port)| feed(&directory, name, port));
    served.running.until_recording();

    let doors = lasting_doors(&served, &devices, &farm);
    let mut held: Vec<TcpStream> = doors.iter().flat_map(|door| [half_a_frame(*door), silent(*door)]).collect();
    for door in &doors {
        for (what, bytes) in bad_frames().into_iter().chain(other_protocols()) {
            say(&served.running, *door, &format!("{what} at {door}"), &bytes);
        }
    }
    more_is_recorded(&mut served);
    within_deadline("who never says what is expected is shown out", || held.iter_mut().all(is_closed));
    for pid in marked(served.running.directory().path()).into_iter().chain([farm.pid()]) {
        let bytes = resident_bytes(pid);
        assert!(bytes < RESIDENT_BYTES_MAX, "{bytes} bytes of process {pid}");
    }

    more_is_recorded(&mut served);
    served.ctl("anna", &["stop"]);
    let over = served.until("the run is over", |status| status["last"]["number"] == 1);
    assert_eq!(over["last"]["state"], json!("ok"), "{over}");
    let run = served.get("runs/1");
    assert_eq!(run["summary"]["accounting"]["residual"], json!(0), "{run}");
    assert!(run["summary"]["died"].is_null() && run["summary"]["restarts"].is_null(), "{run}");
    check_all(&served.running.output());
    for mut feed in feeds {
        send(feed.id() as i32, Signal::SIGTERM);
        feed.wait().unwrap();
    }
    served.running.signal(Signal::SIGINT);
    served.end().expect(0);
}

/// Those that are there twice in a row, while the run goes on.
fn lasting_doors(served: &Served, devices: &[(&str, u16)], farm: &Farm) -> BTreeSet<SocketAddr> {
    let mut found = doors(served, devices, farm);
    within_deadline("no door is shut any more", || {
        let before = core::mem::replace(&mut found, doors(served, devices, farm));
        before == found
    });
    let status = served.status();
    assert_eq!(status["state"], "running", "{status}\n{}", served.running.error_output());
    found
}

/// Whatever ends the run is said at once.
fn more_is_recorded(served: &mut Served) {
    let before = served.status()["run"]["recorded"].as_u64().unwrap_or_default();
    let is_more = |status: &Value| status["run"]["recorded"].as_u64() > Some(before + 1000);
    let status = served.until("more is recorded", |status| status["state"] != "running" || is_more(status));
    assert!(is_more(&status), "{status}\n{}", served.running.error_output());
}

/// Where processes listen: run control for people, agents and applications, and applications for each other and for devices.
fn doors(served: &Served, devices: &[(&str, u16)], farm: &Farm) -> BTreeSet<SocketAddr> {
    let processes = marked(served.running.directory().path()).into_iter().chain([farm.pid()]);
    let doors: BTreeSet<SocketAddr> = processes
        .into_iter()
        .flat_map(listening)
        .map(|(address, _)| SocketAddr::from(([127, 0, 0, 1], address.port())))
        .collect();
    let ports: BTreeSet<u16> = doors.iter().map(SocketAddr::port).collect();
    let people = served.address.parse::<SocketAddr>().unwrap().port();
    let shown = served.get("targets")[0]["targets"][0].as_str().unwrap().parse::<SocketAddr>().unwrap().port();
    let said = served.running.error_output();
    let encrypted = said.split("open https://").nth(1).and_then(|place| place.split(['/', ' ']).next()).unwrap();
    let encrypted: u16 = encrypted.rsplit(':').next().unwrap().parse().unwrap();
    let known = devices.iter().map(|(_, port)| *port).chain([people, shown, encrypted, farm.door.port()]);
    assert!(known.into_iter().all(|port| ports.contains(&port)), "{ports:?}");
    // Run control listens for people in two ways, for its agent and for applications, and each application for others. The agent waits for
    // run control that comes back, and shows metrics.
    let applications = marked(served.running.directory().path()).into_iter().filter_map(name).count();
    assert!(doors.len() >= devices.len() + 7 + applications, "{applications} applications: {doors:?}");
    doors
}

/// What programs say that have lost their way.
fn other_protocols() -> [(&'static str, Vec<u8>); 4] {
    let hello = [&[0x16, 3, 1, 0xff, 0xff, 1, 0, 0xff, 0xfb, 3, 3][..], &[7; 600]].concat();
    [
        ("a request of HTTP", b"GET /api/orders/stop HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".to_vec()),
        ("a header without end", [&b"POST /api/orders/shutdown HTTP/1.1\r\nX: "[..], &[b'x'; 100_000]].concat()),
        ("a greeting of TLS", hello),
        ("a greeting of SSH", b"SSH-2.0-stranger\r\n".to_vec()),
    ]
}

fn silent(door: SocketAddr) -> TcpStream {
    let stranger = TcpStream::connect(door).unwrap();
    stranger.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    stranger
}

fn configuration(directory: &TempDir, devices: &[(&str, u16)]) -> PathBuf {
    let at = |place: usize| format!("{:?}", format!("tcp://127.0.0.1:{}", devices[place].1));
    let text = format!(
        "[partition]\nname = \"doors\"\nkey = {KEY:?}\n[level1]\nsource = \"external\"\n\
         [[level1.processor]]\nname = \"calo\"\nat = {}\n[dfm]\n[sfi]\ncount = 1\n[sfo]\ncount = 1\n[ros]\ninput = \"links\"\n\
         [[source]]\nname = \"board\"\nat = {}\n",
        at(0),
        at(1)
    );
    let path = directory.join("doors.toml");
    fs::write(&path, text).unwrap();
    path
}

/// A `weir host`. Dropping it ends it.
struct Farm {
    process: Child,
    key: PathBuf,
    door: SocketAddr,
}

impl Farm {
    /// Its agents are of the run in that directory.
    fn start(directory: &TempDir, of_run: &Path) -> Self {
        let (key, said) = (directory.join("farm.key"), directory.join("farm.said"));
        fs::write(&key, "a key that this farm alone has, and no other").unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let mut command = Command::new(program());
        command.args(["host", "--listen", "127.0.0.1:0", "--key"]).arg(&key).stdin(Stdio::null());
        command.env(MARK, of_run).env("TMPDIR", of_run).env("XDG_RUNTIME_DIR", of_run).current_dir(of_run);
        let process = command.stderr(fs::File::create(&said).unwrap()).spawn().unwrap();
        let mut door = None;
        within_deadline("a host can be called", || {
            let said = fs::read_to_string(&said).unwrap();
            let place = said.split_once("listens at ").and_then(|(_, place)| place.split_once('\n'));
            door = place.and_then(|(place, _)| place.parse().ok());
            door.is_some()
        });
        Self { process, key, door: door.unwrap() }
    }

    fn pid(&self) -> i32 {
        self.process.id().cast_signed()
    }
}

impl Drop for Farm {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn feed(directory: &TempDir, name: &str, port: u16) -> Child {
    let mut command = Command::new(program());
    command.args(["feed", &format!("tcp://127.0.0.1:{port}"), "--name", name, "--rate", "2 kHz", "--key-file"]);
    command.arg(directory.join("key"));
    if name == DEVICES[0] {
        command.arg("--level1");
    }
    command.stderr(Stdio::null()).spawn().unwrap()
}

/// Free until the partition listens there, as far as anybody can tell.
fn free_ports() -> [(&'static str, u16); 2] {
    let held = DEVICES.map(|name| (name, TcpListener::bind("127.0.0.1:0").unwrap()));
    held.map(|(name, listener)| (name, listener.local_addr().unwrap().port()))
}

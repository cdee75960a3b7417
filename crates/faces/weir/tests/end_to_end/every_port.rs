//! Strangers at every port that a partition and its run control open, whatever is behind it.

use std::collections::BTreeSet;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;
use testkit::TempDir;

use crate::children::{listening, marked, name, resident_bytes};
use crate::files::check_all;
use crate::hostile::{RESIDENT_BYTES_MAX, bad_frames, half_a_frame, is_closed, say};
use crate::running::{Job, program, send, within_deadline};
use crate::served::Served;

const KEY: &str = "a key of devices";
/// Level-1 processor and source.
const DEVICES: [&str; 2] = ["calo", "board"];

/// A processor and a source come over TCP, an agent starts the applications, and `weir serve` listens for people. None
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
    let mut served = Served::start(job);
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    let feeds = devices.map(|(name, port)| feed(&directory, name, port));
    served.running.until_recording();

    let doors = doors(&served, &devices);
    let mut held: Vec<TcpStream> = doors.iter().flat_map(|door| [half_a_frame(*door), silent(*door)]).collect();
    for door in &doors {
        for (what, bytes) in bad_frames().into_iter().chain(other_protocols()) {
            say(&served.running, *door, &format!("{what} at {door}"), &bytes);
        }
    }
    served.running.until_more_is_recorded();
    within_deadline("who never says what is expected is shown out", || held.iter_mut().all(is_closed));
    for pid in marked(served.running.directory().path()) {
        let bytes = resident_bytes(pid);
        assert!(bytes < RESIDENT_BYTES_MAX, "{bytes} bytes of process {pid}");
    }

    served.running.until_more_is_recorded();
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

/// Where processes listen: run control for people, agents and applications, and applications for each other and for devices.
fn doors(served: &Served, devices: &[(&str, u16)]) -> BTreeSet<SocketAddr> {
    let processes = marked(served.running.directory().path());
    let doors: BTreeSet<SocketAddr> = processes
        .into_iter()
        .flat_map(listening)
        .map(|(address, _)| SocketAddr::from(([127, 0, 0, 1], address.port())))
        .collect();
    let ports: BTreeSet<u16> = doors.iter().map(SocketAddr::port).collect();
    let people = served.address.parse::<SocketAddr>().unwrap().port();
    let known = devices.iter().map(|(_, port)| *port).chain([people]);
    assert!(known.into_iter().all(|port| ports.contains(&port)), "{ports:?}");
    // Run control listens for people and for its agent, and each application for others.
    let applications = marked(served.running.directory().path()).into_iter().filter_map(name).count();
    assert!(doors.len() >= devices.len() + 2 + applications, "{applications} applications: {doors:?}");
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

fn configuration(directory: &TempDir, devices: &[(&str, u16)]) -> std::path::PathBuf {
    let at = |place: usize| format!("{:?}", format!("tcp://127.0.0.1:{}", devices[place].1));
    let text = format!(
        "[partition]\nname = \"doors\"\nkey = {KEY:?}\n[level1]\nsource = \"external\"\n\
         [[level1.processor]]\nname = \"calo\"\nat = {}\n[dfm]\n[sfi]\ncount = 1\n[sfo]\ncount = 1\n[ros]\ninput = \"links\"\n\
         [[source]]\nname = \"board\"\nat = {}\n[[host]]\nname = \"here\"\n",
        at(0),
        at(1)
    );
    let path = directory.join("doors.toml");
    fs::write(&path, text).unwrap();
    path
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

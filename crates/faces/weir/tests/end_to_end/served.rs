//! A `weir serve` under watch, and what is said to it: by `weir ctl`, and over HTTP by hand.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde_json::{Value, json};

use crate::running::{Ended, Job, Running, within_deadline};

/// A service that listens.
pub(crate) struct Served {
    pub(crate) running: Running,
    /// Such as `127.0.0.1:40000`.
    pub(crate) address: String,
    pub(crate) key: String,
}

/// What was answered over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Served {
    /// Starts it, and waits until it listens.
    pub(crate) fn start(job: Job) -> Self {
        let mut running = job.served().start();
        let (address, key) = until_listening(&mut running);
        Self { running, address, key }
    }

    /// Starts it at all addresses of this machine, where what is said is encrypted. It is asked at loopback, as commands of the same user
    /// ask it.
    pub(crate) fn start_encrypted(job: Job, partition: &str) -> Self {
        let mut running = job.served_at("0.0.0.0:0").start();
        running.until("somebody listens", |running| running.error_output().contains("open https://"));
        let text = fs::read_to_string(running.directory().join(format!("weir/{partition}.json"))).unwrap();
        let told: Value = serde_json::from_str(&text).unwrap();
        let [address, key] = ["address", "key"].map(|what| told[what].as_str().unwrap().to_owned());
        Self { running, address, key }
    }

    /// Starts it once more, and waits until that one listens.
    pub(crate) fn again(&mut self, further: &[&str]) {
        self.running.again(further);
        (self.address, self.key) = until_listening(&mut self.running);
    }

    /// The address that `weir serve` has printed.
    pub(crate) fn link(&self) -> String {
        format!("http://{}/#key={}", self.address, self.key)
    }

    /// `weir ctl`, as this person; what it printed.
    pub(crate) fn ctl(&self, operator: &str, arguments: &[&str]) -> String {
        let output = self.ctl_output(operator, arguments);
        let (said, error) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}{error}\n{}", self.running.error_output());
        said
    }

    /// `weir ctl`, which is refused; why.
    pub(crate) fn refused(&self, operator: &str, arguments: &[&str], status: i32) -> String {
        let output = self.ctl_output(operator, arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output.stdout));
        text(&output.stderr)
    }

    fn ctl_output(&self, operator: &str, arguments: &[&str]) -> Output {
        self.ctl_command(operator).args(arguments).stdin(Stdio::null()).output().unwrap()
    }

    /// `weir ctl` without its verb.
    pub(crate) fn ctl_command(&self, operator: &str) -> Command {
        let here = self.running.directory().path();
        let mut command = self.running.program();
        command.arg("ctl").current_dir(here).env("XDG_RUNTIME_DIR", here).env("WEIR_OPERATOR", operator);
        command
    }

    /// What `/api/status` says.
    pub(crate) fn status(&self) -> Value {
        self.get("status")
    }

    /// Waits for a status.
    pub(crate) fn until(&mut self, what: &str, mut condition: impl FnMut(&Value) -> bool) -> Value {
        let mut status = Value::Null;
        within_deadline(what, || {
            status = self.status();
            condition(&status)
        });
        status
    }

    /// Waits for a state.
    pub(crate) fn until_state(&mut self, state: &str) -> Value {
        self.until(state, |status| status["state"] == state)
    }

    /// What stands below `/api/`.
    pub(crate) fn get(&self, path: &str) -> Value {
        let answer = self.ask("GET", &format!("/api/{path}"), &[], "");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        serde_json::from_str(&answer.body).unwrap()
    }

    /// What somebody sends who has the key.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        let key = format!("Bearer {}", self.key);
        let headers = [("Content-Type", "application/json"), ("Authorization", &*key)];
        self.ask("POST", &format!("/api/{path}"), &headers, &body.to_string())
    }

    /// A request with these headers; `Host` is right unless it is among them.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let ask = || ask(&self.address, method, path, headers, body).expect("somebody answers");
        let Some(network) = self.running.network() else { return ask() };
        thread::scope(|scope| scope.spawn(|| enter(&network).map(|()| ask()).unwrap()).join().unwrap())
    }

    /// The file by which commands find it.
    pub(crate) fn whereabouts(&self) -> PathBuf {
        self.running.directory().join("weir/quickstart.json")
    }

    /// Waits for its end; nothing may be left.
    pub(crate) fn end(self) -> Ended {
        let whereabouts = self.whereabouts();
        let ended = self.running.end();
        assert!(!fs::exists(whereabouts).unwrap(), "nobody is told of a service that is gone");
        ended
    }
}

impl Answer {
    /// Why it was refused.
    pub(crate) fn error(&self) -> String {
        let value: Value = serde_json::from_str(&self.body).unwrap_or_else(|_| json!({ "error": self.body }));
        value["error"].as_str().unwrap_or_default().to_owned()
    }
}

/// Puts this thread into a network.
fn enter(network: &Path) -> io::Result<()> {
    let network = File::open(network)?;
    Ok(move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// A request to whoever listens at an address; `Host` is right unless it is among the headers. None if nobody answers.
pub(crate) fn ask(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Option<Answer> {
    let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    if !headers.iter().any(|(name, _)| *name == "Host") {
        request += &format!("Host: {address}\r\n");
    }
    headers.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all((request + "\r\n" + body).as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let head = head.to_lowercase();
    assert!(!head.contains("transfer-encoding: chunked"), "{head}");
    Some(Answer { status, head, body: body.to_owned() })
}

fn until_listening(running: &mut Running) -> (String, String) {
    let mut found = None;
    running.until("somebody listens", |running| {
        found = place(&running.error_output());
        found.is_some()
    });
    found.expect("waited for")
}

/// The address and the key in what `weir serve` printed.
fn place(printed: &str) -> Option<(String, String)> {
    let (_, place) = printed.split_once("open http://")?;
    let (address, key) = place.split_once("/#key=")?;
    Some((address.to_owned(), key.split_once(' ')?.0.to_owned()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

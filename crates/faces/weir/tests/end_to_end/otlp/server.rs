//! A collector that reads what it gets by the definition of the protocol.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testkit::TempDir;

use crate::certificates::certificate;
use crate::running::{Job, send, within_deadline};
use crate::served::ask;

/// A collector that may come and go at one address. Dropping it ends it.
pub(super) struct Collector {
    python: PathBuf,
    pub(super) address: String,
    directory: TempDir,
    child: Option<Child>,
}

impl Collector {
    /// One that does not run yet. Without its Python packages the test is skipped by name.
    pub(super) fn absent(test: &str) -> Option<Self> {
        let python = testkit::python(test)?;
        let has_them = Command::new(&python).args(["-c", "import opentelemetry.proto"]).stderr(Stdio::null()).status();
        if !has_them.unwrap().success() {
            testkit::skip(test, "no opentelemetry-proto: run `make python`");
            return None;
        }
        // One that returns has the same port; so it has a loopback address of its own.
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        let own = Ipv4Addr::new(127, 100 + high, middle, low);
        let address = TcpListener::bind((own, 0)).unwrap().local_addr().unwrap().to_string();
        Some(Self { python, address, directory: TempDir::new("collector"), child: None })
    }

    /// One that runs.
    pub(super) fn start(test: &str) -> Option<Self> {
        let mut collector = Self::absent(test)?;
        collector.come();
        Some(collector)
    }

    /// Starts it, and waits until it serves.
    pub(super) fn come(&mut self) {
        self.begin(&[]);
        within_deadline("the collector serves", || ask(&self.address, "GET", "/seen", &[], "").is_some());
    }

    /// Starts it behind a certificate.
    pub(super) fn come_encrypted(&mut self) -> PathBuf {
        let [certificate, key] = self.certificate("collector");
        self.begin(&[&certificate, &key]);
        within_deadline("the collector listens", || TcpStream::connect(&self.address).is_ok());
        certificate
    }

    pub(super) fn certificate(&self, of: &str) -> [PathBuf; 2] {
        certificate(self.directory.path(), self.address.split_once(':').unwrap().0, of)
    }

    fn begin(&mut self, arguments: &[&Path]) {
        assert!(self.child.is_none(), "it runs");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/end_to_end/otlp/collector.py");
        let said = File::options().create(true).append(true).open(self.directory.join("said")).unwrap();
        let mut command = Command::new(&self.python);
        command.arg(script).arg(&self.address).args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        self.child = Some(command.spawn().unwrap());
    }

    /// Kills it; what it has seen is forgotten.
    pub(super) fn go(&mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(super) fn signal(&self, signal: Signal) {
        send(self.child.as_ref().expect("it runs").id().cast_signed(), signal);
    }

    /// How it answers the next requests of a signal: status, headers, body.
    pub(super) fn answers(&self, signal: &str, moods: &Value) {
        let body = json!({ format!("/v1/{signal}"): moods }).to_string();
        assert_eq!(ask(&self.address, "POST", "/moods", &[], &body).unwrap().status, 200);
    }

    /// All that was exported, against no rule.
    pub(super) fn seen(&self) -> Value {
        let seen: Value = serde_json::from_str(&ask(&self.address, "GET", "/seen", &[], "").unwrap().body).unwrap();
        assert_eq!(seen["faults"], json!([]));
        seen
    }

    /// Texts of the messages, in the order of their numbers, and those numbers.
    pub(super) fn messages(&self) -> Vec<(u64, String)> {
        let seen = self.seen();
        let of = |log: &Value| {
            let number = log["attributes"]["weir.message.number"].as_u64().unwrap();
            (number, log["text"].as_str().unwrap().to_owned())
        };
        seen["logs"].as_array().unwrap().iter().map(of).collect()
    }

    /// The newest data point of a metric, of run control or of an application.
    pub(super) fn point(&self, instance: &str, name: &str, attributes: &Value) -> Option<Value> {
        let seen = self.seen();
        let is_it = |point: &&Value| {
            point["resource"]["service.instance.id"] == instance
                && point["name"] == name
                && point["attributes"] == *attributes
        };
        seen["points"].as_array().unwrap().iter().find(is_it).cloned()
    }

    /// A job that exports to it each second.
    pub(super) fn told_by(&self, job: Job) -> Job {
        job.set("control.otlp", &format!("http://{}", self.address)).set("control.otlp_interval", "1 s")
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.go();
        }
    }
}

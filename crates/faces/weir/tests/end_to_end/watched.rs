//! Each source is seen while a run goes on: by the API, as metrics, at a terminal and at the page.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use serde_json::Value;

use crate::page::chromium;
use crate::running::{Job, program};
use crate::served::Served;

#[test]
fn what_a_source_does_and_suffers_is_seen_while_the_run_goes_on() {
    let mut beam = Beam::start();
    beam.until("nobody is there", |sources| sources.iter().all(|source| source["state"] == "awaited"));
    beam.feed("tlu", &["--size", "40 B"]);
    // The leader is not told of the run as long as others have not come.
    beam.until("the leader is configured", |[tlu, ..]| tlu["state"] == "configured");
    beam.feed("telescope", &["--size", "3 kB", "--drift", "10", "--repeat-number", "2000"]);
    beam.feed("device", &["--no-number", "--double", "100"]);
    let [tlu, telescope, device] = beam.until("all send, and the slip is found", |sources| {
        let sends = |source: &Value| does_send(source) && source["fragments_hz"].as_f64() > Some(10.0);
        sources.iter().all(sends) && sources[1]["clock"]["slips"] == 1 && !sources[2]["clock"].is_null()
    });
    assert_eq!(["slipped_at", "shift"].map(|key| telescope["clock"][key].as_i64()), [Some(1999), Some(1)]);
    let drift = telescope["clock"]["drift_ppt"].as_i64().unwrap();
    assert!((drift - 10_000_000).abs() < 1_000_000, "{telescope}");
    assert!(telescope["bytes_per_s"].as_f64() > Some(30_000.0) && tlu["application"] == "ros-1", "{telescope} {tlu}");
    assert!(telescope["last_number"].as_u64() > Some(1999) && device["last_time_ns"].as_u64() > Some(0), "{device}");
    assert!(telescope["status"].as_str().unwrap().starts_with("event "), "{telescope}");
    let metrics = beam.served.ask("GET", "/metrics", &[], "").body;
    for line in ["weir_source_slips_total{NAME} 1", "weir_source_state{NAME,state=\"lost\"} 0"] {
        let name = "partition=\"test-beam\",application=\"ros-1\",source=\"telescope\"";
        let line = line.replace("NAME", name);
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }

    beam.signal("telescope", Signal::SIGSTOP);
    let silent = |source: &Value| source["fragments_hz"] == 0.0 && source["missing"].as_u64() > Some(0);
    beam.until("one has fallen silent", |[tlu, telescope, _]| silent(telescope) && !silent(tlu));
    beam.signal("telescope", Signal::SIGKILL);
    let [_, lost, _] = beam.until("it is lost", |[_, telescope, _]| telescope["state"] == "lost");
    assert!(lost["lost"] == 1 && lost["last_number"].as_u64() > Some(1999), "{lost}");
    assert_ne!(lost["status"], "", "why it was lost");
    let said = beam.served.ctl("ann", &["sources"]);
    let line = said.lines().find(|line| line.starts_with("telescope")).expect("a line for each source");
    for part in ["lost  ", "lost 1 ×", " missing", "slipped 1 ×, last at event 1999 (+1)"] {
        assert!(line.contains(part), "{part}: {said}");
    }
    let as_json: Value = serde_json::from_str(&beam.served.ctl("ann", &["sources", "--json"])).unwrap();
    assert_eq!(as_json[0]["name"], "tlu");

    beam.served.ctl("ann", &["stop"]);
    beam.served.until("the run is over", |status| status["last"]["number"] == 1);
    let over = beam.sources().expect("they stay");
    assert!(
        over.iter().all(|source| source["fragments_hz"] == 0.0 && source["fragments"].as_u64() > Some(0)),
        "{over:?}"
    );
    beam.end();
}

#[test]
fn people_see_each_source_at_the_page() {
    let name = "people_see_each_source_at_the_page";
    let (Some(python), Some(chromium)) = (testkit::python(name), chromium(name)) else { return };
    let mut beam = Beam::start();
    beam.feed("tlu", &["--size", "40 B"]);
    beam.feed("telescope", &["--drift", "10", "--repeat-number", "500"]);
    beam.feed("device", &["--no-number"]);
    beam.until("the slip is found", |[_, telescope, device]| {
        telescope["clock"]["slips"] == 1 && !device["clock"].is_null()
    });
    let directory = beam.served.running.directory().path().to_owned();
    let screenshots = std::env::var_os("WEIR_SCREENSHOTS").map_or_else(|| directory.join("screenshots"), PathBuf::from);
    std::fs::create_dir_all(&screenshots).unwrap();
    let telescope = beam.feeds.iter().find(|(name, _)| *name == "telescope").expect("a feed").1.0.id().to_string();
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/watched.py");
    let mut people = Command::new(python);
    people.arg(script).args([&beam.served.link().into(), &chromium, screenshots.as_os_str()]).arg(telescope);
    let seen = people.env("HOME", &directory).env("TMPDIR", &directory).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(seen.status.success(), "{}{}", text(&seen.stdout), text(&seen.stderr));
    beam.end();
}

/// On a busy machine it is held up now and then.
fn does_send(source: &Value) -> bool {
    source["state"] == "running" || source["state"] == "xoff"
}

/// The example of a test beam, served, in a run that waits for its sources.
struct Beam {
    served: Served,
    feeds: Vec<(&'static str, Feed)>,
}

impl Beam {
    fn start() -> Self {
        let served = Served::start(Job::example("test-beam").with(&["--await-sources"]));
        served.ctl("ann", &["boot"]);
        served.ctl("ann", &["start", "--duration", "1h"]);
        Self { served, feeds: Vec::new() }
    }

    fn feed(&mut self, name: &'static str, arguments: &[&str]) {
        let mut feed = Command::new(program());
        feed.args(["feed", &format!("shm:{name}"), "--beam", "1 kHz", "--rate", "1 kHz"]).args(arguments);
        feed.env("XDG_RUNTIME_DIR", self.served.running.directory().path());
        feed.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.feeds.push((name, Feed(feed.spawn().unwrap())));
    }

    fn signal(&self, name: &str, signal: Signal) {
        let feed = &self.feeds.iter().find(|(of, _)| *of == name).expect("a feed").1.0;
        nix::sys::signal::kill(Pid::from_raw(feed.id().cast_signed()), signal).unwrap();
    }

    /// What the API says of the three, once it has heard of them.
    fn sources(&self) -> Option<[Value; 3]> {
        let dataflow = self.served.get("dataflow");
        let sources = dataflow["sources"].as_array().expect("a list").clone();
        sources.try_into().ok()
    }

    fn until(&mut self, what: &str, condition: impl Fn(&[Value; 3]) -> bool) -> [Value; 3] {
        let mut found = None;
        crate::running::within_deadline(what, || {
            found = self.sources();
            found.as_ref().is_some_and(&condition)
        });
        found.expect("waited for")
    }

    fn end(self) {
        self.served.running.signal(Signal::SIGINT);
        self.served.end().expect(0);
        drop(self.feeds);
    }
}

/// A feed that ends with the test, whatever becomes of that.
struct Feed(Child);

impl Drop for Feed {
    fn drop(&mut self) {
        // It may have ended with the partition.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

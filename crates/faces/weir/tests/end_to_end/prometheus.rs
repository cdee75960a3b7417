//! Metrics of `weir serve`, as the real `prometheus` scrapes them.

use std::fs::{self, File};
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use testkit::TempDir;

use crate::children::{self, marked};
use crate::running::{Job, examples, send, within_deadline};
use crate::served::{Served, ask};

#[test]
fn prometheus_knows_the_state_the_rates_and_the_account_of_a_run() {
    let name = "prometheus_knows_the_state_the_rates_and_the_account_of_a_run";
    let (Some(prometheus), Some(promtool)) = (tool(name, "prometheus"), tool(name, "promtool")) else { return };
    let mut served = Served::start(Job::example("quickstart").patient().set("ros.count", "2"));
    is_right(&promtool, &metrics(&served));
    let server = Server::start(&prometheus, &format!("static_configs: [{{ targets: [{:?}] }}]", served.address));
    assert_eq!(server.until("weir_state == 1", |_| true)[0]["metric"]["state"], "absent");
    served.ctl("anna", &["boot"]);
    served.ctl("anna", &["start", "--duration", "1h"]);
    server.until("rate(weir_sfo_recorded_total[10s]) > 0", |_| true);
    server.until("sum(weir_in_hand{application=~\"ros-.*\"}) > 0", |_| true);
    assert_eq!(server.until("weir_run_number > 0", |_| true)[0]["value"][1], "1");
    is_right(&promtool, &metrics(&served));
    for expression in of_dashboard() {
        server.until(&format!("count({expression})"), |_| true);
    }
    served.ctl("anna", &["stop"]);
    let over = served.until_state("booted");
    let recorded = over["last"]["recorded"].as_u64().unwrap().to_string();
    server.until("sum(weir_sfo_recorded_total)", |value| value == recorded);
    assert_eq!(server.until("weir_state{state=\"booted\"} == 1", |_| true).len(), 1);
    // Between two runs nobody gives an order by which the loss would be noticed.
    send(served.running.child("sfi-1"), Signal::SIGKILL);
    let fault = server.until("ALERTS{alertname=\"WeirFault\", alertstate=\"firing\"}", |_| true);
    assert_eq!(fault[0]["metric"]["partition"], "quickstart");
    served.ctl("anna", &["boot"]);
    server.until("weir_state{state=\"booted\"} == 1", |_| true);
    drop(server);
    served.running.signal(Signal::SIGINT);
    served.end().expect(0);
}

/// Run control says where the agents are that it has launched, and each agent shows what its applications take.
#[test]
fn prometheus_discovers_the_agents_and_what_their_applications_take() {
    let name = "prometheus_discovers_the_agents_and_what_their_applications_take";
    let (Some(prometheus), Some(promtool)) = (tool(name, "prometheus"), tool(name, "promtool")) else { return };
    let hosts = "[{name=\"a\"}, {name=\"b\", data=\"127.0.0.2\", roles={sfi=1, ros=1}}]";
    let served = Served::start(Job::example("quickstart").patient().set("ros.count", "2").set("host", hosts));
    assert_eq!(served.get("targets"), json!([]));
    let url = format!("http://{}/api/targets", served.address);
    let discovery = format!("http_sd_configs: [{{ url: {url:?}, refresh_interval: 1s }}]");
    let server = Server::start(&prometheus, &discovery);
    served.ctl("anna", &["boot"]);
    let lives = server.until("weir_application_lives{host=\"b\"} == 1", |_| true);
    assert_eq!(lives.len(), 2, "{lives:?}");
    assert_eq!(lives[0]["metric"]["partition"], "quickstart");
    server.until("sum(weir_application_starts_total{host=\"a\"}) > 4", |_| true);
    server.until("weir_application_cpu_seconds_total{application=\"sfi-1\"} > 0", |_| true);
    server.until("min(weir_application_resident_bytes) > 1e6", |_| true);
    server.until("weir_agent_silence_seconds < 1", |_| true);
    for place in of_targets(&served) {
        is_right(&promtool, &text_at(&place));
        let other = ask(&place, "GET", "/metrics", &[("Host", "daq.example.org")], "").unwrap();
        assert_eq!((other.status, ask(&place, "GET", "/", &[], "").unwrap().status), (403, 404));
    }
    // What agents could not tell in time is counted by run control.
    let left_out: Vec<&str> = Vec::from_iter(
        metrics(&served)
            .lines()
            .filter(|line| line.starts_with("weir_agent_beats_left_out_total{"))
            .map(|line| if line.contains("host=\"b\"") { "b" } else { "a" }),
    );
    assert_eq!(left_out, ["a", "b"]);
    send(of_agent(&served, "sfi-1"), Signal::SIGKILL);
    server.until("weir_application_lives{application=\"sfi-1\"} == 0", |_| true);
    server.until("weir_host_state{host=\"b\", state=\"fault\"} == 1", |_| true);
    served.ctl("anna", &["boot"]);
    server.until("weir_application_starts_total{application=\"sfi-1\"}", |value| value == "2");
    served.ctl("anna", &["shutdown"]);
    assert_eq!(served.get("targets"), json!([]));
    drop(server);
    served.running.signal(Signal::SIGINT);
    served.end().expect(0);
}

/// The address of each agent.
fn of_targets(served: &Served) -> Vec<String> {
    let targets = served.get("targets");
    let all = targets.as_array().unwrap().iter().map(|target| target["targets"][0].as_str().unwrap().to_owned());
    let all: Vec<String> = all.collect();
    assert_eq!(all.len(), 2, "{targets}");
    all
}

/// The process of an application that an agent has started.
fn of_agent(served: &Served, application: &str) -> i32 {
    let processes = marked(served.running.directory().path());
    processes.into_iter().find(|pid| children::name(*pid).as_deref() == Some(application)).unwrap()
}

/// What the panels of the dashboard ask for, as Grafana would.
fn of_dashboard() -> Vec<String> {
    let text = fs::read_to_string(examples().join("monitoring/grafana.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let targets = dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let expressions: Vec<String> = targets
        .map(|target| target["expr"].as_str().unwrap().replace("$__rate_interval", "10s").replace("$partition", ".*"))
        .collect();
    assert!(expressions.len() > 10);
    expressions
}

/// A server that scrapes. Dropping it ends it.
struct Server {
    child: Child,
    address: String,
    _directory: TempDir,
}

impl Server {
    /// It finds what it scrapes by these lines of its configuration.
    fn start(prometheus: &Path, targets: &str) -> Self {
        let directory = TempDir::new("prometheus");
        let rules = examples().join("monitoring/alerts.yml").display().to_string();
        let configuration = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [{rules:?}]\n\
             scrape_configs:\n  - job_name: weir\n    {targets}\n"
        );
        fs::write(directory.join("prometheus.yml"), configuration).unwrap();
        // It cannot be told to take any free port and say which one; so it has a loopback address of its own.
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        let own = Ipv4Addr::new(127, 100 + high, middle, low);
        let address = TcpListener::bind((own, 0)).unwrap().local_addr().unwrap().to_string();
        let said = File::create(directory.join("said")).unwrap();
        let mut command = Command::new(prometheus);
        command.arg(format!("--web.listen-address={address}")).arg("--storage.tsdb.path=data");
        command.arg("--config.file=prometheus.yml").current_dir(directory.path());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).spawn().unwrap();
        Self { child, address, _directory: directory }
    }

    /// Waits until a query finds something whose first value is as it should be.
    fn until(&self, query: &str, is_right: impl Fn(&str) -> bool) -> Vec<Value> {
        let mut found = Vec::new();
        within_deadline(query, || {
            found = self.find(query).unwrap_or_default();
            found.first().is_some_and(|first| is_right(first["value"][1].as_str().unwrap_or_default()))
        });
        found
    }

    /// None while it begins.
    fn find(&self, query: &str) -> Option<Vec<Value>> {
        let bytes = query.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
        let answer = ask(&self.address, "GET", &format!("/api/v1/query?query={bytes}"), &[], "")?;
        let value: Value = serde_json::from_str(&answer.body).ok()?;
        value["data"]["result"].as_array().cloned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn metrics(served: &Served) -> String {
    text_at(&served.address)
}

fn text_at(address: &str) -> String {
    let answer = ask(address, "GET", "/metrics", &[], "").unwrap();
    assert!(answer.status == 200 && answer.head.contains("text/plain; version=0.0.4"), "{answer:?}");
    answer.body
}

fn is_right(promtool: &Path, metrics: &str) {
    let mut check = Command::new(promtool);
    let mut check = check.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    check.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let checked = check.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&checked.stderr).into_owned();
    // It would have units of seconds and bytes; ours are counts.
    assert!(checked.status.success() || checked.status.code() == Some(3), "{said}\n{metrics}");
    assert!(!said.contains("error while linting"), "{said}\n{metrics}");
}

/// A program of Prometheus; without it the test is skipped by name.
fn tool(test: &str, name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.is_file());
    if found.is_none() {
        testkit::skip(test, &format!("no {name} (on Debian: apt-get install prometheus)"));
    }
    found
}

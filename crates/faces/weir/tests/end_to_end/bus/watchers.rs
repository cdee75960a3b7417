//! Those who watch a partition: the same questions to each carrier.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use serde_json::Value;

use super::client::{Client, Published};

/// What a watcher has seen by now.
pub(super) trait Watcher {
    /// What is said when something is missing.
    fn name(&self) -> &'static str;
    /// Each status, the newest last.
    fn statuses(&self) -> Vec<Value>;
    /// Messages by number.
    fn messages(&self) -> BTreeMap<u64, Value>;
    /// Samples by number.
    fn samples(&self) -> BTreeMap<u64, Value>;
    /// The event of a sample.
    fn event(&self, sample: u64) -> Option<Vec<u8>>;
    /// What an application has counted, and for whom it waits.
    fn metrics(&self, application: &str) -> Option<Value>;
    /// The record of a run that has ended.
    fn record(&self, run: u64) -> Option<Value>;
}

/// Over NATS. All that is published is heard by a thread, until the server goes.
pub(super) struct OverNats(Arc<Mutex<Vec<Published>>>);

impl OverNats {
    pub(super) fn of(mut client: Client) -> Self {
        client.subscribe("weir.quickstart.>").unwrap();
        let heard: Arc<Mutex<Vec<Published>>> = Arc::default();
        let hears = Arc::clone(&heard);
        thread::spawn(move || {
            while let Ok(published) = client.next() {
                locked(&hears).push(published);
            }
        });
        Self(heard)
    }

    /// Whether something of this subject was published.
    pub(super) fn has_heard(&self, subject: &str) -> bool {
        locked(&self.0).iter().any(|published| published.subject == subject)
    }

    fn of_kind(&self, kind: &str) -> Vec<Value> {
        let heard = locked(&self.0);
        let of_kind = heard.iter().filter(|published| published.subject.rsplit('.').next() == Some(kind));
        of_kind.map(|published| serde_json::from_slice(&published.payload).unwrap()).collect()
    }
}

impl Watcher for OverNats {
    fn name(&self) -> &'static str {
        "NATS"
    }

    fn statuses(&self) -> Vec<Value> {
        self.of_kind("status")
    }

    fn messages(&self) -> BTreeMap<u64, Value> {
        by_number(self.of_kind("message"))
    }

    fn samples(&self) -> BTreeMap<u64, Value> {
        by_number(self.of_kind("sample"))
    }

    fn event(&self, sample: u64) -> Option<Vec<u8>> {
        let heard = locked(&self.0);
        let header = format!("Weir-Sample: {sample}\r\n");
        let events = heard.iter().filter(|published| published.subject.ends_with(".event"));
        let found = events.into_iter().find(|published| published.headers.contains(&header));
        found.map(|published| published.payload.clone())
    }

    fn metrics(&self, application: &str) -> Option<Value> {
        let newest = self.of_kind("metrics").into_iter().rev().find(|metrics| metrics["name"] == application);
        newest.filter(|metrics| !metrics["counts"].as_object().unwrap().is_empty())
    }

    fn record(&self, run: u64) -> Option<Value> {
        self.of_kind("record").into_iter().find(|record| record["run_number"] == run)
    }
}

/// Over HTTP, by requests and server-sent events.
pub(super) struct OverHttp {
    address: String,
    events: Arc<Mutex<Vec<(String, Value)>>>,
}

impl OverHttp {
    pub(super) fn of(address: &str) -> Self {
        let events: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
        for path in ["events", "samples/events"] {
            let (mut heard, hears) = (asked(address, path), Arc::clone(&events));
            thread::spawn(move || {
                let mut name = String::new();
                let mut line = String::new();
                while heard.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                    if let Some(event) = line.trim_end().strip_prefix("event: ") {
                        event.clone_into(&mut name);
                    } else if let Some(data) = line.trim_end().strip_prefix("data: ") {
                        locked(&hears).push((name.clone(), serde_json::from_str(data).unwrap()));
                    }
                    line.clear();
                }
            });
        }
        Self { address: address.to_owned(), events }
    }

    fn of_kind(&self, kind: &str) -> Vec<Value> {
        locked(&self.events).iter().filter(|(name, _)| name == kind).map(|(_, value)| value.clone()).collect()
    }

    fn get(&self, path: &str) -> Option<Vec<u8>> {
        let mut answer = asked(&self.address, path);
        let mut line = String::new();
        answer.read_line(&mut line).unwrap();
        let is_there = line.contains(" 200 ");
        while line != "\r\n" {
            line.clear();
            answer.read_line(&mut line).unwrap();
        }
        let mut body = Vec::new();
        answer.read_to_end(&mut body).unwrap();
        is_there.then_some(body)
    }

    fn json(&self, path: &str) -> Option<Value> {
        self.get(path).map(|body| serde_json::from_slice(&body).unwrap())
    }
}

impl Watcher for OverHttp {
    fn name(&self) -> &'static str {
        "HTTP"
    }

    fn statuses(&self) -> Vec<Value> {
        self.of_kind("status")
    }

    /// As the page does: what is kept, and what comes.
    fn messages(&self) -> BTreeMap<u64, Value> {
        let kept = self.json("messages").unwrap();
        by_number(kept.as_array().unwrap().iter().cloned().chain(self.of_kind("message")))
    }

    fn samples(&self) -> BTreeMap<u64, Value> {
        assert_eq!(self.of_kind("missed"), Vec::<Value>::new());
        by_number(self.of_kind("sample"))
    }

    fn event(&self, sample: u64) -> Option<Vec<u8>> {
        self.get(&format!("samples/{sample}/raw"))
    }

    fn metrics(&self, application: &str) -> Option<Value> {
        let dataflow = self.json("dataflow").unwrap();
        let stages = dataflow["stages"].as_array().unwrap().iter();
        let applications = stages.flat_map(|stage| stage["applications"].as_array().unwrap());
        let found = applications.into_iter().find(|found| found["name"] == application);
        found.filter(|metrics| !metrics["counts"].as_object().unwrap().is_empty()).cloned()
    }

    fn record(&self, run: u64) -> Option<Value> {
        self.json(&format!("runs/{run}")).filter(|record| !record["summary"].is_null())
    }
}

fn asked(address: &str, path: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET /api/{path} HTTP/1.1\r\nConnection: close\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    BufReader::new(stream)
}

fn by_number(values: impl IntoIterator<Item = Value>) -> BTreeMap<u64, Value> {
    values.into_iter().map(|value| (value["number"].as_u64().unwrap(), value)).collect()
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap()
}

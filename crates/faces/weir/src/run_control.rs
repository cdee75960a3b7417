//! Run control as `weir serve` offers it over HTTP, for commands of the same user.

use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use service::{Whereabouts, WhereaboutsError};
use ureq::http::Response;
use ureq::{Agent, Body, BodyReader};

use crate::commands::operator;

/// A service that was found.
pub(crate) struct RunControl {
    agent: Agent,
    address: SocketAddr,
    key: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unheard {
    #[error(transparent)]
    Whereabouts(#[from] WhereaboutsError),
    #[error("run control at {0} does not answer: {1}")]
    Http(SocketAddr, Box<ureq::Error>),
    #[error("run control at {0} does not speak as expected: {1}")]
    Answer(SocketAddr, io::Error),
    #[error("{}: {cause}", path.display())]
    File { path: PathBuf, cause: io::Error },
}

/// What the service answers: a value, or why it refuses.
pub(crate) type Answer = Result<Value, String>;

impl RunControl {
    /// The service of a partition, or the only one.
    pub(crate) fn find(partition: Option<&str>) -> Result<Self, Unheard> {
        let (address, key) = Whereabouts::find(partition)?;
        let agent = Agent::config_builder().http_status_as_error(false).timeout_connect(Some(CONNECT)).build().into();
        Ok(Self { agent, address, key })
    }

    /// What stands below `/api/`.
    pub(crate) fn get(&self, path: &str) -> Result<Answer, Unheard> {
        self.value(self.ask(path))
    }

    /// Does what needs the key, in the name of the operator.
    pub(crate) fn post(&self, path: &str, mut body: Value) -> Result<Answer, Unheard> {
        body["name"] = json!(operator());
        body["client"] = json!(format!("terminal of {}", operator()));
        let request = self.agent.post(self.url(path)).header("Authorization", format!("Bearer {}", self.key));
        self.value(request.content_type("application/json").send(body.to_string()))
    }

    /// Takes command over from whoever has it.
    pub(crate) fn take_over(&self) -> Result<Answer, Unheard> {
        self.post("command", json!({ "take_over": true }))
    }

    /// Each status and each message from now on.
    pub(crate) fn events(&self) -> Result<Events, Unheard> {
        let response = self.agent.get(self.url("events")).call().map_err(|error| self.http(error))?;
        Ok(Events { lines: BufReader::new(response.into_body().into_reader()), name: String::new() })
    }

    fn ask(&self, path: &str) -> Result<Response<Body>, ureq::Error> {
        self.agent.get(self.url(path)).config().timeout_global(Some(ANSWER)).build().call()
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/api/{path}", self.address)
    }

    fn http(&self, error: ureq::Error) -> Unheard {
        Unheard::Http(self.address, Box::new(error))
    }

    /// What stands below `/api/`, as bytes.
    pub(crate) fn bytes(&self, path: &str) -> Result<Result<Vec<u8>, String>, Unheard> {
        self.read(self.ask(path))
    }

    fn value(&self, response: Result<Response<Body>, ureq::Error>) -> Result<Answer, Unheard> {
        self.read(response)?
            .map(|bytes| self.json(&bytes))
            .map_or_else(|refused| Ok(Err(refused)), |value| value.map(Ok))
    }

    fn read(&self, response: Result<Response<Body>, ureq::Error>) -> Result<Result<Vec<u8>, String>, Unheard> {
        let response = response.map_err(|error| self.http(error))?;
        let (is_well, mut bytes) = (response.status().is_success(), Vec::new());
        let read = response.into_body().into_reader().take(ANSWER_MAX).read_to_end(&mut bytes);
        read.map_err(|error| Unheard::Answer(self.address, error))?;
        if is_well {
            return Ok(Ok(bytes));
        }
        Ok(Err(self.json(&bytes)?["error"].as_str().unwrap_or_default().to_owned()))
    }

    fn json(&self, bytes: &[u8]) -> Result<Value, Unheard> {
        serde_json::from_slice(bytes).map_err(|error| Unheard::Answer(self.address, error.into()))
    }
}

/// What happens at a service, until that ends.
pub(crate) struct Events {
    lines: BufReader<BodyReader<'static>>,
    name: String,
}

impl Iterator for Events {
    type Item = (String, Value);

    /// The name of an event and what it tells.
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut line = String::new();
            let read = self.lines.by_ref().take(LINE_MAX).read_line(&mut line).ok()?;
            let line = line.strip_suffix('\n').filter(|_| read > 0)?;
            if let Some(name) = line.strip_prefix("event: ") {
                name.clone_into(&mut self.name);
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some((self.name.clone(), serde_json::from_str(data).ok()?));
            }
        }
    }
}

const CONNECT: Duration = Duration::from_secs(5);
/// For what is there already and need not be waited for.
const ANSWER: Duration = Duration::from_secs(30);
/// More than a status of a large partition.
const LINE_MAX: u64 = 1 << 24;
/// More than an event can be.
const ANSWER_MAX: u64 = 4 << 30;

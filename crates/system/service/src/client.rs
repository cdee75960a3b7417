//! Run control as `weir serve` offers it over HTTP, for commands of the same user.

use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use ureq::http::Response;
use ureq::{Agent, Body};

use crate::authority::AuthorityError;
use crate::key::SessionKey;
use crate::whereabouts::{Whereabouts, WhereaboutsError};

/// A service that was found.
#[derive(Clone, Debug)]
pub struct RunControl {
    agent: Agent,
    address: SocketAddr,
    key: String,
    /// In whose name orders are given.
    operator: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum Unheard {
    #[error(transparent)]
    Whereabouts(#[from] WhereaboutsError),
    #[error(transparent)]
    Key(#[from] AuthorityError),
    #[error("run control at {0} does not answer: {1}")]
    Http(SocketAddr, Box<ureq::Error>),
    #[error("run control at {0} does not speak as expected: {1}")]
    Answer(SocketAddr, io::Error),
    #[error("{}: {cause}", path.display())]
    File { path: PathBuf, cause: io::Error },
}

/// What the service answers: a value, or why it refuses.
pub type Answer = Result<Value, String>;

impl RunControl {
    /// The service of a partition, or the only one, for this operator.
    ///
    /// # Errors
    /// None is found, or several are.
    pub fn find(partition: Option<&str>, operator: String) -> Result<Self, Unheard> {
        let (address, key) = Whereabouts::find(partition)?;
        let agent = Agent::config_builder().http_status_as_error(false).timeout_connect(Some(CONNECT)).build().into();
        Ok(Self { agent, address, key, operator })
    }

    /// The service at this address, for this operator who has its key.
    pub fn at(address: SocketAddr, key: &SessionKey, operator: String) -> Self {
        let agent = Agent::config_builder().http_status_as_error(false).timeout_connect(Some(CONNECT)).build().into();
        Self { agent, address, key: key.text().to_owned(), operator }
    }

    /// With the key that somebody gives.
    pub fn with_key(self, key: &SessionKey) -> Self {
        Self { key: key.text().to_owned(), ..self }
    }

    /// What stands below `/api/`.
    ///
    /// # Errors
    /// It does not answer, or not in JSON.
    pub fn get(&self, path: &str) -> Result<Answer, Unheard> {
        self.value(self.ask(path))
    }

    /// What stands below `/api/`, with a query.
    ///
    /// # Errors
    /// As [`RunControl::get`].
    pub fn find_in(&self, path: &str, query: &[(&str, String)]) -> Result<Answer, Unheard> {
        let query = query.iter().map(|(key, value)| (*key, value));
        let request = self.agent.get(self.url(path)).query_pairs(query);
        self.value(request.config().timeout_global(Some(ANSWER)).build().call())
    }

    /// Does what needs the key, in the name of the operator.
    ///
    /// # Errors
    /// As [`RunControl::get`].
    pub fn post(&self, path: &str, mut body: Value) -> Result<Answer, Unheard> {
        body["name"] = json!(self.operator);
        body["client"] = json!(format!("terminal of {}", self.operator));
        let request = self.agent.post(self.url(path)).header("Authorization", format!("Bearer {}", self.key));
        self.value(request.content_type("application/json").send(body.to_string()))
    }

    /// Takes command over from whoever has it.
    ///
    /// # Errors
    /// As [`RunControl::get`].
    pub fn take_over(&self) -> Result<Answer, Unheard> {
        self.post("command", json!({ "take_over": true }))
    }

    /// Each status and each message from now on.
    ///
    /// # Errors
    /// It does not answer.
    pub fn events(&self) -> Result<Events, Unheard> {
        Ok(Events { lines: BufReader::new(Box::new(self.stream("events")?)), name: String::new() })
    }

    /// What stands below `/api/` and goes on, as it comes.
    ///
    /// # Errors
    /// It does not answer.
    pub fn stream(&self, path: &str) -> Result<impl Read + Send + use<>, Unheard> {
        let response = self.agent.get(self.url(path)).call().map_err(|error| self.http(error))?;
        Ok(response.into_body().into_reader())
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
    ///
    /// # Errors
    /// As [`RunControl::get`].
    pub fn bytes(&self, path: &str) -> Result<Result<Vec<u8>, String>, Unheard> {
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
pub struct Events {
    lines: BufReader<Box<dyn Read + Send>>,
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

//! The desk over HTTP: status and orders as JSON, changes as server-sent events, and the page.

pub(crate) mod door;
mod forecast;
mod quality;
mod samples;
mod stamps;

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use agents::Present;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use catalogue::{CatalogueError, Difference, Entry, Quality, Record, differences, now};
use configuration::Stamps;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::{JoinSet, spawn_blocking};
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use tokio_stream::wrappers::{BroadcastStream, WatchStream};
use tokio_stream::{Stream, StreamExt};

use crate::answer::Refused;
use crate::carriers::Carriers;
use crate::dataflow::Dataflow;
use crate::desk::Desk;
use crate::identity::Identity;
use crate::key::SessionKey;
use crate::measuring::measured;
use crate::messages::{Message, Sought};
use crate::metrics;
use crate::operator::Operator;
use crate::order::Order;
use crate::pages;
use crate::status::Status;
use crate::trend::Sample;
use crate::whereabouts::{Whereabouts, WhereaboutsError};

/// Why nobody can be served.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum ServeError {
    #[error("{0} is no loopback address: what is said there has to be encrypted, by a certificate")]
    NotEncrypted(SocketAddr),
    #[error("nobody can listen on {address}: {cause}")]
    Listen { address: SocketAddr, cause: io::Error },
    #[error("the service has ended: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Whereabouts(#[from] WhereaboutsError),
}

/// What all handlers know.
struct Service {
    desk: Desk,
    key: SessionKey,
    carriers: Carriers,
    /// One at a time.
    simulates: Mutex<()>,
}

/// Serves a desk until the desk is left; port 0 takes a free one. With an identity all that is said there is encrypted, and it is served
/// at a loopback address too. Commands of the same user find it at loopback, and `listening` is told the address. The `carriers`
/// get what is observed.
///
/// # Errors
/// Nobody can listen there, commands cannot be told, or others could listen in.
pub fn serve(
    desk: &Desk,
    key: &SessionKey,
    address: SocketAddr,
    identity: Option<&Identity>,
    carriers: Carriers,
    listening: impl FnOnce(SocketAddr),
) -> Result<(), ServeError> {
    if identity.is_none() && !address.ip().is_loopback() {
        return Err(ServeError::NotEncrypted(address));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let served = runtime.block_on(async {
        let telling = carriers.tell(desk);
        let service = Arc::new(Service { desk: desk.clone(), key: key.clone(), carriers, simulates: Mutex::default() });
        let (listener, address) = listen(address).await?;
        let mut doors = JoinSet::new();
        let at_loopback = if let Some(identity) = identity {
            doors.spawn(door::welcome(listener, Some(identity.acceptor()), router(&service, Place::Encrypted)));
            let (listener, at_loopback) = listen(ANY_AT_LOOPBACK).await?;
            doors.spawn(door::welcome(listener, None, router(&service, Place::Plain(at_loopback))));
            at_loopback
        } else {
            doors.spawn(door::welcome(listener, None, router(&service, Place::Plain(address))));
            address
        };
        let _whereabouts = Whereabouts::say(&desk.configured().partition.partition.name, at_loopback, key)?;
        listening(address);
        let served = tokio::select! {
            Some(ended) = doors.join_next() => Err(ServeError::Io(io::Error::other(ended.expect_err("it welcomes for ever")))),
            () = desk.is_left() => Ok(()),
            () = look_again(desk) => Ok(()),
        };
        telling.farewell().await;
        served
    });
    // The resolver may still wait for the name of a carrier.
    runtime.shutdown_background();
    served
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |cause| ServeError::Listen { address, cause };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Notices what changes without an order, such as an application that is lost between two runs.
async fn look_again(desk: &Desk) {
    let mut interval = tokio::time::interval(LOOK_EVERY);
    loop {
        interval.tick().await;
        desk.refresh();
    }
}

fn router(service: &Arc<Service>, place: Place) -> Router {
    let commands = Router::new()
        .route("/api/orders/{verb}", post(order))
        .route("/api/command", post(take_command).delete(give_up_command))
        .route("/api/runs/{number}/remarks", post(remark))
        .merge(quality::commands())
        .merge(forecast::commands())
        .route_layer(middleware::from_fn(door::take_in))
        .route_layer(middleware::from_fn_with_state(Arc::clone(service), with_key));
    pages::router()
        .route("/api/status", get(status))
        .route("/api/events", get(events))
        .route("/api/messages", get(messages))
        .route("/api/configuration", get(configuration))
        .route("/api/schema", get(async || Json(configuration::schema())))
        .route("/api/dataflow", get(dataflow))
        .route("/api/trend", get(trend))
        .route("/metrics", get(metrics))
        .route("/api/targets", get(targets))
        .route("/api/runs", get(runs))
        .route("/api/runs/{number}", get(run))
        .route("/api/runs/{number}/difference/{other}", get(difference))
        .merge(samples::router())
        .merge(stamps::router())
        .merge(quality::router())
        .merge(commands)
        .fallback(|| async { Refused::Unknown("such page".to_owned()) })
        .method_not_allowed_fallback(|| async { (StatusCode::METHOD_NOT_ALLOWED, Json(json!({ "error": METHODS }))) })
        .layer(middleware::from_fn_with_state(place, from_here))
        .with_state(Arc::clone(service))
}

/// Where a request arrives.
#[derive(Clone, Copy)]
pub(crate) enum Place {
    /// At this loopback address.
    Plain(SocketAddr),
    /// The certificate has told the browser already whose place it is, by whatever name.
    Encrypted,
    /// Beyond loopback, where nothing is secret that is shown, by whatever name.
    Open,
}

/// Refuses pages of other places, also those whose name leads here.
pub(crate) async fn from_here(State(place): State<Place>, mut request: Request, next: Next) -> Response {
    let headers = request.headers();
    let found = match place {
        Place::Plain(address) => elsewhere(address, headers),
        Place::Encrypted => from_elsewhere(headers),
        Place::Open => None,
    };
    match found {
        Some(place) => Refused::Elsewhere(place).into_response(),
        None => {
            request.extensions_mut().insert(place);
            next.run(request).await
        }
    }
}

/// Where a request comes from, unless it speaks to the place it comes from.
fn from_elsewhere(headers: &HeaderMap) -> Option<String> {
    let host = headers.get(header::HOST).map_or(&b""[..], HeaderValue::as_bytes);
    let origin = headers.get(header::ORIGIN).map(HeaderValue::as_bytes)?;
    let is_ours = origin.strip_prefix(b"https://").is_some_and(|origin| origin == host);
    (!is_ours).then(|| String::from_utf8_lossy(origin).into_owned())
}

/// Where a request comes from, or whom it believes to speak to, unless that is this service.
fn elsewhere(address: SocketAddr, headers: &HeaderMap) -> Option<String> {
    let port = address.port();
    let ours = [format!("127.0.0.1:{port}"), format!("localhost:{port}"), address.to_string()];
    let said = |name| headers.get(name).map(|value: &HeaderValue| value.to_str().unwrap_or("?").to_owned());
    let host = said(header::HOST).filter(|host| !ours.contains(host));
    let is_ours =
        |origin: &str| origin.strip_prefix("http://").is_some_and(|origin| ours.iter().any(|ours| ours == origin));
    host.or_else(|| said(header::ORIGIN).filter(|origin| !is_ours(origin)))
}

async fn with_key(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let shown = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let key = shown.and_then(|shown| shown.strip_prefix("Bearer "));
    if key.is_some_and(|key| service.key.is(key)) { next.run(request).await } else { Refused::Key.into_response() }
}

async fn status(State(service): State<Arc<Service>>) -> Json<Status> {
    Json(service.desk.status())
}

/// The status and each change of it, and messages.
async fn events(State(service): State<Arc<Service>>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let status = WatchStream::new(service.desk.watch()).map(|status| event("status", &status));
    let messages = BroadcastStream::new(service.desk.listen()).map(|message| match message {
        Ok(message) => event("message", &message),
        Err(BroadcastStreamRecvError::Lagged(missed)) => event("missed", &missed),
    });
    Sse::new(status.merge(messages).map(Ok)).keep_alive(KeepAlive::default())
}

fn event(name: &str, value: &impl Serialize) -> Event {
    let text = serde_json::to_string(value).expect("numbers, strings and lists are JSON");
    Event::default().event(name).data(text)
}

#[derive(Deserialize)]
struct Behind {
    #[serde(default)]
    behind: u64,
}

/// Old ones come from a disk, for which nobody else waits.
async fn messages(
    State(service): State<Arc<Service>>,
    Query(sought): Query<Sought>,
) -> Result<Json<Vec<Message>>, Refused> {
    let found = spawn_blocking(move || service.desk.find_messages(&sought)).await;
    Ok(Json(found.map_err(|error| Refused::Failed(error.to_string()))??))
}

async fn configuration(State(service): State<Arc<Service>>) -> Json<Value> {
    let configured = service.desk.configured();
    let open = configured.partition.without_secrets();
    Json(json!({ "toml": open.to_toml(), "value": open, "warnings": configured.warnings }))
}

async fn dataflow(State(service): State<Arc<Service>>) -> Json<Dataflow> {
    Json(service.desk.dataflow())
}

async fn metrics(State(service): State<Arc<Service>>) -> impl IntoResponse {
    let samples = measured(&service.desk, &service.carriers.told());
    let partition = service.desk.status().partition;
    (metrics::CONTENT_TYPE, metrics::text(Some(&partition), &samples))
}

/// The agents that show metrics, as a Prometheus server discovers them.
async fn targets(State(service): State<Arc<Service>>) -> Json<Value> {
    let partition = service.desk.status().partition;
    let target = |agent: Present| {
        let labels = json!({ "partition": partition, "host": agent.host });
        agent.metrics.map(|address| json!({ "targets": [address.to_string()], "labels": labels }))
    };
    Json(service.desk.agents().into_iter().filter_map(target).collect())
}

async fn trend(State(service): State<Arc<Service>>) -> Json<Vec<Sample>> {
    Json(service.desk.trend())
}

/// Who sends an order: `name` is the person, `client` a word that the client has drawn.
#[derive(Deserialize)]
struct Sender {
    name: String,
    client: String,
    /// Of `/api/command`: take over from somebody else.
    #[serde(default)]
    take_over: bool,
    /// Of `start`: keys of `[run]`.
    #[serde(default)]
    run: Map<String, Value>,
    /// Of `start`: so many runs follow one another.
    #[serde(default = "one")]
    runs: u32,
    /// Of `stamps`: which ones.
    #[serde(default = "on")]
    stamps: Stamps,
    /// Of `kill`: the application, and the same again.
    #[serde(default)]
    application: String,
    #[serde(default)]
    confirm: String,
    /// Of `configure`: the file of the configuration, if it is another one.
    file: Option<PathBuf>,
}

fn one() -> u32 {
    1
}

fn on() -> Stamps {
    Stamps::On
}

impl Sender {
    fn operator(&self) -> Result<Operator, Refused> {
        if is_word(&self.name) && is_word(&self.client) {
            Ok(Operator { name: self.name.clone(), client: self.client.clone() })
        } else {
            let expected = format!("name and client of 1 to {WORD_MAX} characters");
            Err(Refused::Request { expected, found: format!("{:?} and {:?}", self.name, self.client) })
        }
    }

    /// The application that is to end, which was named twice.
    fn confirmed(&self) -> Result<String, Refused> {
        if !self.application.is_empty() && self.application == self.confirm {
            return Ok(self.application.clone());
        }
        let expected = "the same application as application and confirm".to_owned();
        Err(Refused::Request { expected, found: format!("{:?} and {:?}", self.application, self.confirm) })
    }
}

/// Whether people can read it as a name.
fn is_word(text: &str) -> bool {
    (1..=WORD_MAX).contains(&text.chars().count()) && !text.contains(char::is_control)
}

async fn order(
    State(service): State<Arc<Service>>,
    Extension(place): Extension<Place>,
    Path(verb): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, Refused> {
    let sender: Sender = body_of(&headers, &body)?;
    let order = match verb.as_str() {
        "boot" => Order::Boot,
        "start" => Order::Start { keys: sender.run.clone(), runs: sender.runs },
        "pause" => Order::Pause,
        "resume" => Order::Resume,
        "stop" => Order::Stop,
        "force" => Order::Force,
        "stamps" => Order::Stamps(sender.stamps),
        "shutdown" => Order::Shutdown,
        "kill" => Order::Kill { application: sender.confirmed()? },
        // A configuration names programs that run here.
        "configure" if matches!(place, Place::Plain(_)) => Order::Configure { file: sender.file.clone() },
        "configure" => {
            return Err(Refused::Elsewhere("another machine: `weir ctl configure` gives a configuration here".into()));
        }
        other => return Err(Refused::Unknown(format!("order {other:?}"))),
    };
    let said = service.desk.order(sender.operator()?, order).await?;
    Ok(Json(json!({ "said": said, "status": service.desk.status() })))
}

async fn take_command(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, Refused> {
    let sender: Sender = body_of(&headers, &body)?;
    service.desk.take_command(sender.operator()?, sender.take_over)?;
    Ok(Json(json!({ "status": service.desk.status() })))
}

async fn give_up_command(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Value>, Refused> {
    let sender: Sender = body_of(&headers, &body)?;
    service.desk.give_up_command(&sender.client);
    Ok(Json(json!({ "status": service.desk.status() })))
}

#[derive(Deserialize)]
struct Newest {
    #[serde(default = "fifty")]
    newest: u32,
}

fn fifty() -> u32 {
    50
}

async fn runs(State(service): State<Arc<Service>>, Query(query): Query<Newest>) -> Result<Json<Vec<Entry>>, Refused> {
    Ok(Json(service.desk.with_catalogue(|catalogue| catalogue.runs(query.newest.min(RUNS_MAX)))?))
}

async fn run(State(service): State<Arc<Service>>, Path(number): Path<String>) -> Result<Json<Record>, Refused> {
    let number = run_number(&number)?;
    Ok(Json(service.desk.with_catalogue(|catalogue| catalogue.run(number))?))
}

/// What differs between the configurations of two runs.
async fn difference(
    State(service): State<Arc<Service>>,
    Path((one, other)): Path<(String, String)>,
) -> Result<Json<Vec<Difference>>, Refused> {
    let (one, other) = (run_number(&one)?, run_number(&other)?);
    let configuration =
        |number| service.desk.with_catalogue(|catalogue| Ok::<_, Refused>(catalogue.run(number)?.configuration));
    let found = differences(&configuration(one)?, &configuration(other)?);
    Ok(Json(found.map_err(|error| Refused::Failed(format!("a configuration cannot be read: {error}")))?))
}

#[derive(Deserialize)]
struct Remarked {
    name: String,
    text: String,
    #[serde(default)]
    quality: Option<Quality>,
}

async fn remark(
    State(service): State<Arc<Service>>,
    Path(number): Path<String>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Record>, Refused> {
    let (number, remarked): (u32, Remarked) = (run_number(&number)?, body_of(&headers, &body)?);
    let Remarked { name, text, quality } = remarked;
    if text.trim().is_empty() && quality.is_none() {
        return Err(Refused::Request { expected: "words or a quality".into(), found: "neither".into() });
    }
    let record = service.desk.with_catalogue(|catalogue| {
        let entry = catalogue.run(number)?.entry;
        catalogue.remark(entry.id, &name, &text, quality, now())?;
        catalogue.run(number)
    })?;
    Ok(Json(record))
}

fn run_number(text: &str) -> Result<u32, Refused> {
    text.parse().map_err(|_| Refused::Request { expected: "a run number".into(), found: format!("{text:?}") })
}

/// What a request says in JSON. Forms of pages elsewhere cannot send that type.
fn body_of<T: for<'a> Deserialize<'a>>(headers: &HeaderMap, body: &str) -> Result<T, Refused> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("nothing");
    if !kind.starts_with("application/json") {
        return Err(Refused::Request { expected: "Content-Type: application/json".into(), found: kind.to_owned() });
    }
    let expected = || "a JSON object as in /api/openapi.json".to_owned();
    serde_json::from_str(body).map_err(|error| Refused::Request { expected: expected(), found: error.to_string() })
}

impl From<CatalogueError> for Refused {
    fn from(error: CatalogueError) -> Self {
        match error {
            CatalogueError::NoSuchRun { number } => Self::Unknown(format!("run {number}")),
            error => Self::Failed(error.to_string()),
        }
    }
}

const ANY_AT_LOOPBACK: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
const LOOK_EVERY: Duration = Duration::from_secs(1);
const WORD_MAX: usize = 64;
const RUNS_MAX: u32 = 10_000;
const METHODS: &str = "expected another method, see /api/openapi.json";

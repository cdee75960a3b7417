//! The metrics of a host over HTTP, as its agent shows them to a Prometheus server.

use std::io;
use std::net::{SocketAddr, TcpListener as Listening};
use std::sync::Arc;
use std::thread;

use agents::Inquirer;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use crate::host_metrics::samples;
use crate::metrics::{CONTENT_TYPE, text};
use crate::server::{Place, door, from_here};

/// Where the agent of a host shows metrics.
#[derive(Debug)]
pub struct Exposition {
    listener: Listening,
    address: SocketAddr,
}

impl Exposition {
    /// Listens at an address; port 0 takes a free one.
    ///
    /// # Errors
    /// Nobody can listen there.
    pub fn listen(address: SocketAddr) -> io::Result<Self> {
        let listener = Listening::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { address: listener.local_addr()?, listener })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers whoever asks with what the agent says, in a thread that goes on until the process ends.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn show(self, agent: Inquirer) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let Self { listener, address } = self;
        let listener = runtime.block_on(async { TcpListener::from_std(listener) })?;
        let serve =
            move || runtime.block_on(door::welcome_at_most(READERS_MAX, listener, None, router(address, agent)));
        thread::Builder::new().name("metrics".into()).stack_size(STACK_BYTES).spawn(serve).map(drop)
    }
}

fn router(address: SocketAddr, agent: Inquirer) -> Router {
    let place = if address.ip().is_loopback() { Place::Plain(address) } else { Place::Open };
    Router::new()
        .route("/metrics", get(metrics))
        .fallback(|| async { (StatusCode::NOT_FOUND, "expected /metrics\n") })
        .layer(middleware::from_fn_with_state(place, from_here))
        .with_state(Arc::new(agent))
}

/// The agent answers within a pass, and nobody else is served here.
async fn metrics(State(agent): State<Arc<Inquirer>>) -> Response {
    match agent.ask() {
        Some(host) => (CONTENT_TYPE, text(None, &samples(&host))).into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "the agent does not answer\n").into_response(),
    }
}

/// A few servers that scrape, and people who look.
const READERS_MAX: usize = 16;
/// A request and its answer need little.
const STACK_BYTES: usize = 256 << 10;

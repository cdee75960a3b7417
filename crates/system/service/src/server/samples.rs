//! Sampled events over HTTP.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderName, header};
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::get;
use serde::Serialize;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use tokio_stream::{Stream, StreamExt};

use super::{Behind, Service, event};
use crate::answer::Refused;
use crate::samples::{Kept, SampledEvent};
use crate::tree::Tree;

/// What is to be read of sampled events.
pub(super) fn router() -> Router<Arc<Service>> {
    Router::new()
        .route("/api/samples", get(list))
        .route("/api/samples/events", get(events))
        .route("/api/samples/{number}", get(one))
        .route("/api/samples/{number}/raw", get(raw))
        .route("/api/samples/{number}/file", get(file))
}

/// A sampled event with its parts.
#[derive(Serialize)]
struct Sheet {
    #[serde(flatten)]
    told: SampledEvent,
    tree: Tree,
}

async fn list(State(service): State<Arc<Service>>, Query(query): Query<Behind>) -> Json<Vec<SampledEvent>> {
    Json(service.desk.samples(query.behind))
}

/// Each sample as it comes. Who reads too slowly misses some, and is told how many.
async fn events(State(service): State<Arc<Service>>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let samples = BroadcastStream::new(service.desk.listen_to_samples()).map(|sample| match sample {
        Ok(sample) => event("sample", &sample),
        Err(BroadcastStreamRecvError::Lagged(missed)) => event("missed", &missed),
    });
    Sse::new(samples.map(Ok)).keep_alive(KeepAlive::default())
}

async fn one(State(service): State<Arc<Service>>, Path(number): Path<String>) -> Result<Json<Sheet>, Refused> {
    let Kept { told, event, readout } = kept(&service, &number)?;
    let configured = service.desk.configured();
    let menu = configured.partition.menu.as_ref();
    let chains: Vec<String> = menu.iter().flat_map(|menu| &menu.chain).map(|chain| chain.name.clone()).collect();
    Ok(Json(Sheet { told, tree: Tree::of(&event, &readout, &chains) }))
}

async fn raw(State(service): State<Arc<Service>>, Path(number): Path<String>) -> Result<impl IntoResponse, Refused> {
    let kept = kept(&service, &number)?;
    Ok((BYTES, Bytes::from_owner(kept.event)))
}

async fn file(State(service): State<Arc<Service>>, Path(number): Path<String>) -> Result<impl IntoResponse, Refused> {
    let kept = kept(&service, &number)?;
    let file = kept.file().map_err(|error| Refused::Failed(error.to_string()))?;
    let name = format!("attachment; filename=\"{}\"", kept.file_name());
    Ok((BYTES, [(header::CONTENT_DISPOSITION, name)], file))
}

fn kept(service: &Service, number: &str) -> Result<Kept, Refused> {
    let expected = || Refused::Request { expected: "the number of a sample".into(), found: format!("{number:?}") };
    let number: u64 = number.parse().map_err(|_| expected())?;
    let gone = || Refused::Unknown(format!("sample {number}, or no longer: the newest ones alone are kept"));
    service.desk.sample(number).ok_or_else(gone)
}

/// Bytes, whatever a browser makes of them.
const BYTES: [(HeaderName, &str); 2] =
    [(header::CONTENT_TYPE, "application/octet-stream"), (header::X_CONTENT_TYPE_OPTIONS, "nosniff")];

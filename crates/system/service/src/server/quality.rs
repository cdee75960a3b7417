//! Histograms over HTTP.

use std::sync::Arc;

use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::door::BODY_MAX;
use super::{Service, body_of, is_word};
use crate::answer::Refused;
use crate::quality::{Histogram, Quality};

/// What everybody may read.
pub(super) fn router() -> Router<Arc<Service>> {
    Router::new()
        .route("/api/histograms", get(heads))
        .route("/api/histograms/{name}", get(one))
        .route("/api/references", get(references))
}

/// What needs the key.
pub(super) fn commands() -> Router<Arc<Service>> {
    Router::new().route("/api/histograms", post(fill).layer(DefaultBodyLimit::max(BODY_MAX)))
}

async fn heads(State(service): State<Arc<Service>>) -> Response {
    service.desk.with_quality(|quality| Json(quality.heads()).into_response())
}

async fn one(State(service): State<Arc<Service>>, Path(name): Path<String>) -> Result<Response, Refused> {
    let found = service.desk.with_quality(|quality| quality.get(&name).map(|judged| Json(judged).into_response()));
    found.ok_or_else(|| Refused::Unknown(format!("histogram {name:?} in this run")))
}

/// The histograms of this run, as a file for `control.references`.
async fn references(State(service): State<Arc<Service>>) -> impl IntoResponse {
    let references = service.desk.with_quality(Quality::to_references);
    ([(header::CONTENT_DISPOSITION, "attachment; filename=\"references.json\"")], Json(references))
}

/// What a monitoring task has filled.
#[derive(Deserialize)]
struct Filled {
    name: String,
    /// The run that they are of; without it, the one that goes on, or the last one.
    run: Option<u32>,
    histograms: Vec<Histogram>,
}

async fn fill(State(service): State<Arc<Service>>, headers: HeaderMap, body: String) -> Result<Json<Value>, Refused> {
    let Filled { name, run, histograms } = body_of(&headers, &body)?;
    if !is_word(&name) {
        return Err(Refused::Request { expected: "a name of 1 to 64 characters".into(), found: format!("{name:?}") });
    }
    // Another run has begun meanwhile.
    if run.zip(service.desk.run_now()).is_some_and(|(of, now)| of != now) {
        return Ok(Json(json!({ "kept": 0 })));
    }
    let kept = histograms.len();
    service.desk.post(&name, histograms).map_err(|error| Refused::Settings(error.to_string()))?;
    Ok(Json(json!({ "kept": kept })))
}

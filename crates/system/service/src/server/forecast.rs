//! Checks and forecasts over HTTP.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;

use super::{Service, body_of};
use crate::answer::Refused;
use crate::forecast::{Checked, Forecast, check, forecast};

/// What needs the key.
pub(super) fn commands() -> Router<Arc<Service>> {
    Router::new().route("/api/check", post(checked)).route("/api/forecast", post(foreseen))
}

/// Keys to be changed, each as `key=value`.
#[derive(Deserialize)]
struct Changed {
    #[serde(default)]
    set: Vec<String>,
}

async fn checked(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Checked>, Refused> {
    let Changed { set } = body_of(&headers, &body)?;
    refuse_files(&set)?;
    Ok(Json(check(service.desk.configuration(), &set)?))
}

async fn foreseen(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Forecast>, Refused> {
    let Changed { set } = body_of(&headers, &body)?;
    refuse_files(&set)?;
    let Ok(_alone) = service.simulates.try_lock() else { return Err(Refused::Busy) };
    Ok(Json(forecast(service.desk.configuration(), &set).await?))
}

/// `@FILE` is for people at the machine.
fn refuse_files(set: &[String]) -> Result<(), Refused> {
    let file = set.iter().find(|change| change.starts_with('@'));
    file.map_or(Ok(()), |file| Err(Refused::Request { expected: "key=value".into(), found: file.clone() }))
}

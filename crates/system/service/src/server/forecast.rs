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
    refuse_what_is_not_for_pages(&set)?;
    let (_, checked) = check(&service.desk.configured().partition, &set)?;
    Ok(Json(checked))
}

async fn foreseen(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
    body: String,
) -> Result<Json<Forecast>, Refused> {
    let Changed { set } = body_of(&headers, &body)?;
    refuse_what_is_not_for_pages(&set)?;
    let Ok(_alone) = service.simulates.try_lock() else { return Err(Refused::Busy) };
    Ok(Json(forecast(&service.desk.configured().partition, &set).await?))
}

/// `@FILE` and secrets are for people at the machine.
fn refuse_what_is_not_for_pages(set: &[String]) -> Result<(), Refused> {
    let is_refused = |change: &&String| change.starts_with('@') || change.trim_start().starts_with("partition.key");
    let refused = set.iter().find(is_refused).map(|change| change.split('=').next().unwrap_or_default().to_owned());
    refused.map_or(Ok(()), |found| Err(Refused::Request { expected: "key=value, and no secret".into(), found }))
}

//! Time stamps of the applications: where they are.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use partition::StampFile;
use serde_json::{Value, json};

use super::Service;

pub(super) fn router() -> Router<Arc<Service>> {
    Router::new().route("/api/stamps", get(stamps))
}

async fn stamps(State(service): State<Arc<Service>>) -> Json<Value> {
    let stamping = service.desk.stamping();
    let file = |StampFile { application, host, file }: &StampFile| json!({ "application": application, "host": host, "file": file });
    let files: Vec<Value> = stamping.files.iter().map(file).collect();
    Json(json!({
        "stamps": stamping.stamps,
        "awaited": stamping.awaited,
        "files": files,
        "said": stamping.in_words(),
    }))
}

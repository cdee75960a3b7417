//! Why an order is not done.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use control::states::Illegal;
use partition::{NotKilled, StartError};
use serde_json::json;

use crate::status::not_now;

/// Why an order is not done.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error(
        "a key is missing or wrong: expected the header `Authorization: Bearer KEY` with the key that `weir serve` printed"
    )]
    Key,
    #[error("requests come from pages of this service alone, not from {0}")]
    Elsewhere(String),
    #[error("{0}")]
    Held(String),
    #[error("{}", not_now(*.0))]
    Illegal(#[from] Illegal),
    #[error("{0}")]
    Settings(String),
    #[error(transparent)]
    NotKilled(#[from] NotKilled),
    #[error("expected {expected}, found {found}")]
    Request { expected: String, found: String },
    #[error("there is no {0}")]
    Unknown(String),
    #[error("an order is being done: wait until it is")]
    Busy,
    #[error("run control ends")]
    Leaving,
    #[error("{0}")]
    Failed(String),
    /// With what has led to it.
    #[error(transparent)]
    Start(Box<StartError>),
}

impl From<StartError> for Refused {
    fn from(error: StartError) -> Self {
        match error {
            StartError::State(illegal) => Self::Illegal(illegal),
            error => Self::Start(Box::new(error)),
        }
    }
}

impl Refused {
    fn status(&self) -> StatusCode {
        match self {
            Self::Key => StatusCode::UNAUTHORIZED,
            Self::Elsewhere(_) => StatusCode::FORBIDDEN,
            Self::NotKilled(NotKilled::Unknown { .. }) => StatusCode::NOT_FOUND,
            Self::NotKilled(_) | Self::Held(_) | Self::Illegal(_) | Self::Busy | Self::Failed(_) | Self::Start(_) => {
                StatusCode::CONFLICT
            }
            Self::Settings(_) | Self::Request { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Unknown(_) => StatusCode::NOT_FOUND,
            Self::Leaving => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.status(), Json(json!({ "error": self.to_string() }))).into_response()
    }
}

//! Run control as a service: one partition, whose runs a page, programs and people command over HTTP.
//!
//! A [`Desk`] has the partition: it takes orders, keeps the [`Status`], the messages and the catalogue, and knows who commands. [`serve`]
//! offers the desk to others. The verbs that it takes are those of the state table (`control::states`).
#![forbid(unsafe_code)]

mod answer;
mod attribution;
mod authority;
mod between;
mod bus;
mod carriers;
mod client;
mod configured;
mod dataflow;
mod desk;
mod exposition;
mod forecast;
mod host_metrics;
#[cfg(any(feature = "nats", feature = "otlp"))]
mod hosts;
mod identity;
mod key;
mod measuring;
mod message_log;
mod messages;
mod metrics;
mod operator;
mod order;
mod otlp;
mod pages;
mod quality;
mod rates;
mod remedy;
mod samples;
mod secret_file;
mod server;
mod sources;
mod status;
mod tree;
mod trend;
mod whereabouts;

pub use authority::{Authority, AuthorityError};
pub use bus::{Bus, BusError, LoginError};
pub use carriers::{Carriers, CarriersError};
pub use client::{Answer, Events, RunControl, Unheard};
pub use configured::{Configured, Reader};
pub use dataflow::{ApplicationNow, Dataflow, Link, Stage, WaitNow};
pub use desk::{Desk, Leaving, Succession};
pub use exposition::Exposition;
pub use identity::{Identity, IdentityError};
pub use key::SessionKey;
pub use message_log::MessageLog;
pub use messages::{Message, Severity, Sought};
pub use order::Order;
pub use otlp::{Telemetry, TelemetryError};
pub use quality::{BadHistogram, BadReferences, Comparison, Histogram, References, Test};
pub use rates::Rates;
pub use samples::SampledEvent;
pub use secret_file::SecretFileError;
pub use server::{ServeError, serve};
pub use sources::SourceRates;
pub use status::{LastRun, RunStatus, Status};
pub use trend::Sample;
pub use whereabouts::{Whereabouts, WhereaboutsError};

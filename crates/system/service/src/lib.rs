//! Run control as a service: one partition, whose runs a page, programs and people command over HTTP.
//!
//! A [`Desk`] has the partition: it takes orders, keeps the [`Status`], the messages and the catalogue, and knows who commands. [`serve`]
//! offers the desk to others. The verbs that it takes are those of the state table (`control::states`).
#![forbid(unsafe_code)]

mod answer;
mod attribution;
mod bus;
mod carriers;
mod client;
mod dataflow;
mod desk;
mod forecast;
#[cfg(any(feature = "nats", feature = "otlp"))]
mod hosts;
mod identity;
mod key;
mod messages;
mod metrics;
mod operator;
mod order;
mod otlp;
mod pages;
mod quality;
mod rates;
mod samples;
mod secret_file;
mod server;
mod status;
mod tree;
mod trend;
mod whereabouts;

pub use bus::{Bus, BusError, LoginError};
pub use carriers::{Carriers, CarriersError};
pub use client::{Answer, Events, RunControl, Unheard};
pub use dataflow::{ApplicationNow, Dataflow, Link, Stage, WaitNow};
pub use desk::{Desk, Leaving, Succession};
pub use identity::{Identity, IdentityError};
pub use key::SessionKey;
pub use messages::{Message, Severity, Sought};
pub use order::Order;
pub use otlp::{Telemetry, TelemetryError};
pub use quality::{BadHistogram, BadReferences, Comparison, Histogram, References, Test};
pub use rates::Rates;
pub use samples::SampledEvent;
pub use secret_file::SecretFileError;
pub use server::{ServeError, serve};
pub use status::{LastRun, RunStatus, Status};
pub use trend::Sample;
pub use whereabouts::{Whereabouts, WhereaboutsError};

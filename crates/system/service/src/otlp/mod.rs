//! The OpenTelemetry collector: it gets metrics and messages by OTLP over HTTP, in JSON.
//!
//! Run control exports, as one more of those who watch its desk. What waits for the collector is what the desk keeps anyway, so nothing
//! grows while it is away. Commands and leases never go this way, so losing the collector touches no run.

#[cfg(feature = "otlp")]
mod answer;
#[cfg(feature = "otlp")]
mod collector;
#[cfg(feature = "otlp")]
mod encoding;
#[cfg(feature = "otlp")]
mod endpoint;
#[cfg(feature = "otlp")]
mod exporter;
#[cfg(feature = "otlp")]
mod headers;
#[cfg(feature = "otlp")]
mod lane;
#[cfg(feature = "otlp")]
mod snapshot;
mod traffic;

use core::time::Duration;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(not(feature = "otlp"))]
use configuration::Control;
use configuration::Partition;

use crate::bus::Bus;
use crate::desk::Desk;
use crate::metrics::ExportedNow;
use crate::secret_file::SecretFileError;
#[cfg(feature = "otlp")]
use endpoint::Endpoint;
use traffic::Traffic;

/// Where run control exports what is observed. Clones are the same exporter.
#[derive(Clone, Debug)]
pub struct Telemetry(Arc<Shared>);

#[derive(Debug)]
#[cfg_attr(not(feature = "otlp"), expect(dead_code, reason = "nobody connects"))]
struct Shared {
    /// Such as `http://collector:4318`.
    url: String,
    endpoint: Endpoint,
    /// Between two looks at the metrics.
    interval: Duration,
    traffic: Traffic,
}

/// Why a partition cannot have the collector that it asks for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum TelemetryError {
    #[error(
        "{url} is an OpenTelemetry collector, and this program was built without OTLP; build it with `cargo build --release -p weir --features otlp`, or leave the key out"
    )]
    NotBuilt { url: String },
    #[error("{url}: expected http:// or https://, a host, and a port where one wants it")]
    Url { url: String },
    #[error("control.otlp_certificate, {}: expected certificates in PEM, found {cause}", path.display())]
    Certificate { path: PathBuf, cause: String },
    #[error(
        "{url} is encrypted, and this machine knows no authorities; name a file of them in control.otlp_certificate"
    )]
    NoAuthority { url: String },
    #[error(transparent)]
    Headers(#[from] SecretFileError),
    #[error("control.otlp_headers, {}, line {number}: expected NAME: VALUE, and none that says how a request is to be read", path.display())]
    Header { path: PathBuf, number: u32 },
    #[error("{url}: TLS cannot be set up: {cause}")]
    Tls { url: String, cause: io::Error },
}

impl Telemetry {
    /// The collector of a partition, if it has one.
    ///
    /// # Errors
    /// The program was built without it, or nobody could vouch for the collector.
    pub fn of(partition: &Partition) -> Result<Option<Self>, TelemetryError> {
        let control = &partition.control;
        let Some(url) = control.otlp.clone() else { return Ok(None) };
        let endpoint = Endpoint::asked_for(&url, control)?;
        let interval = control.otlp_interval.map_or(INTERVAL, |interval| Duration::from_nanos(interval.ns()));
        Ok(Some(Self(Arc::new(Shared { url, endpoint, interval, traffic: Traffic::default() }))))
    }

    /// Exports what a desk has to tell, and what went to the bus, until the desk is left.
    #[cfg(feature = "otlp")]
    pub(crate) async fn tell(self, desk: Desk, bus: Option<Bus>) {
        exporter::Exporter::of(&self.0, &desk, bus).run().await;
    }

    /// There is no exporter without OTLP.
    #[cfg(not(feature = "otlp"))]
    pub(crate) async fn tell(self, _: Desk, _: Option<Bus>) {}

    /// What went there until now.
    pub(crate) fn traffic(&self) -> ExportedNow {
        self.0.traffic.now()
    }
}

/// There is none in a program that was built without OTLP.
#[cfg(not(feature = "otlp"))]
#[derive(Debug)]
enum Endpoint {}

#[cfg(not(feature = "otlp"))]
impl Endpoint {
    fn asked_for(url: &str, _: &Control) -> Result<Self, TelemetryError> {
        Err(TelemetryError::NotBuilt { url: url.to_owned() })
    }
}

/// As often as many servers scrape.
const INTERVAL: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_it_says_how_to_build_it() {
        let text = "partition.name = \"p\"\nros.count = 1\nsfi.count = 1\n";
        let of = |more: &[String]| Telemetry::of(&Partition::parse("p", text, more).unwrap());
        assert!(of(&[]).unwrap().is_none());
        match of(&["control.otlp=http://collector".to_owned()]) {
            Ok(telemetry) => assert!(cfg!(feature = "otlp") && telemetry.is_some_and(|it| !it.traffic().connected)),
            Err(error) => assert!(!cfg!(feature = "otlp") && error.to_string().contains("--features otlp"), "{error}"),
        }
    }
}

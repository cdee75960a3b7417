//! `[control]`: what run control keeps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Interval;

/// `[control]`: what run control keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Control {
    /// File of the run catalogue, relative to the working directory; it is made if it does not exist. A leading `~/` stands for the
    /// home folder. With it, the catalogue gives runs their numbers, and keeps their configurations, ends, accounts and files.
    pub catalogue: Option<String>,
    /// File of histograms that those of each run are compared with, as `/api/references` of `weir serve` gives it; relative to this
    /// file. One that differs by more than chance explains is an alarm.
    pub references: Option<String>,
    /// NATS server that `weir serve` tells all that is observed, such as `nats://daq-1:4222`; `tls://` encrypts. The program has to be
    /// built with it; losing the server touches no run.
    pub bus: Option<String>,
    /// File with the login of run control at the bus, one line `USER:PASSWORD`, which its owner alone can read; relative to this file.
    pub bus_login: Option<String>,
    /// OpenTelemetry collector that `weir serve` gives metrics and messages, by OTLP over HTTP, such as `http://collector:4318`;
    /// `https://` encrypts. The program has to be built with it; losing the collector touches no run.
    pub otlp: Option<String>,
    /// File in PEM with the authorities that sign the certificate of the collector, relative to this file. Without it those that the
    /// machine knows.
    pub otlp_certificate: Option<String>,
    /// How often the collector gets metrics; by default every 10 s. It gets messages at once.
    pub otlp_interval: Option<Interval>,
    /// File of HTTP headers that the collector wants, such as `Authorization: Bearer TOKEN`, one in a line, which its owner alone can read;
    /// relative to this file. So no secret stands in the configuration.
    pub otlp_headers: Option<String>,
    /// How requests to the collector are compressed; by default they are not.
    pub otlp_compression: Option<OtlpCompression>,
}

/// How requests to a collector are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OtlpCompression {
    /// As each collector takes it.
    Gzip,
}

impl Control {
    /// Whether nothing is said.
    pub(crate) fn keeps_nothing(&self) -> bool {
        *self == Self::default()
    }
}

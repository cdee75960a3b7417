//! The OpenTelemetry collector.

use super::Checker;
use super::bus::is_place;
use crate::units::Interval;

impl Checker<'_> {
    pub(super) fn collector(&mut self) {
        let control = &self.partition.control;
        let (certificate, interval) = (&control.otlp_certificate, &control.otlp_interval);
        match &control.otlp {
            Some(collector) if !is_collector(collector) => {
                let message = format!("expected a collector such as \"http://collector:4318\", found {collector:?}");
                self.problem(&["control.otlp"], message);
            }
            Some(collector) if certificate.is_some() && !collector.starts_with(ENCRYPTED) => {
                let message = format!("expected a collector behind {ENCRYPTED} in control.otlp, found {collector:?}");
                self.problem(&["control.otlp_certificate", "control.otlp"], message);
            }
            None => {
                let given = [
                    ("control.otlp_certificate", certificate.is_some()),
                    ("control.otlp_interval", interval.is_some()),
                    ("control.otlp_headers", control.otlp_headers.is_some()),
                    ("control.otlp_compression", control.otlp_compression.is_some()),
                ];
                if let Some((key, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
                    let message = "needs control.otlp, the collector, which is absent".to_owned();
                    self.problem(&[key, "control.otlp"], message);
                }
            }
            Some(_) => {}
        }
        let interval = self.partition.control.otlp_interval;
        if interval.is_some_and(|interval| interval < SHORTEST) {
            let message = format!("expected {SHORTEST} or more, found {}", interval.unwrap_or(SHORTEST));
            self.problem(&["control.otlp_interval"], message);
        }
    }
}

/// Whether this is a scheme, a host, a port where one wants it, and a path where one wants that.
fn is_collector(text: &str) -> bool {
    let Some(rest) = SCHEMES.iter().find_map(|scheme| text.strip_prefix(scheme)) else { return false };
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/%".contains(c);
    is_place(place) && path.chars().all(is_plain)
}

const SCHEMES: [&str; 2] = ["http://", ENCRYPTED];
const ENCRYPTED: &str = "https://";
/// Run control learns figures no faster.
const SHORTEST: Interval = Interval::from_ms(1000);

#[cfg(test)]
mod tests {
    use super::is_collector;

    #[test]
    fn a_collector_has_a_scheme_and_a_host() {
        for good in [
            "http://collector",
            "http://collector:4318",
            "https://otel.lab:4318/site/a",
            "http://[::1]:4318",
            "http://[::1]/",
        ] {
            assert!(is_collector(good), "{good}");
        }
        for bad in [
            "",
            "collector:4318",
            "grpc://collector:4317",
            "http://",
            "http:///v1",
            "http://a:0",
            "http://me:word@a",
            "http://a/b?c",
            "http://a/b#c",
            "http://a/b c",
        ] {
            assert!(!is_collector(bad), "{bad}");
        }
    }
}

//! What a collector says to what it was sent `[OTLP "OTLP/HTTP Response"]`.

use core::time::Duration;

use serde::{Deserialize, Deserializer};

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Taken, but for so many of its parts; perhaps with a word on that.
    Taken { rejected: u64, words: Option<String> },
    /// It is not to be sent again.
    Refused(String),
    /// It is to be sent again, perhaps after a time that the collector names.
    Later { after: Option<Duration>, why: String },
    /// There was no answer: it is to be sent again.
    Absent(String),
    /// Nothing was sent, since nobody who is trusted vouches for whoever is there: it is to be sent again.
    Untrusted(String),
}

impl Answer {
    /// By the status, `Retry-After` where there is one, and the body.
    pub(super) fn of(status: u16, retry_after: Option<&str>, body: &[u8]) -> Self {
        match status {
            200..=299 => Self::taken(body),
            429 | 502 | 503 | 504 => {
                // A date is not what the protocol speaks of.
                let after = retry_after.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
                Self::Later { after, why: with_reason(status, body) }
            }
            _ => Self::Refused(with_reason(status, body)),
        }
    }

    fn taken(body: &[u8]) -> Self {
        // Who answers 200 with something else has taken it all the same.
        let Taken { partial_success: PartialSuccess { rejected, error_message } } =
            serde_json::from_slice(body).unwrap_or_default();
        Self::Taken { rejected, words: Some(short(&error_message)).filter(|words| !words.is_empty()) }
    }
}

/// `ExportMetricsServiceResponse`, `ExportLogsServiceResponse`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Taken {
    partial_success: PartialSuccess,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PartialSuccess {
    #[serde(alias = "rejectedDataPoints", alias = "rejectedLogRecords", deserialize_with = "decimal")]
    rejected: u64,
    error_message: String,
}

/// A 64-bit number is a string, and may be a number.
fn decimal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Decimal {
        Number(u64),
        Text(String),
    }
    match Decimal::deserialize(deserializer)? {
        Decimal::Number(number) => Ok(number),
        Decimal::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
}

/// With the `Status` in the body, as far as it can be read.
fn with_reason(status: u16, body: &[u8]) -> String {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status {
        message: String,
    }
    let reason: Status = serde_json::from_slice(body).unwrap_or_default();
    let reason = if reason.message.is_empty() { String::from_utf8_lossy(body).into_owned() } else { reason.message };
    match short(&reason) {
        reason if reason.is_empty() => format!("HTTP {status}"),
        reason => format!("HTTP {status}, {reason}"),
    }
}

/// One line for people, whatever the collector has said.
fn short(text: &str) -> String {
    let line: String = text.lines().next().unwrap_or_default().trim().chars().filter(|c| !c.is_control()).collect();
    match line.char_indices().nth(WORDS_MAX) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line,
    }
}

const WORDS_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(rejected: u64, words: Option<&str>) -> Answer {
        Answer::Taken { rejected, words: words.map(str::to_owned) }
    }

    #[test]
    fn a_success_may_be_partial() {
        let of = |body: &str| Answer::of(200, None, body.as_bytes());
        for whole in ["{}", "", "{\"partialSuccess\":{}}", "thanks", "{\"partialSuccess\":{\"rejectedDataPoints\":-1}}"]
        {
            assert_eq!(of(whole), taken(0, None), "{whole}");
        }
        let points = "{\"partialSuccess\":{\"rejectedDataPoints\":\"3\",\"errorMessage\":\"too old\"}}";
        assert_eq!(of(points), taken(3, Some("too old")));
        assert_eq!(of("{\"partialSuccess\":{\"rejectedLogRecords\":2}}"), taken(2, None));
        assert_eq!(of("{\"partialSuccess\":{\"errorMessage\":\"use gzip\"}}"), taken(0, Some("use gzip")));
    }

    #[test]
    fn four_statuses_are_for_later_and_all_others_for_good() {
        for status in [429, 502, 503, 504] {
            let later = |after| Answer::Later { after, why: format!("HTTP {status}") };
            assert_eq!(Answer::of(status, Some("7"), b""), later(Some(Duration::from_secs(7))));
            for unknown in [None, Some("Wed, 21 Oct 2026 07:28:00 GMT"), Some("-1"), Some("")] {
                assert_eq!(Answer::of(status, unknown, b""), later(None));
            }
        }
        for status in [301, 400, 401, 404, 413, 500, 501] {
            assert!(matches!(Answer::of(status, Some("7"), b""), Answer::Refused(_)), "{status}");
        }
    }

    #[test]
    fn a_reason_is_one_short_line() {
        let of = |body: &str| match Answer::of(400, None, body.as_bytes()) {
            Answer::Refused(why) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(of("{\"code\":3,\"message\":\"no such field\"}"), "HTTP 400, no such field");
        assert_eq!(of("404 page not found\n"), "HTTP 400, 404 page not found");
        assert_eq!(of("\u{1b}[2Ja\nb"), "HTTP 400, [2Ja");
        assert_eq!(of(&"ä".repeat(100_000)).chars().count(), "HTTP 400,  …".chars().count() + WORDS_MAX);
    }
}

//! The stream of a partition: messages and run records, which the server keeps for those who come later.

use core::time::Duration;

use async_nats::{HeaderMap, Request, RequestErrorKind};
use bytes::Bytes;
use serde_json::{Value, json};

use super::nats::{Lost, Publisher, json_of};
use crate::desk::Desk;
use crate::messages::Severity;

impl Publisher<'_> {
    /// Gives the server what it keeps. It takes each name once, so a repetition does no harm.
    pub(super) async fn keep(&mut self, desk: &Desk, what: &str, name: String, payload: Bytes) -> Result<(), Lost> {
        let subject = self.subjects.of_run_control(what);
        if !self.keeps {
            return self.publish(desk, subject, None, payload).await;
        }
        if !self.fits(desk, &subject, payload.len()) {
            return Ok(());
        }
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", name);
        let request = Request::new().payload(payload).headers(headers);
        let refusal = self.ask(subject, request, "its stream is gone", "it does not acknowledge").await?;
        self.judge(desk, refusal);
        self.traffic().publish();
        Ok(())
    }

    /// A stream that is there already is as its server wants it.
    pub(super) async fn make_stream(&mut self, desk: &Desk) -> Result<(), Lost> {
        let (name, subjects) = (self.subjects.stream(), self.subjects.kept());
        let stream = json!({
            "name": name, "subjects": subjects, "storage": "file", "retention": "limits", "discard": "old",
            "max_bytes": KEPT_BYTES_MAX, "duplicate_window": TOLD_AGAIN_NS, "allow_direct": true,
        });
        let request = Request::new().payload(json_of(&stream));
        let subject = format!("$JS.API.STREAM.CREATE.{name}");
        // The server does not answer a request that it forbids.
        let silent = "it does not answer, or run control may not ask";
        self.keeps = true;
        let refusal = self.ask(subject, request, "it has no JetStream", silent).await?;
        self.judge(desk, refusal);
        Ok(())
    }

    /// Why JetStream refuses, if it does. Silence is a refusal, too: pings alone say that the server is gone.
    async fn ask(&self, subject: String, request: Request, nobody: &str, silent: &str) -> Result<Option<String>, Lost> {
        match self.client.send_request(subject, request.timeout(Some(ANSWERED_WITHIN))).await {
            Ok(answer) => Ok(refusal(&answer.payload)),
            Err(error) => match error.kind() {
                RequestErrorKind::NoResponders => Ok(Some(nobody.to_owned())),
                RequestErrorKind::TimedOut => Ok(Some(silent.to_owned())),
                _ => Err(Lost),
            },
        }
    }

    /// Whether the server goes on to keep what it gets.
    fn judge(&mut self, desk: &Desk, refusal: Option<String>) {
        let Some(why) = refusal else { return };
        self.keeps = false;
        let text = format!("the bus {} keeps no messages and run records: {why}", self.bus.server);
        desk.tell_all(Severity::Warning, text);
    }
}

/// Why JetStream has not done what was asked for.
fn refusal(answer: &[u8]) -> Option<String> {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let error = answer.get("error")?;
    let is_there = error["err_code"] == STREAM_IS_THERE;
    (!is_there).then(|| error["description"].as_str().unwrap_or("it does not say why").to_owned())
}

/// Longer than three pings, which say by then that the server is gone.
const ANSWERED_WITHIN: Duration = Duration::from_secs(20);
/// A million messages, or a few thousand run records.
const KEPT_BYTES_MAX: u64 = 256 << 20;
/// A lost acknowledgement makes run control repeat a message; the server knows its name for an hour.
const TOLD_AGAIN_NS: u64 = 3_600_000_000_000;
/// A stream of that name exists and is made otherwise.
const STREAM_IS_THERE: u64 = 10_058;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_server() {
        let refused = |text: &str| refusal(text.as_bytes());
        assert_eq!(refused(r#"{"stream":"weir-p","seq":1}"#), None);
        assert_eq!(refused(r#"{"error":{"err_code":10058,"description":"name already in use"}}"#), None);
        let full = r#"{"error":{"err_code":10047,"description":"insufficient storage"}}"#;
        assert_eq!(refused(full), Some("insufficient storage".to_owned()));
    }
}

//! `weir ctl messages`: what was said.

use std::fmt::Write as _;

use serde_json::Value;
use service::{RunControl, Unheard};
use terminal::{Exit, complain, on_standard_streams};

use crate::cli::{MessagesArgs, SoughtArgs};

/// Shows the messages that are wanted, and goes on with those that follow if it is to.
pub(super) fn messages(found: &RunControl, wanted: &MessagesArgs) -> Result<Exit, Unheard> {
    // What is said between the two is asked for when something else is said.
    let events = if wanted.follow { Some(found.events()?) } else { None };
    let mut behind = 0;
    let mut show = || -> Result<Exit, Unheard> {
        let said = match found.find_in("messages", &query(wanted, behind))? {
            Ok(said) => said,
            Err(refused) => {
                complain(&format!("weir: {refused}"));
                return Ok(Exit::Wrong);
            }
        };
        let said = said.as_array().map(Vec::as_slice).unwrap_or_default();
        behind = said.iter().filter_map(|message| message["number"].as_u64()).fold(behind, u64::max);
        Ok(on_standard_streams(|out, _| {
            for message in said {
                let text = if wanted.sought.json { message.to_string() } else { line(message) };
                writeln!(out, "{text}")?;
            }
            out.flush().map(|()| Exit::Well)
        }))
    };
    let mut exit = show()?;
    for (event, _) in events.into_iter().flatten() {
        if exit != Exit::Well {
            break;
        }
        if event == "message" {
            exit = show()?;
        }
    }
    Ok(exit)
}

fn query(wanted: &MessagesArgs, behind: u64) -> Vec<(&'static str, String)> {
    let MessagesArgs { sought: SoughtArgs { severity, application, words, newest, .. }, run, before, .. } = wanted;
    let mut query = vec![("behind", behind.to_string()), ("newest", newest.to_string())];
    query.extend(severity.map(|severity| ("severity", severity.name().to_owned())));
    query.extend(application.clone().map(|application| ("application", application)));
    query.extend(run.map(|run| ("run", run.to_string())));
    query.extend(words.clone().map(|words| ("words", words)));
    query.extend(before.map(|before| ("before", before.to_string())));
    query
}

/// `2026-11-29 12:00:00 warning run 7: sfi-1 is lost (3 times), because: …`.
pub(crate) fn line(message: &Value) -> String {
    let text = |key: &str| message[key].as_str().unwrap_or_default();
    let at = message["at_ms"].as_i64().and_then(chrono::DateTime::from_timestamp_millis).unwrap_or_default();
    let mut line = format!("{} {}", at.with_timezone(&chrono::Local).format("%Y-%m-%d %H:%M:%S"), text("severity"));
    // A line grows without errors.
    if let Some(run) = message["run"].as_u64() {
        let _ = write!(line, " run {run}");
    }
    let _ = write!(line, ": {}", text("text"));
    if let Some(again) = message["repeats"].as_u64().filter(|again| *again > 0) {
        let _ = write!(line, " ({} times)", again + 1);
    }
    for cause in message["causes"].as_array().into_iter().flatten() {
        let _ = write!(line, ", because: {}", cause.as_str().unwrap_or_default());
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::line;

    #[test]
    fn a_line_says_all_of_a_message() {
        let message = json!({ "at_ms": 0, "severity": "error", "run": 7, "text": "sfi-1 is lost", "repeats": 2, "causes": ["a", "b"] });
        assert_eq!(line(&message)[19..], *" error run 7: sfi-1 is lost (3 times), because: a, because: b");
        let message = json!({ "at_ms": 0, "severity": "notice", "run": null, "text": "nobody commands", "repeats": 0, "causes": [] });
        assert_eq!(line(&message)[19..], *" notice: nobody commands");
    }
}

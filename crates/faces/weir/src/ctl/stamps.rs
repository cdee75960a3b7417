//! `weir ctl stamps`: time stamps of the applications, and where they are.

use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};
use service::{RunControl, Unheard};
use terminal::{Exit, complain, on_standard_streams};

use crate::cli::StampsWanted;

/// Orders stamps, if that is wanted, and says what there is when all applications have answered.
pub(super) fn stamps(found: &RunControl, wanted: Option<StampsWanted>, take_over: bool) -> Result<Exit, Unheard> {
    let ordered = match wanted {
        Some(wanted) => order(found, wanted, take_over)?,
        None => Ok(Value::Null),
    };
    let ordered = match ordered {
        Ok(ordered) => ordered,
        Err(error) => return Ok(refused(&error)),
    };
    let there = match answered(found)? {
        Ok(there) => there,
        Err(error) => return Ok(refused(&error)),
    };
    let texts = there["said"].as_array().into_iter().flatten();
    let said = std::iter::once(&ordered["said"]).chain(texts).filter_map(Value::as_str);
    let awaited = there["awaited"].as_u64().unwrap_or_default();
    if awaited > 0 {
        complain(&format!("weir: {awaited} applications have not answered: `weir ctl stamps` asks again"));
    }
    let lines: Vec<&str> = said.collect();
    let text = if lines.is_empty() { "no time stamps were written".to_owned() } else { lines.join("\n") };
    Ok(on_standard_streams(|out, _| writeln!(out, "{text}").map(|()| Exit::Well)))
}

fn order(found: &RunControl, wanted: StampsWanted, take_over: bool) -> Result<service::Answer, Unheard> {
    if take_over && let Err(refused) = found.take_over()? {
        return Ok(Err(refused));
    }
    let stamps = match wanted {
        StampsWanted::On => "on",
        StampsWanted::Polls => "polls",
        StampsWanted::Off => "off",
    };
    found.post("orders/stamps", json!({ "stamps": stamps }))
}

/// What there is when nobody is awaited, or after a while.
fn answered(found: &RunControl) -> Result<service::Answer, Unheard> {
    for _ in 0..LOOKS_MAX {
        let there = found.get("stamps")?;
        if there.as_ref().map_or(true, |there| there["awaited"] == 0) {
            return Ok(there);
        }
        wait(BETWEEN_LOOKS);
    }
    found.get("stamps")
}

fn wait(duration: Duration) {
    // Nobody ever sends.
    let (_kept, never): (_, Receiver<()>) = sync_channel(0);
    let _ = never.recv_timeout(duration);
}

fn refused(error: &str) -> Exit {
    complain(&format!("weir: {error}"));
    Exit::Wrong
}

const LOOKS_MAX: usize = 100;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

//! `weir ctl`: orders to a partition that `weir serve` runs.

pub(crate) mod messages;
mod sample;
mod sources;
mod stamps;

use std::io::{self, IsTerminal};
use std::path::{PathBuf, absolute};

use serde_json::{Map, Value, json};
use service::{Answer, Authority, Events, RunControl, Unheard};
use terminal::{Exit, complain, on_standard_streams};

use crate::cli::{CtlArgs, CtlVerb};
use crate::commands::operator;

/// Does what an operator wants, and says what came of it.
pub(crate) fn ctl(args: &CtlArgs) -> Exit {
    match found(args).and_then(|found| told(args, &found)) {
        Ok(exit) => exit,
        Err(error) => {
            complain(&format!("weir: {error}"));
            Exit::NotStarted
        }
    }
}

fn found(args: &CtlArgs) -> Result<RunControl, Unheard> {
    let key = args.key_file.as_deref().map(Authority::key_in).transpose()?;
    match (args.address, key) {
        (Some(address), Some(key)) => Ok(RunControl::at(address, &key, operator())),
        (_, key) => {
            let found = RunControl::find(args.partition.as_deref(), operator())?;
            Ok(match key {
                Some(key) => found.with_key(&key),
                None => found,
            })
        }
    }
}

fn told(args: &CtlArgs, found: &RunControl) -> Result<Exit, Unheard> {
    let answer = match &args.verb {
        CtlVerb::Status { watch: true, json } => return Ok(watch(found.events()?, *json)),
        CtlVerb::Status { .. } => found.get("status")?,
        CtlVerb::Sources { .. } => found.get("dataflow")?,
        CtlVerb::Sample(wanted) => return sample::sample(found, wanted),
        CtlVerb::Messages(wanted) => return messages::messages(found, wanted),
        CtlVerb::Stamps { wanted } => return stamps::stamps(found, *wanted, args.take_over),
        verb => order(found, verb, args.take_over)?,
    };
    let value = match answer {
        Ok(value) => value,
        Err(error) => {
            complain(&format!("weir: {error}"));
            return Ok(Exit::Wrong);
        }
    };
    let text = match &args.verb {
        CtlVerb::Status { json: true, .. } => value.to_string(),
        CtlVerb::Status { .. } => line(&value),
        CtlVerb::Sources { json: true } => value["sources"].to_string(),
        CtlVerb::Sources { json: false } => sources::table(&value),
        _ => value["said"].as_str().unwrap_or_default().to_owned(),
    };
    Ok(on_standard_streams(|out, _| writeln!(out, "{text}").map(|()| Exit::Well)))
}

fn order(found: &RunControl, verb: &CtlVerb, take_over: bool) -> Result<Answer, Unheard> {
    if take_over && let Err(refused) = found.take_over()? {
        return Ok(Err(refused));
    }
    let content = match verb {
        CtlVerb::Start { runs, .. } => json!({ "run": keys(verb), "runs": runs }),
        CtlVerb::Kill { application, confirm } => {
            let confirm = confirm.clone().or_else(|| asked_for(application)).unwrap_or_default();
            json!({ "application": application, "confirm": confirm })
        }
        CtlVerb::Configure { file } => {
            // A path that leads nowhere must not stand for the file of the service.
            let path = |file: &PathBuf| absolute(file).unwrap_or_else(|_| file.clone());
            json!({ "file": file.as_ref().map(path) })
        }
        _ => json!({}),
    };
    found.post(&format!("orders/{}", name(verb)), content)
}

/// What somebody at a terminal types for the name of an application that is to end.
fn asked_for(application: &str) -> Option<String> {
    let mut typed = String::new();
    if !io::stdin().is_terminal() {
        return None;
    }
    eprint!("{application} ends at once, and what it has in hand is lost. Type its name: ");
    io::stdin().read_line(&mut typed).ok()?;
    Some(typed.trim().to_owned())
}

/// A line for each change, until run control ends or the reader leaves.
fn watch(events: Events, as_json: bool) -> Exit {
    on_standard_streams(|out, _| {
        for (event, value) in events {
            match event.as_str() {
                _ if as_json => writeln!(out, "{}", json!({ &event: value }))?,
                "status" => writeln!(out, "{}", line(&value))?,
                "message" => writeln!(out, "{}", value["text"].as_str().unwrap_or_default())?,
                _ => {}
            }
            out.flush()?;
        }
        Ok(Exit::Well)
    })
}

/// A status in one line.
fn line(status: &Value) -> String {
    let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
    let run = &status["run"];
    let figures = if run.is_null() {
        String::new()
    } else {
        let recorded = run["recorded"].as_u64().unwrap_or_default();
        format!(
            ", run {}, {:.1} s, {recorded} events recorded",
            run["number"],
            run["elapsed_s"].as_f64().unwrap_or_default()
        )
    };
    format!("{} {}{figures}: {}", text("partition"), text("state"), text("sentence"))
}

fn name(verb: &CtlVerb) -> &'static str {
    match verb {
        CtlVerb::Status { .. } => "status",
        CtlVerb::Sources { .. } => "sources",
        CtlVerb::Sample(_) => "sample",
        CtlVerb::Messages(_) => "messages",
        CtlVerb::Stamps { .. } => "stamps",
        CtlVerb::Boot => "boot",
        CtlVerb::Start { .. } => "start",
        CtlVerb::Pause => "pause",
        CtlVerb::Resume => "resume",
        CtlVerb::Stop => "stop",
        CtlVerb::Force => "force",
        CtlVerb::Shutdown => "shutdown",
        CtlVerb::Kill { .. } => "kill",
        CtlVerb::Configure { .. } => "configure",
    }
}

/// Keys of `[run]` that differ from the configuration.
fn keys(verb: &CtlVerb) -> Map<String, Value> {
    let CtlVerb::Start { limits, .. } = verb else { return Map::new() };
    let events = limits.events.map(|events| ("events".to_owned(), json!(events)));
    let duration = limits.duration.map(|duration| ("duration".to_owned(), json!(duration)));
    let size = limits.size.map(|size| ("size".to_owned(), json!(size)));
    events.into_iter().chain(duration).chain(size).collect()
}

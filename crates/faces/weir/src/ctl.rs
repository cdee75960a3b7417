//! `weir ctl`: orders to a partition that `weir serve` runs.

use std::io::{self, BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Map, Value, json};
use service::{Whereabouts, WhereaboutsError};
use terminal::{Exit, complain, on_standard_streams};
use ureq::Agent;

use crate::cli::{CtlArgs, CtlVerb};
use crate::commands::operator;

/// Does what an operator wants, and says what came of it.
pub(crate) fn ctl(args: &CtlArgs) -> Exit {
    match Whereabouts::find(args.partition.as_deref()).map_err(Unheard::from).and_then(|found| told(args, found)) {
        Ok(exit) => exit,
        Err(error) => {
            complain(&format!("weir: {error}"));
            Exit::NotStarted
        }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum Unheard {
    #[error(transparent)]
    Whereabouts(#[from] WhereaboutsError),
    #[error("run control at {0} does not answer: {1}")]
    Http(SocketAddr, Box<ureq::Error>),
    #[error("run control at {0} does not speak as expected: {1}")]
    Answer(SocketAddr, io::Error),
}

fn told(args: &CtlArgs, (address, key): (SocketAddr, String)) -> Result<Exit, Unheard> {
    let http = |error| Unheard::Http(address, Box::new(error));
    let answer = |error| Unheard::Answer(address, error);
    let agent: Agent =
        Agent::config_builder().http_status_as_error(false).timeout_connect(Some(CONNECT)).build().into();
    let url = |path: &str| format!("http://{address}/api/{path}");
    if let CtlVerb::Status { watch: true, json } = &args.verb {
        let body = agent.get(url("events")).call().map_err(http)?.into_body();
        return Ok(watch(body.into_reader(), *json));
    }
    let mut response = match &args.verb {
        CtlVerb::Status { .. } => agent.get(url("status")).call().map_err(http)?,
        verb => {
            let client = format!("terminal of {}", operator());
            let order = |path: &str, body: Value| {
                let request = agent.post(url(path)).header("Authorization", format!("Bearer {key}"));
                request.content_type("application/json").send(body.to_string()).map_err(http)
            };
            if args.take_over {
                order("command", json!({ "name": operator(), "client": client, "take_over": true }))?;
            }
            let runs = if let CtlVerb::Start { runs, .. } = verb { *runs } else { 1 };
            let body = json!({ "name": operator(), "client": client, "run": keys(verb), "runs": runs });
            order(&format!("orders/{}", name(verb)), body)?
        }
    };
    let (is_well, text) = (response.status().is_success(), response.body_mut().read_to_string().map_err(http)?);
    let value: Value = serde_json::from_str(&text).map_err(|error| answer(error.into()))?;
    if let Some(error) = value["error"].as_str().filter(|_| !is_well) {
        complain(&format!("weir: {error}"));
        return Ok(Exit::Wrong);
    }
    let text = match &args.verb {
        CtlVerb::Status { json: true, .. } => value.to_string(),
        CtlVerb::Status { .. } => line(&value),
        _ => value["said"].as_str().unwrap_or_default().to_owned(),
    };
    Ok(on_standard_streams(|out, _| writeln!(out, "{text}").map(|()| Exit::Well)))
}

/// A line for each change, until run control ends or the reader leaves.
fn watch(events: impl Read, as_json: bool) -> Exit {
    let mut event = String::new();
    on_standard_streams(|out, _| {
        for text in BufReader::new(events).lines() {
            // Run control has ended.
            let Ok(text) = text else { break };
            if let Some(name) = text.strip_prefix("event: ") {
                name.clone_into(&mut event);
            }
            let Some(data) = text.strip_prefix("data: ") else { continue };
            let value: Value = serde_json::from_str(data)?;
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
        CtlVerb::Boot => "boot",
        CtlVerb::Start { .. } => "start",
        CtlVerb::Pause => "pause",
        CtlVerb::Resume => "resume",
        CtlVerb::Stop => "stop",
        CtlVerb::Force => "force",
        CtlVerb::Shutdown => "shutdown",
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

const CONNECT: Duration = Duration::from_secs(5);

//! `weir ctl sample`: events that applications show.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde_json::Value;
use service::{RunControl, Unheard};
use storage::EventDump;
use terminal::{Exit, complain, on_standard_streams};

use crate::cli::SampleArgs;

/// Shows a sample, lists all, or writes one to a file.
pub(super) fn sample(found: &RunControl, wanted: &SampleArgs) -> Result<Exit, Unheard> {
    let listed = match found.get("samples")? {
        Ok(listed) => listed,
        Err(error) => return Ok(refused(&error)),
    };
    let is_wanted =
        |sample: &&Value| wanted.of.as_deref().is_none_or(|of| sample["application"] == of || sample["stage"] == of);
    let samples: Vec<&Value> = listed.as_array().into_iter().flatten().filter(is_wanted).collect();
    if wanted.list {
        return Ok(list(&samples, wanted.json));
    }
    let newest = || samples.last().and_then(|sample| sample["number"].as_u64());
    let Some(number) = wanted.number.or_else(newest) else {
        return Ok(refused(&none(&listed, wanted.of.as_deref())));
    };
    if let Some(path) = &wanted.output {
        return keep(found, number, path);
    }
    if wanted.json {
        let told = found.get(&format!("samples/{number}"))?;
        return Ok(told.map_or_else(|error| refused(&error), |tree| say(&tree.to_string())));
    }
    let event = found.bytes(&format!("samples/{number}/raw"))?;
    Ok(event.map_or_else(|error| refused(&error), |event| show(&listed, number, &event, wanted.data)))
}

/// Why there is none.
fn none(listed: &Value, of: Option<&str>) -> String {
    let shown = listed.as_array().into_iter().flatten().filter_map(|sample| sample["application"].as_str());
    let shown: BTreeSet<&str> = shown.collect();
    match of {
        Some(of) if !shown.is_empty() => {
            format!("no sample is of {of}: expected {}", shown.into_iter().collect::<Vec<_>>().join(", "))
        }
        _ => "no event was shown yet: samples come while a run goes on; sampling.stages says of whom, and none is longer \
              than sampling.size"
            .to_owned(),
    }
}

fn list(samples: &[&Value], as_json: bool) -> Exit {
    on_standard_streams(|out, _| {
        if as_json {
            writeln!(out, "{}", Value::from_iter(samples.iter().copied().cloned()))?;
        } else {
            samples.iter().try_for_each(|sample| writeln!(out, "{}", line(sample)))?;
        }
        Ok(Exit::Well)
    })
}

fn keep(found: &RunControl, number: u64, path: &Path) -> Result<Exit, Unheard> {
    let file = match found.bytes(&format!("samples/{number}/file"))? {
        Ok(file) => file,
        Err(error) => return Ok(refused(&error)),
    };
    let written = File::create_new(path).and_then(|mut output| output.write_all(&file));
    written.map_err(|cause| Unheard::File { path: path.to_owned(), cause })?;
    Ok(say(&format!("sample {number} is in {}", path.display())))
}

fn show(listed: &Value, number: u64, event: &[u8], data: bool) -> Exit {
    let sample = listed.as_array().into_iter().flatten().find(|sample| sample["number"] == number);
    let head = sample.map(line).unwrap_or_default();
    say(&format!("{head}\n{}", EventDump::of(event, data)))
}

fn line(sample: &Value) -> String {
    let text = |key: &str| sample[key].as_str().unwrap_or("?").to_owned();
    let missing = if sample["incomplete"] == true { ", incomplete" } else { "" };
    let Some(run) = sample["run"].as_u64() else { return text("application") };
    format!(
        "sample {} of {}: run {run}, event {}, {} bytes, trigger type {}{missing}",
        sample["number"],
        text("application"),
        sample["event"],
        sample["bytes"],
        sample["trigger_type"]
    )
}

fn say(text: &str) -> Exit {
    on_standard_streams(|out, _| writeln!(out, "{text}").map(|()| Exit::Well))
}

fn refused(error: &str) -> Exit {
    complain(&format!("weir: {error}"));
    Exit::Wrong
}

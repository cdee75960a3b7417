//! `weir runs`: what the run catalogue tells, and what people add to it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use catalogue::{Catalogue, CatalogueError, Entry, MessageStore, Record, Sought, differences, now};
use chrono::{DateTime, Local};
use configuration::Partition;
use partition::human::{elapsed, grouped, si};
use serde::Serialize;
use serde_json::{Value, json};
use terminal::Exit;

use crate::cli::{RunsArgs, RunsCommand, SoughtArgs};
use crate::ctl::messages::line;

/// Looks into a run catalogue, or adds to it.
///
/// # Errors
/// A stream cannot be written.
pub fn runs(args: &RunsArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let (mut catalogue, path) = match open(args) {
        Ok(opened) => opened,
        Err(message) => {
            writeln!(err, "weir: {message}")?;
            return Ok(Exit::Wrong);
        }
    };
    match told((&mut catalogue, &path), &args.command) {
        Ok(text) => {
            out.write_all(text.as_bytes())?;
            Ok(Exit::Well)
        }
        Err(error) => {
            writeln!(err, "weir: {error}")?;
            Ok(Exit::Wrong)
        }
    }
}

fn open(args: &RunsArgs) -> Result<(Catalogue, PathBuf), String> {
    let path = match (&args.catalogue, &args.config) {
        (Some(path), _) => path.clone(),
        (None, Some(config)) => {
            let partition = Partition::load(config, &[]).map_err(|error| error.to_string())?;
            let named = partition.control.catalogue.map(PathBuf::from);
            named.ok_or_else(|| format!("{} names no control.catalogue", config.display()))?
        }
        (None, None) => return Err("expected --catalogue FILE, or --config CONFIG with control.catalogue".to_owned()),
    };
    let catalogue = Catalogue::existing(&path).map_err(|error| error.to_string())?;
    Ok((catalogue, path))
}

fn told((catalogue, path): (&mut Catalogue, &Path), command: &RunsCommand) -> Result<String, CatalogueError> {
    Ok(match command {
        RunsCommand::Ls { newest, json } => {
            let mut runs = catalogue.runs(*newest)?;
            runs.reverse();
            if *json { pretty(&runs) } else { table(&runs) }
        }
        RunsCommand::Show { run, configuration: true, .. } => catalogue.run(*run)?.configuration,
        RunsCommand::Show { run, json: true, .. } => pretty(&catalogue.run(*run)?),
        RunsCommand::Show { run, .. } => sheet(&catalogue.run(*run)?),
        RunsCommand::Messages { run, sought } => messages(path, &catalogue.run(*run)?.entry, *run, sought)?,
        RunsCommand::Diff { first, second } => {
            let (first, second) = (catalogue.run(*first)?, catalogue.run(*second)?);
            difference(&first, &second)
        }
        RunsCommand::Comment { run, text, quality } => {
            let entry = catalogue.run(*run)?.entry;
            catalogue.remark(entry.id, &operator(), text, *quality, now())?;
            String::new()
        }
    })
}

fn messages(catalogue: &Path, entry: &Entry, run: u32, wanted: &SoughtArgs) -> Result<String, CatalogueError> {
    let SoughtArgs { severity, application, words, newest, json } = wanted.clone();
    let sought = Sought { run: Some(run), severity, application, words, newest: Some(newest), ..Sought::default() };
    // Without a service nothing is kept of what a run says.
    let store = MessageStore::existing(catalogue)?;
    let found = store.map_or(Ok(Vec::new()), |store| store.find(&entry.partition, &sought))?;
    let told = found.into_iter().map(|message| json!(message));
    Ok(told.map(|message| if json { message.to_string() } else { line(&message) } + "\n").collect())
}

/// Who sits at this terminal.
pub(crate) fn operator() -> String {
    let named = ["WEIR_OPERATOR", "USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    let user = || format!("user {}", rustix::process::getuid().as_raw());
    named.into_iter().find(|name| !name.is_empty()).unwrap_or_else(user)
}

fn table(runs: &[Entry]) -> String {
    let mut text = format!(
        "{:>8}  {:16}  {:12}  {:19}  {:>13}  {:11}  {:>14}  {:>9}  {:>7}\n",
        "run", "partition", "operator", "began", "took", "quality", "recorded", "size", "remarks"
    );
    for run in runs {
        text += format!(
            "{:>8}  {:16}  {:12}  {:19}  {:>13}  {:11}  {:>14}  {:>9}  {:>7}",
            number(run),
            run.partition,
            run.operator,
            local(run.began),
            took(run).unwrap_or_default(),
            quality(run),
            grouped(run.recorded),
            si(run.bytes as f64, "B"),
            run.remarks
        )
        .trim_end();
        text.push('\n');
    }
    text
}

fn sheet(record: &Record) -> String {
    let Record { entry, summary, files, remarks, .. } = record;
    let mut text = format!("run {} of {}, by {}\n", number(entry), entry.partition, entry.operator);
    let mut line = |name: &str, value: String| text += &format!("  {name:<10} {value}\n");
    line("began", local(entry.began));
    entry.ended.into_iter().for_each(|ended| line("ended", local(ended)));
    took(entry).into_iter().for_each(|took| line("took", took));
    line("quality", quality(entry));
    entry.reason.iter().for_each(|reason| line("reason", reason.clone()));
    if let Some(summary) = summary {
        let Value::Object(account) = json!(summary.accounting) else { unreachable!("an account is an object") };
        let counts = account.iter().filter_map(|(key, count)| Some((key, count.as_u64().filter(|count| *count > 0)?)));
        counts.for_each(|(key, count)| text += &format!("  {key:<20} {:>20}\n", grouped(count)));
    }
    for file in files {
        let size = si(file.bytes as f64, "B");
        text += &format!("  {}  {} events, {size}, adler32 {}\n", file.path, grouped(file.events), file.adler32);
    }
    for remark in remarks {
        let quality = remark.quality.map_or(String::new(), |quality| format!(" [{quality}]"));
        text += &format!("  {} {}{quality}: {}\n", local(remark.at), remark.author, remark.text);
    }
    text
}

fn difference(first: &Record, second: &Record) -> String {
    let found = match differences(&first.configuration, &second.configuration) {
        Ok(found) => found,
        Err(error) => return format!("a configuration cannot be read: {error}\n"),
    };
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let line = |d: &catalogue::Difference| format!("{}: {} -> {}\n", d.key, value(&d.first), value(&d.second));
    found.iter().map(line).collect()
}

fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("numbers, strings and lists are JSON") + "\n"
}

fn number(run: &Entry) -> String {
    run.number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

fn quality(run: &Entry) -> String {
    run.quality.map_or_else(|| "goes on".to_owned(), |quality| quality.to_string())
}

fn took(run: &Entry) -> Option<String> {
    Some(elapsed(run.ended?.duration_since(run.began).unwrap_or_default()))
}

fn local(time: SystemTime) -> String {
    DateTime::<Local>::from(time).format("%Y-%m-%d %H:%M:%S").to_string()
}

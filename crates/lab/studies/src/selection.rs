//! `weir study selection`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::chain::{Configuration, decide};
use super::decisions::{EventRow, event_rows};
use super::error::StudyError;
use super::report::{Report, SampleReport};
use super::sample::Sample;
use super::{decisions, figure, page, tally, text};
use crate::arguments::StudyArgs;
use partition::human::{grouped, time};
use terminal::Exit;
use terminal::on_standard_streams;

/// Sends samples through the chain and reports.
pub(super) fn study(args: &StudyArgs) -> Result<(), StudyError> {
    let configuration = args.config.clone().map_or(Configuration::Example, Configuration::File);
    let samples = samples(args, &configuration)?;
    prepare_output(args)?;
    for note in configuration.left_out(&args.overrides.set)? {
        terminal::complain(&format!("note: {note}"));
    }
    let mut studied = Vec::new();
    for path in samples {
        studied.push(study_sample(&path, &configuration, args)?);
    }
    let menu = studied.first().map_or_else(Vec::new, |studied| studied.menu.clone());
    let source =
        args.config.as_ref().map_or_else(|| "examples/trigger.toml".to_owned(), |path| path.display().to_string());
    let (samples, events) = studied.into_iter().map(|studied| (studied.report, studied.events)).unzip();
    let report = Report { format_version: 1, configuration: source, menu, samples };
    write_results(args, &report, events)?;
    on_standard_streams(|out, _| out.write_all(text::report(&report).as_bytes()).map(|()| Exit::Well));
    Ok(())
}

/// A sample that is done.
struct Studied {
    menu: Vec<String>,
    report: SampleReport,
    events: Vec<EventRow>,
}

fn study_sample(path: &Path, configuration: &Configuration, args: &StudyArgs) -> Result<Studied, StudyError> {
    let began = transport::clock::now();
    let sample = Sample::open(path)?;
    let partition = configuration.partition(&sample, &args.overrides.set)?;
    let chains = partition.menu.as_ref().map_or_else(Vec::new, |menu| menu.chain.clone());
    let menu = partition.resolve_menu()?.ok_or(StudyError::NoMenu)?;
    let accepted = sample.accepted().count();
    // A run without events does not begin.
    let decided = if accepted > 0 { decide(partition, &sample.name)? } else { Vec::new() };
    let took = transport::clock::now().since(began).as_secs_f64();
    let (accepted, all) = (grouped(accepted as u64), grouped(sample.rows.len() as u64));
    terminal::complain(&format!("{}: {accepted} of {all} events went through the chain; {}", sample.name, time(took)));
    Ok(Studied {
        menu: menu.names().map(str::to_owned).collect(),
        report: tally::report(&sample, &decided, &chains, &menu),
        events: if args.decisions.is_some() { event_rows(&sample, &decided) } else { Vec::new() },
    })
}

/// The samples that are asked for, else those of the configuration.
fn samples(args: &StudyArgs, configuration: &Configuration) -> Result<Vec<PathBuf>, StudyError> {
    let samples = match &args.sample[..] {
        [] => configuration.read(&args.overrides.set)?.input.files.into_iter().map(PathBuf::from).collect(),
        given => given.to_vec(),
    };
    if samples.is_empty() {
        return Err(StudyError::NoSamples);
    }
    if let (true, Configuration::Example, false) = (args.sample.is_empty(), configuration, samples[0].exists()) {
        return Err(StudyError::NoExample { path: samples[0].clone() });
    }
    let mut names = BTreeSet::new();
    for path in &samples {
        let name = path.file_stem().unwrap_or_default();
        if !names.insert(name) {
            return Err(StudyError::SameName { name: name.display().to_string() });
        }
    }
    Ok(samples)
}

/// So that a study is not made in vain.
fn prepare_output(args: &StudyArgs) -> Result<(), StudyError> {
    if let Some(directory) = &args.output {
        fs::create_dir_all(directory).map_err(|cause| StudyError::Output { path: directory.clone(), cause })?;
    }
    let Some(path) = &args.decisions else { return Ok(()) };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if parent.is_dir() && !path.is_dir() {
        return Ok(());
    }
    let cause = io::Error::other("expected a file in a directory that exists");
    Err(StudyError::Output { path: path.clone(), cause })
}

fn write_results(args: &StudyArgs, report: &Report, events: Vec<Vec<EventRow>>) -> Result<(), StudyError> {
    if let Some(path) = &args.decisions {
        let names = report.samples.iter().map(|sample| sample.sample.clone());
        let events: Vec<_> = names.zip(events).collect();
        decisions::write(path, &report.menu, &events)
            .map_err(|cause| StudyError::Output { path: path.clone(), cause })?;
    }
    let Some(directory) = &args.output else { return Ok(()) };
    let svg = figure::draw(report).map_err(StudyError::Figure)?;
    let json = serde_json::to_string_pretty(report).expect("a report is JSON") + "\n";
    let html = page::page(report, &svg);
    for (name, content) in [("selection.json", &json), ("selection.svg", &svg), ("selection.html", &html)] {
        let path = directory.join(name);
        fs::write(&path, content).map_err(|cause| StudyError::Output { path, cause })?;
    }
    Ok(())
}

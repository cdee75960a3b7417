//! What studies of networks have in common: tables on the output, files in a directory, numbers of a paper.

use std::borrow::Cow;
use std::fmt::Write;
use std::fs;

use serde_json::json;

use super::error::StudyError;
use super::markdown;
use super::plot::{self, Curve, Plot};
use crate::arguments::StudyArgs;
use partition::human::si;
use terminal::Exit;
use terminal::on_standard_streams;

/// A number of a paper, and what came of the same in virtual time.
pub(super) struct Given {
    pub(super) what: Cow<'static, str>,
    pub(super) place: &'static str,
    pub(super) unit: &'static str,
    pub(super) given: f64,
    pub(super) simulated: f64,
    pub(super) basis: Basis,
}

impl Given {
    /// A number that nothing was chosen by.
    pub(super) fn predicted(
        what: impl Into<Cow<'static, str>>,
        place: &'static str,
        unit: &'static str,
        given: f64,
        simulated: f64,
    ) -> Self {
        Self { what: what.into(), place, unit, given, simulated, basis: Basis::Predicted }
    }

    /// The same, but a constant or a definition was chosen by it.
    pub(super) fn fitted(self) -> Self {
        Self { basis: Basis::Fitted, ..self }
    }
}

/// What agreement with a number of a paper shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basis {
    /// A constant or a definition was chosen such that it agrees: no evidence.
    Fitted,
    /// Nothing was chosen by it.
    Predicted,
}

/// So that a study is not made in vain.
pub(super) fn prepare(args: &StudyArgs) -> Result<(), StudyError> {
    let Some(directory) = &args.output else { return Ok(()) };
    fs::create_dir_all(directory).map_err(|cause| StudyError::Output { path: directory.clone(), cause })
}

/// Writes the files that are asked for, and the report to the standard output.
pub(super) fn write(args: &StudyArgs, name: &str, report: &str, plots: &[Plot]) -> Result<(), StudyError> {
    if let Some(directory) = &args.output {
        let svg = plot::draw(plots).map_err(StudyError::Figure)?;
        let json = serde_json::to_string_pretty(&data(name, plots)).expect("numbers are JSON") + "\n";
        let html = markdown::page(&format!("weir study {name}"), &svg, report);
        for (extension, content) in [("json", &json), ("svg", &svg), ("html", &html)] {
            let path = directory.join(name).with_extension(extension);
            fs::write(&path, content).map_err(|cause| StudyError::Output { path, cause })?;
        }
    }
    on_standard_streams(|out, _| out.write_all(report.as_bytes()).map(|()| Exit::Well));
    Ok(())
}

/// The table of numbers, and why they differ.
pub(super) fn write_given(text: &mut String, paper: &str, numbers: &[Given], differences: &[&str]) -> std::fmt::Result {
    writeln!(text, "\n## Numbers that the text of {paper} gives\n")?;
    writeln!(text, "| what | where | basis | given | simulated | ratio |\n|---|---|---|---:|---:|---:|")?;
    for Given { what, place, unit, given, simulated, basis } in numbers {
        let ratio = simulated / given;
        let [given, simulated] = [given, simulated].map(|value| number(*value, unit));
        let basis = match basis {
            Basis::Fitted => "fitted",
            Basis::Predicted => "predicted",
        };
        writeln!(text, "| {what} | {place} | {basis} | {given} | {simulated} | {ratio:.2} |")?;
    }
    differences.iter().try_for_each(|line| writeln!(text, "\n{line}"))
}

/// The megabytes of a paper are left as they are.
fn number(value: f64, unit: &str) -> String {
    if unit.starts_with('M') {
        return format!("{value:.1} {unit}");
    }
    si(value, unit).trim_end().to_owned()
}

fn data(name: &str, plots: &[Plot]) -> serde_json::Value {
    let curve = |curve: &Curve| json!({"name": curve.name, "points": curve.points});
    let plot = |plot: &Plot| {
        let curves: Vec<_> = plot.curves.iter().map(curve).collect();
        json!({"title": plot.title, "x": plot.x.label, "y": plot.y.label, "curves": curves})
    };
    json!({"study": name, "figures": plots.iter().map(plot).collect::<Vec<_>>()})
}

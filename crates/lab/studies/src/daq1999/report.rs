//! All figures and runs in words.

use std::fmt::Write;

use super::figure::{Conclusion, Figure, Row};
use super::live::Ran;

/// What was measured, and on what.
pub(super) struct Subject<'a> {
    pub(super) machine: &'a str,
    /// What is to be known of other work.
    pub(super) others: Option<String>,
    pub(super) configuration: &'a str,
    pub(super) idle: &'static str,
    pub(super) cores: usize,
}

/// In Markdown.
pub(super) fn report(subject: &Subject<'_>, runs: &[Ran], figures: &[Figure], whole: &Conclusion) -> String {
    let mut text = String::new();
    write_report(&mut text, subject, runs, figures, whole).expect("a string takes all");
    text
}

fn write_report(
    text: &mut String,
    subject: &Subject<'_>,
    runs: &[Ran],
    figures: &[Figure],
    whole: &Conclusion,
) -> std::fmt::Result {
    let Subject { machine, others, configuration, idle, cores } = subject;
    writeln!(text, "# The read-out crate and the sub-farm crate of DAQ1999, traced\n\nMeasured on {machine}.")?;
    writeln!(
        text,
        "\nEach number is from the time stamps of runs of `{configuration}` with other keys, or of this program. In the paper each IOM has a \
         board of its own. Here processes wait by `{idle}` and share {cores} cores: the mean and 99.9 % hold what others had of these. Parts \
         and totals leave out functions that took more than 500 µs."
    )?;
    if let Some(others) = others {
        writeln!(text, "\n{others}")?;
    }
    write_runs(text, runs)?;
    figures.iter().try_for_each(|figure| write_figure(text, figure))?;
    writeln!(text, "\n## Whether the conclusions of DAQ1999 hold here\n")?;
    writeln!(text, "| figure | conclusion | holds | because |\n|---|---|---|---|")?;
    for figure in figures {
        write_conclusion(text, &format!("Fig. {}", figure.number), &figure.conclusion)?;
    }
    write_conclusion(text, "§6", whole)?;
    writeln!(text, "\n{FIGURE_1}")
}

fn write_runs(text: &mut String, runs: &[Ran]) -> std::fmt::Result {
    writeln!(text, "\n## Runs\n")?;
    writeln!(
        text,
        "| run | processes | level 1 | level 1, per second | built | residual | cores used | stamps read | overwritten |"
    )?;
    writeln!(text, "|---|---:|---:|---:|---:|---:|---:|---:|---:|")?;
    for ran in runs {
        writeln!(
            text,
            "| {} | {} | {} | {:.0} | {} | {} | {:.2} | {} | {} |",
            ran.name,
            ran.processes,
            ran.events,
            ran.events as f64 / ran.seconds.max(1e-9),
            ran.built,
            ran.residual,
            ran.cores_used,
            ran.stamps,
            ran.overwritten
        )?;
    }
    Ok(())
}

fn write_figure(text: &mut String, figure: &Figure) -> std::fmt::Result {
    let titles: Vec<&str> = figure.plots.iter().map(|plot| plot.title).collect();
    writeln!(text, "\n## {}\n\n{}\n", titles.join("; "), figure.about)?;
    writeln!(text, "| what | paper | here, median | mean | 99.9 % | times |\n|---|---:|---:|---:|---:|---:|")?;
    for Row { what, given, here: [median, mean, tail, count] } in &figure.rows {
        writeln!(text, "| {what} | {given} | {median} | {mean} | {tail} | {count} |")?;
    }
    writeln!(text, "\n{}", figure.conclusion.sentence())
}

fn write_conclusion(text: &mut String, of: &str, conclusion: &Conclusion) -> std::fmt::Result {
    let Conclusion { of_the_paper, holds, because } = conclusion;
    let holds = holds.map_or("–", |holds| if holds { "yes" } else { "no" });
    writeln!(text, "| {of} | {of_the_paper} | {holds} | {because} |")
}

impl Conclusion {
    fn sentence(&self) -> String {
        let Self { of_the_paper, holds, because } = self;
        let verdict = match holds {
            Some(true) => "This holds here",
            Some(false) => "This does not hold here",
            None => "Here",
        };
        format!("The paper: {of_the_paper} {verdict}: {because}.")
    }
}

const FIGURE_1: &str = "Fig. 1 of the paper shows what a crate is made of, and has nothing to measure.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conclusion_is_a_sentence_that_says_whether_it_holds() {
        let conclusion = |holds| Conclusion { of_the_paper: "All is well.", holds, because: "so it is".into() };
        assert_eq!(conclusion(Some(true)).sentence(), "The paper: All is well. This holds here: so it is.");
        assert_eq!(conclusion(Some(false)).sentence(), "The paper: All is well. This does not hold here: so it is.");
        assert_eq!(conclusion(None).sentence(), "The paper: All is well. Here: so it is.");
    }
}

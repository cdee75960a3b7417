//! The page of a study: figure and tables in one file that needs no other.

use std::fmt::Write;

use super::report::{Report, SampleReport};
use super::text::{RATES_NOTE, about, efficiency_line, factor, notes, rate, request_lines};
use partition::human::grouped;

/// The page around the figure.
pub(super) fn page(report: &Report, svg: &str) -> String {
    let mut body = String::new();
    overview(&mut body, &report.samples).expect("a string takes all");
    for sample in &report.samples {
        section(&mut body, sample).expect("a string takes all");
    }
    let configuration = escape(&report.configuration);
    let note = RATES_NOTE.replace('\n', " ");
    format!(
        r#"<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>weir study selection</title>
<style>{STYLE}</style>
</head>
<body>
<h1>Selection of simulated collisions</h1>
<p>Every event that level 1 accepted went once through level 2, event building and the event filter
of <code>{configuration}</code>.</p>
<figure>
{svg}
</figure>
<p>Turn-on curves: part of the leptons from W and Z decays found by level-1 thresholds and by the level-2 chain that
starts from them, against their true transverse momentum; bars are 68 % intervals. {note}</p>
{body}
</body>
</html>
"#
    )
}

fn overview(body: &mut String, samples: &[SampleReport]) -> std::fmt::Result {
    let head = ["sample", "events", "level 1", "level 2", "event filter", "bytes moved for level 2", "ROBs per event"];
    table_head(body, &head)?;
    for sample in samples {
        let accepted = sample.levels.iter().map(|level| grouped(level.accepted));
        let requests = &sample.requests;
        let bytes = requests.mean_fraction_of_event_bytes.map(|part| format!("{:.1} %", 100.0 * part));
        let robs = requests.mean_robs_per_event.map(|robs| format!("{robs:.2}"));
        let first = [sample.sample.clone(), grouped(sample.events)];
        let last = [bytes, robs].map(Option::unwrap_or_default);
        row(body, first.into_iter().chain(accepted).chain(last))?;
    }
    body.push_str("</tbody></table></div>\n");
    Ok(())
}

fn section(body: &mut String, sample: &SampleReport) -> std::fmt::Result {
    writeln!(body, "<h2>{}</h2>\n<p>{}.</p>", escape(&sample.sample), escape(&about(sample)))?;
    table_head(body, &["", "events", "rate", "rejection"])?;
    for level in &sample.levels {
        let cells = [level.name.to_owned(), grouped(level.accepted), rate(level.rate_hz), factor(level.rejection)];
        row(body, cells)?;
    }
    body.push_str("</tbody></table></div>\n");
    table_head(body, &["chain", "level-1 item", "input", "level 2", "event filter", "rate", "rejection"])?;
    for chain in &sample.chains {
        let counts = [chain.input, chain.level2, chain.event_filter].map(grouped);
        let rates = [rate(chain.event_filter_rate_hz), factor(chain.rejection)];
        row(body, [chain.name.clone(), chain.item.clone()].into_iter().chain(counts).chain(rates))?;
    }
    body.push_str("</tbody></table></div>\n<ul>\n");
    let lines = sample.efficiencies.iter().map(efficiency_line).chain(request_lines(&sample.requests));
    for line in lines.chain(notes(sample).into_iter().map(str::to_owned)) {
        writeln!(body, "<li>{}</li>", escape(&line))?;
    }
    body.push_str("</ul>\n");
    Ok(())
}

fn table_head(body: &mut String, cells: &[&str]) -> std::fmt::Result {
    body.push_str("<div class=\"wide\"><table><thead><tr>");
    cells.iter().try_for_each(|cell| write!(body, "<th>{}</th>", escape(cell)))?;
    writeln!(body, "</tr></thead><tbody>")
}

fn row(body: &mut String, cells: impl IntoIterator<Item = String>) -> std::fmt::Result {
    body.push_str("<tr>");
    cells.into_iter().try_for_each(|cell| write!(body, "<td>{}</td>", escape(&cell)))?;
    writeln!(body, "</tr>")
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The figure is drawn in black on white; in the dark its black becomes the colour of the text.
pub(super) const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --line: #ccc; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #16181c; --line: #444; } }
body { color: var(--ink); background: var(--paper); font: 15px/1.5 system-ui, sans-serif; max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
figure { margin: 1rem 0; } figure svg { width: 100%; height: auto; }
figure [fill='#FFFFFF'] { fill: var(--paper); } figure [fill='#000000'] { fill: var(--ink); }
figure [stroke='#000000'] { stroke: var(--ink); }
.wide { overflow-x: auto; } table { border-collapse: collapse; margin: .8rem 0; }
th, td { text-align: right; padding: .2rem .7rem; border-bottom: 1px solid var(--line); white-space: nowrap;
  font-variant-numeric: tabular-nums; }
th:first-child, td:first-child { text-align: left; } code { font-size: .95em; }
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(escape("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
    }
}

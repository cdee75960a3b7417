//! `weir ctl sources`: the sources that send by themselves, one a line.

use partition::human::{grouped, si};
use serde_json::Value;
use service::SourceRates;

/// A table with a line for each.
pub(super) fn table(dataflow: &Value) -> String {
    let sources: Vec<SourceRates> = serde_json::from_value(dataflow["sources"].clone()).unwrap_or_default();
    if sources.is_empty() {
        return "no source has been heard of: no run goes on, or none sends by itself".to_owned();
    }
    let mut lines = vec![HEADINGS.map(str::to_owned)];
    lines.extend(sources.iter().map(line));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let lines = lines.iter().map(|line| {
        let [name, state, rest @ .., remarks] = line;
        let numbers = rest.iter().zip(&widths[2..]).map(|(number, width)| format!("{number:>width$}"));
        let cells = [format!("{name:0$}", widths[0]), format!("{state:0$}", widths[1])];
        let cells: Vec<String> = cells.into_iter().chain(numbers).chain([remarks.clone()]).collect();
        cells.join("  ").trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn line(shown: &SourceRates) -> [String; HEADINGS.len()] {
    let source = &shown.source;
    [
        source.link.name.clone(),
        source.link.state.clone(),
        si(shown.fragments_hz, "Hz"),
        si(shown.bytes_per_s, "B/s"),
        source.last_number.map_or_else(|| "–".to_owned(), grouped),
        grouped(source.in_buffers),
        shown.remarks(),
    ]
}

const HEADINGS: [&str; 7] = ["source", "state", "fragments", "bytes", "last number", "in buffers", "remarks"];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::table;

    #[test]
    fn each_source_has_a_line() {
        let source = json!({
            "application": "ros-1", "name": "tlu", "id": 1, "state": "running", "fragments": 30, "bytes": 3000, "sent": 0, "kept": 20,
            "missing": 0, "never_triggered": 0, "late": 3, "doubled": 0, "unplaced": 0, "damaged": 0, "lost": 0, "in_buffers": 8,
            "last_number": 1234, "last_time_ns": null, "status": "armed", "fragments_hz": 1500.0, "bytes_per_s": 60e3,
        });
        let said = table(&json!({ "sources": [source] }));
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], "source  state    fragments    bytes  last number  in buffers  remarks");
        assert_eq!(lines[1], "tlu     running   1.50 kHz  60 kB/s        1 234           8  3 late, armed");
        assert!(table(&json!({})).starts_with("no source has been heard of"));
    }
}

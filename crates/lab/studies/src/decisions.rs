//! The decisions on every event, in the form of the reference selection's results.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::chain::Decided;
use super::sample::Sample;

/// Columns `event_number`, `l1_accept`, `l2_bits`, `ef_bits`, `l2_requested_robs`, `l2_requested_bytes`.
pub(super) type EventRow = (u64, u8, u64, u64, u32, u32);

/// One row for each event of a sample; those that level 1 rejected have zeros behind their number.
pub(super) fn event_rows(sample: &Sample, decided: &[Decided]) -> Vec<EventRow> {
    let mut decided = decided.iter();
    let row = |row: &rol::SampleRow| {
        if !row.accepted {
            return (row.event_number, 0, 0, 0, 0, 0);
        }
        let Decided { decision, filter, .. } = decided.next().expect("a decision on each accepted event");
        let (robs, bytes) = (decision.requested_robs, decision.requested_payload_bytes);
        (row.event_number, 1, decision.passed, *filter, robs, bytes)
    };
    sample.rows.iter().map(row).collect()
}

/// Writes the rows of all samples.
pub(super) fn write(path: &Path, menu: &[String], samples: &[(String, Vec<EventRow>)]) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let menu = serde_json::to_string(menu)?;
    writeln!(file, "{{\n \"format_version\": 1,\n \"menu\": {menu},\n \"event_columns\": {COLUMNS},\n \"events\": {{")?;
    for (index, (name, rows)) in samples.iter().enumerate() {
        writeln!(file, "{}  {}: [", if index == 0 { "" } else { ",\n" }, serde_json::Value::from(name.as_str()))?;
        for (index, row) in rows.iter().enumerate() {
            write!(file, "{}   {}", if index == 0 { "" } else { ",\n" }, serde_json::to_string(row)?)?;
        }
        write!(file, "\n  ]")?;
    }
    write!(file, "\n }}\n}}\n")?;
    file.flush()
}

const COLUMNS: &str =
    r#"["event_number", "l1_accept", "l2_bits", "ef_bits", "l2_requested_robs", "l2_requested_bytes"]"#;

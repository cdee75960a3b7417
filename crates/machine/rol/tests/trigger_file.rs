//! Triggers from a text file.

use std::fs;

use dataflow::level1::trigger::{Trigger, TriggerSource};
use dataflow::message::Roi;
use rol::{FileTriggers, TriggerFileError};
use testkit::TempDir;

fn read(text: &str, repeat: bool) -> Result<FileTriggers, TriggerFileError> {
    let directory = TempDir::new("rol-trigger-file");
    let path = directory.join("triggers.jsonl");
    fs::write(&path, text).unwrap();
    FileTriggers::read(&path, repeat)
}

fn message(text: &str) -> String {
    let error = read(text, false).unwrap_err().to_string();
    error[error.find("triggers.jsonl").unwrap_or_else(|| panic!("{error}"))..].to_owned()
}

#[test]
fn lines_become_triggers() {
    let text = "# two events\n\n{}\n  {\"bcid\": 12, \"trigger_type\": 132, \"items\": 8, \"rois\": [{\"kind\": \"em\", \
                \"eta\": -1.5, \"phi\": 3.2, \"et_mev\": 25000, \"thresholds\": 64, \"aux_mev\": [1, -2]}, \
                {\"kind\": \"te\", \"ieta\": 7, \"iphi\": 255}]}";
    let mut triggers = read(text, false).unwrap();
    assert_eq!(triggers.events(), 2);
    assert_eq!(triggers.trigger(0), Some(Trigger { bcid: 0, trigger_type: 0x80, items: 1, rois: Vec::new() }));
    let em = Roi { kind: 0, ieta: 9, iphi: 32, eta: -1.5, phi: 3.2, et_mev: 25_000, aux_mev: [1, -2], thresholds: 64 };
    let te = Roi { kind: 4, ieta: 7, iphi: 255, thresholds: 1, ..Roi::default() };
    assert_eq!(triggers.trigger(1), Some(Trigger { bcid: 12, trigger_type: 132, items: 8, rois: vec![em, te] }));
    assert_eq!(triggers.trigger(2), None);
    assert_eq!(read(text, true).unwrap().trigger(3), triggers.trigger(1));
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    assert_eq!(message("{}\n{\"bcid\": 4096}"), "triggers.jsonl:2: bcid: expected 0 to 4095, found 4096");
    assert_eq!(
        message("{\"rois\": [{\"kind\": \"em\", \"phi\": 7}]}"),
        "triggers.jsonl:1: rois[0].phi: expected a number from 0 to below 2π, found 7"
    );
    assert_eq!(
        message("\n\n{\"rois\": [{\"kind\": \"tau\"}]}"),
        "triggers.jsonl:3: unknown variant `tau`, expected one of `em`, `jet`, `muon`, `xe`, `te`, column 24"
    );
    assert_eq!(
        message("{\"bcdi\": 1}"),
        "triggers.jsonl:1: unknown field `bcdi`, expected one of `bcid`, `trigger_type`, `items`, `rois`, column 7"
    );
    let many = format!("{{\"rois\": [{}]}}", vec!["{\"kind\": \"em\"}"; 256].join(","));
    assert_eq!(message(&many), "triggers.jsonl:1: rois: expected at most 255, found 256");
    assert!(message("{").starts_with("triggers.jsonl:1: EOF while parsing"));
    assert_eq!(message("# nothing\n"), "triggers.jsonl");
    assert!(matches!(read(&" ".repeat(2 << 20), false), Err(TriggerFileError::TooLarge { line: 1, .. })));
    let directory = TempDir::new("rol-no-trigger-file");
    assert!(matches!(FileTriggers::read(directory.path(), false), Err(TriggerFileError::Io { .. })));
}

//! S-LINKs: emulated links, which are processes of their own, with errors that are marked in the files and counted by cause.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use eformat::{Event, RobStatus};
use testkit::TempDir;

use crate::files::{check_all, each_event, recorded};
use crate::running::{Job, program};

#[test]
fn blocks_of_an_emulated_link_are_recorded_with_what_was_wrong_with_them() {
    // The port is free when the run begins, as far as anybody can tell.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let at = format!("slink://127.0.0.1:{port}");
    let directory = TempDir::new("slink");
    let text = format!(
        "[partition]\nname = \"beam\"\n[level1]\nsource = \"link\"\n[ros]\ncount = 1\n[dfm]\n[sfi]\ncount = 1\n[sfo]\n\
         count = 1\n[[source]]\nname = \"rod\"\nat = {at:?}\n[source.frame]\norder = \"little\"\nheader = 36\n\
         counter = {{ at = 20, width = 4 }}\n"
    );
    let path = directory.join("beam.toml");
    fs::write(&path, text).unwrap();
    let running = Job::of(&path).patient().events(EVENTS).start();
    let mut feed = Command::new(program());
    feed.args(["feed", &at, "--name", "rod", "--size", "500 B", "--spread", "exponential"]);
    feed.args(["--damage", "100", "--control-error", "200", "--no-begin", "300", "--no-end", "400"]);
    let feed = feed.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (ended, summary) = running.end().expect_ok();
    let fed = feed.wait_with_output().unwrap();
    assert!(fed.status.success(), "{fed:?}");
    assert_eq!(summary.count("recorded"), EVENTS);
    let link = &summary.0["links"][0];
    assert_eq!((link["damaged"].as_u64(), link["missing"].as_u64()), (Some(4), Some(0)), "{link}");
    assert_eq!(link["device"]["malformed"], 0, "{link}");
    for (cause, count) in [("data", 1), ("control", 1), ("no_begin", 1), ("no_end", 1), ("checksum", 0), ("cut", 0)] {
        assert_eq!(link["damage"][cause], count, "{cause}: {link}");
    }
    for words in
        ["1 with a transmission error", "1 with a damaged control word", "1 without a begin", "1 without an end"]
    {
        assert!(ended.stderr.contains(words), "{words}\n{}", ended.stderr);
    }
    check_all(ended.output());
    let marked = marked(ended.output());
    let general = RobStatus::LINK_ERROR;
    let expected = [
        (100, RobStatus::LINK_DATA_ERROR | general),
        (200, RobStatus::LINK_CONTROL_ERROR | general),
        (300, RobStatus::NO_BOF | general),
        (400, RobStatus::NO_EOF | general),
    ];
    assert_eq!(marked, BTreeMap::from(expected.map(|(event, status)| (event, u32::from(status.bits()) << 16))));
}

/// The status words of events that are not well. Each holds a ROD as it was sent, with the number of its event.
fn marked(output: &std::path::Path) -> BTreeMap<u64, u32> {
    let mut marked = BTreeMap::new();
    for file in recorded(output) {
        each_event(&file, |bytes| {
            let event = Event::parse(bytes).unwrap();
            let payload = event.unpacked_payload(64 << 20).unwrap();
            for rob in event.robs(&payload) {
                let rob = rob.unwrap();
                let sent = rob.rod().unwrap();
                let sent = &sent.data()[..sent.event_type() as usize];
                let word = |at: usize| u32::from_le_bytes(sent[4 * at..4 * at + 4].try_into().unwrap());
                assert_eq!((word(0), u64::from(word(5))), (0xee12_34ee, event.global_id()));
                if rob.status().0 != 0 {
                    marked.insert(event.global_id(), rob.status().0);
                }
            }
        });
    }
    marked
}

const EVENTS: u64 = 2_000;

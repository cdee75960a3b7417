//! Replays the corpus of the fuzz targets through the functions that these call.

use std::fs;
use std::path::PathBuf;

use eformat::*;

/// Name of a fuzz target, and what it calls.
type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 5] = [
    ("event", fuzzing::event),
    ("file", fuzzing::file),
    ("stream_tags", fuzzing::stream_tags),
    ("template", fuzzing::template),
    ("zlib", fuzzing::zlib),
];

#[test]
fn corpus_is_replayed() {
    if std::env::var_os("UPDATE_CORPUS").is_some() {
        write_seeds();
    }
    let mut bytes = 0;
    for (name, run) in TARGETS {
        let mut files = 0;
        for entry in fs::read_dir(corpus(name)).unwrap() {
            let data = fs::read(entry.unwrap().path()).unwrap();
            run(&data);
            files += 1;
            bytes += data.len();
        }
        assert!(files > 0, "the corpus of {name} is empty");
    }
    assert!(bytes < 300_000, "the corpus has {bytes} bytes");
}

fn corpus(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus").join(target)
}

fn write_seeds() {
    let write = |target: &str, name: &str, data: &[u8]| fs::write(corpus(target).join(name), data).unwrap();
    let events = [
        ("event3", crate::common::event3(7)),
        ("event4", crate::common::event4(7)),
        ("event5", crate::common::event5(7, false)),
        ("event5_adler", crate::common::event5(7, true)),
        ("event5_zlib", crate::common::event5_zlib(7)),
    ];
    for (name, event) in &events {
        write("event", name, event);
        write("template", name, &replay::split(event).unwrap().template);
        write("zlib", name, &zlib_pack([event.as_slice()], ZLIB_LEVEL));
        write("event", &format!("{name}_cut"), &event[..event.len() / 2]);
    }
    write("event", "rob", &crate::common::rob(1, 2, 3, true));
    write("zlib", "bomb", &zlib_pack([[0u8; 1 << 18].as_slice()], 9));
    write("zlib", "stored", &zlib_pack([b"abcdefgh".as_slice()], 0));
    for (name, file) in crate::common::files() {
        write("file", name, &file);
        write("file", &format!("{name}_cut"), &file[..file.len() - 50]);
    }
    for text in ["weir1;physics;Main;1;;", "weir1;calibration;LAr;0;00410001,00420002;41,ff", "TAGBYTES", "a\0\0b\0"] {
        write("stream_tags", &format!("text{}", text.len()), text.as_bytes());
    }
}

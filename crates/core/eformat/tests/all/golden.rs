//! Files that later versions must go on to write and read. `UPDATE_GOLDEN=1` writes them anew.

use std::fs;
use std::path::PathBuf;

use crate::common::{event3, event5, event5_zlib, files, split_and_join};
use eformat::*;

fn pin(name: &str, made: &[u8]) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, made).unwrap();
    }
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn files_are_pinned_and_check() {
    for (name, made) in files() {
        let golden = pin(&format!("{name}.data"), &made);
        assert_eq!(check_file(&golden, CheckOptions::default()), [], "{name}");
        if name.contains("zlib") {
            // Another version of the compressor may choose other bytes; what they decompress to is compared.
            assert_eq!(payloads(&made), payloads(&golden), "{name}");
        } else {
            assert_eq!(made, golden, "{name}");
        }
    }
}

#[test]
fn templates_are_pinned() {
    for (name, event) in [("event5", event5(0x0100_0001, true)), ("event3", event3(0x0100_0001))] {
        let made = replay::split(&event).unwrap().template;
        assert_eq!(pin(&format!("{name}.template"), &made), made, "{name}");
        assert_eq!(split_and_join(&event), event);
    }
    let packed = event5_zlib(5);
    assert_eq!(replay::split(&packed).unwrap().children, []);
    assert_eq!(split_and_join(&packed), packed);
}

fn payloads(file: &[u8]) -> Vec<Vec<u8>> {
    let events = file_events(file).unwrap();
    let compressed = events.header().blocks_are_compressed();
    let unpack = |event: Result<FileEvent<'_>, Problem>| {
        let mut event = event.unwrap().block.to_vec();
        if compressed {
            event = zlib_unpack(Part::DataBlock, &event, 1 << 20).unwrap();
        }
        Event::parse(&event).unwrap().unpacked_payload(1 << 20).unwrap().into_owned()
    };
    events.map(unpack).collect()
}

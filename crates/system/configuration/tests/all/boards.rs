//! `[source.frame]`: what is wrong with a description is said with its place and what was expected.

use configuration::{ByteOrder, Partition};

fn text(source: &str) -> String {
    format!(
        "[partition]\nname = \"p\"\n[level1]\nsource = \"link\"\n[ros]\ncount = 1\n[dfm]\n[sfi]\ncount = 1\n\
         [[source]]\nname = \"board\"\n{source}"
    )
}

fn errors(source: &str) -> Vec<String> {
    let error = Partition::parse("p.toml", &text(source), &[]).expect_err("the configuration is wrong");
    error.to_string().lines().map(str::to_owned).collect()
}

fn board(frame: &str) -> Vec<String> {
    errors(&format!("at = \"udp://0.0.0.0:7201\"\n[source.frame]\n{frame}"))
}

#[test]
fn a_board_is_described_by_its_fields() {
    let frame = "at = \"udp://0.0.0.0:7201\"\nfrom = \"10.0.0.7\"\n[source.frame]\nheader = 40\n\
                 counter = { at = 8, width = 4, modulus = 9 }\n\
                 time = [{ at = 12, width = 4, unit = \"1 s\" }, { at = 16, width = 4, unit = \"16 ns\", order = \"little\" }]\n";
    let partition = Partition::parse("p.toml", &text(frame), &[]).unwrap();
    let source = &partition.source[0];
    let frame = source.frame.as_ref().unwrap();
    assert_eq!((frame.header, frame.counter.unwrap().modulus, frame.order), (40, Some(9), ByteOrder::Big));
    assert_eq!((frame.time[1].unit.unwrap().ns(), frame.time[1].order), (16, Some(ByteOrder::Little)));
    assert_eq!(source.from, Some("10.0.0.7".parse().unwrap()));
}

#[test]
fn what_is_wrong_with_a_description_is_said_where_it_stands() {
    let counter = "header = 8\ncounter = { at = 6, width = 4 }\n";
    let place = "p.toml:15:18: source.0.frame.counter.at: ";
    assert_eq!(
        board(counter),
        [format!("{place}expected a field within the header of 8 bytes, found one of bytes 6 to 9")]
    );
    for (frame, key, expected) in [
        ("header = 8\ncounter = { at = 0, width = 9 }\n", "counter.width", "expected 1 to 8 bytes, found 9"),
        ("header = 8\ncounter = { at = 0, width = 1, modulus = 257 }\n", "counter.modulus", "expected 2 to 256"),
        ("header = 8\nsize = \"8 B\"\nlength = { at = 0, width = 2 }\n", "size", "expected either `length`, or `size`"),
        ("header = 8\nsize = \"7 B\"\n", "size", "expected 8 to 65536 bytes"),
        ("header = 8\nlength = { at = 0, width = 2, unit = 0 }\n", "length.unit", "expected at least 1"),
        ("header = 100000\n", "header", "expected at most size_max of the source, 65536 bytes, found 100000"),
        (
            "header = 8\ntime = [{ at = 0, width = 8, unit = \"1 ns\", clock = \"1 MHz\" }]\n",
            "time.0.clock",
            "expected either",
        ),
        (
            "header = 8\ntime = [{ at = 0, width = 8, clock = \"0 Hz\" }]\n",
            "time.0.clock",
            "expected a clock that ticks",
        ),
    ] {
        let found = board(frame);
        let is_said = found.len() == 1 && found[0].contains(&format!("source.0.frame.{key}: {expected}"));
        assert!(is_said, "{frame}: {found:?}");
    }
}

#[test]
fn only_boards_are_described_and_they_must_be() {
    for (source, key, expected) in [
        (
            "at = \"udp://0.0.0.0:7201\"\n",
            "frame",
            "missing; a device does not say what it sends: expected [source.frame]",
        ),
        ("at = \"file:/dev/frames\"\n", "frame", "missing; a device does not say what it sends"),
        ("at = \"file:frames\"\n[source.frame]\n", "at", "expected shm:NAME, shm:/PATH, tcp://ADDRESS:PORT"),
        ("[source.frame]\nheader = 8\n", "frame", "only for a device that knows nothing of Weir"),
        (
            "from = \"10.0.0.7\"\n",
            "from",
            "only for a board or an S-LINK, whose `at` begins with udp:// or slink://, found \"shm:board\"",
        ),
        (
            "at = \"udp://nowhere\"\n[source.frame]\n",
            "at",
            "expected an address and a port, such as \"udp://127.0.0.1:7101\"",
        ),
    ] {
        let found = errors(source);
        let is_said = found.len() == 1 && found[0].contains(&format!("source.0.{key}: {expected}"));
        assert!(is_said, "{source}: {found:?}");
    }
}

//! How sources are matched with triggers: what goes together, and what does not.

use configuration::{Matching, OnMissing, Partition};

fn text(level1: &str, device: &str) -> String {
    format!(
        "[partition]\nname = \"p\"\n[level1]\n{level1}\n[ros]\ncount = 1\n[dfm]\n[sfi]\ncount = 1\n\
         [[source]]\nname = \"tlu\"\n[[source]]\nname = \"device\"\n{device}\n"
    )
}

fn error(level1: &str, device: &str) -> String {
    let error = Partition::parse("p.toml", &text(level1, device), &[]).expect_err("the configuration is wrong");
    error.to_string()
}

#[test]
fn a_source_is_matched_by_number_unless_events_are_slices() {
    let of = |level1, device: &str| {
        let partition = Partition::parse("p.toml", &text(level1, device), &[]).unwrap();
        partition.source.iter().map(|source| partition.matching(source)).collect::<Vec<_>>()
    };
    let (led, sliced) = ("source = \"link\"", "source = \"time\"");
    assert_eq!(of(led, ""), [Matching::Number; 2]);
    assert_eq!(of(sliced, "before = \"1 us\"\noffset = \"-3 us\""), [Matching::Time; 2]);
    assert_eq!(of(led, "match = \"count\"\nfirst_count = -1")[1], Matching::Count);
    let keys = "match = \"time\"\nafter = \"5 us\"\noffset = \"-3 us\"\ninclusive = false\non_missing = \"wait\"";
    let partition = Partition::parse("p.toml", &text(led, keys), &[]).unwrap();
    let device = &partition.source[1];
    assert_eq!((device.offset.unwrap().ns(), device.on_missing), (-3_000, OnMissing::Wait));
    assert_eq!(Partition::parse("p.toml", &partition.to_toml(), &[]).unwrap(), partition);
}

#[test]
fn times_are_those_of_events_only_by_time_and_in_step() {
    let of = |level1, device: &str| {
        let partition = Partition::parse("p.toml", &text(level1, device), &[]).unwrap();
        partition.offset_ns(&partition.source[1])
    };
    let by_time = "match = \"time\"\noffset = \"-3 us\"";
    assert_eq!(of("source = \"time\"", ""), Some(0));
    assert_eq!(of("source = \"link\"", by_time), Some(-3000));
    assert_eq!(of("source = \"link\"", &format!("{by_time}\nclock = \"model\"")), None);
    assert_eq!(of("source = \"link\"", "match = \"count\""), None);
    assert_eq!(of("source = \"link\"", ""), None);
}

#[test]
fn what_does_not_go_together_is_said() {
    for (level1, device, expected) in [
        ("source = \"link\"", "before = \"1 us\"", "only for match = \"time\", which is \"number\""),
        ("source = \"link\"", "match = \"time\"\nfirst_count = 1", "only for match = \"count\", which is \"time\""),
        ("source = \"link\"\nleader = \"device\"", "match = \"time\"", "expected \"number\", as the source leads"),
        ("source = \"link\"", "match = \"time\"\nordered = false", "only for match = \"number\", which is \"time\""),
        (
            "source = \"link\"\nleader = \"device\"",
            "ordered = false",
            "source.1.ordered: expected true, as the source leads",
        ),
        ("source = \"link\"", "handshake = \"eudet\"\nordered = false", "expected true with handshake = \"eudet\""),
        ("source = \"time\"", "match = \"count\"", "expected \"time\" with level1.source = \"time\""),
        ("source = \"link\"\nwindow = \"1 us\"", "", "only for level1.source = \"time\""),
        ("source = \"time\"\nwindow = \"2 ms\"", "", "expected a time up to that of level1.slice"),
        ("source = \"link\"", "on_missing = \"drop\"", "\"drop\" needs [ef] or [sfo]"),
        ("source = \"link\"", "match = \"time\"\noffset = \"3\"", "offset"),
        ("source = \"time\"", "clock = \"model\"", "source.1.clock: not with level1.source = \"time\""),
    ] {
        let found = error(level1, device);
        assert!(found.contains(expected), "{device}: {found}");
    }
}

//! `source.emulated`: what is sent in the place of a source.

use configuration::{ConfigurationError, LinkSource, Partition, RosInput, Size, SizeDistribution, SizeSpread};

#[test]
fn what_emulated_sources_send_is_described_or_has_defaults() {
    let beam = sources(
        "link",
        "{ rate = \"2 kHz\", size = \"40 B\" }",
        "{ delay = \"1 ms\", efficiency = \"80 %\", spread = \"exponential\" }",
    );
    let [tlu, device] = &beam.unwrap()[..] else { panic!("two sources") };
    let (tlu, device) = (&tlu.emulated, &device.emulated);
    let kilobyte = Size::from_bytes(1000);
    assert_eq!(tlu.interval().ns(), 500_000);
    assert_eq!(tlu.sizes(Size::from_bytes(100)), SizeDistribution::Fixed(Size::from_bytes(40)));
    assert_eq!(device.spread, SizeSpread::Exponential);
    assert_eq!(device.sizes(Size::from_bytes(5000)), SizeDistribution::Exponential { mean: kilobyte });
    assert_eq!(device.sizes(Size::from_bytes(500)), SizeDistribution::Exponential { mean: Size::from_bytes(500) });
    let other = LinkSource::default().emulated;
    assert_eq!((other.interval().ns(), other.sizes(kilobyte)), (1_000_000, SizeDistribution::Fixed(kilobyte)));
    let sliced = sources("time", "{ chunk = \"3 ms\", overlap = \"10 %\" }", "{}").unwrap();
    let chunks: Vec<u64> = sliced.iter().map(|source| source.emulated.chunk(10_000_000).ns()).collect();
    assert_eq!(chunks, [3_000_000, 2_000_000]);
}

#[test]
fn what_no_source_could_send_is_refused() {
    for (level1, tlu, device, word) in [
        ("link", "{}", "{ rate = \"1 kHz\" }", "only for the source that leads"),
        ("link", "{ rate = \"0 Hz\" }", "{}", "source.0.emulated.rate: expected a rate above 0"),
        ("link", "{ rate = \"1 MHz\" }", "{}", "expected at most 200 kHz, found 1 MHz"),
        ("link", "{ delay = \"1 ms\" }", "{}", "only for a source that follows one that leads, or sends chunks"),
        ("link", "{ efficiency = \"10 %\" }", "{}", "only for a source that follows one that leads"),
        ("link", "{ size = \"2 kB\" }", "{}", "expected at most source.0.size_max, which is 1500 B"),
        ("link", "{}", "{ chunk = \"1 ms\" }", "only for level1.source = \"time\""),
        ("link", "{}", "{ delay = \"200 ms\" }", "expected at most 100 ms, found 200 ms"),
        ("external", "{}", "{ delay = \"1 ms\" }", "only for a source that follows one that leads, or sends chunks"),
        ("external", "{}", "{ efficiency = \"10 %\" }", "only for a source that follows one that leads"),
        ("time", "{}", "{ rate = \"1 kHz\" }", "only for the source that leads"),
        ("time", "{}", "{ chunk = \"0 s\" }", "expected a time above 0"),
        ("time", "{}", "{ chunk = \"4 us\" }", "expected at least 5 us from one chunk to the next, found 4 us"),
        ("time", "{}", "{ overlap = \"99.9 %\" }", "expected at least 5 us from one chunk to the next"),
        ("time", "{}", "{ overlap = \"100 %\" }", "expected less than 100 %"),
        ("time", "{}", "{ spread = \"wide\" }", "exponential"),
    ] {
        let error = sources(level1, tlu, device).unwrap_err().to_string();
        assert!(error.contains(word), "{tlu} {device}: {error}");
    }
}

#[test]
fn a_leader_that_is_no_source_is_all_that_is_wrong() {
    let keys = "emulated = { rate = \"1 kHz\" }\n[[source]]\nname = \"device\"\nemulated = { delay = \"1 ms\", efficiency = \"80 %\" }\n";
    let text = format!(
        "[partition]\nname = \"p\"\n[level1]\nsource = \"link\"\nleader = \"tlx\"\n[ros]\ncount = 1\n[dfm]\n[sfi]\ncount = 1\n\
         [[source]]\nname = \"tlu\"\n{keys}"
    );
    let error = Partition::parse("p.toml", &text, &[]).unwrap_err().to_string();
    assert!(error.contains("one of tlu, device, found \"tlx\"") && !error.contains("emulated"), "{error}");
}

#[test]
fn what_cannot_be_played_is_refused() {
    let input = "[input]\nfiles = [\"a.parquet\"]\n";
    for (before, level1, tlu, device, word) in [
        (
            "",
            "link",
            "",
            "play = \"replay\"",
            "input.files: missing; expected the files that source.1.play = \"replay\" reads",
        ),
        (
            input,
            "link",
            "play = \"sample\"",
            "play = \"replay\"",
            "source.1.play: expected the same as the sources before",
        ),
        (input, "time", "play = \"sample\"", "", "source.0.play: expected \"emulator\" with level1.source = \"time\""),
        (
            "",
            "link",
            "",
            "at = \"file:/a\"\nframe = { header = 8, counter = { at = 0, width = 4 } }\nplay = \"emulator\"",
            "`weir feed file:/a`",
        ),
        (
            "",
            "link",
            "",
            "play = \"drum\"",
            "expected \"none\", \"emulator\", \"sample\" or \"replay\", found \"drum\"",
        ),
    ] {
        let error = parsed(before, level1, tlu, device).unwrap_err().to_string();
        assert!(error.contains(word), "{tlu} {device}: {error}");
    }
    let apart = "device is played and tlu is not: their times cannot match";
    for (tlu, device, word) in [
        ("", "play = \"emulator\"\nmatch = \"time\"", apart),
        ("", "play = \"emulator\"\nclock = \"model\"", apart),
        ("play = \"emulator\"", "clock = \"model\"", "tlu is played and device is not"),
    ] {
        let error = parsed("", "link", tlu, device).unwrap_err().to_string();
        assert!(error.contains(word) && error.contains("source.1.play"), "{tlu} {device}: {error}");
    }
    for (tlu, device) in [
        ("", "play = \"emulator\"\nmatch = \"count\""),
        ("play = \"emulator\"\nclock = \"model\"", ""),
        ("play = \"emulator\"", "play = \"emulator\"\nmatch = \"time\""),
        ("", "match = \"time\""),
    ] {
        parsed("", "link", tlu, device).unwrap();
    }
    let mixed =
        parsed(&format!("{input}mix = \"equal\"\n"), "link", "play = \"sample\"", "play = \"emulator\"").unwrap();
    assert_eq!(mixed.played_input(), Some(RosInput::Sample));
    assert_eq!(parsed("", "link", "play = \"emulator\"", "").unwrap().played_input(), None);
}

fn sources(level1: &str, tlu: &str, device: &str) -> Result<Vec<LinkSource>, ConfigurationError> {
    Ok(parsed("", level1, &format!("emulated = {tlu}"), &format!("emulated = {device}"))?.source)
}

fn parsed(before: &str, level1: &str, tlu: &str, device: &str) -> Result<Partition, ConfigurationError> {
    let slice = match level1 {
        "time" => "slice = \"10 ms\"\n",
        "external" => "[[level1.processor]]\nname = \"trigger\"\nat = \"shm:trigger\"\n",
        _ => "",
    };
    let text = format!(
        "[partition]\nname = \"p\"\n{before}[level1]\nsource = \"{level1}\"\n{slice}[ros]\ncount = 1\ninput = \"links\"\n[dfm]\n[sfi]\ncount = 1\n\
         [[source]]\nname = \"tlu\"\nsize_max = \"1500 B\"\n{tlu}\n[[source]]\nname = \"device\"\n{device}\n"
    );
    Partition::parse("p.toml", &text, &[])
}

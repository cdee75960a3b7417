//! Keys of the inputs: samples, padding, preprocessing, sources of triggers.

use std::fs;

use configuration::{
    Decimal, Generator, Kinds, Level1, Level1Source, Mix, Multiplicity, Partition, Position, Preprocessing,
    ProcessorLoss, RosInput, Size,
};
use testkit::TempDir;

const SAMPLE: &str = "[partition]\nname = \"p\"\n[input]\nfiles = [\"a.parquet\"]\n[level1]\nsource = \"sample\"\n\
                      [sfi]\ncount = 1\n";
const BUILDER: &str = "[partition]\nname = \"p\"\n[level1]\n[ros]\ncount = 4\n[sfi]\ncount = 1\n";

fn parse(text: &str, overrides: &[&str]) -> Result<Partition, String> {
    let overrides: Vec<_> = overrides.iter().map(|text| (*text).to_owned()).collect();
    Partition::parse("p.toml", text, &overrides).map_err(|error| error.to_string())
}

/// The only problem, after the place and the key of the first override.
fn wrong(text: &str, overrides: &[&str]) -> String {
    let error = parse(text, overrides).unwrap_err();
    let key = overrides[0].split('=').next().unwrap();
    error.strip_prefix(&format!("--set {key}: ")).unwrap_or_else(|| panic!("{error}")).to_owned()
}

#[test]
fn a_sample_can_be_mixed_and_padded() {
    let text = SAMPLE.replace(
        "[level1]",
        "mix = \"cross-section\"\nprescales = { L1_RD0 = 100 }\ndetector = \"d.json\"\npad_to = \"1 kB\"\n[level1]",
    );
    let partition = parse(&text, &["input.prescales.L1_EM7=3"]).unwrap();
    assert_eq!((partition.input.mix, partition.input.pad_to), (Some(Mix::CrossSection), Some(Size::from_bytes(1000))));
    let prescales: Vec<_> = partition.input.prescales.iter().map(|(item, by)| (item.as_str(), *by)).collect();
    assert_eq!(prescales, [("L1_EM7", 3), ("L1_RD0", 100)]);
    assert_eq!(parse(&partition.to_toml(), &[]), Ok(partition));
}

#[test]
fn options_of_samples_are_for_samples() {
    for key in ["input.mix=cross-section", "input.pad_to=1 kB"] {
        assert_eq!(wrong(BUILDER, &[key]), "only for ros.input = \"sample\", which is \"emulator\"");
    }
    assert_eq!(wrong(SAMPLE, &["input.mix=weight"]), "expected \"cross-section\" or \"equal\", found \"weight\"");
    assert_eq!(
        wrong(SAMPLE, &["ros.page_size=1 kB", "input.pad_to=1 kB"]),
        "expected at least 1128 B for fragments of input.pad_to = \"1 kB\" with their headers, found 1 kB"
    );
    let mixed = ["input.mix=cross-section", "input.detector=d.json"];
    assert_eq!(wrong(SAMPLE, &["input.prescales.L1_RD0=0", mixed[0], mixed[1]]), "expected an integer from 1, found 0");
    assert!(parse(SAMPLE, &["input.prescales.L1_RD0=2", mixed[0]]).unwrap_err().contains("input.detector: missing"));
    assert!(parse(SAMPLE, &["input.prescales.L1_RD0=2", mixed[1]]).unwrap_err().contains("they need input.mix"));
    assert_eq!(wrong(SAMPLE, &["input.prescales.L1_RD0=x"]), "expected an integer from 0 to 4294967295, found \"x\"");
}

#[test]
fn suppression_needs_preprocessing() {
    let partition = parse(BUILDER, &["ros.preprocessing=zero-suppression", "ros.suppress_below=9"]).unwrap();
    assert_eq!((partition.ros.preprocessing, partition.ros.suppress_below), (Preprocessing::ZeroSuppression, 9));
    assert_eq!(
        wrong(BUILDER, &["ros.suppress_below=9"]),
        "only for ros.preprocessing = \"zero-suppression\", which is \"none\""
    );
    assert_eq!(
        wrong(BUILDER, &["ros.suppress_below=70000"]),
        "expected an integer from 0 to 65535, found integer 70000"
    );
}

#[test]
fn each_source_of_triggers_has_its_keys() {
    let external = ["level1.source=external", "level1.processor=[{name=\"calo\"},{name=\"muon\",on_loss=\"go-on\"}]"];
    let partition = parse(BUILDER, &external).unwrap();
    let level1 = partition.level1.clone().unwrap();
    assert_eq!(
        (level1.processor[0].address().as_str(), level1.processor[0].on_loss),
        ("shm:calo", ProcessorLoss::Stop)
    );
    assert_eq!((level1.processor[1].on_loss, partition.ros.input), (ProcessorLoss::GoOn, RosInput::Emulator));
    assert_eq!(parse(&partition.to_toml(), &[]), Ok(partition));
    assert_eq!(
        parse(BUILDER, &["level1.source=external"]).unwrap_err(),
        "--set level1.source: level1.processor: missing; level1.source = \"external\" needs it"
    );
    for (processors, expected) in [
        ("[{at=\"shm:x\"}]", "expected letters, digits, `_` and `-`, such as \"calo\", found \"\""),
        ("[{name=\"a\"},{name=\"a\"}]", "expected a name of its own, found \"a\" a second time"),
        ("[{name=\"a\"},{name=\"b\",at=\"shm:a\"}]", "expected an address of its own, found \"shm:a\" a second time"),
        ("[{name=\"a\",at=\"udp://h:1\"}]", "expected shm:NAME, shm:/PATH or tcp://ADDRESS:PORT, found \"udp://h:1\""),
        ("[{name=\"a\",number_bits=65}]", "expected 1 to 64 bits, found 65"),
    ] {
        let error = parse(BUILDER, &[&format!("level1.processor={processors}"), external[0]]).unwrap_err();
        assert!(error.ends_with(expected), "{error}");
    }
    assert_eq!(wrong(BUILDER, &["level1.file=x"]), "only for level1.source = \"file\", which is \"emulator\"");
    assert_eq!(
        wrong(BUILDER, &["level1.rate=1 kHz", external[0], external[1]]),
        "not with level1.source = \"external\": triggers are issued as they come"
    );
    assert_eq!(
        wrong(BUILDER, &["level1.generator={items=8}", "level1.source=file", "level1.file=x"]),
        "only for level1.source = \"emulator\", which is \"file\""
    );
}

#[test]
fn hand_shakes_are_checked() {
    let beam = "[partition]\nname = \"p\"\n[level1]\nsource = \"link\"\n[ros]\ncount = 1\n[sfi]\ncount = 1\n[[source]]\nname = \"tlu\"\n\
                [[source]]\nname = \"dut\"\n";
    let partition = parse(beam, &["source.0.handshake=eudet", "source.1.handshake=aida-number"]).unwrap();
    assert_eq!((partition.source[0].bits_of_numbers(), partition.source[1].bits_of_numbers()), (Some(15), None));
    assert_eq!(parse(&partition.to_toml(), &[]), Ok(partition));
    for (keys, expected) in [
        (
            &["ros.count=2", "source.0.handshake=eudet"][..],
            "expected 1, found 2: busy of a leader with handshake = \"eudet\" is that of its read-out system",
        ),
        (
            &["source.1.number_bits=15", "source.1.handshake=aida"],
            "not with handshake = \"aida\", which has no numbers; expected \"aida-number\"",
        ),
    ] {
        let error = parse(beam, keys).unwrap_err();
        assert!(error.ends_with(expected), "{error}");
    }
}

#[test]
fn the_generator_is_checked() {
    let spot = ["level1.generator.position=hot-spot", "level1.generator.eta=-1.5", "level1.generator.phi=2"];
    let partition = parse(BUILDER, &[spot[0], spot[1], spot[2], "level1.generator.multiplicity=poisson"]).unwrap();
    let Some(Level1 { source: Level1Source::Emulator, generator, .. }) = partition.level1.clone() else { panic!() };
    let expected = Generator {
        position: Position::HotSpot,
        multiplicity: Multiplicity::Poisson,
        eta: Decimal::from_f64(-1.5).unwrap(),
        phi: Decimal::from_f64(2.0).unwrap(),
        ..Generator::default()
    };
    assert_eq!(generator, expected);
    assert_eq!(parse(&partition.to_toml(), &[]), Ok(partition));
    assert_eq!(Kinds::default(), Kinds { em: 1, jet: 1, muon: 1 });
    assert_eq!(wrong(BUILDER, &["level1.generator.eta=3", spot[0]]), "expected a number from -2.5 to 2.5, found 3");
    assert_eq!(
        wrong(BUILDER, &["level1.generator.eta=1e4", spot[0]]),
        "expected a number from -1000 to 1000, found number 10000.0"
    );
    assert_eq!(
        wrong(BUILDER, &["level1.generator.phi=1"]),
        "only for level1.generator.position = \"hot-spot\", which is \"flat\""
    );
    assert_eq!(
        wrong(BUILDER, &["level1.generator.kinds={em=0,jet=0,muon=0}"]),
        "expected a weight above 0, found only 0"
    );
    assert_eq!(
        wrong(BUILDER, &["level1.generator.et_min=30 TeV"]),
        "expected at most \"20 TeV\", more than any collision has"
    );
}

#[test]
fn paths_start_from_the_folder_of_the_file() {
    let directory = TempDir::new("configuration-inputs");
    let path = directory.join("p.toml");
    fs::write(&path, BUILDER.replace("[level1]", "[level1]\nsource = \"file\"\nfile = \"t.jsonl\"")).unwrap();
    let partition = Partition::load(&path, &[]).unwrap();
    assert_eq!(partition.level1.unwrap().file.as_deref(), directory.join("t.jsonl").to_str());
}

#[test]
fn prescaled_items_are_those_of_the_detector() {
    let directory = TempDir::new("configuration-prescales");
    let path = directory.join("p.toml");
    let options = "mix = \"cross-section\"\ndetector = \"d.json\"\nprescales = { L1_RDO = 100 }\n[level1]";
    fs::write(&path, SAMPLE.replace("[level1]", options)).unwrap();
    Partition::load(&path, &[]).unwrap();
    fs::write(directory.join("d.json"), r#"{"level1": {"items": [{"name": "L1_RD0", "bit": 17}]}}"#).unwrap();
    let error = Partition::load(&path, &[]).unwrap_err().to_string();
    let expected = "input.prescales.L1_RDO: unknown level-1 item; input.detector has L1_RD0; did you mean `L1_RD0`?";
    assert!(error.contains("p.toml:7:24: ") && error.ends_with(expected), "{error}");
}

//! Keys of the inputs: samples, padding, preprocessing, sources of triggers.

use std::fs;

use configuration::{
    Decimal, Generator, Kinds, Level1, Level1Source, Mix, Multiplicity, Partition, Position, Preprocessing, RosInput,
    Size,
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
    let network = ["level1.source=network", "level1.listen=127.0.0.1:7001", "level1.sources=3"];
    let partition = parse(BUILDER, &network).unwrap();
    let level1 = partition.level1.clone().unwrap();
    assert_eq!((level1.sources, level1.listen.unwrap().port(), partition.ros.input), (3, 7001, RosInput::Emulator));
    assert_eq!(parse(&partition.to_toml(), &[]), Ok(partition));
    assert_eq!(
        parse(BUILDER, &["level1.source=network"]).unwrap_err(),
        "--set level1.source: level1.listen: missing; level1.source = \"network\" needs it"
    );
    assert_eq!(wrong(BUILDER, &["level1.file=x"]), "only for level1.source = \"file\", which is \"emulator\"");
    assert_eq!(
        wrong(BUILDER, &["level1.listen=localhost", "level1.source=network"]),
        "expected an address such as \"127.0.0.1:7001\", found \"localhost\""
    );
    assert_eq!(
        wrong(BUILDER, &["level1.rate=1 kHz", network[0], network[1]]),
        "not with level1.source = \"network\": triggers are issued as they come"
    );
    assert_eq!(
        wrong(BUILDER, &["level1.sources=65", network[0], network[1]]),
        "expected an integer from 1 to 64, found 65"
    );
    assert_eq!(
        wrong(BUILDER, &["level1.generator={items=8}", "level1.source=file", "level1.file=x"]),
        "only for level1.source = \"emulator\", which is \"file\""
    );
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

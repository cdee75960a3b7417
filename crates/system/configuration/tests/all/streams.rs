//! `[[stream]]`: what is taken, and every error with its exact words.

use configuration::{Partition, RobSelection, StreamType};

const BEFORE: &str = "[partition]\nname = \"p\"\n[ros]\ncount = 4\n[sfi]\ncount = 2\n[sfo]\n";

fn parsed(streams: &str, overrides: &[&str]) -> Partition {
    let overrides: Vec<_> = overrides.iter().map(|text| (*text).to_owned()).collect();
    Partition::parse("p.toml", &format!("{BEFORE}{streams}"), &overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn errors(streams: &str, overrides: &[&str]) -> Vec<String> {
    let overrides: Vec<_> = overrides.iter().map(|text| (*text).to_owned()).collect();
    let error = Partition::parse("p.toml", &format!("{BEFORE}{streams}"), &overrides).expect_err("wrong streams");
    error.to_string().lines().map(str::to_owned).collect()
}

#[test]
fn streams_are_read_and_written_back() {
    let text = "[[stream]]\nname = \"Main\"\n[[stream]]\ntype = \"calibration\"\nname = \"tile\"\nprescale = 4\n\
                robs = [\"TILECAL_BARREL_A_SIDE\", 0x510001, \"0x00510002-0x00510003\"]\n\
                [[stream]]\ntype = \"express\"\nname = \"fast\"\nby_name = true\n";
    let partition = parsed(text, &["stream.2.prescale=7"]);
    let [main, tile, fast] = partition.stream.as_slice() else { panic!("{:?}", partition.stream) };
    assert_eq!((main.stream_type, main.name.as_str(), main.prescale), (StreamType::Physics, "Main", 1));
    assert_eq!((tile.stream_type.name(), tile.prescale, tile.robs.len()), ("calibration", 4, 3));
    assert_eq!(tile.robs[1], RobSelection::Sources { first: 0x51_0001, last: 0x51_0001 });
    assert_eq!((fast.by_name, fast.prescale), (true, 7));
    assert_eq!(partition.sfo.as_ref().unwrap().stream, None);
    assert_eq!(Partition::parse("again.toml", &partition.to_toml(), &[]).unwrap(), partition);
    assert_eq!(parsed("", &[]).sfo.unwrap().stream.as_deref(), Some("physics_Main"));
}

#[test]
fn each_key_of_each_stream_has_its_place() {
    let text = "[[stream]]\nname = \"Main\"\nprescale = 0\n\n[[stream]]\ntype = \"calib\"\nname = \"a.b\"\nrobs = []\n\
                [[stream]]\nprescale = -1\nchain = 1\n[[stream]]\nname = \"Main\"\nrobs = [\"tile\"]\n";
    assert_eq!(
        errors(text, &[]),
        [
            "p.toml:10:12: stream.0.prescale: expected an integer from 1 to 4294967295, found 0",
            "p.toml:13:8: stream.1.type: expected \"physics\", \"express\", \"calibration\", \"monitoring\", \
             \"reserved\" or \"unknown\", found \"calib\"",
            "p.toml:14:8: stream.1.name: expected 1 to 64 letters, digits, `_` and `-`, found \"a.b\"",
            "p.toml:15:8: stream.1.robs: expected at least one ROB or sub-detector, found none; without the key all \
             are recorded",
            "p.toml:16:1: stream.2.name: missing; expected the name of the stream, such as \"Main\"",
            "p.toml:17:12: stream.2.prescale: expected an integer from 0 to 4294967295, found integer -1",
            "p.toml:18:1: stream.2.chain: unknown key; did you mean `chains`?",
            "p.toml:20:8: stream.3.name: expected another name than those of the streams before, found \"Main\", the \
             second of type \"physics\"",
            "p.toml:21:8: stream.3.robs: expected a sub-detector such as \"TILECAL_BARREL_A_SIDE\" or 0x51, a source \
             identifier such as \"0x00510003\", or a range of them such as \"0x00510000-0x0051000f\", found \"tile\"",
        ]
    );
}

#[test]
fn streams_and_the_rest_of_the_partition() {
    let main = "[[stream]]\nname = \"Main\"\n";
    let one = |streams: &str, overrides: &[&str]| {
        let errors = errors(streams, overrides);
        assert_eq!(errors.len(), 1, "{errors:?}");
        errors[0].clone()
    };
    assert_eq!(
        one(main, &["sfo.stream=physics_Main"]),
        "--set sfo.stream: not with [[stream]], where each stream has a type and a name of its own"
    );
    assert_eq!(
        one(main, &["sfo.dialect=bes3"]),
        "--set sfo.dialect: expected \"atlas\" with [[stream]], found \"bes3\": only its events say which streams they \
         are in"
    );
    assert_eq!(
        one(&format!("{main}chains = [\"e25i\"]\n"), &[]),
        "p.toml:10:10: stream.0.chains: [[stream]] chains need the table [menu], which is absent"
    );
    let menu = "chains = [\"e25\"]\n[[menu.chain]]\nname = \"e25i\"\nitem = \"L1_EM20I\"\n";
    assert_eq!(
        one(&format!("{main}{menu}"), &["pt={}"]),
        "p.toml:10:10: stream.0.chains: expected chains of [menu] (e25i), found \"e25\"; did you mean `e25i`?"
    );
    assert_eq!(
        one(&format!("{main}by_name = true\n{}", menu.replace("e25\"", "e25i\"")), &["pt={}"]),
        "p.toml:11:10: stream.0.chains: not with by_name = true: the stream takes events by chain or by name"
    );
    assert_eq!(
        one(&format!("{main}robs = [\"0x00510004\"]\n"), &[]),
        "p.toml:10:8: stream.0.robs: expected some of the ROBs 0x00510000-0x00510003, found 0x00510004"
    );
    let many: String = (0..33).map(|index| format!("[[stream]]\nname = \"s{index}\"\n")).collect();
    assert!(one(&many, &[]).ends_with(": stream: expected at most 32 streams, found 33"));
    assert_eq!(
        one(main, &["stream.1.name=x"]),
        "--set stream.1.name: expected the number of an item of the list, 0 to 0, found `1`"
    );
    let without_sfo = Partition::parse("p.toml", &format!("{}{main}", BEFORE.replace("[sfo]\n", "")), &[]);
    let error = without_sfo.expect_err("no recorder").to_string();
    assert!(error.ends_with(": stream: [[stream]] needs the table [sfo], which is absent"), "{error}");
}

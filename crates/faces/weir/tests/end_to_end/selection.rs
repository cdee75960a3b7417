//! The trigger example: what is selected, and that it does not depend on how the system is set up.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use base::ids::EventId;
use configuration::{Partition, RobSelection};
use dataflow::filter::streams::{StreamRule, streams_of};
use eformat::{Event, EventStatus};
use rol::Inputs;
use storage::FileReader;
use testkit::TempDir;
use trigger::{Decision, FILTER_RESULT, FilterResult, LEVEL2_RESULT, passed_of_trigger_info};

use crate::account::Summary;
use crate::files::{each_event, recorded};
use crate::running::{Ended, Job, examples};

#[test]
fn one_process_and_several_select_the_same_events() {
    let [one, several] = [false, true].map(|processes| {
        let job = Job::example("trigger").patient().events(2500).processes(processes);
        let (ended, summary) = job.run().expect_ok();
        (Selected::read(&ended), summary)
    });
    assert_eq!(one.0, several.0);
    assert_eq!(one.1.chains(), several.1.chains());
    let text = Trigger::without(&[]);
    one.0.check(&text, &one.1);
    for stream in ["physics_Main", "physics_MinBias", "calibration_EMCalo"] {
        assert!(!one.0.copies[stream].is_empty(), "{stream}");
    }
}

/// The express stream of the example is for so few events that a short run may have none.
#[test]
fn streams_hold_the_events_whose_chains_they_name() {
    let text = Trigger::without(&[]).with(r#"chains = ["e25i", "mu20"]"#, r#"chains = ["mu20", "j100"]"#);
    let (ended, summary) = text.job().patient().events(2500).run().expect_ok();
    let selected = Selected::read(&ended);
    selected.check(&text, &summary);
    let ids = |stream: &str| selected.copies[stream].keys().copied().collect::<BTreeSet<u64>>();
    let (main, express) = (ids("physics_Main"), ids("express_express"));
    assert!(express.is_subset(&main) && !express.is_empty());
    // Most of the main stream are jets.
    assert!(express.len() * 4 < main.len(), "{} of {}", express.len(), main.len());
}

#[test]
fn events_are_drawn_by_their_cross_sections() {
    const EVENTS: u64 = 3000;
    let text = Trigger::without(&["ef", "pt", "stream"]);
    let job = text.job().patient().set("l2sv.decisions", "\"force-accept\"").set("run.seed", "5");
    let (ended, summary) = job.events(EVENTS).run().expect_ok();
    assert_eq!(summary.count("recorded"), EVENTS);

    let partition = text.partition(&["run.seed=5"]);
    let inputs = Inputs::open(&partition).unwrap();
    let sample = inputs.sample().unwrap().sample();
    let drawn = |ordinal| inputs.sample().unwrap().event(ordinal).unwrap();
    for file in recorded(ended.output()) {
        each_event(&file, |bytes| {
            let event = Event::parse(bytes).unwrap();
            let row = drawn(event.global_id());
            assert_eq!(event.lvl1_info().next(), Some(sample.items(row)));
            for rob in event.robs(&event.unpacked_payload(1 << 20).unwrap()).map(Result::unwrap) {
                if let Ok(index) = sample.source_ids().binary_search(&rob.source_id().0) {
                    assert_eq!(rob.rod().unwrap().data(), sample.payload(row, index));
                }
            }
        });
    }

    let random_only = 1 << inputs_bit("L1_RD0");
    let weights: Vec<f64> = sample
        .files()
        .iter()
        .map(|file| {
            let facts: serde_json::Value =
                serde_json::from_slice(&fs::read(file.path.with_extension("json")).unwrap()).unwrap();
            let of = |key: &str| facts[key].as_f64().unwrap();
            let scale = of("cross_section_mb") / of("sum_of_weights_generated");
            let prescale = |event| if sample.items(event) == random_only { 0.01 } else { 1.0 };
            file.events.clone().map(|event| scale * sample.weight(event) * prescale(event)).sum::<f64>()
        })
        .collect();
    let total: f64 = weights.iter().sum();
    for (file, weight) in sample.files().iter().zip(&weights) {
        let found = (0..EVENTS).filter(|ordinal| file.events.contains(&drawn(*ordinal))).count() as f64;
        let expected = EVENTS as f64 * weight / total;
        assert!((found - expected).abs() < 6.0 * expected.sqrt() + 1.0, "{:?}: {found}, {expected}", file.path);
    }
}

fn inputs_bit(item: &str) -> u32 {
    let text = fs::read(examples().join("data/detector.json")).unwrap();
    let detector: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let items = detector["level1"]["items"].as_array().unwrap();
    let found = items.iter().find(|found| found["name"] == item).unwrap();
    found["bit"].as_u64().unwrap().try_into().unwrap()
}

#[test]
fn decisions_do_not_depend_on_how_level_2_is_set_up() {
    let expected = Decisions::of(&[], false);
    assert!(expected.level2.len() > 100, "{}", expected.level2.len());
    let setups: &[(&[(&str, &str)], bool)] = &[
        (&[("l2pu.workers", "1"), ("l2pu.count", "1")], false),
        (&[("l2pu.workers", "8"), ("l2pu.count", "3"), ("l2sv.assignment", "\"least-loaded\"")], true),
        (&[("l2sv.count", "2"), ("l2sv.group", "1")], false),
        (&[("ros.count", "1"), ("ros.checksum", "\"adler32\"")], false),
        (&[("ros.count", "20"), ("l2sv.count", "2")], false),
        (&[("dfm.clear_after", "\"recorded\""), ("sfo.count", "2")], true),
        (&[("l2pu.phased", "true")], false),
        (&[("ros.preprocessing", "\"zero-suppression\"")], false),
        (&[("pt.count", "3"), ("ef.count", "2")], false),
    ];
    for (setup, processes) in setups {
        assert_eq!(Decisions::of(setup, *processes), expected, "{setup:?}");
    }
}

/// Words of zero behind the data, left out again by the read-out systems or not.
#[test]
fn padding_changes_bytes_and_no_decision() {
    let expected = Decisions::of(&[], false);
    let padded = ("input.pad_to", "\"1 kB\"");
    let setups: &[&[(&str, &str)]] =
        &[&[padded], &[padded, ("ros.preprocessing", "\"zero-suppression\"")], &[padded, ("l2pu.phased", "true")]];
    for setup in setups {
        assert_eq!(Decisions::of(setup, false).without_bytes(), expected.clone().without_bytes(), "{setup:?}");
    }
    let network_bytes = |setup: &[(&str, &str)]| {
        let job = Job::example("trigger")
            .patient()
            .set("l2sv.decisions", "\"force-reject\"")
            .set("sfi.max_event_size", "\"1 MB\"");
        let job = setup.iter().fold(job, |job, (key, value)| job.set(key, value));
        let (_, summary) = job.events(500).processes(true).run().expect_ok();
        (summary.0["network"]["bytes"].as_u64().unwrap(), summary.chains())
    };
    let [plain, padded, suppressed] = [&[], setups[0], setups[1]].map(network_bytes);
    assert_eq!((&plain.1, &plain.1), (&padded.1, &suppressed.1));
    // Of 1 kB fragments some 100 bytes are data.
    assert!(suppressed.0 * 2 < padded.0, "{} of {}", suppressed.0, padded.0);
    assert!(suppressed.0 < plain.0 * 5 / 4, "{} for {}", suppressed.0, plain.0);
}

#[test]
fn everything_is_accepted_by_force() {
    for (processes, tables, passed) in [(false, &["ef", "pt", "stream"][..], 400), (true, &[], 0)] {
        let text = Trigger::without(tables);
        let job = text.job().patient().set("l2sv.decisions", "\"force-accept\"").events(400).processes(processes);
        let (ended, summary) = job.run().expect_ok();
        assert_eq!(summary.count("level2_accepted"), 400);
        // No time-out did it.
        assert_eq!(summary.count("level2_forced"), 0);
        let selected = Selected::read(&ended);
        assert!(selected.events.len() >= passed.max(1), "{summary:?}");
        let (_, as_found) = text.job().patient().events(400).run().expect_ok();
        for (chain, expected) in summary.chains().iter().zip(as_found.chains()) {
            assert_eq!(chain.level2, expected.level2, "{}: level 2 runs along", chain.name);
            assert!(chain.filter.1 >= expected.filter.1, "{}", chain.name);
        }
    }
}

#[test]
fn nothing_passes_a_rejection_by_force() {
    for processes in [false, true] {
        let job = Job::example("trigger").patient().set("l2sv.decisions", "\"force-reject\"");
        let (ended, summary) = job.events(400).processes(processes).run().expect_ok();
        assert_eq!((summary.count("level2_rejected"), summary.count("recorded")), (400, 0));
        assert!(recorded(ended.output()).is_empty());
        assert!(summary.chains().iter().any(|chain| chain.level2.1 > 0), "level 2 runs along");
    }
}

#[test]
fn items_are_vetoed_and_accepted_by_name() {
    let text = Trigger::without(&["ef", "pt", "stream"]);
    let (plain, _) = text.job().patient().events(1000).run().expect_ok();
    let all = Selected::read(&plain);
    let job =
        text.job().patient().set("l2sv.veto", r#"["L1_XE50"]"#).set("l2sv.force_accept", r#"["L1_EM20I", "L1_MU20"]"#);
    let (ended, _) = job.events(1000).run().expect_ok();
    let found = Selected::read(&ended);

    let inputs = Inputs::open(&text.partition(&[])).unwrap();
    let sample = inputs.sample().unwrap();
    let items = |event: u64| sample.sample().items(sample.event(event).unwrap());
    let has = |event: u64, names: &[&str]| names.iter().any(|name| items(event) >> inputs_bit(name) & 1 == 1);
    let passes = |event: &u64| {
        !has(*event, &["L1_XE50"]) && (all.events.contains_key(event) || has(*event, &["L1_EM20I", "L1_MU20"]))
    };
    let expected: BTreeSet<u64> = (0..1000).filter(passes).collect();
    assert_eq!(found.events.keys().copied().collect::<BTreeSet<_>>(), expected);
    assert!(expected.iter().any(|event| !all.events.contains_key(event)), "some are there by force");
}

#[test]
fn what_is_wrong_with_a_selection_is_told_with_its_place() {
    let cases: &[(&str, &str, &str, &str)] = &[
        (r#"item = "L1_2EM10I""#, r#"item = "L1_2EM11I""#, "menu.chain.1.item", "`L1_2EM11I`; known are L1_EM7"),
        (r#"threshold = "EM10I""#, r#"threshold = "EM11I""#, "menu.chain.1.threshold", "`EM11I` for electrons"),
        (r#"threshold = "MU20""#, r#"threshold = "EM20I""#, "menu.chain.3.threshold", "for muons; known are MU4"),
        (r#"layout = "rob160""#, r#"layout = "rob161""#, "menu.layout", "has rob160, rob4, rob40"),
        (r#"et = "40 GeV""#, r#"et = "40""#, "menu.chain.2.et", "the unit is missing"),
        (r#"et = "40 GeV""#, "", "menu.chain.2.et", "missing; chain \"g40\" needs a cut"),
        (r#"item = "L1_RD0""#, "", "menu.chain.8.item", "missing; expected a level-1 item such as"),
        (r#"name = "rnd""#, r#"name = "e25i""#, "menu.chain.8.name", "\"e25i\""),
        (r#"et = "40 GeV""#, "et = \"40 GeV\"\nprescale = 0", "menu.chain.2.prescale", "expected 1 or more"),
        (
            r#"et = "40 GeV""#,
            "et = \"40 GeV\"\nfilter_et = \"39 GeV\"",
            "menu.chain.2.filter_et",
            "40000 MeV, found 39000 MeV",
        ),
        (r#"algorithm = "jet""#, r#"algorithm = "jets""#, "menu.chain.5.algorithm", "did you mean `jet`?"),
        ("[l2sv]\n", "[l2sv]\nveto = [\"L1_XE51\"]\n", "l2sv.veto", "\"L1_XE51\"; known are L1_EM7"),
        ("[l2sv]\n", "[l2sv]\nforce_accept = [\"XE50\"]\n", "l2sv.force_accept", "\"XE50\"; known are L1_EM7"),
        ("[l2sv]\n", "[l2sv]\ndecisions = \"all\"\n", "l2sv.decisions", "\"force-reject\", found \"all\""),
        ("L1_RD0 = 100", "L1_RD1 = 100", "input.prescales.L1_RD1", "did you mean `L1_RD0`?"),
        (r#"algorithm = "menu""#, r#"algorithm = "filter.py""#, "pt.algorithm", "\"path/to/file.py:Class\""),
        (r#"algorithm = "menu""#, r#"algorithm = "filter.py:9a""#, "pt.algorithm", "\"path/to/file.py:Class\""),
    ];
    for (from, to, key, words) in cases {
        Trigger::without(&["stream"]).with(from, to).is_refused(key, words);
    }
    let unknown = Trigger::without(&[]).with(r#"chains = ["rnd"]"#, r#"chains = ["random"]"#);
    unknown.is_refused("stream.3.chains", "4j30, xe60, rnd), found \"random\"");
    let more: String = (0..56).map(|n| format!("[[menu.chain]]\nname = \"x{n}\"\nitem = \"L1_RD0\"\n\n")).collect();
    let too_many = Trigger::without(&["stream"]).with("[ros]", &format!("{more}[ros]"));
    too_many.is_refused("menu.chain", "65 chains; at most 64");
    let unbuilt = Trigger::without(&["ef", "sfo", "stream"]).with("[sfi]\ncount = 2", "[sfi]\ncount = 0");
    unbuilt.is_refused("pt", "needs events that are built");
}

/// The example with changes. The file is there as long as this.
pub(crate) struct Trigger {
    directory: TempDir,
    text: String,
}

impl Trigger {
    /// Without some of its tables.
    pub(crate) fn without(tables: &[&str]) -> Self {
        let text = fs::read_to_string(examples().join("trigger.toml")).unwrap();
        let data = format!("\"{}/", examples().join("data").display());
        let mut keeps = true;
        let lines = text.split_inclusive('\n').filter(|line| {
            if let Some(table) = line.strip_prefix('[') {
                let name = table.trim_start_matches('[').split(']').next().unwrap_or_default();
                keeps = !tables.contains(&name);
            }
            keeps
        });
        let text = lines.collect::<String>().replace("\"data/", &data);
        Self { directory: TempDir::new("trigger"), text }.written()
    }

    /// With other words at the first place where these are.
    pub(crate) fn with(mut self, from: &str, to: &str) -> Self {
        assert!(self.text.contains(from), "{from}");
        self.text = self.text.replacen(from, to, 1);
        self.written()
    }

    fn written(self) -> Self {
        fs::write(self.path(), &self.text).unwrap();
        self
    }

    fn path(&self) -> PathBuf {
        self.directory.join("trigger.toml")
    }

    /// A run of it.
    pub(crate) fn job(&self) -> Job {
        Job::of(&self.path())
    }

    fn partition(&self, overrides: &[&str]) -> Partition {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        Partition::load(self.path(), &overrides).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Both commands name the place, the key, and what was expected.
    fn is_refused(&self, key: &str, words: &str) {
        let path = self.path();
        for command in ["check", "run"] {
            let ended = Job::command(&[command.as_ref(), path.as_os_str()], 8 << 30).run().expect(1);
            let told = ended.stderr.lines().find(|line| line.contains(&format!(": {key}: ")));
            let line = told.unwrap_or_else(|| panic!("{key}: {}", ended.stderr));
            assert!(line.contains(words), "{words:?} in {line}");
            let place = line.strip_prefix(&path.display().to_string()).unwrap_or_else(|| panic!("{line}"));
            let numbers: Vec<&str> = place.splitn(4, ':').collect();
            assert!(numbers[1..3].iter().all(|number| number.parse::<u32>().is_ok_and(|n| n > 0)), "{line}");
        }
    }
}

/// Counts of a chain: input and accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChainCounts {
    name: String,
    pub(crate) level2: (u64, u64),
    filter: (u64, u64),
}

impl Summary {
    pub(crate) fn chains(&self) -> Vec<ChainCounts> {
        let chains = self.0["selection"]["chains"].as_array().unwrap().iter();
        let counts = chains.map(|chain| {
            let of = |key: &str| chain[key].as_u64().unwrap();
            ChainCounts {
                name: chain["name"].as_str().unwrap().to_owned(),
                level2: (of("level2_input"), of("level2_passed")),
                filter: (of("filter_input"), of("filter_passed")),
            }
        });
        counts.collect()
    }
}

/// All that was recorded of a run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Selected {
    /// By stream, by event.
    copies: BTreeMap<String, BTreeMap<u64, Copy>>,
    events: BTreeMap<u64, Results>,
}

/// An event as it was recorded, but for its time and the order of its fragments.
#[derive(Debug, PartialEq, Eq)]
struct Copy {
    header: Vec<u8>,
    robs: BTreeMap<u32, Vec<u8>>,
}

/// What an event says of its selection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Results {
    level2: Option<Decision>,
    filter: Option<FilterResult>,
    infos: [Vec<u32>; 3],
}

impl Selected {
    fn read(ended: &Ended) -> Self {
        let mut found = Self::default();
        for path in recorded(ended.output()) {
            let mut reader = FileReader::open(&path).unwrap();
            let stream = reader.header().metadata.as_ref().unwrap().value("Stream").unwrap().to_owned();
            while let Some(event) = reader.next_event().unwrap() {
                found.add(&stream, event.bytes);
            }
        }
        found
    }

    fn add(&mut self, stream: &str, bytes: &[u8]) {
        let event = Event::parse(bytes).unwrap();
        let is_partial = event.status().as_event().contains(EventStatus::PARTIAL);
        assert_eq!(is_partial, stream == "calibration_EMCalo", "{stream}");
        let mut results = Results {
            infos: [event.lvl1_info().collect(), event.lvl2_info().collect(), event.hlt_info().collect()],
            ..Results::default()
        };
        let mut robs = BTreeMap::new();
        for rob in event.robs(&event.unpacked_payload(1 << 20).unwrap()).map(Result::unwrap) {
            let source = rob.source_id();
            robs.insert(source.0, rob.fragment().bytes().to_vec());
            match source {
                LEVEL2_RESULT => results.level2 = Some(Decision::from_bytes(rob.rod().unwrap().data()).unwrap()),
                FILTER_RESULT => results.filter = Some(FilterResult::from_bytes(rob.rod().unwrap().data()).unwrap()),
                _ => assert!(!is_partial || source.0 >> 16 == 0x41, "{source:?} in {stream}"),
            }
        }
        let id = event.global_id();
        let known = self.events.entry(id).or_insert_with(|| results.clone());
        assert_eq!(*known, results, "the same in all copies");
        let before = self
            .copies
            .entry(stream.to_owned())
            .or_default()
            .insert(id, Copy { header: header_without_time(bytes), robs });
        assert!(before.is_none(), "event {id} twice in {stream}");
    }

    /// Each event agrees with itself and is in the streams of its chains.
    fn check(&self, text: &Trigger, summary: &Summary) {
        let partition = text.partition(&[]);
        let names: Vec<&str> = partition.menu.as_ref().unwrap().chain.iter().map(|chain| chain.name.as_str()).collect();
        let rules = partition.stream.iter().map(|stream| StreamRule {
            chains: stream
                .chains
                .iter()
                .fold(0, |set, chain| set | 1_u64 << names.iter().position(|name| name == chain).unwrap()),
            by_name: stream.by_name,
            prescale: stream.prescale.into(),
        });
        let rules: Vec<StreamRule> = rules.collect();
        let streams = partition.stream_names();
        assert!(partition.stream[2].robs.contains(&"0x41".parse::<RobSelection>().unwrap()));
        for (id, results) in &self.events {
            let (level2, filter) = (results.level2.unwrap(), results.filter.as_ref().unwrap());
            let decision = filter.decision;
            assert_eq!(filter.reason, "");
            assert_eq!((decision.missing_fragments, decision.bad_payloads), (0, 0));
            assert_eq!((level2.missing_robs, level2.bad_payloads), (0, 0));
            assert!(level2.accept() && decision.accept(), "{results:?}");
            assert_eq!(level2.passed, decision.input, "what passes level 2 runs in the filter");
            let [level1_info, level2_info, filter_info] = &results.infos;
            assert!(level1_info.iter().all(|items| *items == level2.items), "{results:?}");
            assert_eq!(passed_of_trigger_info(level2_info), Some(level2.passed));
            assert_eq!(passed_of_trigger_info(filter_info), Some(decision.passed));
            let expected = streams_of(&rules, EventId(*id), 0, decision.passed);
            for (bit, stream) in streams.iter().enumerate() {
                let has = self.copies.get(stream).is_some_and(|events| events.contains_key(id));
                assert_eq!(has, expected >> bit & 1 == 1, "event {id} in {stream}: {results:?}");
            }
        }
        self.check_counts(&names, summary);
    }

    /// What is recorded is what the chains counted: here no prescale rejects an event.
    fn check_counts(&self, names: &[&str], summary: &Summary) {
        assert_eq!(self.events.len() as u64, summary.count("recorded"));
        for (bit, chain) in summary.chains().iter().enumerate() {
            assert_eq!(chain.name, names[bit]);
            let passed = self
                .events
                .values()
                .filter(|results| results.filter.as_ref().is_some_and(|filter| filter.decision.passed >> bit & 1 == 1));
            assert_eq!(passed.count() as u64, chain.filter.1, "{}", chain.name);
            assert_eq!(chain.level2.1, chain.filter.0, "{}", chain.name);
        }
    }
}

/// What both levels decided.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Decisions {
    chains: Vec<ChainCounts>,
    level2: BTreeMap<u64, Decision>,
    filter: BTreeMap<u64, FilterResult>,
    payload_bytes: u64,
}

impl Decisions {
    fn of(setup: &[(&str, &str)], processes: bool) -> Self {
        let job = Job::example("trigger").patient().set("sfi.max_event_size", "\"1 MB\"");
        let job = setup.iter().fold(job, |job, (key, value)| job.set(key, value));
        let (ended, summary) = job.events(400).processes(processes).run().expect_ok();
        assert_eq!(summary.count("level2_forced"), 0);
        let events = Selected::read(&ended).events;
        Self {
            chains: summary.chains(),
            level2: events.iter().map(|(id, results)| (*id, results.level2.unwrap())).collect(),
            filter: events.into_iter().map(|(id, results)| (id, results.filter.unwrap())).collect(),
            payload_bytes: summary.0["selection"]["level2_data"]["payload_bytes"].as_u64().unwrap(),
        }
    }

    fn without_bytes(mut self) -> Self {
        self.level2.values_mut().for_each(|decision| decision.requested_payload_bytes = 0);
        Self { payload_bytes: 0, ..self }
    }
}

/// With 0 for the seconds and nanoseconds, behind the generic header with its status words and the type of its checksum.
fn header_without_time(event: &[u8]) -> Vec<u8> {
    let word = |index: usize| u32::from_le_bytes(event.as_chunks::<4>().0[index]) as usize;
    let (header_words, first) = (word(2), 7 + word(5));
    let mut header = event[..4 * header_words].to_vec();
    header[4 * first..4 * first + 8].fill(0);
    header
}

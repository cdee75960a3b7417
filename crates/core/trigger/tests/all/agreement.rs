//! Agreement with the reference selection on the physics samples.

use std::fs;
use std::path::Path;

use serde_json::Value;
use trigger::{Feature, Filter, Menu, Steering, Values};

use crate::common::{detector, level2, physics, reference_menu, sample};

/// All that the reference says about an event, as the arrays of its file.
struct Record {
    number: u64,
    accepted: bool,
    level2: u64,
    filter: u64,
    robs: u32,
    bytes: u32,
    features: Vec<Value>,
}

#[test]
fn events_agree_one_by_one() {
    let Some(physics) = physics("events_agree_one_by_one") else { return };
    let results = results(&physics);
    let events = results["events"].as_object().unwrap();
    assert_eq!(events.len(), 4);
    assert_eq!(events.values().map(|expected| expected.as_array().unwrap().len()).sum::<usize>(), 1450);
    for (name, expected) in events {
        let expected = expected.as_array().unwrap();
        let mut expected = expected.iter();
        run(&physics, name, |record, _| {
            let Some(expected) = expected.next() else { return };
            let found = serde_json::json!([
                record.number,
                u8::from(record.accepted),
                record.level2,
                record.filter,
                record.robs,
                record.bytes,
                record.features
            ]);
            assert_eq!(&found, expected, "{name}, event {}", record.number);
        });
        assert!(expected.next().is_none(), "{name} has more events in the reference");
    }
}

#[test]
fn samples_agree_in_all_counts() {
    let Some(physics) = physics("samples_agree_in_all_counts") else { return };
    let results = results(&physics);
    let samples = results["samples"].as_object().unwrap();
    assert_eq!(samples.len(), 10);
    let detector = detector(&physics, "rob160");
    let names: Vec<String> = reference_menu(&detector).names().map(str::to_owned).collect();
    for (name, expected) in samples {
        let mut counts = Counts::default();
        run(&physics, name, |record, event_bytes| counts.add(&record, event_bytes));
        assert_eq!(counts.events, expected["events"].as_u64().unwrap(), "{name}");
        assert_eq!(counts.level1, expected["l1_accepted"].as_u64().unwrap(), "{name}");
        assert_eq!(counts.level2, expected["l2_accepted"].as_u64().unwrap(), "{name}");
        assert_eq!(counts.filter, expected["ef_accepted"].as_u64().unwrap(), "{name}");
        for (bit, chain) in names.iter().enumerate() {
            assert_eq!(counts.chains[0][bit], expected["chains_l2"][chain].as_u64().unwrap(), "{name} {chain}");
            assert_eq!(counts.chains[1][bit], expected["chains_ef"][chain].as_u64().unwrap(), "{name} {chain}");
        }
        let requests = &expected["requests"];
        for (found, kind) in counts.executions.into_iter().zip(["em", "muon", "jet"]) {
            assert_eq!(found, requests[format!("{kind}_executions")].as_u64().unwrap(), "{name} {kind}");
        }
        let events = counts.level1 as f64;
        agrees(counts.fractions / events, &requests["mean_fraction_of_event_bytes"], 4, name);
        agrees(counts.robs as f64 / events, &requests["mean_robs_per_event"], 2, name);
    }
}

#[derive(Default)]
struct Counts {
    events: u64,
    level1: u64,
    level2: u64,
    filter: u64,
    chains: [[u64; 9]; 2],
    executions: [u64; 3],
    fractions: f64,
    robs: u64,
}

impl Counts {
    fn add(&mut self, record: &Record, event_bytes: usize) {
        self.events += 1;
        if !record.accepted {
            return;
        }
        self.level1 += 1;
        self.level2 += u64::from(record.level2 != 0);
        self.filter += u64::from(record.filter != 0);
        for (counts, set) in self.chains.iter_mut().zip([record.level2, record.filter]) {
            counts.iter_mut().enumerate().for_each(|(bit, count)| *count += set >> bit & 1);
        }
        for feature in &record.features {
            let kind = match feature[0].as_str().unwrap() {
                "e25i" | "2e15i" | "g40" => 0,
                "mu20" | "2mu6" => 1,
                "j100" | "4j30" => 2,
                _ => continue,
            };
            self.executions[kind] += 1;
        }
        self.fractions += f64::from(record.bytes) / event_bytes as f64;
        self.robs += u64::from(record.robs);
    }
}

fn run(physics: &Path, name: &str, mut take: impl FnMut(Record, usize)) {
    let detector = detector(physics, "rob160");
    let menu = reference_menu(&detector);
    let mut steering = Steering::new(menu.clone());
    let mut filter = Filter::new(menu.clone());
    sample::for_each_event(&physics.join(format!("{name}.parquet")), |event| {
        let mut record = Record {
            number: event.number,
            accepted: event.accepted,
            level2: 0,
            filter: 0,
            robs: 0,
            bytes: 0,
            features: Vec::new(),
        };
        if event.accepted {
            let decision = level2(&mut steering, &event);
            assert_eq!((decision.missing_robs, decision.bad_payloads), (0, 0));
            record.level2 = decision.passed;
            record.robs = decision.requested_robs;
            record.bytes = decision.requested_payload_bytes;
            record.features = steering.features().map(|feature| array(&menu, &feature)).collect();
            let filtered = filter.decide(event.number, &event.slices());
            assert_eq!((filtered.missing_fragments, filtered.bad_payloads), (0, 0));
            record.filter = filtered.passed & decision.passed;
            assert_eq!(record.filter, filtered.passed, "without a level-2 result the same chains run and pass");
            let energy = filter.features().filter(|feature| feature.roi.is_none());
            record.features.extend(energy.map(|feature| array(&menu, &feature)));
            let of_level2: Vec<Feature> = steering.features().collect();
            let of_filter: Vec<Feature> = filter.features().filter(|feature| feature.roi.is_some()).collect();
            assert_eq!(of_filter, of_level2, "regions of interest from their fragments are those of the sample");
        }
        take(record, event.bytes());
    });
}

/// A feature as the reference writes it.
fn array(menu: &Menu, feature: &Feature) -> Value {
    let chain = menu.names().nth(usize::from(feature.chain)).unwrap();
    let roi = feature.roi.map_or(-1, i64::from);
    let pass = u8::from(feature.passed);
    match feature.values {
        Values::Em(em) => {
            let (hot, had) = (em.hot_cell.map_or(-1, i64::from), em.hadronic_mev.unwrap_or(-1));
            serde_json::json!([
                chain,
                roi,
                em.et37_mev,
                em.et77_mev,
                em.ring_mev,
                em.et_mev,
                hot,
                had,
                em.track_qpt_q,
                pass
            ])
        }
        Values::Muon { stub_qpt_q, track_qpt_q } => serde_json::json!([chain, roi, stub_qpt_q, track_qpt_q, pass]),
        Values::Jet { et_mev } | Values::MissingEt { et_mev } => serde_json::json!([chain, roi, et_mev, pass]),
    }
}

/// The reference rounds its means.
fn agrees(found: f64, expected: &Value, decimals: i32, name: &str) {
    let expected = expected.as_f64().unwrap();
    assert!((found - expected).abs() <= 0.5001 * 10_f64.powi(-decimals), "{name}: {found} for {expected}");
}

fn results(physics: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(physics.join("reference_results.json")).unwrap()).unwrap()
}

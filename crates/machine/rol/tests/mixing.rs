//! Events of several files drawn by their cross sections, on files made from the sample that the project ships.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use configuration::Partition;
use dataflow::level1::trigger::TriggerSource;
use rol::{InputError, Inputs, ItemsError, Mixture, Sample, SampleError, SampleFacts, SampleInput, SampleTriggers};
use testkit::TempDir;

/// Copies of the sample with descriptions of their own.
struct Files {
    directory: TempDir,
    paths: Vec<PathBuf>,
}

impl Files {
    fn new(cross_sections_mb: &[f64]) -> Self {
        let directory = TempDir::new("rol-mixing");
        let made = |(index, cross_section_mb): (usize, &f64)| {
            let path = directory.join(format!("sample_{index}.parquet"));
            fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/data/zee_mu0.parquet"), &path)
                .unwrap();
            let text = format!(
                "{{\"cross_section_mb\": {cross_section_mb}, \"sum_of_weights_generated\": 2500.0, \"events_stored\": 2500}}"
            );
            fs::write(path.with_extension("json"), text).unwrap();
            path
        };
        let paths = cross_sections_mb.iter().enumerate().map(made).collect();
        Self { directory, paths }
    }

    fn partition(&self, overrides: &[&str]) -> Partition {
        let detector = self.directory.join("detector.json");
        fs::write(&detector, r#"{"level1": {"items": [{"name": "L1_EM7", "bit": 0}, {"name": "L1_RD0", "bit": 17}]}}"#)
            .unwrap();
        let text = format!(
            "[partition]\nname = \"p\"\n[input]\nfiles = {:?}\nmix = \"cross-section\"\nrepeat = true\ndetector = {:?}\n\
             [level1]\nsource = \"sample\"\n[ros]\ncount = 8\n[sfi]\ncount = 1\n",
            self.paths, detector
        );
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        Partition::parse("p.toml", &text, &overrides).unwrap_or_else(|error| panic!("{error}"))
    }
}

#[test]
fn files_are_drawn_by_their_cross_sections() {
    let files = Files::new(&[3e-6, 1e-6]);
    let inputs = Inputs::open(&files.partition(&[])).unwrap();
    let input = inputs.sample().unwrap();
    let of_second = input.sample().files()[1].events.clone();
    let draws = 40_000;
    let second = (0..draws).filter(|ordinal| of_second.contains(&input.event(*ordinal).unwrap())).count();
    // Five standard deviations.
    assert!(second.abs_diff(10_000) < 5 * 87, "{second}");
    let total = input.mixture().unwrap().cross_section_mb().unwrap();
    assert!((total / (4e-6 * 1843.0 / 2500.0) - 1.0).abs() < 1e-9, "{total}");
}

#[test]
fn files_can_be_drawn_equally_often_without_descriptions() {
    let files = Files::new(&[3e-6, 1e-6]);
    files.paths.iter().for_each(|path| fs::remove_file(path.with_extension("json")).unwrap());
    let inputs = Inputs::open(&files.partition(&["input.mix=equal"])).unwrap();
    let input = inputs.sample().unwrap();
    let of_second = input.sample().files()[1].events.clone();
    let drawn: Vec<usize> = (0..40_000).map(|ordinal| input.event(ordinal).unwrap()).collect();
    let second = drawn.iter().filter(|event| of_second.contains(event)).count();
    // Five standard deviations.
    assert!(second.abs_diff(20_000) < 5 * 100, "{second}");
    assert_eq!(input.mixture().unwrap().cross_section_mb(), None);
}

#[test]
fn everybody_draws_the_same_event_for_the_same_ordinal() {
    let files = Files::new(&[3e-6, 1e-6]);
    let opened = [0, 1].map(|_| Inputs::open(&files.partition(&["run.seed=7"])).unwrap());
    let mut triggers = opened[0].triggers().unwrap();
    let input = opened[1].sample().unwrap();
    for ordinal in (0..3000).rev().chain([u64::MAX]) {
        let event = input.event(ordinal).unwrap();
        assert_eq!(triggers.trigger(ordinal), Some(input.sample().trigger(event)));
    }
    let other = Inputs::open(&files.partition(&["run.seed=8"])).unwrap();
    let draw = |inputs: &Inputs| (0..100).map(|at| inputs.sample().unwrap().event(at)).collect::<Vec<_>>();
    assert_ne!(draw(&other), draw(&opened[0]));
}

#[test]
fn without_repeat_a_mixture_ends_after_as_many_events_as_there_are() {
    let files = Files::new(&[1e-6]);
    let inputs = Inputs::open(&files.partition(&["input.repeat=false"])).unwrap();
    let mut triggers = inputs.triggers().unwrap();
    assert!(triggers.trigger(1842).is_some() && triggers.trigger(1843).is_none());
}

#[test]
fn events_of_prescaled_items_alone_are_rarer() {
    let files = Files::new(&[1e-6]);
    let sample = Arc::new(Sample::load(&files.paths).unwrap());
    let random_alone: Vec<usize> = (0..sample.events()).filter(|event| sample.items(*event) == 1 << 17).collect();
    let share = |inputs: &Inputs| inputs.sample().unwrap().mixture().unwrap().cross_section_mb().unwrap();
    let all = share(&Inputs::open(&files.partition(&[])).unwrap());
    let fewer = share(&Inputs::open(&files.partition(&["input.prescales.L1_RD0=100"])).unwrap());
    let expected = (1843.0 - 0.99 * random_alone.len() as f64) / 1843.0;
    assert!((fewer / all - expected).abs() < 1e-9, "{} of {all}, {} random alone", fewer, random_alone.len());
    let unknown = Inputs::open(&files.partition(&["input.prescales.L1_RD9=2"])).unwrap_err();
    assert!(matches!(unknown, InputError::Items(ItemsError::Unknown { .. })));
    let text = unknown.to_string();
    assert!(text.starts_with("input.prescales.L1_RD9: unknown item") && text.ends_with("has L1_EM7, L1_RD0"), "{text}");
}

#[test]
fn padded_events_fit_into_event_builders() {
    let files = Files::new(&[1e-6]);
    let error = Inputs::open(&files.partition(&["input.pad_to=1 kB", "sfi.max_event_size=100 kB"])).unwrap_err();
    assert!(matches!(error, InputError::EventTooLarge { max_bytes: 100_000, .. }), "{error}");
    let inputs = Inputs::open(&files.partition(&["input.pad_to=1 kB"])).unwrap();
    assert_eq!(inputs.sample().unwrap().pad_bytes(), 1000);
}

#[test]
fn descriptions_that_are_none_are_errors() {
    let files = Files::new(&[1e-6]);
    let json = files.paths[0].with_extension("json");
    let sample = Sample::load(&files.paths).unwrap();
    let message = |text: Option<&str>| {
        match text {
            Some(text) => fs::write(&json, text).unwrap(),
            None => fs::remove_file(&json).unwrap(),
        }
        let error = Mixture::new(&sample, &[], 1).unwrap_err();
        assert!(error.to_string().contains("sample_0.json"), "{error}");
        error
    };
    assert!(matches!(message(None), SampleError::NoFacts { .. }));
    assert!(matches!(message(Some("{")), SampleError::Json { .. }));
    for (text, bad) in [
        ("{}", "cross_section_mb"),
        (r#"{"cross_section_mb": 0}"#, "cross_section_mb"),
        (r#"{"cross_section_mb": 1, "sum_of_weights_generated": "2"}"#, "sum_of_weights_generated"),
        (r#"{"cross_section_mb": 1, "sum_of_weights_generated": 2}"#, "events_stored"),
        (r#"{"cross_section_mb": 1, "sum_of_weights_generated": 2, "events_stored": 3}"#, "events_stored"),
    ] {
        assert!(matches!(message(Some(text)), SampleError::Fact { key, .. } if key == bad), "{text}");
    }
}

#[test]
fn triggers_follow_the_mixture() {
    let files = Files::new(&[1e-6]);
    let sample = Arc::new(Sample::load(&files.paths).unwrap());
    let mixture = Arc::new(Mixture::new(&sample, &[], 5).unwrap());
    let input = SampleInput::new(Arc::clone(&sample), true).mixed(Arc::clone(&mixture));
    assert_eq!(SampleTriggers::new(input).trigger(9), Some(sample.trigger(mixture.event(9))));
    assert_eq!(SampleFacts::beside(&files.paths[0]).unwrap().events, 2500);
}

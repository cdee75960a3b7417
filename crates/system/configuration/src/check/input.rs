//! What the keys of the inputs demand of each other: `[input]`, `[level1]` and the preprocessing of `[ros]`.

use super::{Checker, word};
use crate::decimal::Decimal;
use crate::problem::did_you_mean;
use crate::tables::{
    FRAGMENT_OVERHEAD_BYTES, Generator, Kinds, Level1, Level1Source, Position, Preprocessing, RosInput, Spacing,
    Spectrum,
};
use crate::units::Interval;

impl Checker<'_> {
    pub(super) fn inputs(&mut self) {
        self.sample_options();
        self.preprocessing();
        if let Some(level1) = &self.partition.level1 {
            self.level1_source(level1);
            self.slices(level1);
            self.processors(level1);
            self.generator(level1);
        }
    }

    fn sample_options(&mut self) {
        let p = self.partition;
        let (ros, input) = (&p.ros, &p.input);
        let has_sample = ros.input == RosInput::Sample || p.played_input() == Some(RosInput::Sample);
        let only_for_samples = [("input.mix", input.mix.is_some()), ("input.pad_to", input.pad_to.is_some())];
        for (key, present) in only_for_samples {
            if present && !has_sample {
                let message = format!("only for ros.input = \"sample\", which is {}", word(ros.input));
                self.problem(&[key, "ros.input"], message);
            }
        }
        if let Some(pad_to) = input.pad_to.filter(|_| has_sample) {
            let needed = pad_to.bytes().saturating_add(FRAGMENT_OVERHEAD_BYTES);
            if needed > ros.page_size.bytes() {
                let message = format!(
                    "expected at least {needed} B for fragments of input.pad_to = \"{pad_to}\" with their headers, found {}",
                    ros.page_size
                );
                self.problem(&["ros.page_size", "input.pad_to"], message);
            }
        }
        self.prescales();
    }

    fn prescales(&mut self) {
        let input = &self.partition.input;
        for (item, prescale) in &input.prescales {
            if *prescale == 0 {
                self.problem(&[&format!("input.prescales.{item}")], "expected an integer from 1, found 0".to_owned());
            }
        }
        if input.prescales.is_empty() {
            return;
        }
        if input.mix.is_none() {
            let message = "they need input.mix, which is absent".to_owned();
            self.problem(&["input.prescales", "input.mix"], message);
        }
        if input.detector.is_none() {
            let message = "missing; input.prescales needs the detector description that names the items".to_owned();
            self.problem(&["input.detector", "input.prescales"], message);
        }
    }

    /// Judged only where the detector description can be read: data may be on another machine.
    pub(super) fn names_of_prescales(&mut self) {
        let input = &self.partition.input;
        let path = input.detector.as_deref().filter(|_| !input.prescales.is_empty()).map(std::path::Path::new);
        let is_small = |path: &&std::path::Path| {
            path.metadata().is_ok_and(|about| about.is_file() && about.len() <= DETECTOR_BYTES_MAX)
        };
        let text = path.filter(is_small).and_then(|path| std::fs::read(path).ok());
        let root: Option<serde_json::Value> = text.and_then(|text| serde_json::from_slice(&text).ok());
        let Some(items) = root.as_ref().and_then(|root| root["level1"]["items"].as_array()) else { return };
        let names: Vec<&str> = items.iter().filter_map(|item| item["name"].as_str()).collect();
        for item in input.prescales.keys().filter(|item| !names.contains(&item.as_str())) {
            let message =
                format!("unknown level-1 item; input.detector has {}{}", names.join(", "), did_you_mean(item, &names));
            self.problem(&[&format!("input.prescales.{item}")], message);
        }
    }

    fn preprocessing(&mut self) {
        let ros = &self.partition.ros;
        if ros.suppress_below != 0 && ros.preprocessing == Preprocessing::None {
            let message = "only for ros.preprocessing = \"zero-suppression\", which is \"none\"".to_owned();
            self.problem(&["ros.suppress_below", "ros.preprocessing"], message);
        }
    }

    /// Each source has its own keys.
    fn level1_source(&mut self, level1: &Level1) {
        let source = level1.source;
        let keys = [
            ("level1.file", level1.file.is_some(), Level1Source::File, true),
            ("level1.processor", !level1.processor.is_empty(), Level1Source::External, true),
            ("level1.leader", level1.leader.is_some(), Level1Source::Link, false),
            ("level1.slice", level1.slice.is_some(), Level1Source::Time, false),
            ("level1.window", level1.window.is_some(), Level1Source::Time, false),
            ("level1.before", level1.before.is_some(), Level1Source::Time, false),
            ("level1.after", level1.after.is_some(), Level1Source::Time, false),
            ("level1.grace", level1.grace.is_some() && source != Level1Source::Link, Level1Source::Time, false),
            (
                "level1.join_timeout",
                level1.join_timeout != Level1::default().join_timeout,
                Level1Source::External,
                false,
            ),
            (
                "level1.generator",
                level1.generator != Generator::default() && !level1.plays_processors(),
                Level1Source::Emulator,
                false,
            ),
        ];
        for (key, present, of, needed) in keys {
            if present && source != of {
                let message = format!("only for level1.source = {}, which is {}", word(of), word(source));
                self.problem(&[key, "level1.source"], message);
            } else if needed && !present && source == of {
                let message = format!("missing; level1.source = {} needs it", word(of));
                self.problem(&[key, "level1.source"], message);
            }
        }
        let has_rate = level1.rate.is_some() && !level1.plays_processors();
        for (key, present) in [("level1.rate", has_rate), ("level1.profile", !level1.profile.is_empty())] {
            if !matches!(source, Level1Source::External | Level1Source::Link | Level1Source::Time) || !present {
                continue;
            }
            let message = format!("not with level1.source = {}: triggers are issued as they come", word(source));
            self.problem(&[key, "level1.source"], message);
        }
        if level1.spacing == Spacing::Poisson && level1.plays_processors() {
            let message = "not with processors that are played: they send at equal distances".to_owned();
            self.problem(&["level1.spacing", "level1.processor"], message);
        }
        if level1.join_timeout == Interval::default() {
            self.problem(&["level1.join_timeout"], "expected a time above 0, found \"0 s\"".to_owned());
        }
        if level1.file.as_deref() == Some("") {
            self.problem(&["level1.file"], "expected the path of a file, found \"\"".to_owned());
        }
    }

    fn generator(&mut self, level1: &Level1) {
        let generator = &level1.generator;
        let Kinds { em, jet, muon } = generator.kinds;
        if em == 0 && jet == 0 && muon == 0 {
            let message = "expected a weight above 0, found only 0".to_owned();
            self.problem(&["level1.generator.kinds"], message);
        }
        if generator.et_min.mev() > ET_MAX_MEV || generator.et_mean_above.mev() > ET_MAX_MEV {
            let key = if generator.et_min.mev() > ET_MAX_MEV { "et_min" } else { "et_mean_above" };
            let message = "expected at most \"20 TeV\", more than any collision has".to_owned();
            self.problem(&[&format!("level1.generator.{key}")], message);
        }
        if generator.spectrum == Spectrum::Fixed && generator.et_mean_above != Generator::default().et_mean_above {
            let message = "not for level1.generator.spectrum = \"fixed\"".to_owned();
            self.problem(&["level1.generator.et_mean_above", "level1.generator.spectrum"], message);
        }
        let turn = 6_283_185;
        for (key, value, default, range) in [
            ("eta", generator.eta, Generator::default().eta, -2_500_000..=2_500_000),
            ("phi", generator.phi, Generator::default().phi, 0..=turn),
            ("width", generator.width, Generator::default().width, 1..=turn / 2),
        ] {
            let key = format!("level1.generator.{key}");
            let [min, max] = [*range.start(), *range.end()].map(Decimal::from_millionths);
            if !(min..=max).contains(&value) {
                self.problem(&[&key], format!("expected a number from {min} to {max}, found {value}"));
            } else if generator.position == Position::Flat && value != default {
                let message = "only for level1.generator.position = \"hot-spot\", which is \"flat\"".to_owned();
                self.problem(&[&key, "level1.generator.position"], message);
            }
        }
    }
}

/// Hundred times what a description has.
const DETECTOR_BYTES_MAX: u64 = 1 << 20;
const ET_MAX_MEV: u64 = 20_000_000;

//! What keys demand of each other, and the ranges of numbers: a configuration that passes describes a system that can exist.

mod bus;
mod carriers;
mod collector;
mod emulated_sources;
mod faults;
mod frames;
mod hosts;
mod input;
mod links;
mod played;
mod ports;
mod processors;
mod push;
mod roc;
mod selection;
mod simulation;
mod streams;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::partition::Partition;
use crate::places::place;
use crate::problem::{Place, Problem, did_you_mean};
use crate::ranges::ranges;
use crate::source::Node;
use crate::tables::{
    CORES_MAX, ClearAfter, Compression, Control, Cores, DfmInput, Dialect, Durability, EventOrder,
    FRAGMENT_OVERHEAD_BYTES, FilterPolicy, FragmentKind, Level1Source, RosInput, SamplingStage, Sfo, SizeDistribution,
};
use crate::units::{Interval, Size};

/// All that is wrong with `partition` beyond its single values; what depends on a key in `bad` is not judged.
pub(crate) fn check(partition: &Partition, root: &Node, bad: &BTreeSet<String>) -> Vec<Problem> {
    let mut checker = Checker { partition, root, bad, problems: Vec::new() };
    checker.required();
    checker.secrets();
    checker.names();
    checker.bus();
    checker.collector();
    checker.ranges();
    checker.intervals();
    checker.topology();
    checker.input();
    checker.inputs();
    checker.links();
    checker.fragment();
    checker.capacities();
    checker.push();
    checker.roc();
    checker.ports();
    checker.hosts();
    checker.carriers();
    checker.recording();
    checker.selection();
    checker.streams();
    checker.sampling();
    checker.cores();
    checker.simulation();
    checker.problems
}

/// What can be told only with the files that the configuration names, and with its secrets: others get it without.
pub(crate) fn check_files(partition: &Partition, root: &Node) -> Vec<Problem> {
    let bad = BTreeSet::new();
    let mut checker = Checker { partition, root, bad: &bad, problems: Vec::new() };
    checker.names_of_menu();
    checker.names_of_prescales();
    checker.keys_of_sources();
    checker.keys_of_processors();
    checker.problems
}

struct Checker<'a> {
    partition: &'a Partition,
    root: &'a Node,
    bad: &'a BTreeSet<String>,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    /// Command lines are shown to all users of a machine.
    fn secrets(&mut self) {
        let key = "partition.key";
        if self.root.get(key).is_some_and(|node| matches!(node.place, Place::Override { .. })) {
            let message = "a secret: everybody can read the command line; expected it in the configuration file, or nowhere: \
                           then each run draws one of its own";
            self.problem(&[key], message.to_owned());
        }
    }

    fn required(&mut self) {
        self.require("partition.name", "the name of the partition, such as \"test-beam\"");
        self.require("sfi.count", "the number of event builders, such as 2");
        if self.partition.ros.input == RosInput::Emulator {
            self.require("ros.count", "the number of read-out systems, such as 4");
        }
    }

    fn require(&mut self, key: &str, expected: &str) {
        if self.root.get(key).is_none() {
            self.problem(&[key], format!("missing; expected {expected}"));
        }
    }

    fn sampling(&mut self) {
        if let Some(item) = self.partition.sampling.items.iter().find(|item| **item >= LEVEL1_ITEMS) {
            let message = format!("expected numbers of level-1 items from 0 to {}, found {item}", LEVEL1_ITEMS - 1);
            self.problem(&["sampling.items"], message);
        }
        if self.partition.sampling.stages.contains(&SamplingStage::Efd) && self.partition.ef.is_none() {
            let message = "expected \"efd\" with an event filter alone: there is no [ef]".to_owned();
            self.problem(&["sampling.stages"], message);
        }
        if self.partition.sampling.stages.contains(&SamplingStage::Ebif) && self.partition.roc.is_none() {
            let message = "expected \"ebif\" with read-out crates alone: there is no [roc]".to_owned();
            self.problem(&["sampling.stages"], message);
        }
    }

    fn names(&mut self) {
        let name = &self.partition.partition.name;
        if self.root.get("partition.name").is_some() && (!is_word(name) || name.len() > NAME_LENGTH_MAX) {
            self.problem(
                &["partition.name"],
                format!("expected 1 to {NAME_LENGTH_MAX} letters, digits, `_` and `-`, found {name:?}"),
            );
        }
        if self.partition.output.directory.is_empty() {
            self.problem(&["output.directory"], "expected a folder, found \"\"".to_owned());
        }
        let Control { catalogue, references, bus_login, otlp_certificate, otlp_headers, .. } = &self.partition.control;
        for (key, file) in [
            ("control.catalogue", catalogue),
            ("control.references", references),
            ("control.bus_login", bus_login),
            ("control.otlp_certificate", otlp_certificate),
            ("control.otlp_headers", otlp_headers),
        ] {
            if file.as_deref() == Some("") {
                self.problem(&[key], "expected a file, found \"\"".to_owned());
            }
        }
        if self.partition.input.files.iter().any(String::is_empty) {
            self.problem(&["input.files"], "expected paths of files, found \"\"".to_owned());
        }
        let congestion = self.partition.transport.congestion.as_deref();
        if congestion.is_some_and(|name| !is_word(name)) {
            self.problem(
                &["transport.congestion"],
                "expected the name of a congestion control, such as \"reno\"".to_owned(),
            );
        }
        if let Some(sfo) = &self.partition.sfo {
            self.file_name_parts(sfo);
        }
    }

    fn file_name_parts(&mut self, sfo: &Sfo) {
        if !is_word(&sfo.project) {
            let message = format!("expected letters, digits, `_` and `-`, found {:?}", sfo.project);
            self.problem(&["sfo.project"], message);
        }
        let (kind, name) = (sfo.stream_type(), sfo.stream_name());
        if kind == "debug" {
            let message = format!(
                "expected another type than debug, which is for what the event filter fails on, found {:?}",
                sfo.stream()
            );
            self.problem(&["sfo.stream"], message);
        } else if !STREAM_TYPES.contains(&kind) {
            let message = format!(
                "expected a stream such as \"physics_Main\" that starts with one of {}, found {:?}{}",
                STREAM_TYPES.join(", "),
                sfo.stream(),
                did_you_mean(kind, STREAM_TYPES)
            );
            self.problem(&["sfo.stream"], message);
        } else if !is_word(name) {
            let message =
                format!("expected a name of letters, digits, `_` and `-` behind \"{kind}_\", found {:?}", sfo.stream());
            self.problem(&["sfo.stream"], message);
        }
    }

    fn ranges(&mut self) {
        for (key, value, range) in ranges(self.partition) {
            if !range.contains(&value) {
                let message = format!("expected an integer from {} to {}, found {value}", range.start(), range.end());
                self.problem(&[key], message);
            }
        }
    }

    fn cores(&mut self) {
        let partition = self.partition;
        self.cores_of("processes.cores", "", &partition.processes.cores);
        for (place, host) in partition.host.iter().enumerate() {
            if let Some(cores) = &host.cores {
                self.cores_of(&format!("host.{place}.cores"), &partition.whose(Some(place)), cores);
            }
        }
    }

    fn cores_of(&mut self, key: &str, whose: &str, cores: &Cores) {
        let last = CORES_MAX - 1;
        if let Some(core) = cores.all().find(|core| *core > last) {
            self.problem(&[key], format!("{whose}expected cores from 0 to {last}, found {core}"));
        }
    }

    fn intervals(&mut self) {
        let p = self.partition;
        if p.run.events == Some(0) {
            self.problem(&["run.events"], "expected at least 1, found 0; without the key there is no limit".to_owned());
        }
        let mut intervals = vec![
            ("run.stop_timeout", p.run.stop_timeout),
            ("ros.request_timeout", p.ros.request_timeout),
            ("dfm.build_timeout", p.dfm.build_timeout),
            ("dfm.clear_age", p.dfm.clear_age),
            ("sfi.request_timeout", p.sfi.request_timeout),
            ("processes.start_timeout", p.processes.start_timeout),
            ("processes.restart_window", p.processes.restart_window),
            ("processes.lease", p.processes.lease),
            ("processes.hang_timeout", p.processes.hang_timeout),
        ];
        if let Some(l2sv) = &p.l2sv {
            intervals.extend([("l2sv.timeout", l2sv.timeout), ("l2sv.group_age", l2sv.group_age)]);
        }
        intervals.extend(p.run.duration.map(|duration| ("run.duration", duration)));
        match p.run.size {
            Some(size) if size.bytes() == 0 => {
                self.problem(&["run.size"], "expected a size above 0, found \"0 B\"".to_owned());
            }
            Some(_) if p.sfo.is_none() => {
                let message = "needs the table [sfo], which is absent: nothing would be recorded".to_owned();
                self.problem(&["run.size", "sfo"], message);
            }
            _ => {}
        }
        intervals.extend(p.l2pu.as_ref().map(|l2pu| ("l2pu.request_timeout", l2pu.request_timeout)));
        intervals.extend(p.sfo.as_ref().map(|sfo| ("sfo.fsync_age", sfo.fsync_age)));
        for (key, interval) in intervals {
            if interval == Interval::default() {
                self.problem(&[key], "expected a time above 0, found \"0 s\"".to_owned());
            }
        }
        let level1_rate = p.level1.as_ref().and_then(|level1| level1.rate);
        for (key, rate) in [("level1.rate", level1_rate), ("dfm.rate", p.dfm.rate)] {
            if rate.is_some_and(|rate| rate.millihertz() == 0) {
                self.problem(
                    &[key],
                    "expected a rate above 0, found \"0 Hz\"; without the key there is no limit".to_owned(),
                );
            }
        }
    }

    /// Which tables go together, and what feeds the DFM.
    fn topology(&mut self) {
        let p = self.partition;
        let (level1, l2sv, l2pu) = (p.level1.is_some(), p.l2sv.is_some(), p.l2pu.is_some());
        for (table, present, needed, there) in
            [("l2sv", l2sv, "l2pu", l2pu), ("l2sv", l2sv, "level1", level1), ("l2pu", l2pu, "l2sv", l2sv)]
        {
            if present && !there {
                self.problem(&[table, needed], format!("[{table}] needs the table [{needed}], which is absent"));
            }
        }
        let input = p.dfm.input;
        let due = match (l2sv, level1) {
            (true, _) => DfmInput::Level2,
            (false, true) => DfmInput::Level1,
            (false, false) => DfmInput::SelfTrigger,
        };
        if input != due {
            let because = match (input, due) {
                (DfmInput::Level2, _) => "the table [l2sv] is absent",
                (DfmInput::Level1, DfmInput::SelfTrigger) => "the table [level1] is absent",
                (_, DfmInput::Level2) => "the decisions of [l2sv] would go nowhere",
                _ => "the triggers of [level1] would go nowhere",
            };
            let message = format!("expected {}, found {}: {because}", word(due), word(input));
            self.problem(&["dfm.input", "l2sv", "level1"], message);
        }
        if p.dfm.rate.is_some() && input != DfmInput::SelfTrigger {
            let message = format!(
                "only for dfm.input = \"self\", which is {}; the key of other triggers is level1.rate",
                word(input)
            );
            self.problem(&["dfm.rate", "dfm.input"], message);
        }
    }

    fn input(&mut self) {
        let p = self.partition;
        let input = p.ros.input;
        if let Some(level1) = &p.level1 {
            let agree = matches!(
                (level1.source, input),
                (Level1Source::Emulator, RosInput::Emulator)
                    | (Level1Source::Sample, RosInput::Sample)
                    | (Level1Source::Replay, RosInput::Replay)
                    | (Level1Source::Link | Level1Source::Time, RosInput::Links)
                    | (
                        Level1Source::File | Level1Source::External,
                        RosInput::Emulator | RosInput::Sample | RosInput::Replay
                    )
                    | (Level1Source::External, RosInput::Links)
            );
            if !agree {
                let (of_level1, found) = (word(level1.source), word(input));
                let message = match (level1.source, input) {
                    (_, RosInput::Links) => format!("{found} needs level1.source = {LINKED}, which is {of_level1}"),
                    (Level1Source::Link | Level1Source::Time, _) => {
                        format!("expected \"links\" with level1.source = {of_level1}, found {found}")
                    }
                    _ => format!("expected the same as level1.source, which is {of_level1}, found {found}"),
                };
                self.problem(&["ros.input", "level1.source"], message);
            }
        } else if input != RosInput::Emulator {
            let source = if input == RosInput::Links { LINKED.to_owned() } else { word(input) };
            let message = format!("{} needs the table [level1] with source = {source}", word(input));
            self.problem(&["ros.input", "level1"], message);
        }
        if matches!(input, RosInput::Sample | RosInput::Replay) && p.input.files.is_empty() {
            let message = format!("missing; expected the files that ros.input = {} reads", word(input));
            self.problem(&["input.files", "ros.input", "level1.source"], message);
        }
        if input != RosInput::Emulator && p.ros.robs != 1 {
            let message = format!("only for ros.input = \"emulator\", which is {}", word(input));
            self.problem(&["ros.robs", "ros.input"], message);
        }
        if p.ros.busy_below >= p.ros.busy_above {
            let message =
                format!("expected less than ros.busy_above, which is {}, found {}", p.ros.busy_above, p.ros.busy_below);
            self.problem(&["ros.busy_below", "ros.busy_above"], message);
        }
    }

    /// Each kind of distribution has its own keys.
    fn fragment(&mut self) {
        let fragment = &self.partition.ros.fragment;
        let keys: [(&str, bool, &[FragmentKind]); 5] = [
            ("size", fragment.size.is_some(), &[FragmentKind::Fixed]),
            ("mean", fragment.mean.is_some(), &[FragmentKind::Gaussian, FragmentKind::Exponential]),
            ("sigma", fragment.sigma.is_some(), &[FragmentKind::Gaussian]),
            ("sizes", !fragment.sizes.is_empty(), &[FragmentKind::List]),
            ("weights", !fragment.weights.is_empty(), &[FragmentKind::List]),
        ];
        for (key, present, kinds) in keys {
            let key = format!("ros.fragment.{key}");
            let fits = kinds.contains(&fragment.kind);
            let kind = word(fragment.kind);
            if present && !fits {
                self.problem(&[&key, "ros.fragment.kind"], format!("not for ros.fragment.kind = {kind}"));
            } else if fits && !present && key != "ros.fragment.weights" {
                let message = format!("missing; ros.fragment.kind = {kind} needs it");
                self.problem(&[&key, "ros.fragment.kind"], message);
            }
        }
        let (sizes, weights) = (fragment.sizes.len(), &fragment.weights);
        if fragment.kind != FragmentKind::List || weights.is_empty() || sizes == 0 {
            return;
        }
        let keys = ["ros.fragment.weights", "ros.fragment.sizes"];
        if weights.len() != sizes {
            let message =
                format!("expected one for each of ros.fragment.sizes, which are {sizes}, found {}", weights.len());
            self.problem(&keys, message);
        } else if weights.iter().all(|&weight| weight == 0) {
            self.problem(&keys, "expected a weight above 0, found only 0".to_owned());
        }
    }

    /// Memory that must hold what the emulators make.
    fn capacities(&mut self) {
        let p = self.partition;
        if p.sfi.building > p.sfi.events {
            let message = format!("expected at most sfi.events, which is {}, found {}", p.sfi.events, p.sfi.building);
            self.problem(&["sfi.building", "sfi.events"], message);
        }
        for (key, size) in [
            ("ros.page_size", p.ros.page_size),
            ("sfi.max_event_size", p.sfi.max_event_size),
            ("transport.page_size", p.transport.page_size),
        ] {
            if !(MEMORY_MIN..=MEMORY_MAX).contains(&size) {
                self.problem(&[key], format!("expected {MEMORY_MIN} to {MEMORY_MAX}, found {size}"));
            }
        }
        if let Some(buffer) = p.transport.socket_buffer.filter(|size| *size > SOCKET_BUFFER_MAX) {
            let message =
                format!("expected at most {SOCKET_BUFFER_MAX}, the most that the kernel can give, found {buffer}");
            self.problem(&["transport.socket_buffer"], message);
        }
        if p.ros.input != RosInput::Emulator {
            return;
        }
        if let Some(distribution) = p.ros.fragment.distribution() {
            self.emulated_sizes(&distribution);
        }
    }

    fn emulated_sizes(&mut self, distribution: &SizeDistribution) {
        let p = self.partition;
        let with_headers = |size: Size| size.bytes().saturating_add(FRAGMENT_OVERHEAD_BYTES);
        let fragment = with_headers(distribution.size_max());
        if fragment > p.ros.page_size.bytes() {
            let message = format!(
                "expected at least {fragment} B for the largest fragment of ros.fragment with its headers, found {}",
                p.ros.page_size
            );
            self.problem(&["ros.page_size", "ros.fragment"], message);
        }
        let robs = u64::from(p.ros.robs);
        let reply = fragment.saturating_mul(robs).saturating_add(MESSAGE_OVERHEAD_BYTES);
        if reply > p.transport.page_size.bytes() {
            let message = format!(
                "expected at least {reply} B for the reply of a read-out system with ros.robs = {robs}, found {}",
                p.transport.page_size
            );
            self.problem(&["transport.page_size", "ros.robs", "ros.fragment"], message);
        }
        let event = with_headers(distribution.size_mean())
            .saturating_mul(robs)
            .saturating_mul(u64::from(p.ros.count))
            .saturating_add(FRAGMENT_OVERHEAD_BYTES);
        if event > p.sfi.max_event_size.bytes() {
            let message = format!(
                "expected at least {event} B for an event of ros.count × ros.robs fragments, found {}",
                p.sfi.max_event_size
            );
            self.problem(&["sfi.max_event_size", "ros.count", "ros.robs", "ros.fragment"], message);
        }
    }

    fn recording(&mut self) {
        let p = self.partition;
        let Some(sfo) = &p.sfo else {
            if p.dfm.clear_after == ClearAfter::Recorded {
                let message = "\"recorded\" needs the table [sfo], which is absent".to_owned();
                self.problem(&["dfm.clear_after", "sfo"], message);
            }
            return;
        };
        if sfo.durable == Durability::File && p.dfm.clear_after == ClearAfter::Recorded {
            self.problem(
                &["sfo.durable", "dfm.clear_after"],
                "\"file\" cannot go with dfm.clear_after = \"recorded\": the read-out would fill before the file closes"
                    .to_owned(),
            );
        }
        if sfo.order == EventOrder::Event {
            self.order(p.ef.as_ref().map(|ef| ef.policy));
        }
        if sfo.dialect == Dialect::Input && p.ros.input != RosInput::Replay {
            let message = format!("\"input\" needs ros.input = \"replay\", which is {}", word(p.ros.input));
            self.problem(&["sfo.dialect", "ros.input"], message);
        }
        if sfo.compression != Compression::None && sfo.dialect != Dialect::Atlas {
            let message =
                format!("{} needs sfo.dialect = \"atlas\", which is {}", word(sfo.compression), word(sfo.dialect));
            self.problem(&["sfo.compression", "sfo.dialect"], message);
        }
    }

    fn order(&mut self, policy: Option<FilterPolicy>) {
        if self.partition.l2sv.is_some() {
            let message = "\"event\" cannot go with [l2sv]: which events it rejects is not known to the recorder";
            self.problem(&["sfo.order", "l2sv"], message.to_owned());
        }
        if let Some(policy @ (FilterPolicy::Prescale | FilterPolicy::Random)) = policy {
            let message = format!(
                "\"event\" cannot go with ef.policy = {}: which events it rejects is not known to the recorder",
                word(policy)
            );
            self.problem(&["sfo.order", "ef.policy"], message);
        }
    }

    /// Notes a problem of the first of `keys`, which the others take part in.
    fn problem(&mut self, keys: &[&str], message: String) {
        if keys.iter().any(|key| self.is_bad(key)) {
            return;
        }
        self.problems.push(Problem { place: place(self.root, keys), key: keys[0].to_owned(), message });
    }

    /// If the key, something in it, or what it stands in was refused already.
    fn is_bad(&self, key: &str) -> bool {
        let within = |outer: &str, inner: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let is_table = !key.contains('.');
        self.bad.iter().any(|bad| within(bad, key) || (!is_table && within(key, bad)))
    }
}

/// A value of a key as it is written.
fn word(value: impl Serialize) -> String {
    toml::Value::try_from(value).map_or_else(|_| String::new(), |value| value.to_string())
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Sources of triggers that go with links.
const LINKED: &str = "\"link\", \"time\" or \"external\"";

/// Types of streams (format note §10), without `debug`: there the event filter puts what it fails on.
const STREAM_TYPES: &[&str] = &["physics", "calibration", "reserved", "unknown", "express", "monitoring"];

const NAME_LENGTH_MAX: usize = 64;
/// The bits of a word.
const LEVEL1_ITEMS: u8 = 32;

const MEMORY_MIN: Size = Size::from_bytes(64);
/// Offsets in a page and in an event are 32 bits wide.
const MEMORY_MAX: Size = Size::from_bytes(1 << 31);

/// The kernel doubles what it is asked for, in 31 bits.
const SOCKET_BUFFER_MAX: Size = Size::from_bytes(1 << 30);

/// At most what a message has around its fragments.
const MESSAGE_OVERHEAD_BYTES: u64 = 128;

//! What sources that send by themselves demand: `[[source]]`, `ros.input = "links"` and `level1.source = "link"`.

use super::{Checker, is_word, word};
use crate::tables::{Handshake, Level1, Level1Source, LinkSource, Matching, OnMissing, RosInput, SourceClock};
use crate::units::{Interval, Size};

impl Checker<'_> {
    pub(super) fn links(&mut self) {
        let p = self.partition;
        if p.ros.input != RosInput::Links {
            if !p.source.is_empty() {
                self.problem(&["source", "ros.input"], "only for ros.input = \"links\"".to_owned());
            }
            return;
        }
        if p.source.is_empty() {
            let message = "missing; ros.input = \"links\" needs at least one [[source]]".to_owned();
            return self.problem(&["source", "ros.input"], message);
        }
        if p.ros.count as usize > p.source.len() {
            let message =
                format!("expected at most one for each [[source]], {}, found {}", p.source.len(), p.ros.count);
            self.problem(&["ros.count", "source"], message);
        }
        (0..p.source.len()).for_each(|place| self.source(place));
        self.leader();
        let sizes = p.source.iter().map(|source| source.fragment_max(p.matching(source)).bytes());
        let needed = Size::from_bytes(sizes.fold(0, u64::saturating_add));
        if needed > p.sfi.max_event_size {
            let message = format!(
                "expected at least {} B for the longest fragments of all sources, found {}",
                needed.bytes(),
                p.sfi.max_event_size
            );
            self.problem(&["sfi.max_event_size", "source"], message);
        }
    }

    fn source(&mut self, place: usize) {
        let p = self.partition;
        let (source, before) = (&p.source[place], &p.source[..place]);
        let key = |key: &str| format!("source.{place}.{key}");
        if !is_word(&source.name) {
            let message = format!("expected letters, digits, `_` and `-`, such as \"tlu\", found {:?}", source.name);
            self.problem(&[&key("name")], message);
        } else if before.iter().any(|other| other.name == source.name) {
            let message = format!("expected a name of its own, found {:?} a second time", source.name);
            self.problem(&[&key("name")], message);
        }
        let id = source.source_id(place);
        if before.iter().enumerate().any(|(place, other)| other.source_id(place) == id) {
            self.problem(&[&key("id")], format!("expected an identifier of its own, found {id:#010x} a second time"));
        }
        let at = source.address();
        if before.iter().any(|other| other.address() == at && !at.ends_with(":0")) {
            self.problem(&[&key("at")], format!("expected an address of its own, found {at:?} a second time"));
        }
        match at.split_once("://").filter(|(carrier, _)| ["tcp", "udp", "slink"].contains(carrier)) {
            Some((carrier, place)) if !is_place(place) => {
                let message =
                    format!("expected an address and a port, such as \"{carrier}://127.0.0.1:7101\", found {at:?}");
                self.problem(&[&key("at")], message);
            }
            Some(_) => {}
            None => {
                let is_path = |at: &str| at.starts_with('/') || is_word(at);
                let is_file = at.strip_prefix("file:").is_some_and(|path| path.starts_with('/'));
                if !is_file && !at.strip_prefix("shm:").is_some_and(is_path) {
                    let message = format!(
                        "expected shm:NAME, shm:/PATH, tcp://ADDRESS:PORT, udp://ADDRESS:PORT, slink://ADDRESS:PORT or \
                         file:/PATH, found {at:?}"
                    );
                    self.problem(&[&key("at")], message);
                }
            }
        }
        if let Some(bits) = source.number_bits.filter(|bits| !(1..=u64::BITS).contains(bits)) {
            self.problem(&[&key("number_bits")], format!("expected 1 to 64 bits, found {bits}"));
        }
        self.order_of_fragments(place, source);
        self.handshake(place, source);
        self.device(place, source);
        if !(1..=SIZE_MAX).contains(&source.size_max.bytes()) {
            let message =
                format!("expected a size from 1 B to {}, found {}", Size::from_bytes(SIZE_MAX), source.size_max);
            self.problem(&[&key("size_max")], message);
        }
        if !(1..=CHUNKS_MAX).contains(&source.chunks) {
            let message = format!("expected an integer from 1 to {CHUNKS_MAX}, found {}", source.chunks);
            self.problem(&[&key("chunks")], message);
        }
        self.matching(place, source);
        self.emulated(place, source);
        self.played(place, source);
        self.played_apart(place, source);
        if matches!(source.on_missing, OnMissing::Drop | OnMissing::DebugStream) && p.event_filter().is_none() {
            let message = format!("{} needs [ef] or [sfo]", word(source.on_missing));
            self.problem(&[&key("on_missing")], message);
        }
    }

    fn matching(&mut self, place: usize, source: &LinkSource) {
        let p = self.partition;
        let key = |key: &str| format!("source.{place}.{key}");
        let level1 = p.level1.as_ref().map(|level1| level1.source);
        let matching = p.matching(source);
        match level1 {
            Some(Level1Source::Time) if matching != Matching::Time => {
                let message = format!("expected \"time\" with level1.source = \"time\", found {}", word(matching));
                self.problem(&[&key("match"), "level1.source"], message);
            }
            Some(Level1Source::Link) if p.leader() == Some(place) && matching != Matching::Number => {
                let message = format!("expected \"number\", as the source leads, found {}", word(matching));
                self.problem(&[&key("match"), "level1.leader"], message);
            }
            Some(Level1Source::Time | Level1Source::Link) => {}
            _ if matching != Matching::Number => {
                let message = "only for level1.source = \"link\" or \"time\"".to_owned();
                self.problem(&[&key("match"), "level1.source"], message);
            }
            _ => {}
        }
        if level1 == Some(Level1Source::Time) && source.clock == SourceClock::Model {
            let message = "not with level1.source = \"time\": nothing but triggers shows how a clock of its own goes, so its data would \
                           be in no slice; expected \"none\", and a source whose clock is that of all sources"
                .to_owned();
            self.problem(&[&key("clock"), "level1.source"], message);
        }
        let keys = [
            ("chunks", source.chunks != LinkSource::default().chunks, Matching::Time),
            ("before", source.before.is_some(), Matching::Time),
            ("after", source.after.is_some(), Matching::Time),
            ("offset", source.offset.is_some(), Matching::Time),
            ("inclusive", !source.inclusive, Matching::Time),
            ("first_count", source.first_count.is_some(), Matching::Count),
            ("ordered", !source.ordered, Matching::Number),
        ];
        for (name, _, of) in keys.into_iter().filter(|(_, is_given, of)| *is_given && matching != *of) {
            let message = format!("only for match = {}, which is {}", word(of), word(matching));
            self.problem(&[&key(name), &key("match")], message);
        }
    }

    /// Who triggers gives its fragments one after the other.
    fn order_of_fragments(&mut self, place: usize, source: &LinkSource) {
        let key = |key: &str| format!("source.{place}.{key}");
        if source.ordered {
            return;
        }
        if self.partition.leader() == Some(place) {
            let message = "expected true, as the source leads: its fragments are the triggers, in order".to_owned();
            self.problem(&[&key("ordered"), "level1.leader"], message);
        }
        if source.handshake == Some(Handshake::Eudet) {
            let message = "expected true with handshake = \"eudet\", by which triggers come one by one".to_owned();
            self.problem(&[&key("ordered"), &key("handshake")], message);
        }
    }

    fn handshake(&mut self, place: usize, source: &LinkSource) {
        let Some(handshake) = source.handshake else { return };
        let p = self.partition;
        let key = format!("source.{place}.handshake");
        if !source.is_program() {
            let message =
                "only for a program, with shm: or tcp:, which hears that busy has fallen, and says when T0 comes";
            self.problem(&[&key, &format!("source.{place}.at")], message.to_owned());
        }
        if p.slice_ns().is_some() {
            let message = "not with level1.source = \"time\": slices have no triggers".to_owned();
            self.problem(&[&key, "level1.source"], message);
        }
        if handshake == Handshake::Aida && source.number_bits.is_some() {
            let message = "not with handshake = \"aida\", which has no numbers; expected \"aida-number\"".to_owned();
            self.problem(&[&format!("source.{place}.number_bits"), &key], message);
        }
        if handshake == Handshake::Eudet && p.leader() == Some(place) && p.ros.count != 1 {
            let message = format!(
                "expected 1, found {}: busy of a leader with handshake = \"eudet\" is that of its read-out system",
                p.ros.count
            );
            self.problem(&["ros.count", &key], message);
        }
    }

    pub(super) fn keys_of_sources(&mut self) {
        let p = self.partition;
        if p.partition.key.is_some() || p.ros.input != RosInput::Links {
            return;
        }
        for (place, _) in p.source.iter().enumerate().filter(|(_, source)| source.at.starts_with("tcp://")) {
            let message = "over TCP a source has to prove a key: expected partition.key, which is absent; \
                           or shm: for a program on the same host";
            self.problem(&[&format!("source.{place}.at"), "partition.key"], message.to_owned());
        }
    }

    pub(super) fn slices(&mut self, level1: &Level1) {
        if level1.source != Level1Source::Time {
            return;
        }
        for (key, value) in [("level1.slice", level1.slice), ("level1.grace", level1.grace)] {
            if value == Some(Interval::default()) {
                self.problem(&[key], "expected a time above 0, found \"0 s\"".to_owned());
            }
        }
        let length = level1.slice_ns().unwrap_or_default();
        if let Some(window) = level1.window.filter(|window| !(1..=length).contains(&window.ns())) {
            let message =
                format!("expected a time up to that of level1.slice, {}, found {window}", Interval::from_ns(length));
            self.problem(&["level1.window", "level1.slice"], message);
        }
        if self.partition.run.first_lvl1_id != 0 {
            let message = "not with level1.source = \"time\": the time of a slice is its number".to_owned();
            self.problem(&["run.first_lvl1_id", "level1.source"], message);
        }
    }

    fn leader(&mut self) {
        let p = self.partition;
        let Some(level1) = p.level1.as_ref().filter(|level1| level1.source == Level1Source::Link) else { return };
        let Some(leader) = &level1.leader else { return };
        if p.source.iter().all(|source| source.name != *leader) {
            let names: Vec<&str> = p.source.iter().map(|source| source.name.as_str()).collect();
            let message = format!("expected the name of a [[source]], one of {}, found {leader:?}", names.join(", "));
            self.problem(&["level1.leader", "source"], message);
        }
    }
}

/// Whether it is a host and a port.
pub(super) fn is_place(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// Pieces of a message.
const CHUNKS_MAX: u32 = 1000;

/// A page holds it.
const SIZE_MAX: u64 = 1 << 28;

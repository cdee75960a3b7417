//! What sources that send by themselves demand: `[[source]]`, `ros.input = "links"` and `level1.source = "link"`.

use super::{Checker, is_word};
use crate::tables::{Level1, Level1Source, LinkSource, RosInput};
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
        if p.simulation.is_some() {
            let message =
                "not with ros.input = \"links\": a simulation has no sources that send by themselves".to_owned();
            self.problem(&["simulation", "ros.input"], message);
        }
        (0..p.source.len()).for_each(|place| self.source(place));
        self.leader();
        let is_timed = p.slice_ns().is_some();
        let sizes = p.source.iter().map(|source| source.fragment_max(is_timed).bytes());
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
        if source.chunks != LinkSource::default().chunks && p.slice_ns().is_none() {
            let message = "only for data that belong to events by their time: level1.source = \"time\"".to_owned();
            self.problem(&[&key("chunks"), "level1.source"], message);
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
fn is_place(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// Pieces of a message.
const CHUNKS_MAX: u32 = 1000;

/// A page holds it.
const SIZE_MAX: u64 = 1 << 28;

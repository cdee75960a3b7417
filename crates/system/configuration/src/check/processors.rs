//! What level-1 processors outside demand: `[[level1.processor]]`.

use super::links::is_place;
use super::{Checker, is_word, word};
use crate::tables::{Level1, Play, Processor};

impl Checker<'_> {
    pub(super) fn processors(&mut self, level1: &Level1) {
        if level1.processor.len() > PROCESSORS_MAX {
            let message = format!("expected at most {PROCESSORS_MAX} processors, found {}", level1.processor.len());
            self.problem(&["level1.processor"], message);
        }
        (0..level1.processor.len()).for_each(|place| self.processor(level1, place));
    }

    fn processor(&mut self, level1: &Level1, place: usize) {
        let (processor, before) = (&level1.processor[place], &level1.processor[..place]);
        let key = |key: &str| format!("level1.processor.{place}.{key}");
        let (name, at) = (&processor.name, processor.address());
        let sources = &self.partition.source;
        if !is_word(name) {
            let message = format!("expected letters, digits, `_` and `-`, such as \"calo\", found {name:?}");
            self.problem(&[&key("name")], message);
        } else if before.iter().any(|other| other.name == *name) || sources.iter().any(|other| other.name == *name) {
            self.problem(&[&key("name")], format!("expected a name of its own, found {name:?} a second time"));
        } else if !at.ends_with(":0")
            && (before.iter().any(|other| other.address() == at) || sources.iter().any(|other| other.address() == at))
        {
            self.problem(&[&key("at")], format!("expected an address of its own, found {at:?} a second time"));
        }
        let is_path = |at: &str| at.starts_with('/') || is_word(at);
        let is_address =
            at.strip_prefix("tcp://").is_some_and(is_place) || at.strip_prefix("shm:").is_some_and(is_path);
        if !is_address {
            let message = format!("expected shm:NAME, shm:/PATH or tcp://ADDRESS:PORT, found {at:?}");
            self.problem(&[&key("at")], message);
        }
        if let Some(bits) = processor.number_bits.filter(|bits| !(1..=u64::BITS).contains(bits)) {
            self.problem(&[&key("number_bits")], format!("expected 1 to 64 bits, found {bits}"));
        }
        if let Some(play) = processor.played().filter(|play| *play != Play::Emulator) {
            self.problem(&[&key("play")], format!("expected \"emulator\" or \"none\", found {}", word(play)));
        }
    }

    pub(super) fn keys_of_processors(&mut self) {
        let p = self.partition;
        let Some(level1) = p.level1.as_ref().filter(|_| p.partition.key.is_none()) else { return };
        let is_open = |processor: &Processor| processor.at.starts_with("tcp://") && processor.played().is_none();
        for place in (0..level1.processor.len()).filter(|&place| is_open(&level1.processor[place])) {
            let message = "over TCP a level-1 processor has to prove a key: expected partition.key, which is absent; \
                           or shm: for a program on the same host";
            self.problem(&[&format!("level1.processor.{place}.at"), "partition.key"], message.to_owned());
        }
    }
}

/// A joined event has a bit for each.
const PROCESSORS_MAX: usize = 64;

//! `[[stream]]`: streams that can be written, told apart, and filled.

use super::{Checker, NAME_LENGTH_MAX, is_word, word};
use crate::menu::chain_names;
use crate::places::place;
use crate::problem::{Problem, did_you_mean};
use crate::tables::{Dialect, RosInput, Stream};

impl Checker<'_> {
    pub(super) fn streams(&mut self) {
        let partition = self.partition;
        let streams = &partition.stream;
        if streams.is_empty() {
            return;
        }
        self.room_for_streams(streams.len());
        let chains = chain_names(partition.menu.as_ref());
        for (index, stream) in streams.iter().enumerate() {
            self.stream_name(index, stream, &streams[..index]);
            self.stream_chains(index, stream, &chains);
            self.stream_robs(index, stream);
            if stream.prescale == 0 {
                let message = format!("expected an integer from 1 to {}, found 0", u32::MAX);
                self.problem(&[&key(index, "prescale")], message);
            }
        }
        self.chains_without_stream(streams, &chains);
    }

    /// Events of a chain that no stream takes would be selected, and then forgotten.
    fn chains_without_stream(&mut self, streams: &[Stream], chains: &[&str]) {
        let is_known = |chain: &String| chains.contains(&chain.as_str());
        let misspelt = streams.iter().any(|stream| !stream.chains.iter().all(is_known));
        if misspelt || streams.iter().any(|stream| stream.chains.is_empty() && !stream.by_name) {
            return;
        }
        let taken = |chain: &&str| streams.iter().any(|stream| stream.chains.iter().any(|taken| taken == chain));
        for (index, chain) in chains.iter().enumerate().filter(|(_, chain)| !taken(chain)) {
            let message = format!("no stream takes the events of {chain:?}: name it in the chains of a [[stream]]");
            self.problem(&[&format!("menu.chain.{index}.name"), "menu.chain"], message);
        }
    }

    fn room_for_streams(&mut self, count: usize) {
        let Some(sfo) = &self.partition.sfo else {
            return self.problem(&["stream", "sfo"], "[[stream]] needs the table [sfo], which is absent".to_owned());
        };
        if count > STREAMS_MAX {
            self.problem(&["stream"], format!("expected at most {STREAMS_MAX} streams, found {count}"));
        }
        if self.root.get("sfo.stream").is_some() {
            let message = "not with [[stream]], where each stream has a type and a name of its own".to_owned();
            self.problem(&["sfo.stream", "stream"], message);
        }
        if sfo.dialect != Dialect::Atlas {
            let message = format!(
                "expected \"atlas\" with [[stream]], found {}: only its events say which streams they are in",
                word(sfo.dialect)
            );
            self.problem(&["sfo.dialect", "stream"], message);
        }
    }

    fn stream_name(&mut self, index: usize, stream: &Stream, before: &[Stream]) {
        let (name, type_key, key) = (&stream.name, key(index, "type"), key(index, "name"));
        if self.root.get(&key).is_none() {
            let message = "missing; expected the name of the stream, such as \"Main\"".to_owned();
            let place = place(self.root, &[&key, &format!("stream.{index}")]);
            return self.problems.push(Problem { place, key, message });
        }
        if !is_word(name) || name.len() > NAME_LENGTH_MAX {
            let message = format!("expected 1 to {NAME_LENGTH_MAX} letters, digits, `_` and `-`, found {name:?}");
            return self.problem(&[&key], message);
        }
        let same = |other: &&Stream| (other.stream_type, &other.name) == (stream.stream_type, name);
        if before.iter().any(|other| same(&other)) {
            let message = format!(
                "expected another name than those of the streams before, found {name:?}, the second of type {}",
                word(stream.stream_type)
            );
            self.problem(&[&key, &type_key], message);
        }
    }

    fn stream_chains(&mut self, index: usize, stream: &Stream, known: &[&str]) {
        let key = key(index, "chains");
        if stream.by_name && !stream.chains.is_empty() {
            let message = "not with by_name = true: the stream takes events by chain or by name".to_owned();
            self.problem(&[&key, &format!("stream.{index}.by_name")], message);
        }
        if self.partition.menu.is_none() && !stream.chains.is_empty() {
            let message = "[[stream]] chains need the table [menu], which is absent".to_owned();
            return self.problem(&[&key, "menu"], message);
        }
        let names = known.join(", ");
        for chain in stream.chains.iter().filter(|chain| !known.contains(&chain.as_str())) {
            let near = did_you_mean(chain, known);
            self.problem(&[&key, "menu"], format!("expected chains of [menu] ({names}), found {chain:?}{near}"));
        }
    }

    /// Which ROBs there are is known here for emulated ones only; the recorder checks the others as the run begins.
    fn stream_robs(&mut self, index: usize, stream: &Stream) {
        let key = key(index, "robs");
        if stream.robs.is_empty() && self.root.get(&key).is_some() {
            let message = "expected at least one ROB or sub-detector, found none; without the key all are recorded";
            self.problem(&[&key], message.to_owned());
        }
        let ros = &self.partition.ros;
        if ros.input != RosInput::Emulator {
            return;
        }
        let first = u32::from(ros.sub_detector) << 16;
        let last = first + ros.count.saturating_mul(ros.robs).saturating_sub(1).min(0xffff);
        for robs in stream.robs.iter().filter(|robs| !(first..=last).any(|rob| robs.contains(rob))) {
            let message = format!("expected some of the ROBs {first:#010x}-{last:#010x}, found {robs}");
            self.problem(&[&key, "ros.count", "ros.robs", "ros.sub_detector"], message);
        }
    }
}

fn key(index: usize, key: &str) -> String {
    format!("stream.{index}.{key}")
}

/// Bits of the mask that says which streams an event goes to.
const STREAMS_MAX: usize = 32;

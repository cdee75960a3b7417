//! What `source.play` demands.

use super::{Checker, word};
use crate::tables::{ByteOrder, FrameCounter, LinkSource, Matching, Play, SourceClock};

impl Checker<'_> {
    /// Times that are played are those of a beam that no program sees.
    pub(super) fn played_apart(&mut self, place: usize, source: &LinkSource) {
        let p = self.partition;
        let Some(leads) = p.leader() else { return };
        let leader = &p.source[leads];
        let is_timed = p.matching(source) == Matching::Time || source.clock == SourceClock::Model;
        if leads == place || !is_timed || leader.played().is_some() == source.played().is_some() {
            return;
        }
        let (key, match_key, clock_key) =
            (format!("source.{place}.play"), format!("source.{place}.match"), format!("source.{place}.clock"));
        let (played, not) = if source.played().is_some() { (source, leader) } else { (leader, source) };
        let message = format!(
            "{} is played and {} is not: their times cannot match; expected both or neither, or a source without match = \"time\" and \
             clock = \"model\"",
            played.name, not.name
        );
        let times = if p.matching(source) == Matching::Time { &match_key } else { &clock_key };
        self.problem(&[&key, times, &format!("source.{leads}.play")], message);
    }

    pub(super) fn played(&mut self, place: usize, source: &LinkSource) {
        let p = self.partition;
        let (Some(play), key) = (source.played(), format!("source.{place}.play")) else { return };
        if source.is_slink() {
            self.played_slink(place, source, play);
        } else if !source.is_program() {
            let message = format!(
                "only for a program or an S-LINK, with shm:, tcp: or slink:; `weir feed {}` can be a device there",
                source.address()
            );
            self.problem(&[&key, &format!("source.{place}.at")], message);
        }
        let Some(input) = play.input() else { return };
        if p.input.files.is_empty() {
            let message = format!("missing; expected the files that {key} = {} reads", word(play));
            self.problem(&["input.files", &key], message);
        }
        if p.slice_ns().is_some() {
            let message = "expected \"emulator\" with level1.source = \"time\": events of an input have no times";
            self.problem(&[&key, "level1.source"], message.to_owned());
        }
        if p.played_input() != Some(input) {
            let message =
                format!("expected the same as the sources before: input.files are of one kind, found {}", word(play));
            self.problem(&[&key, "input.files"], message);
        }
    }
    /// A front end that is played sends ROD fragments, which have one form.
    fn played_slink(&mut self, place: usize, source: &LinkSource, play: Play) {
        let key = format!("source.{place}.play");
        if play != Play::Emulator {
            let message = format!("expected \"emulator\" with an S-LINK, found {}", word(play));
            self.problem(&[&key, &format!("source.{place}.at")], message);
        }
        let Some(frame) = &source.frame else { return };
        let order = |counter: &FrameCounter| counter.order.unwrap_or(frame.order);
        let is_rod = |counter: &FrameCounter| {
            let FrameCounter { at, width, .. } = *counter;
            (at, width, order(counter)) == (ROD_COUNTER_AT, 4, ByteOrder::Little)
        };
        if !frame.counter.as_ref().is_some_and(is_rod) {
            let message = format!(
                "an S-LINK that is played sends ROD fragments: expected order = \"little\" and counter = {{ at = {ROD_COUNTER_AT}, width = 4 }}, \
                 the level-1 id"
            );
            self.problem(&[&format!("source.{place}.frame"), &key], message);
        }
    }
}

/// Where the level-1 id of a ROD fragment is, in bytes.
const ROD_COUNTER_AT: u32 = 20;

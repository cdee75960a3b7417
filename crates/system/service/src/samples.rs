//! The newest events that applications have shown.

use std::collections::VecDeque;
use std::sync::Arc;

use base::ids::Role;
use eformat::{Event, GenericStatus};
use partition::Sampled;
use serde::Serialize;
use storage::{WriteError, WriterConfig, file_of};

/// What a list says of a sampled event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SampledEvent {
    /// Its place among all samples since the service began, from 1.
    pub number: u64,
    /// When it came, in milliseconds since 1970.
    pub at_ms: u64,
    /// The run.
    pub run: Option<u32>,
    /// Who has shown it.
    pub application: String,
    /// The stem of the role of that application.
    pub stage: &'static str,
    /// The event number.
    pub event: u64,
    /// The level-1 id.
    pub level1_id: u32,
    /// The level-1 trigger type.
    pub trigger_type: u32,
    /// Whether data are missing.
    pub incomplete: bool,
    /// Bytes of the whole event.
    pub bytes: usize,
}

/// A sampled event.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) told: SampledEvent,
    pub(crate) event: Arc<[u8]>,
    /// Source identifiers of the ROBs of each read-out system.
    pub(crate) readout: Arc<[Vec<u32>]>,
}

impl Kept {
    /// A file with this event alone.
    pub(crate) fn file(&self) -> Result<Vec<u8>, WriteError> {
        let config = WriterConfig {
            run_number: self.told.run.unwrap_or_default(),
            stream_type: "monitoring".to_owned(),
            stream_name: "Sample".to_owned(),
            application: self.told.application.clone(),
            ..WriterConfig::default()
        };
        file_of(&config, &[&self.event])
    }

    /// A name for that file.
    pub(crate) fn file_name(&self) -> String {
        let SampledEvent { run, event, application, .. } = &self.told;
        format!("run{}.event{event}.{application}.data", run.unwrap_or_default())
    }
}

/// The newest samples. Older ones make room.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    kept: VecDeque<Kept>,
    /// Those that somebody has looked into last: people read slowly.
    opened: VecDeque<Kept>,
    shown: u64,
}

impl Samples {
    /// Keeps one that came then, in that run, and says what it is.
    pub(crate) fn add(&mut self, when: (u64, Option<u32>), sampled: &Sampled, event: Arc<[u8]>) -> SampledEvent {
        // Read-out systems stay for a whole run.
        let readout = match self.kept.back() {
            Some(last) if *last.readout == *sampled.readout() => last.readout.clone(),
            _ => sampled.readout().into(),
        };
        self.keep(when, (&sampled.application, sampled.stage), (event, readout))
    }

    fn keep(
        &mut self,
        (at_ms, run): (u64, Option<u32>),
        (application, stage): (&str, Role),
        (event, readout): (Arc<[u8]>, Arc<[Vec<u32>]>),
    ) -> SampledEvent {
        self.shown += 1;
        let header = Event::parse(&event);
        // A replayed run has its number in its events alone.
        let run = run.or_else(|| header.as_ref().ok().map(Event::run_number));
        let said = header.map(|header| (header.global_id(), header.lvl1_id(), header.trigger_type(), header.status()));
        let (number, level1_id, trigger_type, status) = said.unwrap_or_default();
        let told = SampledEvent {
            number: self.shown,
            at_ms,
            run,
            application: application.to_owned(),
            stage: stage.stem(),
            event: number,
            level1_id,
            trigger_type,
            incomplete: status.generic().contains(GenericStatus::DATA_CORRUPTION),
            bytes: event.len(),
        };
        keep_newest(&mut self.kept, SAMPLES_KEPT, Kept { told: told.clone(), event, readout });
        told
    }

    /// Those behind that number, the oldest first.
    pub(crate) fn behind(&self, number: u64) -> Vec<SampledEvent> {
        self.kept.iter().map(|kept| &kept.told).filter(|told| told.number > number).cloned().collect()
    }

    /// The event of that number, if it is still kept.
    #[cfg(feature = "nats")]
    pub(crate) fn event(&self, number: u64) -> Option<Arc<[u8]>> {
        self.kept.iter().rev().find(|kept| kept.told.number == number).map(|kept| kept.event.clone())
    }

    /// The one of that number, if it is still kept. It stays for a while then.
    pub(crate) fn open(&mut self, number: u64) -> Option<Kept> {
        let is_it = |kept: &&Kept| kept.told.number == number;
        let found = self.opened.iter().find(is_it).or_else(|| self.kept.iter().find(is_it))?.clone();
        self.opened.retain(|kept| kept.told.number != number);
        keep_newest(&mut self.opened, OPENED_KEPT, found.clone());
        Some(found)
    }
}

/// One more, for which old ones make room.
fn keep_newest(all: &mut VecDeque<Kept>, len_max: usize, one: Kept) {
    let bytes = |all: &VecDeque<Kept>| all.iter().map(|kept| kept.event.len()).sum::<usize>();
    while all.len() >= len_max || !all.is_empty() && bytes(all) + one.event.len() > BYTES_KEPT {
        all.pop_front();
    }
    all.push_back(one);
}

/// They are for those who look now; one larger than all this is kept alone.
const SAMPLES_KEPT: usize = 1024;
const BYTES_KEPT: usize = 64 << 20;
const OPENED_KEPT: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_within_their_bounds() {
        let mut samples = Samples::default();
        let mut add =
            |len: usize| samples.keep((5, Some(1)), ("sfi-1", Role::Sfi), (vec![0; len].into(), Arc::default()));
        (0..1100).for_each(|_| drop(add(10)));
        let told = add(10);
        assert_eq!((told.number, told.stage, told.bytes), (1101, "sfi", 10));
        assert_eq!((samples.behind(0).len(), samples.behind(0)[0].number, samples.behind(1100).len()), (1024, 78, 1));
        assert!(samples.open(77).is_none() && samples.open(78).is_some());
        let mut add = |len: usize| samples.keep((5, None), ("sfi-1", Role::Sfi), (vec![0; len].into(), Arc::default()));
        add(BYTES_KEPT - 25);
        assert_eq!(samples.behind(0).len(), 3);
        let mut add = |len: usize| samples.keep((5, None), ("sfi-1", Role::Sfi), (vec![0; len].into(), Arc::default()));
        add(BYTES_KEPT + 1);
        assert_eq!(samples.behind(0).len(), 1);
        assert!(samples.open(78).is_some(), "somebody looks into it");
        let mut add = |len: usize| samples.keep((5, None), ("sfi-1", Role::Sfi), (vec![0; len].into(), Arc::default()));
        (0..=OPENED_KEPT).for_each(|_| drop(add(1)));
        samples.behind(0).iter().for_each(|told| drop(samples.open(told.number)));
        assert!(samples.open(78).is_none());
    }
}

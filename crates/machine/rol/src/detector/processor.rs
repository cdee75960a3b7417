//! An emulated level-1 processor.

use dataflow::level1::roib::TriggerRecord;
use dataflow::level1::trigger::{Trigger, TriggerSource};
use weir_source::Head;

use crate::trigger_record::encode_trigger;

/// Has triggers, and vetoes those that it cannot keep until they are taken.
pub(super) struct Processor {
    triggers: Box<dyn TriggerSource + Send>,
    vetoed: u64,
}

impl Processor {
    pub(super) fn new(triggers: Box<dyn TriggerSource + Send>) -> Self {
        Self { triggers, vetoed: 0 }
    }

    /// Triggers vetoed in this run.
    pub(super) fn vetoed(&self) -> u64 {
        self.vetoed
    }

    /// Writes the trigger of an event, the `ordinal`-th, into the slot. `waiting` are those that came since the last one that was
    /// sent, vetoed ones included. Gives what is said of it, and the length; `None` if there are no more.
    pub(super) fn trigger(
        &mut self,
        (event, ordinal): (u64, u64),
        waiting: u64,
        slot: &mut [u8],
    ) -> Option<(Head, usize)> {
        let Trigger { bcid, trigger_type, items, rois } = self.triggers.trigger(ordinal)?;
        let vetoed = waiting.saturating_sub(self.vetoed).saturating_sub(KEPT);
        let vetoed = u32::try_from(vetoed).unwrap_or(u32::MAX);
        self.vetoed += u64::from(vetoed);
        let (bcid, event) = (Some(bcid), base::ids::EventId(event));
        let record = TriggerRecord { event, bcid, trigger_type: None, items, vetoed, rois };
        let bytes = encode_trigger(&record);
        let len = bytes.len().min(slot.len());
        slot[..len].copy_from_slice(&bytes[..len]);
        Some((Head { trigger_type, ..Head::default() }, len))
    }
}

/// So many triggers it keeps while nobody takes them.
const KEPT: u64 = 64;

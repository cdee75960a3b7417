//! Times of events.

use alloc::vec::Vec;

use super::{Fault, Read, Reader, Writer};
use crate::message::LinkTrigger;
use timing::Interval;

impl Writer<'_> {
    pub(super) fn times(&mut self, times: &[Interval]) -> &mut Self {
        self.list(times, |w, time| {
            w.u64(time.begin).u64(time.end);
        })
    }

    pub(super) fn link_trigger(&mut self, LinkTrigger { event, trigger_type, time }: &LinkTrigger) -> &mut Self {
        self.u64(event.0).u8(*trigger_type).u64(time.begin).u64(time.end)
    }
}

impl Reader<'_> {
    /// Of so many events, or none.
    pub(super) fn times(&mut self, events: usize) -> Read<Vec<Interval>> {
        let times = self.list(16, Self::interval)?;
        if times.is_empty() || times.len() == events { Ok(times) } else { Err(Fault::Body) }
    }

    pub(super) fn link_trigger(&mut self) -> Read<LinkTrigger> {
        Ok(LinkTrigger { event: self.event()?, trigger_type: self.u8()?, time: self.interval()? })
    }

    fn interval(&mut self) -> Read<Interval> {
        Ok(Interval { begin: self.u64()?, end: self.u64()? })
    }
}

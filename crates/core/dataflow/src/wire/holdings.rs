//! What a dataflow manager that returns is told.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Fault, Read, Reader, Writer};
use crate::ledger::{Finish, Ledger};
use crate::message::{Fate, Grounds, HeldEvent, Holdings};
use crate::report::Counters;
use base::ids::EventId;

impl Writer<'_> {
    pub(super) fn holdings(&mut self, holdings: &Holdings) -> &mut Self {
        let Holdings { ledger, newest, events, finished, last } = holdings;
        self.ledger(ledger).flag(newest.is_some()).u64(newest.map_or(0, |event| event.0)).flag(*last);
        self.list(events, |w, held| {
            w.assignment(&held.assigned).flag(held.granted).u32(held.missing);
        });
        self.fates(finished)
    }

    pub(super) fn ledger(&mut self, ledger: &Ledger) -> &mut Self {
        self.u64(ledger.below.0);
        ledger.tally.to_values().into_iter().for_each(|value| _ = self.u64(value));
        self
    }

    pub(super) fn fates(&mut self, fates: &[Finish]) -> &mut Self {
        self.list(fates, |w, finish| {
            let Finish { event, fate, complete, grounds } = *finish;
            w.u64(event.0).u8(fate as u8 | (grounds as u8) << GROUNDS_SHIFT | if complete { COMPLETE } else { 0 });
        })
    }
}

impl Reader<'_> {
    pub(super) fn holdings(&mut self) -> Read<Holdings> {
        let ledger = Box::new(self.ledger()?);
        let newest = match (self.flag()?, self.event()?) {
            (true, event) => Some(event),
            (false, EventId(0)) => None,
            (false, _) => return Err(Fault::Body),
        };
        let last = self.flag()?;
        let held = |r: &mut Self| Ok(HeldEvent { assigned: r.assignment()?, granted: r.flag()?, missing: r.u32()? });
        Ok(Holdings { ledger, newest, last, events: self.list(32, held)?, finished: self.fates()? })
    }

    pub(super) fn ledger(&mut self) -> Read<Ledger> {
        let below = self.event()?;
        Ok(Ledger { below, tally: self.counters()? })
    }

    pub(super) fn fates(&mut self) -> Read<Vec<Finish>> {
        self.list(9, |r| {
            let (event, bits) = (r.event()?, r.u8()?);
            let fate = Fate::from_u8(bits & FATE).ok_or(Fault::Body)?;
            let grounds = Grounds::from_u8((bits & !COMPLETE) >> GROUNDS_SHIFT).ok_or(Fault::Body)?;
            Ok(Finish { event, fate, complete: bits & COMPLETE != 0, grounds })
        })
    }
}

/// The bits of the fate.
const FATE: u8 = 0x0f;
/// Beside the fate: on what level 2 had accepted the event.
const GROUNDS_SHIFT: u32 = 4;
/// Beside both: the event had all its data.
const COMPLETE: u8 = 0x80;

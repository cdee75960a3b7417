//! What the fragments of a link are, and what becomes of one.

use base::bulk::Bulk;
use base::ids::EventId;
use dataflow::component::LinkNews;
use dataflow::level1::roib::TriggerRecord;
use eformat::StatusWord;
use link::{Faults, Head};
use rol::{ChunkHead, Pushed, PushedFragments, decode_trigger};
use timing::Interval;
use timing::rule::Axis;
use transport::page_pool::Page;

use super::faults::is_damaged;

/// What fragments of a link are.
#[derive(Clone, Copy)]
pub(super) enum Content {
    /// Of the event whose number they have.
    Numbered(PushedFragments),
    /// Data that belong to events by their time, or their count.
    Matched(Axis),
    /// Triggers. Pushed fragments know neither bunch crossing nor trigger type of their event, so it says neither.
    Triggers { of_pushed: bool },
}

/// The payload of a fragment, behind the headroom of its page.
pub(super) struct Payload {
    pub(super) page: Page,
    /// Its length in bytes.
    pub(super) len: usize,
}

impl Payload {
    /// The fragment of an event.
    pub(super) fn fragment(
        self,
        head: &Head,
        fragments: &PushedFragments,
        event: EventId,
        status: StatusWord,
    ) -> LinkNews {
        let (time, trigger_type) = (time_of(head), head.trigger_type);
        let (head, slice) = fragments.frame(self.page, self.len, &Pushed { event, trigger_type, status });
        LinkNews::Fragment { head, trigger_type, time, bulk: Bulk::Pages(slice) }
    }

    /// Data that belong to events by their time, or their count.
    pub(super) fn chunk(self, head: &Head, count: u64, status: StatusWord) -> LinkNews {
        let (begin, end) = head.time.unwrap_or_default();
        let chunk = ChunkHead { begin, end, len: self.len as u32, status };
        let bulk = Bulk::Pages(chunk.put(self.page));
        LinkNews::Chunk { time: time_of(head), count, status: status.0, bulk }
    }

    /// What a level-1 processor says of an event, and what is wrong with that. Detectors have seen the trigger: it stands, with nothing
    /// more known of it.
    pub(super) fn trigger(&self, head: &Head, faults: Faults, event: EventId) -> (TriggerRecord, Option<String>) {
        let decoded = match head {
            _ if !faults.is_empty() => Err("its checksum does not fit".to_owned()),
            head if is_damaged(head) => Err("the processor says that it is damaged".to_owned()),
            head => {
                let decoded = decode_trigger(event, head.trigger_type, &self.page.bytes()[..self.len]);
                decoded.map_err(|bad| bad.to_string())
            }
        };
        match decoded {
            Ok(record) => (record, None),
            Err(why) => (TriggerRecord { event, ..TriggerRecord::default() }, Some(why)),
        }
    }
}

fn time_of(head: &Head) -> Interval {
    head.time.map_or(Interval::default(), |(begin, end)| Interval::new(begin, end))
}

//! What comes from one link, as news for the read-out system and as messages for people.

#[cfg(test)]
mod tests;

use base::ids::EventId;
use base::losses::Losses;
use dataflow::component::LinkNews;
use dataflow::level1::roib::TriggerRecord;
use dataflow::message::Message;
use link::{Arrival, Faults, Head};
use timing::rule::Axis;

use super::content::{Content, Payload};
use super::faults::Marked;
use super::numbers::{Broken, Numbers};
use super::state::SourceState;
use super::succession::{Returning, Succession};

/// Hears what comes from a link.
pub(super) struct Reception {
    /// The source as people know it: with what it is.
    title: String,
    content: Content,
    numbers: Numbers,
    pub(super) succession: Succession,
    pub(super) state: SourceState,
    /// What of a device did not become fragments, since the last run.
    losses: Losses,
    marked: Marked,
}

/// One pass over a link: which one it is, and where goes what comes from it.
pub(super) struct Pass<'a> {
    pub(super) rob: u16,
    /// The number that links with numbers had reached before.
    pub(super) newest: u64,
    pub(super) news: &'a mut Vec<(u16, LinkNews)>,
    pub(super) messages: &'a mut Vec<Message>,
}

impl Reception {
    pub(super) fn new(title: String, content: Content, numbers: Numbers, returning: Returning) -> Self {
        Self {
            title,
            content,
            numbers,
            succession: Succession::new(returning),
            state: SourceState::default(),
            losses: Losses::default(),
            marked: Marked::default(),
        }
    }

    /// The number that the link has reached, if its fragments have the numbers of events.
    pub(super) fn reached(&self) -> Option<u64> {
        matches!(self.content, Content::Numbered(_)).then(|| self.numbers.next())
    }

    pub(super) fn hear(&mut self, arrival: Arrival, pass: &mut Pass<'_>) {
        match arrival {
            Arrival::Fragment { head, page, len, faults } => {
                self.on_fragment(&head, faults, Payload { page, len }, pass);
            }
            Arrival::Idle { number, time } => self.on_idle(number, time, pass),
            Arrival::Lost(lost) => self.on_lost(lost, pass),
            Arrival::Ended { sent, received } => self.on_ended(sent, received, pass),
            Arrival::Up { .. } => self.on_up(pass),
            Arrival::Down { reason } => self.on_down(&reason.to_string(), pass),
            Arrival::TurnedAway { why } => pass.notice(format!("{}: a visitor was turned away: {why}", self.title)),
            Arrival::Status(text) => self.on_status(&text, pass),
        }
    }

    fn on_fragment(&mut self, head: &Head, faults: Faults, payload: Payload, pass: &mut Pass<'_>) {
        self.succession.on_fragment(head.number.is_some());
        let (number, broken) = self.numbers.of_fragment(head);
        if let Some(broken) = broken {
            self.on_broken(&broken, pass);
        }
        let Some(number) = number else {
            return self.on_lost(Losses { outside: 1, ..Losses::default() }, pass);
        };
        self.state.on_fragment(number, head.time);
        match &self.content {
            Content::Numbered(fragments) => {
                let status = self.marked.status_of(head, faults);
                pass.news(payload.fragment(head, fragments, EventId(number), status));
            }
            Content::Matched(_) => {
                let status = self.marked.status_of(head, faults);
                pass.news(payload.chunk(head, number, status));
            }
            Content::Triggers { of_pushed } => {
                let (mut record, why) = payload.trigger(head, faults, EventId(number));
                if *of_pushed {
                    (record.bcid, record.trigger_type) = (None, None);
                }
                self.on_trigger(record, why, pass);
            }
        }
    }

    fn on_trigger(&mut self, record: TriggerRecord, why: Option<String>, pass: &mut Pass<'_>) {
        let event = record.event;
        pass.news(LinkNews::Trigger(Box::new(record)));
        let Some(why) = why else { return };
        self.on_lost(Losses { malformed: 1, ..Losses::default() }, pass);
        // The count says how many there were; the first one says what is wrong with them.
        if self.losses.malformed == 1 {
            pass.notice(format!("{}, event {}: no record of a trigger: {why}", self.title, event.0));
        }
    }

    fn on_idle(&mut self, number: u64, time: u64, pass: &mut Pass<'_>) {
        if self.numbers.is_t0(number, time) {
            return self.numbers.on_t0().into_iter().for_each(|broken| self.on_broken(&broken, pass));
        }
        pass.news(match self.content {
            Content::Matched(Axis::Time) => LinkNews::Passed(time),
            Content::Matched(Axis::Count) => LinkNews::Passed(self.numbers.whole(number)),
            Content::Numbered(_) | Content::Triggers { .. } => LinkNews::Idle(EventId(self.numbers.whole(number))),
        });
    }

    fn on_broken(&self, broken: &Broken, pass: &mut Pass<'_>) {
        pass.messages.extend(broken.told(&self.title).map(Message::Notice));
    }

    fn on_lost(&mut self, lost: Losses, pass: &mut Pass<'_>) {
        self.losses += lost;
        pass.news(LinkNews::Lost(lost));
    }

    fn on_ended(&mut self, sent: u64, received: u64, pass: &mut Pass<'_>) {
        let title = &self.title;
        self.succession.on_ended(self.state.is_stopped);
        pass.news(LinkNews::Ended { sent });
        let (losses, marked) = (core::mem::take(&mut self.losses), core::mem::take(&mut self.marked));
        if !losses.are_none() {
            pass.notice(format!("{title}, beside {received} fragments: {losses}"));
        }
        if !marked.are_none() {
            pass.notice(format!("{title}, of {received} fragments: {marked}"));
        }
        if sent != received {
            pass.notice(format!("{title} says that it has sent {sent} fragments; {received} have come"));
        }
    }

    fn on_up(&mut self, pass: &mut Pass<'_>) {
        self.numbers.catch_up(pass.newest);
        self.state.set_there(true, "");
        pass.news(LinkNews::Up);
        pass.tell(format!("{} is there", self.title));
    }

    fn on_down(&mut self, reason: &str, pass: &mut Pass<'_>) {
        self.state.set_there(false, reason);
        pass.news(LinkNews::Down);
        pass.notice(format!("{} is lost: {reason}", self.title));
    }

    fn on_status(&mut self, text: &str, pass: &mut Pass<'_>) {
        if self.state.on_status(text) {
            pass.tell(format!("{}: {text}", self.title));
        }
    }
}

impl Pass<'_> {
    fn news(&mut self, news: LinkNews) {
        self.news.push((self.rob, news));
    }

    /// Something is as people expect it.
    fn tell(&mut self, text: String) {
        self.messages.push(Message::News(text));
    }

    /// Something is wrong.
    fn notice(&mut self, text: String) {
        self.messages.push(Message::Notice(text));
    }
}

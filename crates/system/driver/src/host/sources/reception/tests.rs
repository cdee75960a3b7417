//! Arrivals in, news and messages out.

use base::bulk::{Bulk, PageSlice};
use base::sources::SourcePhase;
use dataflow::component::LinkOrder;
use dataflow::level1::roib::TriggerRecord;
use dataflow::message::Message;
use eformat::{EventFormat, GenericStatus, Rob, RobStatus, StatusWord};
use link::{Faults, Flags, Head, Lost};
use rol::{ChunkHead, PushedFragments, encode_trigger};
use timing::Interval;
use timing::handshake::Mode;
use transport::page_pool::{Pool, PoolOptions};

use super::*;

#[test]
fn a_fragment_is_whole_with_its_number_and_its_time() {
    let mut link = numbered(Numbers::new(Some(4), None));
    let time = Some((700, 750));
    let head = Head { number: Some(9), time, trigger_type: 3, flags: Flags::empty() };
    link.fragment(head);
    link.fragment(Head::default());
    let [first, second] = <[LinkNews; 2]>::try_from(link.news()).unwrap();
    let LinkNews::Fragment { head, trigger_type, time, bulk } = first else { panic!("{first:?}") };
    assert_eq!((head.event, head.status, trigger_type), (EventId(9), 0, 3));
    assert_eq!(time, Interval::new(700, 750));
    let bytes = bytes_of(&bulk);
    let rod = Rob::parse(EventFormat::V5, &bytes).unwrap().rod().unwrap();
    assert_eq!((rod.lvl1_id(), rod.source_id().0, rod.run_number(), rod.data()), (9, ID, RUN, &PAYLOAD[..]));
    let LinkNews::Fragment { head, time, .. } = second else { panic!("{second:?}") };
    assert_eq!((head.event, time.is_none()), (EventId(10), true));
    assert_eq!((link.reception.reached(), link.texts().len()), (Some(11), 0));
}

#[test]
fn data_without_events_are_chunks_and_idle_marks_are_of_their_axis() {
    for (axis, passed) in [(Axis::Time, 800), (Axis::Count, 18)] {
        let mut link = Link::new(Content::Matched(axis), Numbers::new(Some(4), None), Returning::Always);
        link.fragment(Head { number: Some(14), time: Some((700, 750)), ..Head::default() });
        link.hear(Arrival::Idle { number: 2, time: 800 });
        let [chunk, idle] = <[LinkNews; 2]>::try_from(link.news()).unwrap();
        let LinkNews::Chunk { time, count, status, bulk } = chunk else { panic!("{chunk:?}") };
        assert_eq!((time, count, status), (Interval::new(700, 750), 14, 0));
        assert_eq!(bulk.len(), ChunkHead::BYTES + PAYLOAD.len());
        assert_eq!(idle, LinkNews::Passed(passed), "{axis:?}");
        assert_eq!(link.reception.reached(), None, "its count is of no event");
    }
}

#[test]
fn an_idle_mark_of_few_bits_is_whole() {
    let mut link = numbered(Numbers::new(Some(4), None));
    link.fragment(numbered_head(15));
    link.hear(Arrival::Idle { number: 1, time: 0 });
    assert_eq!(link.news()[1..], [LinkNews::Idle(EventId(17))]);
}

#[test]
fn breaches_of_the_hand_shake_are_told_until_they_are_many() {
    let mut link = numbered(Numbers::new(Some(15), Some(Mode::Eudet)));
    (0..12).for_each(|_| link.fragment(Head::default()));
    let texts = link.texts();
    assert_eq!(texts.len(), 9, "{texts:?}");
    assert!(texts[0].starts_with("! source a, event 0: it says no number"), "{}", texts[0]);
    assert!(texts[7].starts_with("! source a, event 7: "), "{}", texts[7]);
    assert_eq!(texts[8], "! source a: more breaches of the hand-shake are only counted");
    assert_eq!(link.news().len(), 12, "each fragment is one of the run all the same");
}

#[test]
fn what_comes_before_t0_is_lost_and_said_at_the_end() {
    let mut link = numbered(Numbers::new(None, Some(Mode::Aida)));
    let t0 = || Arrival::Idle { number: 0, time: 0 };
    link.fragment(timed_head(5));
    let outside = Losses { outside: 1, ..Losses::default() };
    assert_eq!(link.news(), [LinkNews::Lost(outside)]);
    assert_eq!((link.reception.reached(), link.texts().len()), (Some(0), 1));
    link.hear(t0());
    assert!(link.news().is_empty() && link.texts().is_empty(), "T0 is no mark that nothing follows");
    link.fragment(timed_head(6));
    link.hear(t0());
    assert!(matches!(link.news()[..], [LinkNews::Fragment { .. }]));
    let texts = link.texts();
    assert!(texts[0].starts_with("! source a, event 1: T0 has come again"), "{texts:?}");
    link.hear(Arrival::Ended { sent: 2, received: 2 });
    assert_eq!(link.texts(), ["! source a, beside 2 fragments: 1 outside of the run"]);
}

#[test]
fn an_end_with_another_count_than_what_came_is_told() {
    let mut link = numbered(Numbers::new(None, None));
    link.hear(Arrival::Ended { sent: 7, received: 7 });
    assert_eq!((link.news(), link.texts()), (vec![LinkNews::Ended { sent: 7 }], Vec::new()));
    link.hear(Arrival::Ended { sent: 7, received: 5 });
    assert_eq!(link.news(), [LinkNews::Ended { sent: 7 }]);
    assert_eq!(link.texts(), ["! source a says that it has sent 7 fragments; 5 have come"]);
}

#[test]
fn what_was_lost_is_news_at_once_and_told_at_the_end_of_its_run() {
    let mut link = numbered(Numbers::new(None, None));
    let lost = Losses { missing: 3, ..Losses::default() };
    link.hear(Arrival::Lost(lost));
    link.hear(Arrival::Lost(lost));
    assert_eq!((link.news(), link.texts()), (vec![LinkNews::Lost(lost); 2], Vec::new()));
    link.hear(Arrival::Ended { sent: 1, received: 1 });
    assert_eq!(link.texts(), ["! source a, beside 1 fragments: 6 missing"]);
    link.hear(Arrival::Ended { sent: 0, received: 0 });
    assert_eq!(link.texts(), Vec::<String>::new(), "the next run has lost nothing");
}

#[test]
fn a_damaged_fragment_says_so_in_its_status_word_and_is_counted() {
    let corrupt = StatusWord::rob(GenericStatus::DATA_CORRUPTION, RobStatus::LINK_ERROR).0;
    let mut link = numbered(Numbers::new(None, None));
    for (number, faults) in [(0, Faults::CHECKSUM), (1, Faults::empty()), (2, Faults::CHECKSUM)] {
        link.damaged(numbered_head(number), faults);
    }
    for (number, news) in link.news().into_iter().enumerate() {
        let LinkNews::Fragment { head, bulk, .. } = news else { panic!("{news:?}") };
        let expected = if number == 1 { 0 } else { corrupt };
        assert_eq!(head.status, expected, "{number}");
        let bytes = bytes_of(&bulk);
        let rob = Rob::parse(EventFormat::V5, &bytes).unwrap();
        assert_eq!(rob.status().0, expected, "{number}");
    }
    link.hear(Arrival::Ended { sent: 3, received: 3 });
    assert_eq!(link.texts(), ["! source a, of 3 fragments: 2 with a wrong checksum"]);
    link.hear(Arrival::Ended { sent: 0, received: 0 });
    assert_eq!(link.texts(), Vec::<String>::new(), "the count is of one run");
    let mut link = Link::new(Content::Matched(Axis::Time), Numbers::new(None, None), Returning::Always);
    link.damaged(timed_head(4), Faults::CHECKSUM);
    assert!(matches!(link.news()[..], [LinkNews::Chunk { status, .. }] if status == corrupt));
}

#[test]
fn who_returns_and_counts_by_itself_is_kept_out_until_the_next_run() {
    let mut link = numbered(Numbers::new(None, None));
    link.reception.state.order(LinkOrder::Start);
    link.fragment(numbered_head(0));
    assert_eq!(link.reception.succession.refusal(), None);
    link.fragment(Head::default());
    link.hear(Arrival::Down { reason: Lost::Closed });
    let refusal = link.reception.succession.refusal().unwrap();
    assert!(refusal.starts_with("it counts by itself"), "{refusal}");
    link.hear(Arrival::TurnedAway { why: refusal.to_owned() });
    let texts = link.texts();
    let turned_away = format!("! source a: a visitor was turned away: {refusal}");
    assert_eq!(texts, ["! source a is lost: the connection ended", &turned_away]);
    // It may end by itself while the run goes on.
    link.hear(Arrival::Ended { sent: 2, received: 2 });
    assert_eq!(link.reception.succession.refusal(), Some(refusal));
    link.reception.state.order(LinkOrder::Stop);
    link.hear(Arrival::Ended { sent: 2, received: 2 });
    assert_eq!(link.reception.succession.refusal(), None);
}

#[test]
fn who_returns_goes_on_where_the_others_are() {
    let mut link = numbered(Numbers::new(Some(4), None));
    link.newest = 40;
    link.hear(Arrival::Up { name: "a".to_owned() });
    link.fragment(numbered_head(3));
    link.hear(Arrival::Up { name: "a".to_owned() });
    link.fragment(numbered_head(10));
    let events = link.news().into_iter().filter_map(|news| match news {
        LinkNews::Fragment { head, .. } => Some(head.event.0),
        _ => None,
    });
    assert_eq!(events.collect::<Vec<_>>(), [3, 42]);
}

#[test]
fn a_malformed_trigger_stands_as_a_trigger() {
    let content = Content::Triggers { of_pushed: false };
    let mut link = Link::new(content, Numbers::new(None, None), Returning::Always);
    let nothing_known = |event| {
        let record = TriggerRecord { event: EventId(event), ..TriggerRecord::default() };
        let malformed = Losses { malformed: 1, ..Losses::default() };
        [LinkNews::Trigger(Box::new(record)), LinkNews::Lost(malformed)]
    };
    let head = |number, flags| Head { number: Some(number), trigger_type: 3, flags, ..Head::default() };
    link.fragment(head(6, Flags::empty()));
    assert_eq!(link.news(), nothing_known(6), "these are no bytes of a record");
    let texts = link.texts();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0].starts_with("! source a, event 6: no record of a trigger: "), "{texts:?}");
    let record = encode_trigger(&TriggerRecord { items: 5, ..TriggerRecord::default() });
    link.hear(delivered(head(7, Flags::empty()), &record, 0, Faults::CHECKSUM));
    link.hear(delivered(head(8, Flags::CUT), &record, 0, Faults::empty()));
    assert_eq!(link.news(), [nothing_known(7), nothing_known(8)].concat());
    assert_eq!(link.texts(), Vec::<String>::new(), "the others are only counted");
    link.hear(Arrival::Ended { sent: 3, received: 3 });
    assert_eq!(link.texts(), ["! source a, beside 3 fragments: 3 not as described"]);
}

#[test]
fn a_trigger_says_its_crossing_and_type_where_fragments_are_not_pushed() {
    let said = TriggerRecord { bcid: Some(99), items: 5, ..TriggerRecord::default() };
    for (of_pushed, bcid, trigger_type) in [(false, Some(99), Some(3)), (true, None, None)] {
        let content = Content::Triggers { of_pushed };
        let mut link = Link::new(content, Numbers::new(None, None), Returning::Always);
        let head = Head { number: Some(4), trigger_type: 3, ..Head::default() };
        link.hear(delivered(head, &encode_trigger(&said), 0, Faults::empty()));
        let record = TriggerRecord { event: EventId(4), bcid, trigger_type, ..said.clone() };
        assert_eq!(link.news(), [LinkNews::Trigger(Box::new(record))]);
    }
}

#[test]
fn what_a_source_says_is_in_the_view_and_told_when_its_words_change() {
    let mut link = numbered(Numbers::new(None, None));
    link.hear(Arrival::Up { name: "a".to_owned() });
    for text in ["event 12", "event 2041", "event 2100, armed"] {
        link.hear(Arrival::Status(text.to_owned()));
        assert_eq!(link.reception.state.now(true).status, text);
    }
    link.fragment(Head { number: Some(8), time: Some((90, 95)), ..Head::default() });
    let now = link.reception.state.now(true);
    assert_eq!((now.phase, now.number, now.time_ns), (SourcePhase::Configured, 8, 95));
    link.hear(Arrival::Down { reason: Lost::Silent });
    let now = link.reception.state.now(true);
    assert_eq!((now.phase, now.status.as_str()), (SourcePhase::Absent, "the other end does not answer"));
    let (is_there, lost) = ("source a is there", "! source a is lost: the other end does not answer");
    let texts = [is_there, "source a: event 12", "source a: event 2100, armed", lost];
    assert_eq!(link.texts(), texts);
    let news = link.news();
    assert!(matches!(news[..], [LinkNews::Up, LinkNews::Fragment { .. }, LinkNews::Down]), "{news:?}");
}

/// A reception, with what has come of what it heard.
struct Link {
    reception: Reception,
    newest: u64,
    news: Vec<(u16, LinkNews)>,
    messages: Vec<Message>,
}

impl Link {
    fn new(content: Content, numbers: Numbers, returning: Returning) -> Self {
        let reception = Reception::new("source a".to_owned(), content, numbers, returning);
        Self { reception, newest: 0, news: Vec::new(), messages: Vec::new() }
    }

    fn hear(&mut self, arrival: Arrival) {
        let Self { reception, newest, news, messages } = self;
        reception.hear(arrival, &mut Pass { rob: ROB, newest: *newest, news, messages });
    }

    fn fragment(&mut self, head: Head) {
        self.damaged(head, Faults::empty());
    }

    fn damaged(&mut self, head: Head, faults: Faults) {
        let headroom = match self.reception.content {
            Content::Numbered(_) => PushedFragments::HEADROOM,
            Content::Matched(_) => ChunkHead::BYTES,
            Content::Triggers { .. } => 0,
        };
        self.hear(delivered(head, &PAYLOAD, headroom, faults));
    }

    /// The news since the last call.
    fn news(&mut self) -> Vec<LinkNews> {
        let news = self.news.drain(..).map(|(rob, news)| {
            assert_eq!(rob, ROB);
            news
        });
        news.collect()
    }

    /// What people are told since the last call; with a mark before what is wrong.
    fn texts(&mut self) -> Vec<String> {
        let texts = self.messages.drain(..).map(|message| match message {
            Message::News(text) => text,
            Message::Notice(text) => format!("! {text}"),
            other => panic!("{other:?}"),
        });
        texts.collect()
    }
}

/// A source with the numbers of events.
fn numbered(numbers: Numbers) -> Link {
    let fragments = PushedFragments { source_id: ID, run_number: RUN, adler32: false };
    Link::new(Content::Numbered(fragments), numbers, Returning::IfNumbered)
}

fn numbered_head(number: u64) -> Head {
    Head { number: Some(number), ..Head::default() }
}

fn timed_head(time: u64) -> Head {
    Head { time: Some((time, time)), ..Head::default() }
}

fn bytes_of(bulk: &Bulk) -> Vec<u8> {
    bulk.slices().iter().flat_map(PageSlice::as_bytes).copied().collect()
}

fn delivered(head: Head, payload: &[u8], headroom: usize, faults: Faults) -> Arrival {
    let options = PoolOptions { name: "test".into(), page_len: 512, pages: 1, prefault: false };
    let mut page = Pool::new(&options).unwrap().take().unwrap();
    page.bytes_mut()[headroom..][..payload.len()].copy_from_slice(payload);
    Arrival::Fragment { head, page, len: payload.len(), faults }
}

const ID: u32 = 0x51_0003;
const RUN: u32 = 7;
const ROB: u16 = 2;
const PAYLOAD: [u8; 8] = *b"payload.";

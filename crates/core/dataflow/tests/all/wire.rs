//! Messages as bytes: what is written reads back, and nothing that arrives can do harm.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use base::bulk::{Bulk, PageSlice};
use base::histogram::Histogram;
use base::ids::{EventId, Incarnation, NodeId, Role, RunNumber};
use base::sources::{SourceNow, SourcePhase};
use dataflow::building::destinations::Destinations;
use dataflow::ledger::{Finish, Ledger, Tally};
use dataflow::message::{
    Assignment, Attempt, BuiltEvent, BusyCause, Command, DataReply, DataRequest, DatagramAddresses, DebugReason,
    Decision, Ended, Envelope, EventInfo, Fate, FileRecord, Grounds, HeldEvent, Holdings, LinkTrigger, Message,
    MissedClears, Missing, PeerPlace, PushOrder, Recording, Roi, Settlement,
};
use dataflow::report::{
    BlockCause, Blocked, Carried, ChainCount, Counters, DatagramCounts, LinkClock, LinkReport, LinkState, Network,
    PORTS_MAX, PeerCount, Report, RosCounters, Unexpected,
};
use dataflow::wire::{
    HEADER_LEN, VERSION, WireError, decode, decode_numbered, decode_parts, encode, readdress, set_number,
};
use dataflow::work_kind::WorkKind;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use timing::Interval;
use timing::slices::Passed;

use crate::any_frame::check_any_frame;

proptest! {
    #[test]
    fn what_is_written_reads_back(envelope in envelopes(), message in messages()) {
        prop_assert_eq!(decode(&frame(&envelope, &message)), Ok((envelope, message)));
    }

    #[test]
    fn a_frame_behind_another_says_its_own_length(first in messages(), message in messages()) {
        let mut bytes = Vec::new();
        encode(&ENVELOPE, &first, &mut bytes);
        let start = bytes.len();
        encode(&ENVELOPE, &message, &mut bytes);
        let bulk = message.bulk().map_or(Vec::new(), bytes_of);
        let whole = [&bytes[start..], &bulk].concat();
        let length = |at: usize| u32::from_le_bytes(whole[at..at + 4].try_into().unwrap()) as usize;
        prop_assert_eq!((length(0), length(4)), (whole.len(), whole.len() - HEADER_LEN - bulk.len()));
        prop_assert_eq!(decode(&PageSlice::from(whole)), Ok((ENVELOPE, message)));
    }

    #[test]
    fn bulk_that_came_by_handle_is_taken_as_it_is(message in messages(), cut in any::<prop::sample::Index>()) {
        let whole = frame(&ENVELOPE, &message);
        let bulk_len = message.bulk().map_or(0, Bulk::len);
        let head_len = whole.len() - bulk_len;
        let (head, bulk) = (whole.slice(0..head_len), whole.slice(head_len..whole.len()));
        let cut = cut.index(bulk_len + 1);
        let rest = Bulk::PageList(vec![bulk.slice(0..cut), bulk.slice(cut..bulk_len)]);
        let (_, decoded) = decode_parts(&head, rest.clone()).unwrap();
        prop_assert_eq!(decoded.bulk().map(bytes_of), message.bulk().map(bytes_of));
        // The bulk is what came by handle, neither more nor less.
        let longer = whole.slice(0..head_len + bulk_len.min(1));
        if bulk_len > 0 {
            prop_assert!(decode_parts(&longer, rest).is_err());
            prop_assert!(decode_parts(&head, Bulk::empty()).is_err());
        }
    }

    #[test]
    fn a_message_cut_or_lengthened_is_refused(message in messages(), cut in any::<prop::sample::Index>()) {
        let whole = frame(&ENVELOPE, &message);
        let len = cut.index(whole.len());
        prop_assert!(decode(&whole.slice(0..len)).is_err());
        let longer = [whole.as_bytes(), &[0]].concat();
        prop_assert!(decode(&PageSlice::from(longer)).is_err());
    }

    #[test]
    fn a_flipped_bit_is_refused_or_makes_another_message(message in messages(), bit in any::<prop::sample::Index>()) {
        let mut bytes = frame(&ENVELOPE, &message).as_bytes().to_vec();
        let bit = bit.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        check_any_frame(&bytes);
    }

    #[test]
    fn random_bytes_are_survived(mut bytes in vec(any::<u8>(), 0..400), kind in 0_u16..KINDS_END) {
        if bytes.len() >= HEADER_LEN {
            let (total, body) = (bytes.len() as u32, bytes.len() as u32 - HEADER_LEN as u32);
            bytes[0..4].copy_from_slice(&total.to_le_bytes());
            bytes[4..8].copy_from_slice(&body.to_le_bytes());
            bytes[24..26].copy_from_slice(&kind.to_le_bytes());
            bytes[26..28].copy_from_slice(&VERSION.to_le_bytes());
        }
        check_any_frame(&bytes);
    }
}

#[test]
fn a_message_of_every_kind_reads_back() {
    for (name, message) in messages_of_every_kind() {
        assert_eq!(decode(&frame(&ENVELOPE, &message)), Ok((ENVELOPE, message)), "{name}");
    }
}

/// A drawn bit seldom is the one that a reader overlooks.
#[test]
fn each_flipped_bit_of_every_kind_is_refused_or_makes_another_message() {
    for (_, message) in messages_of_every_kind() {
        let mut bytes = frame(&ENVELOPE, &message).as_bytes().to_vec();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            check_any_frame(&bytes);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

/// Random bytes are seldom so short that a certain field is the one that is missing.
#[test]
fn a_body_of_every_kind_that_ends_anywhere_is_refused() {
    for (name, message) in messages_of_every_kind() {
        let whole = frame(&ENVELOPE, &message).as_bytes().to_vec();
        let body_len = u32::from_le_bytes(whole[4..8].try_into().unwrap());
        for len in 0..body_len {
            let mut bytes = whole[..HEADER_LEN + len as usize].to_vec();
            let total = bytes.len() as u32;
            bytes[0..4].copy_from_slice(&total.to_le_bytes());
            bytes[4..8].copy_from_slice(&len.to_le_bytes());
            let read = decode(&PageSlice::from(bytes));
            assert!(matches!(read, Err(WireError::Body { .. })), "{name}, {len} of {body_len} bytes: {read:?}");
        }
    }
}

#[test]
fn a_frame_is_taken_under_its_number_alone() {
    let message = Message::FinishedBelow(EventId(7));
    for number in [0, 1, u32::MAX] {
        let mut bytes = frame(&ENVELOPE, &message).as_bytes().to_vec();
        set_number(&mut bytes, number);
        let bytes = PageSlice::from(bytes);
        assert_eq!(decode_numbered(&bytes, Bulk::empty(), number), Ok((ENVELOPE, message.clone())));
        let (found, expected) = (number, number ^ 1);
        let refused = decode_numbered(&bytes, Bulk::empty(), expected);
        assert_eq!(refused, Err(WireError::Number { found, expected }));
    }
}

#[test]
fn a_frame_for_another_receiver_differs_in_the_receiver_alone() {
    let other = Envelope { to: NodeId(0x1234), to_incarnation: Incarnation(0x5678_9abc), ..ENVELOPE };
    for (name, message) in messages_of_every_kind() {
        let mut bytes = Vec::new();
        encode(&ENVELOPE, &message, &mut bytes);
        let mut expected = Vec::new();
        encode(&other, &message, &mut expected);
        readdress(&mut bytes, &other);
        assert_eq!(bytes, expected, "{name}");
    }
}

#[test]
fn the_bulk_of_every_kind_can_be_replaced() {
    for (name, mut message) in messages_of_every_kind() {
        let other = Bulk::Pages(PageSlice::from_static(b"elsewhere"));
        let has_bulk = message.bulk().is_some();
        let replaced = message.bulk_mut().map(|bulk| *bulk = other.clone()).is_some();
        assert_eq!(replaced, has_bulk, "{name}");
        assert_eq!(message.bulk().cloned(), has_bulk.then_some(other), "{name}");
    }
}

fn bytes_of(bulk: &Bulk) -> Vec<u8> {
    bulk.slices().iter().flat_map(|slice| slice.as_bytes().to_vec()).collect()
}

#[test]
fn a_list_longer_than_its_frame_is_refused_before_anything_is_allocated() {
    let request = Message::RoiRequest { event: EventId(1), request: 2, robs: vec![7] };
    let mut bytes = frame(&ENVELOPE, &request).as_bytes().to_vec();
    let count_at = HEADER_LEN + 12;
    bytes[count_at..count_at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    let refused = decode(&PageSlice::from(bytes));
    assert!(matches!(refused, Err(WireError::Body { offset: 16, .. })), "{refused:?}");
}

#[test]
fn replies_that_are_longer_than_their_bulk_are_refused() {
    let reply = DataReply { event: EventId(1), attempt: 1, request: 1, missing: Vec::new(), len_bytes: u32::MAX };
    let bulk = Bulk::Pages(PageSlice::from_static(b"bytes"));
    let refused =
        decode(&frame(&ENVELOPE, &Message::EventReply { pushed: 0, replies: vec![reply.clone(), reply], bulk }));
    assert!(matches!(refused, Err(WireError::Body { kind: 22, .. })), "{refused:?}");
}

#[test]
fn the_layout_is_the_documented_one() {
    let ended = Ended { event: EventId(0x0102_0304_0506_0708), attempt: 9, missing: 10 };
    let message = Message::EndOfEvent(vec![ended]);
    let bytes = frame(&ENVELOPE, &message);
    let expected: [&[u8]; 13] = [
        &50_u32.to_le_bytes(),
        &18_u32.to_le_bytes(),
        &2_u16.to_le_bytes(),
        &1_u16.to_le_bytes(),
        &3_u32.to_le_bytes(),
        &4_u32.to_le_bytes(),
        &5_u32.to_le_bytes(),
        &[23, 0, 22, 0],
        &[0; 4],
        &1_u32.to_le_bytes(),
        &[8, 7, 6, 5, 4, 3, 2, 1],
        &[9, 0],
        &[10, 0, 0, 0],
    ];
    assert_eq!(bytes.as_bytes(), expected.concat());
}

#[test]
fn bulk_behind_a_message_without_is_refused() {
    let mut bytes = frame(&ENVELOPE, &Message::Drained).as_bytes().to_vec();
    bytes.push(1);
    bytes[0..4].copy_from_slice(&(HEADER_LEN as u32 + 1).to_le_bytes());
    assert_eq!(decode(&PageSlice::from(bytes)), Err(WireError::Bulk { kind: 41 }));
}

/// The corpus of the fuzz target `message`; `UPDATE_CORPUS=1` writes frames of every kind to it.
#[test]
fn the_corpus_is_replayed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/corpus/message");
    if std::env::var_os("UPDATE_CORPUS").is_some() {
        std::fs::create_dir_all(folder).unwrap();
        for (name, message) in messages_of_every_kind() {
            std::fs::write(format!("{folder}/{name}"), frame(&ENVELOPE, &message).as_bytes()).unwrap();
        }
        let rich = Message::EventReply {
            pushed: 1 << 40,
            replies: vec![
                DataReply {
                    event: EventId(1 << 33),
                    attempt: 2,
                    request: 4,
                    missing: vec![Missing { rob: 3, lost: true }],
                    len_bytes: 1,
                },
                DataReply { event: EventId(7), attempt: 1, request: 0, missing: Vec::new(), len_bytes: 3 },
            ],
            bulk: Bulk::Pages(PageSlice::from_static(b"four")),
        };
        let whole = frame(&ENVELOPE, &rich);
        std::fs::write(format!("{folder}/reply"), whole.as_bytes()).unwrap();
        std::fs::write(format!("{folder}/reply_cut"), &whole.as_bytes()[..40]).unwrap();
    }
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let frames: Vec<Vec<u8>> = files.iter().map(|path| std::fs::read(path).unwrap()).collect();
    frames.iter().for_each(|bytes| check_any_frame(bytes));
    let are_taken = frames.iter().filter(|bytes| decode(&PageSlice::copy_of(bytes)).is_ok());
    let in_corpus: BTreeSet<u16> = are_taken.map(|bytes| kind_of(bytes)).collect();
    assert_eq!(in_corpus, known_kinds(), "the corpus has a frame of each kind; UPDATE_CORPUS=1 writes them");
}

/// Frames of the corpus mean what they meant. Who changes the layout raises [`VERSION`] and writes both anew, first with
/// `UPDATE_CORPUS=1`, then with `UPDATE_GOLDEN=1`.
#[test]
fn every_message_has_a_golden_frame() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/corpus/message");
    let mut found = format!("version {VERSION}\n");
    for name in messages_of_every_kind().keys() {
        let bytes = std::fs::read(format!("{folder}/{name}")).expect("UPDATE_CORPUS=1 writes a frame of each kind");
        let (envelope, message) = decode(&PageSlice::copy_of(&bytes)).unwrap();
        assert_eq!(frame(&envelope, &message).as_bytes(), bytes, "{name}");
        writeln!(found, "{name} {message:?}").unwrap();
    }
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/messages.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(golden, &found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(golden).unwrap());
}

/// Who may say each kind of message to whom, and as what work it counts, with how many of it in a message.
#[test]
fn every_kind_has_its_ways_and_its_work() {
    let mut found = String::new();
    for (name, message) in messages_of_every_kind().into_iter().filter(|(name, _)| name.ends_with("_0")) {
        let (work, count) = WorkKind::of(&message);
        writeln!(found, "{name} {}: {count} {}", message.name(), work.name()).unwrap();
        let roles = || Role::IN_DRAIN_ORDER.into_iter().chain([Role::RunControl]);
        for from in roles() {
            let receivers: Vec<_> = roles().filter(|to| message.may_go(from, *to)).collect();
            if !receivers.is_empty() {
                let receivers: Vec<String> = receivers.iter().map(ToString::to_string).collect();
                writeln!(found, "  {from} -> {}", receivers.join(" ")).unwrap();
            }
        }
    }
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/kinds.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(golden, &found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(golden).unwrap());
}

/// What is written and what is read are the same kinds, and random bytes get to each of them.
#[test]
fn the_kinds_that_are_read_are_those_that_are_written() {
    let messages = messages_of_every_kind();
    let written: BTreeSet<u16> =
        messages.values().map(|message| kind_of(frame(&ENVELOPE, message).as_bytes())).collect();
    let variants: BTreeSet<_> =
        messages.values().map(|message| format!("{:?}", core::mem::discriminant(message))).collect();
    assert_eq!((known_kinds(), written.len()), (written.clone(), variants.len()));
    assert!(written.last() < Some(&KINDS_END), "{written:?}");
}

/// All simple messages, and one of every other kind, with the names of their files.
fn messages_of_every_kind() -> BTreeMap<String, Message> {
    let mut runner = TestRunner::deterministic();
    let mut any = || messages().new_tree(&mut runner).unwrap().current();
    let mut named = BTreeMap::new();
    for message in simple_messages() {
        let kind = kind_of(frame(&ENVELOPE, &message).as_bytes());
        let again = (0..).find(|n| !named.contains_key(&format!("kind_{kind:02}_{n}"))).unwrap();
        named.insert(format!("kind_{kind:02}_{again}"), message);
    }
    for message in (0..2_000).map(|_| any()) {
        let (len, kind) = (frame(&ENVELOPE, &message).as_bytes().len(), kind_of(frame(&ENVELOPE, &message).as_bytes()));
        let is_longer = |known: &Message| frame(&ENVELOPE, known).as_bytes().len() < len;
        // The longest: lists that are not empty.
        if named.get(&format!("kind_{kind:02}_0")).is_none_or(is_longer) {
            named.insert(format!("kind_{kind:02}_0"), message);
        }
    }
    named
}

/// The kinds that are not refused as unknown.
fn known_kinds() -> BTreeSet<u16> {
    let empty = |kind: u16| {
        let mut bytes = frame(&ENVELOPE, &Message::Drained).as_bytes().to_vec();
        bytes[24..26].copy_from_slice(&kind.to_le_bytes());
        decode(&PageSlice::from(bytes))
    };
    (0..=u16::MAX).filter(|&kind| !matches!(empty(kind), Err(WireError::Kind { .. }))).collect()
}

fn kind_of(frame: &[u8]) -> u16 {
    u16::from_le_bytes([frame[24], frame[25]])
}

/// No message has a kind from here on.
const KINDS_END: u16 = 80;

const ENVELOPE: Envelope = Envelope {
    from: NodeId(1),
    to: NodeId(2),
    run: RunNumber(3),
    from_incarnation: Incarnation(4),
    to_incarnation: Incarnation(5),
};

fn frame(envelope: &Envelope, message: &Message) -> PageSlice {
    let mut bytes = Vec::new();
    encode(envelope, message, &mut bytes);
    let bulk = message.bulk().map(Bulk::slices).unwrap_or_default();
    bulk.iter().for_each(|slice| bytes.extend_from_slice(slice.as_bytes()));
    PageSlice::from(bytes)
}

fn envelopes() -> impl Strategy<Value = Envelope> {
    any::<(u16, u16, u32, u32, u32)>().prop_map(|(from, to, run, from_incarnation, to_incarnation)| Envelope {
        from: NodeId(from),
        to: NodeId(to),
        run: RunNumber(run),
        from_incarnation: Incarnation(from_incarnation),
        to_incarnation: Incarnation(to_incarnation),
    })
}

fn times() -> impl Strategy<Value = Interval> {
    any::<(u64, u64)>().prop_map(|(begin, end)| Interval { begin, end })
}

fn messages() -> impl Strategy<Value = Message> {
    let event = || any::<u64>().prop_map(EventId);
    let text = || "[a-zé ]{0,12}";
    let ids = || vec(any::<u32>(), 0..5);
    prop_oneof![
        vec((infos(), times()), 0..4).prop_map(|events| {
            let (events, times) = events.into_iter().unzip();
            Message::L1Accept { events, times }
        }),
        vec(infos(), 0..4).prop_map(|events| Message::L1Accept { events, times: Vec::new() }),
        (infos(), vec(rois(), 0..4)).prop_map(|(event, rois)| Message::L1Result { event, rois }),
        (infos(), any::<u16>(), vec(rois(), 0..4)).prop_map(|(event, attempt, rois)| Message::Assign {
            event,
            attempt,
            rois
        }),
        (vec((any::<(u64, u8)>(), times()), 0..4), any::<bool>()).prop_map(|(triggers, last)| {
            let trigger = |((event, trigger_type), time)| LinkTrigger { event: EventId(event), trigger_type, time };
            Message::LinkTriggers { triggers: triggers.into_iter().map(trigger).collect(), last }
        }),
        (select(BusyCause::ALL.to_vec()), any::<bool>()).prop_map(|(cause, on)| Message::Busy { cause, on }),
        (event(), any::<u32>(), ids()).prop_map(|(event, request, robs)| Message::RoiRequest { event, request, robs }),
        (event(), any::<u32>(), missing(), bulk()).prop_map(|(event, request, missing, bulk)| Message::RoiReply {
            event,
            request,
            missing,
            bulk
        }),
        (event(), bulk()).prop_map(|(event, bulk)| Message::L2Result { event, bulk }),
        (event(), any::<(u16, [bool; 3])>(), builder()).prop_map(|(event, (attempt, flags), builder)| {
            let [accept, lacks_data, has_result] = flags;
            Message::L2Decision { event, attempt, accept, lacks_data, has_result, builder }
        }),
        (event(), ids(), bulk()).prop_map(|(event, robs, bulk)| Message::Collected { event, robs, bulk }),
        (any::<u64>(), event(), vec(decisions(), 0..4)).prop_map(|(sequence, oldest_undecided, decisions)| {
            Message::Decisions { sequence, oldest_undecided, decisions }
        }),
        (vec(assignments(), 0..4), event())
            .prop_map(|(events, oldest_unfinished)| Message::Build { events, oldest_unfinished }),
        ledgers().prop_map(Message::Ledger),
        vec(data_requests(), 0..4).prop_map(|requests| Message::EventRequest { requests: requests.into() }),
        vec((data_replies(), vec(any::<u8>(), 0..50)), 0..4).prop_map(event_reply),
        vec((event(), any::<(u16, u32)>()), 0..4).prop_map(|events| {
            let ended = events.into_iter().map(|(event, (attempt, missing))| Ended { event, attempt, missing });
            Message::EndOfEvent(ended.collect())
        }),
        vec((event(), any::<u16>()), 0..4).prop_map(|attempts| {
            Message::Granted(attempts.into_iter().map(|(event, attempt)| Attempt { event, attempt }).collect())
        }),
        (any::<u64>(), event(), any::<bool>(), vec(event(), 0..5)).prop_map(
            |(sequence, oldest_valid, last, events)| Message::Clear {
                sequence,
                oldest_valid,
                last,
                events: events.into()
            }
        ),
        built().prop_map(Message::BuiltEvent),
        (built(), any::<(u32, u8)>()).prop_map(|(built, (streams, debug))| {
            Message::Record(Recording { built, streams, debug: DebugReason::from_u8(debug % 9) })
        }),
        built().prop_map(|built| Message::Sample(Box::new(Recording { built, streams: 3, debug: None }))),
        fates().prop_map(Message::Finished),
        holdings().prop_map(Message::Held),
        (any::<(u16, u32, bool)>(), vec(event(), 0..5), fates()).prop_map(|((sfi, life, last), events, finished)| {
            Message::Orphans { sfi: NodeId(sfi), life: Incarnation(life), events, finished, last }
        }),
        reports().prop_map(|report| Message::Report(Box::new(report))),
        (text(), text(), any::<([u64; 3], u32)>()).prop_map(|(path, stream, (counts, adler32))| {
            let [events, first_copies, bytes] = counts;
            Message::FileClosed(FileRecord { path, stream, events, first_copies, bytes, adler32 })
        }),
        any::<[u8; 32]>().prop_map(|nonce| Message::Challenge { nonce }),
        any::<[[u8; 32]; 2]>().prop_map(|[nonce, proof]| Message::Response { nonce, proof }),
        any::<[u8; 32]>().prop_map(|proof| Message::Confirm { proof }),
        (text(), text()).prop_map(|(name, address)| Message::Join { name, address }),
        (text(), vec(any::<u16>().prop_map(NodeId), 0..3), vec(ids(), 0..3), datagrams()).prop_map(
            |(configuration, hosted, robs, datagrams)| Message::Welcome { configuration, hosted, robs, datagrams },
        ),
        (any::<u16>(), datagrams()).prop_map(|(part, datagrams)| Message::Greet { part, datagrams }),
        datagrams().prop_map(|datagrams| Message::Ready { datagrams }),
        (any::<[u64; 4]>(), vec(event(), 0..4)).prop_map(|([rejected, accepted, forced, incomplete], uncleared)| {
            Message::Resume { rejected, accepted, forced, incomplete, uncleared }
        }),
        (infos(), vec(rois(), 0..3)).prop_map(|(event, rois)| Message::L1Again { event, rois }),
        (any::<u64>(), settlements()).prop_map(|(cleared, decided)| Message::Settled { cleared, decided }),
        (settlements(), any::<bool>()).prop_map(|(decided, last)| Message::TakenBefore { decided, last }),
        vec(decisions(), 0..4).prop_map(Message::AcceptedBefore),
        vec((any::<(u16, u32)>(), text()), 0..3).prop_map(|places| {
            let place = |((node, life), address)| PeerPlace { node: NodeId(node), life: Incarnation(life), address };
            Message::Peers(places.into_iter().map(place).collect())
        }),
        (any::<(u16, u32)>(), text()).prop_map(|((node, life), reason)| Message::Lost {
            node: NodeId(node),
            life: Incarnation(life),
            reason,
        }),
        simple(),
    ]
}

fn simple() -> impl Strategy<Value = Message> {
    select(simple_messages())
}

fn simple_messages() -> Vec<Message> {
    let (event, attempt) = (EventId(5), 6);
    vec![
        Message::IssuedUpTo(event),
        Message::NoMore,
        Message::Passed(Passed { first: 1 << 40, all: 3, any: u64::MAX, last: true }),
        Message::PassedTaken,
        Message::Lead(true),
        Message::Taken(u64::MAX),
        Message::L2ResultTaken(event),
        Message::DecisionsTaken { up_to: 3, oldest_unfinished: event },
        Message::FinishedBelow(event),
        Message::Ledger(Box::new(Ledger { below: event, ..Ledger::default() })),
        Message::Held(Holdings { newest: Some(event), last: true, ..Holdings::default() }),
        Message::EndOfEvent(vec![Ended { event, attempt, missing: 2 }]),
        Message::Granted(vec![Attempt { event, attempt }]),
        Message::Revoked(vec![Attempt { event, attempt }]),
        Message::SfiBusy(true),
        Message::ClearAsk(MissedClears { first: 1, bits: 9 }),
        Message::Push(vec![PushOrder { event: EventInfo { event, ..EventInfo::default() }, sfi: NodeId(9) }]),
        Message::Destinations(Destinations { version: 2, first: event, run: 4, sfis: vec![NodeId(8), NodeId(9)] }),
        Message::Credit(1 << 33),
        Message::SettledTaken,
        Message::Forget { up_to: 7, former: true },
        Message::Pull(4),
        Message::Recorded { event, fresh: false, complete: true },
        Message::Refused(event),
        Message::Command(Command::Abandon),
        Message::Command(Command::Progress),
        Message::Command(Command::Sample),
        Message::Command(Command::Stamps),
        Message::Command(Command::StampPolls),
        Message::Command(Command::NoStamps),
        Message::Progress(7),
        Message::Drained,
        Message::Exhausted,
        Message::Notice("words".into()),
        Message::News("good words".into()),
        Message::Stamped("/traces/ros-1.weirtrace".into()),
        Message::Orphaned { sfi: NodeId(4), life: Incarnation(1) },
        Message::Orphans {
            sfi: NodeId(4),
            life: Incarnation(1),
            events: vec![event],
            finished: vec![Finish { event, fate: Fate::Debug, complete: false, grounds: Grounds::PartOfData }],
            last: true,
        },
        Message::Greet { part: 1, datagrams: Box::default() },
        Message::Ready { datagrams: Box::default() },
        Message::Failed("why".into()),
        Message::Lost { node: NodeId(3), life: Incarnation(1), reason: "why".into() },
        Message::Gone(NodeId(3)),
    ]
}

fn datagrams() -> impl Strategy<Value = Box<DatagramAddresses>> {
    let address = "[a-z0-9:.]{0,20}";
    let addresses = (address, address, vec((address, address), 0..3));
    addresses.prop_map(|(control, bulk, ports)| Box::new(DatagramAddresses { control, bulk, ports }))
}

fn settlements() -> impl Strategy<Value = Vec<Settlement>> {
    let one = (any::<(u64, bool)>(), grounds());
    vec(one.prop_map(|((event, accept), grounds)| Settlement { event: EventId(event), accept, grounds }), 0..4)
}

fn infos() -> impl Strategy<Value = EventInfo> {
    (any::<(u64, u64, u16, u8, u32)>(), grounds()).prop_map(|((event, ordinal, bcid, trigger_type, items), grounds)| {
        EventInfo { event: EventId(event), ordinal, bcid, trigger_type, items, grounds }
    })
}

fn grounds() -> impl Strategy<Value = Grounds> {
    (0..3_u8).prop_map(|value| Grounds::from_u8(value).unwrap())
}

fn assignments() -> impl Strategy<Value = Assignment> {
    (infos(), any::<u16>(), any::<bool>()).prop_map(|(event, attempt, has_result)| Assignment {
        event,
        attempt,
        has_result,
    })
}

fn fates() -> impl Strategy<Value = Vec<Finish>> {
    let finish = |((event, complete), fate, grounds)| Finish {
        event: EventId(event),
        fate: Fate::from_u8(fate).unwrap(),
        complete,
        grounds,
    };
    vec((any::<(u64, bool)>(), 0_u8..5, grounds()).prop_map(finish), 0..4)
}

fn ledgers() -> impl Strategy<Value = Box<Ledger>> {
    let ledger =
        |(below, values): (u64, Vec<u64>)| Ledger { below: EventId(below), tally: Tally::from_values(&values) };
    (any::<u64>(), vec(any::<u64>(), 11)).prop_map(ledger).prop_map(Box::new)
}

fn holdings() -> impl Strategy<Value = Holdings> {
    let held = (assignments(), any::<(bool, u32)>()).prop_map(|(assigned, (granted, missing))| HeldEvent {
        assigned,
        granted,
        missing,
    });
    (ledgers(), any::<(Option<u64>, bool)>(), vec(held, 0..4), fates()).prop_map(
        |(ledger, (newest, last), events, finished)| Holdings {
            ledger,
            newest: newest.map(EventId),
            events,
            finished,
            last,
        },
    )
}

fn data_requests() -> impl Strategy<Value = DataRequest> {
    (infos(), any::<(u16, u32)>(), vec(any::<u32>(), 0..5)).prop_map(|(event, (attempt, request), robs)| DataRequest {
        event,
        attempt,
        request,
        robs,
    })
}

/// The length is set with the bulk.
fn data_replies() -> impl Strategy<Value = DataReply> {
    (any::<(u64, u16, u32)>(), missing()).prop_map(|((event, attempt, request), missing)| DataReply {
        event: EventId(event),
        attempt,
        request,
        missing,
        len_bytes: 0,
    })
}

fn event_reply(parts: Vec<(DataReply, Vec<u8>)>) -> Message {
    let bulk: Vec<u8> = parts.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    let replies = parts.into_iter().map(|(reply, bytes)| DataReply { len_bytes: bytes.len() as u32, ..reply });
    Message::EventReply { pushed: 77, replies: replies.collect(), bulk: Bulk::Pages(PageSlice::from(bulk)) }
}

fn rois() -> impl Strategy<Value = Roi> {
    let numbers = any::<(u8, u8, u8, i32, [i32; 2], u32)>();
    (numbers, -5_f32..5.0, 0_f32..6.3).prop_map(|((kind, ieta, iphi, et_mev, aux_mev, thresholds), eta, phi)| Roi {
        kind,
        ieta,
        iphi,
        eta,
        phi,
        et_mev,
        aux_mev,
        thresholds,
    })
}

fn decisions() -> impl Strategy<Value = Decision> {
    (infos(), any::<(bool, bool)>(), builder()).prop_map(|(event, (accept, has_result), builder)| Decision {
        event,
        accept,
        has_result,
        builder,
    })
}

fn builder() -> impl Strategy<Value = Option<NodeId>> {
    proptest::option::of((1..=u16::MAX).prop_map(NodeId))
}

fn missing() -> impl Strategy<Value = Vec<Missing>> {
    vec(any::<(u32, bool)>().prop_map(|(rob, lost)| Missing { rob, lost }), 0..4)
}

fn bulk() -> impl Strategy<Value = Bulk> {
    vec(any::<u8>(), 0..50).prop_map(|bytes| Bulk::Pages(PageSlice::from(bytes)))
}

fn built() -> impl Strategy<Value = BuiltEvent> {
    (infos(), any::<u64>(), vec(any::<u32>(), 0..4), bulk()).prop_map(|(event, oldest, missing, bulk)| BuiltEvent {
        event,
        oldest_unfinished: EventId(oldest),
        missing,
        bulk,
    })
}

fn reports() -> impl Strategy<Value = Report> {
    let peers = vec(any::<(u16, [u64; 3])>().prop_map(|(node, counts)| PeerCount { node: NodeId(node), counts }), 0..3);
    let causes = vec![BlockCause::NoSfi, BlockCause::Recording, BlockCause::Busy(BusyCause::Pages)];
    let blocked = (any::<u16>(), select(causes), any::<u64>()).prop_map(|(by, cause, time_ns)| Blocked {
        by: NodeId(by),
        cause,
        time_ns,
    });
    let times = vec(1_u64..1 << 40, 0..20);
    let node = (any::<u16>(), select(Role::IN_DRAIN_ORDER.to_vec()));
    (node, vec(any::<u64>(), 0..20), peers, vec(blocked, 0..3), times, any::<([u64; 23], [u64; PORTS_MAX])>()).prop_map(
        |((node, role), counters, peers, blocked, times, (counts, ports))| {
            let [stale, messages, bytes, malformed, data_sum, a, b, c, d, e, f, rest @ ..] = counts;
            let mut latency_ns = Histogram::default();
            times.into_iter().for_each(|time| latency_ns.record(time));
            let refused =
                |(index, &count): (usize, &u64)| Unexpected { from: NodeId(7), message: "x".repeat(index), count };
            let unexpected = counters.iter().enumerate().take(4).map(refused).collect();
            let chains = counters.iter().map(|&input| ChainCount { input, passed: input / 2 }).collect();
            let link = |&count: &u64| LinkReport {
                rob: count as u32,
                state: LinkState::from_u8((count % 5) as u8).unwrap(),
                counters: RosCounters { fragments_in: count, ..RosCounters::default() },
                clock: (count % 3 > 0).then(|| LinkClock {
                    drift: -(count.cast_signed() >> 1),
                    slipped_at: count,
                    ..LinkClock::default()
                }),
            };
            let links = counters.iter().take(3).map(link).collect();
            let source = |&count: &u64| SourceNow {
                phase: SourcePhase::from_u8((count % 5) as u8).unwrap(),
                is_off: count % 2 > 0,
                number: count,
                time_ns: count / 3,
                status: "x".repeat((count % 7) as usize),
            };
            let sources = counters.iter().take(3).map(source).collect();
            let carried = [[a, b], [c, d], [e, f]].map(|[messages, bytes]| Carried { messages, bytes });
            let network = Network {
                messages,
                bytes,
                malformed,
                carried,
                ports,
                datagrams: DatagramCounts::from_values(&rest),
                data_sum,
            };
            Report {
                node: NodeId(node),
                role,
                counters,
                peers,
                blocked,
                latency_ns,
                chains,
                stale,
                unexpected,
                links,
                sources,
                network,
            }
        },
    )
}

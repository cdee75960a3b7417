//! Messages as bytes.
//!
//! A frame is a header of 32 bytes, the body, and the bulk, all little-endian, without padding:
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 4 | length of the whole frame in bytes |
//! | 4 | 4 | length of the body; the bulk is the rest |
//! | 8 | 2 | receiver |
//! | 10 | 2 | sender |
//! | 12 | 4 | run number |
//! | 16 | 4 | sender's incarnation |
//! | 20 | 4 | receiver's incarnation |
//! | 24 | 2 | kind of message, see [`kind`] |
//! | 26 | 2 | version of this layout, [`VERSION`] |
//! | 28 | 4 | number of the frame on its connection, see [`set_number`]; else zero |
//!
//! Numbers have their natural size. A list is a 32-bit count and its items, a text a list of bytes of UTF-8. An
//! event with its level-1 information takes 24 bytes. Decoding checks everything and allocates at most what the
//! frame holds.

mod error;
mod holdings;
pub mod kind;
mod times;

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::building::destinations::Destinations;
use crate::message::{
    Assignment, Attempt, BuiltEvent, BusyCause, Command, DataReply, DataRequest, DatagramAddresses, DebugReason,
    Decision, Ended, Envelope, EventInfo, FileRecord, Grounds, Message, MissedClears, Missing, PeerPlace, PushOrder,
    Recording, Roi, Settlement,
};
use crate::report::{
    BlockCause, Blocked, Carried, CarrierKind, ChainCount, Counters, LinkClock, LinkReport, LinkState, Network,
    PeerCount, Report, RosCounters, Unexpected,
};
use base::bulk::{Bulk, PageSlice};
use base::histogram::Histogram;
use base::ids::{EventId, Incarnation, NodeId, Role, RunNumber};
use base::sources::{SourceNow, SourcePhase};
use timing::slices::Passed;

pub use error::WireError;

/// Version of the layout; both ends must have the same.
pub const VERSION: u16 = 22;

/// Length of the header in bytes.
pub const HEADER_LEN: usize = 32;

/// Appends header and body to `bytes`. The bulk ([`Message::bulk`]) is for the caller to send behind them: its length is in
/// the header already.
///
/// # Panics
/// If the frame is longer than 4 GiB.
pub fn encode(envelope: &Envelope, message: &Message, bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; HEADER_LEN]);
    let kind = Writer(bytes).message(message);
    let body = bytes.len() - start - HEADER_LEN;
    let total = HEADER_LEN + body + message.bulk().map_or(0, Bulk::len);
    let header = &mut bytes[start..start + HEADER_LEN];
    let mut put = |at: usize, value: &[u8]| header[at..at + value.len()].copy_from_slice(value);
    put(0, &u32::try_from(total).expect("a frame is smaller than 4 GiB").to_le_bytes());
    put(4, &(body as u32).to_le_bytes());
    put(10, &envelope.from.0.to_le_bytes());
    put(12, &envelope.run.0.to_le_bytes());
    put(16, &envelope.from_incarnation.0.to_le_bytes());
    put(24, &kind.to_le_bytes());
    put(26, &VERSION.to_le_bytes());
    readdress(header, envelope);
}

/// Writes the receiver of this envelope into the header of a frame. All else stays as it was written for another one.
///
/// # Panics
/// If there is no header.
pub fn readdress(frame: &mut [u8], envelope: &Envelope) {
    frame[8..10].copy_from_slice(&envelope.to.0.to_le_bytes());
    frame[20..24].copy_from_slice(&envelope.to_incarnation.0.to_le_bytes());
}

/// Writes the number of a frame on its connection into its header.
///
/// # Panics
/// If there is no header.
pub fn set_number(frame: &mut [u8], number: u32) {
    frame[28..HEADER_LEN].copy_from_slice(&number.to_le_bytes());
}

/// The message in a whole frame; its bulk stays where it is.
///
/// # Errors
/// If the frame is not a message of this version, to the last byte.
pub fn decode(frame: &PageSlice) -> Result<(Envelope, Message), WireError> {
    decode_parts(frame, Bulk::empty())
}

/// The message in a frame of which some came by handle. `head` is a whole frame, or all of it but the bulk, and `rest` is
/// the bulk.
///
/// # Errors
/// As [`decode`].
pub fn decode_parts(head: &PageSlice, rest: Bulk) -> Result<(Envelope, Message), WireError> {
    decode_numbered(head, rest, 0)
}

/// The message in a frame that has to have this number.
///
/// # Errors
/// As [`decode`].
pub fn decode_numbered(head: &PageSlice, rest: Bulk, number: u32) -> Result<(Envelope, Message), WireError> {
    let bytes = head.as_bytes();
    let len = bytes.len() + rest.len();
    let truncated = WireError::Truncated { len };
    let header = bytes.first_chunk::<HEADER_LEN>().ok_or(truncated)?;
    let u16_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let u32_at = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let (total, body) = (u32_at(0) as usize, u32_at(4) as usize);
    if total != len || body > bytes.len() - HEADER_LEN || (!rest.is_empty() && body < bytes.len() - HEADER_LEN) {
        return Err(truncated);
    }
    if u16_at(26) != VERSION {
        return Err(WireError::Version { found: u16_at(26) });
    }
    if u32_at(28) != number {
        return Err(WireError::Number { found: u32_at(28), expected: number });
    }
    let envelope = Envelope {
        to: NodeId(u16_at(8)),
        from: NodeId(u16_at(10)),
        run: RunNumber(u32_at(12)),
        from_incarnation: Incarnation(u32_at(16)),
        to_incarnation: Incarnation(u32_at(20)),
    };
    let kind = u16_at(24);
    let bulk = if rest.is_empty() { Bulk::Pages(head.slice(HEADER_LEN + body..total)) } else { rest };
    let mut reader = Reader { bytes: &bytes[HEADER_LEN..HEADER_LEN + body], at: 0 };
    let has_bulk = !bulk.is_empty();
    let message = reader.message(kind, bulk).map_err(|fault| match fault {
        Fault::Kind => WireError::Kind { found: kind },
        Fault::Body => WireError::Body { kind, offset: reader.at },
    })?;
    if reader.at != body {
        return Err(WireError::Body { kind, offset: reader.at });
    }
    if has_bulk && message.bulk().is_none() {
        return Err(WireError::Bulk { kind });
    }
    Ok((envelope, message))
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn message(&mut self, message: &Message) -> u16 {
        match message {
            Message::L1Accept { events, times } => {
                self.list(events, |w, event| {
                    w.info(event);
                });
                self.times(times).kind(kind::L1_ACCEPT)
            }
            Message::L1Result { event, rois } => self.info(event).rois(rois).kind(kind::L1_RESULT),
            Message::LinkTriggers { triggers, last } => {
                self.flag(*last).list(triggers, |w, trigger| {
                    w.link_trigger(trigger);
                });
                kind::LINK_TRIGGERS
            }
            Message::Passed(Passed { first, all, any, last }) => {
                self.u64(*first).u64(*all).u64(*any).flag(*last).kind(kind::PASSED)
            }
            Message::Lead(on) => self.flag(*on).kind(kind::LEAD),
            Message::IssuedUpTo(event) => self.u64(event.0).kind(kind::ISSUED_UP_TO),
            Message::NoMore => kind::NO_MORE,
            Message::Taken(count) => self.u64(*count).kind(kind::TAKEN),
            Message::Busy { cause, on } => self.u8(*cause as u8).flag(*on).kind(kind::BUSY),
            Message::Assign { event, attempt, rois } => self.info(event).u16(*attempt).rois(rois).kind(kind::ASSIGN),
            Message::RoiRequest { event, request, robs } => {
                self.u64(event.0).u32(*request).u32s(robs).kind(kind::ROI_REQUEST)
            }
            Message::RoiReply { event, request, missing, bulk: _ } => {
                self.u64(event.0).u32(*request).missing(missing).kind(kind::ROI_REPLY)
            }
            Message::L2Result { event, bulk: _ } => self.u64(event.0).kind(kind::L2_RESULT),
            Message::L2ResultTaken(event) => self.u64(event.0).kind(kind::L2_RESULT_TAKEN),
            Message::L2Decision { event, attempt, accept, lacks_data, has_result, builder } => {
                let decision = self.u64(event.0).u16(*attempt).flag(*accept).flag(*lacks_data).flag(*has_result);
                decision.builder(*builder).kind(kind::L2_DECISION)
            }
            Message::Collected { event, robs, bulk: _ } => self.u64(event.0).u32s(robs).kind(kind::COLLECTED),
            Message::Decisions { sequence, oldest_undecided, decisions } => {
                self.u64(*sequence).u64(oldest_undecided.0).decisions(decisions).kind(kind::DECISIONS)
            }
            Message::DecisionsTaken { up_to, oldest_unfinished } => {
                self.u64(*up_to).u64(oldest_unfinished.0).kind(kind::DECISIONS_TAKEN)
            }
            Message::Resume { rejected, accepted, forced, incomplete, uncleared } => {
                self.u64(*rejected).u64(*accepted).u64(*forced).u64(*incomplete).list(uncleared, |w, event| {
                    w.u64(event.0);
                });
                kind::RESUME
            }
            Message::L1Again { event, rois } => self.info(event).rois(rois).kind(kind::L1_AGAIN),
            Message::Settled { cleared, decided } => self.u64(*cleared).settlements(decided).kind(kind::SETTLED),
            Message::SettledTaken => kind::SETTLED_TAKEN,
            Message::PassedTaken => kind::PASSED_TAKEN,
            Message::Forget { up_to, former } => self.u64(*up_to).flag(*former).kind(kind::FORGET),
            Message::TakenBefore { decided, last } => self.flag(*last).settlements(decided).kind(kind::TAKEN_BEFORE),
            Message::AcceptedBefore(decisions) => self.decisions(decisions).kind(kind::ACCEPTED_BEFORE),
            Message::FinishedBelow(event) => self.u64(event.0).kind(kind::FINISHED_BELOW),
            Message::Build { events, oldest_unfinished } => {
                self.u64(oldest_unfinished.0).list(events, |w, assigned| {
                    w.assignment(assigned);
                });
                kind::BUILD
            }
            Message::EventRequest { requests } => {
                self.list(requests, |w, asked| {
                    let mut head = [0; 30];
                    head[..24].copy_from_slice(&info_bytes(&asked.event));
                    head[24..26].copy_from_slice(&asked.attempt.to_le_bytes());
                    head[26..].copy_from_slice(&asked.request.to_le_bytes());
                    w.0.extend_from_slice(&head);
                    w.u32s(&asked.robs);
                });
                kind::EVENT_REQUEST
            }
            Message::Push(orders) => {
                self.list(orders, |w, order| {
                    w.info(&order.event).u16(order.sfi.0);
                });
                kind::PUSH
            }
            Message::Destinations(Destinations { version, first, run, sfis }) => {
                self.u64(*version).u64(first.0).u32(*run).list(sfis, |w, sfi| {
                    w.u16(sfi.0);
                });
                kind::DESTINATIONS
            }
            Message::Credit(taken) => self.u64(*taken).kind(kind::CREDIT),
            Message::EventReply { pushed, replies, bulk: _ } => {
                self.u64(*pushed).list(replies, |w, reply| {
                    let mut head = [0; 18];
                    head[..8].copy_from_slice(&reply.event.0.to_le_bytes());
                    head[8..10].copy_from_slice(&reply.attempt.to_le_bytes());
                    head[10..14].copy_from_slice(&reply.request.to_le_bytes());
                    head[14..].copy_from_slice(&reply.len_bytes.to_le_bytes());
                    w.0.extend_from_slice(&head);
                    w.missing(&reply.missing);
                });
                kind::EVENT_REPLY
            }
            Message::EndOfEvent(events) => {
                self.list(events, |w, ended| {
                    w.u64(ended.event.0).u16(ended.attempt).u32(ended.missing);
                });
                kind::END_OF_EVENT
            }
            Message::Granted(attempts) => self.attempts(attempts).kind(kind::GRANTED),
            Message::Revoked(attempts) => self.attempts(attempts).kind(kind::REVOKED),
            Message::Ledger(ledger) => self.ledger(ledger).kind(kind::LEDGER),
            Message::Orphaned { sfi, life } => self.u16(sfi.0).u32(life.0).kind(kind::ORPHANED),
            Message::Orphans { sfi, life, events, finished, last } => {
                self.u16(sfi.0).u32(life.0).flag(*last).list(events, |w, event| {
                    w.u64(event.0);
                });
                self.fates(finished).kind(kind::ORPHANS)
            }
            Message::Held(holdings) => self.holdings(holdings).kind(kind::HELD),
            Message::SfiBusy(busy) => self.flag(*busy).kind(kind::SFI_BUSY),
            Message::Clear { sequence, oldest_valid, last, events } => {
                self.u64(*sequence).u64(oldest_valid.0).flag(*last).list(events, |w, event| {
                    w.u64(event.0);
                });
                kind::CLEAR
            }
            Message::ClearAsk(missed) => self.u64(missed.first).u64(missed.bits).kind(kind::CLEAR_ASK),
            Message::Pull(count) => self.u32(*count).kind(kind::PULL),
            Message::BuiltEvent(built) => self.built(built).kind(kind::BUILT_EVENT),
            Message::Record(recording) => self.recording(recording).kind(kind::RECORD),
            Message::Sample(recording) => self.recording(recording).kind(kind::SAMPLE),
            Message::Refused(event) => self.u64(event.0).kind(kind::REFUSED),
            Message::Recorded { event, fresh, complete } => {
                self.u64(event.0).flag(*fresh).flag(*complete).kind(kind::RECORDED)
            }
            Message::Finished(fates) => self.fates(fates).kind(kind::FINISHED),
            Message::Challenge { nonce } => self.bytes(nonce).kind(kind::CHALLENGE),
            Message::Response { nonce, proof } => self.bytes(nonce).bytes(proof).kind(kind::RESPONSE),
            Message::Confirm { proof } => self.bytes(proof).kind(kind::CONFIRM),
            Message::Join { name, address } => self.text(name).text(address).kind(kind::JOIN),
            Message::Welcome { configuration, hosted, robs, datagrams } => {
                self.text(configuration).list(hosted, |w, node| {
                    w.u16(node.0);
                });
                self.list(robs, |w, robs| {
                    w.u32s(robs);
                });
                self.datagrams(datagrams).kind(kind::WELCOME)
            }
            Message::Peers(peers) => {
                self.list(peers, |w, PeerPlace { node, life, address }| {
                    w.u16(node.0).u32(life.0).text(address);
                });
                kind::PEERS
            }
            Message::Greet { part, datagrams } => self.u16(*part).datagrams(datagrams).kind(kind::GREET),
            Message::Ready { datagrams } => self.datagrams(datagrams).kind(kind::READY),
            Message::Failed(text) => self.text(text).kind(kind::FAILED),
            Message::Lost { node, life, reason } => self.u16(node.0).u32(life.0).text(reason).kind(kind::LOST),
            Message::Gone(node) => self.u16(node.0).kind(kind::GONE),
            Message::Command(command) => self.u8(command_number(*command)).kind(kind::COMMAND),
            Message::Drained => kind::DRAINED,
            Message::Exhausted => kind::EXHAUSTED,
            Message::Report(report) => self.report(report).kind(kind::REPORT),
            Message::Progress(mark) => self.u64(*mark).kind(kind::PROGRESS),
            Message::FileClosed(file) => {
                let FileRecord { path, stream, events, first_copies, bytes, adler32 } = file;
                let body = self.text(path).text(stream).u64(*events).u64(*first_copies);
                body.u64(*bytes).u32(*adler32).kind(kind::FILE_CLOSED)
            }
            Message::Notice(text) => self.text(text).kind(kind::NOTICE),
            Message::News(text) => self.text(text).kind(kind::NEWS),
            Message::Stamped(file) => self.text(file).kind(kind::STAMPED),
        }
    }

    fn kind(&mut self, kind: u16) -> u16 {
        kind
    }

    fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn flag(&mut self, value: bool) -> &mut Self {
        self.u8(u8::from(value))
    }

    fn u16(&mut self, value: u16) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn list<T>(&mut self, items: &[T], mut item: impl FnMut(&mut Self, &T)) -> &mut Self {
        self.u32(u32::try_from(items.len()).expect("a list fits a frame"));
        items.iter().for_each(|value| item(self, value));
        self
    }

    fn u32s(&mut self, values: &[u32]) -> &mut Self {
        self.list(values, |w, value| {
            w.u32(*value);
        })
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.u32(u32::try_from(text.len()).expect("a text fits a frame"));
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    fn datagrams(&mut self, datagrams: &DatagramAddresses) -> &mut Self {
        self.text(&datagrams.control).text(&datagrams.bulk).list(&datagrams.ports, |w, (control, bulk)| {
            w.text(control).text(bulk);
        })
    }

    /// 0, the node of run control, for none.
    fn builder(&mut self, builder: Option<NodeId>) -> &mut Self {
        self.u16(builder.map_or(0, |node| node.0))
    }

    fn info(&mut self, event: &EventInfo) -> &mut Self {
        self.0.extend_from_slice(&info_bytes(event));
        self
    }

    fn rois(&mut self, rois: &[Roi]) -> &mut Self {
        self.list(rois, |w, roi| {
            let [first, second] = roi.aux_mev.map(i32::cast_unsigned);
            w.u8(roi.kind).u8(roi.ieta).u8(roi.iphi).u32(roi.eta.to_bits()).u32(roi.phi.to_bits());
            w.u32(roi.et_mev.cast_unsigned()).u32(first).u32(second).u32(roi.thresholds);
        })
    }

    fn attempts(&mut self, attempts: &[Attempt]) -> &mut Self {
        self.list(attempts, |w, attempt| {
            w.u64(attempt.event.0).u16(attempt.attempt);
        })
    }

    fn decisions(&mut self, decisions: &[Decision]) -> &mut Self {
        self.list(decisions, |w, d| {
            w.info(&d.event).flag(d.accept).flag(d.has_result).builder(d.builder);
        })
    }

    fn settlements(&mut self, settlements: &[Settlement]) -> &mut Self {
        self.list(settlements, |w, settlement| {
            w.u64(settlement.event.0).flag(settlement.accept).u8(settlement.grounds as u8);
        })
    }

    fn assignment(&mut self, assigned: &Assignment) -> &mut Self {
        self.info(&assigned.event).u16(assigned.attempt).flag(assigned.has_result)
    }

    fn missing(&mut self, missing: &[Missing]) -> &mut Self {
        self.list(missing, |w, missing| {
            w.u32(missing.rob).flag(missing.lost);
        })
    }

    fn built(&mut self, built: &BuiltEvent) -> &mut Self {
        self.info(&built.event).u64(built.oldest_unfinished.0).u32s(&built.missing)
    }

    fn recording(&mut self, Recording { built, streams, debug }: &Recording) -> &mut Self {
        self.built(built).u32(*streams).u8(debug.map_or(0, |reason| reason as u8))
    }

    fn report(&mut self, report: &Report) -> &mut Self {
        self.u16(report.node.0).u8(report.role as u8).u64(report.stale);
        self.list(&report.unexpected, |w, Unexpected { from, message, count }| {
            w.u16(from.0).text(message).u64(*count);
        });
        self.list(&report.counters, |w, value| {
            w.u64(*value);
        });
        self.list(&report.peers, |w, peer| {
            w.u16(peer.node.0);
            peer.counts.iter().for_each(|count| {
                w.u64(*count);
            });
        });
        self.list(&report.blocked, |w, blocked| {
            w.u16(blocked.by.0).u8(blocked.cause.to_u8()).u64(blocked.time_ns);
        });
        let entries: Vec<(u16, u64)> = report.latency_ns.entries().collect();
        self.u64(report.latency_ns.max()).list(&entries, |w, (bin, count)| {
            w.u16(*bin).u64(*count);
        });
        self.list(&report.chains, |w, chain| {
            w.u64(chain.input).u64(chain.passed);
        });
        self.list(&report.links, |w, link| {
            w.u32(link.rob).u8(link.state as u8);
            link.counters.to_values().into_iter().fold(&mut *w, Self::u64);
            w.flag(link.clock.is_some());
            link.clock.iter().flat_map(|clock| clock.to_values()).fold(w, Self::u64);
        });
        self.list(&report.sources, |w, SourceNow { phase, is_off, number, time_ns, status }| {
            w.u8(*phase as u8).flag(*is_off).u64(*number).u64(*time_ns).text(status);
        });
        let Network { messages, bytes, malformed, carried, ports, datagrams, data_sum } = report.network;
        self.u64(messages).u64(bytes).u64(malformed).u64(data_sum);
        carried.iter().for_each(|Carried { messages, bytes }| {
            self.u64(*messages).u64(*bytes);
        });
        datagrams.to_values().into_iter().chain(ports).fold(self, Self::u64)
    }
}

fn info_bytes(event: &EventInfo) -> [u8; 24] {
    let EventInfo { event, ordinal, bcid, trigger_type, items, grounds } = *event;
    let mut info = [0; 24];
    info[..8].copy_from_slice(&event.0.to_le_bytes());
    info[8..16].copy_from_slice(&ordinal.to_le_bytes());
    info[16..18].copy_from_slice(&bcid.to_le_bytes());
    info[18] = trigger_type;
    info[19..23].copy_from_slice(&items.to_le_bytes());
    info[23] = grounds as u8;
    info
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

enum Fault {
    Kind,
    Body,
}

type Read<T> = Result<T, Fault>;

impl Reader<'_> {
    fn message(&mut self, kind: u16, bulk: Bulk) -> Read<Message> {
        Ok(match kind {
            kind::L1_ACCEPT => {
                let events = self.list(24, Self::info)?;
                Message::L1Accept { times: self.times(events.len())?, events }
            }
            kind::L1_RESULT => Message::L1Result { event: self.info()?, rois: self.rois()? },
            kind::LINK_TRIGGERS => {
                Message::LinkTriggers { last: self.flag()?, triggers: self.list(25, Self::link_trigger)? }
            }
            kind::PASSED => {
                let [first, all, any] = [self.u64()?, self.u64()?, self.u64()?];
                Message::Passed(Passed { first, all, any, last: self.flag()? })
            }
            kind::LEAD => Message::Lead(self.flag()?),
            kind::ISSUED_UP_TO => Message::IssuedUpTo(self.event()?),
            kind::NO_MORE => Message::NoMore,
            kind::TAKEN => Message::Taken(self.u64()?),
            kind::BUSY => Message::Busy { cause: BusyCause::from_u8(self.u8()?).ok_or(Fault::Body)?, on: self.flag()? },
            kind::ASSIGN => Message::Assign { event: self.info()?, attempt: self.u16()?, rois: self.rois()? },
            kind::ROI_REQUEST => {
                Message::RoiRequest { event: self.event()?, request: self.u32()?, robs: self.list(4, Self::u32)? }
            }
            kind::ROI_REPLY => {
                let (event, request, missing) = (self.event()?, self.u32()?, self.missing()?);
                Message::RoiReply { event, request, missing, bulk }
            }
            kind::L2_RESULT => Message::L2Result { event: self.event()?, bulk },
            kind::L2_RESULT_TAKEN => Message::L2ResultTaken(self.event()?),
            kind::L2_DECISION => {
                let (event, attempt) = (self.event()?, self.u16()?);
                let (accept, lacks_data, has_result) = (self.flag()?, self.flag()?, self.flag()?);
                Message::L2Decision { event, attempt, accept, lacks_data, has_result, builder: self.builder()? }
            }
            kind::COLLECTED => Message::Collected { event: self.event()?, robs: self.list(4, Self::u32)?, bulk },
            kind::DECISIONS => {
                let (sequence, oldest_undecided) = (self.u64()?, self.event()?);
                Message::Decisions { sequence, oldest_undecided, decisions: self.list(28, Self::decision)? }
            }
            kind::DECISIONS_TAKEN => Message::DecisionsTaken { up_to: self.u64()?, oldest_unfinished: self.event()? },
            kind::RESUME => Message::Resume {
                rejected: self.u64()?,
                accepted: self.u64()?,
                forced: self.u64()?,
                incomplete: self.u64()?,
                uncleared: self.list(8, Self::event)?,
            },
            kind::L1_AGAIN => Message::L1Again { event: self.info()?, rois: self.rois()? },
            kind::SETTLED => Message::Settled { cleared: self.u64()?, decided: self.list(10, Self::settlement)? },
            kind::SETTLED_TAKEN => Message::SettledTaken,
            kind::PASSED_TAKEN => Message::PassedTaken,
            kind::FORGET => Message::Forget { up_to: self.u64()?, former: self.flag()? },
            kind::ACCEPTED_BEFORE => Message::AcceptedBefore(self.list(28, Self::decision)?),
            kind::TAKEN_BEFORE => {
                Message::TakenBefore { last: self.flag()?, decided: self.list(10, Self::settlement)? }
            }
            kind::FINISHED_BELOW => Message::FinishedBelow(self.event()?),
            kind::BUILD => {
                let oldest_unfinished = self.event()?;
                Message::Build { events: self.list(27, Self::assignment)?, oldest_unfinished }
            }
            kind::EVENT_REQUEST => Message::EventRequest { requests: Arc::new(self.list(34, Self::data_request)?) },
            kind::PUSH => {
                let order = |r: &mut Self| Ok(PushOrder { event: r.info()?, sfi: NodeId(r.u16()?) });
                Message::Push(self.list(26, order)?)
            }
            kind::DESTINATIONS => {
                let (version, first, run) = (self.u64()?, self.event()?, self.u32()?);
                let sfis = self.list(2, |r| r.u16().map(NodeId))?;
                Message::Destinations(Destinations { version, first, run, sfis })
            }
            kind::CREDIT => Message::Credit(self.u64()?),
            kind::EVENT_REPLY => {
                let pushed = self.u64()?;
                let replies = self.list(22, Self::data_reply)?;
                let len_bytes: u64 = replies.iter().map(|reply| u64::from(reply.len_bytes)).sum();
                if len_bytes != bulk.len() as u64 {
                    return Err(Fault::Body);
                }
                Message::EventReply { pushed, replies, bulk }
            }
            kind::END_OF_EVENT => {
                let ended = |r: &mut Self| Ok(Ended { event: r.event()?, attempt: r.u16()?, missing: r.u32()? });
                Message::EndOfEvent(self.list(14, ended)?)
            }
            kind::GRANTED => Message::Granted(self.attempts()?),
            kind::REVOKED => Message::Revoked(self.attempts()?),
            kind::HELD => Message::Held(self.holdings()?),
            kind::LEDGER => Message::Ledger(Box::new(self.ledger()?)),
            kind::ORPHANED => Message::Orphaned { sfi: NodeId(self.u16()?), life: Incarnation(self.u32()?) },
            kind::ORPHANS => {
                let (sfi, life, last) = (NodeId(self.u16()?), Incarnation(self.u32()?), self.flag()?);
                let events = self.list(8, Self::event)?;
                Message::Orphans { sfi, life, events, finished: self.fates()?, last }
            }
            kind::SFI_BUSY => Message::SfiBusy(self.flag()?),
            kind::CLEAR => {
                let (sequence, oldest_valid, last) = (self.u64()?, self.event()?, self.flag()?);
                let events = Arc::new(self.list(8, Self::event)?);
                Message::Clear { sequence, oldest_valid, last, events }
            }
            kind::CLEAR_ASK => Message::ClearAsk(MissedClears { first: self.u64()?, bits: self.u64()? }),
            kind::PULL => Message::Pull(self.u32()?),
            kind::BUILT_EVENT => Message::BuiltEvent(self.built(bulk)?),
            kind::RECORD => Message::Record(self.recording(bulk)?),
            kind::SAMPLE => Message::Sample(Box::new(self.recording(bulk)?)),
            kind::REFUSED => Message::Refused(self.event()?),
            kind::RECORDED => Message::Recorded { event: self.event()?, fresh: self.flag()?, complete: self.flag()? },
            kind::FINISHED => Message::Finished(self.fates()?),
            kind::COMMAND => Message::Command(command_of(self.u8()?).ok_or(Fault::Body)?),
            kind::DRAINED => Message::Drained,
            kind::EXHAUSTED => Message::Exhausted,
            kind::REPORT => Message::Report(Box::new(self.report()?)),
            kind::PROGRESS => Message::Progress(self.u64()?),
            kind::FILE_CLOSED => {
                let (path, stream) = (self.text()?, self.text()?);
                let (events, first_copies, bytes, adler32) = (self.u64()?, self.u64()?, self.u64()?, self.u32()?);
                Message::FileClosed(FileRecord { path, stream, events, first_copies, bytes, adler32 })
            }
            kind::NOTICE => Message::Notice(self.text()?),
            kind::NEWS => Message::News(self.text()?),
            kind::STAMPED => Message::Stamped(self.text()?),
            kind::CHALLENGE => Message::Challenge { nonce: self.array()? },
            kind::RESPONSE => Message::Response { nonce: self.array()?, proof: self.array()? },
            kind::CONFIRM => Message::Confirm { proof: self.array()? },
            kind::JOIN => Message::Join { name: self.text()?, address: self.text()? },
            kind::WELCOME => {
                let configuration = self.text()?;
                let hosted = self.list(2, |r| r.u16().map(NodeId))?;
                let robs = self.list(4, |r| r.list(4, Self::u32))?;
                Message::Welcome { configuration, hosted, robs, datagrams: self.datagrams()? }
            }
            kind::PEERS => Message::Peers(self.list(10, |r| {
                Ok(PeerPlace { node: NodeId(r.u16()?), life: Incarnation(r.u32()?), address: r.text()? })
            })?),
            kind::GREET => Message::Greet { part: self.u16()?, datagrams: self.datagrams()? },
            kind::READY => Message::Ready { datagrams: self.datagrams()? },
            kind::FAILED => Message::Failed(self.text()?),
            kind::LOST => {
                Message::Lost { node: NodeId(self.u16()?), life: Incarnation(self.u32()?), reason: self.text()? }
            }
            kind::GONE => Message::Gone(NodeId(self.u16()?)),
            _ => return Err(Fault::Kind),
        })
    }

    fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let bytes = self.bytes.get(self.at..).and_then(<[u8]>::first_chunk::<N>).ok_or(Fault::Body)?;
        self.at += N;
        Ok(*bytes)
    }

    /// Fields that take `N` bytes together: one look whether these are there instead of one for each field.
    #[inline]
    fn fixed<const N: usize, T>(&mut self, read: impl FnOnce(&mut Reader<'_>) -> Read<T>) -> Read<T> {
        let bytes: [u8; N] = self.array()?;
        let mut reader = Reader { bytes: &bytes, at: 0 };
        let fields = read(&mut reader)?;
        assert_eq!(reader.at, N, "the fields take all bytes");
        Ok(fields)
    }

    fn u8(&mut self) -> Read<u8> {
        self.array().map(u8::from_le_bytes)
    }

    fn flag(&mut self) -> Read<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Fault::Body),
        }
    }

    fn u16(&mut self) -> Read<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Read<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Read<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn event(&mut self) -> Read<EventId> {
        self.u64().map(EventId)
    }

    /// A list whose items take at least `item_len` bytes each: a count that the body cannot hold is refused before
    /// anything is allocated.
    fn list<T>(&mut self, item_len: usize, item: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let count = self.u32()?;
        self.items(count, item_len, item)
    }

    /// A list whose length has been read.
    #[inline]
    fn items<T>(&mut self, count: u32, item_len: usize, mut item: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let count = count as usize;
        if count > (self.bytes.len() - self.at) / item_len {
            return Err(Fault::Body);
        }
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn text(&mut self) -> Read<String> {
        let bytes = self.list(1, Self::u8)?;
        String::from_utf8(bytes).map_err(|_| Fault::Body)
    }

    fn datagrams(&mut self) -> Read<Box<DatagramAddresses>> {
        let (control, bulk) = (self.text()?, self.text()?);
        let ports = self.list(8, |r| Ok((r.text()?, r.text()?)))?;
        Ok(Box::new(DatagramAddresses { control, bulk, ports }))
    }

    fn builder(&mut self) -> Read<Option<NodeId>> {
        let node = self.u16()?;
        Ok((node != 0).then_some(NodeId(node)))
    }

    fn info(&mut self) -> Read<EventInfo> {
        self.fixed::<24, _>(|r| {
            let (event, ordinal, bcid) = (r.event()?, r.u64()?, r.u16()?);
            Ok(EventInfo { event, ordinal, bcid, trigger_type: r.u8()?, items: r.u32()?, grounds: r.grounds()? })
        })
    }

    fn rois(&mut self) -> Read<Vec<Roi>> {
        self.list(27, |r| {
            Ok(Roi {
                kind: r.u8()?,
                ieta: r.u8()?,
                iphi: r.u8()?,
                eta: f32::from_bits(r.u32()?),
                phi: f32::from_bits(r.u32()?),
                et_mev: r.u32()?.cast_signed(),
                aux_mev: [r.u32()?.cast_signed(), r.u32()?.cast_signed()],
                thresholds: r.u32()?,
            })
        })
    }

    fn decision(&mut self) -> Read<Decision> {
        let (event, accept, has_result) = (self.info()?, self.flag()?, self.flag()?);
        Ok(Decision { event, accept, has_result, builder: self.builder()? })
    }

    fn settlement(&mut self) -> Read<Settlement> {
        Ok(Settlement { event: self.event()?, accept: self.flag()?, grounds: self.grounds()? })
    }

    fn grounds(&mut self) -> Read<Grounds> {
        Grounds::from_u8(self.u8()?).ok_or(Fault::Body)
    }

    fn assignment(&mut self) -> Read<Assignment> {
        Ok(Assignment { event: self.info()?, attempt: self.u16()?, has_result: self.flag()? })
    }

    fn data_request(&mut self) -> Read<DataRequest> {
        let head = self.fixed::<34, _>(|r| Ok((r.info()?, r.u16()?, r.u32()?, r.u32()?)));
        let (event, attempt, request, robs) = head?;
        Ok(DataRequest { event, attempt, request, robs: self.items(robs, 4, Self::u32)? })
    }

    fn data_reply(&mut self) -> Read<DataReply> {
        let head = self.fixed::<22, _>(|r| Ok((r.event()?, r.u16()?, r.u32()?, r.u32()?, r.u32()?)));
        let (event, attempt, request, len_bytes, missing) = head?;
        Ok(DataReply { event, attempt, request, missing: self.items(missing, 5, Self::one_missing)?, len_bytes })
    }

    fn attempts(&mut self) -> Read<Vec<Attempt>> {
        self.list(10, |r| Ok(Attempt { event: r.event()?, attempt: r.u16()? }))
    }

    fn missing(&mut self) -> Read<Vec<Missing>> {
        self.list(5, Self::one_missing)
    }

    fn one_missing(&mut self) -> Read<Missing> {
        Ok(Missing { rob: self.u32()?, lost: self.flag()? })
    }

    fn built(&mut self, bulk: Bulk) -> Read<BuiltEvent> {
        let (event, oldest_unfinished) = (self.info()?, self.event()?);
        Ok(BuiltEvent { event, oldest_unfinished, missing: self.list(4, Self::u32)?, bulk })
    }

    fn recording(&mut self, bulk: Bulk) -> Read<Recording> {
        let (built, streams) = (self.built(bulk)?, self.u32()?);
        let debug = match self.u8()? {
            0 => None,
            reason => Some(DebugReason::from_u8(reason).ok_or(Fault::Body)?),
        };
        Ok(Recording { built, streams, debug })
    }

    /// Counters that travel without their number.
    fn counters<C: Counters>(&mut self) -> Read<C> {
        let values: Read<Vec<u64>> = C::COUNTERS.iter().map(|_| self.u64()).collect();
        Ok(C::from_values(&values?))
    }

    fn report(&mut self) -> Read<Report> {
        let (node, role) = (NodeId(self.u16()?), role_of(self.u8()?).ok_or(Fault::Body)?);
        let stale = self.u64()?;
        let unexpected =
            self.list(14, |r| Ok(Unexpected { from: NodeId(r.u16()?), message: r.text()?, count: r.u64()? }))?;
        let counters = self.list(8, Self::u64)?;
        let peers =
            self.list(26, |r| Ok(PeerCount { node: NodeId(r.u16()?), counts: [r.u64()?, r.u64()?, r.u64()?] }))?;
        let blocked = self.list(11, |r| {
            let (by, cause) = (NodeId(r.u16()?), BlockCause::from_u8(r.u8()?).ok_or(Fault::Body)?);
            Ok(Blocked { by, cause, time_ns: r.u64()? })
        })?;
        let (max, entries) = (self.u64()?, self.list(10, |r| Ok((r.u16()?, r.u64()?)))?);
        let latency_ns = Histogram::from_entries(&entries, max).ok_or(Fault::Body)?;
        let chains = self.list(16, |r| Ok(ChainCount { input: r.u64()?, passed: r.u64()? }))?;
        let links = self.list(6 + 8 * RosCounters::COUNTERS.len(), |r| {
            let (rob, state) = (r.u32()?, LinkState::from_u8(r.u8()?).ok_or(Fault::Body)?);
            let counters = r.counters()?;
            let clock = if r.flag()? { Some(LinkClock::from_values(r.numbers()?)) } else { None };
            Ok(LinkReport { rob, state, counters, clock })
        })?;
        let sources = self.list(22, |r| {
            let (phase, is_off) = (SourcePhase::from_u8(r.u8()?).ok_or(Fault::Body)?, r.flag()?);
            Ok(SourceNow { phase, is_off, number: r.u64()?, time_ns: r.u64()?, status: r.text()? })
        })?;
        let (messages, bytes, malformed, data_sum) = (self.u64()?, self.u64()?, self.u64()?, self.u64()?);
        let mut carried = [Carried::default(); CarrierKind::COUNT];
        for count in &mut carried {
            *count = Carried { messages: self.u64()?, bytes: self.u64()? };
        }
        let (datagrams, ports) = (self.counters()?, self.numbers()?);
        let network = Network { messages, bytes, malformed, carried, ports, datagrams, data_sum };
        let report =
            Report { node, peers, blocked, latency_ns, chains, stale, unexpected, ..Report::of(role, counters) };
        Ok(Report { links, sources, network, ..report })
    }

    fn numbers<const N: usize>(&mut self) -> Read<[u64; N]> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.u64()?;
        }
        Ok(numbers)
    }
}

const COMMANDS: [Command; 13] = {
    use Command::{Abandon, Disconnect, Drain, Exit, Pause, Progress, Report, Resume, Sample, Start};
    use Command::{NoStamps, StampPolls, Stamps};
    [Start, Pause, Resume, Drain, Abandon, Report, Exit, Progress, Disconnect, Sample, Stamps, StampPolls, NoStamps]
};

fn command_number(command: Command) -> u8 {
    COMMANDS.iter().position(|c| *c == command).expect("every command is in the list") as u8
}

fn command_of(number: u8) -> Option<Command> {
    COMMANDS.get(usize::from(number)).copied()
}

fn role_of(number: u8) -> Option<Role> {
    Role::IN_DRAIN_ORDER.into_iter().chain([Role::RunControl]).find(|role| *role as u8 == number)
}

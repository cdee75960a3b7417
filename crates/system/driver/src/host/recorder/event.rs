//! Built events as they are in files.

use base::bulk::PageSlice;
use base::time::Time;
use configuration::{Checksum, Compression, Partition};
use dataflow::message::{DebugReason, Grounds, Recording};
use eformat::stream_tag::StreamTag;
use eformat::{
    Bcid, ChecksumType, EventFormat, EventHeader, EventStatus, GenericStatus, LOST_ROB_BYTES, OnlineErrorCode,
    RobParams, Robs, RodHeader, RunType, SourceId, StatusWord, ZLIB_LEVEL, compressed_event, event_envelope, lost_rob,
};
use stamps::clock::TimeOfDay;
use trigger::EventResults;

/// Makes events of what the event builders and the event filter deliver.
#[derive(Clone, Debug, PartialEq)]
pub struct EventMaker {
    run_number: u32,
    run_type: u32,
    lumi_block: u16,
    has_level1: bool,
    has_results: bool,
    event_adler32: bool,
    compress: bool,
    clock: TimeOfDay,
}

/// An event, or a part of it, as one stream records it.
pub(super) struct RecordedEvent<'a> {
    header: Vec<u8>,
    robs: Vec<&'a [u8]>,
    trailer: Option<[u8; 4]>,
}

/// What all copies of an event have in common.
pub(super) struct EventParts<'a> {
    header: EventHeader,
    slices: &'a [PageSlice],
    lost: Vec<(SourceId, [u8; LOST_ROB_BYTES])>,
}

impl EventMaker {
    /// For the events of a partition.
    pub fn new(partition: &Partition) -> Self {
        let sfo = partition.sfo.clone().unwrap_or_default();
        Self {
            run_number: partition.run.number(),
            run_type: partition.run.run_type_word(),
            lumi_block: u16::try_from(sfo.lumi_block).unwrap_or(u16::MAX),
            has_level1: partition.level1.is_some(),
            has_results: partition.l2sv.is_some() || partition.ef.is_some(),
            event_adler32: sfo.checksum == Checksum::Adler32,
            compress: sfo.compression == Compression::Zlib,
            clock: TimeOfDay::look(),
        }
    }

    /// For files of this luminosity block.
    pub(super) fn in_lumi_block(self, lumi_block: u32) -> Self {
        Self { lumi_block: u16::try_from(lumi_block).unwrap_or(u16::MAX), ..self }
    }

    /// An event that came at that time and goes to streams with these tag words, in one piece and not compressed. It may be a part of one.
    pub fn whole(&self, came: Time, recording: &Recording, (tags, is_part): (Vec<u32>, bool)) -> Vec<u8> {
        let mut parts = self.parts(came, recording, tags);
        if is_part {
            parts.header.status[0] |= StatusWord::event(GenericStatus::empty(), EventStatus::PARTIAL).0;
        }
        let robs = parts.slices.iter().map(PageSlice::as_bytes).chain(parts.lost.iter().map(|(_, rob)| rob.as_slice()));
        self.in_pieces(&parts.header, robs.collect()).pieces().concat()
    }

    /// The parts of an event that came at that time and goes to streams with these tag words.
    pub(super) fn parts<'a>(&self, came: Time, recording: &'a Recording, stream_tags: Vec<u32>) -> EventParts<'a> {
        let built = &recording.built;
        let lost = built.missing.iter().map(|&rob| (SourceId(rob), self.lost_rob(recording, rob)));
        let slices = built.bulk.slices();
        EventParts { header: self.header(came, recording, slices, stream_tags), slices, lost: lost.collect() }
    }

    /// The event as a stream takes it.
    pub(super) fn event<'a>(&self, parts: &'a EventParts<'_>, tag: &StreamTag) -> RecordedEvent<'a> {
        if tag.is_full() {
            let robs = parts.slices.iter().map(PageSlice::as_bytes);
            let lost = parts.lost.iter().map(|(_, rob)| rob.as_slice());
            return self.enclosed(&parts.header, robs.chain(lost).collect());
        }
        let mut robs = Vec::new();
        select(parts.slices, tag, &mut robs);
        let lost = parts.lost.iter().filter(|(rob, _)| tag.takes(*rob));
        let robs = robs.into_iter().chain(lost.map(|(_, rob)| rob.as_slice())).collect();
        let mut header = parts.header.clone();
        header.status[0] |= StatusWord::event(GenericStatus::empty(), EventStatus::PARTIAL).0;
        self.enclosed(&header, robs)
    }

    fn enclosed<'a>(&self, header: &EventHeader, robs: Vec<&'a [u8]>) -> RecordedEvent<'a> {
        if self.compress {
            let checksum = if self.event_adler32 { ChecksumType::Adler32 } else { ChecksumType::None };
            let event = compressed_event(header, robs, ZLIB_LEVEL, checksum);
            return RecordedEvent { header: event, robs: Vec::new(), trailer: None };
        }
        self.in_pieces(header, robs)
    }

    fn in_pieces<'a>(&self, header: &EventHeader, robs: Vec<&'a [u8]>) -> RecordedEvent<'a> {
        let mut bytes = Vec::new();
        let trailer = event_envelope(header, robs.iter().copied(), self.event_adler32, &mut bytes);
        RecordedEvent { header: bytes, robs, trailer }
    }

    fn header(&self, came: Time, recording: &Recording, slices: &[PageSlice], stream_tags: Vec<u32>) -> EventHeader {
        let event = recording.built.event;
        let time = self.clock.at(came);
        let pieces = || slices.iter().map(PageSlice::as_bytes);
        let results = if self.has_results { EventResults::among(pieces()) } else { EventResults::default() };
        let EventResults { lvl2_info, hlt_info, is_partial } = results;
        EventHeader {
            status: status(recording, is_partial),
            seconds: time.as_secs() as u32,
            nanoseconds: time.subsec_nanos(),
            global_id: event.event.0,
            run_type: RunType(self.run_type),
            run_number: self.run_number,
            lumi_block: self.lumi_block,
            lvl1_id: event.event.lvl1_id().0,
            bcid: Bcid::new(event.bcid).unwrap_or_default(),
            trigger_type: event.trigger_type,
            lvl1_info: if self.has_level1 { vec![event.items; LVL1_BLOCKS] } else { Vec::new() },
            lvl2_info,
            hlt_info,
            stream_tags,
            ..EventHeader::default()
        }
    }

    fn lost_rob(&self, recording: &Recording, rob: u32) -> [u8; LOST_ROB_BYTES] {
        let event = recording.built.event;
        let rod = RodHeader {
            source_id: SourceId(rob),
            run_number: self.run_number,
            lvl1_id: event.event.lvl1_id().0,
            bcid: Bcid::new(event.bcid).unwrap_or_default(),
            trigger_type: event.trigger_type,
            ..RodHeader::default()
        };
        lost_rob(&RobParams { rod, ..RobParams::default() })
    }
}

impl RecordedEvent<'_> {
    /// The event in pieces.
    pub(super) fn pieces(&self) -> Vec<&[u8]> {
        let head = core::iter::once(self.header.as_slice());
        head.chain(self.robs.iter().copied()).chain(self.trailer.iter().map(<[u8; 4]>::as_slice)).collect()
    }
}

/// Status words (format note §7): what is wrong with the event, and how it failed in the event filter.
fn status(recording: &Recording, is_partial: bool) -> Vec<u32> {
    let mut generic = GenericStatus::empty();
    let mut specific = if is_partial { EventStatus::PARTIAL } else { EventStatus::empty() };
    if !recording.built.missing.is_empty() {
        generic |= GenericStatus::DATA_CORRUPTION;
    }
    match recording.built.event.grounds {
        Grounds::Data => {}
        Grounds::PartOfData => specific |= EventStatus::L2PSC_PROBLEM,
        Grounds::Timeout => specific |= EventStatus::LEVEL2_TIMEOUT,
    }
    let Some(reason) = recording.debug else { return vec![StatusWord::event(generic, specific).0] };
    specific |= EventStatus::EFD_FORCED_ACCEPT;
    let code = match reason {
        DebugReason::Timeout => {
            specific |= EventStatus::PT_TIMEOUT;
            OnlineErrorCode::Timeout
        }
        DebugReason::NoTask => OnlineErrorCode::SchedulingFailure,
        DebugReason::TooLarge => OnlineErrorCode::CannotRetrieveEvent,
        DebugReason::BadAnswer => OnlineErrorCode::NoHltResult,
        _ => OnlineErrorCode::ProcessingFailure,
    };
    vec![StatusWord::event(generic, specific).0, code as u32]
}

/// Adds the ROBs that a stream takes; those that lie one behind the other as one piece. Bytes in which no further ROB can be
/// found are kept: what is wrong with them can be seen then.
fn select<'a>(slices: &'a [PageSlice], tag: &StreamTag, out: &mut Vec<&'a [u8]>) {
    let first = out.len();
    let pieces = || slices.iter().map(PageSlice::as_bytes);
    let is_whole = slices.iter().all(|slice| Robs::new(EventFormat::V5, slice.as_bytes()).all(|rob| rob.is_ok()));
    let in_pieces = !is_whole
        && eformat::each_rob(pieces(), |rob| {
            let takes = eformat::check_parts(rob).is_none_or(|(source, _)| tag.takes(SourceId(source)));
            out.extend(rob.iter().filter(|_| takes));
            true
        });
    if !in_pieces {
        out.truncate(first);
        pieces().for_each(|slice| select_in(slice, tag, out));
    }
}

/// The same in one piece, which has whole ROBs.
fn select_in<'a>(slice: &'a [u8], tag: &StreamTag, out: &mut Vec<&'a [u8]>) {
    let (mut from, mut to) = (0, 0);
    for rob in Robs::new(EventFormat::V5, slice) {
        let Ok(rob) = rob else {
            to = slice.len();
            break;
        };
        let next = rob.offset() + rob.fragment().bytes().len();
        if tag.takes(rob.source_id()) {
            to = next;
            continue;
        }
        if from < to {
            out.push(&slice[from..to]);
        }
        (from, to) = (next, next);
    }
    if from < to {
        out.push(&slice[from..to]);
    }
}

/// Before prescale, after prescale, after veto (format note §4). Items are known after their prescale only, and nothing
/// vetoes one of them alone.
const LVL1_BLOCKS: usize = 3;

#[cfg(test)]
mod tests {
    use base::bulk::Bulk;
    use base::ids::EventId;
    use dataflow::message::{BuiltEvent, EventInfo};
    use eformat::{CheckOptions, Event, SubDetector, check_event, rob_prefix, rob_suffix};
    use trigger::{Decision, FILTER_RESULT, FilterDecision, FilterResult, LEVEL2_RESULT};

    use super::*;

    const CAME: Time = Time::ZERO;

    fn rob(source_id: u32, data: &[u32]) -> Vec<u8> {
        let rod = RodHeader { source_id: SourceId(source_id), lvl1_id: 5, ..RodHeader::default() };
        let params = RobParams { rod, ..RobParams::default() };
        let data: Vec<u8> = data.iter().flat_map(|word| word.to_le_bytes()).collect();
        [rob_prefix(&params, data.len()).as_slice(), &data, rob_suffix(&params, data.len()).as_ref()].concat()
    }

    fn slice(robs: &[Vec<u8>]) -> PageSlice {
        PageSlice::from(robs.concat())
    }

    fn recording(slices: Vec<PageSlice>, missing: Vec<u32>) -> Recording {
        let event = EventInfo { event: EventId(5), items: 0b101, ..EventInfo::default() };
        let bulk = Bulk::PageList(slices);
        Recording { built: BuiltEvent { event, oldest_unfinished: EventId(0), missing, bulk }, streams: 1, debug: None }
    }

    fn maker(overrides: &[&str]) -> EventMaker {
        let text = "[partition]\nname = \"p\"\n[level1]\n[l2sv]\n[l2pu]\n[ros]\ncount = 1\n[sfi]\ncount = 1\n[sfo]\n";
        let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
        EventMaker::new(&Partition::parse("p.toml", text, &overrides).unwrap())
    }

    fn tag(robs: &[u32], sub_detectors: &[u8]) -> StreamTag {
        let mut tag = StreamTag::new("calibration", "c", true).unwrap();
        tag.robs = robs.iter().map(|&rob| SourceId(rob)).collect();
        tag.sub_detectors = sub_detectors.iter().map(|&sub_detector| SubDetector(sub_detector)).collect();
        tag
    }

    /// The ROBs of the event that a stream takes, and its first status word.
    fn taken(maker: &EventMaker, recording: &Recording, tag: &StreamTag) -> (Vec<u32>, StatusWord) {
        let parts = maker.parts(CAME, recording, Vec::new());
        let bytes = maker.event(&parts, tag).pieces().concat();
        let mut problems = Vec::new();
        check_event(&bytes, &CheckOptions::default(), &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        let event = Event::parse(&bytes).unwrap();
        let payload = event.unpacked_payload(1 << 20).unwrap();
        (event.robs(&payload).map(|rob| rob.unwrap().source_id().0).collect(), event.status())
    }

    #[test]
    fn a_partial_event_is_smaller_and_right() {
        let event = || {
            let first = [rob(0x41_0001, &[1, 2]), rob(0x42_0001, &[3]), rob(0x42_0002, &[]), rob(0x41_0002, &[4])];
            recording(vec![slice(&first), slice(&[rob(0x7b_0000, &[0])])], vec![0x41_0003, 0x42_0003])
        };
        for overrides in [&[][..], &["sfo.compression=zlib"], &["sfo.checksum=none"]] {
            let maker = maker(overrides);
            let (full, status) = taken(&maker, &event(), &tag(&[], &[]));
            assert_eq!(full, [0x41_0001, 0x42_0001, 0x42_0002, 0x41_0002, 0x7b_0000, 0x41_0003, 0x42_0003]);
            assert_eq!(status.generic(), GenericStatus::DATA_CORRUPTION);
            let (part, status) = taken(&maker, &event(), &tag(&[0x42_0001], &[0x41, 0x7b]));
            assert_eq!(part, [0x41_0001, 0x42_0001, 0x41_0002, 0x7b_0000, 0x41_0003]);
            assert_eq!(status.as_event(), EventStatus::PARTIAL);
        }
    }

    #[test]
    fn what_cannot_be_taken_apart_is_kept() {
        let mut broken = rob(0x41_0001, &[1]);
        broken[0] = 0;
        let bytes = [rob(0x42_0001, &[1]), rob(0x41_0001, &[1]), broken].concat();
        let (mut pieces, slices) = (Vec::new(), [PageSlice::copy_of(&bytes)]);
        select(&slices, &tag(&[], &[0x41]), &mut pieces);
        assert_eq!(pieces, [&bytes[rob(0x42_0001, &[1]).len()..]]);
    }

    #[test]
    fn trigger_info_is_that_of_the_results() {
        let level2 = Decision { input: 7 << 33, passed: 5 << 33, ..Decision::default() };
        let decision = FilterDecision { input: 5 << 33, passed: 1 << 33, ..FilterDecision::default() };
        let filter = FilterResult { decision, reason: String::new() };
        let robs = [rob(LEVEL2_RESULT.0, &level2.to_words()), rob(FILTER_RESULT.0, &filter.to_words())];
        let maker = maker(&[]);
        let recording = recording(vec![slice(&robs)], Vec::new());
        let header = maker.parts(CAME, &recording, Vec::new()).header;
        assert_eq!(header.lvl1_info, [0b101; 3]);
        assert_eq!((header.lvl2_info, header.hlt_info), (vec![0, 10], vec![0, 2]));
        let other = self::recording(vec![slice(&[rob(LEVEL2_RESULT.0, &[1, 2])])], Vec::new());
        assert!(maker.parts(CAME, &other, Vec::new()).header.lvl2_info.is_empty());
    }

    #[test]
    fn a_failed_event_says_how_it_failed() {
        let failed = |reason| Recording { debug: Some(reason), ..recording(Vec::new(), Vec::new()) };
        let words = status(&failed(DebugReason::Timeout), false);
        assert!(StatusWord(words[0]).as_event().contains(EventStatus::PT_TIMEOUT | EventStatus::EFD_FORCED_ACCEPT));
        assert_eq!(words[1], OnlineErrorCode::Timeout as u32);
        assert_eq!(status(&failed(DebugReason::Crash), false)[1], OnlineErrorCode::ProcessingFailure as u32);
    }
}

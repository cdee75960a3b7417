//! The content of a file for people, item by item.

use std::fmt;
use std::path::Path;

use eformat::{Event, EventFormat, FileEnd, FileHeader, Problem, RunType, SourceId, StatusWord, stream_tag, words};

use crate::reader::FileReader;
use crate::scan::{EVENT_BYTES_MAX, ReadError};

/// How much [`dump`] tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpOptions {
    /// Events passed over at the beginning.
    pub skip: u64,
    /// Events told.
    pub events_max: u64,
    /// Whether the ROBs of the events are told.
    pub robs: bool,
    /// Whether the data words of the ROBs are told.
    pub data: bool,
}

impl Default for DumpOptions {
    fn default() -> Self {
        Self { skip: 0, events_max: u64::MAX, robs: true, data: false }
    }
}

/// One item of a file. `Display` gives one or more lines without a last newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DumpItem {
    /// The records in front of the events.
    Header(FileHeader),
    /// An event.
    Event(EventDump),
    /// The file end record.
    End(FileEnd),
}

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventDump {
    /// Number of its data block and the offset of that in the file; none of an event that is in no file.
    pub place: Option<(u32, u64)>,
    /// Size, in bytes.
    pub bytes: usize,
    /// The header, or why there is none.
    pub content: Result<EventContent, Problem>,
    /// The ROBs, if asked for.
    pub robs: Vec<RobDump>,
    /// The problem that ends the way through the ROBs; offset in the payload.
    pub robs_problem: Option<Problem>,
}

/// Header of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventContent {
    /// Format version.
    pub format: EventFormat,
    /// Source identifier.
    pub source_id: SourceId,
    /// First status word.
    pub status: StatusWord,
    /// Bunch crossing time in seconds, unix time.
    pub seconds: u32,
    /// Nanoseconds added to the seconds.
    pub nanoseconds: u32,
    /// Event number.
    pub global_id: u64,
    /// Run type.
    pub run_type: RunType,
    /// Run number.
    pub run_number: u32,
    /// Luminosity block.
    pub lumi_block: u32,
    /// Extended level-1 id.
    pub lvl1_id: u32,
    /// Bunch crossing number.
    pub bcid: u32,
    /// Level-1 trigger type.
    pub trigger_type: u32,
    /// Trigger information of level 1, of level 2, and of the event filter.
    pub trigger_info: [Vec<u32>; 3],
    /// Stream tags.
    pub stream_tags: Vec<stream_tag::Entry>,
}

/// What a ROB says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RobDump {
    /// Source identifier.
    pub source_id: SourceId,
    /// First status word.
    pub status: StatusWord,
    /// Size, in bytes.
    pub bytes: usize,
    /// Level-1 id and number of data words of the ROD, or what is wrong with it (offset in the ROB).
    pub rod: Result<(u32, usize), Problem>,
    /// The data words, if asked for.
    pub data: Vec<u32>,
}

/// The items of a file, read as they are asked for. Ends after an error.
#[derive(Debug)]
pub struct Dump {
    reader: FileReader,
    options: DumpOptions,
    stage: Stage,
    seen: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Header,
    Events,
    Done,
}

/// Opens a file to be told.
///
/// # Errors
///
/// As for [`FileReader::open`].
pub fn dump(path: &Path, options: DumpOptions) -> Result<Dump, ReadError> {
    Ok(Dump { reader: FileReader::open(path)?, options, stage: Stage::Header, seen: 0 })
}

impl Iterator for Dump {
    type Item = Result<DumpItem, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.stage {
            Stage::Done => None,
            Stage::Header => {
                self.stage = Stage::Events;
                Some(Ok(DumpItem::Header(self.reader.header().clone())))
            }
            Stage::Events => {
                let item = self.event().transpose();
                if !matches!(item, Some(Ok(DumpItem::Event(_)))) {
                    self.stage = Stage::Done;
                }
                item
            }
        }
    }
}

impl Dump {
    fn event(&mut self) -> Result<Option<DumpItem>, ReadError> {
        let last = self.options.skip.saturating_add(self.options.events_max);
        loop {
            if self.seen >= last {
                return Ok(None);
            }
            let Some(event) = self.reader.next_event()? else {
                break;
            };
            self.seen += 1;
            if self.seen <= self.options.skip {
                continue;
            }
            let place = Some((event.block_number, event.offset));
            let mut told = EventDump { place, ..EventDump::header_of(event.bytes) };
            if self.options.robs {
                told.tell_robs(event.bytes, self.options.data);
            }
            return Ok(Some(DumpItem::Event(told)));
        }
        Ok(self.reader.end().copied().map(DumpItem::End))
    }
}

impl EventDump {
    /// What an event says that is in no file, with its ROBs and perhaps their data words.
    pub fn of(bytes: &[u8], data: bool) -> Self {
        let mut told = Self::header_of(bytes);
        told.tell_robs(bytes, data);
        told
    }

    fn header_of(bytes: &[u8]) -> Self {
        Self {
            place: None,
            bytes: bytes.len(),
            content: Event::parse(bytes).map(|event| EventContent::of(&event)),
            robs: Vec::new(),
            robs_problem: None,
        }
    }

    fn tell_robs(&mut self, bytes: &[u8], data: bool) {
        let Ok(event) = Event::parse(bytes) else {
            return;
        };
        let payload = match event.unpacked_payload(EVENT_BYTES_MAX) {
            Ok(payload) => payload,
            Err(problem) => {
                self.robs_problem = Some(problem);
                return;
            }
        };
        for rob in event.robs(&payload) {
            match rob {
                Ok(rob) => self.robs.push(RobDump {
                    source_id: rob.source_id(),
                    status: rob.status(),
                    bytes: rob.fragment().bytes().len(),
                    rod: rob.rod().map(|rod| (rod.lvl1_id(), rod.data().len() / eformat::WORD_BYTES)),
                    data: rob
                        .rod()
                        .map_or_else(|_| Vec::new(), |rod| if data { words(rod.data()).collect() } else { Vec::new() }),
                }),
                Err(problem) => self.robs_problem = Some(problem),
            }
        }
    }
}

impl EventContent {
    fn of(event: &Event<'_>) -> Self {
        Self {
            format: event.format(),
            source_id: event.source_id(),
            status: event.status(),
            seconds: event.seconds(),
            nanoseconds: event.nanoseconds(),
            global_id: event.global_id(),
            run_type: event.run_type(),
            run_number: event.run_number(),
            lumi_block: event.lumi_block(),
            lvl1_id: event.lvl1_id(),
            bcid: event.bcid(),
            trigger_type: event.trigger_type(),
            trigger_info: [event.lvl1_info().collect(), event.lvl2_info().collect(), event.hlt_info().collect()],
            stream_tags: stream_tag::decode(event.stream_tags()),
        }
    }
}

impl fmt::Display for DumpItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(header) => show_header(header, f),
            Self::Event(event) => event.fmt(f),
            Self::End(end) => {
                let FileEnd { closed, events, megabytes, sequence_events, sequence_megabytes, status } = end;
                write!(f, "file end: {closed}, {events} events, {megabytes} MB, ")?;
                write!(f, "sequence {sequence_events} events, {sequence_megabytes} MB, status {status}")
            }
        }
    }
}

impl fmt::Display for EventDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.place, self.bytes) {
            (None, bytes) => write!(f, "event of {bytes} bytes: ")?,
            (Some((number, offset)), bytes) => write!(f, "event {number} at byte {offset}, {bytes} bytes: ")?,
        }
        match &self.content {
            Ok(content) => content.fmt(f)?,
            Err(problem) => write!(f, "bad header: {problem}")?,
        }
        for rob in &self.robs {
            write!(f, "\n  {rob}")?;
        }
        match &self.robs_problem {
            Some(problem) => write!(f, "\n  bad payload: {problem}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for EventContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = match self.format {
            EventFormat::V3 => "3.0",
            EventFormat::V4 => "4.0",
            EventFormat::V5 => "5.0",
        };
        let Self { global_id, lvl1_id, bcid, trigger_type, .. } = self;
        write!(f, "format {version}, id {global_id}, level-1 id {lvl1_id:#010x}, bcid {bcid}, ")?;
        let Self { run_number, run_type, lumi_block, seconds, nanoseconds, .. } = self;
        write!(f, "trigger type {trigger_type:#04x}, run {run_number} ({run_type}), lumi block {lumi_block}, ")?;
        write!(f, "time {seconds}.{nanoseconds:09}, source {}, status {}", self.source_id, self.status)?;
        for entry in &self.stream_tags {
            match entry {
                stream_tag::Entry::Tag(tag) => write!(f, ", stream {}_{}", tag.stream_type(), tag.name())?,
                stream_tag::Entry::Foreign(text) => write!(f, ", stream tag \"{}\"", text.escape_ascii())?,
            }
        }
        for (level, words) in ["level 1", "level 2", "event filter"].into_iter().zip(&self.trigger_info) {
            if !words.is_empty() {
                write!(f, "\n  {level} info")?;
                words.iter().try_for_each(|word| write!(f, " {word:#010x}"))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for RobDump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ROB {}, {} bytes, status {}", self.source_id, self.bytes, self.status)?;
        match &self.rod {
            Ok((lvl1_id, data_words)) => write!(f, ", level-1 id {lvl1_id:#010x}, {data_words} data words")?,
            Err(problem) => write!(f, ", bad ROD: {problem}")?,
        }
        for (index, word) in self.data.iter().enumerate() {
            let gap = if index % 8 == 0 { "\n    " } else { " " };
            write!(f, "{gap}{word:08x}")?;
        }
        Ok(())
    }
}

fn show_header(header: &FileHeader, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let FileHeader { start, names, metadata, run } = header;
    let (version, number, opened) = (start.version.to_word(), start.file_number, start.opened);
    writeln!(f, "file start: version {version}, file {number} of its sequence, {opened}")?;
    writeln!(f, "names: application {}, core {}", names.application, names.core)?;
    for text in metadata.iter().flat_map(|metadata| &metadata.0) {
        writeln!(f, "metadata: {text}")?;
    }
    write!(f, "run {}, at most {} events, recording {}, ", run.run_number, run.events_max, run.recording_enabled)?;
    write!(f, "trigger type {}, detectors {}, ", run.trigger_type, run.detector_mask)?;
    write!(f, "beam type {}, beam energy {} GeV", run.beam_type, run.beam_energy)
}

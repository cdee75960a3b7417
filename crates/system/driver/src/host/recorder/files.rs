//! The files of one SFO.

use std::time::Duration;

use base::bulk::PageSlice;
use base::causes;
use base::ids::{EventId, Role};
use base::time::Time;
use configuration::{Dialect, Durability};
use dataflow::component::{Outcome, Unfinished, Work};
use dataflow::message::{FileRecord, Recording};
use eformat::stream_tag::StreamTag;
use eformat::{FileVersion, RunParameters};
use rol::ReplayFacts;
use stamps::clock;
use storage::{EventCopy, ResumeError, Resumed, Streams, WriteError, WriterConfig};

use super::RecorderError;
use super::event::{EventMaker, RecordedEvent};
use super::streams::{RecordedStreams, tag_words};
use crate::assembly::Assembly;
use assembly::returns;

/// The files of one SFO.
pub(super) struct Files {
    writers: Streams,
    streams: RecordedStreams,
    events: EventMaker,
    replay: bool,
    /// Another life may have to go on with the files.
    returns: bool,
    /// Whether the files of this run are in its hands: new ones, or those of a former life.
    begun: bool,
    /// All files have their last names.
    closed: bool,
    failing: bool,
    /// When to look next whether the open files are still where they were made.
    look_at: Time,
}

/// How much of an event was written.
struct Written {
    copies: u32,
    bytes: u64,
}

/// Why an event is not in its files.
#[derive(Debug, thiserror::Error)]
enum RecordError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("a replayed event cannot be put together: {0}")]
    Assemble(#[from] rol::AssembleError),
    #[error("the files of the former life of this recorder cannot be taken up: {0}")]
    Resume(#[from] ResumeError),
    #[error("no stream of the configuration is among {0:#b}; are all applications of one version?")]
    NoStream(u32),
}

impl Files {
    /// Without files.
    pub(super) fn new(
        assembly: &Assembly,
        application: &str,
        replay: Option<&ReplayFacts>,
    ) -> Result<Self, RecorderError> {
        let partition = &assembly.partition;
        let sfo = partition.sfo.clone().unwrap_or_default();
        let replay = replay.filter(|_| sfo.dialect == Dialect::Input);
        let run = RunParameters {
            run_number: partition.run.number(),
            events_max: partition.run.events.map_or(0, |events| u32::try_from(events).unwrap_or(0)),
            recording_enabled: 1,
            ..RunParameters::default()
        };
        let lumi_block = replay.and_then(|facts| facts.lumi_block).unwrap_or(sfo.lumi_block);
        let config = WriterConfig {
            directory: partition.output.directory.clone().into(),
            project: sfo.project.clone(),
            run_number: partition.run.number(),
            lumi_block,
            application: application.to_owned(),
            bytes_max: sfo.max_file_size.bytes(),
            events_max: sfo.max_file_events,
            durable: sfo.durable != Durability::Write,
            run: replay.map_or(run, |facts| facts.run),
            dialect: dialect(sfo.dialect, replay),
            ..WriterConfig::default()
        };
        Ok(Self {
            writers: Streams::new(config),
            streams: RecordedStreams::new(partition, &assembly.robs.concat())?,
            events: EventMaker::new(partition).in_lumi_block(lumi_block),
            replay: replay.is_some(),
            returns: returns(Role::Sfo, partition),
            begun: false,
            closed: false,
            failing: false,
            look_at: clock::now() + LOOK_EVERY,
        })
    }

    /// Does a piece of work that was given at that time; with words for people if something went wrong.
    pub(super) fn work(&mut self, given: Time, work: Work) -> (Outcome, Option<String>) {
        let (outcome, complaint) = self.try_work(given, work);
        let said: Vec<String> = self.writers.take_remarks().into_iter().chain(complaint).collect();
        (outcome, (!said.is_empty()).then(|| said.join("; ")))
    }

    fn try_work(&mut self, given: Time, work: Work) -> (Outcome, Option<String>) {
        match work {
            Work::Record(recording) => match self.record(given, &recording) {
                Ok(Written { copies, bytes }) => {
                    self.failing = false;
                    (Outcome::Recorded { copies, bytes, closed: self.closed() }, None)
                }
                Err(error) if error.may_pass() => (Outcome::RecordFailed, self.complain(&error)),
                Err(error) => (Outcome::RecordRefused, self.complain(&error)),
            },
            Work::TakeOver => match self.take_over() {
                Ok(taken_over) => {
                    self.failing = false;
                    (taken_over, None)
                }
                Err(error) => (Outcome::TakeOverFailed, self.complain(&error)),
            },
            Work::Sync => match self.look(given).and_then(|()| self.writers.sync()) {
                Ok(()) => {
                    self.failing = false;
                    (Outcome::Synced, None)
                }
                Err(error) => (Outcome::SyncFailed, self.complain(&error.into())),
            },
            Work::Close => {
                // A file that cannot be made good keeps no other one open.
                let looked = self.look(given).err();
                let (files, error) = match self.writers.finish() {
                    Ok(files) => (files.into_iter().map(file_record).collect(), looked),
                    Err(error) => (self.closed(), Some(looked.unwrap_or(error))),
                };
                self.closed = error.is_none();
                let storage::Unfinished { first_copies: events, copies, event_bytes: bytes } =
                    self.writers.unfinished();
                let said = error.map(|error| {
                    format!(
                        "{error}; {events} events in no file that is closed do not count as recorded: `weir file recover` saves \
                         what is whole in open ones"
                    )
                });
                (Outcome::Closed { files, unfinished: Unfinished { events, copies, bytes } }, said)
            }
            other => unreachable!("{other:?} is no work of a recorder"),
        }
    }

    /// Files that somebody has removed or moved away are written again before more events count as recorded in them.
    fn look(&mut self, now: Time) -> Result<(), WriteError> {
        self.writers.look()?;
        self.look_at = now + LOOK_EVERY;
        Ok(())
    }

    /// Takes the files of a former life in hand: the events in them, and the files that it has closed.
    fn take_over(&mut self) -> Result<Outcome, RecordError> {
        let Resumed { events, closed, first_copies, copies, event_bytes, set_aside } = self.writers.resume()?;
        self.begun = true;
        // The former life has counted what it set aside. It is taken off at the end, as in one life.
        let recorded =
            [first_copies + set_aside.first_copies, copies + set_aside.copies, event_bytes + set_aside.event_bytes];
        Ok(Outcome::TakenOver {
            events: events.into_iter().map(EventId).collect(),
            closed: closed.into_iter().map(file_record).collect(),
            recorded,
        })
    }

    /// Before the first event of the run.
    fn begin(&mut self) -> Result<(), RecordError> {
        if self.returns && !self.begun {
            self.writers.keep_journal()?;
        }
        self.begun = true;
        Ok(())
    }

    /// The run is over, and no other life will come.
    pub(super) fn end(&mut self) {
        if self.returns && self.begun && self.closed {
            // One that stays keeps its number from other runs, no more.
            let _ = self.writers.forget_journal();
        }
    }

    fn closed(&mut self) -> Vec<FileRecord> {
        self.writers.take_closed().into_iter().map(file_record).collect()
    }

    /// One message for a series of failures.
    fn complain(&mut self, error: &RecordError) -> Option<String> {
        let first = !core::mem::replace(&mut self.failing, true);
        first.then(|| causes::together(error))
    }

    /// Writes an event to all its streams, or to none.
    fn record(&mut self, given: Time, recording: &Recording) -> Result<Written, RecordError> {
        self.begin()?;
        if self.look_at <= given {
            self.look(given)?;
        }
        let streams = self.streams.of(recording);
        if streams.is_empty() {
            return Err(RecordError::NoStream(recording.streams));
        }
        let (event, oldest) = (recording.built.event.event.0, recording.built.oldest_unfinished.0);
        if self.replay && recording.debug.is_none() {
            let parts = rol::assemble(recording.built.bulk.slices())?;
            let parts: Vec<&[u8]> = parts.iter().map(PageSlice::as_bytes).collect();
            let tag = &streams[0].tag;
            let copy = EventCopy { stream_type: tag.stream_type(), stream_name: tag.name(), parts: &parts };
            self.writers.write_numbered(event, oldest, &[copy])?;
            return Ok(Written { copies: 1, bytes: len_of(&parts) });
        }
        let parts = self.events.parts(given, recording, tag_words(&streams));
        // Full copies are all alike and made once.
        let (mut events, mut full) = (Vec::new(), None);
        let mut event_of = |tag: &StreamTag| {
            let known = full.filter(|_| tag.is_full());
            known.unwrap_or_else(|| {
                events.push(self.events.event(&parts, tag));
                full = full.or(tag.is_full().then_some(events.len() - 1));
                events.len() - 1
            })
        };
        let indices: Vec<usize> = streams.iter().map(|stream| event_of(&stream.tag)).collect();
        let pieces: Vec<Vec<&[u8]>> = events.iter().map(RecordedEvent::pieces).collect();
        let copies: Vec<EventCopy<'_>> = streams
            .iter()
            .zip(indices)
            .map(|(stream, index)| EventCopy {
                stream_type: stream.tag.stream_type(),
                stream_name: stream.tag.name(),
                parts: &pieces[index],
            })
            .collect();
        self.writers.write_numbered(event, oldest, &copies)?;
        Ok(Written { copies: copies.len() as u32, bytes: copies.iter().map(|copy| len_of(copy.parts)).sum() })
    }
}

impl RecordError {
    /// Whether the same event may be recorded later: when the disk has room, or the file system answers again.
    fn may_pass(&self) -> bool {
        matches!(self, Self::Write(WriteError::Io { .. } | WriteError::Exists { .. }))
    }
}

fn len_of(parts: &[&[u8]]) -> u64 {
    parts.iter().map(|part| part.len() as u64).sum()
}

fn dialect(configured: Dialect, replay: Option<&ReplayFacts>) -> storage::Dialect {
    let names = replay.map(|facts| facts.names.clone());
    let first_block_number = replay.map_or(1, |facts| facts.first_block_number);
    let input_is_old = replay.is_some_and(|facts| facts.version == FileVersion::V2);
    match configured {
        Dialect::Bes3 => storage::Dialect::V2 { names: None, first_block_number: 1 },
        Dialect::Input if input_is_old => storage::Dialect::V2 { names, first_block_number },
        Dialect::Input | Dialect::Atlas => storage::Dialect::V6,
    }
}

/// What is lost of a name in this time is written again.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What is told of a file that is finished.
pub fn file_record(file: storage::ClosedFile) -> FileRecord {
    let storage::ClosedFile { path, stream, events, first_copies, bytes, adler32 } = file;
    FileRecord {
        path: path.display().to_string(),
        stream,
        events: u64::from(events),
        first_copies: u64::from(first_copies),
        bytes,
        adler32,
    }
}

//! The thread that writes files: a write may take as long as the disk likes without holding up the scheduler.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use configuration::{Checksum, Compression, Dialect, Durability, Partition};
use dataflow::bulk::PageSlice;
use dataflow::component::{Outcome, Ticket, Work};
use dataflow::message::{FileRecord, Recording};
use eformat::stream_tag::{self, Entry, StreamTag};
use eformat::{
    Bcid, ChecksumType, EventHeader, FileVersion, GenericStatus, RobParams, RodHeader, RunParameters, RunType,
    SourceId, ZLIB_LEVEL, compressed_event, event_envelope, lost_rob,
};
use rol::ReplayFacts;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use storage::{Streams, WriteError, WriterConfig};
use transport::waker::Waker;

/// A recording thread; dropping it ends the thread after the work it was given.
pub(crate) struct Recorder {
    jobs: Option<SyncSender<(Ticket, Work)>>,
    done: Receiver<Done>,
    /// Finished pieces that were not taken yet.
    waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

/// A finished piece of work, with words for people if it went wrong.
pub(crate) type Done = (Ticket, Outcome, Option<String>);

/// Why nothing can be recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecorderError {
    #[error("output.directory {}: {cause}; expected a directory that can be written to", path.display())]
    Directory { path: PathBuf, cause: std::io::Error },
    #[error("sfo.stream: {0}")]
    Stream(eformat::stream_tag::BadStreamTag),
    #[error("the recording thread cannot be started: {0}")]
    Thread(std::io::Error),
}

impl Recorder {
    /// Starts the thread. `application` is part of the file names.
    pub(crate) fn start(
        partition: &Partition,
        application: &str,
        replay: Option<&ReplayFacts>,
        waker: Waker,
    ) -> Result<Self, RecorderError> {
        let directory = Path::new(&partition.output.directory);
        let failed = |cause| RecorderError::Directory { path: directory.to_owned(), cause };
        std::fs::create_dir_all(directory).map_err(failed)?;
        let rights = Access::WRITE_OK | Access::EXEC_OK;
        accessat(CWD, directory, rights, AtFlags::EACCESS).map_err(|errno| failed(errno.into()))?;
        let mut files = Files::new(partition, application, replay)?;
        let bound = jobs_max(partition);
        let (jobs, todo) = sync_channel::<(Ticket, Work)>(bound);
        let (finished, done) = sync_channel(bound);
        let waiting = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&waiting);
        let work = move || {
            for (ticket, work) in todo {
                let (outcome, complaint) = files.work(work);
                if finished.send((ticket, outcome, complaint)).is_err() {
                    return;
                }
                counted.fetch_add(1, Ordering::Release);
                waker.wake();
            }
        };
        let builder = std::thread::Builder::new().name(format!("{application} files"));
        let thread = Some(builder.spawn(work).map_err(RecorderError::Thread)?);
        Ok(Self { jobs: Some(jobs), done, waiting, thread })
    }

    /// Gives the thread work: `Record`, `Sync` or `Close`.
    ///
    /// # Panics
    /// If there is more work than the slots of the event filter allow.
    pub(crate) fn begin(&self, ticket: Ticket, work: Work) {
        let jobs = self.jobs.as_ref().expect("open until dropped");
        jobs.try_send((ticket, work)).expect("the recording thread lives, and the filter's slots bound its work");
    }

    /// The next piece of work that is finished.
    pub(crate) fn next_done(&self) -> Option<Done> {
        let done = self.done.try_recv().ok()?;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        Some(done)
    }

    /// Whether a finished piece of work waits.
    pub(crate) fn has_done(&self) -> bool {
        self.waiting.load(Ordering::Acquire) > 0
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; there is nothing more to say.
            let _ = thread.join();
        }
    }
}

/// Every filter daemon may have all its slots in recording, twice if it had to ask again; besides, one sync, one close.
fn jobs_max(partition: &Partition) -> usize {
    let slots = |ef: configuration::Ef| ef.count as usize * ef.slots.max(partition.sfi.count) as usize;
    2 * partition.event_filter().map_or(0, slots) + 2
}

/// The files of one SFO.
struct Files {
    streams: Streams,
    physics: StreamTag,
    debug: StreamTag,
    tags: [Vec<u32>; 2],
    run_number: u32,
    run_type: u32,
    lumi_block: u16,
    event_adler32: bool,
    compress: bool,
    replay: bool,
    failing: bool,
    header: Vec<u8>,
}

impl Files {
    fn new(partition: &Partition, application: &str, replay: Option<&ReplayFacts>) -> Result<Self, RecorderError> {
        let sfo = partition.sfo.clone().unwrap_or_default();
        let tag = |kind: &str, name: &str| StreamTag::new(kind, name, true).map_err(RecorderError::Stream);
        let (physics, debug) = (tag(sfo.stream_type(), sfo.stream_name())?, tag("debug", sfo.stream_name())?);
        let replay = replay.filter(|_| sfo.dialect == Dialect::Input);
        let run = RunParameters {
            run_number: partition.run.number,
            events_max: partition.run.events.map_or(0, |events| u32::try_from(events).unwrap_or(0)),
            recording_enabled: 1,
            ..RunParameters::default()
        };
        let config = WriterConfig {
            directory: partition.output.directory.clone().into(),
            project: sfo.project.clone(),
            run_number: replay.map_or(partition.run.number, |facts| facts.run.run_number),
            lumi_block: sfo.lumi_block,
            application: application.to_owned(),
            megabytes_max: u32::try_from(sfo.max_file_size.bytes().div_ceil(1 << 20)).unwrap_or(u32::MAX),
            events_max: sfo.max_file_events,
            durable: sfo.durable != Durability::Write,
            run: replay.map_or(run, |facts| facts.run),
            dialect: dialect(sfo.dialect, replay),
            ..WriterConfig::default()
        };
        let words = |tag: &StreamTag| stream_tag::encode(&[Entry::Tag(tag.clone())]);
        Ok(Self {
            streams: Streams::new(config),
            tags: [words(&physics), words(&debug)],
            physics,
            debug,
            run_number: partition.run.number,
            run_type: partition.run.run_type_word(),
            lumi_block: u16::try_from(sfo.lumi_block).unwrap_or(u16::MAX),
            event_adler32: sfo.checksum == Checksum::Adler32,
            compress: sfo.compression == Compression::Zlib,
            replay: replay.is_some(),
            failing: false,
            header: Vec::new(),
        })
    }

    fn work(&mut self, work: Work) -> (Outcome, Option<String>) {
        match work {
            Work::Record(recording) => match self.record(&recording) {
                Ok(bytes) => {
                    self.failing = false;
                    (Outcome::Recorded { copies: 1, bytes, closed: self.closed() }, None)
                }
                Err(error) if error.may_pass() => (Outcome::RecordFailed, self.complain(&error)),
                Err(error) => (Outcome::RecordRefused, self.complain(&error)),
            },
            Work::Sync => match self.streams.sync() {
                Ok(()) => (Outcome::Synced, None),
                Err(error) => (Outcome::SyncFailed, Some(error.to_string())),
            },
            Work::Close => match self.streams.finish() {
                Ok(files) => (Outcome::Closed(files.into_iter().map(file_record).collect()), None),
                Err(error) => (Outcome::Closed(self.closed()), Some(error.to_string())),
            },
            Work::ReadOut(_) | Work::Steer(_) | Work::Process(_) => unreachable!("no work of a recorder"),
        }
    }

    fn closed(&mut self) -> Vec<FileRecord> {
        self.streams.take_closed().into_iter().map(file_record).collect()
    }

    /// One message for a series of failures.
    fn complain(&mut self, error: &RecordError) -> Option<String> {
        let first = !core::mem::replace(&mut self.failing, true);
        first.then(|| error.to_string())
    }

    /// Writes an event; its length in bytes.
    fn record(&mut self, recording: &Recording) -> Result<u64, RecordError> {
        let (tag, words) =
            if recording.debug.is_some() { (&self.debug, &self.tags[1]) } else { (&self.physics, &self.tags[0]) };
        let slices = recording.built.bulk.slices();
        if self.replay && recording.debug.is_none() {
            let parts = rol::assemble(slices)?;
            let parts: Vec<&[u8]> = parts.iter().map(PageSlice::as_bytes).collect();
            self.streams.write_event(tag.stream_type(), tag.name(), &parts)?;
            return Ok(len_of(&parts));
        }
        let lost: Vec<[u8; eformat::LOST_ROB_BYTES]> =
            recording.built.missing.iter().map(|rob| self.lost_rob(recording, *rob)).collect();
        let robs = || slices.iter().map(PageSlice::as_bytes).chain(lost.iter().map(<[u8; _]>::as_slice));
        let header = self.event_header(recording, words.clone());
        if self.compress {
            let checksum = if self.event_adler32 { ChecksumType::Adler32 } else { ChecksumType::None };
            let event = compressed_event(&header, robs(), ZLIB_LEVEL, checksum);
            self.streams.write_event(tag.stream_type(), tag.name(), &[&event])?;
            return Ok(event.len() as u64);
        }
        let trailer = event_envelope(&header, robs(), self.event_adler32, &mut self.header);
        let parts =
            core::iter::once(self.header.as_slice()).chain(robs()).chain(trailer.iter().map(<[u8; 4]>::as_slice));
        let parts: Vec<&[u8]> = parts.collect();
        self.streams.write_event(tag.stream_type(), tag.name(), &parts)?;
        Ok(len_of(&parts))
    }

    fn event_header(&self, recording: &Recording, stream_tags: Vec<u32>) -> EventHeader {
        let event = recording.built.event;
        let now = unix_time();
        let incomplete =
            if recording.built.missing.is_empty() { 0 } else { u32::from(GenericStatus::DATA_CORRUPTION.bits()) };
        EventHeader {
            status: vec![incomplete],
            seconds: now.as_secs() as u32,
            nanoseconds: now.subsec_nanos(),
            global_id: event.event.0,
            run_type: RunType(self.run_type),
            run_number: self.run_number,
            lumi_block: self.lumi_block,
            lvl1_id: event.event.lvl1_id().0,
            bcid: Bcid::new(event.bcid).unwrap_or_default(),
            trigger_type: event.trigger_type,
            stream_tags,
            ..EventHeader::default()
        }
    }

    fn lost_rob(&self, recording: &Recording, rob: u32) -> [u8; eformat::LOST_ROB_BYTES] {
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

/// Why an event is not in its file.
#[derive(Debug, thiserror::Error)]
enum RecordError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("a replayed event cannot be put together: {0}")]
    Assemble(#[from] rol::AssembleError),
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

fn file_record(file: storage::ClosedFile) -> FileRecord {
    let storage::ClosedFile { path, stream, events, bytes, adler32 } = file;
    FileRecord { path: path.display().to_string(), stream, events: u64::from(events), bytes, adler32 }
}

#[expect(clippy::disallowed_methods, reason = "the time of an event in its file is the wall clock's")]
fn unix_time() -> core::time::Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

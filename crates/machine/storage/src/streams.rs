//! Several streams of one run.

use std::path::PathBuf;

use crate::backend::{Backend, Disk};
use crate::closed_file::ClosedFile;
use crate::closed_file::Unfinished;
use crate::journal::{self, Chronicle, Journal};
use crate::resume::{self, ResumeError, Resumed};
use crate::write_error::WriteError;
use crate::writer::{Writer, WrittenCopy};
use crate::writer_config::WriterConfig;

/// One [`Writer`] for each stream, made when its first event comes: at most one open file for each. The limits of files hold
/// for each stream by itself.
///
/// ```no_run
/// # let (header, payload) = (vec![0u8; 8], vec![0u8; 8]);
/// use storage::{Streams, WriterConfig};
/// let mut streams = Streams::new(WriterConfig { run_number: 7, ..WriterConfig::default() });
/// streams.write_event("physics", "Main", &[&header, &payload])?;
/// streams.write_event("express", "express", &[&header, &payload])?;
/// let files = streams.finish()?;
/// # Ok::<(), storage::WriteError>(())
/// ```
pub struct Streams {
    config: WriterConfig,
    writers: Vec<Writer>,
    journal: Option<Journal>,
    /// Whether somebody relies on single syncs, not on those of whole files alone.
    syncs: bool,
    backend: Box<dyn Fn() -> Box<dyn Backend> + Send>,
}

/// The copies of an event that were written, by stream.
type Written = Vec<(usize, WrittenCopy)>;

/// What one stream gets of an event.
#[derive(Debug, Clone, Copy)]
pub struct EventCopy<'a> {
    /// Type of the stream.
    pub stream_type: &'a str,
    /// Its name.
    pub stream_name: &'a str,
    /// The event in pieces, all of it or a part.
    pub parts: &'a [&'a [u8]],
}

impl Streams {
    /// Streams on the disk; `config` holds what they have in common, its stream type and name are not used.
    pub fn new(config: WriterConfig) -> Self {
        Self::with_backend(config, || Box::new(Disk))
    }

    /// Streams on any file system.
    pub fn with_backend(config: WriterConfig, backend: impl Fn() -> Box<dyn Backend> + Send + 'static) -> Self {
        Self { config, writers: Vec::new(), journal: None, syncs: false, backend: Box::new(backend) }
    }

    /// Keeps a list of the files of this run and of the events in them, from which another life of this writer can
    /// [`resume`](Self::resume). It is a file beside the others, `project.RRRRRRRR.application.journal`. It takes a system call for each
    /// event. One that an earlier run has left is replaced.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    ///
    /// # Panics
    ///
    /// If there are files already.
    pub fn keep_journal(&mut self) -> Result<(), WriteError> {
        assert!(self.writers.is_empty(), "a journal is begun before the first file");
        let (backend, directory) = ((self.backend)(), &self.config.directory);
        backend.create_directory(directory).map_err(|source| WriteError::io("create directory", directory, source))?;
        self.journal = Some(Journal::begin(&*backend, self.journal_path()?)?);
        Ok(())
    }

    /// Removes the list of the files of a run, if there is one: that run is over.
    ///
    /// # Errors
    ///
    /// It cannot be removed.
    pub fn forget_journal(&mut self) -> Result<(), WriteError> {
        self.journal = None;
        journal::forget(&*(self.backend)(), &self.journal_path()?)
    }

    /// Goes on where a former life of this writer has died, that kept a journal and had the same configuration. Files that are open are
    /// cut behind the last event that is in all its streams, and go on. Where files are durable, they are made so. Nobody may be writing
    /// them. Without a journal nothing was written, and one is begun.
    ///
    /// # Errors
    ///
    /// See [`ResumeError`]; no event is lost then, and it may be tried again.
    ///
    /// # Panics
    ///
    /// If there are files already.
    pub fn resume(&mut self) -> Result<Resumed, ResumeError> {
        assert!(self.writers.is_empty(), "nothing is written before it is known what was");
        let path = self.journal_path()?;
        let backend = (self.backend)();
        if !backend.exists(&path).map_err(|source| WriteError::io("look at", &path, source))? {
            self.keep_journal()?;
            return Ok(Resumed::default());
        }
        let mut chronicle = Chronicle::read(&path)?;
        let journal = Journal::resume(&*backend, path, &chronicle)?;
        let events = core::mem::take(&mut chronicle.events).into_iter().collect();
        let ([first_copies, copies, event_bytes], set_aside) = (chronicle.totals(), chronicle.set_aside());
        let (writers, closed) = resume::writers(&self.config, chronicle, &*self.backend)?;
        (self.writers, self.journal) = (writers, Some(journal));
        Ok(Resumed { events, closed, first_copies, copies, event_bytes, set_aside })
    }

    fn journal_path(&self) -> Result<PathBuf, WriteError> {
        let name = self.config.first_name()?;
        let name = format!("{}.{:08}.{}.journal", name.project(), name.run_number(), name.application());
        Ok(self.config.directory.join(name))
    }

    /// Appends an event to one stream.
    ///
    /// # Errors
    ///
    /// As for [`Writer::write_event`].
    ///
    /// # Panics
    ///
    /// With a journal, which needs the numbers of events: see [`write_numbered`](Self::write_numbered).
    pub fn write_event(&mut self, stream_type: &str, stream_name: &str, parts: &[&[u8]]) -> Result<(), WriteError> {
        self.write_copies(&[EventCopy { stream_type, stream_name, parts }])
    }

    /// Appends an event to several streams, all different. The first of them has its first copy.
    ///
    /// # Errors
    ///
    /// As for [`Writer::write_event`], for the stream that failed; the event is in no stream then.
    ///
    /// # Panics
    ///
    /// If a stream is named twice, or with a journal, as [`write_event`](Self::write_event).
    pub fn write_copies(&mut self, copies: &[EventCopy<'_>]) -> Result<(), WriteError> {
        assert!(self.journal.is_none(), "an event that the journal does not name is cut off by the next life");
        self.write_all(copies).map(drop)
    }

    /// The same for an event with a number, which [`resume`](Self::resume) will name: nobody asks for those below `oldest` any more.
    ///
    /// # Errors
    ///
    /// As for [`write_copies`](Self::write_copies).
    ///
    /// # Panics
    ///
    /// If a stream is named twice.
    pub fn write_numbered(&mut self, event: u64, oldest: u64, copies: &[EventCopy<'_>]) -> Result<(), WriteError> {
        let written = self.write_all(copies)?;
        let Some(journal) = &mut self.journal else { return Ok(()) };
        let ends = written.iter().filter_map(|(index, _)| self.writers[*index].end());
        journal.event(&*(self.backend)(), (event, oldest), ends).inspect_err(|_| self.take_back(written))
    }

    fn write_all(&mut self, copies: &[EventCopy<'_>]) -> Result<Written, WriteError> {
        let mut written = Written::with_capacity(copies.len());
        for copy in copies {
            let is_first = written.is_empty();
            let result = self.writer_of(copy).and_then(|index| {
                assert!(written.iter().all(|(other, _)| *other != index), "an event goes to a stream once");
                Ok((index, self.writers[index].write_copy(copy.parts, is_first, &mut self.journal)?))
            });
            match result {
                Ok(done) => written.push(done),
                Err(error) => {
                    self.take_back(written);
                    return Err(error);
                }
            }
        }
        Ok(written)
    }

    fn take_back(&mut self, written: Written) {
        written.into_iter().for_each(|(index, copy)| self.writers[index].take_back(copy));
    }

    fn writer_of(&mut self, copy: &EventCopy<'_>) -> Result<usize, WriteError> {
        let is_it = |writer: &Writer| writer.is_stream(copy.stream_type, copy.stream_name);
        if let Some(known) = self.writers.iter().position(is_it) {
            return Ok(known);
        }
        let (stream_type, stream_name) = (copy.stream_type.to_owned(), copy.stream_name.to_owned());
        let config = WriterConfig { stream_type, stream_name, ..self.config.clone() };
        self.writers.push(Writer::with_backend(config, (self.backend)())?);
        Ok(self.writers.len() - 1)
    }

    /// Makes all events so far durable.
    ///
    /// # Errors
    ///
    /// As for [`Writer::sync`]; no event counts as durable that was not before.
    pub fn sync(&mut self) -> Result<(), WriteError> {
        self.syncs = true;
        self.writers.iter_mut().try_for_each(Writer::sync_open)?;
        self.writers.iter_mut().for_each(Writer::all_is_durable);
        Ok(())
    }

    /// Looks whether the open files are still as they were made, as [`Writer::look`].
    ///
    /// # Errors
    ///
    /// As for [`Writer::look`].
    pub fn look(&mut self) -> Result<(), WriteError> {
        let Self { writers, journal, .. } = self;
        // One that cannot be made good does not hide what is wrong with others.
        writers.iter_mut().map(|writer| writer.look_in(journal)).fold(Ok(()), Result::and)?;
        let backend = (self.backend)();
        self.journal.as_mut().map_or(Ok(()), |journal| journal.look(&*backend))
    }

    /// What went wrong and was made good since the last call, for people.
    pub fn take_remarks(&mut self) -> Vec<String> {
        self.writers.iter_mut().flat_map(Writer::take_remarks).collect()
    }

    /// Files closed since the last call.
    pub fn take_closed(&mut self) -> Vec<ClosedFile> {
        self.writers.iter_mut().flat_map(Writer::take_closed).collect()
    }

    /// What was written and is in no file that is closed.
    pub fn unfinished(&self) -> Unfinished {
        self.writers.iter().fold(Unfinished::default(), |sum, writer| sum.plus(writer.unfinished()))
    }

    /// Closes all streams and gives all files not yet taken. Where [`sync`](Self::sync) has failed, files end behind the last event that
    /// it has made durable.
    ///
    /// # Errors
    ///
    /// The first stream that could not be closed, after all were tried. Calling again tries it again; the files of
    /// the others are given then.
    pub fn finish(&mut self) -> Result<Vec<ClosedFile>, WriteError> {
        let is_unsure = self.syncs && self.writers.iter().any(Writer::is_unsure);
        if is_unsure {
            self.writers.iter_mut().for_each(Writer::keep_what_is_durable);
        }
        let results = self.writers.iter_mut().map(|writer| writer.close_in(&mut self.journal));
        results.fold(Ok(()), Result::and)?;
        Ok(self.take_closed())
    }
}

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams").field("writers", &self.writers).finish_non_exhaustive()
    }
}

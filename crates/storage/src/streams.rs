//! Several streams of one run.

use crate::backend::{Backend, Disk};
use crate::write_error::WriteError;
use crate::writer::{ClosedFile, Writer, WrittenCopy};
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
    backend: Box<dyn Fn() -> Box<dyn Backend> + Send>,
}

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
        Self { config, writers: Vec::new(), backend: Box::new(backend) }
    }

    /// Appends an event to one stream.
    ///
    /// # Errors
    ///
    /// As for [`Writer::write_event`].
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
    /// If a stream is named twice.
    pub fn write_copies(&mut self, copies: &[EventCopy<'_>]) -> Result<(), WriteError> {
        let mut written: Vec<(usize, WrittenCopy)> = Vec::with_capacity(copies.len());
        for copy in copies {
            let is_first = written.is_empty();
            let result = self.writer_of(copy).and_then(|index| {
                assert!(written.iter().all(|(other, _)| *other != index), "an event goes to a stream once");
                Ok((index, self.writers[index].write_copy(copy.parts, is_first)?))
            });
            match result {
                Ok(done) => written.push(done),
                Err(error) => {
                    written.into_iter().for_each(|(index, copy)| self.writers[index].take_back(copy));
                    return Err(error);
                }
            }
        }
        Ok(())
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
    /// As for [`Writer::sync`].
    pub fn sync(&mut self) -> Result<(), WriteError> {
        self.writers.iter_mut().try_for_each(Writer::sync)
    }

    /// Files closed since the last call.
    pub fn take_closed(&mut self) -> Vec<ClosedFile> {
        self.writers.iter_mut().flat_map(Writer::take_closed).collect()
    }

    /// Closes all streams and gives all files not yet taken.
    ///
    /// # Errors
    ///
    /// The first stream that could not be closed, after all were tried. Calling again tries it again; the files of
    /// the others are given then.
    pub fn finish(&mut self) -> Result<Vec<ClosedFile>, WriteError> {
        let results = self.writers.iter_mut().map(Writer::close);
        results.fold(Ok(()), Result::and)?;
        Ok(self.take_closed())
    }
}

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams").field("writers", &self.writers).finish_non_exhaustive()
    }
}

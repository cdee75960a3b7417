//! Trace files: the stamps of one process (`docs/trace.md`).
//!
//! A file is a sequence of [`Block`]s. What a killed process leaves can be read up to its last whole block.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::block::{Block, Fault, VERSION, has_section};
use crate::recorder::Source;
use crate::{Place, Section, Stamp, Thread};

/// What a trace file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The name of the process: its application, or `weir` for the parent.
    pub process: String,
    /// Its id.
    pub pid: u32,
    /// What counted the time.
    pub source: Source,
    /// Names of sections, by their number.
    pub sections: Vec<String>,
    /// Names of applications.
    pub places: Vec<(Place, String)>,
    /// The threads.
    pub threads: Vec<Thread>,
    /// Where the file ends too early, if it does: the process died while it wrote.
    pub torn_at: Option<u64>,
}

/// Why a trace file cannot be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum TraceError {
    #[error("{path}: {cause}", path = path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error("{path}: byte {at}: {what}", path = path.display())]
    Content { path: PathBuf, at: u64, what: Fault },
}

impl Trace {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is not a trace file.
    pub fn read(path: &Path) -> Result<Self, TraceError> {
        let bytes = fs::read(path).map_err(|cause| TraceError::File { path: path.to_owned(), cause })?;
        Self::decode(&bytes).map_err(|(at, what)| TraceError::Content { path: path.to_owned(), at, what })
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// Where it is not a trace file, and what is wrong there.
    pub fn decode(bytes: &[u8]) -> Result<Self, (u64, Fault)> {
        let (blocks, torn_at) = blocks(bytes)?;
        let mut blocks = blocks.into_iter();
        let Some((at, first)) = blocks.next() else { return Err((0, Fault::Empty)) };
        let Block::Process { pid, source, name } = first else { return Err((at, Fault::Unexpected(first.kind()))) };
        let (sections, places, threads) = (Vec::new(), Vec::new(), Vec::new());
        let mut trace = Self { process: name, pid, source, sections, places, threads, torn_at };
        for (at, block) in blocks {
            trace.take(block).map_err(|what| (at, what))?;
        }
        Ok(trace)
    }

    fn take(&mut self, block: Block) -> Result<(), Fault> {
        match block {
            Block::Process { .. } => return Err(Fault::Unexpected(block.kind())),
            Block::Section(name) => self.sections.push(name),
            Block::Place(place, name) => self.places.push((place, name)),
            Block::Thread(name) => self.threads.push(Thread { name, ..Thread::default() }),
            Block::Stamps { thread, lost, stamps } => {
                let is_named = |stamp: &Stamp| usize::from(stamp.section.0) < self.sections.len();
                if !stamps.iter().all(|stamp| !has_section(stamp.kind) || is_named(stamp)) {
                    return Err(Fault::Unnamed);
                }
                self.threads.get_mut(usize::from(thread)).ok_or(Fault::Unnamed)?.add(lost, stamps);
            }
            Block::End => {}
        }
        Ok(())
    }

    /// The name of a section.
    pub fn section(&self, section: Section) -> &str {
        self.sections.get(usize::from(section.0)).map_or("unnamed", String::as_str)
    }

    /// The name of an application, or of the process where it is about none in particular.
    pub fn place(&self, place: Place) -> &str {
        self.places.iter().find(|(known, _)| *known == place).map_or(&self.process, |(_, name)| name)
    }

    /// How many stamps it holds, and how many older ones were overwritten.
    pub fn counts(&self) -> (u64, u64) {
        let stamps = self.threads.iter().flat_map(|thread| &thread.pieces).map(|piece| piece.len() as u64).sum();
        (stamps, self.threads.iter().map(|thread| thread.overwritten).fold(0, u64::saturating_add))
    }
}

/// Blocks with the places of their first bytes, and where the file ends too early.
pub type Blocks = (Vec<(u64, Block)>, Option<u64>);

/// The blocks of a file.
///
/// # Errors
/// Where it is not a trace file, and what is wrong there.
pub fn blocks(bytes: &[u8]) -> Result<Blocks, (u64, Fault)> {
    if bytes.is_empty() {
        return Err((0, Fault::Empty));
    }
    let rest = bytes.strip_prefix(MAGIC).ok_or((0, Fault::NotATrace))?;
    let version = rest.first_chunk::<4>().ok_or((0, Fault::NotATrace))?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        return Err((MAGIC.len() as u64, Fault::Version(version)));
    }
    let (mut at, mut blocks) = (MAGIC.len() + 4, Vec::new());
    loop {
        match Block::decode(&bytes[at..]).map_err(|what| (at as u64, what))? {
            None => return Ok((blocks, Some(at as u64))),
            Some((block, len)) => {
                let is_end = block == Block::End;
                blocks.push((at as u64, block));
                at += len;
                if is_end && at == bytes.len() {
                    return Ok((blocks, None));
                }
                if is_end {
                    return Err((at as u64, Fault::Malformed));
                }
            }
        }
    }
}

/// What a file begins with.
pub(crate) fn head() -> Vec<u8> {
    [MAGIC, &VERSION.to_le_bytes()].concat()
}

/// How the names of trace files end.
pub const ENDING: &str = "weirtrace";

const MAGIC: &[u8] = b"weirtrac";

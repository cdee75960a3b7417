//! Time stamps \[DAQ1999 §4.2\]: where the time of each thread goes, and what becomes of an event on its way.
//!
//! A thread puts stamps around sections of its code with [`enter`] and [`leave`], and says with [`sends`] what it sends. While
//! nobody has armed them, a stamp costs one relaxed load and a branch. Armed, it goes into a ring of its thread, in which the
//! newest overwrite the oldest.
//!
//! | module | content |
//! |---|---|
//! | [`clock`] | the monotonic clock |
//! | [`recorder`] | arming, disarming, and taking the stamps of all threads |
//! | [`block`], [`file`](mod@file) | trace files, read with typed errors |
//! | [`recording`], [`writer`] | trace files, written while the process runs |
//! | [`switch`] | the one trace of a process, begun and ended by several |
//! | [`spans`] | what stamps mean: nested stretches of time, and what was sent |
//!
//! # Unsafe code
//! The call that reads the time-stamp counter.

pub mod block;
pub mod clock;
pub mod file;
pub mod recorder;
pub mod recording;
mod ring;
pub mod spans;
pub mod switch;
mod ticks;
pub mod writer;

pub use recorder::{are_polls_armed, enter, is_armed, leave, name_place, section, sends, serves};

/// A named section of code; the name comes from [`section`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Section(pub u16);

/// Who a stamp is about: the node id of an application, or [`NOWHERE`].
pub type Place = u16;

/// No application in particular.
pub const NOWHERE: Place = u16::MAX;

/// What a stamp says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StampKind {
    /// A section begins.
    Enter,
    /// The section that began last in this thread ends.
    Leave,
    /// A message leaves `place` for `peer`; the section is the one that will handle it.
    Send,
    /// The section that began last is about a further event.
    Further,
}

/// A stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When; of the monotonic clock, in nanoseconds.
    pub at_ns: u64,
    /// What it says.
    pub kind: StampKind,
    /// What it is about; of a [`StampKind::Leave`] nothing is said.
    pub section: Section,
    /// The application.
    pub place: Place,
    /// Whom the message comes from, or goes to.
    pub peer: Place,
    /// The event, or what else distinguishes this one.
    pub event: Option<u64>,
}

/// The stamps of one thread, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its name.
    pub name: String,
    /// How many stamps were overwritten before anybody took them.
    pub overwritten: u64,
    /// Those that are left: one piece from loss to loss.
    pub pieces: Vec<Vec<Stamp>>,
}

impl Thread {
    /// Takes the next stamps, before which some were lost.
    pub(crate) fn add(&mut self, lost: u64, stamps: Vec<Stamp>) {
        self.overwritten = self.overwritten.saturating_add(lost);
        match self.pieces.last_mut() {
            Some(piece) if lost == 0 => piece.extend(stamps),
            _ => self.pieces.push(stamps),
        }
    }
}

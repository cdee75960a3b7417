//! A source: the read-out of a detector, in a program of its own, that pushes its fragments to a partition.
//!
//! Its author writes the five functions of [`Source`]; [`run`] calls them. It connects, waits for the run, gives the source
//! a slot in memory that the read-out system serves, and commits the source's data there. The loop is in here so that a
//! stop cannot hang. A source that does not return while run control waits is given up by name ([`SourceError::Blocked`]).
//!
//! ```no_run
//! use weir_source::{Failure, Reading, Settings, Source, run};
//!
//! struct Counter(u64);
//!
//! impl Source for Counter {
//!     fn read(&mut self, slot: &mut [u8]) -> Result<Reading, Failure> {
//!         self.0 += 1;
//!         slot[..8].copy_from_slice(&self.0.to_le_bytes());
//!         Ok(Reading::committed(self.0, 8))
//!     }
//! }
//!
//! fn main() -> Result<(), weir_source::SourceError> {
//!     run("shm:counter", Settings::named("counter"), Counter(0)).map(drop)
//! }
//! ```
//!
//! A loop of one's own uses the [`Sender`] itself, and keeps a [`Watch`] over it.
#![forbid(unsafe_code)]

mod key;
mod running;
mod watch;

use std::collections::BTreeMap;
use std::time::Duration;

pub use key::{KeyError, key_of};
pub use link::{Flags, Head, LinkError, Order, Secret, Sender, Settings as LinkSettings};
pub use running::{Function, Sent, SourceError, run, run_here};
pub use watch::{Beat, Blocked, Watch};

/// What a source may say that went wrong: any error, or a text.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A read-out: the five functions. Each has to return within [`Settings::deadline`] when run control waits.
pub trait Source {
    /// Prepares the device; once, when the partition has taken the source.
    ///
    /// # Errors
    /// What keeps the device from being used; the program ends with it.
    fn configure(&mut self, settings: &Settings) -> Result<(), Failure> {
        let _ = settings;
        Ok(())
    }

    /// Arms the device for a run of this number; once in each run, while the program stays connected.
    ///
    /// # Errors
    /// What keeps the device from taking data; the program ends with it.
    fn start(&mut self, run: u32) -> Result<(), Failure> {
        let _ = run;
        Ok(())
    }

    /// Reads at most one fragment into the slot, which is as long as the longest payload. What the slot holds before is undefined.
    ///
    /// # Errors
    /// What keeps the device from going on; the program ends with it. A damaged fragment is no such error: commit it with
    /// [`Flags::TRANSMISSION_ERROR`].
    fn read(&mut self, slot: &mut [u8]) -> Result<Reading, Failure>;

    /// Disarms the device. What it still holds is read afterwards, until a read says that nothing is there: all but
    /// [`Reading::Committed`] do.
    ///
    /// # Errors
    /// What went wrong with the device; the program ends with it.
    fn stop(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// How it is, in a few words for run control; empty if there is nothing to say. Asked about every second.
    fn status(&mut self) -> String {
        String::new()
    }
}

impl<S: Source + ?Sized> Source for &mut S {
    fn configure(&mut self, settings: &Settings) -> Result<(), Failure> {
        (**self).configure(settings)
    }

    fn start(&mut self, run: u32) -> Result<(), Failure> {
        (**self).start(run)
    }

    fn read(&mut self, slot: &mut [u8]) -> Result<Reading, Failure> {
        (**self).read(slot)
    }

    fn stop(&mut self) -> Result<(), Failure> {
        (**self).stop()
    }

    fn status(&mut self) -> String {
        (**self).status()
    }
}

/// What a read has found.
#[derive(Clone, Copy, Debug)]
pub enum Reading {
    /// The first so many bytes of the slot are a fragment.
    Committed(Head, usize),
    /// Nothing is there now.
    Nothing,
    /// Nothing is there, and no fragment of a lower number will come: run control need not wait for one.
    Idle(u64),
    /// Nothing is there, and nothing will come that begins before this time, in ns: time goes on without data.
    Passed(u64),
    /// Nothing is there, and nothing more will come in this run.
    End,
}

impl Reading {
    /// The fragment of event `number`, which has `len` bytes.
    #[must_use]
    pub fn committed(number: u64, len: usize) -> Self {
        Self::Committed(Head { number: Some(number), ..Head::default() }, len)
    }
}

/// Who a source is, and how patient.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its name in the configuration of the partition.
    pub name: String,
    /// Its source identifier, if it knows it; it must be that of the configuration.
    pub id: Option<u32>,
    /// The key of the partition, if it has one; TCP needs one.
    pub key: Option<Secret>,
    /// How long to wait for the partition.
    pub patience: Duration,
    /// How long run control may wait for one of the five functions to return.
    pub deadline: Duration,
    /// Whatever else the source wants to be told.
    pub parameters: BTreeMap<String, String>,
}

impl Settings {
    /// A source of this name that waits a minute for its partition, and may let run control wait for five seconds.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            id: None,
            key: None,
            patience: Duration::from_secs(60),
            deadline: Duration::from_secs(5),
            parameters: BTreeMap::new(),
        }
    }
}

//! An assembly, with what only a run in processes of its own has.

use std::io;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use assembly::Scale;
use configuration::{BadMenu, Partition};
use rol::TimedFragments;
use trigger::Menu;

use crate::observer::Observer;
use crate::replies::replies_kept;

/// An assembly, with the selection that its configuration names and what only a run in processes of its own has.
#[derive(Clone)]
pub struct Assembly {
    assembly: assembly::Assembly,
    /// The selection, if there is one.
    menu: Option<Arc<Menu>>,
    observer: Option<Observer>,
    /// The `weir` that is run in other processes.
    program: Option<PathBuf>,
}

impl Assembly {
    /// Numbers the applications of a partition.
    ///
    /// # Errors
    /// A menu whose names the detector does not have.
    pub fn new(partition: Partition, robs: Vec<Vec<u32>>) -> Result<Self, BadMenu> {
        let menu = partition.resolve_menu()?;
        let (force_accept, veto) = partition.overridden_items()?;
        let scale = Scale { replies_kept: replies_kept(&partition), ..Scale::default() };
        let adler32 = partition.ros.checksum == configuration::Checksum::Adler32;
        let framing = Arc::new(TimedFragments { run_number: partition.run.number(), adler32 });
        let assembly = assembly::Assembly::new(partition, robs).with_items(force_accept, veto).on_scale(scale);
        let assembly = assembly.framed_by(framing);
        Ok(Self { assembly, menu, observer: None, program: None })
    }

    /// The same, where what sources send are lengths alone.
    #[must_use]
    pub fn without_data(self) -> Self {
        Self { assembly: self.assembly.without_data(), ..self }
    }

    /// The same, with somebody who is told of every decision of the selection.
    pub fn observed_by(self, observer: Option<Observer>) -> Self {
        Self { observer, ..self }
    }

    /// The same, with this `weir` for other processes; without it they run the program of this one.
    pub fn with_program(self, program: Option<PathBuf>) -> Self {
        Self { program, ..self }
    }

    /// The program of other processes.
    ///
    /// # Errors
    /// The system does not say which one this is.
    pub fn program(&self) -> io::Result<PathBuf> {
        self.program.clone().map_or_else(std::env::current_exe, Ok)
    }

    /// Whoever is told of every decision of the selection.
    pub fn observer(&self) -> Option<Observer> {
        self.observer.clone()
    }

    /// The selection, if there is one.
    pub fn menu(&self) -> Option<&Arc<Menu>> {
        self.menu.as_ref()
    }
}

impl Deref for Assembly {
    type Target = assembly::Assembly;

    fn deref(&self) -> &assembly::Assembly {
        &self.assembly
    }
}

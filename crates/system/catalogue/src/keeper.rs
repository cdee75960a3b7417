//! Keeps the runs of one partition, as they begin and end.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use configuration::{Partition, RosInput};
use partition::{Away, Outcome, RunNumberError, RunSettings, next_run_number};

use crate::error::CatalogueError;
use crate::store::{Catalogue, Numbering, Reserved};

/// The catalogue of a partition, and the run that goes on.
#[derive(Debug)]
pub struct Keeper {
    catalogue: Catalogue,
    partition: Partition,
    run: Option<Reserved>,
}

/// Why a run gets no place in the catalogue.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum NotReserved {
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    #[error(transparent)]
    Number(#[from] RunNumberError),
}

impl Keeper {
    /// Opens the catalogue that the configuration names, if it does.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn of(partition: &Partition) -> Result<Option<Self>, CatalogueError> {
        partition.control.catalogue.as_ref().map(|path| Self::at(Path::new(path), partition)).transpose()
    }

    /// Opens a catalogue for the runs of a partition.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn at(path: &Path, partition: &Partition) -> Result<Self, CatalogueError> {
        Ok(Self { catalogue: Catalogue::open(path)?, partition: partition.clone(), run: None })
    }

    /// Runs have another configuration from now on.
    pub fn configure(&mut self, partition: &Partition) {
        self.partition = partition.clone();
    }

    /// Reserves a run that `operator` begins at `now`, and gives these settings its number.
    ///
    /// # Errors
    /// The number of the settings is taken, or nothing can be written.
    pub fn begin(&mut self, settings: &mut RunSettings, operator: &str, now: SystemTime) -> Result<(), NotReserved> {
        let numbering = match settings.number {
            _ if self.partition.ros.input == RosInput::Replay => Numbering::Replayed,
            Some(number) => Numbering::Given(number),
            None => Numbering::From(next_run_number(&self.partition)?),
        };
        let partition = Partition { run: settings.clone(), ..self.partition.clone() };
        let run = self.catalogue.reserve(&partition, numbering, operator, now)?;
        settings.number = run.number.or(settings.number);
        self.run = Some(run);
        Ok(())
    }

    /// Goes on with a run that another process has begun, and has not ended.
    ///
    /// # Errors
    /// Nothing can be written.
    pub fn resume(&mut self, number: u32) -> Result<(), CatalogueError> {
        self.run = self.catalogue.resume(number)?;
        Ok(())
    }

    /// Adds words to the run that goes on, if one does.
    ///
    /// # Errors
    /// Nothing can be written.
    pub fn remark(&mut self, author: &str, text: &str, now: SystemTime) -> Result<(), CatalogueError> {
        self.run.as_ref().map_or(Ok(()), |run| self.catalogue.remark(run.id, author, text, None, now))
    }

    /// Adds to the run that goes on when nobody could have commanded it.
    ///
    /// # Errors
    /// Nothing can be written.
    pub fn remark_absences(&mut self, absences: &[Away]) -> Result<(), CatalogueError> {
        absences.iter().try_for_each(|Away { from_ms, to_ms }| {
            let s = Duration::from_millis(to_ms.saturating_sub(*from_ms)).as_secs_f64();
            let text =
                format!("the run had no run control for {s:.2} s, and went on; another process has taken it over");
            self.remark("weir", &text, UNIX_EPOCH + Duration::from_millis(*to_ms))
        })
    }

    /// Keeps how the run went; one that did not begin is taken back.
    ///
    /// # Errors
    /// Nothing can be written. The run is no worse: its files and its summary are there.
    pub fn end(&mut self, outcome: Option<&Outcome>, now: SystemTime) -> Result<(), CatalogueError> {
        match (self.run.take(), outcome) {
            (None, _) => Ok(()),
            (Some(run), Some(outcome)) => self.catalogue.end(run.id, &outcome.summary(), outcome.ending.forced, now),
            (Some(run), None) => self.catalogue.withdraw(run.id),
        }
    }

    /// Nobody knows how the run goes on, if one does: it counts as interrupted, for this reason.
    ///
    /// # Errors
    /// Nothing can be written.
    pub fn interrupt(&mut self, reason: &str, now: SystemTime) -> Result<(), CatalogueError> {
        self.run.take().map_or(Ok(()), |run| self.catalogue.interrupt(run.id, reason, now))
    }

    /// The catalogue.
    pub fn catalogue(&mut self) -> &mut Catalogue {
        &mut self.catalogue
    }
}

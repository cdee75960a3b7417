//! What becomes of links when a run ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use link::{Intake, IntakeParameters, LinkError};
use transport::waker::Waker;

/// The links between two runs of a process: their sources stay.
#[derive(Clone, Default)]
pub struct RestingLinks(Arc<Mutex<Vec<Intake>>>);

impl RestingLinks {
    /// No further run comes: the sources learn that their links end.
    pub fn end(&self) {
        self.lock().clear();
    }

    /// The link of these parameters: the one of the run before, or a new one.
    pub(super) fn open(&self, parameters: IntakeParameters, waker: &Waker) -> Result<Intake, LinkError> {
        let mut resting = self.lock();
        match resting.iter().position(|intake| intake.suits(&parameters)) {
            Some(place) => Ok(resting.swap_remove(place).resume(parameters.run)),
            None => Intake::open(parameters, waker.clone()),
        }
    }

    pub(super) fn keep(&self, intake: Intake) {
        self.lock().extend(intake.rest());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Intake>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

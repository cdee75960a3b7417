//! Who is told what is observed, beside those who ask for it.

use configuration::Partition;
use core::time::Duration;
use tokio::task::JoinSet;

use crate::bus::{Bus, BusError};
use crate::desk::Desk;
use crate::metrics::Told;
use crate::otlp::{Telemetry, TelemetryError};

/// Those of a partition. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Carriers {
    bus: Option<Bus>,
    telemetry: Option<Telemetry>,
}

/// Why a partition cannot have one that it asks for.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum CarriersError {
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    Telemetry(#[from] TelemetryError),
}

impl Carriers {
    /// Those that a partition asks for.
    ///
    /// # Errors
    /// The program was built without one, or it cannot be used.
    pub fn of(partition: &Partition) -> Result<Self, CarriersError> {
        Ok(Self { bus: Bus::of(partition)?, telemetry: Telemetry::of(partition)? })
    }

    /// They tell what a desk has to tell, until the desk is left.
    pub(crate) fn tell(&self, desk: &Desk) -> Telling {
        let mut tasks = JoinSet::new();
        self.bus.clone().into_iter().for_each(|bus| _ = tasks.spawn(bus.tell(desk.clone())));
        if let Some(telemetry) = self.telemetry.clone() {
            tasks.spawn(telemetry.tell(desk.clone(), self.bus.clone()));
        }
        Telling(tasks)
    }

    /// What they were told until now.
    pub(crate) fn told(&self) -> Told {
        let (bus, collector) = (self.bus.as_ref().map(Bus::traffic), self.telemetry.as_ref().map(Telemetry::traffic));
        Told { bus, collector }
    }
}

/// What tells them.
pub(crate) struct Telling(JoinSet<()>);

impl Telling {
    /// The desk is left: waits until they have heard it. Who takes nothing does not learn how it ended.
    pub(crate) async fn farewell(mut self) {
        let _ = tokio::time::timeout(FAREWELL, async { while self.0.join_next().await.is_some() {} }).await;
    }
}

const FAREWELL: Duration = Duration::from_secs(2);

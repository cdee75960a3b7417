//! All that is measured at a desk, as it is now.

use crate::desk::Desk;
use crate::metrics::{Measured, Sample, Told, samples};

/// Of a partition, and of what others were told.
pub(crate) fn measured(desk: &Desk, told: &Told) -> Vec<Sample> {
    let (status, dataflow, agents) = (&desk.status(), &desk.dataflow(), &desk.agents());
    samples(&Measured { status, dataflow, agents, messages_dropped: desk.messages_dropped(), told })
}

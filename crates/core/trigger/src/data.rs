//! What the algorithms see of an event: the records of each ROB.

use crate::payload::Records;

/// Records by source identifier. A ROB that sent nothing, or nothing legal, has none.
pub(crate) trait Data {
    fn records(&self, source_id: u32) -> Records<'_>;
}

//! The original event of the fragments of a replayed one.

use base::bulk::PageSlice;
use eformat::replay::{Segment, Template, TemplateError};
use eformat::{EventFormat, GenericStatus, Problem, Rob, RobStatus, Robs, SourceId, check_rob};

use super::source::{RECORD_SOURCE_ID, original_source};

/// Why an event cannot be put together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssembleError {
    /// Something that is not a ROB fragment.
    #[error("slice {slice} of the event: {problem}")]
    Fragment {
        /// Which slice, from 0.
        slice: usize,
        /// What is wrong, with an offset in the slice.
        problem: Problem,
    },
    /// The fragment that says how the event is put together did not come.
    #[error("the event has no usable record, the fragment of source {RECORD_SOURCE_ID:#010x}")]
    NoRecord,
    /// A fragment is missing, or the record is damaged.
    #[error(transparent)]
    Record(#[from] TemplateError),
}

/// The bytes of the original event, in order, as slices of the fragments: nothing is copied.
///
/// `fragments` are those of a built event in any order, one or several in a slice; none reaches over the end of its slice.
/// Fragments that the record does not refer to are left out; one that is marked as lost, dummy or cut counts as missing.
///
/// # Errors
/// See [`AssembleError`]; whatever can be had of the event is in the fragments then.
pub fn assemble(fragments: &[PageSlice]) -> Result<Vec<PageSlice>, AssembleError> {
    let mut record = None;
    let mut rods = Vec::new();
    for (slice_index, slice) in fragments.iter().enumerate() {
        let bad = |problem| AssembleError::Fragment { slice: slice_index, problem };
        for rob in Robs::new(EventFormat::V5, slice.as_bytes()) {
            let rob = rob.map_err(bad)?;
            if !is_whole(&rob) {
                continue;
            }
            let start = rob.offset();
            match original_source(rob.source_id().0) {
                None => {
                    let data =
                        check_rob(rob.fragment().bytes()).map_err(|problem| bad(problem.shifted(start as u64)))?.data;
                    record = Some(slice.slice(start + data.start..start + data.end));
                }
                Some(source) => {
                    let rod = rob.fragment().payload_range();
                    rods.push((source, slice_index, start + rod.start..start + rod.end));
                }
            }
        }
    }
    let record = record.ok_or(AssembleError::NoRecord)?;
    rods.sort_unstable_by_key(|(source, ..)| *source);
    let find = |source_id: SourceId, occurrence| {
        let at = rods.binary_search_by_key(&(source_id, occurrence), |(source, ..)| *source).ok()?;
        let (_, slice, range) = &rods[at];
        Some((fragments[*slice].slice(range.clone()), range.len()))
    };
    let segments = Template::parse(record.as_bytes())?.join(find)?;
    let bytes = |segment| match segment {
        Segment::Literal(range) => record.slice(range),
        Segment::Rod(rod) => rod,
    };
    Ok(segments.into_iter().map(bytes).collect())
}

fn is_whole(rob: &Rob<'_>) -> bool {
    let status = rob.status();
    let missing = RobStatus::LOST | RobStatus::PENDING | RobStatus::DISCARD | RobStatus::TRUNCATED;
    !status.generic().contains(GenericStatus::DUMMY) && !status.as_rob().intersects(missing)
}

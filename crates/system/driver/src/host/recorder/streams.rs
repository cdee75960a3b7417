//! The streams of a recorder, with what the header of an event says of them.

use std::collections::BTreeMap;

use configuration::{Partition, RobSelection, Stream};
use dataflow::message::{DebugReason, Recording};
use eformat::stream_tag::{self, Entry, StreamTag};
use eformat::{SourceId, SubDetector};

use super::RecorderError;

/// All streams that an event may go to.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedStreams {
    /// In the order of their bits.
    configured: Vec<TaggedStream>,
    debug: BTreeMap<DebugReason, TaggedStream>,
}

/// A stream and its tag as words of an event header.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TaggedStream {
    pub(super) tag: StreamTag,
    words: Vec<u32>,
}

impl RecordedStreams {
    /// The streams of a partition whose ROBs are `robs`.
    ///
    /// # Errors
    /// A stream has no valid type or name, or its tag has none of the sources.
    pub fn new(partition: &Partition, robs: &[u32]) -> Result<Self, RecorderError> {
        let sfo = partition.sfo.clone().unwrap_or_default();
        let configured = if partition.stream.is_empty() {
            vec![TaggedStream::new(sfo.stream_type(), sfo.stream_name())?]
        } else {
            let streams = partition.stream.iter().enumerate();
            streams.map(|(index, stream)| TaggedStream::of(index, stream, robs)).collect::<Result<_, _>>()?
        };
        let debug = DebugReason::ALL.map(|reason| Ok((reason, TaggedStream::new("debug", reason.name())?)));
        Ok(Self { configured, debug: debug.into_iter().collect::<Result<_, RecorderError>>()? })
    }

    /// Where an event goes: to the debug stream of its reason and nowhere else, or to the streams of its mask.
    pub(super) fn of(&self, recording: &Recording) -> Vec<&TaggedStream> {
        if let Some(reason) = recording.debug {
            return vec![&self.debug[&reason]];
        }
        let streams = self.configured.iter().enumerate();
        streams.filter(|(bit, _)| recording.streams >> bit & 1 == 1).map(|(_, stream)| stream).collect()
    }

    /// The stream tag words of an event.
    pub fn tags(&self, recording: &Recording) -> Vec<u32> {
        tag_words(&self.of(recording))
    }
}

impl TaggedStream {
    fn new(stream_type: &str, name: &str) -> Result<Self, RecorderError> {
        let wrong = |cause| RecorderError::Stream { stream: format!("{stream_type}_{name}"), cause };
        Ok(Self::tagged(StreamTag::new(stream_type, name, true).map_err(wrong)?))
    }

    fn of(index: usize, stream: &Stream, robs: &[u32]) -> Result<Self, RecorderError> {
        let Self { mut tag, .. } = Self::new(stream.stream_type.name(), &stream.name)?;
        for selection in &stream.robs {
            let selected: Vec<u32> = robs.iter().copied().filter(|&rob| selection.contains(rob)).collect();
            if selected.is_empty() {
                let robs = summary(robs);
                return Err(RecorderError::NoRob { index, selection: selection.to_string(), robs });
            }
            match selection {
                RobSelection::SubDetector(sub_detector) => drop(tag.sub_detectors.insert(*sub_detector)),
                RobSelection::Sources { .. } => tag.robs.extend(selected.into_iter().map(SourceId)),
            }
        }
        if !tag.is_full() {
            tag.sub_detectors.extend(RESULTS);
        }
        Ok(Self::tagged(tag))
    }

    fn tagged(tag: StreamTag) -> Self {
        let words = stream_tag::encode(&[Entry::Tag(tag.clone())]);
        Self { tag, words }
    }
}

/// The stream tag words of an event that goes to these streams: each tag is padded to whole words.
pub(super) fn tag_words(streams: &[&TaggedStream]) -> Vec<u32> {
    streams.iter().flat_map(|stream| &stream.words).copied().collect()
}

/// The sub-detectors of some ROBs, for a message.
fn summary(robs: &[u32]) -> String {
    let mut names: Vec<String> =
        robs.iter().map(|&rob| RobSelection::SubDetector(SourceId(rob).sub_detector()).to_string()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

/// What every partial event has beside its detector data: a result is recorded where a stream tag asks for it (format
/// note §4).
const RESULTS: [SubDetector; 2] = [SubDetector::TDAQ_LVL2, SubDetector::TDAQ_HLT];

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(streams: &str) -> Partition {
        let text = format!("[partition]\nname = \"p\"\n[ros]\ncount = 4\n[sfi]\ncount = 1\n[sfo]\n{streams}");
        Partition::parse("p.toml", &text, &[]).unwrap_or_else(|error| panic!("{error}"))
    }

    fn names(streams: &[&TaggedStream]) -> Vec<String> {
        streams.iter().map(|stream| format!("{}_{}", stream.tag.stream_type(), stream.tag.name())).collect()
    }

    fn recording(streams: u32, debug: Option<DebugReason>) -> Recording {
        let built = dataflow::message::BuiltEvent {
            event: dataflow::message::EventInfo::default(),
            oldest_unfinished: base::ids::EventId(0),
            missing: Vec::new(),
            bulk: base::bulk::Bulk::empty(),
        };
        Recording { built, streams, debug }
    }

    #[test]
    fn an_event_goes_to_the_streams_of_its_mask_or_to_debug() {
        let robs = [0x51_0000, 0x51_0001, 0x51_0002, 0x51_0003];
        let text = "[[stream]]\nname = \"Main\"\n[[stream]]\ntype = \"calibration\"\nname = \"t\"\n\
                    robs = [\"0x00510002-0x00510009\"]\n";
        let streams = RecordedStreams::new(&partition(text), &robs).unwrap();
        let of = |streams: u32, debug| recording(streams, debug);
        assert_eq!(names(&streams.of(&of(0b11, None))), ["physics_Main", "calibration_t"]);
        assert_eq!(names(&streams.of(&of(0b10, None))), ["calibration_t"]);
        assert_eq!(names(&streams.of(&of(0b11, Some(DebugReason::Crash)))), ["debug_FilterCrash"]);
        assert!(streams.of(&of(0b100, None)).is_empty());
        let words = tag_words(&streams.of(&of(0b11, None)));
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let Some(Entry::Tag(tag)) = stream_tag::decode(&bytes).pop() else { panic!("{bytes:?}") };
        assert_eq!(tag.robs, [0x51_0002, 0x51_0003].map(SourceId).into());
        assert!(tag.takes(SourceId(0x7b_0000)) && tag.takes(SourceId(0x7c_0000)) && !tag.takes(SourceId(0x51_0000)));
    }

    #[test]
    fn a_partial_stream_without_robs_is_refused() {
        let text = "[[stream]]\nname = \"t\"\ntype = \"calibration\"\nrobs = [0x51]\n";
        let error = RecordedStreams::new(&partition(text), &[0x42_0001]).err().unwrap().to_string();
        assert_eq!(
            error,
            "stream.0.robs: no ROB of this run is in TILECAL_BARREL_A_SIDE; expected some of LAR_EM_BARREL_C_SIDE"
        );
    }
}

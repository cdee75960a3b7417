//! Stream tags: to which streams an event belongs (format note §10).
//!
//! The note gives the meaning of tags and says that they are NUL-terminated texts padded to a word. The syntax inside
//! one text is not public. The syntax here is Weir's own, and only this file knows it:
//!
//! ```text
//! tag  = "weir1;" type ";" name ";" lumi ";" robs ";" dets      all ASCII
//! type = 1*( letter / digit / "-" )                             name = the same and "_"
//! lumi = "0" / "1"                                              obeys luminosity blocks
//! robs = [ 8HEX *( "," 8HEX ) ]                                 source ids, lower case, ascending
//! dets = [ 2HEX *( "," 2HEX ) ]                                 sub-detectors, lower case, ascending
//! ```
//!
//! Any other text is kept as [`Entry::Foreign`], byte for byte.

use std::collections::BTreeSet;

use crate::source_id::{SourceId, SubDetector};
use crate::word::{WORD_BYTES, words};

/// One stream tag. Type and name together identify it.
///
/// ```
/// use eformat::stream_tag::{Entry, StreamTag, decode, encode};
/// let tags = [Entry::Tag(StreamTag::new("physics", "Main", true)?)];
/// let words = encode(&tags);
/// let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
/// assert_eq!(&bytes[..22], b"weir1;physics;Main;1;;");
/// assert_eq!(decode(&bytes), tags);
/// # Ok::<(), eformat::stream_tag::BadStreamTag>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamTag {
    stream_type: String,
    name: String,
    /// Whether the stream is divided by luminosity blocks.
    pub obeys_lumi_block: bool,
    /// ROBs of a partial event; this and `sub_detectors` empty = the full event.
    pub robs: BTreeSet<SourceId>,
    /// Sub-detectors of a partial event.
    pub sub_detectors: BTreeSet<SubDetector>,
}

impl StreamTag {
    /// A tag for full events.
    ///
    /// # Errors
    ///
    /// If a part is empty or holds anything but ASCII letters, digits and `-` (in the name also `_`).
    pub fn new(stream_type: &str, name: &str, obeys_lumi_block: bool) -> Result<Self, BadStreamTag> {
        let legal = |text: &str, also: u8| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == also)
        };
        if !legal(stream_type, b'-') {
            return Err(BadStreamTag("type"));
        }
        if !legal(name, b'_') {
            return Err(BadStreamTag("name"));
        }
        Ok(Self {
            stream_type: stream_type.to_owned(),
            name: name.to_owned(),
            obeys_lumi_block,
            robs: BTreeSet::new(),
            sub_detectors: BTreeSet::new(),
        })
    }

    /// Type of the stream, such as `physics`.
    pub fn stream_type(&self) -> &str {
        &self.stream_type
    }

    /// Name of the stream, such as `Main`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the stream takes the ROB of an event.
    pub fn takes(&self, rob: SourceId) -> bool {
        self.is_full() || self.robs.contains(&rob) || self.sub_detectors.contains(&rob.sub_detector())
    }

    /// Whether the stream takes full events.
    pub fn is_full(&self) -> bool {
        self.robs.is_empty() && self.sub_detectors.is_empty()
    }
}

/// One text of the stream tag block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A tag in the syntax of this module.
    Tag(StreamTag),
    /// Text of another writer, without the NUL bytes around it; not empty.
    Foreign(Vec<u8>),
}

/// Parts of a stream tag that cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the {0} of a stream tag is empty or holds other than letters, digits and '-' (in the name also '_')")]
pub struct BadStreamTag(pub &'static str);

/// Adds `tag` to `tags`. A tag of the same type and name is merged: sets are joined, and full stays full. A `debug` tag
/// asks for the full event and removes all others (note §10).
pub fn add(tags: &mut Vec<StreamTag>, mut tag: StreamTag) {
    if tag.stream_type == DEBUG {
        tag.robs.clear();
        tag.sub_detectors.clear();
        tags.retain(|other| other.stream_type == DEBUG);
    } else if tags.iter().any(|other| other.stream_type == DEBUG) {
        return;
    }
    let same = tags.iter_mut().find(|other| other.stream_type == tag.stream_type && other.name == tag.name);
    let Some(known) = same else {
        return tags.push(tag);
    };
    if known.is_full() || tag.is_full() {
        known.robs.clear();
        known.sub_detectors.clear();
    } else {
        known.robs.append(&mut tag.robs);
        known.sub_detectors.append(&mut tag.sub_detectors);
    }
}

/// The words of the stream tag block: each text ended by a NUL, the whole padded with NULs. No entry gives no word.
pub fn encode(entries: &[Entry]) -> Vec<u32> {
    let mut text = Vec::new();
    for entry in entries {
        match entry {
            Entry::Tag(tag) => text.extend_from_slice(tag_text(tag).as_bytes()),
            Entry::Foreign(bytes) => text.extend_from_slice(bytes),
        }
        text.push(0);
    }
    text.resize(text.len().next_multiple_of(WORD_BYTES), 0);
    words(&text).collect()
}

/// The entries of a stream tag block given as bytes. Every block decodes: what is not ours is foreign.
pub fn decode(block: &[u8]) -> Vec<Entry> {
    let texts = block.split(|byte| *byte == 0).filter(|text| !text.is_empty());
    texts.map(|text| parse_tag(text).map_or_else(|| Entry::Foreign(text.to_vec()), Entry::Tag)).collect()
}

fn tag_text(tag: &StreamTag) -> String {
    let robs: Vec<String> = tag.robs.iter().map(|rob| format!("{:08x}", rob.0)).collect();
    let detectors: Vec<String> = tag.sub_detectors.iter().map(|detector| format!("{:02x}", detector.0)).collect();
    let StreamTag { stream_type, name, .. } = tag;
    let lumi = u8::from(tag.obeys_lumi_block);
    format!("{PREFIX};{stream_type};{name};{lumi};{};{}", robs.join(","), detectors.join(","))
}

fn parse_tag(text: &[u8]) -> Option<StreamTag> {
    let text = std::str::from_utf8(text).ok()?;
    let mut fields = text.strip_prefix(PREFIX)?.strip_prefix(';')?.split(';');
    let mut field = || fields.next();
    let (stream_type, name, lumi, robs, detectors) = (field()?, field()?, field()?, field()?, field()?);
    let mut tag = StreamTag::new(stream_type, name, lumi == "1").ok()?;
    let values = |list: &str| -> Option<Vec<u32>> {
        let items = list.split(',').filter(|_| !list.is_empty());
        items.map(|digits| u32::from_str_radix(digits, 16).ok()).collect()
    };
    tag.robs = values(robs)?.into_iter().map(SourceId).collect();
    for value in values(detectors)? {
        tag.sub_detectors.insert(SubDetector(u8::try_from(value).ok()?));
    }
    (tag_text(&tag) == text).then_some(tag)
}

const PREFIX: &str = "weir1";
const DEBUG: &str = "debug";

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn tag(stream_type: &str, name: &str, robs: &[u32], detectors: &[u8]) -> StreamTag {
        let mut tag = StreamTag::new(stream_type, name, true).unwrap();
        tag.robs = robs.iter().map(|rob| SourceId(*rob)).collect();
        tag.sub_detectors = detectors.iter().map(|detector| SubDetector(*detector)).collect();
        tag
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let entries = vec![
            Entry::Tag(tag("physics", "Main_1", &[], &[])),
            Entry::Foreign(b"TAGBYTES".to_vec()),
            Entry::Foreign(b"weir1;physics;Main;2;;".to_vec()),
            Entry::Tag(tag("calibration", "LAr", &[0x41_0001, 0xffff_ffff], &[0x41, 0xff])),
        ];
        assert_eq!(decode(&bytes(&encode(&entries))), entries);
        assert!(encode(&[]).is_empty());
    }

    #[test]
    fn parts_of_a_tag() {
        let tag = StreamTag::new("physics", "Main_1-a", false).unwrap();
        assert_eq!((tag.stream_type(), tag.name(), tag.obeys_lumi_block), ("physics", "Main_1-a", false));
        for (stream_type, name, bad) in
            [("", "a", "type"), ("a_b", "a", "type"), ("a;", "a", "type"), ("a", "", "name"), ("a", "b c", "name")]
        {
            assert_eq!(StreamTag::new(stream_type, name, true), Err(BadStreamTag(bad)));
        }
        let partial = [tag_for(&[1], &[]), tag_for(&[], &[1]), tag_for(&[], &[])];
        assert_eq!(partial.map(|tag| tag.is_full()), [false, false, true]);
    }

    fn tag_for(robs: &[u32], detectors: &[u8]) -> StreamTag {
        tag("calibration", "LAr", robs, detectors)
    }

    #[test]
    fn streams_of_one_type_or_name_are_not_the_same() {
        let mut tags = Vec::new();
        for (stream_type, name) in [("physics", "Main"), ("physics", "Late"), ("express", "Main")] {
            add(&mut tags, tag(stream_type, name, &[], &[]));
        }
        assert_eq!(tags.len(), 3);
        add(&mut tags, tag("debug", "a", &[], &[]));
        add(&mut tags, tag("debug", "b", &[], &[1]));
        assert_eq!(tags, [tag("debug", "a", &[], &[]), tag("debug", "b", &[], &[])]);
    }

    #[test]
    fn a_full_stream_stays_full() {
        for [first, second] in [[tag_for(&[], &[]), tag_for(&[1], &[])], [tag_for(&[], &[1]), tag_for(&[], &[])]] {
            let mut tags = vec![first];
            add(&mut tags, second);
            assert_eq!(tags, [tag_for(&[], &[])]);
        }
    }

    #[test]
    fn only_the_canonical_text_is_ours() {
        for text in [
            "weir1;physics;Main;1;;;",
            "weir1;physics;Main;1;",
            "weir1;physics;Main;01;;",
            "weir1;physics;Main;1;1;",
            "weir1;physics;Main;1;00000002,00000001;",
            "weir1;physics;Main;1;;7C",
            "weir1;;Main;1;;",
            "weir2;physics;Main;1;;",
        ] {
            assert_eq!(decode(text.as_bytes()), [Entry::Foreign(text.into())], "{text}");
        }
    }

    #[test]
    fn a_partial_stream_takes_what_its_lists_name() {
        let partial = tag("calibration", "LAr", &[0x42_0001], &[0x41]);
        let taken = [0x42_0001, 0x42_0002, 0x41_0007].map(|rob| partial.takes(SourceId(rob)));
        assert_eq!(taken, [true, false, true]);
        assert!(tag("physics", "Main", &[], &[]).takes(SourceId(0x42_0002)));
    }

    #[test]
    fn duplicates_merge_and_debug_wins() {
        let mut tags = Vec::new();
        add(&mut tags, tag("calibration", "LAr", &[1], &[]));
        add(&mut tags, tag("calibration", "LAr", &[2], &[0x41]));
        assert_eq!(tags, [tag("calibration", "LAr", &[1, 2], &[0x41])]);
        add(&mut tags, tag("calibration", "LAr", &[], &[]));
        assert_eq!(tags, [tag("calibration", "LAr", &[], &[])]);
        add(&mut tags, tag("debug", "Timeout", &[7], &[]));
        add(&mut tags, tag("physics", "Main", &[], &[]));
        assert_eq!(tags, [tag("debug", "Timeout", &[], &[])]);
    }
}

//! Taking recorded events apart into RODs and putting them together again, byte for byte.
//!
//! [`split`] gives the RODs of an event and a *template*: an opaque record of all headers, trailers and the order
//! of the children. [`Template::join`] lists the pieces of the original event. Between the two, template and RODs
//! may travel any way.
//!
//! # Template, layout version 1
//!
//! Little-endian 32-bit words; then bytes.
//!
//! | word | meaning |
//! |---|---|
//! | 0 | `0x4c505457` ("WTPL") |
//! | 1 | layout version, 1 |
//! | 2 | size of the event in bytes |
//! | 3 | n = number of segments |
//! | 4 + 4i | kind of segment i: 0 literal, 1 ROD |
//! | 5 + 4i | its length in bytes, not 0 |
//! | 6 + 4i | source identifier of the ROB around the ROD; 0 for a literal |
//! | 7 + 4i | how many RODs of this source stand before it in the event; 0 for a literal |
//! | 4 + 4n .. | the literals, one behind the other, without padding |
//!
//! The lengths of all segments sum to the size of the event. Events with a compressed payload have no ROD segment.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::compression::CompressionType;
use crate::event::Event;
use crate::problem::Problem;
use crate::source_id::SourceId;
use crate::word::{WORD_BYTES, push, push_all, size, to_word, word};

/// An event taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// The template, for [`Template::parse`].
    pub template: Vec<u8>,
    /// The RODs in file order.
    pub children: Vec<Child>,
}

/// One ROD of an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Child {
    /// Source identifier of the ROB around it.
    pub source_id: SourceId,
    /// How many RODs of this source stand before it in the event; 0 for normal data.
    pub occurrence: u32,
    /// Where it lies in the event.
    pub range: Range<usize>,
}

/// Takes the event that fills `event` apart. Formats 3.0, 4.0 and 5.0.
///
/// ROBs without payload have no child. What is inside a ROD is not looked at, so damaged RODs travel as they are.
///
/// # Errors
///
/// The first problem on the way to the ROBs.
pub fn split(event: &[u8]) -> Result<Split, Problem> {
    let view = Event::parse(event)?;
    let children = match view.compression() {
        CompressionType::None => find_children(&view)?,
        CompressionType::Zlib => Vec::new(),
    };
    let mut table = Vec::new();
    let mut literals = Vec::new();
    let mut segments = 0;
    let mut literal = |table: &mut Vec<u8>, range: Range<usize>| {
        if !range.is_empty() {
            push_all(table, &[KIND_LITERAL, to_word(range.len()), 0, 0]);
            literals.extend_from_slice(&event[range]);
            segments += 1;
        }
    };
    let mut at = 0;
    for child in &children {
        literal(&mut table, at..child.range.start);
        push_all(&mut table, &[KIND_ROD, to_word(child.range.len()), child.source_id.0, child.occurrence]);
        at = child.range.end;
    }
    literal(&mut table, at..event.len());
    let mut template = Vec::with_capacity(HEAD_BYTES + table.len() + literals.len());
    push_all(&mut template, &[MAGIC, LAYOUT_VERSION, to_word(event.len())]);
    push(&mut template, segments + to_word(children.len()));
    template.extend_from_slice(&table);
    template.extend_from_slice(&literals);
    Ok(Split { template, children })
}

fn find_children(event: &Event<'_>) -> Result<Vec<Child>, Problem> {
    let mut seen: BTreeMap<SourceId, u32> = BTreeMap::new();
    let mut children = Vec::new();
    let payload_start = event.fragment().payload_range().start;
    for rob in event.robs(event.fragment().payload()) {
        let rob = rob.map_err(|problem| problem.shifted(payload_start as u64))?;
        let range = rob.fragment().payload_range();
        if range.is_empty() {
            continue;
        }
        let start = payload_start + rob.offset();
        let count = seen.entry(rob.source_id()).or_default();
        let range = start + range.start..start + range.end;
        children.push(Child { source_id: rob.source_id(), occurrence: *count, range });
        *count += 1;
    }
    Ok(children)
}

/// A checked template.
#[derive(Debug, Clone, Copy)]
pub struct Template<'a> {
    table: &'a [u8],
    literals: &'a [u8],
    literals_start: usize,
    event_bytes: usize,
}

/// One piece of an event, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment<C> {
    /// These bytes of the template.
    Literal(Range<usize>),
    /// All bytes of this ROD, as the look-up gave it.
    Rod(C),
}

impl<'a> Template<'a> {
    /// Checks the template that fills `bytes`.
    ///
    /// # Errors
    ///
    /// What is not as [`split`] writes it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, TemplateError> {
        if bytes.len() < HEAD_BYTES {
            return Err(TemplateError::Truncated { needed_bytes: HEAD_BYTES as u64, have_bytes: bytes.len() as u64 });
        }
        if word(bytes, 0) != MAGIC {
            return Err(TemplateError::Magic { found: word(bytes, 0) });
        }
        if word(bytes, 1) != LAYOUT_VERSION {
            return Err(TemplateError::Version { found: word(bytes, 1) });
        }
        let table_bytes = u64::from(word(bytes, 3)) * ENTRY_BYTES as u64;
        let literals_start = HEAD_BYTES as u64 + table_bytes;
        if literals_start > bytes.len() as u64 {
            let have_bytes = bytes.len() as u64;
            return Err(TemplateError::Truncated { needed_bytes: literals_start, have_bytes });
        }
        let literals_start = literals_start as usize;
        let (head, literals) = bytes.split_at(literals_start);
        let event_bytes = size(word(bytes, 2));
        let template = Self { table: &head[HEAD_BYTES..], literals, literals_start, event_bytes };
        template.check_lengths()?;
        Ok(template)
    }

    fn check_lengths(&self) -> Result<(), TemplateError> {
        let (mut literal_bytes, mut all_bytes) = (0u64, 0u64);
        for (index, entry) in self.entries().enumerate() {
            let legal = match entry.kind {
                KIND_LITERAL => entry.source_id == 0 && entry.occurrence == 0,
                kind => kind == KIND_ROD,
            };
            if !legal || entry.length == 0 {
                return Err(TemplateError::Segment { index });
            }
            all_bytes += u64::from(entry.length);
            if entry.kind == KIND_LITERAL {
                literal_bytes += u64::from(entry.length);
            }
        }
        let have = self.literals.len() as u64;
        if literal_bytes != have {
            return Err(TemplateError::Literals { expected_bytes: literal_bytes, found_bytes: have });
        }
        if all_bytes != self.event_bytes as u64 {
            return Err(TemplateError::EventSize { segments_bytes: all_bytes, event_bytes: self.event_bytes as u64 });
        }
        Ok(())
    }

    /// Size of the event.
    pub fn event_bytes(&self) -> usize {
        self.event_bytes
    }

    /// The RODs that the event needs: source, occurrence and length in bytes, in order.
    pub fn children(&self) -> impl Iterator<Item = (SourceId, u32, usize)> + 'a {
        let rods = self.entries().filter(|entry| entry.kind == KIND_ROD);
        rods.map(|entry| (SourceId(entry.source_id), entry.occurrence, size(entry.length)))
    }

    /// The pieces of the event in order. `lookup` gives for source and occurrence a handle of the ROD and its
    /// length in bytes.
    ///
    /// # Errors
    ///
    /// A ROD that is missing or has another length than in the original event.
    pub fn join<C>(
        &self,
        mut lookup: impl FnMut(SourceId, u32) -> Option<(C, usize)>,
    ) -> Result<Vec<Segment<C>>, TemplateError> {
        let mut at = self.literals_start;
        let mut segments = Vec::with_capacity(self.table.len() / ENTRY_BYTES);
        for entry in self.entries() {
            let length = size(entry.length);
            if entry.kind == KIND_LITERAL {
                segments.push(Segment::Literal(at..at + length));
                at += length;
                continue;
            }
            let (source_id, occurrence) = (SourceId(entry.source_id), entry.occurrence);
            match lookup(source_id, occurrence) {
                Some((child, found)) if found == length => segments.push(Segment::Rod(child)),
                Some((_, found)) => {
                    let (found_bytes, expected_bytes) = (found as u64, length as u64);
                    return Err(TemplateError::RodSize { source_id, occurrence, found_bytes, expected_bytes });
                }
                None => return Err(TemplateError::RodMissing { source_id, occurrence }),
            }
        }
        Ok(segments)
    }

    fn entries(&self) -> impl Iterator<Item = Entry> + use<'a> {
        self.table.chunks_exact(ENTRY_BYTES).map(|entry| Entry {
            kind: word(entry, 0),
            length: word(entry, 1),
            source_id: word(entry, 2),
            occurrence: word(entry, 3),
        })
    }
}

struct Entry {
    kind: u32,
    length: u32,
    source_id: u32,
    occurrence: u32,
}

/// Why a template cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Fewer bytes than its head and table take.
    #[error("event template needs {needed_bytes} bytes, {have_bytes} are there")]
    Truncated {
        /// Bytes needed at least.
        needed_bytes: u64,
        /// Bytes given.
        have_bytes: u64,
    },
    /// Not a template.
    #[error("event template begins with {found:#010x}, expected 0x4c505457")]
    Magic {
        /// First word.
        found: u32,
    },
    /// Another layout.
    #[error("event template has layout version {found}, expected 1")]
    Version {
        /// Version found.
        found: u32,
    },
    /// An entry of the table that `split` does not write.
    #[error("segment {index} of the event template has an unknown kind, no length, or ids without ROD")]
    Segment {
        /// Which entry, from 0.
        index: usize,
    },
    /// The literals are not as long as the table says.
    #[error("event template has {found_bytes} bytes of literals, its table says {expected_bytes}")]
    Literals {
        /// Sum of the table.
        expected_bytes: u64,
        /// Bytes behind the table.
        found_bytes: u64,
    },
    /// The segments do not make up the event.
    #[error("segments of the event template sum to {segments_bytes} bytes, its head says {event_bytes}")]
    EventSize {
        /// Sum of the table.
        segments_bytes: u64,
        /// Size in the head.
        event_bytes: u64,
    },
    /// A ROD is not there.
    #[error("ROD {occurrence} of source {source_id} is missing")]
    RodMissing {
        /// Source of the ROD.
        source_id: SourceId,
        /// Which one of the source.
        occurrence: u32,
    },
    /// A ROD is not the one that was taken out.
    #[error("ROD {occurrence} of source {source_id} has {found_bytes} bytes, the event needs {expected_bytes}")]
    RodSize {
        /// Source of the ROD.
        source_id: SourceId,
        /// Which one of the source.
        occurrence: u32,
        /// Its length.
        found_bytes: u64,
        /// Length in the original event.
        expected_bytes: u64,
    },
}

const MAGIC: u32 = u32::from_le_bytes(*b"WTPL");
const LAYOUT_VERSION: u32 = 1;
const KIND_LITERAL: u32 = 0;
const KIND_ROD: u32 = 1;
const HEAD_BYTES: usize = 4 * WORD_BYTES;
const ENTRY_BYTES: usize = 4 * WORD_BYTES;

const _: () = assert!(MAGIC == 0x4c50_5457 && HEAD_BYTES == 16 && ENTRY_BYTES == 16);

#[cfg(test)]
mod tests {
    use super::*;

    fn template(event_bytes: u32, entries: &[[u32; 4]], literals: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_all(&mut bytes, &[MAGIC, LAYOUT_VERSION, event_bytes, to_word(entries.len())]);
        entries.iter().for_each(|entry| push_all(&mut bytes, entry));
        bytes.extend_from_slice(literals);
        bytes
    }

    #[test]
    fn a_template_may_be_of_rods_alone() {
        let bytes = template(60, &[[KIND_ROD, 40, 7, 0], [KIND_ROD, 20, 7, 1]], &[]);
        let parsed = Template::parse(&bytes).unwrap();
        assert_eq!(parsed.event_bytes(), 60);
        assert_eq!(parsed.children().collect::<Vec<_>>(), [(SourceId(7), 0, 40), (SourceId(7), 1, 20)]);
        let segments = parsed.join(|_, occurrence| Some((occurrence, if occurrence == 0 { 40 } else { 20 })));
        assert_eq!(segments, Ok(vec![Segment::Rod(0), Segment::Rod(1)]));
    }

    #[test]
    fn what_split_does_not_write_is_refused() {
        let (literal, rod) = ([KIND_LITERAL, 4, 0, 0], [KIND_ROD, 8, 7, 0]);
        let good = template(12, &[literal, rod], &[0; 4]);
        assert!(Template::parse(&good).is_ok());
        let segment = |index| TemplateError::Segment { index };
        let cases = [
            (template(12, &[literal, [2, 8, 7, 0]], &[0; 4]), segment(1)),
            (template(12, &[[KIND_LITERAL, 4, 1, 0], rod], &[0; 4]), segment(0)),
            (template(12, &[[KIND_LITERAL, 4, 0, 1], rod], &[0; 4]), segment(0)),
            (template(4, &[literal, [KIND_ROD, 0, 7, 0]], &[0; 4]), segment(1)),
            (template(12, &[literal, rod], &[0; 5]), TemplateError::Literals { expected_bytes: 4, found_bytes: 5 }),
            (template(13, &[literal, rod], &[0; 4]), TemplateError::EventSize { segments_bytes: 12, event_bytes: 13 }),
            (good[..15].to_vec(), TemplateError::Truncated { needed_bytes: 16, have_bytes: 15 }),
            (good[..47].to_vec(), TemplateError::Truncated { needed_bytes: 48, have_bytes: 47 }),
        ];
        for (bytes, expected) in cases {
            assert_eq!(Template::parse(&bytes).map(drop), Err(expected));
        }
    }

    #[test]
    fn another_rod_than_was_taken_out_is_refused() {
        let bytes = template(12, &[[KIND_LITERAL, 4, 0, 0], [KIND_ROD, 8, 7, 3]], &[0; 4]);
        let parsed = Template::parse(&bytes).unwrap();
        let (source_id, occurrence) = (SourceId(7), 3);
        let missing = TemplateError::RodMissing { source_id, occurrence };
        assert_eq!(parsed.join(|_, _| None::<((), usize)>), Err(missing));
        let (found_bytes, expected_bytes) = (9, 8);
        let longer = TemplateError::RodSize { source_id, occurrence, found_bytes, expected_bytes };
        assert_eq!(parsed.join(|_, _| Some(((), 9))), Err(longer));
    }
}

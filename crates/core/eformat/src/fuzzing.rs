//! Entry points of the fuzz targets. The stable tests replay the corpus through the same functions.

use crate::check::{CheckOptions, check_event};
use crate::compression::zlib_unpack;
use crate::event::Event;
use crate::event_header::{EventFraming, EventHeader};
use crate::file::file_events;
use crate::file_check::check_file;
use crate::fragment::EventFormat;
use crate::problem::Part;
use crate::replay::{Segment, Template, split};
use crate::rob::{Robs, check_rob};
use crate::stream_tag::{decode, encode};

/// Any bytes as an event, and as ROBs; whatever is accepted must come out unchanged.
pub fn event(data: &[u8]) {
    let options = CheckOptions { crc16: true, unpacked_bytes_max: 1 << 20, ..CheckOptions::default() };
    let mut problems = Vec::new();
    check_event(data, &options, &mut problems);
    assert!(problems.iter().all(|problem| problem.offset <= data.len() as u64));
    let _ = check_rob(data);
    for format in [EventFormat::V3, EventFormat::V4, EventFormat::V5] {
        let _ = Robs::new(format, data).count();
    }
    if let Ok(taken_apart) = split(data) {
        let template = Template::parse(&taken_apart.template).expect("a template of ours is valid");
        let mut children = taken_apart.children.iter();
        let lookup = |_, _| children.next().map(|child| (child.range.clone(), child.range.len()));
        let segments = template.join(lookup).expect("all children are there");
        let pieces = segments.into_iter().map(|segment| match segment {
            Segment::Literal(range) => &taken_apart.template[range],
            Segment::Rod(range) => &data[range],
        });
        assert_eq!(pieces.collect::<Vec<_>>().concat(), data);
    }
    if let Ok(view) = Event::parse(data)
        && view.format() == EventFormat::V5
        && let Ok(header) = EventHeader::of(&view)
    {
        let mut out = Vec::new();
        header.emit(&EventFraming::of(&view), &mut out);
        assert_eq!(out, &data[..view.fragment().payload_range().start]);
    }
}

/// Any bytes as a file; the header that is accepted must come out with the same meaning.
pub fn file(data: &[u8]) {
    let options = CheckOptions { unpacked_bytes_max: 1 << 20, ..CheckOptions::default() };
    for problem in check_file(data, options) {
        assert!(problem.offset <= data.len() as u64, "{problem}");
    }
    if let Ok(mut events) = file_events(data) {
        let header = events.header().clone();
        let bytes = header.emit();
        let again = file_events(&bytes).expect("a header of ours is valid");
        assert_eq!(*again.header(), header);
        events.by_ref().for_each(drop);
    }
}

/// Any bytes as a stream tag block; entries must survive encoding.
pub fn stream_tags(data: &[u8]) {
    let entries = decode(data);
    let block: Vec<u8> = encode(&entries).iter().flat_map(|word| word.to_le_bytes()).collect();
    assert_eq!(decode(&block), entries);
}

/// Any bytes as a template.
pub fn template(data: &[u8]) {
    if let Ok(template) = Template::parse(data) {
        let mut children = template.children().map(|(_, _, length)| length).collect::<Vec<_>>().into_iter();
        let segments = template.join(|_, _| children.next().map(|length| (length, length)));
        let lengths = segments.expect("all children are there").into_iter().map(|segment| match segment {
            Segment::Literal(range) => data[range].len(),
            Segment::Rod(length) => length,
        });
        assert_eq!(lengths.sum::<usize>(), template.event_bytes());
    }
}

/// Any bytes as a zlib stream; never more comes out than allowed.
pub fn zlib(data: &[u8]) {
    if let Ok(out) = zlib_unpack(Part::DataBlock, data, 1 << 16) {
        assert!(out.len() <= 1 << 16);
    }
}

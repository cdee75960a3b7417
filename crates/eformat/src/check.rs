//! Checking of a whole event: everything that the format note §5 calls a problem, and checksums (§8).

use crate::checksum::ChecksumType;
use crate::compression::CompressionType;
use crate::event::Event;
use crate::fragment::{EventFormat, Fragment};
use crate::problem::{Part, Problem};
use crate::rob::Rob;
use crate::word::WORD_BYTES;

/// What [`check_event`] looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckOptions {
    /// Verify Adler-32 checksums.
    pub adler32: bool,
    /// Verify CRC-16 checksums; off by default, see [`crc16_ccitt`](crate::crc16_ccitt).
    pub crc16: bool,
    /// Largest payload that is decompressed, in bytes.
    pub unpacked_bytes_max: usize,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self { adler32: true, crc16: false, unpacked_bytes_max: UNPACKED_BYTES_MAX }
    }
}

/// Checks the event that fills `bytes` at all levels, checksums included, and appends what is wrong to `problems`.
///
/// A problem of a header ends the way to its siblings behind it, since these cannot be found; a damaged ROD or
/// checksum does not. Fields wider than their definition and further status bits are not problems: files of real
/// experiments have them. The number of problems is at most three for each ROB that lies in `bytes`, plus three.
pub fn check_event(bytes: &[u8], options: &CheckOptions, problems: &mut Vec<Problem>) {
    let event = match Event::parse(bytes) {
        Ok(event) => event,
        Err(problem) => return problems.push(problem),
    };
    check_checksum(event.fragment(), 0, options, problems);
    let first = problems.len();
    let payload = match event.unpacked_payload(options.unpacked_bytes_max) {
        Ok(payload) => payload,
        Err(problem) => return problems.push(problem),
    };
    match event.format() {
        EventFormat::V3 => check_v3(&payload, 0, Part::SubDetector, options, problems),
        EventFormat::V4 | EventFormat::V5 => check_robs(&event, &payload, options, problems),
    }
    let payload_start = event.fragment().payload_range().start as u64;
    for problem in &mut problems[first..] {
        *problem = match event.compression() {
            CompressionType::None => problem.shifted(payload_start),
            CompressionType::Zlib => problem.unpacked_from(payload_start),
        };
    }
}

fn check_robs(event: &Event<'_>, payload: &[u8], options: &CheckOptions, problems: &mut Vec<Problem>) {
    for rob in event.robs(payload) {
        match rob {
            Ok(rob) => check_one_rob(&rob, rob.offset(), options, problems),
            Err(problem) => problems.push(problem),
        }
    }
}

/// Walks one level of format 3.0; a broken child ends its level, but not those around it.
fn check_v3(bytes: &[u8], base: usize, part: Part, options: &CheckOptions, problems: &mut Vec<Problem>) {
    let mut at = 0;
    while at < bytes.len() {
        let offset = base + at;
        if part == Part::Rob {
            match Rob::parse_at(EventFormat::V3, bytes, at) {
                Ok(rob) => {
                    check_one_rob(&rob, offset, options, problems);
                    at += rob.fragment().bytes().len();
                }
                Err(problem) => return problems.push(problem.shifted(base as u64)),
            }
            continue;
        }
        let fragment = match Fragment::parse_prefix(part, EventFormat::V3, &bytes[at..]) {
            Ok(fragment) => fragment,
            Err(problem) => return problems.push(problem.shifted(offset as u64)),
        };
        let child = if part == Part::SubDetector { Part::Ros } else { Part::Rob };
        let header_bytes = fragment.header_words() * WORD_BYTES;
        check_v3(fragment.payload(), offset + header_bytes, child, options, problems);
        at += fragment.bytes().len();
    }
}

fn check_one_rob(rob: &Rob<'_>, offset: usize, options: &CheckOptions, problems: &mut Vec<Problem>) {
    let rod = rob.rod().map(|rod| rod.size_problem());
    let rod_start = (offset + rob.fragment().payload_range().start) as u64;
    match rod {
        Ok(Some(problem)) => problems.push(problem.shifted(rod_start)),
        Ok(None) => {}
        Err(problem) => problems.push(problem.shifted(offset as u64)),
    }
    check_checksum(rob.fragment(), offset, options, problems);
}

fn check_checksum(fragment: &Fragment<'_>, offset: usize, options: &CheckOptions, problems: &mut Vec<Problem>) {
    let wanted = match fragment.checksum_type() {
        ChecksumType::None => false,
        ChecksumType::Adler32 => options.adler32,
        ChecksumType::Crc16 => options.crc16,
    };
    if wanted && let Err(problem) = fragment.verify_checksum() {
        problems.push(problem.shifted(offset as u64));
    }
}

const UNPACKED_BYTES_MAX: usize = 256 << 20;

//! Checking of a whole event: everything that the format note §5 calls a problem, checksums (§8), and whether its parts say the same.

use std::ops::AddAssign;

use crate::checksum::ChecksumType;
use crate::compression::CompressionType;
use crate::event::Event;
use crate::fragment::{EventFormat, Fragment};
use crate::problem::{Part, Problem};
use crate::rob::Rob;
use crate::twice::{compare_rod, compare_ros};
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

/// What checksums say of the bytes of events. Headers count as neither: the format has no checksum for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Bytes under a checksum that was verified and is right. That of a zlib stream is one.
    pub covered_bytes: u64,
    /// Bytes of fragments under none.
    pub unverified_bytes: u64,
}

impl AddAssign for Coverage {
    fn add_assign(&mut self, other: Self) {
        self.covered_bytes += other.covered_bytes;
        self.unverified_bytes += other.unverified_bytes;
    }
}

/// Checks the event that fills `bytes` at all levels, checksums included, and appends what is wrong to `problems`. Tells how much
/// checksums vouch for; that is nothing where the way to the fragments is broken.
///
/// A problem of a header ends the way to its siblings behind it, since these cannot be found; a damaged ROD or checksum does not.
/// Fields wider than their definition and further status bits are not problems: files of real experiments have them. Run number,
/// level-1 id, bunch crossing and trigger type of each ROD are those of the event. A ROB that says otherwise, or whose checksum is
/// wrong, is excepted. The number of problems is at most seven for each ROB that lies in `bytes`, plus three.
pub fn check_event(bytes: &[u8], options: &CheckOptions, problems: &mut Vec<Problem>) -> Coverage {
    let event = match Event::parse(bytes) {
        Ok(event) => event,
        Err(problem) => {
            problems.push(problem);
            return Coverage::default();
        }
    };
    let is_covered = check_checksum(event.fragment(), 0, options, problems);
    let first = problems.len();
    let payload = match event.unpacked_payload(options.unpacked_bytes_max) {
        Ok(payload) => payload,
        Err(problem) => {
            problems.push(problem);
            return Coverage::default();
        }
    };
    let mut robs = RobChecker { event: &event, options, coverage: Coverage::default(), problems };
    match event.format() {
        EventFormat::V3 => robs.check_v3(&payload, 0, Part::SubDetector),
        EventFormat::V4 | EventFormat::V5 => robs.check_all(&payload),
    }
    let coverage = robs.coverage;
    let payload_start = event.fragment().payload_range().start as u64;
    for problem in &mut problems[first..] {
        *problem = match event.compression() {
            CompressionType::None => problem.shifted(payload_start),
            CompressionType::Zlib => problem.unpacked_from(payload_start),
        };
    }
    if is_covered || event.compression() == CompressionType::Zlib {
        return Coverage { covered_bytes: bytes.len() as u64 - payload_start, unverified_bytes: 0 };
    }
    coverage
}

/// Checks the ROBs of an event.
struct RobChecker<'a> {
    event: &'a Event<'a>,
    options: &'a CheckOptions,
    coverage: Coverage,
    problems: &'a mut Vec<Problem>,
}

impl RobChecker<'_> {
    fn check_all(&mut self, payload: &[u8]) {
        for rob in self.event.robs(payload) {
            match rob {
                Ok(rob) => self.check(&rob, rob.offset()),
                Err(problem) => self.problems.push(problem),
            }
        }
    }

    /// Walks one level of format 3.0; a broken child ends its level, but not those around it.
    fn check_v3(&mut self, bytes: &[u8], base: usize, part: Part) {
        let mut at = 0;
        while at < bytes.len() {
            let offset = base + at;
            if part == Part::Rob {
                match Rob::parse_at(EventFormat::V3, bytes, at) {
                    Ok(rob) => {
                        self.check(&rob, offset);
                        at += rob.fragment().bytes().len();
                    }
                    Err(problem) => return self.problems.push(problem.shifted(base as u64)),
                }
                continue;
            }
            let fragment = match Fragment::parse_prefix(part, EventFormat::V3, &bytes[at..]) {
                Ok(fragment) => fragment,
                Err(problem) => return self.problems.push(problem.shifted(offset as u64)),
            };
            if part == Part::Ros {
                compare_ros(self.event, &fragment, offset, self.problems);
            }
            let child = if part == Part::SubDetector { Part::Ros } else { Part::Rob };
            let header_bytes = fragment.header_words() * WORD_BYTES;
            self.check_v3(fragment.payload(), offset + header_bytes, child);
            at += fragment.bytes().len();
        }
    }

    fn check(&mut self, rob: &Rob<'_>, offset: usize) {
        let payload = rob.fragment().payload_range();
        let rod_start = offset + payload.start;
        let rod = rob.rod();
        match &rod {
            Ok(rod) => self.problems.extend(rod.size_problem().map(|problem| problem.shifted(rod_start as u64))),
            Err(problem) => self.problems.push(problem.shifted(offset as u64)),
        }
        let before = self.problems.len();
        if check_checksum(rob.fragment(), offset, self.options, self.problems) {
            self.coverage.covered_bytes += (rob.fragment().bytes().len() - payload.start) as u64;
        } else {
            self.coverage.unverified_bytes += payload.len() as u64;
        }
        if let (Ok(rod), true) = (rod, self.problems.len() == before) {
            compare_rod(self.event, rob, &rod, rod_start, self.problems);
        }
    }
}

/// Whether a checksum of a kind that is verified is right.
fn check_checksum(fragment: &Fragment<'_>, offset: usize, options: &CheckOptions, problems: &mut Vec<Problem>) -> bool {
    let wanted = match fragment.checksum_type() {
        ChecksumType::None => false,
        ChecksumType::Adler32 => options.adler32,
        ChecksumType::Crc16 => options.crc16,
    };
    if !wanted {
        return false;
    }
    let verified = fragment.verify_checksum();
    problems.extend(verified.err().map(|problem| problem.shifted(offset as u64)));
    verified.is_ok()
}

const UNPACKED_BYTES_MAX: usize = 256 << 20;

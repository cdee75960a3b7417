//! The way from a full event's payload to its ROBs.

use crate::fragment::{EventFormat, Fragment};
use crate::problem::{Part, Problem};
use crate::rob::Rob;
use crate::word::WORD_BYTES;

/// The ROBs in the payload of a full event, in order.
///
/// Format 3.0 has sub-detector and ROS fragments on the way (format note §1). Ends after the first problem.
#[derive(Debug, Clone)]
pub struct EventRobs<'a> {
    format: EventFormat,
    payload: &'a [u8],
    at: usize,
    /// Ends of the open sub-detector and ROS fragments, outermost first; only the first `open` are valid.
    ends: [usize; 2],
    open: usize,
}

impl<'a> EventRobs<'a> {
    pub(crate) fn new(format: EventFormat, payload: &'a [u8]) -> Self {
        Self { format, payload, at: 0, ends: [0; 2], open: 0 }
    }

    fn step(&mut self) -> Result<Option<Rob<'a>>, Problem> {
        if self.format == EventFormat::V3 {
            while !self.descend()? {}
        }
        if self.at == self.end() {
            return Ok(None);
        }
        let rob = Rob::parse_at(self.format, &self.payload[..self.end()], self.at)?;
        self.at += rob.fragment().bytes().len();
        Ok(Some(rob))
    }

    /// Closes what ended and opens what begins here; `true` when a ROB or the end of the payload is next.
    fn descend(&mut self) -> Result<bool, Problem> {
        if self.at == self.end() {
            if self.open == 0 {
                return Ok(true);
            }
            self.open -= 1;
            return Ok(false);
        }
        let part = match self.open {
            0 => Part::SubDetector,
            1 => Part::Ros,
            _ => return Ok(true),
        };
        let here = &self.payload[self.at..self.end()];
        let fragment =
            Fragment::parse_prefix(part, self.format, here).map_err(|problem| problem.shifted(self.at as u64))?;
        self.ends[self.open] = self.at + fragment.bytes().len();
        self.open += 1;
        self.at += fragment.header_words() * WORD_BYTES;
        Ok(false)
    }

    fn end(&self) -> usize {
        if self.open == 0 { self.payload.len() } else { self.ends[self.open - 1] }
    }
}

impl<'a> Iterator for EventRobs<'a> {
    type Item = Result<Rob<'a>, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        let item = self.step().transpose();
        if let Some(Err(_)) = item {
            self.at = self.payload.len();
            self.open = 0;
        }
        item
    }
}

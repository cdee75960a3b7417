//! The frames of the protocol that the crate's documentation describes.

use serde::{Deserialize, Serialize};

use trigger::windows::{WINDOWS_BYTES_MAX, Window};

use crate::verdict::{FailReason, Verdict};

pub(crate) const VERSION: u16 = 2;
/// No frame is longer: it fits in the kernel's default send buffer.
pub(crate) const FRAME_BYTES_MAX: usize = 128 << 10;
/// The largest result of an event.
pub(crate) const RESULT_BYTES_MAX: usize = 32 << 10;
/// The longest message of a failed event; a longer one is cut.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4 << 10;
/// The largest number of events that a task has at a time.
pub(crate) const DEPTH_MAX: usize = 32;

pub(crate) const HEADER_BYTES: usize = 8;
pub(crate) const EVENT_BYTES: usize = 16;
pub(crate) const ANSWER_BYTES: usize = 40;
/// The longest answer.
pub(crate) const ONE_BYTES_MAX: usize = ANSWER_BYTES + RESULT_BYTES_MAX + WINDOWS_BYTES_MAX + BODY_ALIGN_BYTES;

/// Kinds of frames from the owner to a task.
pub(crate) mod to_task {
    pub(crate) const SETUP: u16 = 1;
    pub(crate) const EVENTS: u16 = 2;
}

/// Kinds of frames from a task to its owner.
pub(crate) mod to_owner {
    pub(crate) const HELLO: u16 = 1;
    pub(crate) const READY: u16 = 2;
    pub(crate) const UNABLE: u16 = 3;
    pub(crate) const ANSWERS: u16 = 4;
}

/// What a task must know before its first event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) name: String,
    pub(crate) task: usize,
    pub(crate) slots: usize,
    pub(crate) slot_bytes: usize,
    pub(crate) result_bytes_max: usize,
    pub(crate) windows_max: usize,
    pub(crate) windows_bytes_max: usize,
    pub(crate) message_bytes_max: usize,
    pub(crate) frame_bytes_max: usize,
    pub(crate) streams: Vec<String>,
    pub(crate) setup: String,
}

/// One event of a frame to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) sequence: u64,
    pub(crate) slot: u32,
    pub(crate) len_bytes: u32,
}

/// The first eight bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: u16,
    pub(crate) count: u16,
    pub(crate) more: u32,
}

impl Header {
    pub(crate) fn emit(self) -> [u8; HEADER_BYTES] {
        let word = u64::from(self.kind) | u64::from(self.count) << 16 | u64::from(self.more) << 32;
        word.to_le_bytes()
    }

    pub(crate) fn parse(frame: &[u8]) -> Option<(Self, &[u8])> {
        let (header, rest) = frame.split_first_chunk::<HEADER_BYTES>()?;
        let word = u64::from_le_bytes(*header);
        Some((Self { kind: word as u16, count: (word >> 16) as u16, more: (word >> 32) as u32 }, rest))
    }
}

/// Makes a frame of events in `out`.
pub(crate) fn emit_events(events: impl ExactSizeIterator<Item = Given>, answer_after: u32, out: &mut Vec<u8>) {
    out.clear();
    let count = u16::try_from(events.len()).expect("a task has few events at a time");
    out.extend_from_slice(&Header { kind: to_task::EVENTS, count, more: answer_after }.emit());
    for Given { sequence, slot, len_bytes } in events {
        out.extend_from_slice(&sequence.to_le_bytes());
        out.extend_from_slice(&slot.to_le_bytes());
        out.extend_from_slice(&len_bytes.to_le_bytes());
    }
}

/// The events of a frame behind its header; `None` if its length contradicts the count.
pub(crate) fn parse_events(header: Header, rest: &[u8]) -> Option<impl Iterator<Item = Given> + '_> {
    let (records, behind) = rest.as_chunks::<EVENT_BYTES>();
    (records.len() == usize::from(header.count) && behind.is_empty()).then(|| {
        records.iter().map(|record| Given {
            sequence: long(record, 0),
            slot: word(record, 8),
            len_bytes: word(record, 12),
        })
    })
}

const REJECTED: u8 = 0;
const ACCEPTED: u8 = 1;
const FAILED: u8 = 2;

/// Adds an answer to a frame.
pub(crate) fn push_answer(sequence: u64, verdict: &Verdict, out: &mut Vec<u8>) {
    let mut asked = Vec::new();
    let (kind, reason, streams, chains, input, body): (_, _, _, _, _, &[u8]) = match verdict {
        Verdict::Rejected { chains, input } => (REJECTED, 0, 0, *chains, *input, &[]),
        Verdict::Accepted { streams, chains, input, result, windows } => {
            Window::put_all(windows, &mut asked);
            (ACCEPTED, 0, *streams, *chains, *input, result)
        }
        Verdict::Failed { reason, message } => {
            let reason = match reason {
                FailReason::Memory => 1,
                FailReason::BadAnswer => 2,
                _ => 0,
            };
            (FAILED, reason, 0, 0, 0, cut(message, MESSAGE_BYTES_MAX).as_bytes())
        }
    };
    let body_len = u32::try_from(body.len()).expect("results and messages are bounded");
    let asked_len = u32::try_from(asked.len()).expect("windows are bounded");
    out.extend_from_slice(&sequence.to_le_bytes());
    out.extend_from_slice(&[kind, reason, 0, 0]);
    out.extend_from_slice(&streams.to_le_bytes());
    out.extend_from_slice(&chains.to_le_bytes());
    out.extend_from_slice(&input.to_le_bytes());
    out.extend_from_slice(&body_len.to_le_bytes());
    out.extend_from_slice(&asked_len.to_le_bytes());
    out.extend_from_slice(body);
    out.extend_from_slice(&asked);
    out.resize(out.len().next_multiple_of(BODY_ALIGN_BYTES), 0);
}

/// Takes an answer from the beginning of `rest`; `Err` says what is wrong with it. No claim of the task is trusted.
pub(crate) fn take_answer(rest: &mut &[u8], streams: usize) -> Result<(u64, Verdict), String> {
    let Some((record, behind)) = rest.split_first_chunk::<ANSWER_BYTES>() else {
        return Err(format!("an answer of {} bytes, expected at least {ANSWER_BYTES}", rest.len()));
    };
    let [body_len, asked_len] = [32, 36].map(|at| word(record, at) as usize);
    let len = body_len + asked_len;
    let padded = len.next_multiple_of(BODY_ALIGN_BYTES);
    let behind_it = behind.get(..len).filter(|_| behind.len() >= padded);
    let (body, asked) = behind_it
        .ok_or_else(|| format!("an answer with {len} more bytes, of which {} are there", behind.len()))?
        .split_at(body_len);
    *rest = &behind[padded..];
    let (chains, input) = (long(record, 16), long(record, 24));
    let verdict = match record[8] {
        REJECTED => Verdict::Rejected { chains, input },
        ACCEPTED => {
            let mask = word(record, 12);
            if body_len > RESULT_BYTES_MAX || !body_len.is_multiple_of(4) {
                return Err(format!(
                    "a result of {body_len} bytes, expected whole words of at most {RESULT_BYTES_MAX}"
                ));
            }
            if u64::from(mask) >> streams != 0 {
                return Err(format!("streams {mask:#x}, of which there are {streams}"));
            }
            let windows = Window::take_all(asked).map_err(|problem| problem.to_string())?;
            Verdict::Accepted { streams: mask, chains, input, result: body.to_vec(), windows }
        }
        FAILED => {
            let reason = match record[9] {
                1 => FailReason::Memory,
                2 => FailReason::BadAnswer,
                _ => FailReason::Exception,
            };
            let message = String::from_utf8_lossy(&body[..body_len.min(MESSAGE_BYTES_MAX)]).into_owned();
            Verdict::Failed { reason, message }
        }
        kind => return Err(format!("verdict {kind}, expected 0 to 2")),
    };
    Ok((long(record, 0), verdict))
}

/// The beginning of a text, at most `bytes_max` long.
pub(crate) fn cut(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

const BODY_ALIGN_BYTES: usize = 8;

const _: () = assert!(ANSWER_BYTES.is_multiple_of(BODY_ALIGN_BYTES) && HEADER_BYTES.is_multiple_of(BODY_ALIGN_BYTES));
const _: () = assert!(ONE_BYTES_MAX + HEADER_BYTES <= FRAME_BYTES_MAX);

#[cfg(test)]
mod tests {
    use super::*;
    use timing::Interval;

    #[test]
    fn answers_come_back() {
        let window = Window { sources: vec![7], time: Interval::new(5, 1 << 60) };
        let verdicts = [
            Verdict::Rejected { chains: 1, input: 3 },
            Verdict::Accepted { streams: 2, chains: 1 << 63, input: u64::MAX, result: vec![1; 12], windows: vec![] },
            Verdict::Accepted { streams: 2, chains: 0, input: 0, result: vec![1; 12], windows: vec![window] },
            Verdict::Failed { reason: FailReason::Memory, message: "é".into() },
            Verdict::Failed { reason: FailReason::Exception, message: String::new() },
        ];
        let mut frame = Vec::new();
        for (sequence, verdict) in verdicts.iter().enumerate() {
            push_answer(sequence as u64, verdict, &mut frame);
        }
        let mut rest = frame.as_slice();
        for (sequence, verdict) in verdicts.into_iter().enumerate() {
            assert_eq!(take_answer(&mut rest, 2), Ok((sequence as u64, verdict)));
        }
        assert!(rest.is_empty());
    }

    #[test]
    fn a_torn_or_false_answer_is_refused() {
        let mut frame = Vec::new();
        let windows = vec![Window::of(vec![7])];
        let verdict = Verdict::Accepted { streams: 1, chains: 0, input: 0, result: vec![1; 12], windows };
        push_answer(1, &verdict, &mut frame);
        for len in 0..frame.len() {
            assert!(take_answer(&mut &frame[..len], 1).is_err());
        }
        assert!(take_answer(&mut frame.as_slice(), 0).unwrap_err().contains("streams"));
        frame[8] = 9;
        assert!(take_answer(&mut frame.as_slice(), 1).unwrap_err().contains("verdict 9"));
        frame[8] = 1;
        assert!(take_answer(&mut frame.as_slice(), 1).is_ok());
        frame[36] -= 4;
        assert!(take_answer(&mut frame.as_slice(), 1).unwrap_err().contains("no windows"));
        frame[32..36].fill(0xff);
        assert!(take_answer(&mut frame.as_slice(), 1).is_err());
    }

    #[test]
    fn events_come_back() {
        let events =
            [Given { sequence: 1 << 40, slot: 3, len_bytes: 100 }, Given { sequence: 2, slot: 0, len_bytes: 64 }];
        let mut frame = Vec::new();
        emit_events(events.into_iter(), 8, &mut frame);
        let (header, rest) = Header::parse(&frame).unwrap();
        assert_eq!(header, Header { kind: to_task::EVENTS, count: 2, more: 8 });
        assert!(parse_events(header, rest).unwrap().eq(events));
        assert!(parse_events(header, &rest[1..]).is_none());
    }
}

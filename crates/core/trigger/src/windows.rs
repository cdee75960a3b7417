//! What a filter wants recorded of an event: windows of time, of some sources.

use eformat::{SourceId, SubDetector, WORD_BYTES};
use thiserror::Error;
use timing::Interval;

/// Source identifier of the fragment that says of which windows an event was recorded, and what was left out.
pub const FILTER_WINDOWS: SourceId = SourceId::new(SubDetector::TDAQ_HLT, 1);

/// Windows of an event, at most.
pub const WINDOWS_MAX: usize = 1024;

/// Bytes of all windows of an event, at most: 20 for each, and 4 for each source that it names.
pub const WINDOWS_BYTES_MAX: usize = 32 << 10;

/// A request for the data of some sources in an interval of time.
///
/// Chunks that meet it are recorded, as a whole. Data without a time meet it whenever it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Source identifiers; none stands for all sources.
    pub sources: Vec<u32>,
    /// In ns of the partition's clock.
    pub time: Interval,
}

/// What of a source is not recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Its source identifier.
    pub source: u32,
    /// Its chunks that are recorded.
    pub kept_chunks: u32,
    /// Its chunks that are not.
    pub chunks: u32,
    /// Bytes that are not recorded: of chunks with their heads, or of the whole fragment.
    pub bytes: u32,
}

/// What is recorded with an event of which a filter wanted windows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowsResult {
    /// The windows.
    pub asked: Vec<Window>,
    /// By source, in the order of the fragments; none for a source of which all is recorded.
    pub left_out: Vec<LeftOut>,
}

/// Why windows are none, or not those of an event.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BadWindows {
    /// Of another version.
    #[error("word 0 of the fragment of windows is {found:#010x}; expected {WINDOWS_VERSION:#010x}")]
    Version {
        /// The word.
        found: u32,
    },
    /// They end in the middle of one, or something stands behind them.
    #[error("{found} bytes are no windows: they end too early, or something stands behind them")]
    Length {
        /// Their length.
        found: usize,
    },
    /// Too many.
    #[error("more than {WINDOWS_MAX} windows, or {WINDOWS_BYTES_MAX} bytes of them: ask for fewer and longer ones")]
    TooMany,
    /// One ends before it begins.
    #[error("window {place} ends at {end} ns, before it begins at {begin} ns: expected t0 <= t1")]
    Turned {
        /// Which one, from 0.
        place: usize,
        /// Where it begins.
        begin: u64,
        /// Where it ends.
        end: u64,
    },
    /// One names a source that is not of the event.
    #[error("window {place} names the source {source_id:#010x}, which the event has no ROB of")]
    UnknownSource {
        /// Which one, from 0.
        place: usize,
        /// The source identifier.
        source_id: u32,
    },
    /// One meets nothing of the event.
    #[error(
        "window {place} from {} to {} ns is outside of the event, which reaches from {} to {} ns", asked.begin, asked.end,
        event.begin, event.end
    )]
    Outside {
        /// Which one, from 0.
        place: usize,
        /// Its time.
        asked: Interval,
        /// What the event takes of the sources that it names.
        event: Interval,
    },
    /// One names times of a source whose clock is not that of the event.
    #[error(
        "window {place} names times, but the source {source_id:#010x} has a clock of its own (clock = \"model\"): expected \
         times of other sources, and a window of this source without times"
    )]
    OwnClock {
        /// Which one, from 0.
        place: usize,
        /// The source identifier.
        source_id: u32,
    },
    /// One names times where the data have none.
    #[error("window {place} names times, but its sources have none: expected a window of sources alone")]
    NoTimes {
        /// Which one, from 0.
        place: usize,
    },
}

impl Window {
    /// All that there is of these sources, whenever it is; of all, if none is named.
    pub fn of(sources: Vec<u32>) -> Self {
        Self { sources, time: ALWAYS }
    }

    /// Whether it asks for data whenever they are.
    pub fn is_always(&self) -> bool {
        self.time == ALWAYS
    }

    /// Whether these can travel, and none ends before it begins.
    ///
    /// # Errors
    /// Too many of them, and one that ends before it begins.
    pub fn check_all(windows: &[Self]) -> Result<(), BadWindows> {
        let bytes: usize = windows.iter().map(|window| WINDOW_BYTES + WORD_BYTES * window.sources.len()).sum();
        if windows.len() > WINDOWS_MAX || bytes > WINDOWS_BYTES_MAX {
            return Err(BadWindows::TooMany);
        }
        windows.iter().enumerate().try_for_each(|(place, window)| check_order(place, window.time))
    }

    /// Adds the windows, as they travel.
    pub fn put_all(windows: &[Self], out: &mut Vec<u8>) {
        for Self { sources, time } in windows {
            out.extend_from_slice(&time.begin.to_le_bytes());
            out.extend_from_slice(&time.end.to_le_bytes());
            out.extend_from_slice(&(sources.len() as u32).to_le_bytes());
            sources.iter().for_each(|source| out.extend_from_slice(&source.to_le_bytes()));
        }
    }

    /// Reads windows up to the end of `bytes`.
    ///
    /// # Errors
    /// Bytes that are none, too many of them, and one that ends before it begins.
    pub fn take_all(bytes: &[u8]) -> Result<Vec<Self>, BadWindows> {
        if bytes.len() > WINDOWS_BYTES_MAX {
            return Err(BadWindows::TooMany);
        }
        let (mut windows, mut rest) = (Vec::new(), bytes);
        while !rest.is_empty() {
            let (place, found) = (windows.len(), bytes.len());
            if place == WINDOWS_MAX {
                return Err(BadWindows::TooMany);
            }
            windows.push(Self::take(&mut rest).ok_or(BadWindows::Length { found })?.checked(place)?);
        }
        Ok(windows)
    }

    fn take(rest: &mut &[u8]) -> Option<Self> {
        let (begin, end, count) = (long(rest)?, long(rest)?, word(rest)?);
        let named = rest.split_off(..(count as usize).checked_mul(WORD_BYTES)?)?;
        let sources = named.as_chunks().0.iter().map(|source| u32::from_le_bytes(*source)).collect();
        Some(Self { sources, time: Interval { begin, end } })
    }

    /// One that ends where it begins is an instant.
    fn checked(self, place: usize) -> Result<Self, BadWindows> {
        check_order(place, self.time)?;
        Ok(Self { time: Interval::new(self.time.begin, self.time.end), ..self })
    }
}

impl WindowsResult {
    /// The data words of the fragment.
    pub fn to_words(&self) -> Vec<u32> {
        let mut bytes = Vec::new();
        Window::put_all(&self.asked, &mut bytes);
        let asked = bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
        let head = [WINDOWS_VERSION, asked.len() as u32];
        let left_out = self.left_out.iter().flat_map(|one| [one.source, one.kept_chunks, one.chunks, one.bytes]);
        head.into_iter().chain(asked).chain(left_out).collect()
    }

    /// Reads the data of the fragment.
    ///
    /// # Errors
    /// Another version, or bytes that are no such data.
    pub fn from_bytes(data: &[u8]) -> Result<Self, BadWindows> {
        let (mut rest, length) = (data, BadWindows::Length { found: data.len() });
        let found = word(&mut rest).ok_or(length.clone())?;
        if found != WINDOWS_VERSION {
            return Err(BadWindows::Version { found });
        }
        let asked = word(&mut rest).and_then(|words| rest.split_off(..(words as usize).checked_mul(WORD_BYTES)?));
        let asked = Window::take_all(asked.ok_or(length.clone())?)?;
        let (left_out, behind) = rest.as_chunks::<{ 4 * WORD_BYTES }>();
        if !behind.is_empty() {
            return Err(length);
        }
        let one = |bytes: &[u8; 4 * WORD_BYTES]| {
            let words = bytes.as_chunks().0;
            let [source, kept_chunks, chunks, bytes] = [0, 1, 2, 3].map(|at| u32::from_le_bytes(words[at]));
            LeftOut { source, kept_chunks, chunks, bytes }
        };
        Ok(Self { asked, left_out: left_out.iter().map(one).collect() })
    }
}

fn check_order(place: usize, Interval { begin, end }: Interval) -> Result<(), BadWindows> {
    if end < begin { Err(BadWindows::Turned { place, begin, end }) } else { Ok(()) }
}

fn word(rest: &mut &[u8]) -> Option<u32> {
    let (bytes, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u32::from_le_bytes(*bytes))
}

fn long(rest: &mut &[u8]) -> Option<u64> {
    let (bytes, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(u64::from_le_bytes(*bytes))
}

/// Bytes of a window that names no source.
const WINDOW_BYTES: usize = 20;

/// All the time that there is.
const ALWAYS: Interval = Interval { begin: 0, end: u64::MAX };

/// Marker, level, version, as in the other results.
const WINDOWS_VERSION: u32 = 0xd204_0001;

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn windows() -> impl Strategy<Value = Vec<Window>> {
        let one = |(begin, len, sources): (u32, u32, Vec<u32>)| {
            let begin = u64::from(begin);
            Window { sources, time: Interval::new(begin, begin + u64::from(len)) }
        };
        vec((any::<u32>(), any::<u32>(), vec(any::<u32>(), 0..4)).prop_map(one), 0..5)
    }

    proptest! {
        #[test]
        fn windows_come_back_as_they_went(asked in windows(), left_out in vec(any::<[u32; 4]>(), 0..4)) {
            let left_out = left_out.into_iter().map(|[source, kept_chunks, chunks, bytes]| {
                LeftOut { source, kept_chunks, chunks, bytes }
            });
            let result = WindowsResult { asked, left_out: left_out.collect() };
            prop_assert_eq!(WindowsResult::from_bytes(&bytes(&result.to_words())), Ok(result));
        }

        #[test]
        fn any_bytes_are_windows_or_refused(bytes in vec(any::<u8>(), 0..200)) {
            let _ = Window::take_all(&bytes);
            let _ = WindowsResult::from_bytes(&bytes);
        }
    }

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn taken(windows: &[Window]) -> Result<Vec<Window>, BadWindows> {
        let mut bytes = Vec::new();
        Window::put_all(windows, &mut bytes);
        Window::take_all(&bytes)
    }

    #[test]
    fn what_is_torn_turned_or_too_much_is_refused() {
        let one = Window { sources: vec![7, 8], time: Interval::new(5, 9) };
        let mut whole = Vec::new();
        Window::put_all(core::slice::from_ref(&one), &mut whole);
        for len in 1..whole.len() {
            assert_eq!(Window::take_all(&whole[..len]), Err(BadWindows::Length { found: len }));
        }
        whole[16..20].fill(0xff);
        assert_eq!(Window::take_all(&whole), Err(BadWindows::Length { found: whole.len() }));
        let turned = Window { time: Interval { begin: 9, end: 5 }, ..one.clone() };
        let refused = taken(&[one, turned]);
        assert_eq!(refused, Err(BadWindows::Turned { place: 1, begin: 9, end: 5 }));
        assert!(refused.unwrap_err().to_string().contains("window 1 ends at 5 ns, before it begins at 9 ns"));
        let many = vec![Window::of(Vec::new()); WINDOWS_MAX + 1];
        assert_eq!(taken(&many[1..]).map(|windows| windows.len()), Ok(WINDOWS_MAX));
        assert_eq!(taken(&many), Err(BadWindows::TooMany));
        assert_eq!(Window::check_all(&many), Err(BadWindows::TooMany));
        assert_eq!(Window::check_all(&many[1..]), Ok(()));
        assert_eq!(taken(&[Window::of(vec![1; WINDOWS_BYTES_MAX / 4])]), Err(BadWindows::TooMany));
        let version = WindowsResult::from_bytes(&bytes(&[1, 0]));
        assert_eq!(version, Err(BadWindows::Version { found: 1 }));
    }

    #[test]
    fn a_window_that_ends_where_it_begins_is_an_instant() {
        let instant = Window { sources: Vec::new(), time: Interval { begin: 5, end: 5 } };
        assert_eq!(taken(&[instant]).unwrap()[0].time, Interval { begin: 5, end: 6 });
    }
}

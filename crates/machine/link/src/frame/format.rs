//! What a frame looks like, and reading one.

use timing::unwrap::Unwrap;

/// What the frames of a device look like. A frame is a header of fixed length and data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameFormat {
    /// Length of the header in bytes. A shorter frame is none.
    pub header: usize,
    /// Whether the header is left out of the payload.
    pub strip: bool,
    /// How long a frame is.
    pub extent: Extent,
    /// The field that counts frames; without one they are numbered as they come.
    pub counter: Option<Counter>,
    /// The time of a frame: the sum of these parts, the most significant one first.
    pub time: Vec<Ticks>,
}

/// How long a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// As long as the datagram or the file.
    Whole,
    /// So many bytes.
    Fixed(usize),
    /// A field says it: its value times `unit`, and `plus` bytes.
    Said {
        /// The field.
        field: Field,
        /// Bytes that one of its counts stands for.
        unit: u64,
        /// Bytes that it does not count.
        plus: u64,
    },
}

/// An unsigned number in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its first byte.
    pub at: usize,
    /// Its width in bytes, 1 to 8.
    pub width: usize,
    /// Which byte comes first.
    pub order: ByteOrder,
}

/// Which byte of a number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The most significant one, as in the headers of the Internet.
    Big,
    /// The least significant one.
    Little,
}

/// A field that is one higher in each frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The field.
    pub field: Field,
    /// It begins again with 0 after so many frames; by default when the field is full.
    pub modulus: Option<u64>,
}

/// A field that counts time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// The field.
    pub field: Field,
    /// What `per` ticks last, in ns.
    pub ns: u64,
    /// How many ticks last `ns`; not 0.
    pub per: u64,
}

/// Bytes that are no frame as described.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadFrame {
    /// Too few bytes for a header.
    #[error("{len} bytes, where a frame has at least {header}")]
    Short {
        /// What there is.
        len: usize,
        /// The length of a header.
        header: usize,
    },
    /// A length that no frame has.
    #[error("a frame of {len} bytes, where {least} to {most} are expected")]
    Length {
        /// What its field says.
        len: u64,
        /// The shortest.
        least: usize,
        /// The longest.
        most: usize,
    },
    /// A counter beyond its modulus, or far from all before it.
    #[error("a counter of {found}, far from the one expected")]
    Counter {
        /// What was found.
        found: u64,
    },
}

impl FrameFormat {
    /// The length of the frame that begins here, at most `most`. `None`: too few bytes to say.
    ///
    /// # Errors
    /// A length that no frame has.
    pub fn len_of(&self, bytes: &[u8], most: usize) -> Result<Option<usize>, BadFrame> {
        let len = match self.extent {
            Extent::Whole => bytes.len() as u64,
            Extent::Fixed(len) => len as u64,
            Extent::Said { field, unit, plus } => match field.read(bytes) {
                Some(count) => count.saturating_mul(unit).saturating_add(plus),
                None => return Ok(None),
            },
        };
        let least = self.header.max(1);
        let fits = usize::try_from(len).ok().filter(|len| (least..=most).contains(len));
        fits.map(Some).ok_or(BadFrame::Length { len, least, most })
    }

    /// The longest frame whose payload has at most `size_max` bytes.
    pub fn len_max(&self, size_max: usize) -> usize {
        if self.strip { size_max.saturating_add(self.header) } else { size_max }
    }

    /// What of a frame is its payload.
    pub(crate) fn payload<'a>(&self, frame: &'a [u8]) -> Result<&'a [u8], BadFrame> {
        let short = BadFrame::Short { len: frame.len(), header: self.header };
        let data = frame.get(self.header..).ok_or(short)?;
        Ok(if self.strip { data } else { frame })
    }

    /// The bytes that say how long a frame is, and what else a header says.
    pub(crate) fn reach(&self) -> usize {
        let said = if let Extent::Said { field, .. } = self.extent { field.end() } else { 0 };
        let times = self.time.iter().map(|ticks| ticks.field.end());
        let counter = self.counter.map(|counter| counter.field.end());
        times.chain(counter).chain([said, self.header]).max().unwrap_or(0)
    }
}

impl Field {
    /// Its value; `None` behind the end of the bytes.
    pub fn read(&self, bytes: &[u8]) -> Option<u64> {
        let found = bytes.get(self.at..self.end())?;
        let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        Some(match self.order {
            ByteOrder::Big => found.iter().fold(0, add),
            ByteOrder::Little => found.iter().rev().fold(0, add),
        })
    }

    /// How many values it has; `None`: 2⁶⁴.
    pub(crate) fn values(&self) -> Option<u64> {
        1_u64.checked_shl(8 * self.width as u32)
    }

    fn end(&self) -> usize {
        self.at.saturating_add(self.width)
    }
}

impl Counter {
    /// What makes its counts whole.
    pub(crate) fn follow(&self) -> Unwrap {
        let period = self.modulus.or(self.field.values());
        Unwrap::of_period(period, period.map_or(0, |period| (period / 4).min(BACK_MAX)))
    }
}

impl Ticks {
    /// So many ticks, in ns.
    pub(crate) fn to_ns(self, ticks: u64) -> u64 {
        let ns = u128::from(ticks) * u128::from(self.ns) / u128::from(self.per.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// No network holds a datagram back for longer.
const BACK_MAX: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::{BadFrame, ByteOrder, Extent, Field, FrameFormat, Ticks};

    #[test]
    fn fields_of_all_widths_are_read_in_both_orders() {
        let bytes: Vec<u8> = (1..=10).collect();
        let read = |at, width, order| Field { at, width, order }.read(&bytes);
        assert_eq!(read(0, 1, ByteOrder::Big), Some(1));
        assert_eq!(read(1, 3, ByteOrder::Big), Some(0x02_03_04));
        assert_eq!(read(1, 3, ByteOrder::Little), Some(0x04_03_02));
        assert_eq!(read(2, 8, ByteOrder::Big), Some(0x03_04_05_06_07_08_09_0a));
        assert_eq!(read(3, 8, ByteOrder::Big), None);
        assert_eq!(read(usize::MAX, 8, ByteOrder::Big), None);
    }

    #[test]
    fn a_length_that_no_frame_has_is_refused() {
        let field = Field { at: 0, width: 2, order: ByteOrder::Big };
        let extent = Extent::Said { field, unit: 4, plus: 8 };
        let format = FrameFormat { header: 12, strip: true, extent, counter: None, time: Vec::new() };
        assert_eq!(format.len_max(100), 112);
        assert_eq!(format.len_of(&[0, 2], 112), Ok(Some(16)));
        assert_eq!(format.len_of(&[0], 112), Ok(None));
        assert_eq!(format.len_of(&[0, 0], 112), Err(BadFrame::Length { len: 8, least: 12, most: 112 }));
        let long = BadFrame::Length { len: 4 * 0xffff + 8, least: 12, most: 112 };
        assert_eq!(format.len_of(&[0xff, 0xff], 112), Err(long));
    }

    #[test]
    fn ticks_of_any_clock_become_nanoseconds() {
        let field = Field { at: 0, width: 8, order: ByteOrder::Big };
        assert_eq!(Ticks { field, ns: 16, per: 1 }.to_ns(6_250_000), 100_000_000);
        // 40.079 MHz
        assert_eq!(Ticks { field, ns: 1_000_000_000_000, per: 40_079_000_000 }.to_ns(40_079_000), 1_000_000_000);
        assert_eq!(Ticks { field, ns: u64::MAX, per: 1 }.to_ns(u64::MAX), u64::MAX);
    }
}

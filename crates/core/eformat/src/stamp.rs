//! Dates and times of file records: decimal digits in an integer, local time of the writing host (format note §11.1).

use std::fmt;

/// Date and time of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Stamp {
    /// Day.
    pub date: Date,
    /// Time of the day.
    pub time: Time,
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.date, self.time)
    }
}

/// A day written as the decimal digits DDMMYYYY, or 0 for "not given".
///
/// ```
/// use eformat::Date;
/// let date = Date::new(8, 4, 2026).expect("a day of the calendar");
/// assert_eq!(date.to_word(), 8_042_026);
/// assert_eq!(date.to_string(), "2026-04-08");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Date(u32);

impl Date {
    /// The day, `None` if there is no such day in the calendar or the year is not in 1..=9999.
    pub fn new(day: u32, month: u32, year: u32) -> Option<Self> {
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
            2 => 28,
            _ => return None,
        };
        let legal = (1..=days).contains(&day) && (1..=9999).contains(&year);
        legal.then(|| Self(day * 1_000_000 + month * 10_000 + year))
    }

    /// The day of a word, `None` if it is neither 0 nor a day.
    pub fn from_word(word: u32) -> Option<Self> {
        if word == 0 {
            return Some(Self(0));
        }
        Self::new(word / 1_000_000, word / 10_000 % 100, word % 10_000)
    }

    /// The word.
    pub fn to_word(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.0 % 10_000, self.0 / 10_000 % 100, self.0 / 1_000_000)
    }
}

/// A time of the day written as the decimal digits HHMMSS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Time(u32);

impl Time {
    /// The time, `None` if it does not exist; second 60 is legal.
    pub fn new(hour: u32, minute: u32, second: u32) -> Option<Self> {
        let legal = hour < 24 && minute < 60 && second <= 60;
        legal.then(|| Self(hour * 10_000 + minute * 100 + second))
    }

    /// The time of a word, `None` if it is not a time.
    pub fn from_word(word: u32) -> Option<Self> {
        Self::new(word / 10_000, word / 100 % 100, word % 100)
    }

    /// The word.
    pub fn to_word(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}:{:02}", self.0 / 10_000, self.0 / 100 % 100, self.0 % 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_note() {
        assert_eq!(Date::new(8, 4, 2026).map(Date::to_word), Some(8_042_026));
        assert_eq!(Time::new(12, 3, 40).map(Time::to_word), Some(120_340));
    }

    #[test]
    fn texts() {
        let date = Date::new(8, 4, 2026).unwrap();
        let stamp = Stamp { date, time: Time::new(12, 3, 40).unwrap() };
        assert_eq!(stamp.to_string(), "2026-04-08 12:03:40");
        assert_eq!(Stamp::default().to_string(), "0000-00-00 00:00:00");
    }

    #[test]
    fn last_days_of_months() {
        let days = |year| {
            let last = |month| (1..=32).rfind(|day| Date::new(*day, month, year).is_some());
            (1..=12).map(|month| last(month).unwrap()).collect::<Vec<_>>()
        };
        let with_february = |last| vec![31, last, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        for (year, february) in [(2000, 29), (2024, 29), (2025, 28), (1900, 28), (9999, 28), (1, 28)] {
            assert_eq!(days(year), with_february(february), "{year}");
        }
        assert_eq!((Date::new(0, 1, 2026), Date::new(1, 13, 2026), Date::new(1, 0, 2026)), (None, None, None));
        assert_eq!((Date::new(1, 1, 0), Date::new(1, 1, 10_000)), (None, None));
        assert_eq!(Date::from_word(0), Some(Date::default()));
    }

    #[test]
    fn last_times_of_the_day() {
        assert_eq!(Time::new(23, 59, 60).map(Time::to_word), Some(235_960), "a leap second");
        assert_eq!((Time::new(24, 0, 0), Time::new(0, 60, 0), Time::new(0, 0, 61)), (None, None, None));
        assert_eq!(Time::from_word(235_960), Time::new(23, 59, 60));
    }

    #[test]
    fn only_days_of_the_calendar() {
        for word in [1, 30_022_024, 29_021_900, 32_012_024, 1_132_024, 1_010_000, u32::MAX] {
            assert_eq!(Date::from_word(word), None, "{word}");
        }
        assert_eq!(Date::from_word(29_022_024).map(Date::to_word), Some(29_022_024));
        for word in [240_000, 6_000, 61, u32::MAX] {
            assert_eq!(Time::from_word(word), None, "{word}");
        }
    }
}

//! Hand-shakes of trigger logic units (TLU), as far as they show in what a source sends.
//!
//! | mode | the unit | what a source sends |
//! |---|---|---|
//! | EUDET | gives a trigger, and the next one when busy has fallen; clocks a number of 15 bits out | that number |
//! | AIDA | gives all a clock, and T0, which sets it to 0; triggers come without an answer | times since T0, no numbers |
//! | AIDA with number | the same, and clocks a number out | both |
//!
//! A unit gives each device every trigger. So numbers have no gaps, and one that is there shows a trigger that the source has lost.

use core::fmt;

use crate::unwrap::Unwrap;

/// A hand-shake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Trigger, busy, and a number.
    Eudet,
    /// A common clock, and T0.
    Aida,
    /// A common clock, T0, and a number.
    AidaNumber,
}

impl Mode {
    /// Whether T0 sets times to 0.
    pub fn has_t0(self) -> bool {
        self != Self::Eudet
    }

    /// Whether triggers have numbers.
    pub fn has_numbers(self) -> bool {
        self != Self::Aida
    }
}

/// What is wrong with what a source sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breach {
    /// T0 has not come: nothing is known of the time. The fragment is dropped.
    BeforeT0,
    /// T0 has come again.
    T0Again,
    /// The time lies before that of the fragment before, and T0 has not come.
    GoesBack {
        /// That of the fragment before, in ns.
        before: u64,
        /// Its own.
        time: u64,
    },
    /// There is no time.
    NoTime,
    /// There is no number.
    NoNumber {
        /// The next one.
        expected: u64,
    },
    /// The number is not the next one.
    Number {
        /// The next one.
        expected: u64,
        /// What is there.
        number: u64,
    },
}

impl core::error::Error for Breach {}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::BeforeT0 => f.write_str(
                "a fragment before T0 is dropped; expected the mark of T0 (number 0, time 0) at the start of the run",
            ),
            Self::T0Again => {
                f.write_str("T0 has come again: times begin at 0 a second time, not to be compared with those before")
            }
            Self::GoesBack { before, time } => write!(f, "the time {time} ns goes back behind {before} ns, without T0"),
            Self::NoTime => f.write_str("it says no time, which the hand-shake needs"),
            Self::NoNumber { expected } => {
                write!(f, "it says no number, which the hand-shake needs; it is taken for {expected}")
            }
            Self::Number { expected, number } if number > expected => {
                write!(f, "expected the number {expected}: triggers that the source has lost: {}", number - expected)
            }
            Self::Number { expected, .. } => {
                write!(
                    f,
                    "expected the number {expected}: the source has counted a trigger too many, or repeats itself"
                )
            }
        }
    }
}

/// The hand-shake of one source.
#[derive(Clone, Debug)]
pub struct Handshake {
    mode: Mode,
    unwrap: Unwrap,
    is_after_t0: bool,
    /// The number of the next fragment; until the first one that is any.
    next: Option<u64>,
    time: u64,
}

impl Handshake {
    /// A source whose numbers have so many bits.
    ///
    /// # Panics
    /// If these are not 1 to 64.
    pub fn new(mode: Mode, number_bits: u32) -> Self {
        Self { mode, unwrap: Unwrap::of_bits(number_bits), is_after_t0: false, next: None, time: 0 }
    }

    /// Whether T0 sets its times to 0.
    pub fn has_t0(&self) -> bool {
        self.mode.has_t0()
    }

    /// The source returns when others are at this number.
    pub fn pass(&mut self, number: u64) {
        self.unwrap.pass(number);
    }

    /// T0 has come: times count from here.
    ///
    /// # Errors
    /// It has come before. Times begin again all the same.
    pub fn t0(&mut self) -> Result<(), Breach> {
        self.time = 0;
        let again = core::mem::replace(&mut self.is_after_t0, true);
        if again && self.mode.has_t0() { Err(Breach::T0Again) } else { Ok(()) }
    }

    /// A fragment with what its source says of it: its number among the triggers, if it is one of the run, and its faults.
    pub fn fragment(&mut self, number: Option<u64>, time: Option<u64>) -> (Option<u64>, Option<Breach>) {
        if self.mode.has_t0() && !self.is_after_t0 {
            return (None, Some(Breach::BeforeT0));
        }
        let of_time = if self.mode.has_t0() { self.check_time(time) } else { None };
        let said = number.filter(|_| self.mode.has_numbers()).map(|number| self.unwrap.whole(number));
        let expected = self.next.or(said).unwrap_or(0);
        let number = said.unwrap_or(expected);
        // A number that goes back is not counted on from.
        self.next = Some(expected.max(number.wrapping_add(1)));
        let of_number = match said {
            None if self.mode.has_numbers() => Some(Breach::NoNumber { expected }),
            Some(number) if number != expected => Some(Breach::Number { expected, number }),
            _ => None,
        };
        (Some(number), of_number.or(of_time))
    }

    fn check_time(&mut self, time: Option<u64>) -> Option<Breach> {
        let Some(time) = time else { return Some(Breach::NoTime) };
        let before = core::mem::replace(&mut self.time, time);
        (time < before).then_some(Breach::GoesBack { before, time })
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn numbers_of_15_bits_are_whole_and_a_lost_trigger_is_found() {
        let mut eudet = Handshake::new(Mode::Eudet, 15);
        for number in 32_000..70_000_u64 {
            assert_eq!(eudet.fragment(Some(number & 0x7fff), None), (Some(number), None));
        }
        let (expected, number) = (70_000, 70_003);
        let lost = eudet.fragment(Some(number & 0x7fff), None);
        assert_eq!(lost, (Some(number), Some(Breach::Number { expected, number })));
        assert_eq!(eudet.fragment(Some((number + 1) & 0x7fff), None), (Some(number + 1), None));
        let again = eudet.fragment(Some((number + 1) & 0x7fff), None);
        assert_eq!(again.1, Some(Breach::Number { expected: number + 2, number: number + 1 }));
        assert_eq!(eudet.fragment(Some((number + 2) & 0x7fff), None), (Some(number + 2), None));
        assert_eq!(eudet.fragment(None, None), (Some(70_006), Some(Breach::NoNumber { expected: 70_006 })));
    }

    /// Without the others, 40,000 triggers would be taken for 7,232.
    #[test]
    fn who_returns_is_told_how_far_the_others_are() {
        let mut eudet = Handshake::new(Mode::Eudet, 15);
        assert_eq!(eudet.fragment(Some(5), None), (Some(5), None));
        eudet.pass(40_000);
        let lost = Breach::Number { expected: 6, number: 40_005 };
        assert_eq!(eudet.fragment(Some(40_005 & 0x7fff), None), (Some(40_005), Some(lost)));
        assert_eq!(eudet.fragment(Some(40_006 & 0x7fff), None), (Some(40_006), None));
    }

    #[test]
    fn what_comes_before_t0_is_none_of_the_run() {
        for (mode, number) in [(Mode::Aida, None), (Mode::AidaNumber, Some(7))] {
            let mut aida = Handshake::new(mode, 64);
            assert_eq!(aida.fragment(Some(6), Some(900)), (None, Some(Breach::BeforeT0)));
            assert_eq!(aida.t0(), Ok(()));
            let first = number.unwrap_or(0);
            assert_eq!(aida.fragment(number, Some(3)), (Some(first), None));
            assert_eq!(aida.fragment(number.map(|number| number + 1), None), (Some(first + 1), Some(Breach::NoTime)));
            let goes_back = Breach::GoesBack { before: 3, time: 2 };
            assert_eq!(aida.fragment(number.map(|number| number + 2), Some(2)), (Some(first + 2), Some(goes_back)));
            assert_eq!(aida.t0(), Err(Breach::T0Again));
            assert_eq!(aida.fragment(number.map(|number| number + 3), Some(0)), (Some(first + 3), None));
        }
    }

    #[test]
    fn every_breach_says_what_was_expected() {
        let lost = Breach::Number { expected: 5, number: 8 };
        assert_eq!(lost.to_string(), "expected the number 5: triggers that the source has lost: 3");
    }
}

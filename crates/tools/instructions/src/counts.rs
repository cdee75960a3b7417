//! What is counted, and how far it may be from its limit.

use std::fmt;
use std::str::FromStr;

/// What some events cost, or one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    pub(crate) instructions: f64,
    /// Calls of `memcpy` and `memmove`: bulk bytes, and values that are longer than compilers move by themselves.
    pub(crate) copies: f64,
    /// Memory that was asked for, or that was to become larger.
    pub(crate) allocations: f64,
    pub(crate) system_calls: f64,
}

impl Counts {
    /// The names of the counts, as wide as they are shown.
    pub(crate) const HEAD: &str = "instructions    copies allocations system_calls";

    /// What was counted after `before`.
    pub(crate) fn since(self, before: Self) -> Self {
        self.zip(before, |now, before| now - before)
    }

    /// The cost of one of so many events.
    pub(crate) fn shared_by(self, events: u64) -> Self {
        self.zip(self, |sum, _| sum / events as f64)
    }

    /// What is off its limit, in words. Compilers and alignment may change instructions and copies a little.
    /// Allocations and system calls are the program's own, and one more in fifty events is off.
    pub(crate) fn off(self, limit: Self) -> Vec<String> {
        let mut off = Vec::new();
        let mut check = |name: &str, counted: f64, limit: f64, room: f64| {
            if (counted - limit).abs() > room {
                off.push(format!("{name} {:+.4}", counted - limit));
            }
        };
        check("instructions", self.instructions, limit.instructions, limit.instructions * ROOM);
        check("copies", self.copies, limit.copies, limit.copies * ROOM + ROOM_FOR_COUNTS);
        check("allocations", self.allocations, limit.allocations, room_for_count(limit.allocations));
        check("system_calls", self.system_calls, limit.system_calls, room_for_count(limit.system_calls));
        off
    }

    fn zip(self, other: Self, with: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            instructions: with(self.instructions, other.instructions),
            copies: with(self.copies, other.copies),
            allocations: with(self.allocations, other.allocations),
            system_calls: with(self.system_calls, other.system_calls),
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { instructions, copies, allocations, system_calls } = self;
        write!(f, "{instructions:>12.0} {copies:>9.4} {allocations:>11.4} {system_calls:>12.4}")
    }
}

impl FromStr for Counts {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let numbers: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>().map_err(drop)?;
        let [instructions, copies, allocations, system_calls] = numbers[..] else { return Err(()) };
        let counts = Self { instructions, copies, allocations, system_calls };
        if instructions > 0.0 && copies >= 0.0 && allocations >= 0.0 && system_calls >= 0.0 {
            Ok(counts)
        } else {
            Err(())
        }
    }
}

fn room_for_count(limit: f64) -> f64 {
    ROOM_FOR_COUNTS.min(limit * ROOM) + ROUNDING
}

/// Either way.
const ROOM: f64 = 0.05;
/// Of an allocation or a system call per event at most: what a list that still grows brings in.
const ROOM_FOR_COUNTS: f64 = 0.02;
/// As limits are written.
const ROUNDING: f64 = 0.0001;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_more_allocation_or_system_call_is_off() {
        let limit: Counts = "1000 2.0 3.0 0.0625".parse().unwrap();
        let counted = |text: &str| text.parse::<Counts>().unwrap().off(limit);
        assert_eq!(counted("1040 2.1 3.01 0.065"), Vec::<String>::new());
        assert_eq!(counted("1000 2.0 4.0 0.05"), ["allocations +1.0000", "system_calls -0.0125"]);
        assert_eq!(counted("900 3.0 3.0 0.0625"), ["instructions -100.0000", "copies +1.0000"]);
    }

    #[test]
    fn what_there_is_none_of_stays_so() {
        let limit: Counts = "1000 0.0 0.0 0.0".parse().unwrap();
        let counted: Counts = "1000 0.0 0.0 0.001".parse().unwrap();
        assert_eq!((limit.off(limit), counted.off(limit)), (Vec::new(), vec!["system_calls +0.0010".to_owned()]));
    }

    #[test]
    fn what_is_shown_is_read() {
        let counts = Counts { instructions: 1000.0, copies: 2.25, allocations: 3.0, system_calls: 0.0625 };
        assert_eq!(counts.to_string().parse(), Ok(counts));
        for bad in ["", "1000 1 1", "0 1 1 1", "1000 1 1 -1", "1000 1 1 many"] {
            assert_eq!(bad.parse::<Counts>(), Err(()), "{bad:?}");
        }
    }
}

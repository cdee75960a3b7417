//! Numbers and lines for people.

use std::time::Duration;

/// With three digits and a decimal prefix, such as `12.3 kHz`.
pub fn si(value: f64, unit: &str) -> String {
    let mut scaled = value;
    let mut prefixes = ["", "k", "M", "G", "T"].into_iter().peekable();
    let mut prefix = "";
    while let Some(next) = prefixes.next() {
        prefix = next;
        // What would be written as 1000 has the next prefix.
        if scaled < 999.5 || prefixes.peek().is_none() {
            break;
        }
        scaled /= 1000.0;
    }
    format!("{} {prefix}{unit}", three_digits(scaled))
}

/// A time in seconds with a unit that fits, such as `1.25 ms`.
pub fn time(seconds: f64) -> String {
    let (factor, unit) = match seconds {
        s if s >= 0.9995 || s == 0.0 => (1.0, "s"),
        s if s >= 0.999_5e-3 => (1e3, "ms"),
        s if s >= 0.999_5e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    };
    format!("{} {unit}", three_digits(seconds * factor))
}

/// A part of a whole as percent, such as `12.3 %`.
pub fn percent(fraction: f64) -> String {
    format!("{} %", three_digits(fraction * 100.0))
}

/// How long a run lasts, such as `12.3 s`, `2 min 05 s` or `1 h 02 min`.
pub fn elapsed(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{:.1} s", duration.as_millis() as f64 / 1e3),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Puts parts one behind the other into lines of at most [`LINE_CHARS`] characters; all but the first begin with `indent` spaces.
/// A part that is longer stays whole.
pub fn wrapped<'a>(parts: impl IntoIterator<Item = &'a str>, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts {
        match lines.last_mut() {
            None => lines.push(part.to_owned()),
            Some(line) if line.chars().count() + 1 + part.chars().count() <= LINE_CHARS => {
                line.push(' ');
                line.push_str(part);
            }
            Some(_) => lines.push(format!("{:indent$}{part}", "")),
        }
    }
    lines
}

/// What a terminal shows in one line. In the last of its 80 columns some begin the next line.
pub const LINE_CHARS: usize = 79;

/// With a space between groups of three digits.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

fn three_digits(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        v if v.fract() == 0.0 && v < 1000.0 => format!("{v}"),
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(si(0.0, "Hz"), "0 Hz");
        assert_eq!(si(12.0, "B"), "12 B");
        assert_eq!(si(0.5, "Hz"), "0.50 Hz");
        assert_eq!(si(999.6, "B"), "1.00 kB");
        assert_eq!(si(12_345.0, "Hz"), "12.3 kHz");
        assert_eq!(si(999_999.0, "Hz"), "1.00 MHz");
        assert_eq!(si(5e15, "B"), "5000 TB");
        assert_eq!(time(0.0), "0 s");
        assert_eq!(time(12.34), "12.3 s");
        assert_eq!(time(0.001_25), "1.25 ms");
        assert_eq!(time(17e-6), "17 µs");
        assert_eq!(time(250e-9), "250 ns");
        assert_eq!(percent(0.1234), "12.3 %");
        assert_eq!(percent(1.0), "100 %");
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1 000", "1 234 567"]);
        let ms = |ms| elapsed(Duration::from_millis(ms));
        assert_eq!([59_960, 60_000, 125_900].map(ms), ["60.0 s", "1 min 00 s", "2 min 05 s"]);
        assert_eq!([3_599_999, 3_600_000].map(ms), ["59 min 59 s", "1 h 00 min"]);
    }

    #[test]
    fn lines_break_between_parts_and_lose_nothing() {
        let long = "x".repeat(90);
        let parts: Vec<&str> = [&["12 345 words,"; 20][..], &[&long, "end"]].concat();
        let lines = wrapped(parts.iter().copied(), 4);
        assert!(lines.iter().all(|line| line.chars().count() <= LINE_CHARS || line.trim() == long), "{lines:?}");
        assert!(lines[0].starts_with("12 345") && lines[1..].iter().all(|line| line.starts_with("    ")), "{lines:?}");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&lines.join(" ")), words(&parts.join(" ")));
        assert_eq!(wrapped(["short"], 4), ["short"]);
    }
}

//! The progress of a run on the standard error: a bar on a terminal, else a line every two seconds.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::human::{grouped, percent, si, time};

/// Shows how far a run is. What cannot be written is dropped: a run does not end because nobody looks.
pub struct Progress {
    events: Option<u64>,
    duration: Option<Duration>,
    display: Display,
}

/// How far a run is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgressFigures {
    /// Level-1 events issued.
    pub issued: u64,
    /// Events built.
    pub built: u64,
    /// Events recorded.
    pub recorded: u64,
    /// Bytes recorded.
    pub bytes_recorded: u64,
    /// Time since the start of the run.
    pub elapsed: Duration,
    /// Who waits for whom at this moment, in words.
    pub waiting_for: Option<String>,
}

enum Display {
    Bar(ProgressBar),
    Lines(Lines),
}

struct Lines {
    out: Box<dyn Write + Send>,
    next: Duration,
    last: ProgressFigures,
    is_shown: bool,
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").field("events", &self.events).field("duration", &self.duration).finish()
    }
}

impl Progress {
    /// For a run that ends after a number of level-1 events, after a time, after whichever comes first, or by neither.
    pub fn new(events: Option<u64>, duration: Option<Duration>) -> Self {
        if io::stderr().is_terminal() {
            let is_limited = events.is_some() || duration.is_some();
            let display = Display::Bar(bar(is_limited));
            Self { events, duration, display }
        } else {
            Self::lines(events, duration, Box::new(io::stderr()))
        }
    }

    fn lines(events: Option<u64>, duration: Option<Duration>, out: Box<dyn Write + Send>) -> Self {
        let lines = Lines { out, next: LINE_PERIOD, last: ProgressFigures::default(), is_shown: true };
        Self { events, duration, display: Display::Lines(lines) }
    }

    /// Shows new figures; call it a few times per second.
    pub fn update(&mut self, figures: &ProgressFigures) {
        let fraction = self.fraction(figures);
        match &mut self.display {
            Display::Bar(bar) => {
                bar.set_message(words(figures));
                match fraction {
                    Some(fraction) => bar.set_position((fraction * BAR_STEPS as f64) as u64),
                    None => bar.tick(),
                }
            }
            Display::Lines(lines) => {
                lines.last.clone_from(figures);
                lines.is_shown = false;
                if figures.elapsed >= lines.next {
                    while lines.next <= figures.elapsed {
                        lines.next += LINE_PERIOD;
                    }
                    lines.show(fraction);
                }
            }
        }
    }

    /// Shows a text above the bar, or as a line.
    pub fn message(&mut self, text: &str) {
        match &mut self.display {
            Display::Bar(bar) => bar.suspend(|| write_line(&mut io::stderr(), text)),
            Display::Lines(lines) => write_line(&mut lines.out, text),
        }
    }

    /// Removes the bar, or shows the last figures if they were not shown.
    pub fn finish(&mut self) {
        let fraction = match &self.display {
            Display::Bar(_) => None,
            Display::Lines(lines) => self.fraction(&lines.last),
        };
        match &mut self.display {
            Display::Bar(bar) => bar.finish_and_clear(),
            Display::Lines(lines) if !lines.is_shown => lines.show(fraction),
            Display::Lines(_) => {}
        }
    }

    /// How much of the limit that comes first is done, 0 to 1.
    fn fraction(&self, figures: &ProgressFigures) -> Option<f64> {
        let of_events = self.events.map(|events| figures.issued as f64 / events.max(1) as f64);
        let of_time = self.duration.map(|duration| figures.elapsed.as_secs_f64() / duration.as_secs_f64().max(1e-9));
        of_events.into_iter().chain(of_time).reduce(f64::max).map(|fraction| fraction.clamp(0.0, 1.0))
    }
}

impl Lines {
    fn show(&mut self, fraction: Option<f64>) {
        let done = fraction.map(|fraction| format!(", {}", percent((fraction * 1000.0).round() / 1000.0)));
        let text =
            format!("{}{}: {}", time(self.last.elapsed.as_secs_f64()), done.unwrap_or_default(), words(&self.last));
        write_line(&mut self.out, &text);
        self.is_shown = true;
    }
}

fn bar(is_limited: bool) -> ProgressBar {
    let template = if is_limited { "[{bar:24}] {percent:>3} % {wide_msg}" } else { "{spinner} {elapsed} {wide_msg}" };
    let style = ProgressStyle::with_template(template).expect("the template is right").progress_chars("=> ");
    let target = ProgressDrawTarget::stderr();
    ProgressBar::with_draw_target(is_limited.then_some(BAR_STEPS), target).with_style(style)
}

fn words(figures: &ProgressFigures) -> String {
    let seconds = figures.elapsed.as_secs_f64();
    let rate = |count: u64, unit| {
        if seconds > 0.0 { si(count as f64 / seconds, unit) } else { si(0.0, unit) }
    };
    let mut text = format!(
        "{} issued, {} built, {} recorded, {}, {}",
        grouped(figures.issued),
        grouped(figures.built),
        grouped(figures.recorded),
        rate(figures.issued, "Hz"),
        rate(figures.bytes_recorded, "B/s"),
    );
    if let Some(waiting_for) = &figures.waiting_for {
        text += &format!("; {waiting_for}");
    }
    text
}

fn write_line(out: &mut dyn Write, text: &str) {
    // Nobody is left to be told if this fails.
    let _ = writeln!(out, "{text}");
}

/// Resolution of the bar.
const BAR_STEPS: u64 = 1000;

const LINE_PERIOD: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Text(Arc<Mutex<Vec<u8>>>);

    impl Write for Text {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn at(elapsed_ms: u64, issued: u64) -> ProgressFigures {
        ProgressFigures {
            issued,
            built: issued / 2,
            recorded: issued / 4,
            bytes_recorded: issued * 1000,
            elapsed: Duration::from_millis(elapsed_ms),
            waiting_for: (issued == 3000).then(|| "dfm-1 waits for sfi-1".to_owned()),
        }
    }

    #[test]
    fn without_a_terminal_there_is_a_line_every_two_seconds_and_at_the_end() {
        let text = Text::default();
        let mut progress = Progress::lines(Some(10_000), None, Box::new(text.clone()));
        for (elapsed_ms, issued) in [(500, 500), (2100, 2000), (3900, 2500), (4000, 3000), (4500, 4000)] {
            progress.update(&at(elapsed_ms, issued));
        }
        progress.message("stopping");
        progress.finish();
        let expected = "\
2.10 s, 20 %: 2 000 issued, 1 000 built, 500 recorded, 952 Hz, 952 kB/s
4 s, 30 %: 3 000 issued, 1 500 built, 750 recorded, 750 Hz, 750 kB/s; dfm-1 waits for sfi-1
stopping
4.50 s, 40 %: 4 000 issued, 2 000 built, 1 000 recorded, 889 Hz, 889 kB/s
";
        assert_eq!(String::from_utf8(text.0.lock().unwrap().clone()).unwrap(), expected);
    }

    #[test]
    fn the_limit_that_comes_first_counts() {
        let second = Some(Duration::from_secs(1));
        let progress = |events, duration| Progress::lines(events, duration, Box::new(io::sink()));
        assert_eq!(progress(Some(1000), second).fraction(&at(250, 100)), Some(0.25));
        assert_eq!(progress(Some(100), second).fraction(&at(250, 100)), Some(1.0));
        assert_eq!(progress(None, second).fraction(&at(2500, 100)), Some(1.0));
        assert_eq!(progress(None, None).fraction(&at(250, 100)), None);
    }
}

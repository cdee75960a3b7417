//! The progress of a run on the standard error: a bar with lines below on a terminal, else lines every two seconds.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use base::ids::Role;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use partition::human::{elapsed, grouped, percent, si, wrapped};
use partition::{Figures, Probe, RunSettings, Said, Wait, Waiting};

/// Shows how far a run is. What cannot be written is dropped: a run does not end because nobody looks.
pub struct Progress {
    limits: Limits,
    recent: Recent,
    display: Display,
    waits: Waits,
}

/// Whom the partition waits for, and when that was said.
#[derive(Default)]
struct Waits {
    since: Option<Instant>,
    said: Option<Waiting>,
}

/// What ends the run: whichever comes first, or none.
#[derive(Clone, Copy, Debug, Default)]
struct Limits {
    events: Option<u64>,
    duration: Option<Duration>,
    bytes: Option<u64>,
}

enum Display {
    Bar(ProgressBar),
    Lines(Lines),
}

struct Lines {
    out: Box<dyn Write + Send>,
    next: Duration,
    is_shown: bool,
}

/// The figures of the last seconds.
struct Recent(VecDeque<Figures>);

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").field("limits", &self.limits).finish()
    }
}

impl Progress {
    /// Of a run with these settings.
    pub fn of(run: &RunSettings) -> Self {
        let duration = run.duration.map(configuration::Interval::duration);
        let limits = Limits { events: run.events, duration, bytes: run.size.map(configuration::Size::bytes) };
        if io::stderr().is_terminal() {
            Self {
                limits,
                recent: Recent::default(),
                display: Display::Bar(bar(limits.any())),
                waits: Waits::default(),
            }
        } else {
            Self::lines(limits, Box::new(io::stderr()))
        }
    }

    fn lines(limits: Limits, out: Box<dyn Write + Send>) -> Self {
        let lines = Lines { out, next: LINE_PERIOD, is_shown: true };
        Self { limits, recent: Recent::default(), display: Display::Lines(lines), waits: Waits::default() }
    }
}

impl Limits {
    fn any(self) -> bool {
        self.events.is_some() || self.duration.is_some() || self.bytes.is_some()
    }
}

impl Probe for Progress {
    fn begun(&mut self) {
        self.waits = Waits::default();
        self.recent = Recent::default();
        match &mut self.display {
            // That of the run before.
            Display::Bar(former) if former.is_finished() => {
                *former = bar(self.limits.any());
            }
            Display::Bar(_) => {}
            Display::Lines(lines) => lines.next = LINE_PERIOD,
        }
    }

    fn figures(&mut self, figures: &Figures) {
        self.recent.add(figures);
        let fraction = self.fraction(figures);
        match &mut self.display {
            Display::Bar(bar) => {
                bar.set_prefix(elapsed(figures.elapsed));
                bar.set_message(self.recent.lines("").join("\n"));
                match fraction {
                    Some(fraction) => bar.set_position((fraction * BAR_STEPS as f64) as u64),
                    None => bar.tick(),
                }
            }
            Display::Lines(lines) => {
                lines.is_shown = false;
                if figures.elapsed >= lines.next {
                    while lines.next <= figures.elapsed {
                        lines.next += LINE_PERIOD;
                    }
                    lines.show(fraction, &self.recent);
                }
            }
        }
    }

    fn said(&mut self, said: &Said) {
        self.write(&said.to_string());
    }

    #[expect(clippy::disallowed_methods, reason = "people wait by the clock on the wall")]
    fn waits(&mut self, waiting: &Waiting) {
        if self.waits.is_new(Instant::now(), waiting) {
            self.write(&waiting.to_string());
        }
    }

    fn over(&mut self) {
        let fraction = self.fraction(self.recent.newest());
        match &mut self.display {
            Display::Bar(bar) => bar.finish_and_clear(),
            Display::Lines(lines) if !lines.is_shown => lines.show(fraction, &self.recent),
            Display::Lines(_) => {}
        }
    }
}

impl Progress {
    fn write(&mut self, text: &str) {
        match &mut self.display {
            Display::Bar(bar) => bar.suspend(|| write_line(&mut io::stderr(), text)),
            Display::Lines(lines) => write_line(&mut lines.out, text),
        }
    }

    /// How much of the limit that comes first is done, 0 to 1.
    fn fraction(&self, figures: &Figures) -> Option<f64> {
        let Limits { events, duration, bytes } = self.limits;
        let of_events = events.map(|events| figures.issued as f64 / events.max(1) as f64);
        let of_time = duration.map(|duration| figures.elapsed.as_secs_f64() / duration.as_secs_f64().max(1e-9));
        let of_size = bytes.map(|bytes| figures.bytes_recorded as f64 / bytes.max(1) as f64);
        let first = [of_events, of_time, of_size].into_iter().flatten().reduce(f64::max);
        first.map(|fraction| fraction.clamp(0.0, 1.0))
    }
}

impl Waits {
    /// Whether it is to be said: what is over soon is not, and nothing twice.
    fn is_new(&mut self, now: Instant, waiting: &Waiting) -> bool {
        let since = *self.since.get_or_insert(now);
        if now.duration_since(since) < LINE_PERIOD || self.said.as_ref() == Some(waiting) {
            return false;
        }
        (self.since, self.said) = (Some(now), Some(waiting.clone()));
        true
    }
}

impl Lines {
    fn show(&mut self, fraction: Option<f64>, recent: &Recent) {
        let done = fraction.map(|fraction| format!(", {}", percent((fraction * 1000.0).round() / 1000.0)));
        let when = format!("{}{}: ", elapsed(recent.newest().elapsed), done.unwrap_or_default());
        recent.lines(&when).iter().for_each(|line| write_line(&mut self.out, line));
        self.is_shown = true;
    }
}

impl Default for Recent {
    fn default() -> Self {
        Self(VecDeque::from([Figures::default()]))
    }
}

impl Recent {
    fn add(&mut self, figures: &Figures) {
        self.0.push_back(figures.clone());
        // The oldest is the youngest that is old enough.
        while self.0.get(1).is_some_and(|second| figures.elapsed.saturating_sub(second.elapsed) >= RECENT) {
            self.0.pop_front();
        }
    }

    fn newest(&self) -> &Figures {
        self.0.back().expect("there is always one")
    }

    /// The newest counts, the rates of the last seconds, and what holds up the run, in lines that a terminal shows whole.
    fn lines(&self, when: &str) -> Vec<String> {
        let figures = self.newest();
        let (issued, built, recorded) = (grouped(figures.issued), grouped(figures.built), grouped(figures.recorded));
        let parts = [
            format!("{when}{issued} issued,"),
            format!("{built} built,"),
            format!("{recorded} recorded,"),
            format!("{},", self.rate(|figures| figures.issued, "Hz")),
            self.rate(|figures| figures.bytes_recorded, "B/s"),
        ];
        let mut lines = wrapped(parts.iter().map(String::as_str), INDENT);
        let stopping = figures.stopping.map(|role| format!("stopping: {} is to drain", role.stem()));
        for text in stopping.into_iter().chain(self.longest_wait()).chain(figures.troubles.iter().cloned()) {
            let mut words = text.split(' ');
            let first = format!("  {}", words.next().unwrap_or_default());
            lines.extend(wrapped(core::iter::once(first.as_str()).chain(words), INDENT));
        }
        lines
    }

    /// What was counted per second in the last seconds; one that was started again may count from 0.
    fn rate(&self, count: impl Fn(&Figures) -> u64, unit: &str) -> String {
        let (oldest, newest) = (&self.0[0], self.newest());
        let seconds = newest.elapsed.saturating_sub(oldest.elapsed).as_secs_f64();
        let counted = count(newest).saturating_sub(count(oldest)) as f64;
        si(if seconds > 0.0 { counted / seconds } else { 0.0 }, unit)
    }

    /// Who waits for whom. Of those that did for most of the last seconds it is the last in the order of the data: the
    /// others wait for it. Otherwise it is the one that waited longest.
    fn longest_wait(&self) -> Option<String> {
        let (oldest, newest) = (&self.0[0], self.newest());
        let span_ns = newest.elapsed.saturating_sub(oldest.elapsed).as_nanos() as f64;
        let before = |wait: &Wait| oldest.waits.iter().find(|old| old.words == wait.words).map_or(0, |old| old.time_ns);
        let part = |wait: &Wait| wait.time_ns.saturating_sub(before(wait)) as f64 / span_ns.max(1.0);
        let place = |wait: &Wait| Role::IN_DRAIN_ORDER.iter().position(|role| *role == wait.stage);
        let waits = newest.waits.iter().map(|wait| (part(wait).min(1.0), wait)).filter(|(part, _)| *part >= PART_MIN);
        let (most, less): (Vec<_>, Vec<_>) = waits.partition(|(part, _)| *part >= MOST);
        let last = most.into_iter().max_by_key(|(_, wait)| place(wait));
        let (part, wait) = last.or_else(|| less.into_iter().max_by(|(a, _), (b, _)| a.total_cmp(b)))?;
        Some(format!("{} ({})", wait.words, percent((part * 100.0).round() / 100.0)))
    }
}

fn bar(is_limited: bool) -> ProgressBar {
    let template = if is_limited { "[{bar:40}] {percent:>3} %  {prefix}\n{msg}" } else { "{spinner} {prefix}\n{msg}" };
    let style = ProgressStyle::with_template(template).expect("the template is right").progress_chars("=> ");
    let target = ProgressDrawTarget::stderr();
    ProgressBar::with_draw_target(is_limited.then_some(BAR_STEPS), target).with_style(style)
}

fn write_line(out: &mut dyn Write, text: &str) {
    // Nobody is left to be told if this fails.
    let _ = writeln!(out, "{text}");
}

/// Resolution of the bar.
const BAR_STEPS: u64 = 1000;

const LINE_PERIOD: Duration = Duration::from_secs(2);

/// Rates are those of so long a time.
const RECENT: Duration = Duration::from_secs(2);

/// Who waits for a smaller part of the time is not named.
const PART_MIN: f64 = 0.1;
const MOST: f64 = 0.5;

/// Further lines begin with so many spaces.
const INDENT: usize = 4;

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

    fn at(elapsed_ms: u64, issued: u64) -> Figures {
        Figures {
            issued,
            built: issued / 2,
            recorded: issued / 4,
            bytes_recorded: issued * 1000,
            elapsed: Duration::from_millis(elapsed_ms),
            ..Figures::default()
        }
    }

    fn shown(all: impl IntoIterator<Item = Figures>) -> String {
        let text = Text::default();
        let mut progress =
            Progress::lines(Limits { events: Some(10_000), ..Limits::default() }, Box::new(text.clone()));
        all.into_iter().for_each(|figures| progress.figures(&figures));
        progress.write("stopping");
        progress.over();
        String::from_utf8(text.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn without_a_terminal_there_is_a_line_every_two_seconds_with_the_rates_of_the_last_ones() {
        let times =
            [(500, 500), (2100, 2000), (3900, 2500), (4000, 3000), (4500, 4000), (65_000, 4000), (65_500, 5000)];
        let expected = "\
2.1 s, 20 %: 2 000 issued, 1 000 built, 500 recorded, 952 Hz, 952 kB/s
4.0 s, 30 %: 3 000 issued, 1 500 built, 750 recorded, 714 Hz, 714 kB/s
1 min 05 s, 40 %: 4 000 issued, 2 000 built, 1 000 recorded, 0 Hz, 0 B/s
stopping
1 min 05 s, 50 %: 5 000 issued, 2 500 built, 1 250 recorded, 16.4 Hz, 16.4 kB/s
";
        assert_eq!(shown(times.map(|(elapsed_ms, issued)| at(elapsed_ms, issued))), expected);
    }

    #[test]
    fn what_blocks_now_is_said_and_not_what_did_before() {
        let wait = |stage, words: &str, time_ns| Wait {
            stage,
            who: String::new(),
            whom: String::new(),
            by: Role::RunControl,
            cause: dataflow::report::BlockCause::NoSfi,
            words: words.into(),
            time_ns,
        };
        let first = vec![wait(Role::Level1, "level1 waits for ros-1: pages", 1_900_000_000)];
        let then = |level1, efd| {
            let efd = wait(Role::Efd, "efd-1 waits for sfo-1: recording", efd);
            let dfm = wait(Role::Level1, "level1 waits for dfm-1: window", level1);
            vec![first[0].clone(), efd, dfm, wait(Role::Sfi, "sfi-1 waits for efd-1: pull", 150_000_000)]
        };
        let second = then(1_990_000_000, 1_500_000_000);
        let third = then(2_500_000_000, 1_600_000_000);
        let waits = [(2000, first.clone()), (4000, second), (6000, third)];
        let text = shown(waits.map(|(elapsed_ms, waits)| Figures { waits, ..at(elapsed_ms, 100) }));
        let said: Vec<&str> = text.lines().filter(|line| line.starts_with("  ")).collect();
        assert_eq!(
            said,
            [
                "  level1 waits for ros-1: pages (95 %)",
                "  efd-1 waits for sfo-1: recording (75 %)",
                "  level1 waits for dfm-1: window (26 %)",
            ]
        );
    }

    #[test]
    fn a_trouble_is_said_every_time_and_no_line_is_longer_than_a_terminal() {
        let trouble = "sfo-1: recording has stalled: cannot write /data/run/data_test.00000001.physics_Main.daq.RAW.writing: \
                       No space left on device (os error 28)";
        let figures = |elapsed_ms| Figures {
            troubles: vec![trouble.into()],
            stopping: Some(Role::Sfo),
            ..at(elapsed_ms, 123_456_789_000_000)
        };
        let text = shown([2000, 4000].map(figures));
        assert_eq!(text.matches("No space left").count(), 2, "{text}");
        assert_eq!(text.matches("  stopping: sfo is to drain\n").count(), 2, "{text}");
        assert!(text.lines().all(|line| line.chars().count() < 80), "{text}");
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any begin will do")]
    fn whom_a_partition_waits_for_is_said_when_it_takes_long_and_once() {
        let waiting = |missing| Waiting {
            what: "the applications start",
            whom: vec!["sfi-1".into()],
            missing,
            of: 3,
            limit: String::new(),
        };
        let (mut waits, begin) = (Waits::default(), Instant::now());
        let said: Vec<u64> = (0..40)
            .filter(|quarter| {
                waits.is_new(
                    begin + Duration::from_millis(250) * *quarter as u32,
                    &waiting(2 - usize::from(*quarter > 10)),
                )
            })
            .collect();
        assert_eq!(said, [8, 16]);
    }

    #[test]
    fn the_limit_that_comes_first_counts() {
        let second = Some(Duration::from_secs(1));
        let progress =
            |events, duration| Progress::lines(Limits { events, duration, bytes: None }, Box::new(io::sink()));
        assert_eq!(progress(Some(1000), second).fraction(&at(250, 100)), Some(0.25));
        assert_eq!(progress(Some(100), second).fraction(&at(250, 100)), Some(1.0));
        assert_eq!(progress(None, second).fraction(&at(2500, 100)), Some(1.0));
        assert_eq!(progress(None, None).fraction(&at(250, 100)), None);
    }
}

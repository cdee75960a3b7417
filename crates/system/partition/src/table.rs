//! The end of a run for people: a row per stage, the account, and the verdict, in 80 columns.

use std::collections::BTreeMap;
use std::fmt;

use base::ids::{NodeId, Role};
use control::controller::Ending;
use dataflow::report::{
    Counters, DatagramCounts, DfmCounters, EbifCounters, EfdCounters, L2puCounters, L2svCounters, Level1Counters,
    Nature, Report, RosCounters, SfiCounters, SfoCounters, TrgCounters,
};

use crate::human::{elapsed, grouped, percent, si, time, wrapped};
use crate::summary::{Clock, Failures, Latency, RunFacts, RunState, Summary, is_lower_bound};

/// What a run came to; its `Display` is the whole text, without colours.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// The applications and the time.
    pub facts: &'a RunFacts,
    /// Their reports.
    pub ending: &'a Ending,
    /// The numbers that other programs get.
    pub summary: &'a Summary,
}

impl<'a> Table<'a> {
    /// The same in colours, for a terminal.
    pub fn in_colours(self) -> impl fmt::Display + 'a {
        self.text(true)
    }

    fn text(&self, colour: bool) -> Text<'a> {
        let Self { facts, ending, summary } = *self;
        Text { facts, ending, summary, reports: ending.lives.all(), colour }
    }
}

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text(false).fmt(f)
    }
}

struct Text<'a> {
    facts: &'a RunFacts,
    ending: &'a Ending,
    summary: &'a Summary,
    /// Of all lives of all applications.
    reports: BTreeMap<NodeId, Report>,
    colour: bool,
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stages(f)?;
        self.account(f)?;
        self.selection(f)?;
        self.figures(f)?;
        self.links(f)?;
        self.waits(f)?;
        self.files(f)?;
        self.restarts(f)?;
        self.verdict(f)
    }
}

/// What one stage did, summed over its applications.
struct Stage {
    events: u64,
    bytes: Option<u64>,
    /// Time-outs, re-asks and the like, in words.
    troubles: Option<(u64, &'static str)>,
}

impl Text<'_> {
    fn stages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let header = line(["stage", "events", "rate", "bytes", "bytes/s", "time-outs"]);
        writeln!(f, "{}", self.paint(BOLD, &header))?;
        let seconds = self.facts.duration.as_secs_f64();
        let rate = |count: u64, unit| {
            if seconds > 0.0 { si(count as f64 / seconds, unit) } else { NOTHING.to_owned() }
        };
        let mut has_bounds = false;
        for role in IN_DATA_ORDER {
            let count = self.facts.applications.iter().filter(|application| application.role == role).count();
            if count == 0 {
                continue;
            }
            let stage = Stage::new(role, self.reports(role));
            let is_bound = is_lower_bound(role, self.facts, self.ending, self.summary.accounting.recorded);
            let at_least = |text: String| if is_bound { format!("≥{text}") } else { text };
            let told = stage.events;
            let events = |text: &dyn Fn(u64) -> String| match self.accounted(role).filter(|_| is_bound) {
                Some(exact) => text(exact),
                None => at_least(text(told)),
            };
            let bytes = |text: &dyn Fn(u64) -> String| stage.bytes.map_or_else(|| NOTHING.to_owned(), text);
            let columns = [
                self.label(role, count),
                events(&grouped),
                events(&|events| rate(events, "Hz")),
                bytes(&|bytes| at_least(si(bytes as f64, "B"))),
                bytes(&|bytes| at_least(rate(bytes, "B/s"))),
                stage.troubles.map_or_else(|| NOTHING.to_owned(), |troubles| at_least(trouble(troubles))),
            ];
            has_bounds |= columns.iter().any(|column| column.starts_with('≥'));
            writeln!(f, "{}", line(columns.each_ref().map(String::as_str)).trim_end())?;
        }
        if has_bounds {
            writeln!(f, "≥: at least; what was counted between a last report and a death is not known")?;
        }
        Ok(())
    }

    /// What the account says that a stage took, whatever its applications had time to tell.
    fn accounted(&self, role: Role) -> Option<u64> {
        let a = &self.summary.accounting;
        match role {
            Role::L2sv => Some(a.level1),
            Role::Dfm => Some(a.level2_rejected + a.level2_accepted),
            Role::Sfi => Some(a.built_complete + a.built_incomplete),
            Role::Sfo => Some(a.recorded),
            _ => None,
        }
    }

    fn label(&self, role: Role, count: usize) -> String {
        let is_dead = |node| self.facts.applications.iter().any(|app| app.node == node && app.role == role);
        let died = self.ending.dead.iter().filter(|&&node| is_dead(node)).count();
        let mut label = match role {
            Role::Level1 => "level 1".to_owned(),
            _ => role.stem().to_owned(),
        };
        if count > 1 {
            label += &format!(" ×{count}");
        }
        match role {
            Role::Ros => label += ", fragments",
            Role::Pros => label += ", results",
            _ => {}
        }
        if died > 0 {
            label += &format!(" ({died} died)");
        }
        label
    }

    fn reports(&self, role: Role) -> impl Iterator<Item = &Report> + Clone {
        self.reports.values().filter(move |report| report.role == role)
    }

    fn account(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let a = &self.summary.accounting;
        writeln!(f, "\n{}", self.paint(BOLD, "account of events"))?;
        let plus = [" + ", " + ", " + "];
        let level2 = [(a.level2_rejected, "rejected"), (a.level2_accepted, "accepted"), (a.level2_lost, "lost")];
        self.sum(f, "level 1", a.level1, &level2, &plus)?;
        if a.level2_forced > 0 {
            writeln!(f, "{:31}(accepted by time-out: {})", "", grouped(a.level2_forced))?;
        }
        if a.level2_incomplete > 0 {
            writeln!(f, "{:31}(accepted without all data: {})", "", grouped(a.level2_incomplete))?;
        }
        let building = [(a.built_complete, "complete"), (a.built_incomplete, "incomplete"), (a.not_built, "not built")];
        self.sum(f, "accepted", a.level2_accepted, &building, &plus)?;
        let oversized = SfiCounters::total(self.reports(Role::Sfi)).oversized;
        if oversized > 0 {
            let what = format!("replies that sfi.max_event_size left out: {}", grouped(oversized));
            writeln!(f, "  {}", self.paint(RED, &what))?;
        }
        let filter = [
            (a.filter_rejected, "rejected"),
            (a.filter_accepted, "accepted"),
            (a.filter_debug, "debug"),
            (a.lost_after_build, "lost"),
        ];
        self.sum(f, "built", a.built_complete + a.built_incomplete, &filter, &plus)?;
        let recording = [(a.filter_accepted, "accepted"), (a.filter_debug, "debug"), (a.lost_in_recording, "lost")];
        self.sum(f, "recorded", a.recorded, &recording, &[" + ", " - "])?;
        if self.facts.applications.iter().any(|application| application.role == Role::Sfo) {
            let in_files = self.summary.files.iter().map(|file| file.events).fold(0, u64::saturating_add);
            self.sum(f, "copies", a.recorded_copies, &[(in_files, "in files")], &[])?;
        }
        if a.duplicates > 0 {
            writeln!(f, "  seen twice, taken once: {}", grouped(a.duplicates))?;
        }
        Ok(())
    }

    /// `total = part + part - part`, with the sign in front of each part but the first.
    fn sum(
        &self,
        f: &mut fmt::Formatter<'_>,
        name: &str,
        total: u64,
        parts: &[(u64, &str)],
        signs: &[&str],
    ) -> fmt::Result {
        let mut sum = 0_i128;
        let mut texts = Vec::new();
        for (index, (count, what)) in parts.iter().enumerate() {
            let sign = if index == 0 { "" } else { signs[index - 1] };
            texts.push(format!("{}{} {what}", sign.trim_start(), grouped(*count)));
            sum += if sign == " - " { -i128::from(*count) } else { i128::from(*count) };
        }
        let relation = if sum == i128::from(total) { "=".to_owned() } else { self.paint(RED, "≠") };
        lines(f, &format!("  {name:10}{:>16} {relation}", grouped(total)), &texts, 31)
    }

    fn figures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.summary;
        writeln!(f, "\n{}", self.paint(BOLD, "figures"))?;
        if let Some(start_s) = s.start_s {
            writeln!(f, "  {:17}{}", "start", time(start_s))?;
        }
        let duration = if s.duration_s < 60.0 { time(s.duration_s) } else { elapsed(self.facts.duration) };
        writeln!(f, "  {:17}{duration}", "duration")?;
        writeln!(f, "  {:17}{}", "dead time", percent(s.dead_time_fraction))?;
        for (name, latency) in [("level-2 latency", s.latency_ns.level2), ("build latency", s.latency_ns.build)] {
            if latency != Latency::default() {
                let [p50, p99, max] = [latency.p50, latency.p99, latency.max].map(|ns| time(ns as f64 * 1e-9));
                let parts = [format!("median {p50},"), format!("99 % within {p99},"), format!("at most {max}")];
                figure(f, name, &parts)?;
            }
        }
        let mut processor = vec![time(s.cpu_s)];
        if s.accounting.level1 > 0 {
            processor[0].push(',');
            processor.push(format!("{} per level-1 event", time(s.cpu_s / s.accounting.level1 as f64)));
        }
        figure(f, "processor", &processor)?;
        let n = &s.network;
        let network = [(n.messages, "messages"), (n.stale, "stale"), (n.malformed, "malformed")].map(counted);
        let [messages, stale, malformed] = network;
        let bytes = si(n.bytes as f64, "B");
        let parts = [format!("{messages},"), format!("{bytes},"), format!("{stale},"), malformed];
        figure(f, "network", &parts)?;
        if !n.unexpected.is_empty() {
            let said =
                n.unexpected.iter().map(|u| format!("{} {} from {} to {}", grouped(u.count), u.message, u.from, u.to));
            figure(f, "unexpected", &said.collect::<Vec<_>>())?;
        }
        self.simulated(f)?;
        let Some(d) = n.datagrams else { return Ok(()) };
        let counts =
            DatagramCounts::COUNTERS.iter().zip(d.to_values()).filter(|(counter, _)| !counter.words.is_empty());
        let (traffic, causes): (Vec<_>, Vec<_>) = counts.partition(|(counter, _)| counter.nature == Nature::Progress);
        let told = traffic.into_iter().chain(causes.into_iter().filter(|(_, count)| *count > 0));
        figure(f, "datagrams", &listed(told.map(|(counter, count)| (count, counter.words))))
    }

    /// What only a simulation knows of the network.
    fn simulated(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(simulated) = &self.summary.simulated else { return Ok(()) };
        if let Some(frames) = &simulated.frames {
            let sent = [(frames.sent, "sent")];
            figure(f, "frames", &listed(sent.into_iter().chain(frames.troubles())))?;
        }
        let troubles = listed(simulated.messages.troubles());
        if troubles.is_empty() { Ok(()) } else { figure(f, "messages", &troubles) }
    }

    /// What the chains made of the events, and what level 2 moved for it.
    fn selection(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(selection) = &self.summary.selection else { return Ok(()) };
        let has_filter = selection.chains.iter().any(|chain| chain.filter_input > 0);
        if !selection.chains.is_empty() {
            write!(f, "\n{}", self.paint(BOLD, &format!("{:17}{:>11}{:>11}", "chain", "level 2 in", "accepted")))?;
            writeln!(
                f,
                "{}",
                if has_filter {
                    self.paint(BOLD, &format!("{:>11}{:>11}", "filter in", "accepted"))
                } else {
                    String::new()
                }
            )?;
        }
        for chain in &selection.chains {
            let (input, passed) = (grouped(chain.level2_input), grouped(chain.level2_passed));
            // A long name has a line of its own.
            let gap = if chain.name.chars().count() < 17 { "" } else { "\n" };
            let name = format!("{}{gap}", chain.name);
            write!(f, "{name}{:>1$}{passed:>11}", input, 28 - if gap.is_empty() { name.chars().count() } else { 0 })?;
            if has_filter {
                write!(f, "{:>11}{:>11}", grouped(chain.filter_input), grouped(chain.filter_passed))?;
            }
            writeln!(f)?;
        }
        let data = &selection.level2_data;
        if data.payload_bytes > 0 {
            let (part, robs) = (percent(data.fraction), data.robs_per_event);
            writeln!(f, "level 2 looked at {part} of the event data, in {robs:.1} ROBs per event")?;
        }
        if data.incomplete_steps > 0 {
            let steps = grouped(data.incomplete_steps);
            writeln!(f, "{}", self.paint(RED, &format!("level 2 decided without all its data: {steps} steps")))?;
        }
        if selection.without_stream > 0 {
            let events = grouped(selection.without_stream);
            writeln!(f, "{events} events were accepted by the event filter and taken by no stream")?;
        }
        if let Some(windows) = selection.windows {
            let [events, chunks, all] =
                [windows.events, windows.kept_chunks, windows.kept_chunks + windows.left_chunks].map(grouped);
            writeln!(f, "of {events} events only windows are kept: {chunks} of their {all} chunks")?;
        }
        let Failures { crash, exception, timeout, memory, other } = selection.failures;
        let failures =
            [(crash, "crash"), (exception, "exception"), (timeout, "time-out"), (memory, "memory"), (other, "other")];
        for (count, reason) in failures.into_iter().filter(|(count, _)| *count > 0) {
            writeln!(f, "event filter failed on {} events: {reason}", grouped(count))?;
        }
        Ok(())
    }

    fn links(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.summary.links.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{}", self.paint(BOLD, "sources"))?;
        for link in &self.summary.links {
            let troubles = [
                (link.missing, "missing"),
                (link.late, "late"),
                (link.doubled, "doubled"),
                (link.damaged, "damaged"),
                (link.unplaced, "with a wild number or time"),
                (link.never_triggered, "never triggered"),
                (link.lost, "times lost"),
            ];
            let played = link.played.iter().map(|what| format!("played ({what}),"));
            let mut parts: Vec<String> = [format!("{},", link.state)].into_iter().chain(played).collect();
            parts.push(counted((link.fragments, "fragments")));
            for trouble in troubles.into_iter().filter(|(count, _)| *count > 0) {
                parts.last_mut().expect("there are fragments").push(',');
                parts.push(counted(trouble));
            }
            figure(f, &link.name, &parts)?;
            if let Some(clock) = &link.clock {
                figure(f, "", &of_clock(clock))?;
            }
        }
        Ok(())
    }

    fn waits(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits = &self.summary.blocked_by;
        if waits.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{}", self.paint(BOLD, "who waited for whom, for which part of the run"))?;
        for wait in waits.iter().take(WAITS_SHOWN) {
            let what = format!("{} for {}: {}", wait.who, wait.by, wait.cause);
            let words: Vec<String> = what.split(' ').map(str::to_owned).collect();
            lines(f, &format!("  {:>6} ", percent(wait.fraction)), &words, 10)?;
        }
        more(f, waits.len(), WAITS_SHOWN)
    }

    fn files(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = &self.summary.files;
        if files.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{}", self.paint(BOLD, "files"))?;
        for file in files.iter().take(FILES_SHOWN) {
            let mut parts = vec![file.stream.clone(), counted((file.events, "events")), si(file.bytes as f64, "B")];
            parts.extend((!file.adler32.is_empty()).then(|| format!("Adler-32 {}", file.adler32)));
            let last = parts.len() - 1;
            parts[..last].iter_mut().for_each(|part| part.push(','));
            writeln!(f, "  {}", file.path)?;
            lines(f, "   ", &parts, 4)?;
        }
        more(f, files.len(), FILES_SHOWN)
    }

    fn restarts(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let restarts = &self.summary.restarts;
        if restarts.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{}", self.paint(BOLD, "started again"))?;
        for restart in restarts.iter().take(RESTARTS_SHOWN) {
            let away =
                restart.away_s.map_or_else(|| "not back".to_owned(), |away_s| format!("away for {}", time(away_s)));
            writeln!(f, "  {}  {} after {}, {away}", restart.name, restart.how, time(restart.at_s))?;
        }
        more(f, restarts.len(), RESTARTS_SHOWN)?;
        let (lost, incomplete) = self.summary.lost_and_incomplete();
        let text = format!("  events lost: {}, incomplete: {}", grouped(lost), grouped(incomplete));
        writeln!(f, "{}", if lost + incomplete > 0 { self.paint(RED, &text) } else { text })
    }

    fn verdict(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.summary;
        let reason = s.reason.as_deref().unwrap_or("no reason was given");
        let (colour, verdict) = match s.state {
            RunState::Ok => (GREEN, format!("ok, residual 0{}", self.tolerated())),
            RunState::Degraded => (RED, format!("degraded, residual 0: {reason}{}", self.tolerated())),
            RunState::Residual => (RED, reason.to_owned()),
            RunState::Aborted => (RED, format!("aborted: {reason}")),
        };
        let (number, absent) = (s.run_number, self.absent());
        let colour = if absent.is_empty() { colour } else { RED };
        writeln!(f, "\n{}", self.paint(colour, &format!("run {number}: {verdict}{absent}")))
    }

    /// Sources without which the run could not begin: its time has gone by without a trigger.
    fn absent(&self) -> String {
        let has_begun = self.summary.accounting.level1 > 0;
        let awaited = self.summary.links.iter().filter(|link| link.state == "awaited" && !has_begun);
        match &awaited.map(|link| link.name.as_str()).collect::<Vec<_>>()[..] {
            [] => String::new(),
            [name] => format!("; no trigger, as source {name} has not come"),
            names => format!("; no trigger, as sources {} have not come", names.join(", ")),
        }
    }

    /// What would make the run `degraded` if it were not tolerated.
    fn tolerated(&self) -> String {
        let tolerated = &self.summary.tolerated;
        if tolerated.is_empty() {
            return String::new();
        }
        let each: Vec<String> = tolerated.iter().map(|(key, events)| format!("{key} {}", grouped(*events))).collect();
        format!("; tolerated: {}", each.join(", "))
    }

    fn paint(&self, colour: &str, text: &str) -> String {
        if self.colour { format!("{colour}{text}{PLAIN}") } else { text.to_owned() }
    }
}

impl Stage {
    fn new<'a>(role: Role, reports: impl Iterator<Item = &'a Report>) -> Self {
        let (events, bytes, troubles) = match role {
            Role::RunControl => (0, None, None),
            Role::Level1 => (Level1Counters::total(reports).issued, None, None),
            Role::L2sv => {
                let l2sv = L2svCounters::total(reports);
                (l2sv.received, None, Some((l2sv.forced, "forced")))
            }
            Role::L2pu => {
                let l2pu = L2puCounters::total(reports);
                (l2pu.received, Some(l2pu.roi_bytes), Some((l2pu.reasks, "re-asks")))
            }
            Role::Pros | Role::Ros => {
                let ros = RosCounters::total(reports);
                (ros.fragments_in, Some(ros.bytes_in), Some((ros.timeouts, "time-outs")))
            }
            Role::Dfm => {
                let dfm = DfmCounters::total(reports);
                (dfm.taken_rejected + dfm.taken_accepted, None, Some((dfm.reassigned, "reassigned")))
            }
            Role::Sfi => {
                let sfi = SfiCounters::total(reports);
                (
                    sfi.built_complete + sfi.built_incomplete,
                    Some(sfi.bytes_built),
                    Some((sfi.reasks + sfi.pushed_late, "re-asks")),
                )
            }
            Role::Efd => (EfdCounters::total(reports).received, None, None),
            Role::Sfo => {
                let sfo = SfoCounters::total(reports).in_files();
                (sfo.recorded, Some(sfo.bytes), Some((sfo.failures, "failures")))
            }
            Role::Trg => {
                let trg = TrgCounters::total(reports);
                (trg.triggers, None, Some((trg.timeouts, "time-outs")))
            }
            Role::Ebif => {
                let ebif = EbifCounters::total(reports);
                (ebif.answered + ebif.pushed, Some(ebif.bytes_out), Some((ebif.timeouts, "time-outs")))
            }
        };
        Self { events, bytes, troubles }
    }
}

/// A row of the first table. A name that leaves no room for its events has a line of its own.
fn line([stage, events, rate, bytes, per_s, troubles]: [&str; 6]) -> String {
    let chars = |text: &str| text.chars().count();
    let (gap, room) = match STAGE_CHARS.checked_sub(chars(stage)) {
        Some(room) if room > chars(events) => ("", room),
        _ => ("\n", STAGE_CHARS),
    };
    format!("{stage}{gap}{events:>room$}{rate:>10}{bytes:>9}{per_s:>11}{troubles:>17}")
}

/// `12 345 re-asks`, or shorter where that is too long.
fn trouble((count, what): (u64, &str)) -> String {
    let text = counted((count, what));
    if text.chars().count() < 15 { text } else { format!("{} {what}", si(count as f64, "").trim_end()) }
}

fn counted((count, what): (u64, &str)) -> String {
    format!("{} {what}", grouped(count))
}

/// A clock beside that of the reference.
fn of_clock(clock: &Clock) -> Vec<String> {
    let mut parts = vec![
        "clock".to_owned(),
        format!("{:+} ns,", clock.offset_ns),
        format!("{:+.3} ppm,", clock.drift_ppt as f64 / 1e6),
        format!("±{} ns", clock.quality_ns),
    ];
    for (count, what) in [(clock.steps, "steps"), (clock.slips, "slips")].into_iter().filter(|(count, _)| *count > 0) {
        parts.last_mut().expect("there is a clock").push(',');
        parts.push(counted((count, what)));
    }
    if clock.slips > 0 {
        parts.push(format!("(the last at event {}, {:+})", clock.slipped_at, clock.shift));
    }
    parts
}

/// Counts with a comma behind each but the last.
fn listed<'a>(counts: impl IntoIterator<Item = (u64, &'a str)>) -> Vec<String> {
    let mut parts: Vec<String> = counts.into_iter().map(counted).collect();
    let last = parts.len().saturating_sub(1);
    parts[..last].iter_mut().for_each(|part| part.push(','));
    parts
}

/// A line of the figures, or several if it is long.
fn figure(f: &mut fmt::Formatter<'_>, name: &str, parts: &[String]) -> fmt::Result {
    lines(f, &format!("  {name:16}"), parts, 19)
}

fn lines(f: &mut fmt::Formatter<'_>, head: &str, parts: &[String], indent: usize) -> fmt::Result {
    let parts = core::iter::once(head).chain(parts.iter().map(String::as_str));
    wrapped(parts, indent).iter().try_for_each(|line| writeln!(f, "{line}"))
}

fn more(f: &mut fmt::Formatter<'_>, all: usize, shown: usize) -> fmt::Result {
    if all > shown { writeln!(f, "  and {} more", all - shown) } else { Ok(()) }
}

/// The order in which data move.
const IN_DATA_ORDER: [Role; 11] = [
    Role::Level1,
    Role::Trg,
    Role::Ros,
    Role::L2sv,
    Role::L2pu,
    Role::Pros,
    Role::Dfm,
    Role::Ebif,
    Role::Sfi,
    Role::Efd,
    Role::Sfo,
];

/// Room for the name of a stage and its events.
const STAGE_CHARS: usize = 32;
const NOTHING: &str = "-";
const WAITS_SHOWN: usize = 8;
const FILES_SHOWN: usize = 20;
const RESTARTS_SHOWN: usize = 20;

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[1;31m";
const GREEN: &str = "\x1b[1;32m";
const PLAIN: &str = "\x1b[0m";

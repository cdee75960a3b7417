//! What one process did, by its trace: which Poll functions found work, what Action functions did, what was sent.

use std::path::Path;

use stamps::file::Trace;
use stamps::spans::{Sending, Span, spans};

use super::times::Times;
use crate::error::StudyError;

/// The scheduler's thread of a process.
pub(super) struct Activity {
    /// Names; its stamps are those below.
    trace: Trace,
    counts: (u64, u64),
    spans: Vec<Span>,
    /// Of each span the one around it.
    around: Vec<Option<usize>>,
    /// Of each whether the function around it was left alone.
    calm: Vec<bool>,
    sendings: Vec<Sending>,
}

/// A message that was handled.
#[derive(Clone, Copy)]
pub(super) struct Handled<'a> {
    pub(super) events: &'a [u64],
    pub(super) from_ns: u64,
    /// From its bytes to the end of what was made of it.
    pub(super) ns: f64,
    /// Whether the function around it was left alone.
    is_calm: bool,
}

/// From the Poll function of the first task to the last function that was called before it is polled again; sleep is behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pass {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    /// Whether a Poll function found work.
    pub(super) is_busy: bool,
    /// Whether none of its functions was interrupted.
    is_calm: bool,
    /// Of its spans.
    spans: std::ops::Range<usize>,
}

/// A row of a sequence diagram: sections of this name that handle what came from such applications.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    pub(super) label: &'static str,
    pub(super) section: &'static str,
    pub(super) from: &'static str,
}

impl Activity {
    pub(super) fn read(path: &Path) -> Result<Self, StudyError> {
        let unread = |cause: String| StudyError::Trace { path: path.to_owned(), cause };
        let trace = Trace::read(path).map_err(|error| unread(error.to_string()))?;
        Self::of(trace).ok_or_else(|| unread("it has no stamps of Poll functions: expected some of each pass".into()))
    }

    /// None of a trace without passes.
    pub(super) fn of(mut trace: Trace) -> Option<Self> {
        let counts = trace.counts();
        let threads = std::mem::take(&mut trace.threads);
        let mut of_threads = threads.iter().map(spans);
        let is_of_scheduler = |spans: &[Span]| spans.iter().any(|span| trace.section(span.section) == FIRST_POLL);
        let (spans, sendings) = of_threads.find(|(spans, _)| is_of_scheduler(spans))?;
        let mut open: Vec<usize> = Vec::new();
        let around = spans.iter().enumerate().map(|(index, span)| {
            open.truncate(span.depth);
            let outer = open.last().copied();
            open.push(index);
            outer
        });
        let around = around.collect();
        let mut is_calm = true;
        let calm = spans.iter().map(|span| {
            is_calm = if span.depth == 0 { ns(span) < INTERRUPTED_NS } else { is_calm };
            is_calm
        });
        Some(Self { around, calm: calm.collect(), trace, counts, spans, sendings })
    }

    /// Stamps in the file, and those that were overwritten before they reached it.
    pub(super) fn counts(&self) -> (u64, u64) {
        self.counts
    }

    /// Times of which some have to be there.
    pub(super) fn seen(&self, what: &str, times: impl IntoIterator<Item = f64>) -> Result<Times, StudyError> {
        Times::of(times).ok_or_else(|| self.unseen(what))
    }

    pub(super) fn unseen(&self, what: &str) -> StudyError {
        StudyError::NothingSeen { process: self.trace.process.clone(), what: what.to_owned() }
    }

    pub(super) fn name(&self, span: &Span) -> &str {
        self.trace.section(span.section)
    }

    /// Whole sections of this name.
    pub(super) fn sections<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Span> {
        self.spans.iter().filter(move |span| span.is_whole && self.name(span) == name)
    }

    pub(super) fn times(&self, name: &str) -> Result<Times, StudyError> {
        self.seen(&format!("the section `{name}`"), self.sections(name).map(ns))
    }

    /// What a sequence diagram shows in a lane.
    pub(super) fn of_lane<'a>(&'a self, lane: &'a Lane) -> impl Iterator<Item = &'a Span> {
        self.sections(lane.section).filter(|span| self.is_from(lane, span))
    }

    fn is_from(&self, lane: &Lane, span: &Span) -> bool {
        lane.from.is_empty() || self.trace.place(span.peer).starts_with(lane.from)
    }

    /// The one in the middle of passes that have all of these lanes, with a margin. If there are none, of those with the first one.
    pub(super) fn window(&self, lanes: &[&Lane]) -> Result<(u64, u64), StudyError> {
        let has = |pass: &Pass, lane: &Lane| {
            self.of_pass(pass).iter().any(|span| self.name(span) == lane.section && self.is_from(lane, span))
        };
        let passes = self.passes();
        let having = |lanes: &[&Lane]| -> Vec<&Pass> {
            passes.iter().filter(|pass| lanes.iter().all(|lane| has(pass, lane))).collect()
        };
        let all = [having(lanes), having(&lanes[..1])].into_iter().find(|found| !found.is_empty());
        let found = all.ok_or_else(|| self.unseen(lanes[0].label))?;
        Ok(with_margin(found[found.len() / 2].from_ns, found[found.len() / 2].to_ns))
    }

    /// All time in sections of this name, but for functions that were interrupted.
    pub(super) fn total_ns(&self, name: &str) -> f64 {
        self.calm_ns(|index| self.name(&self.spans[index]) == name)
    }

    /// The same of sections with these names, outside all others of them and outside `decode`.
    pub(super) fn outer_ns(&self, names: &[&str]) -> f64 {
        self.calm_ns(|index| self.is_outer(index, names))
    }

    /// Such time in a pass, interrupted or not.
    pub(super) fn outer_ns_of_pass(&self, pass: &Pass, names: &[&str]) -> f64 {
        pass.spans.clone().filter(|index| self.is_outer(*index, names)).map(|index| ns(&self.spans[index])).sum()
    }

    /// Time in Action functions that were not interrupted.
    pub(super) fn actions_ns(&self) -> f64 {
        self.calm_ns(|index| self.name(&self.spans[index]).starts_with(ACTION))
    }

    fn calm_ns(&self, is_wanted: impl Fn(usize) -> bool) -> f64 {
        let is_calm = |index: &usize| self.calm[*index] && self.spans[*index].is_whole && is_wanted(*index);
        (0..self.spans.len()).filter(is_calm).map(|index| ns(&self.spans[index])).sum()
    }

    /// Whether a section has one of these names, and none around it has. What is sent while a message is decoded belongs to the message.
    fn is_outer(&self, index: usize, names: &[&str]) -> bool {
        let is_wanted = |index: usize| names.contains(&self.name(&self.spans[index]));
        let mut outwards = std::iter::successors(self.around[index], |index| self.around[*index]);
        is_wanted(index) && !outwards.any(|index| is_wanted(index) || self.name(&self.spans[index]) == DECODE)
    }

    /// Messages of this kind from applications with such names, in functions that were not interrupted: all time, and how many events.
    pub(super) fn calm_total(&self, (kind, from): (&str, &str)) -> (f64, f64) {
        let calm = self.handled(kind, from).filter(|of| of.is_calm);
        calm.fold((0.0, 0.0), |(ns, events), of| (ns + of.ns, events + of.events.len() as f64))
    }

    /// The Poll function of a task, where it found work or where it did not.
    pub(super) fn polls(&self, task: &str, finds_work: bool) -> Result<Times, StudyError> {
        let (poll, action) = (format!("{POLL}{task}"), format!("{ACTION}{task}"));
        let found = self.top().filter(|(span, next)| {
            self.name(span) == poll && next.is_some_and(|next| self.name(next) == action) == finds_work
        });
        let what = if finds_work { "with work" } else { "without work" };
        self.seen(&format!("the Poll function of `{task}` {what}"), found.map(|(span, _)| ns(span)))
    }

    /// Where a Poll function that found work ended, and how long it took.
    pub(super) fn work_found(&self, task: &str) -> Vec<(u64, f64)> {
        let (poll, action) = (format!("{POLL}{task}"), format!("{ACTION}{task}"));
        let found = self
            .top()
            .filter(|(span, next)| self.name(span) == poll && next.is_some_and(|next| self.name(next) == action));
        found.map(|(span, _)| (span.to_ns, ns(span))).collect()
    }

    /// From the end of a Poll function to the beginning of the Action function.
    pub(super) fn poll_to_action(&self) -> Result<Times, StudyError> {
        self.transitions("from Poll to Action functions", POLL, ACTION)
    }

    /// From the end of an Action function to the beginning of the next Poll function of the pass.
    pub(super) fn action_to_poll(&self) -> Result<Times, StudyError> {
        self.transitions("from Action to Poll functions", ACTION, POLL)
    }

    fn transitions(&self, what: &str, before: &str, behind: &str) -> Result<Times, StudyError> {
        let between = self.top().filter_map(|(span, next)| {
            let next = next.filter(|next| self.name(next).starts_with(behind) && self.name(next) != FIRST_POLL)?;
            self.name(span).starts_with(before).then(|| next.from_ns.saturating_sub(span.to_ns) as f64)
        });
        self.seen(what, between)
    }

    /// Poll and Action functions, each with the next one.
    fn top(&self) -> impl Iterator<Item = (&Span, Option<&Span>)> {
        let mut top = self.spans.iter().filter(|span| span.depth == 0 && span.is_whole).peekable();
        std::iter::from_fn(move || top.next().map(|span| (span, top.peek().copied())))
    }

    /// In which no section was cut off.
    pub(super) fn passes(&self) -> Vec<Pass> {
        let mut passes: Vec<Pass> = Vec::new();
        for (index, span) in self.spans.iter().enumerate() {
            if self.name(span) == FIRST_POLL {
                let (from_ns, to_ns) = (span.from_ns, span.to_ns);
                passes.push(Pass { from_ns, to_ns, is_busy: false, is_calm: true, spans: index..index });
            }
            if let Some(pass) = passes.last_mut() {
                pass.to_ns = span.to_ns.max(pass.to_ns);
                pass.is_busy |= self.name(span).starts_with(ACTION);
                pass.is_calm &= self.calm[index];
                pass.spans.end = index + 1;
            }
        }
        passes.retain(|pass| self.spans[pass.spans.clone()].iter().all(|span| span.is_whole));
        passes
    }

    /// Passes with work that were not interrupted: all time, and how many events messages of this kind brought in them.
    pub(super) fn busy_total(&self, (kind, from): (&str, &str)) -> (f64, f64) {
        let mut passes = self.passes();
        passes.retain(|pass| pass.is_busy && pass.is_calm);
        let is_within = |of: &Handled<'_>| {
            let begun = passes.partition_point(|pass| pass.from_ns <= of.from_ns);
            passes[..begun].last().is_some_and(|pass| of.from_ns <= pass.to_ns)
        };
        let events = self.handled(kind, from).filter(is_within).map(|of| of.events.len() as f64).sum();
        (passes.iter().map(Pass::ns).sum(), events)
    }

    fn of_pass(&self, pass: &Pass) -> &[Span] {
        &self.spans[pass.spans.clone()]
    }

    /// Events of messages that a pass sent to applications with such names, to be handled in this section.
    pub(super) fn sent_in(&self, pass: &Pass, section: &str, to: &str) -> Vec<u64> {
        let begin = self.sendings.partition_point(|sending| sending.at_ns < pass.from_ns);
        let in_pass = self.sendings[begin..].iter().take_while(|sending| sending.at_ns <= pass.to_ns);
        let wanted = in_pass.filter(|sending| {
            self.trace.section(sending.section) == section && self.trace.place(sending.peer).starts_with(to)
        });
        let mut events: Vec<u64> = wanted.filter_map(|sending| sending.event).collect();
        events.sort_unstable();
        events.dedup();
        events
    }

    /// Messages of this kind about events, from applications with such names.
    pub(super) fn handled<'a>(&'a self, kind: &'a str, from: &'a str) -> impl Iterator<Item = Handled<'a>> {
        let is_wanted = move |span: &Span| {
            let peer = self.trace.place(span.peer);
            self.name(span) == kind && span.is_whole && !span.events.is_empty() && peer.starts_with(from)
        };
        self.spans.iter().enumerate().filter(move |(_, span)| is_wanted(span)).map(|(index, span)| {
            let decoded = self.around[index].map(|outer| &self.spans[outer]).filter(|outer| self.name(outer) == DECODE);
            let whole = decoded.unwrap_or(span);
            Handled { events: &span.events, from_ns: whole.from_ns, ns: ns(whole), is_calm: self.calm[index] }
        })
    }
}

impl Handled<'_> {
    /// Its share for each of its events.
    pub(super) fn event_ns(&self) -> f64 {
        self.ns / self.events.len() as f64
    }
}

impl Pass {
    pub(super) fn ns(&self) -> f64 {
        (self.to_ns - self.from_ns) as f64
    }
}

/// A stretch of time with a little before and behind it.
pub(super) fn with_margin(from_ns: u64, to_ns: u64) -> (u64, u64) {
    let margin = to_ns.saturating_sub(from_ns) / 20;
    (from_ns.saturating_sub(margin), to_ns + margin)
}

fn ns(span: &Span) -> f64 {
    (span.to_ns - span.from_ns) as f64
}

/// Longer than what a pass has to do, shorter than what the kernel gives to others.
const INTERRUPTED_NS: f64 = 500_000.0;
const POLL: &str = "poll ";
const ACTION: &str = "action ";
/// From the bytes of a message to the end of what is made of it.
const DECODE: &str = "decode";
/// Of the first task of each process.
const FIRST_POLL: &str = "poll accept";

#[cfg(test)]
pub(super) mod tests {
    use stamps::recorder::Source;
    use stamps::{NOWHERE, Place, Stamp, StampKind, Thread};

    use super::*;

    /// A trace that is made up, of the thread of a scheduler.
    pub(crate) struct Made {
        now_ns: u64,
        trace: Trace,
        stamps: Vec<Stamp>,
    }

    impl Made {
        pub(crate) fn new(process: &str, places: &[(Place, &str)]) -> Self {
            let places = places.iter().map(|(place, name)| (*place, (*name).to_owned())).collect();
            let (sections, threads) = (Vec::new(), Vec::new());
            let trace = Trace {
                process: process.to_owned(),
                pid: 1,
                source: Source::Clock,
                sections,
                places,
                threads,
                torn_at: None,
            };
            Self { now_ns: 0, trace, stamps: Vec::new() }
        }

        fn stamp(&mut self, kind: StampKind, name: &str, peer: Place, event: Option<u64>) {
            let known = self.trace.sections.iter().position(|known| known == name);
            let section = known.unwrap_or_else(|| {
                self.trace.sections.push(name.to_owned());
                self.trace.sections.len() - 1
            });
            let section = stamps::Section(section as u16);
            self.stamps.push(Stamp { at_ns: self.now_ns, kind, section, place: NOWHERE, peer, event });
        }

        pub(crate) fn wait(&mut self, ns: u64) -> &mut Self {
            self.now_ns += ns;
            self
        }

        /// A section that lasts so long after what is within it.
        pub(crate) fn section(&mut self, name: &str, ns: u64, within: impl FnOnce(&mut Self)) -> &mut Self {
            self.about(name, (NOWHERE, &[]), ns, within)
        }

        /// The same of a message from somebody about events.
        pub(crate) fn about(
            &mut self,
            name: &str,
            (peer, events): (Place, &[u64]),
            ns: u64,
            within: impl FnOnce(&mut Self),
        ) -> &mut Self {
            self.stamp(StampKind::Enter, name, peer, events.first().copied());
            events.iter().skip(1).for_each(|event| self.stamp(StampKind::Further, name, peer, Some(*event)));
            within(self);
            self.wait(ns).stamp(StampKind::Leave, name, NOWHERE, None);
            self
        }

        pub(crate) fn sends(&mut self, name: &str, to: Place, event: u64) -> &mut Self {
            self.stamp(StampKind::Send, name, to, Some(event));
            self
        }

        pub(crate) fn activity(mut self) -> Activity {
            let thread = Thread { name: "main".to_owned(), overwritten: 0, pieces: vec![self.stamps] };
            self.trace.threads.push(thread);
            Activity::of(self.trace).expect("it has passes")
        }
    }

    fn two_passes() -> Activity {
        let mut made = Made::new("sfi-1", &[(1, "ebif-1"), (2, "ebif-2")]);
        made.section("poll accept", 10, |_| ()).wait(5).section("poll receive", 30, |_| ()).wait(7);
        made.section("action receive", 1, |made| {
            made.section("decode", 20, |made| {
                made.about("event-reply", (1, &[4, 5]), 80, |_| ());
            });
            made.about("event-reply", (2, &[4]), 40, |made| {
                made.sends("built-event", 1, 4).sends("built-event", 1, 4).sends("built-event", 2, 9);
            });
        });
        made.wait(3).section("poll flush", 2, |_| ()).wait(1000);
        made.section("poll accept", 10, |_| ()).wait(5).section("poll receive", 10, |_| ());
        made.activity()
    }

    #[test]
    fn polls_are_told_apart_by_what_follows() {
        let activity = two_passes();
        let at = |finds_work| activity.polls("receive", finds_work).unwrap().median();
        assert_eq!((at(true), at(false)), (30.0, 10.0));
        assert_eq!(activity.work_found("receive"), [(45, 30.0)]);
        assert!(activity.polls("flush", true).is_err(), "it never found work");
    }

    #[test]
    fn transitions_are_within_a_pass() {
        let activity = two_passes();
        let (to_action, to_poll) = (activity.poll_to_action().unwrap(), activity.action_to_poll().unwrap());
        assert_eq!((to_action.count(), to_action.median()), (1, 7.0));
        assert_eq!((to_poll.count(), to_poll.median()), (1, 3.0));
    }

    #[test]
    fn a_pass_ends_where_its_last_function_does() {
        let activity = two_passes();
        let passes = activity.passes();
        let found: Vec<_> = passes.iter().map(|pass| (pass.ns(), pass.is_busy)).collect();
        assert_eq!(found, [(198.0, true), (25.0, false)]);
        assert_eq!(activity.sent_in(&passes[0], "built-event", "ebif-1"), [4]);
        assert_eq!(activity.sent_in(&passes[1], "built-event", "ebif"), [0_u64; 0]);
    }

    #[test]
    fn a_message_takes_what_its_bytes_take_and_events_have_equal_shares() {
        let activity = two_passes();
        let handled: Vec<_> =
            activity.handled("event-reply", "ebif").map(|of| (of.events.len(), of.ns, of.event_ns())).collect();
        assert_eq!(handled, [(2, 100.0, 50.0), (1, 40.0, 40.0)]);
        assert_eq!(activity.handled("event-reply", "ebif-2").count(), 1);
        assert_eq!(activity.actions_ns(), 141.0);
        assert!(activity.times("fly").is_err());
    }

    #[test]
    fn what_was_interrupted_has_no_part_in_totals() {
        let mut made = Made::new("sfi-1", &[(1, "ebif-1")]);
        for ns in [100, 1_000_000, 200] {
            made.section("poll accept", 1, |_| ()).section("action receive", 0, |made| {
                made.about("event-reply", (1, &[4]), ns, |_| ());
            });
        }
        let activity = made.activity();
        assert_eq!([activity.actions_ns(), activity.total_ns("event-reply")], [300.0; 2]);
        assert_eq!(activity.calm_total(("event-reply", "ebif")), (300.0, 2.0));
        assert_eq!(activity.busy_total(("event-reply", "ebif")), (302.0, 2.0));
        assert_eq!(activity.times("action receive").unwrap().count(), 3);
    }

    #[test]
    fn nested_time_counts_once() {
        let mut made = Made::new("ebif-1", &[]);
        let writes = |made: &mut Made| {
            made.section("encode", 0, |made| _ = made.section("write connections", 8, |_| ()));
        };
        made.section("poll accept", 1, |_| ()).section("action receive", 0, |made| {
            made.section("decode", 100, writes).section("flush", 20, writes).section("write connections", 5, |_| ());
        });
        let activity = made.activity();
        let names = ["flush", "write connections"];
        assert_eq!(activity.outer_ns(&names), 33.0);
        assert_eq!(activity.outer_ns_of_pass(&activity.passes()[0], &names), 33.0);
        assert_eq!(activity.total_ns("write connections"), 21.0);
    }

    #[test]
    fn a_trace_without_passes_says_nothing() {
        let made = Made::new("weir", &[]);
        assert!(Activity::of(made.trace).is_none());
    }
}

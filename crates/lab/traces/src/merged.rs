//! Several traces of one partition as one.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use stamps::file::Trace;
use stamps::spans::{Sending, Span, spans};
use stamps::{NOWHERE, Place, Section};

use crate::error::TracesError;

/// What all threads did. Sections are numbered anew.
pub(crate) struct Merged {
    pub(crate) threads: Vec<Timeline>,
    pub(crate) sections: Vec<String>,
    places: BTreeMap<Place, String>,
    pub(crate) begin_ns: u64,
    /// How many stamps were overwritten before they reached a file.
    pub(crate) lost: u64,
    /// Files that end early.
    pub(crate) torn: Vec<PathBuf>,
}

/// What one thread did.
pub(crate) struct Timeline {
    pub(crate) pid: u32,
    pub(crate) process: String,
    pub(crate) thread: String,
    pub(crate) spans: Vec<Span>,
    pub(crate) sendings: Vec<Sending>,
}

/// A message that arrived: its sending, and the thread and span that handled it.
pub(crate) struct Arrow {
    pub(crate) sent: Sending,
    pub(crate) from_thread: usize,
    pub(crate) to_thread: usize,
    pub(crate) handled_ns: u64,
}

impl Merged {
    pub(crate) fn read(files: &[PathBuf]) -> Result<Self, TracesError> {
        let (threads, sections, places) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut merged = Self { threads, sections, places, begin_ns: u64::MAX, lost: 0, torn: Vec::new() };
        for path in files {
            let trace = Trace::read(path)?;
            if trace.torn_at.is_some() {
                merged.torn.push(path.clone());
            }
            merged.add(trace);
        }
        let first = |timeline: &Timeline| {
            let spans = timeline.spans.iter().map(|span| span.from_ns);
            spans.chain(timeline.sendings.iter().map(|sending| sending.at_ns)).min()
        };
        merged.begin_ns = merged.threads.iter().filter_map(first).min().ok_or(TracesError::NoStamps)?;
        Ok(merged)
    }

    fn add(&mut self, trace: Trace) {
        self.lost = self.lost.saturating_add(trace.counts().1);
        let numbers: Vec<Section> = trace.sections.iter().map(|name| self.number(name)).collect();
        self.places.extend(trace.places);
        for thread in trace.threads {
            let (mut spans, mut sendings) = spans(&thread);
            spans.iter_mut().for_each(|span| span.section = numbers[usize::from(span.section.0)]);
            sendings.iter_mut().for_each(|sending| sending.section = numbers[usize::from(sending.section.0)]);
            let (pid, process) = (trace.pid, trace.process.clone());
            self.threads.push(Timeline { pid, process, thread: thread.name, spans, sendings });
        }
    }

    fn number(&mut self, name: &str) -> Section {
        let known = self.sections.iter().position(|known| known == name).unwrap_or_else(|| {
            self.sections.push(name.to_owned());
            self.sections.len() - 1
        });
        Section(known as u16)
    }

    pub(crate) fn name(&self, section: Section) -> &str {
        &self.sections[usize::from(section.0)]
    }

    /// The section with this name.
    pub(crate) fn section(&self, name: &str) -> Result<Section, TracesError> {
        let found = self.sections.iter().position(|known| known == name);
        found.map(|index| Section(index as u16)).ok_or_else(|| {
            let mut known = self.sections.clone();
            known.sort();
            TracesError::UnknownSection { name: name.to_owned(), known: known.join(", ") }
        })
    }

    /// The name of an application; none of no application in particular.
    pub(crate) fn place(&self, place: Place) -> Option<String> {
        let unnamed = || if place == 0 { "run control".into() } else { format!("application {place}") };
        (place != NOWHERE).then(|| self.places.get(&place).cloned().unwrap_or_else(unnamed))
    }

    /// All spans, with the number of their thread.
    pub(crate) fn spans(&self) -> impl Iterator<Item = (usize, &Span)> {
        self.threads.iter().enumerate().flat_map(|(index, thread)| thread.spans.iter().map(move |span| (index, span)))
    }

    /// Messages that were seen at both ends.
    pub(crate) fn arrows(&self) -> Vec<Arrow> {
        let mut sent: BTreeMap<_, Vec<(Sending, usize)>> = BTreeMap::new();
        for (index, thread) in self.threads.iter().enumerate() {
            for sending in &thread.sendings {
                let key = (sending.section, sending.place, sending.peer, sending.event);
                sent.entry(key).or_default().push((*sending, index));
            }
        }
        let mut waiting: BTreeMap<_, VecDeque<_>> = BTreeMap::new();
        for (key, mut sendings) in sent {
            sendings.sort_by_key(|(sending, _)| sending.at_ns);
            waiting.insert(key, VecDeque::from(sendings));
        }
        let mut handled: Vec<(usize, &Span)> = self.spans().filter(|(_, span)| span.peer != NOWHERE).collect();
        handled.sort_by_key(|(_, span)| span.from_ns);
        let mut arrows = Vec::new();
        for (to_thread, span) in handled {
            for event in &span.events {
                let key = (span.section, span.peer, span.place, Some(*event));
                let Some(waiting) = waiting.get_mut(&key) else { continue };
                // One that was not recorded arriving is passed over for the newest one that can have.
                let ready = waiting.iter().take_while(|(sending, _)| sending.at_ns <= span.from_ns).count();
                if let Some((sent, from_thread)) = waiting.drain(..ready).next_back() {
                    arrows.push(Arrow { sent, from_thread, to_thread, handled_ns: span.from_ns });
                }
            }
        }
        arrows
    }

    /// What readers should know of the files.
    pub(crate) fn remarks(&self) -> String {
        let torn = self.torn.iter().map(|path| format!("{} ends early: its process died\n", path.display()));
        let lost = (self.lost > 0).then(|| format!("{} stamps were overwritten before they were written\n", self.lost));
        torn.chain(lost).collect()
    }
}

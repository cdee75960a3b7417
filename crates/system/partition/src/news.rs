//! What is to be known of a run while it goes on, kept for a reader that comes when it likes.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::probe::Figures;
use crate::said::Said;
use crate::samples::Sampled;

/// What is to be known of a run while it goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// How far it is.
    Figures(Figures),
    /// What people should read.
    Said(Said),
    /// An event that an application shows.
    Sample(Box<Sampled>),
}

/// The newest figures and samples, and what was said last. Nobody waits for the reader.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mailbox(Arc<(Mutex<Kept>, Condvar)>);

#[derive(Debug, Default)]
struct Kept {
    figures: Option<Figures>,
    said: VecDeque<Said>,
    forgotten: u64,
    samples: VecDeque<Sampled>,
    over: bool,
}

impl Mailbox {
    pub(crate) fn figures(&self, figures: &Figures) {
        self.kept().figures = Some(figures.clone());
        self.0.1.notify_one();
    }

    pub(crate) fn said(&self, said: &Said) {
        let mut kept = self.kept();
        if kept.said.len() == LINES_KEPT {
            kept.said.pop_front();
            kept.forgotten += 1;
        }
        kept.said.push_back(said.clone());
        self.0.1.notify_one();
    }

    /// An older sample that nobody has taken makes room.
    pub(crate) fn sample(&self, sampled: Sampled) {
        let mut kept = self.kept();
        let len_of = |sampled: &Sampled| sampled.len();
        while kept.samples.len() >= SAMPLES_KEPT
            || !kept.samples.is_empty()
                && kept.samples.iter().map(len_of).sum::<usize>() + sampled.len() > SAMPLE_BYTES_KEPT
        {
            kept.samples.pop_front();
        }
        kept.samples.push_back(sampled);
        self.0.1.notify_one();
    }

    /// Nothing follows.
    pub(crate) fn close(&self) {
        self.kept().over = true;
        self.0.1.notify_all();
    }

    /// What comes next; `None` if nothing follows.
    pub(crate) fn next(&self) -> Option<News> {
        let mut kept = self.kept();
        loop {
            if kept.forgotten > 0 {
                let forgotten = core::mem::take(&mut kept.forgotten);
                return Some(News::Said(Said::warning(format!("{forgotten} earlier lines are not kept"))));
            }
            if let Some(said) = kept.said.pop_front() {
                return Some(News::Said(said));
            }
            if let Some(figures) = kept.figures.take() {
                return Some(News::Figures(figures));
            }
            if let Some(sampled) = kept.samples.pop_front() {
                return Some(News::Sample(Box::new(sampled)));
            }
            if kept.over {
                return None;
            }
            kept = self.0.1.wait(kept).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// So many lines wait for a reader.
const LINES_KEPT: usize = 256;
/// So many samples wait, and of their bytes so many, or one alone.
const SAMPLES_KEPT: usize = 64;
const SAMPLE_BYTES_KEPT: usize = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_reader_gets_the_newest_figures_and_the_last_lines() {
        let mailbox = Mailbox::default();
        let figures = |built| Figures { built, ..Figures::default() };
        (0..300).for_each(|built| mailbox.figures(&figures(built)));
        (0..258).for_each(|line| mailbox.said(&Said::notice(line.to_string())));
        mailbox.close();
        let heard: Vec<News> = core::iter::from_fn(|| mailbox.next()).collect();
        assert_eq!(heard[0], News::Said(Said::warning("2 earlier lines are not kept")));
        assert_eq!((&heard[1], heard.len()), (&News::Said(Said::notice("2")), 258));
        assert_eq!(heard.last(), Some(&News::Figures(figures(299))));
    }
}

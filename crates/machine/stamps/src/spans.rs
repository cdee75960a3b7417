//! What the stamps of a thread mean: nested stretches of time, and what was sent within them.

use crate::{Place, Section, Stamp, StampKind, Thread};

/// A section of code, from its beginning to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Which.
    pub section: Section,
    /// The application.
    pub place: Place,
    /// Who sent what it handles.
    pub peer: Place,
    /// The events that it is about.
    pub events: Vec<u64>,
    /// When it began.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
    /// How many sections are around it.
    pub depth: usize,
    /// Whether its end was stamped; else the stamps ended first.
    pub is_whole: bool,
}

/// A message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending {
    /// The section that handles it.
    pub section: Section,
    /// From whom.
    pub place: Place,
    /// To whom.
    pub peer: Place,
    /// What it is about.
    pub event: Option<u64>,
    /// When it left.
    pub at_ns: u64,
}

/// The spans of a thread in the order in which they began, and what it sent. An end without its beginning, which was overwritten
/// or not armed yet, is passed over.
pub fn spans(thread: &Thread) -> (Vec<Span>, Vec<Sending>) {
    let (mut spans, mut sendings) = (Vec::new(), Vec::new());
    thread.pieces.iter().for_each(|piece| add_piece(piece, &mut spans, &mut sendings));
    (spans, sendings)
}

fn add_piece(stamps: &[Stamp], spans: &mut Vec<Span>, sendings: &mut Vec<Sending>) {
    let mut open: Vec<usize> = Vec::new();
    let mut now = 0;
    for stamp in stamps {
        now = stamp.at_ns.max(now);
        match stamp.kind {
            StampKind::Enter => {
                open.push(spans.len());
                spans.push(Span {
                    section: stamp.section,
                    place: stamp.place,
                    peer: stamp.peer,
                    events: stamp.event.into_iter().collect(),
                    from_ns: now,
                    to_ns: now,
                    depth: open.len() - 1,
                    is_whole: false,
                });
            }
            StampKind::Leave => {
                if let Some(index) = open.pop() {
                    (spans[index].to_ns, spans[index].is_whole) = (now, true);
                }
            }
            StampKind::Further => {
                if let Some(index) = open.last() {
                    spans[*index].events.extend(stamp.event);
                }
            }
            StampKind::Send => {
                let (section, place, peer, event) = (stamp.section, stamp.place, stamp.peer, stamp.event);
                sendings.push(Sending { section, place, peer, event, at_ns: now });
            }
        }
    }
    open.into_iter().for_each(|index| spans[index].to_ns = now);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::NOWHERE;

    fn thread(kinds: &[StampKind]) -> Thread {
        let stamp = |(at, kind): (usize, &StampKind)| Stamp {
            at_ns: at as u64,
            kind: *kind,
            section: Section(at as u16),
            place: NOWHERE,
            peer: NOWHERE,
            event: Some(at as u64),
        };
        Thread { pieces: vec![kinds.iter().enumerate().map(stamp).collect()], ..Thread::default() }
    }

    #[test]
    fn ends_without_beginnings_are_passed_over_and_open_sections_end_with_the_stamps() {
        use StampKind::{Enter, Further, Leave, Send};
        let (spans, sendings) = spans(&thread(&[Leave, Enter, Further, Send, Enter, Leave, Leave, Leave, Enter, Send]));
        let found: Vec<_> = spans.iter().map(|s| (s.from_ns, s.to_ns, s.depth, s.is_whole)).collect();
        assert_eq!(found, [(1, 6, 0, true), (4, 5, 1, true), (8, 9, 0, false)]);
        assert_eq!(spans[0].events, [1, 2]);
        assert_eq!(sendings.iter().map(|sending| sending.at_ns).collect::<Vec<_>>(), [3, 9]);
    }

    proptest! {
        #[test]
        fn spans_nest_whatever_stamps_say(choices in prop::collection::vec(0_usize..4, 0..200)) {
            let kinds: Vec<StampKind> = choices
                .into_iter()
                .map(|choice| [StampKind::Enter, StampKind::Leave, StampKind::Send, StampKind::Further][choice])
                .collect();
            let (spans, _) = spans(&thread(&kinds));
            let mut around: Vec<Span> = Vec::new();
            for span in spans {
                around.truncate(span.depth);
                prop_assert_eq!(around.len(), span.depth);
                if let Some(outer) = around.last() {
                    prop_assert!(outer.from_ns <= span.from_ns && span.to_ns <= outer.to_ns);
                }
                around.push(span);
            }
        }
    }
}

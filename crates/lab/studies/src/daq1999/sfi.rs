//! The SFI of a sub-farm crate [DAQ1999 §4.7: Fig. 17 to 21].

use std::collections::BTreeMap;

use super::activity::{Activity, Lane};
use super::figure::{Conclusion, Distribution, Figure, Row, histogram, time_of};
use super::sequence::{label_of, sequence};
use super::times::Times;
use crate::error::StudyError;
use crate::plot::{Axis, Curve, Look, Plot, Scale};
use partition::human::{percent, time};
use plotters::chart::SeriesLabelPosition;

/// With an event handler behind it and without one, each with two crates before it.
pub(super) fn figures(with: &Activity, without: &Activity) -> Result<Vec<Figure>, StudyError> {
    Ok(vec![in_sequence(with)?, receiving(with)?, output(with)?, without_handler(with, without)?])
}

/// Crate fragments of the same events.
struct Fragments {
    /// The first one of each event, and the last one.
    first: Times,
    second: Times,
    /// The Poll functions before them, each at the first one that it has found: none if that is never such a fragment.
    first_polls: Option<Times>,
    second_polls: Option<Times>,
}

impl Fragments {
    fn of(sfi: &Activity) -> Result<Self, StudyError> {
        let mut times: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        let mut polls = [Vec::new(), Vec::new()];
        let found: Vec<(u64, f64)> = sfi.work_found("receive");
        let mut taken = 0;
        for reply in sfi.handled(FRAGMENT.0, FRAGMENT.1) {
            for event in reply.events {
                times.entry(*event).or_default().push(reply.event_ns());
            }
            let place = reply.events.first().map_or(0, |event| times[event].len() - 1);
            let before = found.partition_point(|(at_ns, _)| *at_ns <= reply.from_ns);
            let new = found[..before].last().filter(|_| before > taken);
            taken = before;
            if let (Some(polls), Some((_, ns))) = (polls.get_mut(place), new) {
                polls.push(*ns);
            }
        }
        let [first_polls, second_polls] = polls;
        let whole = || times.values().filter(|times| times.len() > 1);
        Ok(Self {
            first: sfi.seen("first fragments", whole().map(|times| times[0]))?,
            second: sfi.seen("second fragments", whole().map(|times| times[1]))?,
            first_polls: Times::of(first_polls),
            second_polls: Times::of(second_polls),
        })
    }

    fn distributions<'a>(&'a self, given: &[&'a [f64]; 4]) -> Vec<Distribution<'a>> {
        let all = [
            ("Poll, first fragment", self.first_polls.as_ref()),
            ("Poll, second fragment", self.second_polls.as_ref()),
            ("Action, first fragment", Some(&self.first)),
            ("Action, second fragment", Some(&self.second)),
        ];
        let seen = all.into_iter().zip(given);
        seen.filter_map(|((what, times), given_us)| Some(Distribution { what, given_us, times: times? })).collect()
    }
}

fn in_sequence(sfi: &Activity) -> Result<Figure, StudyError> {
    let close = sfi.window(&[&LANES[2], &LANES[6]])?;
    let wide = (close.0.saturating_sub(WIDE_NS / 4), close.1 + WIDE_NS);
    let labels: fn(f64) -> String = |place| label_of(&LANES, place);
    let (receive, send) = (sfi.total_ns("action receive"), sfi.total_ns("action flush"));
    let all = sfi.actions_ns().max(1.0);
    let built = sfi.calm_total(FRAGMENT).1 / SOURCES;
    Ok(Figure {
        number: 17,
        about: "A pass of an SFI in which there are crate fragments (b), and its surroundings (a). In the paper it \
                asks the event handler by network before it sends an event. Here the handler has said beforehand for how many it has \
                room, which is `pull`.",
        plots: vec![
            sequence(["Fig. 17 (a): an SFI", "time; in the paper 8.5 ms for an event"], &LANES, labels, sfi, wide),
            sequence(
                ["Fig. 17 (b): crate fragments in it", "time; in the paper 300 µs to make and build an event"],
                &LANES,
                labels,
                sfi,
                close,
            ),
        ],
        rows: vec![
            Row::time("Action functions, for an event", &[8500.0], all / built.max(1.0)),
            Row::time("of these, receiving and building", &[300.0], receive / built.max(1.0)),
            Row::time(
                "of these, hearing of the handler's room (`pull`)",
                &[3300.0],
                sfi.total_ns("pull") / built.max(1.0),
            ),
            Row::time("of these, sending", &[4900.0], send / built.max(1.0)),
        ],
        conclusion: Conclusion {
            of_the_paper: "An SFI spends its time on the event handler, and little on building.",
            holds: Some(send > receive),
            because: format!(
                "sending has {} of its Action functions, receiving {}; it holds if sending has more",
                percent(send / all),
                percent(receive / all)
            ),
        },
    })
}

fn receiving(sfi: &Activity) -> Result<Figure, StudyError> {
    let fragments = Fragments::of(sfi)?;
    let of = fragments.distributions(&[&[9.0], &[2.0], &[175.0], &[45.0]]);
    let ratio = fragments.first.median() / fragments.second.median().max(1.0);
    Ok(Figure {
        number: 18,
        about: "The task that receives fragments, with an event handler. The paper's fragments are made where they are received.",
        plots: vec![histogram("Fig. 18: receiving fragments", &of)],
        rows: of.iter().map(Distribution::row).collect(),
        conclusion: Conclusion {
            of_the_paper: "The first fragment of an event takes longer, since network I/O before it has emptied the cache.",
            holds: Some(ratio > LONGER),
            because: format!("the first one takes {ratio:.2} times as long as the second one; it holds above {LONGER}"),
        },
    })
}

fn output(sfi: &Activity) -> Result<Figure, StudyError> {
    let [none, some] = [sfi.polls("flush", false)?, sfi.polls("flush", true)?];
    let action = sfi.times("action flush")?;
    let of = [
        Distribution { what: "Poll, no event", given_us: &[3.0], times: &none },
        Distribution { what: "Poll, an event", given_us: &[3500.0], times: &some },
        Distribution { what: "Action", given_us: &[5000.0], times: &action },
    ];
    let ratio = some.median() / none.median().max(1.0);
    Ok(Figure {
        number: 19,
        about: "The Output task, which is `flush` here: it writes what goes to the event handler and to the DFM.",
        plots: vec![histogram("Fig. 19: the Output task", &of)],
        rows: of.iter().map(Distribution::row).collect(),
        conclusion: Conclusion {
            of_the_paper: "A Poll that asks the event handler takes milliseconds, a thousand times as long as one that does not.",
            holds: Some(ratio > MUCH_LONGER),
            because: format!(
                "Poll functions do no I/O: with work they take {}, without it {}; it holds above {MUCH_LONGER} times as long",
                time(some.median() / 1e9),
                time(none.median() / 1e9)
            ),
        },
    })
}

fn without_handler(with: &Activity, without: &Activity) -> Result<Figure, StudyError> {
    let (before, fragments) = (Fragments::of(with)?, Fragments::of(without)?);
    let of = fragments.distributions(&[&[1.0], &[0.3], &[40.0, 50.0], &[30.0]]);
    let ratio = before.first.median() / fragments.first.median().max(1.0);
    Ok(Figure {
        number: 20,
        about: "The same without an event handler: complete events go nowhere. The last fragment completes the event here, so its Action has \
                what End of Event does in the paper.",
        plots: vec![histogram("Fig. 20: without an event handler", &of)],
        rows: of.iter().map(Distribution::row).collect(),
        conclusion: Conclusion {
            of_the_paper: "Without network I/O the cache is hit more often, and fragments take less time.",
            holds: Some(ratio > LONGER),
            because: format!(
                "with an event handler the first fragment takes {ratio:.2} times as long; it holds above {LONGER}"
            ),
        },
    })
}

/// Locating the crate fragments of an event from so many sources.
pub(super) fn located(sfi: &Activity, sources: u32) -> Result<Times, StudyError> {
    let mut located: BTreeMap<u64, (u32, f64)> = BTreeMap::new();
    for reply in sfi.handled(FRAGMENT.0, FRAGMENT.1) {
        for event in reply.events {
            let (heard, ns) = located.entry(*event).or_default();
            (*heard, *ns) = (*heard + 1, *ns + reply.event_ns());
        }
    }
    let whole = located.into_values().filter(|(heard, _)| *heard == sources).map(|(_, ns)| ns);
    sfi.seen("events from all sources", whole)
}

/// The same by the number of sources.
pub(super) fn locating(sources: &[(u32, Times)]) -> Figure {
    let (mut points, mut rows) = (Vec::new(), Vec::new());
    for (count, times) in sources {
        let given_us = EVENT_US + SOURCE_US * f64::from(*count);
        let what = format!("locating, {count} {}", if *count == 1 { "source" } else { "sources" });
        rows.push(Distribution { what: &what, given_us: &[given_us], times }.row());
        points.push((f64::from(*count), times.median() / 1e3));
    }
    let (event_us, source_us) = straight(&points);
    rows.push(Row::time("for an event, by a line through the medians", &[EVENT_US], event_us * 1e3));
    rows.push(Row::time("for each source", &[SOURCE_US], source_us * 1e3));
    Figure {
        number: 21,
        about: "Locating the crate fragments of an event in an SFI: its share of the messages that bring them, from their bytes on. The SFI \
                is a process of its own, all else is in another one.",
        plots: vec![plot_of_sources(points)],
        rows,
        conclusion: Conclusion {
            of_the_paper: "The time grows by a constant for each source, which is small beside that of an event.",
            holds: Some(source_us > 0.0 && source_us < event_us),
            because: format!(
                "a source takes {}, an event {} besides",
                time_of(source_us * 1e3),
                time_of(event_us * 1e3)
            ),
        },
    }
}

fn plot_of_sources(points: Vec<(f64, f64)>) -> Plot {
    let count = points.iter().map(|(count, _)| *count).fold(1.0, f64::max);
    let paper = [0.0, count].map(|count| (count, EVENT_US + SOURCE_US * count));
    let us = points.iter().map(|(_, us)| *us).fold(paper[1].1, f64::max);
    Plot {
        title: "Fig. 21: locating crate fragments",
        x: Axis {
            label: "sources",
            scale: Scale::Linear,
            low: 0.0,
            high: count + 1.0,
            number: |count| format!("{count:.0}"),
        },
        y: Axis {
            label: "time of an event [µs]",
            scale: Scale::Linear,
            low: 0.0,
            high: 1.3 * us,
            number: |us| format!("{us:.0}"),
        },
        curves: vec![
            Curve { name: "here, median".into(), points, look: Look::Marked },
            Curve { name: "paper".into(), points: paper.to_vec(), look: Look::Line },
        ],
        names: SeriesLabelPosition::UpperLeft,
    }
}

/// Where the straight line nearest to the points begins, and its slope; of one point, no slope.
fn straight(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len().max(1) as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: fn((f64, f64)) -> f64| points.iter().map(|point| of((point.0 - x, point.1 - y))).sum::<f64>();
    let spread = sum(|(x, _)| x * x);
    let slope = if spread > 0.0 { sum(|(x, y)| x * y) / spread } else { 0.0 };
    (y - slope * x, slope)
}

/// A crate fragment.
const FRAGMENT: (&str, &str) = ("event-reply", "ebif");
const LANES: [Lane; 7] = [
    Lane { label: "receive, Poll", section: "poll receive", from: "" },
    Lane { label: "receive, Action", section: "action receive", from: "" },
    Lane { label: "crate fragment", section: FRAGMENT.0, from: FRAGMENT.1 },
    Lane { label: "granted by the DFM", section: "granted", from: "" },
    Lane { label: "handler's room", section: "pull", from: "" },
    Lane { label: "output, Poll", section: "poll flush", from: "" },
    Lane { label: "output, Action", section: "action flush", from: "" },
];
const SOURCES: f64 = 2.0;
const WIDE_NS: u64 = 1_500_000;
const LONGER: f64 = 1.1;
const MUCH_LONGER: f64 = 100.0;
const EVENT_US: f64 = 11.0;
const SOURCE_US: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::super::activity::tests::Made;
    use super::*;

    /// Two crate fragments of an event, and the first one of another event.
    fn two_passes() -> Activity {
        let mut made = Made::new("sfi-1", &[(1, "ebif-1"), (2, "ebif-2"), (3, "pros-1")]);
        for (poll_ns, peer, events, ns) in [(30, 1, &[4][..], 100), (10, 2, &[4], 50), (40, 2, &[5], 7)] {
            made.section("poll accept", 1, |_| ()).section("poll receive", poll_ns, |_| ());
            made.section("action receive", 0, |made| {
                made.about("event-reply", (peer, events), ns, |_| ());
                made.about("event-reply", (3, events), 1, |_| ());
            });
        }
        made.activity()
    }

    #[test]
    fn the_first_fragment_of_an_event_is_told_from_the_second() {
        let of = Fragments::of(&two_passes()).unwrap();
        assert_eq!((of.first.count(), of.first.median(), of.second.median()), (1, 100.0, 50.0));
        assert_eq!([of.first_polls, of.second_polls].map(|polls| polls.unwrap().median()), [40.0, 10.0]);
    }

    #[test]
    fn a_poll_belongs_to_the_first_of_the_fragments_that_it_finds() {
        let mut made = Made::new("sfi-1", &[(1, "ebif-1"), (2, "ebif-2")]);
        for (poll_ns, fragments) in [(30, &[(1, 4), (2, 4)][..]), (10, &[(1, 5)]), (20, &[(2, 5)])] {
            made.section("poll accept", 1, |_| ()).section("poll receive", poll_ns, |_| ());
            made.section("action receive", 0, |made| {
                for (peer, event) in fragments {
                    made.about("event-reply", (*peer, &[*event]), 5, |_| ());
                }
            });
        }
        let of = Fragments::of(&made.activity()).unwrap();
        let polls = [of.first_polls, of.second_polls].map(Option::unwrap);
        assert_eq!(polls.map(|polls| (polls.count(), polls.mean())), [(2, 20.0), (1, 20.0)]);
    }

    #[test]
    fn fragments_that_always_come_along_with_others_have_no_poll() {
        let mut made = Made::new("sfi-1", &[(1, "ebif-1"), (2, "ebif-2")]);
        made.section("poll accept", 1, |_| ()).section("poll receive", 30, |_| ());
        made.section("action receive", 0, |made| {
            made.about("event-reply", (1, &[4]), 9, |_| ()).about("event-reply", (2, &[4]), 5, |_| ());
        });
        let of = Fragments::of(&made.activity()).unwrap();
        let seen: Vec<&str> = of.distributions(&[&[]; 4]).iter().map(|of| of.what).collect();
        assert_eq!(seen, ["Poll, first fragment", "Action, first fragment", "Action, second fragment"]);
    }

    #[test]
    fn fragments_are_located_from_all_sources() {
        let figure = locating(&[(2, located(&two_passes(), 2).unwrap())]);
        assert_eq!(figure.rows[0].here[0], "150 ns");
        assert_eq!(figure.plots[0].curves[0].points, [(2.0, 0.15)]);
        assert!(located(&two_passes(), 3).is_err(), "no event has three");
    }

    #[test]
    fn a_line_that_begins_below_nothing_is_printed_so() {
        let times = |ns: f64| Times::of([ns]).unwrap();
        let figure = locating(&[(1, times(1000.0)), (2, times(3000.0))]);
        assert_eq!((&*figure.rows[2].here[0], &*figure.rows[3].here[0]), ("−1 µs", "2 µs"));
        assert_eq!(figure.conclusion.holds, Some(false));
    }

    #[test]
    fn a_line_is_what_its_points_say() {
        let (begin, slope) = straight(&[(1.0, 12.0), (2.0, 14.0), (4.0, 18.0)]);
        assert!((begin - 10.0).abs() < 1e-9 && (slope - 2.0).abs() < 1e-9, "{begin}, {slope}");
        assert_eq!(straight(&[(3.0, 7.0)]), (7.0, 0.0));
    }
}

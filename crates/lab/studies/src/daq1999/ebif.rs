//! The EBIF of a crate [DAQ1999 §4.5: Fig. 7 to 10]. The page with its first lines and Fig. 7 is missing in the copy at hand.

use std::collections::BTreeMap;

use super::activity::{Activity, Lane, with_margin};
use super::figure::{Conclusion, Distribution, Figure, Row, histogram, part_axis};
use super::sequence::{label_of, sequence};
use super::times::Times;
use super::{DOMINATES, ROBS};
use crate::error::StudyError;
use crate::plot::{Axis, Curve, Look, Plot, Scale};
use partition::human::{percent, time};
use plotters::chart::SeriesLabelPosition;

/// What an event has cost; parts of what is done for several events are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Collected {
    /// Taking the order, and asking the ROBs.
    order_ns: f64,
    /// Hearing from all ROBs where its fragments are.
    pub(super) locate_ns: f64,
    /// Sending them to the event builder, which moves the data.
    collect_ns: f64,
    /// When the first ROB had said where it is, and when it was sent on.
    located_ns: u64,
    sent_ns: u64,
}

impl Collected {
    fn all_ns(&self) -> f64 {
        self.order_ns + self.locate_ns + self.collect_ns
    }
}

/// Events that an EBIF has taken all the way. Messages of a pass are told apart by their receivers. Its time goes in
/// equal parts to all that was asked for and collected in it.
pub(super) fn collected(ebif: &Activity) -> Vec<Collected> {
    let mut events: BTreeMap<u64, Collected> = BTreeMap::new();
    for order in ebif.handled(L2A.0, L2A.1) {
        for event in order.events {
            let of = Collected { order_ns: order.event_ns(), ..Collected::default() };
            events.insert(*event, of);
        }
    }
    for reply in ebif.handled(LOCATED.0, LOCATED.1) {
        for event in reply.events {
            if let Some(of) = events.get_mut(event) {
                of.located_ns = if of.locate_ns > 0.0 { of.located_ns } else { reply.from_ns };
                of.locate_ns += reply.event_ns();
            }
        }
    }
    for pass in ebif.passes() {
        let asked = ebif.sent_in(&pass, "event-request", "ros");
        let collected = ebif.sent_in(&pass, "event-reply", "sfi");
        let sending_ns = ebif.outer_ns_of_pass(&pass, &SENDING);
        let each_ns = sending_ns / (asked.len() + collected.len()).max(1) as f64;
        for event in asked {
            events.entry(event).and_modify(|of| of.order_ns += each_ns);
        }
        for event in collected {
            events.entry(event).and_modify(|of| (of.collect_ns, of.sent_ns) = (of.collect_ns + each_ns, pass.to_ns));
        }
    }
    events.into_values().filter(|of| of.locate_ns > 0.0 && of.sent_ns > 0).collect()
}

/// Of crates of four ROBs with fragments of each length in bytes; the one in the middle stands for all.
pub(super) fn figures(crates: &[(u32, Activity)]) -> Result<Vec<Figure>, StudyError> {
    let ebif = &crates[crates.len() / 2].1;
    let of_events = collected(ebif);
    Ok(vec![in_sequence(ebif, &of_events)?, tasks(ebif, &of_events)?, phases(crates)?, parts(crates)?])
}

fn in_sequence(ebif: &Activity, events: &[Collected]) -> Result<Figure, StudyError> {
    let mut ways: Vec<(u64, u64)> = events.iter().map(|of| (of.located_ns, of.sent_ns)).collect();
    ways.sort_by_key(|(located_ns, sent_ns)| sent_ns.saturating_sub(*located_ns));
    let (located_ns, sent_ns) = *ways.get(ways.len() / 2).ok_or_else(|| ebif.unseen("events that were collected"))?;
    let labels: fn(f64) -> String = |place| label_of(&LANES, place);
    let (order, data) = (ebif.window(&[&LANES[4]])?, with_margin(located_ns, sent_ns));
    let all = ebif.actions_ns().max(1.0);
    let heard: f64 = [L2A, LOCATED].map(|of| ebif.calm_total(of).0).iter().sum();
    let spent = heard + ebif.outer_ns(&SENDING);
    Ok(Figure {
        number: 7,
        about: "An EBIF hears of accepted events and asks the ROBs (a). For an event it locates the fragments, when ROBs say where they are, \
                and collects them, when it sends them on (b). The page with the numbers of this figure is missing in the copy at hand.",
        plots: vec![
            sequence(["Fig. 7 (a): an EBIF asks", "time"], &LANES, labels, ebif, order),
            sequence(["Fig. 7 (b): it locates and collects", "time"], &LANES, labels, ebif, data),
        ],
        rows: vec![Row::number("part of all Action functions: data collection", "most", percent(spent / all))],
        conclusion: Conclusion {
            of_the_paper: "Data collection dominates, in distinct phases: locate, collect, discard.",
            holds: Some(spent > all * DOMINATES),
            because: format!(
                "it has {} of the Action functions; the conclusion holds above {}. The discards come from the TRG here, grouped with the L2R",
                percent(spent / all),
                percent(DOMINATES)
            ),
        },
    })
}

fn tasks(ebif: &Activity, events: &[Collected]) -> Result<Figure, StudyError> {
    let [idle, found] = [ebif.polls("receive", false)?, ebif.polls("receive", true)?];
    let [no_data, data] = [ebif.polls("flush", false)?, ebif.polls("flush", true)?];
    let input = ebif.seen("L2A", ebif.handled(L2A.0, L2A.1).map(|of| of.event_ns()))?;
    let collecting = ebif.seen("collected events", events.iter().map(Collected::all_ns))?;
    let of = [
        Distribution { what: "(a) Task1 Poll, no work", given_us: &[], times: &idle },
        Distribution { what: "(a) Task1 Poll, work", given_us: &[], times: &found },
        Distribution { what: "(b) an L2A", given_us: &[], times: &input },
        Distribution { what: "(c) Task2 Poll, no work", given_us: &[0.5], times: &no_data },
        Distribution { what: "(c) Task2 Poll, work", given_us: &[0.7], times: &data },
        Distribution { what: "(d) collecting an event", given_us: &[], times: &collecting },
    ];
    Ok(Figure {
        number: 8,
        about: "The tasks of an EBIF. All messages come by `receive` here, which stands for Task1, and all data leave by `flush`, which \
                stands for Task2.",
        plots: vec![histogram("Fig. 8: tasks of an EBIF", &of)],
        rows: of.iter().map(Distribution::row).collect(),
        conclusion: Conclusion {
            of_the_paper: "A Poll function that finds nothing ends early, and is the shorter one.",
            holds: Some(idle.median() < found.median()),
            because: format!(
                "that of `receive` takes {} without work and {} with it",
                time(idle.median() / 1e9),
                time(found.median() / 1e9)
            ),
        },
    })
}

fn phases(crates: &[(u32, Activity)]) -> Result<Figure, StudyError> {
    let mut located = Vec::new();
    let mut sizes: Vec<(u32, Times)> = Vec::new();
    for (bytes, ebif) in crates {
        let events = collected(ebif);
        located.extend(events.iter().map(|of| of.locate_ns));
        sizes.push((*bytes, ebif.seen("collected events", events.iter().map(|of| of.collect_ns))?));
    }
    let located = crates[0].1.seen("located events", located)?;
    let names: Vec<String> = sizes.iter().map(|(bytes, _)| format!("(b) collect {ROBS} × {bytes} B")).collect();
    let all_us = [f64::from(ROBS) * ROB_US];
    let mut of = vec![Distribution { what: "(a) locate", given_us: &all_us, times: &located }];
    let collect = names.iter().zip(&sizes);
    of.extend(collect.map(|(what, (_, times))| Distribution { what, given_us: &[], times }));
    let mut rows: Vec<Row> = of.iter().map(Distribution::row).collect();
    rows.push(Row::time("locating, for each ROB", &[ROB_US], located.median() / f64::from(ROBS)));
    let (short, long) = (sizes[0].1.median(), sizes[sizes.len() - 1].1.median());
    let ratio = long / short.max(1.0);
    Ok(Figure {
        number: 9,
        about: "Locating and collecting the fragments of an event from four ROBs, in a run for each length of fragments. The paper gives \
                7 µs for each ROB (§5).",
        plots: vec![histogram("Fig. 9: locating and collecting", &of)],
        rows,
        conclusion: Conclusion {
            of_the_paper: "Collecting has a peak for each length of fragments, since the transfer takes most of the time.",
            holds: Some(ratio > GROWS),
            because: format!("fragments five times as long take {ratio:.2} times as long; it holds above {GROWS}"),
        },
    })
}

fn parts(crates: &[(u32, Activity)]) -> Result<Figure, StudyError> {
    let mut parts = [Vec::new(), Vec::new()];
    for of in crates.iter().flat_map(|(_, ebif)| collected(ebif)) {
        parts[0].push(of.locate_ns / of.all_ns());
        parts[1].push(of.collect_ns / of.all_ns());
    }
    let [locate, collect] = parts;
    let seen = |parts: Vec<f64>| crates[0].1.seen("collected events", parts);
    let (locate, collect) = (seen(locate)?, seen(collect)?);
    let row = |what: &str, given: &str, parts: &Times| {
        let cells = [parts.median(), parts.mean(), parts.at(0.999)].map(percent);
        let [median, mean, tail] = cells;
        Row { what: what.into(), given: given.into(), here: [median, mean, tail, parts.count().to_string()] }
    };
    let within = collect.median() > locate.median();
    Ok(Figure {
        number: 10,
        about: "The parts of an event's time in an EBIF that go to locating and to collecting; the rest goes to the order and to asking the \
                ROBs.",
        plots: vec![plot_of_parts(&locate, &collect)],
        rows: vec![row("(a) locating", "2 % to 12 %", &locate), row("(b) collecting", "40 % to 78 %", &collect)],
        conclusion: Conclusion {
            of_the_paper: "Collecting takes more of the time than locating.",
            holds: Some(within),
            because: format!(
                "collecting has {} and locating {} of the time of an event",
                percent(collect.median()),
                percent(locate.median())
            ),
        },
    })
}

fn plot_of_parts(locate: &Times, collect: &Times) -> Plot {
    let [stairs_of_locate, stairs_of_collect] = [locate, collect].map(Times::parts_in_percent);
    let highest = |points: &[(f64, f64)]| points.iter().map(|(_, part)| *part).fold(0.0, f64::max);
    let high = 1.6 * highest(&stairs_of_locate).max(highest(&stairs_of_collect));
    let curve = |name: &str, points| Curve { name: name.to_owned(), points, look: Look::Line };
    let ends = |name: &str, ends: [f64; 2]| {
        ends.map(|percent| Curve {
            name: format!("paper, {name}"),
            points: vec![(percent, 0.0), (percent, high)],
            look: Look::Beside,
        })
    };
    let mut curves = vec![curve("(a) locate; paper 2 % to 12 %", stairs_of_locate)];
    curves.extend(ends("locate", [2.0, 12.0]));
    curves.push(curve("(b) collect; paper 40 % to 78 %", stairs_of_collect));
    curves.extend(ends("collect", [40.0, 78.0]));
    Plot {
        title: "Fig. 10: parts of the time of an event",
        x: Axis { label: "part [%]", scale: Scale::Linear, low: 0.0, high: 100.0, number: |x| format!("{x:.0}") },
        y: part_axis(high),
        curves,
        names: SeriesLabelPosition::UpperRight,
    }
}

/// An order to push, in the words of the paper, and who sends it.
const L2A: (&str, &str) = ("push", "trg");
const LOCATED: (&str, &str) = ("event-reply", "ros");
/// Sections in which messages are made and leave.
const SENDING: [&str; 2] = ["flush", "write connections"];
const LANES: [Lane; 7] = [
    Lane { label: "Task1 Poll", section: "poll receive", from: "" },
    Lane { label: "Task1 Action", section: "action receive", from: "" },
    Lane { label: "Task2 Poll", section: "poll flush", from: "" },
    Lane { label: "Task2 Action", section: "action flush", from: "" },
    Lane { label: "L2A", section: L2A.0, from: L2A.1 },
    Lane { label: "locate", section: LOCATED.0, from: LOCATED.1 },
    Lane { label: "collect", section: "write connections", from: "" },
];
const ROB_US: f64 = 7.0;
const GROWS: f64 = 1.2;

#[cfg(test)]
mod tests {
    use super::super::activity::tests::Made;
    use super::*;

    /// Two events are ordered in one pass, located by two ROBs, and collected together.
    fn two_events() -> Activity {
        let mut made = Made::new("ebif-1", &[(1, "trg-1"), (2, "ros-1"), (3, "ros-2"), (4, "sfi-1")]);
        made.section("poll accept", 1, |_| ()).section("action receive", 0, |made| {
            made.about("push", (1, &[7, 8]), 40, |_| ());
            made.section("flush", 20, |made| {
                made.sends("event-request", 2, 7).sends("event-request", 3, 7).sends("event-request", 2, 8);
            });
        });
        made.section("poll accept", 1, |_| ()).section("action receive", 0, |made| {
            made.about("event-reply", (2, &[7, 8]), 100, |_| ());
            made.about("event-reply", (3, &[7, 8]), 60, |_| ());
            made.section("flush", 10, |made| {
                made.sends("event-reply", 4, 7).sends("event-reply", 4, 8);
            });
        });
        made.section("action flush", 5, |made| {
            made.section("write connections", 190, |_| ());
        });
        made.activity()
    }

    #[test]
    fn events_have_their_shares_of_each_phase() {
        let events = collected(&two_events());
        assert_eq!(events.len(), 2);
        for of in events {
            assert_eq!((of.order_ns, of.locate_ns, of.collect_ns), (30.0, 80.0, 100.0));
            assert!(of.located_ns < of.sent_ns);
        }
    }

    #[test]
    fn a_pass_that_asks_and_collects_has_equal_shares_for_both() {
        let mut made = Made::new("ebif-1", &[(1, "trg-1"), (2, "ros-1"), (4, "sfi-1")]);
        made.section("poll accept", 1, |_| ()).section("action receive", 0, |made| {
            made.about("push", (1, &[7]), 40, |_| ());
            made.section("flush", 10, |made| _ = made.sends("event-request", 2, 7));
        });
        made.section("poll accept", 1, |_| ()).section("action receive", 0, |made| {
            made.about("push", (1, &[8]), 40, |_| ());
            made.about("event-reply", (2, &[7]), 60, |_| ());
            made.section("flush", 30, |made| _ = made.sends("event-request", 2, 8).sends("event-reply", 4, 7));
        });
        made.section("poll accept", 1, |_| ()).section("action receive", 0, |made| {
            made.about("event-reply", (2, &[8]), 60, |_| ());
            made.section("flush", 20, |made| _ = made.sends("event-reply", 4, 8));
        });
        let parts = |of: &Collected| (of.order_ns, of.locate_ns, of.collect_ns);
        let events: Vec<_> = collected(&made.activity()).iter().map(parts).collect();
        assert_eq!(events, [(50.0, 60.0, 15.0), (55.0, 60.0, 20.0)]);
    }

    #[test]
    fn an_event_that_was_not_collected_is_left_out() {
        let mut made = Made::new("ebif-1", &[(1, "trg-1"), (2, "ros-1")]);
        made.section("poll accept", 1, |_| ()).section("action receive", 0, |made| {
            made.about("push", (1, &[7]), 40, |_| ());
            made.about("event-reply", (2, &[7]), 40, |_| ());
        });
        assert!(collected(&made.activity()).is_empty());
    }
}

//! The ROB of a crate [DAQ1999 §4.6: Fig. 11 to 16].

use std::collections::BTreeSet;

use super::activity::{Activity, Pass};
use super::figure::{Conclusion, Distribution, Figure, Row, histogram};
use super::{DOMINATES, GROUP};
use crate::error::StudyError;
use partition::human::{percent, si, time};

/// Of a crate of two ROBs.
pub(super) fn figures(rob: &Activity) -> Result<Vec<Figure>, StudyError> {
    Ok(vec![turns(rob)?, input(rob)?, formatting(rob)?, polling(rob)?, control(rob)?, discarding(rob)?])
}

fn turns(rob: &Activity) -> Result<Figure, StudyError> {
    let passes = rob.passes();
    let of_kind = |busy: bool| passes.iter().filter(move |pass| pass.is_busy == busy).map(Pass::ns);
    let (idle, busy) = (rob.seen("idle passes", of_kind(false))?, rob.seen("passes with work", of_kind(true))?);
    let of = [
        Distribution { what: "idle", given_us: &[2.0], times: &idle },
        Distribution { what: "with Action functions", given_us: &[5.8], times: &busy },
    ];
    let (passes_ns, events) = rob.busy_total(ACCEPT);
    let event_ns = passes_ns / events.max(1.0);
    let actions_ns = rob.actions_ns() / rob.calm_total(ACCEPT).1.max(1.0);
    let mut rows: Vec<Row> = of.iter().map(Distribution::row).collect();
    rows.push(Row::time("passes with work, for an event", &[5.8], event_ns));
    rows.push(Row::time("of these, Action functions", &[], actions_ns));
    rows.push(Row::number("events in a second of passes with work", "190 kHz", si(1e9 / event_ns.max(1.0), "Hz")));
    Ok(Figure {
        number: 11,
        about: "Passes over all tasks of a ROB: four in the paper, nine here. A pass with work handles one event in the paper, and all that \
                are there here. The kernel is asked for messages between two passes: that time is in none. With each function \
                stamped, the stamps are a good part of an idle pass.",
        plots: vec![histogram("Fig. 11: passes of a ROB", &of)],
        rows,
        conclusion: Conclusion {
            of_the_paper: "The Poll functions take less than 1 µs.",
            holds: Some(idle.median() < IDLE_NS),
            because: format!("a pass without work takes {}, stamps included", time(idle.median() / 1e9)),
        },
    })
}

fn input(rob: &Activity) -> Result<Figure, StudyError> {
    let polls = rob.polls("work", false)?;
    let action = rob.times("fragment")?;
    let trigger = rob.seen("triggers", rob.handled(ACCEPT.0, ACCEPT.1).map(|of| of.event_ns()))?;
    let of = [
        Distribution { what: "(a) Poll", given_us: &[0.2], times: &polls },
        Distribution { what: "(b) Action, an event", given_us: &[2.5], times: &action },
        Distribution { what: "the same with its trigger", given_us: &[], times: &trigger },
    ];
    Ok(Figure {
        number: 12,
        about: "The IN task: the Poll function of `work` asks for pages, the section `fragment` takes a page, formats the fragment and \
                enters it in the table of events.",
        plots: vec![histogram("Fig. 12: the IN task", &of)],
        rows: of.iter().map(Distribution::row).collect(),
        conclusion: Conclusion {
            of_the_paper: "Functions of a ROB take at most 2 µs for an event (§5).",
            holds: Some(trigger.median() < FUNCTION_NS),
            because: format!("all of IN, with the trigger, takes {}", time(trigger.median() / 1e9)),
        },
    })
}

fn formatting(rob: &Activity) -> Result<Figure, StudyError> {
    let format = rob.times("format")?;
    let of = [Distribution { what: "page and format", given_us: &[], times: &format }];
    let share = rob.total_ns("format") / rob.total_ns("fragment").max(1.0);
    let mut rows: Vec<Row> = of.iter().map(Distribution::row).collect();
    rows.push(Row::number("part of the Action of IN", "–", percent(share)));
    Ok(Figure {
        number: 13,
        about: "Formatting within the Action of IN. Here it takes the page of the fragment, too. The text gives no number.",
        plots: vec![histogram("Fig. 13: formatting", &of)],
        rows,
        conclusion: Conclusion {
            of_the_paper: "The figure is an example of a part of IN, from which the text draws no conclusion.",
            holds: None,
            because: format!("formatting has {} of the Action of IN", percent(share)),
        },
    })
}

fn polling(rob: &Activity) -> Result<Figure, StudyError> {
    let (none, some) = (rob.polls("receive", false)?, rob.polls("receive", true)?);
    let of = [
        Distribution { what: "(a) no message", given_us: &[0.3], times: &none },
        Distribution { what: "(b) a message", given_us: &[1.0], times: &some },
    ];
    Ok(Figure {
        number: 14,
        about: "The Poll function of the TRG task, which is that of `receive` here.",
        plots: vec![histogram("Fig. 14: the Poll function of the TRG task", &of)],
        rows: of.iter().map(Distribution::row).collect(),
        conclusion: Conclusion {
            of_the_paper: "A Poll that finds a message takes longer, since it comes to the cache first.",
            holds: Some(some.median() > none.median()),
            because: format!("{} against {}", time(some.median() / 1e9), time(none.median() / 1e9)),
        },
    })
}

fn control(rob: &Activity) -> Result<Figure, StudyError> {
    let roi = rob.seen("ROI", rob.handled(ROI.0, ROI.1).map(|of| of.ns))?;
    let of_ten = rob.handled(CLEAR.0, CLEAR.1).filter(|of| of.events.len() == GROUP as usize);
    let group = rob.seen("groups of ten L2R", of_ten.map(|of| of.ns))?;
    let of = [
        Distribution { what: "an ROI", given_us: &[1.8], times: &roi },
        Distribution { what: "ten L2R", given_us: &[11.1], times: &group },
    ];
    let ratio = group.median() / roi.median().max(1.0);
    Ok(Figure {
        number: 15,
        about: "The Action function of the TRG task, by message, from its bytes on.",
        plots: vec![histogram("Fig. 15: the TRG task", &of)],
        rows: of.iter().map(Distribution::row).collect(),
        conclusion: Conclusion {
            of_the_paper: "Ten L2R take six times as long as an ROI, since ten events are deleted.",
            holds: Some(ratio > LONGER),
            because: format!("they take {ratio:.1} times as long; it holds above {LONGER}"),
        },
    })
}

fn discarding(rob: &Activity) -> Result<Figure, StudyError> {
    let accepted: BTreeSet<u64> = rob.handled(REQUEST.0, REQUEST.1).flat_map(|of| of.events).copied().collect();
    let discards = rob.handled(CLEAR.0, CLEAR.1).filter(|of| of.events.iter().any(|event| accepted.contains(event)));
    let discard = rob.seen("clears of accepted events", discards.map(|of| of.event_ns()))?;
    let request = rob.seen("requests of the EBIF", rob.handled(REQUEST.0, REQUEST.1).map(|of| of.event_ns()))?;
    let of = [
        Distribution { what: "a Discard", given_us: &[2.3], times: &discard },
        Distribution { what: "a request of the EBIF", given_us: &[], times: &request },
    ];
    let mut rows: Vec<Row> = of.iter().map(Distribution::row).collect();
    let tasks = tasks(rob);
    for (task, part) in tasks {
        rows.push(Row::number(format!("part of the three tasks: {task}"), "–", percent(part)));
    }
    let (most, part) = tasks.into_iter().max_by(|one, other| one.1.total_cmp(&other.1)).expect("there are three");
    Ok(Figure {
        number: 16,
        about: "The DC task. Discards come from the TRG here, in groups with L2Rs: each is an equal part of its group. The EBIF asks for \
                data by a message. The part of DC lacks the decoding of these requests.",
        plots: vec![histogram("Fig. 16: the DC task", &of)],
        rows,
        conclusion: Conclusion {
            of_the_paper: "No single task of a ROB dominates (§5).",
            holds: Some(part < DOMINATES),
            because: format!("{most} has {} of the three tasks; it holds below {}", percent(part), percent(DOMINATES)),
        },
    })
}

/// What part of the time of all three each task has.
fn tasks(rob: &Activity) -> [(&'static str, f64); 3] {
    let of_task = |kinds: &[(&str, &str)]| kinds.iter().map(|of| rob.calm_total(*of).0).sum::<f64>();
    let tasks = [("IN", of_task(&[ACCEPT])), ("TRG", of_task(&[CLEAR, ROI])), ("DC", of_task(&[REQUEST]))];
    let all: f64 = tasks.iter().map(|(_, ns)| ns).sum();
    tasks.map(|(task, ns)| (task, ns / all.max(1.0)))
}

/// Messages, and who sends them.
const ACCEPT: (&str, &str) = ("l1-accept", "trg");
const ROI: (&str, &str) = ("roi-request", "trg");
const CLEAR: (&str, &str) = ("clear", "trg");
const REQUEST: (&str, &str) = ("event-request", "ebif");
/// Of all Poll functions, and of a function for an event, as the paper says.
const IDLE_NS: f64 = 1000.0;
const FUNCTION_NS: f64 = 2000.0;
/// The paper has six: clearly more than one.
const LONGER: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::super::activity::tests::Made;
    use super::*;

    /// A pass without work, and one in which two events are read out, ten are cleared, one is looked at and one is collected.
    fn two_passes() -> Activity {
        let mut made = Made::new("ros-1", &[(1, "trg-1"), (2, "ebif-1")]);
        made.section("poll accept", 50, |_| ()).section("poll receive", 20, |_| ()).section("poll work", 10, |_| ());
        made.wait(5000).section("poll accept", 50, |_| ()).section("poll receive", 200, |_| ());
        made.section("action receive", 0, |made| {
            made.about("l1-accept", (1, &[20, 21]), 0, |made| {
                for _ in 0..2 {
                    made.section("fragment", 60, |made| {
                        made.section("format", 40, |_| ());
                    });
                }
            });
            made.about("roi-request", (1, &[20]), 250, |_| ());
            made.about("event-request", (2, &[10]), 150, |_| ());
            made.about("clear", (1, &[10, 11, 12, 13, 14, 15, 16, 17, 18, 19]), 400, |_| ());
        });
        made.section("poll work", 10, |_| ());
        made.activity()
    }

    #[test]
    fn all_figures_are_made_of_what_a_trace_says() {
        let figures = figures(&two_passes()).unwrap();
        let median = |figure: usize, row: usize| figures[figure].rows[row].here[0].clone();
        assert_eq!(figures.iter().map(|figure| figure.number).collect::<Vec<_>>(), [11, 12, 13, 14, 15, 16]);
        assert_eq!([median(0, 0), median(0, 2), median(0, 3), median(0, 4)], ["80 ns", "630 ns", "500 ns", "1.59 MHz"]);
        assert_eq!([median(1, 0), median(1, 1), median(1, 2)], ["10 ns", "100 ns", "100 ns"]);
        assert_eq!([median(2, 0), median(2, 1)], ["40 ns", "40 %"]);
        assert_eq!([median(3, 0), median(3, 1)], ["20 ns", "200 ns"]);
        assert_eq!([median(4, 0), median(4, 1)], ["250 ns", "400 ns"]);
        assert_eq!([median(5, 0), median(5, 1), median(5, 3)], ["40 ns", "150 ns", "65 %"]);
        let holds: Vec<_> = figures.iter().map(|figure| figure.conclusion.holds).collect();
        assert_eq!(holds, [Some(true), Some(true), None, Some(true), Some(false), Some(false)]);
    }

    #[test]
    fn what_a_trace_lacks_is_named() {
        let mut made = Made::new("ros-1", &[]);
        made.section("poll accept", 1, |_| ());
        let error = figures(&made.activity()).err().unwrap().to_string();
        assert!(
            error.contains("ros-1") && error.contains("passes with work") && error.contains("run.duration"),
            "{error}"
        );
    }
}

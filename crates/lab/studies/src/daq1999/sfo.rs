//! The SFO of a sub-farm crate [DAQ1999 §4.8: Fig. 22, 23].

use super::DOMINATES;
use super::activity::{Activity, Lane};
use super::figure::{Conclusion, Distribution, Figure, Row, histogram};
use super::sequence::{label_of, sequence};
use crate::error::StudyError;
use partition::human::{percent, time};

pub(super) fn figures(sfo: &Activity) -> Result<Vec<Figure>, StudyError> {
    Ok(vec![in_sequence(sfo)?, tasks(sfo)?])
}

fn in_sequence(sfo: &Activity) -> Result<Figure, StudyError> {
    let close = sfo.window(&[&LANES[2]])?;
    let wide = (close.0.saturating_sub(WIDE_NS / 4), close.1 + WIDE_NS);
    let below = "time; in the paper the Action of Input takes 3.1 ms";
    let labels: fn(f64) -> String = |place| label_of(&LANES, place);
    let all = sfo.actions_ns().max(1.0);
    let input = sfo.total_ns("action receive");
    let events = sfo.calm_total(EVENT).1.max(1.0);
    Ok(Figure {
        number: 22,
        about: "A pass of an SFO with events (b), and its surroundings (a). Input is `receive` here, which gives \
                events to the thread that writes files; Output is `work`, which says that they are written.",
        plots: vec![
            sequence(["Fig. 22 (a): events in an SFO", below], &LANES, labels, sfo, wide),
            sequence(["Fig. 22 (b): a pass of it", below], &LANES, labels, sfo, close),
        ],
        rows: vec![
            Row::time("Action functions, for an event", &[], all / events),
            Row::time("of these, input", &[3100.0], input / events),
        ],
        conclusion: Conclusion {
            of_the_paper: "Input takes the time of an SFO, since it has the network I/O.",
            holds: Some(input > all * DOMINATES),
            because: format!(
                "input has {} of its Action functions; it holds above {}",
                percent(input / all),
                percent(DOMINATES)
            ),
        },
    })
}

fn tasks(sfo: &Activity) -> Result<Figure, StudyError> {
    let [none, some] = [sfo.polls("receive", false)?, sfo.polls("receive", true)?];
    let [input, output_poll, output] =
        [sfo.times("action receive")?, sfo.polls("work", true)?, sfo.times("action work")?];
    let of = [
        Distribution { what: "Input Poll, no event", given_us: &[1900.0], times: &none },
        Distribution { what: "Input Poll, an event", given_us: &[2100.0], times: &some },
        Distribution { what: "Input Action", given_us: &[3100.0], times: &input },
        Distribution { what: "Output Poll, an event", given_us: &[], times: &output_poll },
        Distribution { what: "Output Action", given_us: &[], times: &output },
    ];
    let slowest = of.iter().map(|of| of.times.median()).fold(0.0, f64::max);
    Ok(Figure {
        number: 23,
        about: "The tasks of an SFO.",
        plots: vec![histogram("Fig. 23: tasks of an SFO", &of)],
        rows: of.iter().map(Distribution::row).collect(),
        conclusion: Conclusion {
            of_the_paper: "Functions of a sub-farm crate take some 3 ms, by standard network I/O.",
            holds: Some(slowest > MILLISECOND_NS),
            because: format!(
                "the slowest one has a median of {}; it holds above {}",
                time(slowest / 1e9),
                time(MILLISECOND_NS / 1e9)
            ),
        },
    })
}

/// An event of the event handler.
const EVENT: (&str, &str) = ("record", "efd");
const LANES: [Lane; 5] = [
    Lane { label: "input, Poll", section: "poll receive", from: "" },
    Lane { label: "input, Action", section: "action receive", from: "" },
    Lane { label: "event", section: EVENT.0, from: EVENT.1 },
    Lane { label: "output, Poll", section: "poll work", from: "" },
    Lane { label: "output, Action", section: "action work", from: "" },
];
const WIDE_NS: u64 = 1_500_000;
const MILLISECOND_NS: f64 = 1e6;

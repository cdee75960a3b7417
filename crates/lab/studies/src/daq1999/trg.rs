//! The TRG of a crate [DAQ1999 §4.4: Fig. 4, 5, 6].

use super::GROUP;
use super::activity::{Activity, Lane};
use super::figure::{Conclusion, Distribution, Figure, Row, histogram};
use super::sequence::{label_of, sequence};
use crate::error::StudyError;
use partition::human::{percent, time};

/// Of a crate of four ROBs; what depends on their number is compared with one of two.
pub(super) fn figures(four: &Activity, two: &Activity) -> Result<Vec<Figure>, StudyError> {
    Ok(vec![in_sequence(four)?, tasks(four)?, messages(four, two)?])
}

fn in_sequence(trg: &Activity) -> Result<Figure, StudyError> {
    let (receiving, sending) = (trg.total_ns("action receive"), trg.total_ns("action flush"));
    let all = trg.actions_ns().max(1.0);
    let window = trg.window(&[&LANES[4], &LANES[5], &LANES[6]])?;
    let title = ["Fig. 4: a TRG", "time; in the paper a block of 111 messages takes 1.78 ms"];
    Ok(Figure {
        number: 4,
        about: "A pass of a TRG in which there are messages of all kinds. Task1 is `receive` here, which also handles the messages; Task2 \
                is `flush`, which sends.",
        plots: vec![sequence(title, &LANES, |place| label_of(&LANES, place), trg, window)],
        rows: vec![
            Row::number("part of all Action functions: receiving and handling", "–", percent(receiving / all)),
            Row::number("part of all Action functions: sending", "most", percent(sending / all)),
        ],
        conclusion: Conclusion {
            of_the_paper: "The dominant feature is the Action function of Task2, which sends messages.",
            holds: Some(sending > receiving),
            because: format!("sending has {} of the Action functions", percent(sending / all)),
        },
    })
}

fn tasks(trg: &Activity) -> Result<Figure, StudyError> {
    let [idle, found] = [trg.polls("receive", false)?, trg.polls("receive", true)?];
    let [receive, flush_poll, flush] =
        [trg.times("action receive")?, trg.polls("flush", true)?, trg.times("action flush")?];
    let of = [
        Distribution { what: "(a) Task1 Poll, no work", given_us: &[], times: &idle },
        Distribution { what: "(a) Task1 Poll, work", given_us: &[], times: &found },
        Distribution { what: "(b) Task1 Action", given_us: &[], times: &receive },
        Distribution { what: "(c) Task2 Poll, work", given_us: &[], times: &flush_poll },
        Distribution { what: "(d) Task2 Action", given_us: &BLOCK_US, times: &flush },
    ];
    let block_ns = trg.actions_ns() / handled(trg).max(1.0) * BLOCK;
    let slowest = [&idle, &found, &flush_poll].map(|times| times.at(MOST)).into_iter().fold(0.0, f64::max);
    let mut rows: Vec<Row> = of.iter().map(Distribution::row).collect();
    rows.push(Row::time("all Action functions, for a block of 111 messages", &BLOCK_US, block_ns));
    Ok(Figure {
        number: 5,
        about: "The tasks of a TRG. In the paper Task2 sends a block of 111 messages (1 L2A, 100 L2R, 10 ROI) at a time; here it sends \
                what has gathered.",
        plots: vec![histogram("Fig. 5: tasks of a TRG", &of)],
        rows,
        conclusion: Conclusion {
            of_the_paper: "Poll functions take less than 1.5 µs, since they use local variables only.",
            holds: Some(slowest < POLL_NS),
            because: format!("99 % of each Poll function take at most {}", time(slowest / 1e9)),
        },
    })
}

/// L2A, L2R and ROI.
fn handled(trg: &Activity) -> f64 {
    [L2A, L2R, ROI].into_iter().map(|of| trg.calm_total(of).1).sum()
}

fn messages(four: &Activity, two: &Activity) -> Result<Figure, StudyError> {
    let times = |trg: &Activity, what, (kind, from)| trg.seen(what, trg.handled(kind, from).map(|of| of.ns));
    let (l2a, roi) = (times(four, "L2A", L2A)?, times(four, "ROI", ROI)?);
    let share = |trg: &Activity, shares| trg.seen("L2R", trg.handled(L2R.0, L2R.1).map(|of| of.event_ns() * shares));
    let (l2r, of_two) = (share(four, 1.0)?, share(two, 1.0)?);
    let group = share(four, f64::from(GROUP))?;
    let of = [
        Distribution { what: "(a) L2A", given_us: &[], times: &l2a },
        Distribution { what: "(b) an L2R's share", given_us: &[15.0], times: &l2r },
        Distribution { what: "(c) ROI", given_us: &[], times: &roi },
    ];
    let mut rows: Vec<Row> = of.iter().map(Distribution::row).collect();
    rows.push(Distribution { what: "ten shares of an L2R", given_us: &[], times: &group }.row());
    rows.push(Distribution { what: "an L2R's share, before two ROBs", given_us: &[], times: &of_two }.row());
    let ratio = l2r.median() / of_two.median().max(1e-3);
    Ok(Figure {
        number: 6,
        about: "What a TRG makes of a message, from its bytes to the messages that follow from it. The peak of the paper is the moving of \
                one L2R to a stack.",
        plots: vec![histogram("Fig. 6: messages in a TRG", &of)],
        rows,
        conclusion: Conclusion {
            of_the_paper: "Handling grows with the number of ROBs, since there is no broadcast.",
            holds: Some(ratio > GROWS),
            because: format!(
                "an L2R takes {ratio:.2} times as long before four ROBs as before two; it holds above {GROWS}"
            ),
        },
    })
}

/// Orders to push, in the words of the paper; each with who sends it.
const L2A: (&str, &str) = ("push", "dfm");
const L2R: (&str, &str) = ("clear", "dfm");
const ROI: (&str, &str) = ("roi-request", "l2pu");
const LANES: [Lane; 7] = [
    Lane { label: "Task1 Poll", section: "poll receive", from: "" },
    Lane { label: "Task1 Action", section: "action receive", from: "" },
    Lane { label: "Task2 Poll", section: "poll flush", from: "" },
    Lane { label: "Task2 Action", section: "action flush", from: "" },
    Lane { label: "L2A", section: L2A.0, from: L2A.1 },
    Lane { label: "L2R", section: L2R.0, from: L2R.1 },
    Lane { label: "ROI", section: ROI.0, from: ROI.1 },
];
const BLOCK: f64 = 111.0;
const BLOCK_US: [f64; 2] = [1780.0, 1950.0];
const POLL_NS: f64 = 1500.0;
const MOST: f64 = 0.99;
/// Twice as many ROBs would take twice as long.
const GROWS: f64 = 1.5;

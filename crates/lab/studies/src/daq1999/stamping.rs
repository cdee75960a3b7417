//! What a time stamp takes, and the scheduler between two functions [DAQ1999 §4.2, §4.3: Fig. 2, 3].

use stamps::recorder::{arm, disarm, drain};
use stamps::{NOWHERE, Section};
use traces::Costs;

use super::activity::Activity;
use super::figure::{Conclusion, Distribution, Figure, Row, aimed, histogram, time_of};
use super::times::Times;
use crate::error::StudyError;

/// What was measured of stamps, without a partition.
pub(super) struct Stamping {
    /// From one to the next of stamps back to back.
    stamp: Times,
    costs: Costs,
}

/// What an application shows of the scheduler.
pub(super) struct Between {
    name: &'static str,
    to_action: Times,
    to_poll: Times,
}

impl Between {
    pub(super) fn of(name: &'static str, activity: &Activity) -> Result<Self, StudyError> {
        Ok(Self { name, to_action: activity.poll_to_action()?, to_poll: activity.action_to_poll()? })
    }
}

impl Stamping {
    pub(super) fn measure() -> Result<Self, StudyError> {
        let costs = Costs::measure()?;
        Ok(Self { stamp: back_to_back(), costs })
    }

    /// By which times of live runs are corrected, as in the paper.
    fn correction_ns(&self) -> f64 {
        (median(&self.costs.armed) - median(&self.costs.alone)).max(0.0)
    }

    /// Fig. 2 and 3; of at least one application.
    pub(super) fn figures(&self, applications: &[Between]) -> [Figure; 2] {
        [self.stamps(), self.scheduler(applications)]
    }

    fn stamps(&self) -> Figure {
        let of = [Distribution { what: "stamp, back to back", given_us: &[0.25, 1.2], times: &self.stamp }];
        let unarmed_ns = (median(&self.costs.unarmed) - median(&self.costs.alone)).max(0.0);
        let armed_ns = self.correction_ns();
        Figure {
            number: 2,
            about: "Time stamps, 10,000 back to back; the paper gives the average and the largest fluctuation.",
            plots: vec![histogram("Fig. 2: the time stamp", &of)],
            rows: vec![
                of[0].row(),
                Row::time(aimed("stamp, armed, in bursts", ARMED_NS, armed_ns), &[0.25], armed_ns),
                Row::time(aimed("stamp, unarmed, in bursts", UNARMED_NS, unarmed_ns), &[], unarmed_ns),
            ],
            conclusion: Conclusion {
                of_the_paper: "The overhead of stamps is not significant for measurements above a few microseconds.",
                holds: Some(armed_ns < PART * FEW_NS),
                because: format!("a stamp takes {}; it holds below {}", time_of(armed_ns), time_of(PART * FEW_NS)),
            },
        }
    }

    fn scheduler(&self, applications: &[Between]) -> Figure {
        let stamp_ns = self.correction_ns();
        let all = |of: fn(&Between) -> &Times| {
            let times = Times::merged(applications.iter().map(of)).expect("there is an application, which has some");
            times.less(stamp_ns)
        };
        let (enter, leave) = (all(|of| &of.to_action), all(|of| &of.to_poll));
        let median = |of: &Between| [&of.to_action, &of.to_poll].map(|times| times.less(stamp_ns).median());
        let medians: Vec<(&str, [f64; 2])> = applications.iter().map(|of| (of.name, median(of))).collect();
        let of = [
            Distribution { what: "(a) from Poll to Action", given_us: &[0.2], times: &enter },
            Distribution { what: "(b) from Action to the next Poll", given_us: &[0.3], times: &leave },
        ];
        let row = |of: &Distribution<'_>| {
            let what = aimed(of.what, TRANSITION_NS, of.times.median());
            Row { what, ..of.row() }
        };
        let mut rows: Vec<Row> = of.iter().map(row).collect();
        for (name, [to_action, to_poll]) in &medians {
            let here = format!("{}, {}", time_of(*to_action), time_of(*to_poll));
            rows.push(Row::number(format!("medians of {name}, (a) and (b)"), "–", here));
        }
        if let Some(idle) = Times::of(self.costs.idle.iter().copied()) {
            rows.push(Row::time(aimed("pass of four idle tasks, unarmed", IDLE_NS, idle.median()), &[], idle.median()));
        }
        let (least, most) =
            medians.iter().map(|(_, [to_action, _])| *to_action).fold((f64::INFINITY, 0.0), |ends, ns| {
                let (least, most): (f64, f64) = ends;
                (least.min(ns), most.max(ns))
            });
        Figure {
            number: 3,
            about: "From the end of a function to the beginning of the next one, in all IOMs, less what a stamp takes. \
                    The aim is one of the median.",
            plots: vec![histogram("Fig. 3: the scheduler between two functions", &of)],
            rows,
            conclusion: Conclusion {
                of_the_paper: "These times are, to first order, independent of IOM and task.",
                holds: Some(most - least <= ALIKE_NS),
                because: format!(
                    "medians of (a) are {} to {}; it holds if they differ by at most {}",
                    time_of(least),
                    time_of(most),
                    time_of(ALIKE_NS)
                ),
            },
        }
    }
}

fn median(times: &[f64]) -> f64 {
    Times::of(times.iter().copied()).map_or(0.0, |times| times.median())
}

/// The method of the paper.
fn back_to_back() -> Times {
    arm(2 * STAMPS);
    (0..STAMPS as u64).for_each(|event| stamps::enter(Section(0), NOWHERE, NOWHERE, Some(event)));
    disarm();
    let threads = drain().into_iter().map(|thread| thread.stamps);
    let ours = threads.max_by_key(Vec::len).unwrap_or_default();
    let between = ours.windows(2).map(|pair| pair[1].at_ns.saturating_sub(pair[0].at_ns) as f64);
    Times::of(between).expect("stamps were armed")
}

const STAMPS: usize = 10_000;
/// Aims of stamps and of the scheduler.
const ARMED_NS: f64 = 25.0;
const UNARMED_NS: f64 = 1.0;
const TRANSITION_NS: f64 = 50.0;
const IDLE_NS: f64 = 200.0;
/// What the paper calls a few microseconds, and what part of it is not significant.
const FEW_NS: f64 = 3000.0;
const PART: f64 = 0.1;
/// The resolution of the clock of stamps differs from machine to machine: some nanoseconds say nothing.
const ALIKE_NS: f64 = 50.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_back_to_back_take_some_time_each() {
        let times = back_to_back();
        assert_eq!(times.count(), STAMPS - 1);
        assert!(times.mean() > 0.0);
    }
}

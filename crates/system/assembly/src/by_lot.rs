//! Level-2 steering that decides by lot.

use base::random::unit_of_event;
use configuration::Strategy as Configured;
use dataflow::component::{Steer, Steered};
use dataflow::level2::steering::{Skeleton, Strategy};

use crate::Assembly;

/// The skeleton of level-2 steering, which decides without looking at data. It may ask for data of a part of all events alone.
#[derive(Clone, Debug, PartialEq)]
pub struct ByLot {
    asking: Skeleton,
    at_once: Skeleton,
    /// Part of the events of which data are asked for, 0–1.
    asked: f64,
}

impl ByLot {
    /// Runs one step. The result of an accepted event is empty: a driver puts its own fragment in.
    pub fn step(&self, steer: &Steer) -> Steered {
        let is_asked = || unit_of_event(steer.event.event, self.asking.seed ^ ASKED) < self.asked;
        if self.asked >= 1.0 || is_asked() { self.asking.step(steer) } else { self.at_once.step(steer) }
    }
}

impl Assembly {
    /// The steering of level 2 where no menu is.
    pub fn skeleton(&self) -> ByLot {
        let l2pu = self.partition.l2pu.clone().unwrap_or_default();
        let (robs_per_step, accept) = (l2pu.robs_per_step as usize, l2pu.accept.as_f64());
        let (strategy, asked) = match l2pu.strategy {
            Configured::Generate => (Strategy::Generate { robs_per_step, accept }, l2pu.asked.as_f64()),
            Configured::TwoStep => (Strategy::TwoStep { robs_per_step, step_accept: l2pu.step_accept.as_f64() }, 1.0),
            Configured::None | Configured::Menu | Configured::Sink => (Strategy::None { accept }, 1.0),
        };
        let of = |strategy| Skeleton { strategy, robs: self.robs.concat(), seed: self.partition.run.seed };
        ByLot { asking: of(strategy), at_once: of(Strategy::None { accept }), asked }
    }
}

/// The lot that accepts is another one.
const ASKED: u64 = 0x000a_54ed;

#[cfg(test)]
mod tests {
    use base::ids::EventId;
    use configuration::Partition;
    use dataflow::message::EventInfo;

    use super::*;

    fn asked_and_accepted(more: &str) -> (usize, usize) {
        let text = format!(
            "partition.name = \"lot\"\nlevel1 = {{}}\nl2sv = {{}}\ndfm.input = \"level2\"\nros.count = 2\nsfi.count = 1\n\
             l2pu = {{ strategy = \"generate\", accept = 0.1, robs_per_step = 1{more} }}\n"
        );
        let steering = Assembly::new(Partition::parse("lot", &text, &[]).unwrap(), vec![vec![1], vec![2]]).skeleton();
        let (mut asked, mut accepted) = (0, 0);
        for event in 0..10_000 {
            let event = EventInfo { event: EventId(event), ..EventInfo::default() };
            let step = |step| Steer { event, worker: 0, step, rois: Vec::new(), data: Vec::new(), missing: 0 };
            let decided = match steering.step(&step(0)) {
                Steered::Ask(_) => {
                    asked += 1;
                    steering.step(&step(1))
                }
                decided => decided,
            };
            accepted += usize::from(matches!(decided, Steered::Decide(selection) if selection.accept));
        }
        (asked, accepted)
    }

    #[test]
    fn data_of_a_part_of_the_events_are_asked_for_and_as_many_are_accepted() {
        let (asked, accepted) = asked_and_accepted("");
        assert!(asked == 10_000 && (900..1100).contains(&accepted), "{asked}, {accepted}");
        let (asked, accepted) = asked_and_accepted(", asked = 0.2");
        assert!((1850..2150).contains(&asked) && (900..1100).contains(&accepted), "{asked}, {accepted}");
    }
}

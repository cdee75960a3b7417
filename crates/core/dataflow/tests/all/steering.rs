//! What the skeleton of steering asks for and decides.

use base::ids::EventId;
use dataflow::component::{Steer, Steered};
use dataflow::level2::steering::{Skeleton, Strategy};
use dataflow::message::EventInfo;

fn accepted(strategy: Strategy, events: u64) -> (usize, usize) {
    let skeleton = Skeleton { strategy, robs: (0..10).collect(), seed: 3 };
    let (mut accepted, mut asked) = (0, 0);
    for event in 0..events {
        let event = EventInfo { event: EventId(event), ..EventInfo::default() };
        for step in 0.. {
            let steer = Steer { event, worker: 0, step, rois: Vec::new(), data: Vec::new(), missing: 0 };
            match skeleton.step(&steer) {
                Steered::Ask(robs) => asked += robs.len(),
                Steered::Decide(selection) => {
                    accepted += usize::from(selection.accept);
                    break;
                }
            }
        }
    }
    (accepted, asked)
}

#[test]
fn two_steps_accept_one_percent_and_ask_in_both() {
    let (accepted, asked) = accepted(Strategy::TwoStep { robs_per_step: 2, step_accept: 0.1 }, 20_000);
    assert!((120..280).contains(&accepted), "{accepted}");
    assert!((2 * 21_500..2 * 22_500).contains(&asked), "{asked}");
}

#[test]
fn no_processing_asks_for_nothing() {
    assert_eq!(accepted(Strategy::None { accept: 1.0 }, 100), (100, 0));
    let (accepted, asked) = accepted(Strategy::Generate { robs_per_step: 3, accept: 0.5 }, 1000);
    assert_eq!(asked, 3000);
    assert!((420..580).contains(&accepted), "{accepted}");
}

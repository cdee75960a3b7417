//! Times the selection on samples that are in memory:
//! `cargo run --release --example time_per_event -- DETECTOR.json SAMPLE.parquet…` prints ns per event, the least of some
//! repetitions.

#[path = "../tests/all/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use common::{detector, level2, reference_menu, sample};
use trigger::{Filter, Steering};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let detector_file = arguments.next().expect("a detector description and samples");
    let physics = Path::new(&detector_file).parent().expect("the description is a file");
    let menu = reference_menu(&detector(physics, "rob160"));
    let mut steering = Steering::new(menu.clone());
    let mut filter = Filter::new(menu);
    for path in arguments {
        let events = sample::accepted(Path::new(&path));
        let slices: Vec<_> = events.iter().map(sample::Event::slices).collect();
        let level2_ns = least_ns(events.len(), || {
            events.iter().for_each(|event| {
                black_box(level2(&mut steering, event));
            });
        });
        let filter_ns = least_ns(events.len(), || {
            events.iter().zip(&slices).for_each(|(event, slices)| {
                black_box(filter.decide(event.number, slices));
            });
        });
        println!("{path}: {} events, level 2 {level2_ns} ns, event filter {filter_ns} ns per event", events.len());
    }
}

#[expect(clippy::disallowed_methods, reason = "this program measures time")]
fn least_ns(events: usize, mut run: impl FnMut()) -> u128 {
    let once = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_nanos() / events as u128
    };
    (0..REPETITIONS).map(once).min().expect("at least one repetition")
}

const REPETITIONS: u32 = 20;

//! The physics samples, the reference menu, and a level 2 that gets exactly what it asks for.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test uses a part of it")]

pub mod chains;
pub mod handmade;
pub mod regroup;
pub mod sample;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trigger::{Cuts, Decision, Detector, Menu, Next, Steering};

use sample::Event;

pub fn physics(test: &str) -> Option<PathBuf> {
    testkit::shared(test, "physics")
}

pub fn detector(physics: &Path, layout: &str) -> Arc<Detector> {
    let text = fs::read_to_string(physics.join("detector.json")).unwrap();
    Arc::new(Detector::from_json(&text, layout).unwrap())
}

pub fn reference_menu(detector: &Arc<Detector>) -> Arc<Menu> {
    Arc::new(Menu::new(Arc::clone(detector), &chains::reference_chains(), Cuts::default()).unwrap())
}

/// Answers every request completely; checks that requests are rising and never repeat.
pub fn level2(steering: &mut Steering, event: &Event) -> Decision {
    steering.begin(event.number, event.items, &event.rois);
    let mut next = steering.step(&mut std::iter::empty());
    let mut asked = Vec::new();
    loop {
        match next {
            Next::Decided(decision) => {
                assert_eq!(decision.requested_robs as usize, asked.len());
                return decision;
            }
            Next::Ask(robs) => {
                assert!(!robs.is_empty() && robs.is_sorted_by(|a, b| a < b), "{robs:x?}");
                assert!(robs.iter().all(|rob| !asked.contains(rob)), "{robs:x?} after {asked:x?}");
                asked.extend_from_slice(&robs);
                next = steering.step(&mut robs.iter().map(|rob| (*rob, event.payload(*rob).clone())));
            }
        }
    }
}

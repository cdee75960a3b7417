//! Event selection: menu, steering and feature extraction, as pure functions of fragment data.
//!
//! A [`Menu`] of chains is resolved against a [`Detector`]. Level 2 runs it on regions of interest with
//! [`Steering`], which says step by step which ROBs it needs. The event filter runs it again on built events with
//! [`Filter`]. Neither does any I/O, reads a clock or draws random numbers: the same event gets the same
//! [`Decision`] everywhere.
//!
//! ```
//! use std::sync::Arc;
//! use trigger::{AlgorithmSpec, ChainSpec, Cuts, Detector, Menu, Next, Roi, Steering};
//!
//! # let Some(path) = testkit::shared("the_first_example", "physics/detector.json") else { return Ok(()) };
//! # let text = std::fs::read_to_string(path)?;
//! let detector = Arc::new(Detector::from_json(&text, "rob160")?);
//! let algorithm = AlgorithmSpec::Electron { threshold: "EM20I".into(), et_mev: 25_000, count: 1 };
//! let chain = ChainSpec {
//!     name: "e25i".into(),
//!     item: "L1_EM20I".into(),
//!     algorithm,
//!     prescale: 1,
//!     pass_through: 0,
//!     filter_et_mev: None,
//! };
//! let menu = Arc::new(Menu::new(detector, &[chain], Cuts::default())?);
//!
//! let mut steering = Steering::new(menu);
//! let roi = Roi { kind: 0, ieta: 25, iphi: 10, thresholds: 1 << 6, ..Roi::default() };
//! steering.begin(1, 1 << 3, &[roi]);
//! let Next::Ask(robs) = steering.step(&mut std::iter::empty()) else { panic!("an electron needs data") };
//! assert_eq!(robs, [0x0041_0021, 0x0041_0029]);
//! // None of them comes.
//! let Next::Decided(decision) = steering.step(&mut std::iter::empty()) else { panic!("nothing more to ask") };
//! assert!(!decision.accept());
//! assert_eq!(decision.missing_robs, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod angle;
mod cuts;
mod data;
mod detector;
mod electron;
mod event_results;
mod feature;
mod filter;
mod geography;
mod in_hand;
mod jet;
mod menu;
mod missing_et;
mod muon;
mod object;
mod payload;
mod regions;
mod result;
mod sequence;
mod steering;
pub mod windows;

pub use cuts::{BadCut, Cuts};
pub use dataflow::message::Roi;
pub use detector::{Detector, DetectorError, RoiKind};
pub use event_results::EventResults;
pub use feature::{EmValues, Feature, Values};
pub use filter::{BadFragment, Filter};
pub use geography::{Grid, Modules, SubSystem, Window};
pub use menu::{AlgorithmSpec, CHAINS_MAX, ChainSpec, Menu, MenuError};
pub use missing_et::TransverseEnergy;
pub use payload::{BadPayload, CentralTrigger, DataType, Records, Track};
pub use result::{
    BadResult, Decision, FILTER_RESULT, FilterDecision, FilterResult, LEVEL2_RESULT, LEVEL2_WORDS, REASON_BYTES_MAX,
    passed_of_trigger_info, trigger_info,
};
pub use steering::{Next, Steering};

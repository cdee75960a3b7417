//! What level 1 said of a recorded event, if its own fragments are among those recorded.

use dataflow::message::Roi;
use eformat::replay::Child;
use eformat::{EventFormat, Rod};
use trigger::{DataType, Records};

/// Appends the regions of interest of the fragments of L1CALO_ROI (0x73) and L1MUON_ROI (0x76). Returns the items after
/// their prescale of CTP (0x77), 0 if it is not there. Fragments with other content than those of the physics samples
/// are left out.
pub(super) fn level1_of(format: EventFormat, event: &[u8], children: &[Child], rois: &mut Vec<Roi>) -> u32 {
    let mut items = 0;
    let first = rois.len();
    for child in children.iter().filter(|child| child.occurrence == 0) {
        let sub_detector = child.source_id.0 >> 16;
        if !matches!(sub_detector, CALORIMETER_ROIS | MUON_ROIS | CENTRAL_TRIGGER) {
            continue;
        }
        let Ok(rod) = Rod::parse(format, &event[child.range.clone()]) else { continue };
        if rod.size_problem().is_some() {
            continue;
        }
        if sub_detector == CENTRAL_TRIGGER {
            let words = Records::parse(rod.data(), DataType::CentralTrigger).and_then(Records::central_trigger);
            items = words.map_or(items, |words| words.items);
        } else if let Ok(records) = Records::parse(rod.data(), DataType::Rois) {
            rois.extend(records.rois());
        }
    }
    // The order of the samples; within a kind the fragments have it.
    rois[first..].sort_by_key(|roi| roi.kind);
    items
}

const CALORIMETER_ROIS: u32 = 0x73;
const MUON_ROIS: u32 = 0x76;
const CENTRAL_TRIGGER: u32 = 0x77;

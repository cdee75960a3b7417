//! The parameters of read-out crates.

use base::ids::Role;
use configuration::{BuildingMode, Roc, RosInput, SamplingStage};
use dataflow::readout::ros::RosParameters;
use dataflow::roc::ebif::EbifParameters;
use dataflow::roc::trg::TrgParameters;

use crate::Assembly;

impl Assembly {
    /// A read-out system of a crate has triggers and clears from the TRG, and pushes nothing itself.
    pub(crate) fn in_crate(&self, index: usize, parameters: RosParameters) -> RosParameters {
        match self.partition.crate_of(index) {
            None => parameters,
            Some(place) => {
                let trg = self.of(Role::Trg)[place];
                RosParameters { level1: Some(trg), dfm: trg, push: None, ..parameters }
            }
        }
    }

    pub(crate) fn trg(&self, place: usize) -> TrgParameters {
        let roc = self.roc();
        TrgParameters {
            systems: self.systems_of(place),
            ebif: self.of(Role::Ebif).get(place).copied(),
            level1: self.level1_node().expect("checked: a crate needs level 1"),
            in_flight: self.in_flight(),
            dfm: self.clearer(),
            group: roc.clear_group as usize,
            group_age: roc.clear_age.duration(),
            roi_timeout: self.collecting_timeout(),
            has_sources: self.partition.ros.input == RosInput::Links,
            by_table: self.partition.dfm.building == BuildingMode::PushByNumber,
            late: false,
        }
    }

    pub(crate) fn ebif(&self, place: usize) -> EbifParameters {
        let ros = self.ros(place);
        EbifParameters {
            systems: self.systems_of(place),
            push: ros.push,
            waiting_max: ros.pages_per_rob,
            request_timeout: self.collecting_timeout(),
            group_bytes_max: ros.group_bytes_max,
            sampling: self.sampling(SamplingStage::Ebif),
        }
    }

    fn roc(&self) -> Roc {
        self.partition.roc.clone().expect("a TRG is part of a crate")
    }

    /// A read-out system answers within its time-out; its answer is on the way as long, at most.
    fn collecting_timeout(&self) -> core::time::Duration {
        2 * self.partition.ros.request_timeout.duration()
    }
}

//! What pushing data demands: of `dfm.building` and `[ros.push]`.

use super::{Checker, MEMORY_MAX, MEMORY_MIN, word};
use crate::tables::{BuildingMode, SfiAssignment};
use crate::units::Size;

impl Checker<'_> {
    pub(super) fn push(&mut self) {
        let p = self.partition;
        let building = p.dfm.building;
        if building == BuildingMode::Pull {
            if p.ros.push.is_some() {
                let message = "only for dfm.building = \"push\" and \"push-by-number\", which is \"pull\"".to_owned();
                self.problem(&["ros.push", "dfm.building"], message);
            }
            return;
        }
        if p.l2pu.as_ref().is_some_and(|l2pu| l2pu.phased) {
            let message =
                format!("{} cannot go with l2pu.phased: it sends again what level 2 has collected", word(building));
            self.problem(&["dfm.building", "l2pu.phased"], message);
        }
        if building == BuildingMode::PushByNumber {
            self.push_by_number();
        }
        let Some(push) = &p.ros.push else { return };
        if let Some(window) = push.window.filter(|window| !(MEMORY_MIN..=MEMORY_MAX).contains(window)) {
            self.problem(&["ros.push.window"], format!("expected {MEMORY_MIN} to {MEMORY_MAX}, found {window}"));
        }
        let sources = u64::from(p.sources());
        if push.link_per_second.is_some_and(|link| link.bytes() < sources) {
            let message = format!(
                "expected at least {} for {sources} sources, found {}; without the key there is no limit",
                Size::from_bytes(sources),
                push.link_per_second.unwrap_or_default()
            );
            self.problem(&["ros.push.link_per_second", "ros.count"], message);
        }
        if push.link_per_second.is_none() && push.burst.bytes() > 0 {
            self.problem(&["ros.push.burst"], "only with ros.push.link_per_second, which is absent".to_owned());
        }
    }

    /// The read-out systems must know of an event before the DFM has chosen its builder.
    fn push_by_number(&mut self) {
        let p = self.partition;
        let building = word(BuildingMode::PushByNumber);
        if p.l2sv.is_some() {
            let message = format!(
                "{building} cannot go with [l2sv]: events that level 2 rejects would be sent; expected \"push\""
            );
            self.problem(&["dfm.building", "l2sv"], message);
        } else if p.level1.is_none() {
            let message = format!(
                "{building} needs the table [level1], which is absent: read-out systems learn of events from it; \
                 expected \"push\""
            );
            self.problem(&["dfm.building", "level1"], message);
        }
        if p.dfm.assignment != SfiAssignment::RoundRobin {
            let message = format!(
                "{} cannot go with dfm.building = {building}: the number of an event says who builds it",
                word(p.dfm.assignment)
            );
            self.problem(&["dfm.assignment", "dfm.building"], message);
        }
    }
}

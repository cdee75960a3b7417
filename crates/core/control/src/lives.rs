//! What applications have counted in all their lives: a report tells of one.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use base::ids::NodeId;
use dataflow::report::Report;

/// The last reports of all lives of all applications.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lives {
    /// The newest of those that live.
    newest: BTreeMap<NodeId, Report>,
    /// Of each application, those of lives that are over, together.
    former: BTreeMap<NodeId, Report>,
    cut_short: BTreeSet<NodeId>,
}

impl Lives {
    /// A report of the life that is there. It replaces the one before.
    pub fn on_report(&mut self, node: NodeId, report: Report) {
        self.newest.insert(node, report);
    }

    /// A life has ended without a last word: what it has counted since its last report is not known.
    pub fn on_death(&mut self, node: NodeId) {
        self.cut_short.insert(node);
        if let Some(all) = self.of(node) {
            self.newest.remove(&node);
            self.former.insert(node, all);
        }
    }

    /// What an application has counted, as far as it has told.
    pub fn of(&self, node: NodeId) -> Option<Report> {
        match (self.newest.get(&node), self.former.get(&node)) {
            (Some(newest), Some(former)) => Some(newest.clone().after(former)),
            // Others may have told it of lives that had not reported.
            (Some(newest), None) => Some(newest.clone().after(&Report::of(newest.role, Vec::new()))),
            (None, former) => former.cloned(),
        }
    }

    /// The same of all applications that have told anything.
    pub fn all(&self) -> BTreeMap<NodeId, Report> {
        let nodes: BTreeSet<NodeId> = self.newest.keys().chain(self.former.keys()).copied().collect();
        nodes.into_iter().filter_map(|node| Some((node, self.of(node)?))).collect()
    }

    /// All that is known, for [`Lives::of_kept`]. Of each application there are the newest report of the life that is there, and what its
    /// former lives have counted together. The last word says whether one of these has ended without a last report.
    pub fn kept(&self) -> impl Iterator<Item = (NodeId, [Option<&Report>; 2], bool)> {
        let nodes: BTreeSet<&NodeId> = self.newest.keys().chain(self.former.keys()).chain(&self.cut_short).collect();
        let reports = |node| [self.newest.get(node), self.former.get(node)];
        nodes.into_iter().map(move |node| (*node, reports(node), self.cut_short.contains(node)))
    }

    /// The same as those that were kept.
    pub fn of_kept(kept: impl IntoIterator<Item = (NodeId, [Option<Report>; 2], bool)>) -> Self {
        let mut lives = Self::default();
        for (node, [newest, former], is_cut_short) in kept {
            newest.into_iter().for_each(|report| _ = lives.newest.insert(node, report));
            former.into_iter().for_each(|report| _ = lives.former.insert(node, report));
            lives.cut_short.extend(is_cut_short.then_some(node));
        }
        lives
    }

    /// Applications whose counts are lower bounds: a life of them has ended without a last word.
    pub fn cut_short(&self) -> &BTreeSet<NodeId> {
        &self.cut_short
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use base::ids::Role;
    use dataflow::message::BusyCause;
    use dataflow::report::{
        BlockCause, Blocked, ChainCount, Counters, L2svCounters, RosCounters, SfiCounters, SfoCounters,
    };

    const NODE: NodeId = NodeId(5);

    fn sfi(built_complete: u64) -> Report {
        Report::of(Role::Sfi, SfiCounters { built_complete, ..SfiCounters::default() }.to_values())
    }

    fn built(lives: &Lives) -> u64 {
        SfiCounters::total(lives.all().values()).built_complete
    }

    #[test]
    fn counts_of_all_lives_are_added_and_never_run_backwards() {
        let mut lives = Lives::default();
        lives.on_report(NODE, sfi(10));
        lives.on_report(NODE, sfi(30));
        assert_eq!((built(&lives), lives.cut_short().len()), (30, 0));
        lives.on_death(NODE);
        assert_eq!(built(&lives), 30, "before the next life has told anything");
        lives.on_report(NODE, sfi(2));
        assert_eq!(built(&lives), 32);
        lives.on_death(NODE);
        lives.on_death(NODE);
        lives.on_report(NODE, sfi(5));
        assert_eq!(built(&lives), 37, "a life without a report has no count");
        assert!(lives.cut_short().iter().eq([&NODE]));
    }

    #[test]
    fn what_a_later_life_is_told_of_former_ones_is_not_added_twice() {
        let mut lives = Lives::default();
        let l2sv = |received, late_decisions| {
            let counters = L2svCounters { received, rejected: received, late_decisions, ..L2svCounters::default() };
            Report::of(Role::L2sv, counters.to_values())
        };
        lives.on_report(NODE, l2sv(10, 1));
        lives.on_death(NODE);
        lives.on_report(NODE, l2sv(4, 0));
        let counted = |lives: &Lives| L2svCounters::total(lives.all().values());
        assert_eq!((counted(&lives).received, counted(&lives).late_decisions), (10, 1), "not told all yet");
        lives.on_report(NODE, l2sv(15, 2));
        assert_eq!((counted(&lives).rejected, counted(&lives).late_decisions), (15, 3));
    }

    #[test]
    fn a_recorder_finds_in_its_files_what_its_former_lives_had_counted() {
        let mut lives = Lives::default();
        let sfo = |recorded, bytes, taken_over, taken_over_bytes| {
            let counters = SfoCounters { recorded, bytes, taken_over, taken_over_bytes, ..SfoCounters::default() };
            Report::of(Role::Sfo, counters.to_values())
        };
        let counted = |lives: &Lives| {
            let SfoCounters { recorded, bytes, .. } = SfoCounters::total(lives.all().values());
            (recorded, bytes)
        };
        lives.on_report(NODE, sfo(100, 1000, 0, 0));
        lives.on_death(NODE);
        lives.on_report(NODE, sfo(0, 0, 0, 0));
        assert_eq!(counted(&lives), (100, 1000), "its files are not in hand yet");
        lives.on_report(NODE, sfo(5, 50, 120, 1200));
        assert_eq!(counted(&lives), (125, 1250));
        lives.on_death(NODE);
        lives.on_report(NODE, sfo(1, 10, 130, 1300));
        assert_eq!(counted(&lives), (131, 1310));
        let mut unheard = Lives::default();
        unheard.on_death(NODE);
        unheard.on_report(NODE, sfo(5, 50, 120, 1200));
        assert_eq!(counted(&unheard), (125, 1250));
    }

    #[test]
    fn what_a_recorder_had_told_before_its_death_hid_what_it_had_set_aside() {
        let mut lives = Lives::default();
        let sfo = |recorded, taken_over, unfinished| {
            let counters = SfoCounters { recorded, taken_over, unfinished, ..SfoCounters::default() };
            Report::of(Role::Sfo, counters.to_values())
        };
        lives.on_report(NODE, sfo(130, 0, 0));
        lives.on_death(NODE);
        lives.on_report(NODE, sfo(127, 130, 130));
        assert_eq!(SfoCounters::total(lives.all().values()).in_files().recorded, 127);
    }

    #[test]
    fn what_died_in_a_buffer_is_not_in_it() {
        let mut lives = Lives::default();
        let ros = |fragments_in, resident| {
            Report::of(Role::Ros, RosCounters { fragments_in, resident, ..RosCounters::default() }.to_values())
        };
        lives.on_report(NODE, ros(100, 40));
        lives.on_death(NODE);
        lives.on_report(NODE, ros(7, 3));
        let RosCounters { fragments_in, resident, .. } = RosCounters::total(lives.all().values());
        assert_eq!((fragments_in, resident), (107, 3));
    }

    #[test]
    fn times_chains_and_messages_are_added_as_well() {
        let mut lives = Lives::default();
        let report = |by: u16, time_ns: u64, chains: usize| {
            let blocked = Blocked { by: NodeId(by), cause: BlockCause::Busy(BusyCause::EventsInSystem), time_ns };
            let chains = vec![ChainCount { input: 3, passed: 1 }; chains];
            let mut report = Report { blocked: vec![blocked], chains, stale: 2, ..sfi(1) };
            report.latency_ns.record(time_ns);
            report.network.messages = 9;
            report
        };
        lives.on_report(NODE, report(1, 100, 2));
        lives.on_death(NODE);
        lives.on_report(NODE, report(2, 30, 1));
        lives.on_death(NODE);
        lives.on_report(NODE, report(1, 5, 1));
        let kept = lives
            .kept()
            .map(|(node, reports, is_cut_short)| (node, reports.map(Option::<&Report>::cloned), is_cut_short));
        assert_eq!(Lives::of_kept(kept), lives);
        let all = lives.of(NODE).unwrap();
        let times: BTreeMap<NodeId, u64> = all.blocked.iter().map(|blocked| (blocked.by, blocked.time_ns)).collect();
        assert_eq!(times, [(NodeId(1), 105), (NodeId(2), 30)].into());
        assert_eq!(all.chains, [ChainCount { input: 9, passed: 3 }, ChainCount { input: 3, passed: 1 }]);
        assert_eq!((all.stale, all.network.messages, all.latency_ns.max()), (6, 27, 100));
    }
}

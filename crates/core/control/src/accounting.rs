//! The account of a run (DESIGN §7): every event from level-1 accept to file. Custodian and receiver count
//! independently, and their counts are compared.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::controller::Application;
use base::ids::{NodeId, Role};
use dataflow::message::FileRecord;
use dataflow::report::{
    Counters, DfmCounters, EfdCounters, L2puCounters, L2svCounters, Level1Counters, Report, RosCounters, SfiCounters,
    SfoCounters,
};

/// The account; the fields are those of the run summary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounting {
    /// Level-1 events.
    pub level1: u64,
    /// Rejected by level 2.
    pub level2_rejected: u64,
    /// Accepted by level 2, forced ones included.
    pub level2_accepted: u64,
    /// Accepted by a level-2 time-out.
    pub level2_forced: u64,
    /// Accepted by level 2 without all the data that it had asked for, which it would else have rejected or not.
    pub level2_incomplete: u64,
    /// Died undecided, with a process or in a forced end.
    pub level2_lost: u64,
    /// Built with the data of all ROBs.
    pub built_complete: u64,
    /// Built with data missing.
    pub built_incomplete: u64,
    /// Accepted and not built.
    pub not_built: u64,
    /// Built, and died before the event filter decided.
    pub lost_after_build: u64,
    /// Rejected by the event filter.
    pub filter_rejected: u64,
    /// Accepted by the event filter.
    pub filter_accepted: u64,
    /// Sent to the debug stream.
    pub filter_debug: u64,
    /// Accepted by the event filter and not recorded.
    pub lost_in_recording: u64,
    /// Distinct events recorded.
    pub recorded: u64,
    /// Events in all files together.
    pub recorded_copies: u64,
    /// Events seen twice somewhere, and taken once.
    pub duplicates: u64,
    /// The sum of all differences that no death explains; 0 in a good run.
    pub residual: u64,
    /// Each of these differences, in words.
    pub differences: Vec<String>,
}

/// What the account is drawn up from.
#[derive(Clone, Copy, Debug)]
pub struct Books<'a> {
    /// All applications.
    pub applications: &'a [Application],
    /// The reports of those that live.
    pub reports: &'a BTreeMap<NodeId, Report>,
    /// All files, those recovered from a dead SFO included.
    pub files: &'a [FileRecord],
    /// Applications that died or restarted within the run: their counts are lost, and what they held may be.
    pub touched: &'a [NodeId],
    /// Whether the run was forced to end: what was in hand then is lost.
    pub forced: bool,
}

impl Books<'_> {
    /// Draws up the account.
    pub fn account(&self) -> Accounting {
        let mut account = Accounting::default();
        self.level2(&mut account);
        self.building(&mut account);
        self.filtering(&mut account);
        self.recording(&mut account);
        account
    }

    /// `level1 = rejected + accepted + lost`
    fn level2(&self, account: &mut Accounting) {
        let (level1, l2sv, dfm) = (self.level1(), self.l2sv(), self.dfm());
        let has_level2 = self.has(Role::L2sv);
        let dfm_knows = self.has(Role::Dfm) && self.lives(Role::Dfm);
        // What a dead DFM took over is known from those who gave it, or to whom it gave.
        (account.level2_forced, account.level2_incomplete) = if dfm_knows {
            (dfm.taken_forced, dfm.taken_incomplete)
        } else {
            // An L2SV may have died with its counts, and a DFM that has returned is told of the rest. If there is none, the L2PUs
            // know how often they went on without data: at least as often as events were decided so.
            let is_known = self.lives(Role::L2sv) || self.dfm_knows();
            let of_l2pus = if is_known { 0 } else { self.l2pu().incomplete };
            (l2sv.forced.max(dfm.taken_forced), l2sv.incomplete.max(dfm.taken_incomplete).max(of_l2pus))
        };
        (account.level2_rejected, account.level2_accepted) = if dfm_knows {
            (dfm.taken_rejected, dfm.taken_accepted)
        } else if has_level2 {
            // Of what an L2SV has taken with it, too, the event builders know what was built.
            let built = if self.lives(Role::L2sv) { 0 } else { self.built_at_least().max(dfm.taken_accepted) };
            (l2sv.rejected, l2sv.accepted.max(built))
        } else if self.has(Role::Level1) && self.lives(Role::Level1) {
            // An event that was slow was assigned to a second SFI, too: level 1 knows better.
            (0, level1.issued)
        } else {
            // A DFM that has returned goes on counting what it triggers where it was. If it has not, the event builders know
            // what they were given, some of it twice. The files know what was given to those that died.
            let triggered = if dfm.self_triggered > 0 { dfm.self_triggered } else { self.sfi().assigned };
            (0, triggered.max(self.triggers()).max(self.built_at_least()))
        };
        account.level2_incomplete = account.level2_incomplete.min(account.level2_accepted);
        let decided = sum([account.level2_rejected, account.level2_accepted]);
        account.level1 = if !self.has(Role::Level1) {
            decided
        } else if self.lives(Role::Level1) {
            level1.issued
        } else {
            decided.max(l2sv.received).max(self.triggers())
        };
        account.duplicates = sum([account.duplicates, dfm.duplicates]);
        let exact = self.are_exact(&[Role::Level1, Role::L2sv, Role::Dfm]);
        account.level2_lost = account.settle("level-1 events, against decisions", account.level1, decided, exact);
        if has_level2 && self.lives(Role::Dfm) {
            self.each_l2sv(account);
        }
        if dfm_knows && self.are_exact(&[Role::L2sv, Role::Dfm]) {
            let what = "accepted without all data by the L2SVs, against the DFM";
            account.settle(what, l2sv.incomplete, dfm.taken_incomplete, true);
        }
        if has_level2 && self.are_exact(&[Role::L2sv, Role::L2pu]) {
            self.l2pus(account);
        }
    }

    fn each_l2sv(&self, account: &mut Accounting) {
        for (node, report) in self.reports_of(Role::L2sv).filter(|(node, _)| !self.touched.contains(node)) {
            let own = L2svCounters::from_values(&report.counters);
            let name = self.name(node);
            if self.has(Role::Dfm) {
                let taken = self.peer_counts(Role::Dfm, node);
                let exact = self.are_exact(&[Role::L2sv, Role::Dfm]);
                account.settle(&format!("rejected by {name}, against the DFM"), own.rejected, taken[0], exact);
                account.settle(&format!("accepted by {name}, against the DFM"), own.accepted, taken[1], exact);
                account.settle(&format!("forced by {name}, against the DFM"), own.forced, taken[2], exact);
            }
            if self.lives(Role::Level1) {
                let sent = self.peer_counts(Role::Level1, node)[0];
                let what = format!("sent by level 1 to {name}, against what it received");
                account.settle(&what, sent, own.received, !self.forced);
            }
        }
    }

    /// Where no time-out took an event from an L2PU, it decided as often as its supervisors.
    fn l2pus(&self, account: &mut Accounting) {
        let (l2sv, l2pu) = (self.l2sv(), self.l2pu());
        if sum([l2sv.forced, l2sv.late_decisions, l2sv.reassigned]) > 0 {
            return;
        }
        let decided = sum([l2sv.rejected, l2sv.accepted]);
        account.settle("decided by the L2SVs, against the L2PUs", decided, sum([l2pu.rejected, l2pu.accepted]), true);
        if l2sv.overridden == 0 {
            account.settle("accepted by the L2SVs, against the L2PUs", l2sv.accepted, l2pu.accepted, true);
        }
    }

    /// `accepted = complete + incomplete + not built`
    fn building(&self, account: &mut Accounting) {
        if !self.builds() {
            account.built_complete = account.level2_accepted;
            return;
        }
        let (dfm, sfi) = (self.dfm(), self.sfi());
        if !self.dfm_knows() {
            account.built_complete = sfi.built_complete;
            account.built_incomplete = sfi.built_incomplete;
            let built = sum([sfi.built_complete, sfi.built_incomplete]);
            account.not_built = account.settle("accepted, against built", account.level2_accepted, built, false);
            return;
        }
        account.built_complete = dfm.built_complete;
        account.built_incomplete = dfm.built_incomplete;
        let ended = sum([dfm.built_complete, dfm.built_incomplete, dfm.not_built]);
        let what = "accepted, against built and given up";
        let exact = self.lives(Role::Dfm);
        account.not_built = sum([dfm.not_built, account.settle(what, account.level2_accepted, ended, exact)]);
        if !exact {
            return;
        }
        for (node, report) in self.reports_of(Role::Sfi).filter(|(node, _)| !self.touched.contains(node)) {
            let own = SfiCounters::from_values(&report.counters);
            let granted = self.peer_counts(Role::Dfm, node);
            let finished = sum([own.rejected, own.accepted, own.debug, own.unrecorded, own.abandoned]);
            let name = self.name(node);
            let exact = !self.forced;
            account.settle(&format!("granted to {name} complete"), granted[0], own.built_complete, exact);
            account.settle(&format!("granted to {name} incomplete"), granted[1], own.built_incomplete, exact);
            account.settle(&format!("finished by {name}, against the DFM"), finished, granted[2], exact);
        }
    }

    /// `built = rejected + accepted + debug + lost after build`
    fn filtering(&self, account: &mut Accounting) {
        if !self.builds() {
            account.filter_accepted = account.built_complete;
            return;
        }
        let (rejected, accepted, debug, unrecorded) = if self.dfm_knows() {
            let dfm = self.dfm();
            account.duplicates = sum([account.duplicates, dfm.finished_twice]);
            (dfm.rejected, dfm.accepted, dfm.debug, dfm.unrecorded)
        } else {
            let sfi = self.sfi();
            (sfi.rejected, sfi.accepted, sfi.debug, sfi.unrecorded)
        };
        account.filter_rejected = rejected;
        account.filter_accepted = sum([accepted, unrecorded]);
        account.filter_debug = debug;
        let built = sum([account.built_complete, account.built_incomplete]);
        let decided = sum([account.filter_rejected, account.filter_accepted, account.filter_debug]);
        let exact = self.are_exact(&[Role::Dfm, Role::Sfi, Role::Efd]);
        account.lost_after_build = account.settle("built, against filtered", built, decided, exact);
        if exact && self.has(Role::Efd) {
            let efd = self.efd();
            account.settle("rejected by the EFDs, against the SFIs", efd.rejected, rejected, true);
            let passed = sum([account.filter_accepted, debug]);
            account.settle("accepted by the EFDs, against the SFIs", sum([efd.accepted, efd.debug]), passed, true);
        }
    }

    /// What the event builders have built, or more if the files hold more beside what was rejected: those that died had built that. An
    /// event in a file may be one that a living builder has, or has given up, without a word of its fate.
    fn built_at_least(&self) -> u64 {
        let sfi = self.sfi();
        let recorded = if self.has(Role::Sfo) { self.recorded() } else { 0 };
        // The filter may have dropped one copy of an event, and the recorder may have another one in a file.
        let dropped = if self.has(Role::Efd) { self.efd().dropped_incomplete } else { 0 };
        sum([sfi.built_complete, sfi.built_incomplete]).max(sum([sfi.rejected.saturating_sub(dropped), recorded]))
    }

    /// The files of a dead recorder tell what it recorded.
    fn recorded(&self) -> u64 {
        let in_files = || sum(self.files.iter().map(|file| file.first_copies));
        if self.lives(Role::Sfo) { self.sfo().recorded } else { in_files() }
    }

    /// `recorded = accepted + debug - lost in recording`, and as many copies in the files as were written
    fn recording(&self, account: &mut Accounting) {
        if !self.has(Role::Sfo) {
            account.recorded = sum([account.filter_accepted, account.filter_debug]);
            return;
        }
        let sfo = self.sfo();
        account.duplicates = sum([account.duplicates, sfo.duplicates]);
        account.recorded_copies = sum(self.files.iter().map(|file| file.events));
        let first_copies = sum(self.files.iter().map(|file| file.first_copies));
        account.recorded = self.recorded();
        let exact = self.are_exact(&[Role::Dfm, Role::Sfi, Role::Efd, Role::Sfo]);
        if !exact {
            self.credit_the_dead(account);
        }
        let passed = sum([account.filter_accepted, account.filter_debug]);
        // What the recorders refused is known to the EFDs, one by one; what they took and could not finish only to themselves.
        let known = if exact { sum([self.efd().unrecorded, sfo.unfinished]) } else { 0 };
        let lost = account.settle("accepted, against recorded", passed, sum([account.recorded, known]), exact);
        account.lost_in_recording = sum([lost, known]);
        if self.lives(Role::Sfo) {
            account.settle("copies written, against the files", sfo.copies, account.recorded_copies, true);
            account.settle("recorded, against first copies in the files", sfo.recorded, first_copies, true);
        }
        if exact {
            let efd = self.efd();
            let fresh = efd.recorded.saturating_sub(efd.recorded_before);
            account.settle(
                "acknowledged to the EFDs, against recorded",
                fresh,
                sum([sfo.recorded, sfo.unfinished]),
                true,
            );
            account.settle("seen twice though nobody was lost", account.duplicates, 0, true);
        }
    }

    /// An event in a file was accepted, or the filter failed on it. The EFD that decided so may have died before it could tell, and another
    /// one may have rejected it.
    fn credit_the_dead(&self, account: &mut Accounting) {
        let passed = sum([account.filter_accepted, account.filter_debug]);
        let mut surplus = account.recorded.saturating_sub(passed);
        let mut credit = |from: &mut u64| {
            let credited = surplus.min(*from);
            *from -= credited;
            surplus -= credited;
            credited
        };
        let untold = credit(&mut account.lost_after_build);
        // With the DFM dead, what a dead SFI had built is known from the files alone.
        let unknown = credit(&mut account.not_built);
        // An event that is built again, or served again, may lack what it did not lack before, or the reverse. So it is decided anew.
        let decides_once = [Role::Dfm, Role::Sfi, Role::Efd].iter().all(|&role| self.lives(role));
        let decided_twice = if decides_once { 0 } else { credit(&mut account.filter_rejected) };
        account.filter_accepted += sum([untold, unknown, decided_twice]);
        account.built_complete = sum([account.built_complete, unknown]);
        self.believe_the_files(account);
    }

    /// EFDs may decide differently on copies of an event. The first copy in a file counts: in the debug stream it has failed.
    fn believe_the_files(&self, account: &mut Accounting) {
        // The header of a file that was recovered may not say its stream.
        if self.files.iter().any(|file| file.stream.is_empty()) {
            return;
        }
        let debug_files = self.files.iter().filter(|file| file.stream.starts_with("debug_"));
        let in_debug = sum(debug_files.map(|file| file.first_copies)).min(account.recorded);
        let in_others = account.recorded - in_debug;
        let (accepted, debug) = (account.filter_accepted, account.filter_debug);
        let failed = in_debug.saturating_sub(debug).min(accepted.saturating_sub(in_others));
        let passed = in_others.saturating_sub(accepted).min(debug.saturating_sub(in_debug));
        account.filter_debug = debug + failed - passed;
        account.filter_accepted = accepted + passed - failed;
    }

    /// Whether there is anything behind level 2. A stage that a configuration lacks passes all.
    fn builds(&self) -> bool {
        self.has(Role::Dfm) || self.has(Role::Sfi)
    }

    /// Whether the counts of these roles must agree to the last event.
    fn are_exact(&self, roles: &[Role]) -> bool {
        !self.forced && roles.iter().all(|&role| self.lives(role))
    }

    /// Whether the DFM is there to say what has become of events. One that has returned goes on counting where its former lives were,
    /// unless the end was forced before it knew that.
    fn dfm_knows(&self) -> bool {
        self.reports_of(Role::Dfm).next().is_some() && (self.lives(Role::Dfm) || !self.forced)
    }

    /// Whether every application of a role lived through the whole run.
    fn lives(&self, role: Role) -> bool {
        self.nodes(role).all(|node| !self.touched.contains(&node))
    }

    fn has(&self, role: Role) -> bool {
        self.nodes(role).next().is_some()
    }

    fn nodes(&self, role: Role) -> impl Iterator<Item = NodeId> + '_ {
        self.applications.iter().filter(move |app| app.role == role).map(|app| app.node)
    }

    fn reports_of(&self, role: Role) -> impl Iterator<Item = (NodeId, &Report)> {
        self.reports.iter().filter(move |(_, report)| report.role == role).map(|(node, report)| (*node, report))
    }

    fn peer_counts(&self, role: Role, peer: NodeId) -> [u64; 3] {
        let counts = self.reports_of(role).flat_map(|(_, report)| &report.peers).filter(|counts| counts.node == peer);
        counts.fold([0; 3], |all, next| [0, 1, 2].map(|i| sum([all[i], next.counts[i]])))
    }

    fn level1(&self) -> Level1Counters {
        Level1Counters::total(self.reports_of(Role::Level1).map(|(_, report)| report))
    }

    /// How many triggers the read-out systems know of. They know them even if all that were to decide on them have died.
    fn triggers(&self) -> u64 {
        RosCounters::total(self.reports_of(Role::Ros).map(|(_, report)| report)).triggers
    }

    fn l2sv(&self) -> L2svCounters {
        L2svCounters::total(self.reports_of(Role::L2sv).map(|(_, report)| report))
    }

    fn l2pu(&self) -> L2puCounters {
        L2puCounters::total(self.reports_of(Role::L2pu).map(|(_, report)| report))
    }

    fn dfm(&self) -> DfmCounters {
        DfmCounters::total(self.reports_of(Role::Dfm).map(|(_, report)| report))
    }

    fn sfi(&self) -> SfiCounters {
        SfiCounters::total(self.reports_of(Role::Sfi).map(|(_, report)| report))
    }

    fn efd(&self) -> EfdCounters {
        EfdCounters::total(self.reports_of(Role::Efd).map(|(_, report)| report))
    }

    fn sfo(&self) -> SfoCounters {
        SfoCounters::total(self.reports_of(Role::Sfo).map(|(_, report)| report)).in_files()
    }

    fn name(&self, node: NodeId) -> &str {
        self.applications.iter().find(|app| app.node == node).map_or("an unknown application", |app| &app.name)
    }
}

impl Accounting {
    /// Compares two counts. A loss that a death or a forced end explains is returned, to be counted as such; any other
    /// difference goes to the residual.
    fn settle(&mut self, what: &str, custodian: u64, receiver: u64, exact: bool) -> u64 {
        if !exact && custodian >= receiver {
            return custodian - receiver;
        }
        let difference = custodian.abs_diff(receiver);
        if difference > 0 {
            self.residual = sum([self.residual, difference]);
            self.differences.push(format!("{what}: {custodian} against {receiver}"));
        }
        0
    }
}

/// The sum, or the largest number there is: no count of a member may end run control.
fn sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

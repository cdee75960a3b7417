//! The account of a partition with all stages: each pair of counts that must agree, and what explains that they do not.

use std::collections::BTreeMap;

use base::ids::{NodeId, Role};
use control::accounting::{Accounting, Books};
use control::controller::Application;
use dataflow::message::FileRecord;
use dataflow::report::{
    Counters, DfmCounters, EfdCounters, L2puCounters, L2svCounters, Level1Counters, PeerCount, Report, SfiCounters,
    SfoCounters,
};

const LEVEL1: NodeId = NodeId(1);
const L2SVS: [NodeId; 2] = [NodeId(2), NodeId(3)];
const L2PU: NodeId = NodeId(4);
const DFM: NodeId = NodeId(5);
const SFIS: [NodeId; 2] = [NodeId(6), NodeId(7)];
const EFD: NodeId = NodeId(8);
const SFO: NodeId = NodeId(9);

/// What a good run counted.
#[derive(Clone)]
struct Counts {
    level1: Level1Counters,
    sent: [u64; 2],
    l2svs: [L2svCounters; 2],
    l2pu: L2puCounters,
    dfm: DfmCounters,
    taken: [[u64; 3]; 2],
    granted: [[u64; 3]; 2],
    sfis: [SfiCounters; 2],
    efd: EfdCounters,
    sfo: SfoCounters,
    /// Events and first copies of a file of physics, and of the debug stream.
    files: [[u64; 2]; 2],
}

fn good() -> Counts {
    let l2sv = |rejected, accepted, incomplete| L2svCounters {
        received: rejected + accepted,
        rejected,
        accepted,
        incomplete,
        ..L2svCounters::default()
    };
    let sfi = |built_complete, built_incomplete, [rejected, accepted, debug, unrecorded]: [u64; 4]| SfiCounters {
        built_complete,
        built_incomplete,
        rejected,
        accepted,
        debug,
        unrecorded,
        ..SfiCounters::default()
    };
    Counts {
        level1: Level1Counters { issued: 1000, ..Level1Counters::default() },
        sent: [600, 400],
        l2svs: [l2sv(500, 100, 4), l2sv(350, 50, 1)],
        l2pu: L2puCounters { received: 1000, rejected: 850, accepted: 150, ..L2puCounters::default() },
        dfm: DfmCounters {
            taken_rejected: 850,
            taken_accepted: 150,
            taken_incomplete: 5,
            built_complete: 140,
            built_incomplete: 6,
            not_built: 4,
            rejected: 46,
            accepted: 90,
            debug: 8,
            unrecorded: 2,
            ..DfmCounters::default()
        },
        taken: [[500, 100, 0], [350, 50, 0]],
        granted: [[80, 2, 82], [60, 4, 64]],
        sfis: [sfi(80, 2, [26, 50, 4, 2]), sfi(60, 4, [20, 40, 4, 0])],
        efd: EfdCounters {
            rejected: 46,
            accepted: 92,
            debug: 8,
            recorded: 101,
            recorded_before: 3,
            unrecorded: 2,
            ..EfdCounters::default()
        },
        sfo: SfoCounters { recorded: 98, copies: 120, ..SfoCounters::default() },
        files: [[112, 90], [8, 8]],
    }
}

fn account(counts: &Counts, touched: &[NodeId], forced: bool) -> Accounting {
    let peers = |nodes: [NodeId; 2], counts: [[u64; 3]; 2]| {
        nodes.into_iter().zip(counts).map(|(node, counts)| PeerCount { node, counts }).collect::<Vec<_>>()
    };
    let report = |node, role, counters, peers| Report { node, peers, ..Report::of(role, counters) };
    let Counts { level1, sent, l2svs, l2pu, dfm, taken, granted, sfis, efd, sfo, files } = counts.clone();
    let both = [peers(L2SVS, taken), peers(SFIS, granted)].concat();
    let reports = [
        report(LEVEL1, Role::Level1, level1.to_values(), peers(L2SVS, sent.map(|sent| [sent, 0, 0]))),
        report(L2SVS[0], Role::L2sv, l2svs[0].to_values(), vec![]),
        report(L2SVS[1], Role::L2sv, l2svs[1].to_values(), vec![]),
        report(L2PU, Role::L2pu, l2pu.to_values(), vec![]),
        report(DFM, Role::Dfm, dfm.to_values(), both),
        report(SFIS[0], Role::Sfi, sfis[0].to_values(), vec![]),
        report(SFIS[1], Role::Sfi, sfis[1].to_values(), vec![]),
        report(EFD, Role::Efd, efd.to_values(), vec![]),
        report(SFO, Role::Sfo, sfo.to_values(), vec![]),
    ];
    let applications: Vec<Application> = reports
        .iter()
        .map(|report| Application { name: format!("n{}", report.node.0), role: report.role, node: report.node })
        .collect();
    let living = reports.into_iter().filter(|report| report.role == Role::Dfm || !touched.contains(&report.node));
    let reports: BTreeMap<NodeId, Report> = living.map(|report| (report.node, report)).collect();
    let file = |[events, first_copies]: [u64; 2], stream: &str| {
        let (path, stream) = (String::new(), stream.to_owned());
        FileRecord { path, stream, events, first_copies, bytes: 0, adler32: 1 }
    };
    let files = [file(files[0], "physics_Main"), file(files[1], "debug_FilterCrash")];
    Books { applications: &applications, reports: &reports, files: &files, touched, forced }.account()
}

#[test]
fn counts_that_agree_give_the_account() {
    let expected = Accounting {
        level1: 1000,
        level2_rejected: 850,
        level2_accepted: 150,
        level2_incomplete: 5,
        built_complete: 140,
        built_incomplete: 6,
        not_built: 4,
        filter_rejected: 46,
        filter_accepted: 92,
        filter_debug: 8,
        // The recorders refused two.
        lost_in_recording: 2,
        recorded: 98,
        recorded_copies: 120,
        ..Accounting::default()
    };
    assert_eq!(account(&good(), &[], false), expected);
}

#[test]
fn each_disagreement_is_told_with_both_counts() {
    type Case = (fn(&mut Counts), &'static [&'static str]);
    let decided = "decided by the L2SVs, against the L2PUs";
    let cases: [Case; 22] = [
        (|c| c.level1.issued += 1, &["level-1 events, against decisions: 1001 against 1000"]),
        (|c| c.sent[0] += 1, &["sent by level 1 to n2, against what it received: 601 against 600"]),
        (|c| c.l2svs[1].received += 1, &["sent by level 1 to n3, against what it received: 400 against 401"]),
        (|c| c.taken[0][0] += 1, &["rejected by n2, against the DFM: 500 against 501"]),
        (|c| c.taken[1][1] += 1, &["accepted by n3, against the DFM: 50 against 51"]),
        (|c| c.taken[1][2] += 1, &["forced by n3, against the DFM: 0 against 1"]),
        (|c| c.l2svs[0].incomplete += 1, &["accepted without all data by the L2SVs, against the DFM: 6 against 5"]),
        (|c| c.l2pu.rejected += 1, &["decided by the L2SVs, against the L2PUs: 1000 against 1001"]),
        (
            |c| c.l2pu.accepted += 1,
            &[
                "decided by the L2SVs, against the L2PUs: 1000 against 1001",
                "accepted by the L2SVs, against the L2PUs: 150 against 151",
            ],
        ),
        (|c| c.dfm.not_built += 1, &["accepted, against built and given up: 150 against 151"]),
        (
            |c| c.dfm.built_incomplete += 1,
            &["accepted, against built and given up: 150 against 151", "built, against filtered: 147 against 146"],
        ),
        (|c| c.sfis[0].built_complete += 1, &["granted to n6 complete: 80 against 81"]),
        (|c| c.sfis[1].built_incomplete += 1, &["granted to n7 incomplete: 4 against 5"]),
        (|c| c.sfis[1].abandoned += 1, &["finished by n7, against the DFM: 65 against 64"]),
        (|c| c.efd.rejected += 1, &["rejected by the EFDs, against the SFIs: 47 against 46"]),
        (|c| c.efd.debug += 1, &["accepted by the EFDs, against the SFIs: 101 against 100"]),
        (|c| c.efd.recorded += 1, &["acknowledged to the EFDs, against recorded: 99 against 98"]),
        (|c| c.efd.unrecorded += 1, &["accepted, against recorded: 100 against 101"]),
        (|c| c.sfo.copies += 1, &["copies written, against the files: 121 against 120"]),
        (|c| c.files[1][1] += 1, &["recorded, against first copies in the files: 98 against 99"]),
        (|c| c.sfo.duplicates += 1, &["seen twice though nobody was lost: 1 against 0"]),
        (|c| c.dfm.finished_twice += 2, &["seen twice though nobody was lost: 2 against 0"]),
    ];
    for (change, differences) in cases {
        let mut counts = good();
        change(&mut counts);
        let account = account(&counts, &[], false);
        assert_eq!(account.differences, differences);
        let by_one = differences.len() as u64;
        assert_eq!(account.residual, by_one.max(account.duplicates), "{differences:?}");
    }

    // A time-out took events from an L2PU, or an override turned its decision round: it may have decided differently.
    let unexplained = |change: fn(&mut L2svCounters)| {
        let mut counts = good();
        change(&mut counts.l2svs[0]);
        (counts.l2pu.accepted, counts.l2pu.rejected) = (149, 851);
        account(&counts, &[], false).differences.len()
    };
    assert_eq!(unexplained(|_| ()), 1);
    assert_eq!(unexplained(|l2sv| l2sv.late_decisions = 1), 0);
    assert_eq!(unexplained(|l2sv| l2sv.reassigned = 1), 0);
    assert_eq!(unexplained(|l2sv| l2sv.overridden = 1), 0);
    let mut counts = good();
    (counts.l2pu.rejected, counts.l2svs[0].overridden) = (851, 1);
    assert!(account(&counts, &[], false).differences[0].starts_with(decided));
}

#[test]
fn a_forced_end_explains_what_was_in_hand() {
    let mut counts = good();
    counts.level1.issued += 7;
    counts.dfm.taken_accepted += 3;
    counts.level1.issued += 3;
    counts.dfm.rejected -= 4;
    counts.sfis[0].rejected -= 4;
    counts.granted[0][2] -= 4;
    let account = account(&counts, &[], true);
    assert_eq!((account.level1, account.level2_lost, account.level2_accepted), (1010, 7, 153), "{account:#?}");
    assert_eq!((account.filter_rejected, account.lost_after_build), (42, 4), "{account:#?}");
    // A DFM that lives says of each accepted event whether it was built.
    assert_eq!((account.not_built, account.residual), (4, 3), "{account:#?}");
}

#[test]
fn a_death_explains_a_loss_and_no_surplus() {
    let mut counts = good();
    counts.dfm.rejected -= 5;
    let lost = account(&counts, &[EFD], false);
    assert_eq!((lost.lost_after_build, lost.residual), (5, 0), "{lost:#?}");
    // Of these five, three are in files: the dead filter daemon had accepted them.
    (counts.sfo.recorded, counts.sfo.copies, counts.files[0]) = (103, 125, [117, 95]);
    let credited = account(&counts, &[EFD], false);
    assert_eq!((credited.lost_after_build, credited.filter_accepted), (2, 95), "{credited:#?}");
    assert_eq!((credited.recorded, credited.lost_in_recording, credited.residual), (103, 0, 0), "{credited:#?}");

    let mut counts = good();
    counts.sfo.recorded -= 10;
    counts.files[0][1] -= 10;
    let recorder = account(&counts, &[SFO], false);
    assert_eq!((recorder.recorded, recorder.lost_in_recording, recorder.residual), (88, 12, 0), "{recorder:#?}");
    // Of eight events more than passed the filter, four were given up by their builder and found in a file all the same.
    counts.files[0][1] += 20;
    let surplus = account(&counts, &[SFO], false);
    assert_eq!((surplus.recorded, surplus.not_built, surplus.residual), (108, 0, 4), "{surplus:#?}");
}

/// A filter daemon accepted events before their builder died. Built again they lacked a source, and were dropped.
#[test]
fn events_that_were_recorded_and_then_dropped_left_a_residual() {
    let mut counts = good();
    // Two that the recorders had refused, four that were given up by their builder, and three more.
    (counts.sfo.recorded, counts.sfo.copies, counts.files[0]) = (107, 129, [121, 99]);
    for touched in [&[SFIS[0]], &[EFD], &[DFM]] {
        let found = account(&counts, touched, false);
        assert_eq!((found.recorded, found.residual), (107, 0), "{found:#?}");
        assert_eq!((found.filter_accepted, found.filter_rejected), (99, 43), "{found:#?}");
    }
    // If all live that decide, each event has one fate. The recorder has returned, and may have taken some twice.
    let once = account(&counts, &[SFO], false);
    assert_eq!((once.filter_accepted, once.filter_debug, once.residual), (96, 8, 3), "{once:#?}");
}

/// A filter daemon failed for events, or accepted them, and their builder died before it could tell.
#[test]
fn an_event_counts_where_its_first_copy_is() {
    let mut counts = good();
    // Two that the recorders had refused, and two that their builder gave up.
    counts.sfo.recorded += 4;
    for (files, expected) in [([[114, 92], [10, 10]], [92, 10, 46]), ([[116, 94], [8, 8]], [94, 8, 46])] {
        (counts.files, counts.sfo.copies) = (files, files[0][0] + files[1][0]);
        let found = account(&counts, &[SFIS[0]], false);
        let fates = [found.filter_accepted, found.filter_debug, found.filter_rejected];
        assert_eq!((fates, found.residual), (expected, 0), "{found:#?}");
    }
}

/// At a forced end a filter daemon had recorded an event that it failed for, and had not told of it.
#[test]
fn a_forced_end_finds_failed_events_in_the_debug_stream() {
    let mut counts = good();
    (counts.dfm.accepted, counts.sfo.recorded, counts.sfo.copies) = (87, 99, 121);
    counts.files = [[112, 90], [9, 9]];
    let found = account(&counts, &[], true);
    assert_eq!((found.filter_accepted, found.filter_debug, found.residual), (90, 9, 0), "{found:#?}");
}

/// The copy that counts as built was accepted, and the one in the file had failed.
#[test]
fn an_event_that_was_recorded_as_failed_and_accepted_later_has_failed() {
    let mut counts = good();
    for (files, expected) in [([[111, 89], [9, 9]], [91, 9]), ([[115, 93], [5, 5]], [93, 7])] {
        counts.files = files;
        let found = account(&counts, &[EFD], false);
        assert_eq!(([found.filter_accepted, found.filter_debug], found.residual), (expected, 0), "{found:#?}");
    }
}

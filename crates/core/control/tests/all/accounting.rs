//! The account where those are dead that know best.

use std::collections::BTreeMap;

use base::histogram::Histogram;
use base::ids::{NodeId, Role};
use control::accounting::{Accounting, Books};
use control::controller::Application;
use dataflow::message::FileRecord;
use dataflow::report::{
    Counter, Counters, EfdCounters, L2svCounters, Network, PeerCount, Report, SfiCounters, SfoCounters,
};

const DFM: NodeId = NodeId(1);
const SFI: NodeId = NodeId(2);
const EFD: NodeId = NodeId(3);
const SFO: NodeId = NodeId(4);
const L2SVS: [NodeId; 2] = [NodeId(5), NodeId(6)];

/// The DFM and the only filter daemon died. The builder that lives had not been told of all that is in the files, and gave up the
/// rest.
#[test]
fn what_a_living_builder_has_built_and_not_been_told_of_counts_once() {
    let account = account(&[], vec![report(SFO, Role::Sfo, recorded(70))]);
    assert_eq!((account.level1, account.not_built, account.residual), (100, 10, 0), "{account:#?}");
    assert_eq!((account.recorded, account.lost_after_build), (70, 20), "{account:#?}");
}

#[test]
fn what_a_dead_supervisor_accepted_counts_once_where_a_living_builder_has_built_it() {
    let own = L2svCounters { received: 90, accepted: 90, ..L2svCounters::default() };
    let reports = vec![report(SFO, Role::Sfo, recorded(70)), report(L2SVS[0], Role::L2sv, own.to_values())];
    let account = account(&L2SVS, reports);
    assert_eq!((account.level2_accepted, account.not_built, account.residual), (90, 0, 0), "{account:#?}");
}

/// Of what is in the files beyond what living builders have built, others were the builders.
#[test]
fn files_tell_what_dead_builders_have_built() {
    let account = account(&[], vec![report(SFO, Role::Sfo, recorded(115))]);
    assert_eq!((account.level1, account.recorded, account.residual), (115, 115, 0), "{account:#?}");
}

/// All live: what a recorder could not finish is lost, though the filter daemon was told that it was recorded.
#[test]
fn events_of_a_file_that_could_not_be_closed_were_a_residual() {
    let sfi = SfiCounters { assigned: 100, built_complete: 100, accepted: 100, ..SfiCounters::default() };
    let efd = EfdCounters { received: 100, accepted: 100, recorded: 100, ..EfdCounters::default() };
    let sfo = SfoCounters {
        received: 100,
        recorded: 100,
        copies: 100,
        unfinished: 40,
        unfinished_copies: 40,
        ..SfoCounters::default()
    };
    let counters =
        [(SFI, Role::Sfi, sfi.to_values()), (EFD, Role::Efd, efd.to_values()), (SFO, Role::Sfo, sfo.to_values())];
    let application = |node, role| Application { name: format!("{role:?}"), role, node };
    let applications: Vec<_> = counters.iter().map(|(node, role, _)| application(*node, *role)).collect();
    let reports = counters.into_iter().map(|(node, role, counters)| (node, report(node, role, counters))).collect();
    let (path, stream) = (String::new(), String::new());
    let files = &[FileRecord { path, stream, events: 60, first_copies: 60, bytes: 0, adler32: 1 }];
    let books = Books { applications: &applications, reports: &reports, files, touched: &[], forced: false };
    let account = books.account();
    assert_eq!((account.recorded, account.lost_in_recording, account.residual), (60, 40, 0), "{account:#?}");
}

/// Members may say any number: it ended run control.
#[test]
fn wild_counts_of_members_are_summed_up_without_end_to_the_account() {
    let most = u64::MAX;
    let node = |index| NodeId(index as u16 + 1);
    for touched in [&[][..], &[node(3)], &[node(4), node(5)]] {
        for others in [0, most] {
            let say = |(index, role): (usize, Role)| {
                let counters = Counter::of_role(role).iter().map(|_| if index % 2 == 0 { most } else { others });
                let peers = (1..20).map(|peer| PeerCount { node: NodeId(peer % 10), counts: [most; 3] }).collect();
                let network = Network { messages: most, bytes: most, malformed: most, ..Network::default() };
                let latency_ns = Histogram::from_entries(&[(3, most)], 3).expect("one bin");
                let own = Report { peers, network, latency_ns, ..report(node(index), role, counters.collect()) };
                let of_both_lives = own.clone().after(&own);
                assert_eq!(of_both_lives.latency_ns.count(), most);
                (own.node, of_both_lives)
            };
            let roles = Role::IN_DRAIN_ORDER.into_iter().chain([Role::Sfi, Role::L2sv]);
            let reports: BTreeMap<_, _> = roles.enumerate().map(say).collect();
            let named = |(node, report): (&NodeId, &Report)| Application {
                name: String::new(),
                role: report.role,
                node: *node,
            };
            let applications: Vec<_> = reports.iter().map(named).collect();
            let file = |stream: &str| {
                let (path, stream) = (String::new(), stream.to_owned());
                FileRecord { path, stream, events: most, first_copies: most, bytes: most, adler32: 1 }
            };
            let files = &[file("physics_Main"), file("debug_Main")];
            for forced in [false, true] {
                let account =
                    Books { applications: &applications, reports: &reports, files, touched, forced }.account();
                assert_eq!((account.recorded_copies, account.losses().count() < 9), (most, true), "{account:#?}");
            }
        }
    }
}

/// The builder was assigned 100 events, has built 90, and was told of 50.
fn account(l2svs: &[NodeId], mut reports: Vec<Report>) -> Accounting {
    let sfi = SfiCounters { assigned: 100, built_complete: 90, accepted: 50, abandoned: 40, ..SfiCounters::default() };
    reports.push(report(SFI, Role::Sfi, sfi.to_values()));
    let recorded = SfoCounters::total(reports.iter().filter(|report| report.role == Role::Sfo)).recorded;
    let application = |node, role| Application { name: format!("{role:?}"), role, node };
    let roles = [(DFM, Role::Dfm), (SFI, Role::Sfi), (EFD, Role::Efd), (SFO, Role::Sfo)];
    let l2svs = l2svs.iter().map(|node| (*node, Role::L2sv));
    let applications: Vec<_> = roles.into_iter().chain(l2svs).map(|(node, role)| application(node, role)).collect();
    let reports: BTreeMap<_, _> = reports.into_iter().map(|report| (report.node, report)).collect();
    let (path, stream) = (String::new(), String::new());
    let file = FileRecord { path, stream, events: recorded, first_copies: recorded, bytes: 0, adler32: 1 };
    let touched = &[DFM, EFD, L2SVS[1]];
    Books { applications: &applications, reports: &reports, files: &[file], touched, forced: false }.account()
}

fn recorded(events: u64) -> Vec<u64> {
    SfoCounters { recorded: events, copies: events, ..SfoCounters::default() }.to_values()
}

fn report(node: NodeId, role: Role, counters: Vec<u64>) -> Report {
    Report { node, ..Report::of(role, counters) }
}

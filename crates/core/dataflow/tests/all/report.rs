//! What reports add up to.

use std::collections::BTreeSet;

use base::ids::Role;
use dataflow::message::Chains;
use dataflow::report::{
    Carried, CarrierKind, ChainCount, ChainCounts, Counter, Counters, DatagramCounts, DfmCounters, Nature, Network,
    Report,
};

#[test]
fn each_count_of_progress_changes_the_mark() {
    let none = Report::of(Role::Dfm, DfmCounters::default().to_values());
    let mark = |at: usize, count| {
        let mut report = none.clone();
        report.counters[at] = count;
        report.mark()
    };
    for (at, counter) in DfmCounters::COUNTERS.iter().enumerate() {
        let marks: BTreeSet<u64> = (0..100).map(|count| mark(at, count)).collect();
        let is_progress = counter.nature != Nature::Idle;
        assert_eq!(marks.len(), if is_progress { 100 } else { 1 }, "{}", counter.name);
    }
    let is_idle = |name| DfmCounters::COUNTERS.iter().any(|c| c.name == name && c.nature == Nature::Idle);
    assert!(is_idle("revoked") && !is_idle("built_complete"));
}

#[test]
fn each_counter_of_progress_leads_to_the_one_that_a_later_life_is_told() {
    for role in Role::IN_DRAIN_ORDER {
        let counters = Counter::of_role(role);
        let names: BTreeSet<&str> = counters.iter().map(|counter| counter.name).collect();
        assert_eq!(names.len(), counters.len(), "{role:?}");
        for counter in counters {
            let Nature::Told(by) = counter.nature else { continue };
            let told = counters.iter().find(|other| other.name == by).map(|other| other.nature);
            assert_eq!(told, Some(Nature::Told(by)), "{role:?} {}", counter.name);
        }
    }
}

#[test]
fn chains_are_counted_each_by_its_number() {
    let mut counts = ChainCounts::default();
    counts.note(Chains { input: 0b1011, passed: 0b0010 });
    counts.note(Chains { input: 0b0010, passed: 0b0010 });
    counts.note(Chains { input: 0b1000, passed: 0b1000 });
    let expected = [(1, 0), (2, 2), (0, 0), (2, 1)];
    assert_eq!(counts.to_vec(), expected.map(|(input, passed)| ChainCount { input, passed }));
}

#[test]
fn what_a_connection_carried_goes_to_its_carrier() {
    let mut network = Network { messages: 10, bytes: 100, ..Network::default() };
    network.count_since((4, 40), CarrierKind::Shm);
    network.count_since((9, 70), CarrierKind::Shm);
    let carried = |messages, bytes| Carried { messages, bytes };
    assert_eq!(network.carried, [carried(0, 0), carried(7, 90), carried(0, 0)]);
}

#[test]
fn processes_together_have_the_sum_of_all_but_the_most() {
    let of = |messages, asked, asked_most| Network {
        messages,
        carried: [Carried { messages, bytes: 10 * messages }; CarrierKind::COUNT],
        datagrams: DatagramCounts { asked, asked_most, ..DatagramCounts::default() },
        data_sum: u64::MAX,
        ..Network::default()
    };
    let both = Network { data_sum: u64::MAX - 1, ..of(7, 5, 3) };
    assert_eq!(of(3, 4, 3).plus(of(4, 1, 2)), both);
    assert_eq!(of(4, 1, 2).plus(of(3, 4, 3)), both);
}

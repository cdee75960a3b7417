//! What the summary of a run says besides its account.

use base::time::Time;
use configuration::{Checksum, FragmentCheck, Partition};
use dataflow::report::{Carried, CarrierKind, DatagramCounts};
use eformat::{ROB_PREFIX_BYTES, ROB_SUFFIX_BYTES, WORD_BYTES};

use crate::assembly::Assembly;
use crate::conductor::{Outcome, Restart};
use crate::summary::{Network, Restarted, RunFacts};

/// What the summary needs to know of a run.
pub fn facts(conducted: &Outcome) -> RunFacts {
    let network = conducted.network;
    let since = |at: Time| at.since(conducted.began).as_secs_f64();
    let restarted = |restart: &Restart| Restarted {
        name: conducted.assembly.application(restart.node).map_or_else(String::new, |app| app.name.clone()),
        how: restart.how.clone(),
        at_s: since(restart.died),
        away_s: restart.back.map(|back| back.since(restart.died).as_secs_f64()),
    };
    RunFacts {
        restarts: conducted.restarts.iter().map(restarted).collect(),
        forced: conducted.ending.forced,
        duration: conducted.duration,
        starting: Some(conducted.starting),
        cpu: conducted.cpu,
        network: Network {
            messages: network.messages,
            bytes: network.bytes,
            stale: conducted.stale,
            malformed: network.malformed,
            carriers: (network.carried != [Carried::default(); CarrierKind::COUNT]).then(|| network.carried.into()),
            ports: network.ports.into_iter().take(conducted.assembly.partition.ros.ports.len()).collect(),
            datagrams: (network.datagrams != DatagramCounts::default()).then(|| network.datagrams.into()),
            data_sum: (conducted.assembly.partition.sfi.check == FragmentCheck::Data).then_some(network.data_sum),
        },
        ..facts_of(&conducted.assembly)
    }
}

/// Bytes around the data of a fragment.
pub fn fragment_overhead_bytes(partition: &Partition) -> usize {
    let checksum = if partition.ros.checksum == Checksum::Adler32 { WORD_BYTES } else { 0 };
    ROB_PREFIX_BYTES + ROB_SUFFIX_BYTES + checksum
}

/// What is known of a run before it begins.
pub fn facts_of(assembly: &Assembly) -> RunFacts {
    let partition = &assembly.partition;
    let chains = partition.menu.iter().flat_map(|menu| &menu.chain).map(|chain| chain.name.clone()).collect();
    RunFacts {
        run_number: partition.run.number(),
        tolerate: partition.run.tolerate,
        applications: assembly.applications.clone(),
        chains,
        has_tasks: partition.pt.is_some(),
        fragment_overhead_bytes: fragment_overhead_bytes(partition) as u64,
        ..RunFacts::default()
    }
}

//! What the summary of a run says besides its account.

use base::time::Time;
use configuration::{Checksum, FragmentCheck, Partition};
use dataflow::report::{Carried, CarrierKind, DatagramCounts};
use eformat::{ROB_PREFIX_BYTES, ROB_SUFFIX_BYTES, WORD_BYTES};

use crate::conductor::{Outcome, Restart};
use crate::summary::{Named, Network, Restarted, RunFacts, Summary, named_sources};
use crate::table::Table;
use driver::Assembly;

impl Outcome {
    /// What is known of the run besides its account.
    pub fn facts(&self) -> RunFacts {
        let network = self.network;
        let since = |at: Time| at.since(self.began).as_secs_f64();
        let restarted = |restart: &Restart| Restarted {
            name: self.assembly.application(restart.node).map_or_else(String::new, |app| app.name.clone()),
            how: restart.how.clone(),
            at_s: since(restart.died),
            away_s: restart.back.map(|back| back.since(restart.died).as_secs_f64()),
        };
        RunFacts {
            restarts: self.restarts.iter().map(restarted).collect(),
            away: self.away.clone(),
            forced: self.ending.forced,
            duration: self.duration,
            starting: Some(self.starting),
            cpu: self.cpu,
            network: Network {
                messages: network.messages,
                bytes: network.bytes,
                stale: self.stale,
                malformed: network.malformed,
                carriers: (network.carried != [Carried::default(); CarrierKind::COUNT]).then(|| network.carried.into()),
                ports: network.ports.into_iter().take(self.assembly.partition.ros.ports.len()).collect(),
                datagrams: (network.datagrams != DatagramCounts::default()).then_some(Named(network.datagrams)),
                data_sum: (self.assembly.partition.sfi.check == FragmentCheck::Data).then_some(network.data_sum),
                ..Network::default()
            },
            ..facts_of(&self.assembly)
        }
    }

    /// The run for other programs.
    pub fn summary(&self) -> Summary {
        Summary::new(&self.facts(), &self.ending, &self.account)
    }

    /// The run for people: a row per stage, the account, and the verdict.
    pub fn to_text(&self) -> String {
        let (facts, summary) = (self.facts(), self.summary());
        Table { facts: &facts, ending: &self.ending, summary: &summary }.to_string()
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
        sources: named_sources(partition),
        run_number: partition.run.number(),
        tolerate: partition.run.tolerate,
        applications: assembly.applications.clone(),
        chains,
        has_tasks: partition.pt.is_some(),
        fragment_overhead_bytes: fragment_overhead_bytes(partition) as u64,
        ..RunFacts::default()
    }
}

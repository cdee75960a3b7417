//! What faults did to a simulated run, as the summary tells it.

use base::ids::NodeId;
use base::time::Time;
use configuration::FaultKind;
use simulator::network::Counters;
use simulator::world::{Fault, Outcomes, Struck};

use partition::summary::{Frames, Messages, Restarted, RunFacts, Simulated, StruckFault};

/// A run that has ended.
pub(super) struct Seen<'a> {
    pub(super) outcomes: &'a Outcomes,
    /// The start of the run.
    pub(super) began: Time,
    /// The names of its applications.
    pub(super) facts: &'a RunFacts,
}

impl Seen<'_> {
    /// The applications that died and were to return.
    pub(super) fn restarts(&self) -> Vec<Restarted> {
        let restarted = |struck: &Struck| {
            let Fault::Restart(node, _) = struck.fault else { return None };
            Some(Restarted {
                name: self.facts.name(node),
                how: "died as [simulation] says".to_owned(),
                at_s: struck.at.since(self.began).as_secs_f64(),
                away_s: struck.back.map(|back| back.since(struck.at).as_secs_f64()),
            })
        };
        self.outcomes.struck.iter().filter_map(restarted).collect()
    }

    /// What only a simulation knows.
    pub(super) fn simulated(&self) -> Simulated {
        let troubles = self.outcomes.troubles;
        Simulated {
            frames: self.outcomes.frames.as_ref().filter(|counters| counters.frames_sent > 0).map(frames),
            messages: Messages {
                lost: troubles.lost,
                damaged: troubles.damaged,
                dropped: troubles.overflows,
                cut_off: troubles.cut_off,
                reset: troubles.reset,
                held_back: troubles.held_back,
                stale: troubles.stale,
                wrong_run: troubles.wrong_run,
            },
            faults: self.outcomes.struck.iter().filter_map(|struck| self.fault(struck)).collect(),
        }
    }

    fn fault(&self, struck: &Struck) -> Option<StruckFault> {
        let (kind, nodes): (FaultKind, &[NodeId]) = match &struck.fault {
            Fault::Kill(node) => (FaultKind::Kill, &[*node]),
            Fault::Restart(node, _) => (FaultKind::Restart, &[*node]),
            Fault::Hang(node) => (FaultKind::Hang, &[*node]),
            Fault::Split(nodes, _) if nodes.len() == 1 => (FaultKind::CutOff, nodes),
            Fault::Split(nodes, _) => (FaultKind::NetworkPartition, nodes),
            Fault::Slow { node, .. } => (FaultKind::Slow, &[*node]),
            Fault::ClockStep(node, _) => (FaultKind::ClockStep, &[*node]),
            Fault::FullDisk(node, _) => (FaultKind::FullDisk, &[*node]),
            // No configuration asks for it.
            Fault::Force | Fault::Pause(_) | Fault::Watch(_) | Fault::ClockBack(..) | Fault::Forged { .. } => {
                return None;
            }
        };
        Some(StruckFault {
            at_ns: struck.at.since(self.began).as_nanos() as u64,
            kind: kind.name().to_owned(),
            applications: nodes.iter().map(|node| self.facts.name(*node)).collect(),
        })
    }
}

fn frames(counters: &Counters) -> Frames {
    Frames {
        sent: counters.frames_sent,
        delivered: counters.frames_delivered,
        duplicated: counters.frames_duplicated,
        delayed: counters.frames_delayed,
        overtaking: counters.frames_overtaking,
        lost: counters.dropped_link + counters.dropped_down,
        damaged: counters.dropped_damaged,
        dropped: counters.dropped_buffer,
        tcp_repeats: counters.tcp_timeouts + counters.tcp_fast_retransmits,
    }
}

//! Applications die, with and without return: one, of which no accepted event may be lost, or several together.

use std::time::Duration;

use base::ids::{NodeId, Role};
use base::random::Random;
use dataflow::building::dfm::ClearAfter;

use super::plan::{InputKind, Plan};
use simulator::world::Fault;

impl Plan {
    /// Read-out systems keep an event until it is recorded, and one application dies at any time.
    pub(super) fn draw_crash(&mut self, r: &mut Random) {
        let supervisors = &mut Random::new(self.seed ^ 0x7375_7065_7276);
        let clears_alone = self.input == InputKind::Level2Only && supervisors.chance(0.5);
        if self.input == InputKind::Level2Only && !clears_alone {
            self.input = InputKind::Level2;
        }
        self.building.clear_after = ClearAfter::Recorded;
        self.counts.efd = self.counts.efd.max(1);
        self.triggers.events = 10 + r.below(90);
        self.course.late.clear();
        let roles = [Role::L2pu, Role::Ros, Role::Dfm, Role::Dfm, Role::Sfi, Role::Efd, Role::Sfo, Role::Sfo];
        let role = roles[r.below(roles.len() as u64) as usize];
        let drawn = self.of(if clears_alone || supervisors.chance(0.2) { Role::L2sv } else { role });
        let nodes = if drawn.is_empty() { self.of(Role::Dfm) } else { drawn };
        let node = nodes[r.below(nodes.len() as u64) as usize];
        let returns = r.chance(0.7).then(|| Duration::from_micros(100 + r.below(30_000)));
        let latest_us = if r.chance(0.5) { 3_000 } else { 25_000 };
        let at = Duration::from_micros(r.below(latest_us));
        self.course.faults.push((at, returns.map_or(Fault::Kill(node), |after| Fault::Restart(node, after))));
        if !self.of(Role::Sfi).is_empty() && r.chance(0.5) {
            self.draw_slow_builder(at, r);
        }
    }

    /// Several applications die about the same time, or one again while it learns what it had. That is at any time of
    /// the run and of its end.
    pub(super) fn draw_crashes(&mut self, r: &mut Random) {
        let apps = self.applications();
        let candidates: Vec<NodeId> = apps.iter().filter(|app| app.role != Role::Level1).map(|app| app.node).collect();
        let any = |r: &mut Random| candidates[r.below(candidates.len() as u64) as usize];
        self.triggers.events = 10 + r.below(90);
        // From the first moments to long after the last event, as often in each decade.
        let at = Duration::from_secs_f64(1e-4 * 10_f64.powf(3.0 * r.unit()));
        let away = |r: &mut Random| Duration::from_secs_f64(1e-5 * 10_f64.powf(3.5 * r.unit()));
        let first = any(r);
        let back = at + self.strike(r, at, first, away);
        let others = 1 + r.below(2);
        for _ in 0..others {
            let (node, when) = match r.below(4) {
                // The same one, once it is back and knows not everything yet.
                0 => (first, back + away(r) / 4),
                // Another one as well, in the same moment.
                1 => (any(r), at),
                // Another one, while the first is away or has just returned.
                2 => (any(r), at + (back - at).mul_f64(2.0 * r.unit())),
                _ => (any(r), at + away(r)),
            };
            self.strike(r, when, node, away);
        }
        self.course.faults.sort_by_key(|(at, _)| *at);
    }

    /// An application dies, mostly to return. How long it is away.
    fn strike(
        &mut self,
        r: &mut Random,
        at: Duration,
        node: NodeId,
        away: impl Fn(&mut Random) -> Duration,
    ) -> Duration {
        let lasts = away(r);
        let returns = r.chance(0.85);
        self.course.late.retain(|(late, _)| *late != node);
        self.course.faults.push((at, if returns { Fault::Restart(node, lasts) } else { Fault::Kill(node) }));
        lasts
    }

    /// About the time of the crash an event builder is slower than the DFM is patient, or out of reach.
    fn draw_slow_builder(&mut self, crash: Duration, r: &mut Random) {
        let sfis = self.of(Role::Sfi);
        let node = sfis[r.below(sfis.len() as u64) as usize];
        self.building.timeout = Duration::from_micros(500 + r.below(10_000));
        let at = (crash + Duration::from_micros(r.below(10_000))).saturating_sub(Duration::from_millis(5));
        let lasts = Duration::from_millis(1 + r.below(40));
        let fault = if r.chance(0.5) {
            Fault::Split(vec![node], lasts)
        } else {
            Fault::Slow { node, each: Duration::from_micros(r.below(10_000)), lasts }
        };
        self.course.faults.push((at, fault));
    }

    /// Whether read-out systems have the data of every event until they are asked for. Nothing is lost or late on the
    /// way, there is room for all of it, and no read-out system dies.
    pub(super) fn keeps_data(&self) -> bool {
        let sources: Vec<NodeId> =
            [Role::Ros, Role::Trg, Role::Pros].into_iter().flat_map(|role| self.of(role)).collect();
        let interfaces = self.of(Role::Ebif);
        let notice_max = self.course.joins.as_ref().map_or(Duration::ZERO, |joins| joins.notice_max);
        let is_of_others = |fault: &Fault| match fault {
            Fault::Kill(node) => !sources.contains(node) && !interfaces.contains(node),
            // Tries count until builders notice that it is away. A request may come before the greeting, and is made again.
            Fault::Restart(node, _) if interfaces.contains(node) => {
                notice_max < self.building.request_timeout * self.fine.retries
            }
            Fault::Restart(node, _) => !sources.contains(node),
            Fault::Pause(_) | Fault::Watch(_) => true,
            _ => false,
        };
        let is_near = self.network.slow_channels == 0.0 && self.building.port.is_none() && self.course.late.is_empty();
        let has_room =
            self.triggers.in_flight <= self.readout.pages as u64 && self.triggers.events <= self.readout.pages as u64;
        let is_perfect = self.network.links.is_perfect() && self.readout.fragment_faults.is_perfect();
        let is_sent = self.sources_are_good() && self.waits_for_first_fragments() && self.waits_for_matched();
        let is_calm = self.course.faults.iter().all(|(_, fault)| is_of_others(fault));
        self.building.clear_after == ClearAfter::Recorded
            && is_perfect
            && is_near
            && has_room
            && is_sent
            && is_calm
            && !self.loses_ledgers()
    }

    /// Whether requests wait for as long as the first fragments of a source may take. It connects, is told to start, and sends, while
    /// the leading one has begun. Where it runs ahead it is told to wait, and to go on.
    fn waits_for_first_fragments(&self) -> bool {
        let waits = self.fine.readout_timeout * (self.fine.retries + 1);
        self.readout.sending.as_ref().is_none_or(|sending| sending.each.iter().all(|source| source.latency * 4 < waits))
    }

    /// Whether all die who know what became of events that are cleared.
    pub(super) fn loses_ledgers(&self) -> bool {
        let crashed = self.crashed_roles();
        [Role::Dfm, Role::Sfi, Role::Efd].iter().all(|role| crashed.contains(role))
    }

    fn crashes(&self) -> Vec<&Fault> {
        let crashes =
            self.course.faults.iter().filter(|(_, fault)| matches!(fault, Fault::Kill(_) | Fault::Restart(..)));
        crashes.map(|(_, fault)| fault).collect()
    }

    /// Of those that die, once for each death.
    pub(super) fn crashed_roles(&self) -> Vec<Role> {
        let applications = self.applications();
        let role_of = |fault: &Fault| fault.node().map(|node| applications[usize::from(node.0) - 1].role);
        self.crashes().into_iter().filter_map(role_of).collect()
    }

    /// Whether no accepted event may be lost, though applications die. Read-out systems keep an event until it is
    /// recorded, and a dead application returns, or another does its work. A DFM and a supervisor may not both die: what
    /// the one had taken from the other is lost if it has not been assigned. With the pROS go results, never events.
    pub fn keeps_all(&self) -> bool {
        let (crashes, roles) = (self.crashes(), self.crashed_roles());
        let dies = |role| roles.contains(&role);
        let is_survived = match (&crashes[..], &roles[..]) {
            ([Fault::Kill(_)], [role]) => {
                let is_one_of_many =
                    matches!(role, Role::L2pu | Role::Sfi | Role::Efd | Role::Ros) && self.of(*role).len() > 1;
                *role == Role::Pros || is_one_of_many
            }
            ([_, ..], _) => {
                let all_return = crashes.iter().all(|crash| matches!(crash, Fault::Restart(..)));
                all_return && !dies(Role::Level1) && !(dies(Role::Dfm) && dies(Role::L2sv))
            }
            _ => false,
        };
        let is_forced = self.course.faults.iter().any(|(_, fault)| matches!(fault, Fault::Force));
        let keeps = self.building.clear_after == ClearAfter::Recorded || self.input == InputKind::Level2Only;
        keeps && is_survived && !is_forced && !self.is_hindered()
    }
}

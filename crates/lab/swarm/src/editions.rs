//! What later editions of the draws add, each from random numbers of its own.

use std::time::Duration;

use base::ids::{NodeId, Role};
use base::random::Random;
use configuration::{Sampling, SamplingStage, Size};
use dataflow::building::dfm::ClearAfter;
use dataflow::filter::streams::StreamRule;

use dataflow::node::RUN_CONTROL;

use super::plan::{
    EDITION_OF_CRATE_LINKS, EDITION_OF_CRATES, EDITION_OF_MATCHES, EDITION_OF_MODULES, EDITION_OF_PROCESSORS,
    EDITION_OF_RUNS, EDITION_OF_SLICES, EDITION_OF_WATCHERS, EDITION_OF_WITHHELD, InputKind, Plan,
};
use simulator::world::{Fault, Impostor, JoinFault, Joins, Links, Moment, Port, TypeSet, Watched};

impl Plan {
    pub(super) fn draw_more(&mut self, edition: u32, level: u32) {
        let seed = self.seed;
        if edition >= 2 && level >= 1 {
            self.recording.disks_heal = true;
            self.draw_healing(&mut Random::new(seed ^ 0x6865_616c_6564));
        }
        if edition >= 3 && level >= 1 {
            self.draw_hosts(&mut Random::new(seed ^ 0x686f_7374_7321));
            self.draw_disk(&mut Random::new(seed ^ 0x6469_736b_7321));
        }
        if edition >= 4 {
            self.draw_streams(&mut Random::new(seed ^ 0x7374_7265_616d));
        }
        if edition >= 5 && level == 4 {
            self.draw_loss_of_results(&mut Random::new(seed ^ 0x7072_6f73_2121));
        }
        if edition >= 6 {
            self.draw_carriers(&mut Random::new(seed ^ 0x6361_7272_6965));
        }
        if edition >= 7 && level == 5 {
            self.draw_calm(&mut Random::new(seed ^ 0x6361_6c6d_2121));
        }
        if edition >= 3 && level == 3 {
            self.draw_silence(&mut Random::new(seed ^ 0x7369_6c65_6e63));
        }
        if edition >= 8 {
            self.draw_lawful(&mut Random::new(seed ^ 0x6c61_7766_756c));
            self.draw_pauses(&mut Random::new(seed ^ 0x7061_7573_6573));
        }
        if (edition >= 9 && level <= 3) || edition >= 10 {
            self.draw_joins(&mut Random::new(seed ^ 0x6a6f_696e_6564));
        }
        if edition == EDITION_OF_CRATE_LINKS {
            // Each read-out system that a crate adds has links, too.
            self.draw_crates(level, &mut Random::new(seed ^ 0x6372_6174_6573));
        }
        if edition >= 11 {
            self.draw_sources(level, &mut Random::new(seed ^ 0x7075_7368_6564));
        }
        if edition == EDITION_OF_PROCESSORS {
            let r = &mut Random::new(seed ^ 0x6c65_7665_6c31);
            if r.chance(0.25) {
                self.draw_hand_shake(r);
            } else {
                self.draw_processors(level, r);
            }
        }
        if edition == EDITION_OF_CRATE_LINKS {
            let r = &mut Random::new(seed ^ 0x6672_6f6e_7473);
            self.draw_outside(level, r);
            self.draw_withheld(r);
        }
        if edition == EDITION_OF_SLICES {
            self.draw_slices(level, &mut Random::new(seed ^ 0x736c_6963_6573));
        } else if edition == EDITION_OF_MATCHES {
            self.draw_matches(&mut Random::new(seed ^ 0x006d_6174_6368));
        } else if edition == EDITION_OF_WITHHELD {
            self.draw_withheld(&mut Random::new(seed ^ 0x7769_7468_6865));
        } else if edition >= EDITION_OF_CRATES && edition != EDITION_OF_CRATE_LINKS {
            self.draw_crates(level, &mut Random::new(seed ^ 0x6372_6174_6573));
        }
        if edition >= EDITION_OF_WATCHERS {
            let watched = if edition >= EDITION_OF_MODULES { Watched::AllModules } else { Watched::WholeEvents };
            self.draw_watchers(watched, &mut Random::new(seed ^ 0x7761_7463_6865));
        }
        if edition >= EDITION_OF_RUNS {
            self.draw_next_run(&mut Random::new(seed ^ 0x0061_6761_696e));
        }
    }

    /// Applications join, and are joined by others than they seem: without the secret, or with that of a former life or of this one.
    fn draw_joins(&mut self, r: &mut Random) {
        let notice_max = Duration::from_micros([0, 200, 1_000, 30_000][r.below(4) as usize]);
        let mut faults = Vec::new();
        for _ in 0..r.below(4) {
            let at = if r.chance(0.5) { RUN_CONTROL } else { self.any(r) };
            // As those whose peers connect to them, too.
            let as_whom = self.any(r);
            if as_whom == at {
                continue;
            }
            let (lives_ahead, skips_proof) = (r.below(3) as i32 - 1, r.chance(0.3));
            let impostor = Impostor { as_whom, lives_ahead, at, knows_secret: false, skips_proof };
            let of_start = r.chance(0.5);
            let after = Duration::from_micros(r.below(if of_start { 600 } else { 15_000 }));
            let moment = if of_start { Moment::OfStart(after) } else { Moment::OfRun(after) };
            faults.push((moment, JoinFault::Impostor(impostor)));
        }
        for (at, node, away) in self.returning() {
            // About when the next life joins.
            let near = |r: &mut Random| {
                let most_us = if r.chance(0.5) { 500 } else { 2_000 };
                Moment::OfRun(at + away + Duration::from_micros(r.below(most_us)))
            };
            let any_time =
                |r: &mut Random| Moment::OfRun(at + Duration::from_micros(r.below(2_000)) + away.mul_f64(r.unit()));
            let mut other = self.any(r);
            while other == node {
                other = self.any(r);
            }
            let known =
                Impostor { as_whom: node, lives_ahead: 0, at: RUN_CONTROL, knows_secret: true, skips_proof: false };
            if r.chance(0.5) {
                // The former life speaks once more, to run control or to a peer.
                let at = if r.chance(0.3) { RUN_CONTROL } else { other };
                faults.push((near(r), JoinFault::Impostor(Impostor { lives_ahead: -1, at, ..known })));
            }
            if r.chance(0.3) {
                faults.push((any_time(r), JoinFault::Impostor(known)));
            }
            if r.chance(0.2) {
                faults.push((near(r), JoinFault::Cut(node)));
            }
        }
        self.course.joins = Some(Joins { notice_max, faults });
    }

    /// Another run follows in the same processes, of which some die before it.
    fn draw_next_run(&mut self, r: &mut Random) {
        self.again = r.chance(0.7).then(|| r.chance(0.5));
        let returning = self.returning();
        let Some(joins) = &mut self.course.joins else { return };
        for (_, node, _) in returning {
            if r.chance(0.3) {
                let fault = if r.chance(0.7) { JoinFault::Death(node) } else { JoinFault::Cut(node) };
                joins.faults.push((Moment::BetweenRuns(Duration::from_micros(r.below(400))), fault));
            }
        }
    }

    /// Those that die and return: when, who, and for how long they are away.
    fn returning(&self) -> Vec<(Duration, NodeId, Duration)> {
        let of = |(at, fault): &(Duration, Fault)| match fault {
            Fault::Restart(node, away) => Some((*at, *node, *away)),
            _ => None,
        };
        self.course.faults.iter().filter_map(of).collect()
    }

    /// Nearly always everything heals, so that what is in hand must drain; else that it does not would never be seen.
    fn draw_healing(&mut self, r: &mut Random) {
        if self.course.healed_after.is_none() && r.chance(0.95) {
            let most_ms = if r.chance(0.5) { 20 } else { 150 };
            self.course.healed_after = Some(Duration::from_millis(1 + r.below(most_ms)));
        }
    }

    /// Switches with short buffers, farms with a heavy hour, clocks that step back, links with wrong bits.
    fn draw_hosts(&mut self, r: &mut Random) {
        if r.chance(0.15) {
            self.building.port = Some(Port {
                bytes_per_s: [500_000, 5_000_000, 100_000_000][r.below(3) as usize],
                buffer_bytes: [400, 2_000, 10_000][r.below(3) as usize],
            });
        }
        if self.has_level2() && r.chance(0.15) {
            let until = Duration::from_micros(r.below(20_000));
            self.level2.heavy_until = Some((until, Duration::from_micros(r.below(5_000))));
        }
        let node = self.any(r);
        let at = Duration::from_micros(r.below(15_000));
        if r.chance(0.15) {
            self.course.faults.push((at, Fault::ClockBack(node, Duration::from_millis(1 + r.below(500)))));
        }
        if r.chance(0.2) {
            self.readout.fragment_faults.corruption = 0.2 * r.unit();
        }
    }

    /// The disk of a recorder is full.
    fn draw_disk(&mut self, r: &mut Random) {
        let recorders = self.of(Role::Sfo);
        if self.recording.in_order || recorders.is_empty() || !r.chance(0.25) {
            return;
        }
        let node = recorders[r.below(recorders.len() as u64) as usize];
        let at = Duration::from_micros(r.below(15_000));
        self.course.faults.push((at, Fault::FullDisk(node, Duration::from_millis(1 + r.below(100)))));
    }

    /// Events are recorded in several streams: by what chains say, by name, and of some only a part.
    fn draw_streams(&mut self, r: &mut Random) {
        if !r.chance(0.35) {
            return;
        }
        let rule = |chains, prescale| StreamRule { chains, by_name: false, prescale };
        let first = [rule(0, 1), rule(0, 2), rule(0b01, 1)][r.below(3) as usize];
        self.recording.streams = vec![first, rule(0, 1 + r.below(4))];
        if r.chance(0.5) {
            self.recording
                .streams
                .push([rule(0b10, 1), StreamRule { by_name: true, ..rule(0, 1) }][r.below(2) as usize]);
        }
    }

    /// What dies is the pROS.
    fn draw_loss_of_results(&mut self, r: &mut Random) {
        let Some(pros) = self.of(Role::Pros).first().copied().filter(|_| r.chance(0.2)) else { return };
        for (_, fault) in &mut self.course.faults {
            match fault {
                Fault::Kill(node) | Fault::Restart(node, _) => *node = pros,
                _ => {}
            }
        }
    }

    /// An application or a filter says nothing any more and does not die: the end of the run has to be asked for and forced.
    fn draw_silence(&mut self, r: &mut Random) {
        if !r.chance(0.3) {
            return;
        }
        self.course.duration = Some(Duration::from_millis(1 + r.below(60)));
        if self.counts.efd > 0 && self.input != InputKind::Level2Only && r.chance(0.25) {
            self.filter.has_tasks = true;
            self.recording.in_order = false;
            self.filter.stuck_after = Some(r.below(self.triggers.events));
            return;
        }
        let node = self.any(r);
        let at = Duration::from_micros(r.below(15_000));
        if r.chance(0.7) {
            self.course.faults.retain(|(_, fault)| !matches!(fault, Fault::Kill(_) | Fault::Force));
        }
        self.course.faults.push((at, Fault::Hang(node)));
    }

    /// Each type of message has a carrier of its own: a connection, which keeps order in itself only, or datagrams.
    fn draw_carriers(&mut self, r: &mut Random) {
        if !r.chance(0.3) {
            return;
        }
        self.network.connected = TypeSet::of_bits(r.below(1 << TypeSet::COUNT) as u16);
        if self.network.slow_channels == 0.0 && r.chance(0.5) {
            self.network.slow_channels = 0.2;
        }
    }

    /// Nothing goes wrong but that applications die: then every event is to be recorded with all its data, and nothing excuses what is not.
    /// Often it is the DFM and one that knows of its events.
    fn draw_calm(&mut self, r: &mut Random) {
        if self.counts.efd == 0 || self.input == InputKind::Level2Only || !r.chance(0.4) {
            return;
        }
        (self.network.links, self.readout.fragment_faults) = (Links::perfect(), Links::perfect());
        (self.building.port, self.network.slow_channels, self.recording.failures, self.level2.slow_steering) =
            (None, 0.0, 0.0, 0.0);
        self.level2.heavy_until = None;
        self.course.healed_after = None;
        self.course.late.clear();
        self.building.clear_after = ClearAfter::Recorded;
        self.triggers.events = 20 + r.below(180);
        self.readout.pages = self.readout.pages.max(200);
        self.course.faults.retain(|(_, fault)| matches!(fault, Fault::Kill(_) | Fault::Restart(..)));
        if r.chance(0.5) {
            let (dfm, roles) = (self.of(Role::Dfm), [Role::Sfi, Role::Sfi, Role::Efd, Role::Sfo, Role::L2pu]);
            let others = self.of(roles[r.below(5) as usize]);
            let mut pair = dfm.into_iter().chain(others.first().copied());
            for (_, fault) in &mut self.course.faults {
                let away = Duration::from_micros(100 + r.below(30_000));
                if let Some(node) = pair.next() {
                    *fault = Fault::Restart(node, away);
                }
            }
        }
    }

    /// Run control pauses the run, also while it is paused or ends, and often when an application dies or returns.
    fn draw_pauses(&mut self, r: &mut Random) {
        if !r.chance(0.25) {
            return;
        }
        let struck: Vec<Duration> = self.course.faults.iter().map(|(at, _)| *at).collect();
        for _ in 0..1 + r.below(3) {
            let near = (!struck.is_empty() && r.chance(0.6)).then(|| struck[r.below(struck.len() as u64) as usize]);
            let latest_us = if near.is_some() || r.chance(0.5) { 2_000 } else { 20_000 };
            let after = Duration::from_micros(100 + r.below(latest_us));
            let at = near.map_or(after, |near| (near + after).saturating_sub(Duration::from_millis(1)));
            let longest_us = if r.chance(0.5) { 1_000 } else { 20_000 };
            let lasts = Duration::from_micros(r.below(longest_us));
            self.course.faults.push((at.max(Duration::from_micros(100)), Fault::Pause(lasts)));
        }
    }

    /// Somebody watches: asks for many samples or for few, often or once and never again.
    fn draw_watchers(&mut self, watched: Watched, r: &mut Random) {
        let all = [SamplingStage::Sfi, SamplingStage::Efd, SamplingStage::Ros, SamplingStage::Ebif];
        let stages = if watched == Watched::AllModules { &all[..] } else { &all[..2] };
        let is_there = |stage: &SamplingStage| match stage {
            SamplingStage::Ros => true,
            SamplingStage::Ebif => self.readout.crates.is_some(),
            SamplingStage::Sfi => self.input != InputKind::Level2Only,
            SamplingStage::Efd => self.is_filtered(),
        };
        self.sampling = Sampling {
            stages: stages.iter().copied().filter(|_| r.chance(0.75)).filter(is_there).collect(),
            prescale: 1 + r.below(3) as u32,
            samples: 1 + r.below(8) as u32,
            size: Size::from_bytes([200, 2_000, 1 << 20][r.below(3) as usize]),
            ..Sampling::default()
        };
        for _ in 0..r.below(6) {
            self.course.faults.push((Duration::from_micros(100 + r.below(20_000)), Fault::Watch(watched)));
        }
    }

    fn any(&self, r: &mut Random) -> NodeId {
        let apps = self.applications();
        apps[r.below(apps.len() as u64) as usize].node
    }
}

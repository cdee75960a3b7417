//! The configuration of a plan: what a user would write to get its components.

use base::ids::Role;
use configuration as toml;
use configuration::{Fraction, Interval, OnLoss, Partition, Rate, Size};
use dataflow::building::assignment::SfiAssignment;
use dataflow::building::dfm::ClearAfter;
use dataflow::building::request_credits::CreditPolicy;
use dataflow::building::sfi::RequestOrder;
use dataflow::filter::policy::FilterPolicy;
use dataflow::level1::dead_time::{DeadTimeParameters, LeakyBucket};
use dataflow::level1::pace::Spacing;
use dataflow::level2::l2sv::L2puAssignment;
use dataflow::level2::overrides::Override;
use dataflow::level2::steering::Strategy;
use dataflow::readout::pusher::Destination;
use dataflow::recording::sfo::Durable;

use super::drawn::{Drawn, Matched, OwnClock};
use super::plan::{Crates, InputKind, Plan};
use simulator::world::Fault;

impl Plan {
    /// The configuration that its components are made of. Of a lawful plan `weir check` takes it.
    pub fn configuration(&self) -> Partition {
        let chains = chains(self);
        Partition {
            partition: toml::Identity { name: "swarm".to_owned(), ..toml::Identity::default() },
            run: self.run_table(),
            level1: (self.input != InputKind::SelfTrigger).then(|| self.level1_table()),
            l2sv: self.has_level2().then(|| self.l2sv_table()),
            l2pu: self.has_level2().then(|| self.l2pu_table()),
            menu: (!chains.is_empty()).then(|| toml::Menu { chain: chains, ..toml::Menu::default() }),
            ros: self.ros_table(),
            roc: self.roc_table(),
            source: self.source_tables(),
            dfm: self.dfm_table(),
            sfi: self.sfi_table(),
            ef: self.is_filtered().then(|| self.ef_table()),
            pt: (self.is_filtered() && self.filter.has_tasks).then(|| self.pt_table()),
            sfo: self.is_filtered().then(|| self.sfo_table()),
            stream: if self.is_filtered() && self.recording.streams.len() > 1 {
                self.stream_tables()
            } else {
                Vec::new()
            },
            sampling: self.sampling.clone(),
            processes: toml::Processes { on_loss: self.on_loss(), ..toml::Processes::default() },
            ..Partition::default()
        }
    }

    /// Whether events come to an event filter, and so to recorders.
    pub(super) fn is_filtered(&self) -> bool {
        self.counts.efd > 0 && self.input != InputKind::Level2Only
    }

    fn run_table(&self) -> toml::Run {
        toml::Run {
            number: Some(self.run),
            events: self.triggers.limited.then_some(self.triggers.events),
            duration: self.course.duration.map(interval),
            first_lvl1_id: if self.has_numbers_of_its_own() { 0 } else { self.triggers.first as u32 },
            seed: self.seed,
            stop_timeout: interval(self.course.stop_timeout),
            ..toml::Run::default()
        }
    }

    fn level1_table(&self) -> toml::Level1 {
        let is_poisson = matches!(self.triggers.spacing, Spacing::Poisson(_));
        toml::Level1 {
            source: match (&self.readout.sending, self.triggers.credit) {
                (_, Some(_)) => toml::Level1Source::External,
                (Some(sending), None) if sending.slices.is_some() => toml::Level1Source::Time,
                (Some(_), None) => toml::Level1Source::Link,
                (None, None) => toml::Level1Source::Emulator,
            },
            leader: self.sources().iter().find(|drawn| drawn.leads).map(name_of_source),
            processor: self.processor_tables(),
            rate: rate(self.triggers.spacing),
            spacing: if is_poisson { toml::Spacing::Poisson } else { toml::Spacing::Fixed },
            dead_time: self.triggers.crossings.as_ref().map(dead_time),
            profile: self
                .triggers
                .profile
                .iter()
                .filter_map(|&(from, spacing)| Some(toml::ProfileStep { from: interval(from), rate: rate(spacing)? }))
                .collect(),
            in_flight: self.triggers.in_flight as u32,
            slice: self.slicing().map(|slicing| interval(slicing.length)),
            window: self.slicing().and_then(|slicing| slicing.window).map(interval),
            grace: self
                .slicing()
                .map(|slicing| slicing.grace)
                .or(self.matching().map(|matching| matching.grace))
                .map(interval),
            ..toml::Level1::default()
        }
    }

    fn l2sv_table(&self) -> toml::L2sv {
        toml::L2sv {
            count: self.counts.l2sv.into(),
            assignment: match self.level2.assignment {
                L2puAssignment::RoundRobin => toml::L2svAssignment::RoundRobin,
                L2puAssignment::Random => toml::L2svAssignment::Random,
                L2puAssignment::LeastLoaded => toml::L2svAssignment::LeastLoaded,
            },
            events_in_system: self.level2.events_in_system as u32,
            timeout: interval(self.level2.timeout),
            forced_limit: fraction(self.level2.forced_limit),
            decisions: match self.level2.overrides.all {
                Override::None => toml::Decisions::AsFound,
                Override::ForceAccept => toml::Decisions::ForceAccept,
                Override::ForceReject => toml::Decisions::ForceReject,
            },
            group: self.fine.decision_group.unwrap_or(self.building.clear_group) as u32,
            group_age: interval(self.fine.decision_age),
            ..toml::L2sv::default()
        }
    }

    fn l2pu_table(&self) -> toml::L2pu {
        let mut table = toml::L2pu {
            count: self.counts.l2pu.into(),
            workers: self.level2.workers as u32,
            request_timeout: interval(self.fine.l2_request_timeout.unwrap_or(self.building.request_timeout)),
            phased: self.level2.phased.is_some(),
            cost: interval(self.level2.steering_cost),
            ..toml::L2pu::default()
        };
        (table.strategy, table.accept) = match self.level2.strategy {
            Strategy::None { accept } => (toml::Strategy::None, fraction(accept)),
            Strategy::Generate { accept, .. } => (toml::Strategy::Generate, fraction(accept)),
            Strategy::TwoStep { .. } => (toml::Strategy::TwoStep, table.accept),
        };
        match self.level2.strategy {
            Strategy::TwoStep { step_accept, robs_per_step } => {
                (table.step_accept, table.robs_per_step) = (fraction(step_accept), robs_per_step as u32);
            }
            Strategy::Generate { robs_per_step, .. } => table.robs_per_step = robs_per_step as u32,
            Strategy::None { .. } => {}
        }
        if let Some(accept) = self.level2.sink {
            (table.strategy, table.accept) = (toml::Strategy::Sink, fraction(accept));
        }
        table
    }

    fn ros_table(&self) -> toml::Ros {
        let (below, above) = self.fine.busy;
        toml::Ros {
            count: self.counts.ros.into(),
            robs: if self.readout.sending.is_some() { 1 } else { self.readout.robs_per_ros.into() },
            input: if self.readout.sending.is_some() { toml::RosInput::Links } else { toml::RosInput::Emulator },
            pages: self.readout.pages as u32,
            busy_above: fraction(above),
            busy_below: fraction(below),
            request_timeout: interval(self.fine.readout_timeout),
            fragment: toml::Fragment { size: Some(Size::from_bytes(FRAGMENT_DATA_BYTES)), ..toml::Fragment::default() },
            push: self.building.push.map(|push| toml::Push {
                window: Some(Size::from_bytes(push.window_bytes)),
                link_per_second: push
                    .bytes_per_s
                    .map(|each| Size::from_bytes(each * u64::from(self.sources_of_builders()))),
                burst: Size::from_bytes(push.burst_bytes),
                group: push.group as u32,
                group_age: interval(self.fine.push_age),
            }),
            ..toml::Ros::default()
        }
    }

    fn roc_table(&self) -> Option<toml::Roc> {
        let table = |crates: Crates| toml::Roc {
            count: crates.count.into(),
            ros: crates.ros.into(),
            clear_group: crates.group as u32,
            clear_age: interval(crates.age),
        };
        self.readout.crates.map(table)
    }

    fn source_tables(&self) -> Vec<toml::LinkSource> {
        let table = |drawn: &Drawn| toml::LinkSource {
            name: name_of_source(drawn),
            id: Some(self.robs(drawn.ros)[usize::from(drawn.rob)]),
            size_max: Size::from_bytes(FRAGMENT_DATA_BYTES),
            ordered: !drawn.is_unordered,
            handshake: drawn.one_by_one.then_some(toml::Handshake::Eudet),
            on_missing: drawn.on_missing,
            ..cut(drawn)
        };
        self.sources().iter().map(table).collect()
    }

    fn dfm_table(&self) -> toml::Dfm {
        let is_self = self.input == InputKind::SelfTrigger;
        toml::Dfm {
            input: match self.input {
                InputKind::Level2 | InputKind::Level2Only => toml::DfmInput::Level2,
                InputKind::Level1 => toml::DfmInput::Level1,
                InputKind::SelfTrigger => toml::DfmInput::SelfTrigger,
            },
            rate: rate(self.triggers.spacing).filter(|_| is_self),
            building: match self.building.push.map(|push| push.destination) {
                None => toml::BuildingMode::Pull,
                Some(Destination::Assigned) => toml::BuildingMode::Push,
                Some(Destination::Table) => toml::BuildingMode::PushByNumber,
            },
            assignment: match self.building.assignment {
                SfiAssignment::RoundRobin => toml::SfiAssignment::RoundRobin,
                SfiAssignment::LeastLoaded => toml::SfiAssignment::LeastLoaded,
            },
            build_timeout: interval(self.building.timeout),
            clear_group: self.building.clear_group as u32,
            clear_age: interval(self.fine.clear_age),
            clear_after: match self.building.clear_after {
                ClearAfter::Recorded if self.is_filtered() => toml::ClearAfter::Recorded,
                ClearAfter::Built | ClearAfter::Recorded => toml::ClearAfter::Built,
            },
            queue: self.building.queue as u32,
        }
    }

    fn sfi_table(&self) -> toml::Sfi {
        toml::Sfi {
            count: if self.input == InputKind::Level2Only { 0 } else { self.counts.sfi.into() },
            events: self.building.events as u32,
            building: self.building.at_once as u32,
            outstanding_requests: self.building.requests as u32,
            credits: match self.building.credits {
                CreditPolicy::Fixed => toml::RequestCredits::Fixed,
                CreditPolicy::Adaptive => toml::RequestCredits::Adaptive,
            },
            request_order: match self.building.request_order {
                RequestOrder::Random => toml::RequestOrder::Random,
                RequestOrder::Rotating => toml::RequestOrder::Rotating,
            },
            request_timeout: interval(self.building.request_timeout),
            retries: self.fine.retries,
            max_event_size: Size::from_bytes(1 << 20),
            ..toml::Sfi::default()
        }
    }

    fn ef_table(&self) -> toml::Ef {
        let default =
            toml::Ef { count: self.counts.efd.into(), slots: self.filter.slots as u32, ..toml::Ef::default() };
        match self.filter.policy {
            // Tasks decide by the policy of the plan.
            _ if self.filter.has_tasks => default,
            FilterPolicy::AcceptAll => default,
            FilterPolicy::Prescale { factor } => {
                toml::Ef { policy: toml::FilterPolicy::Prescale, prescale: factor as u32, ..default }
            }
            FilterPolicy::Random { accept, .. } => {
                toml::Ef { policy: toml::FilterPolicy::Random, accept: fraction(accept), ..default }
            }
        }
    }

    /// A menu, where streams ask for its chains, else a task that nobody has written: the world decides in its place.
    fn pt_table(&self) -> toml::Pt {
        let default = toml::Pt::default();
        if self.has_chains() { default } else { toml::Pt { algorithm: "swarm.py:Drawn".to_owned(), ..default } }
    }

    fn sfo_table(&self) -> toml::Sfo {
        let (durable, fsync_age) = match self.recording.durable {
            Durable::Write => (toml::Durability::Write, toml::Sfo::default().fsync_age),
            Durable::Sync { age, .. } => (toml::Durability::Fsync, interval(age)),
        };
        let order = if self.recording.in_order { toml::EventOrder::Event } else { toml::EventOrder::Arrival };
        toml::Sfo { count: self.counts.sfo.into(), durable, fsync_age, order, ..toml::Sfo::default() }
    }

    fn stream_tables(&self) -> Vec<toml::Stream> {
        let stream = |(place, rule): (usize, &dataflow::filter::streams::StreamRule)| toml::Stream {
            name: format!("Stream{place}"),
            chains: CHAINS.iter().enumerate().filter(|(bit, _)| rule.chains >> bit & 1 == 1).map(name_of).collect(),
            by_name: rule.by_name,
            prescale: rule.prescale as u32,
            ..toml::Stream::default()
        };
        self.recording.streams.iter().enumerate().map(stream).collect()
    }

    pub(super) fn has_chains(&self) -> bool {
        self.is_filtered() && self.recording.streams.iter().any(|rule| rule.chains != 0)
    }

    /// What dies and returns is started again, whatever is drawn.
    fn on_loss(&self) -> OnLoss {
        let applications = self.applications();
        let restarts = |role: Role| {
            self.course.faults.iter().any(|(_, fault)| {
                matches!(fault, Fault::Restart(node, _) if applications[usize::from(node.0) - 1].role == role)
            })
        };
        let of = |role: Role| {
            let stops = self.fine.stops.contains(&role) && !restarts(role);
            if stops { toml::LossAction::Stop } else { toml::LossAction::Restart }
        };
        OnLoss {
            level1: toml::LossAction::Stop,
            l2sv: of(Role::L2sv),
            l2pu: of(Role::L2pu),
            pros: of(Role::Pros),
            ros: of(Role::Ros),
            dfm: of(Role::Dfm),
            sfi: of(Role::Sfi),
            efd: of(Role::Efd),
            sfo: of(Role::Sfo),
            trg: of(Role::Trg),
            ebif: of(Role::Ebif),
        }
    }
}

/// What slices or events have of it, if that does not go by number.
fn cut(drawn: &Drawn) -> toml::LinkSource {
    let default = toml::LinkSource::default();
    if let Some(cut) = drawn.cut {
        return toml::LinkSource {
            before: Some(interval(cut.before)),
            after: Some(interval(cut.after)),
            inclusive: !cut.is_exclusive,
            chunks: cut.most,
            ..default
        };
    }
    let Some(matched) = drawn.matched else { return default };
    match matched {
        Matched::Count(count) => toml::LinkSource {
            matching: Some(toml::Matching::Count),
            first_count: (count.first > 0).then_some(count.first.into()),
            clock: if count.has_clock { toml::SourceClock::Model } else { toml::SourceClock::None },
            ..default
        },
        Matched::Time(time) => toml::LinkSource {
            matching: Some(toml::Matching::Time),
            before: Some(interval(time.before)),
            after: Some(interval(time.after)),
            inclusive: !time.is_exclusive,
            chunks: time.most,
            offset: (time.clock != OwnClock::Sought).then(|| toml::Shift::from_ns(-time.telling.ahead_ns)),
            clock: if time.clock == OwnClock::Common { toml::SourceClock::None } else { toml::SourceClock::Model },
            ..default
        },
    }
}

fn name_of_source(drawn: &Drawn) -> String {
    format!("source-{}-{}", drawn.ros + 1, drawn.rob + 1)
}

fn chains(plan: &Plan) -> Vec<toml::Chain> {
    let chain =
        |name: &&str| toml::Chain { name: (*name).to_owned(), item: "L1_EM20I".to_owned(), ..toml::Chain::default() };
    if plan.has_chains() { CHAINS.iter().map(chain).collect() } else { Vec::new() }
}

fn name_of((_, name): (usize, &&str)) -> String {
    (*name).to_owned()
}

fn interval(duration: std::time::Duration) -> Interval {
    Interval::from_ns(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

fn fraction(value: f64) -> Fraction {
    Fraction::from_f64(value).expect("a plan has fractions from 0 to 1")
}

fn rate(spacing: Spacing) -> Option<Rate> {
    let of = |mean: std::time::Duration| Rate::from_millihertz((1e3 / mean.as_secs_f64()).round() as u64);
    match spacing {
        Spacing::Unlimited => None,
        Spacing::Fixed(interval) | Spacing::Poisson(interval) => Some(of(interval)),
    }
}

fn dead_time(crossings: &DeadTimeParameters) -> toml::DeadTime {
    let bucket = |bucket: &LeakyBucket| toml::LeakyBucket { size: bucket.size as u32, drain: bucket.drain as u32 };
    toml::DeadTime { simple: crossings.simple as u32, complex: crossings.complex.iter().map(bucket).collect() }
}

/// Of the two that processing tasks know.
const CHAINS: [&str; 2] = ["first", "second"];
/// As long as headers allow in what the world takes for a fragment.
const FRAGMENT_DATA_BYTES: u64 = 16;

//! Level 2: level 1, a supervisor that clears the read-out itself, L2PUs with two steps of data requests, ROSs.

use base::ids::Role;
use configuration::{Dfm, DfmInput, Fraction, Interval, L2pu, L2sv, Level1, Partition as Configuration, Ros, Run, Sfi};
use dataflow::report::{Counters, L2svCounters};

use crate::partition::Partition;

/// Each step asks for two ROBs and rejects nine of ten events.
pub(crate) fn two_step(events: u64) {
    let timeout = Interval::from_ms(2000);
    let configuration = Configuration {
        run: Run { events: Some(events), ..Run::default() },
        level1: Some(Level1 { in_flight: IN_FLIGHT, ..Level1::default() }),
        l2sv: Some(L2sv { events_in_system: IN_FLIGHT, timeout: Interval::from_ms(10_000), ..L2sv::default() }),
        l2pu: Some(L2pu {
            count: 2,
            workers: 64,
            robs_per_step: 2,
            step_accept: Fraction::from_percent(10),
            request_timeout: timeout,
            ..L2pu::default()
        }),
        ros: Ros { count: 4, request_timeout: timeout, ..Ros::default() },
        dfm: Dfm { input: DfmInput::Level2, ..Dfm::default() },
        sfi: Sfi { count: 0, ..Sfi::default() },
        ..Configuration::default()
    };
    let mut partition = Partition::new(configuration, 2, 64);
    partition.start();
    partition.run_until(Role::L2sv, |report| {
        let counters = L2svCounters::from_values(&report.counters);
        counters.accepted + counters.rejected >= events
    });
}

const IN_FLIGHT: u32 = 128;

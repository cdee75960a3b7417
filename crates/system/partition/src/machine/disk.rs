//! What a run may record, as far as its configuration says it.

use std::time::Duration;

use configuration::{FilterPolicy, Partition, RosInput, Strategy};

use crate::facts::fragment_overhead_bytes;
use crate::human::{elapsed, si};

/// What to say of a run that may fill the disk, with the keys that it is about; `room` names its free bytes in words.
pub(super) fn warning(partition: &Partition, free: u64, room: &str) -> Option<(&'static [&'static str], String)> {
    let bytes_per_event = event_bytes(partition).zip(accepted(partition)).map(|(bytes, part)| bytes * part);
    let rate = rate_hz(partition);
    let of_events = partition.run.events.map(|events| events as f64);
    let of_time = partition.run.duration.map(|duration| rate.map(|rate| rate * duration.duration().as_secs_f64()));
    match (of_events, of_time) {
        (None, None) if partition.run.size.is_none() && is_endless(partition) => {
            let known = rate.zip(bytes_per_event).map(|(rate, bytes)| rate * bytes);
            let bytes_per_s = known.unwrap_or(FAST_DISK_BYTES_PER_S);
            let filled = elapsed(Duration::from_secs_f64((free as f64 / bytes_per_s.max(1.0)).min(1e9)));
            let speed = si(bytes_per_s, "B/s");
            let said = format!("the run has no end: at {speed} it fills {room} within {filled}; expected {LIMITS}");
            Some((&["run.events", "run"], said))
        }
        (events, of_time) => {
            let events = events.into_iter().chain(of_time.flatten()).reduce(f64::min);
            let of_events = events.zip(bytes_per_event).map(|(events, bytes)| events * bytes);
            let of_size = partition.run.size.map(|size| size.bytes() as f64);
            let bytes = of_events.into_iter().chain(of_size).reduce(f64::min)?;
            let said = || format!("the run may record {}, more than {room}", si(bytes, "B"));
            (bytes > free as f64).then(|| (&["output.directory", "output"] as &[_], said()))
        }
    }
}

/// Whether events never run out.
fn is_endless(partition: &Partition) -> bool {
    matches!(partition.ros.input, RosInput::Emulator | RosInput::Links) || partition.input.repeat
}

fn rate_hz(partition: &Partition) -> Option<f64> {
    let rate = partition.level1.as_ref().map_or(partition.dfm.rate, |level1| level1.rate);
    rate.map(configuration::Rate::hertz)
}

/// Mean size of an emulated event; that of others is in their files.
fn event_bytes(partition: &Partition) -> Option<f64> {
    let ros = &partition.ros;
    let sizes = ros.fragment.distribution().filter(|_| ros.input == RosInput::Emulator)?;
    let fragment = sizes.size_mean().bytes() as f64 + fragment_overhead_bytes(partition) as f64;
    Some(fragment * f64::from(ros.count) * f64::from(ros.robs))
}

/// The part of the events that is recorded; `None` where that is for a menu or a program to say.
fn accepted(partition: &Partition) -> Option<f64> {
    let level2 = match &partition.l2pu {
        None => 1.0,
        Some(l2pu) => match l2pu.strategy {
            Strategy::None | Strategy::Generate | Strategy::Sink => l2pu.accept.as_f64(),
            Strategy::TwoStep => l2pu.step_accept.as_f64().powi(2),
            Strategy::Menu => return None,
        },
    };
    if partition.pt.is_some() {
        return None;
    }
    let filter = partition.event_filter().map_or(1.0, |ef| match ef.policy {
        FilterPolicy::Accept => 1.0,
        FilterPolicy::Prescale => 1.0 / f64::from(ef.prescale.max(1)),
        FilterPolicy::Random => ef.accept.as_f64(),
    });
    Some(level2 * filter)
}

/// About what a good disk takes, for runs as fast as they can be.
const FAST_DISK_BYTES_PER_S: f64 = 1e9;
const LIMITS: &str = "run.events, run.duration or run.size, or --events, --duration or --size";

#[cfg(test)]
mod tests {
    use super::*;

    fn said(more: &str, free: u64) -> Option<String> {
        let text = format!(
            "partition.name = \"p\"\nros = {{ count = 10, fragment = {{ kind = \"fixed\", size = \"948 B\" }} }}\n\
             sfi.count = 1\nsfo = {{}}\n{more}"
        );
        let partition = Partition::parse("p", &text, &[]).unwrap();
        warning(&partition, free, "the disk").map(|(_, said)| said)
    }

    #[test]
    fn a_run_without_end_is_said_to_fill_the_disk_and_after_how_long() {
        let slow = said("dfm.rate = \"100 Hz\"\n", 1_000_000_000).unwrap();
        assert!(slow.starts_with("the run has no end: at 1.0"), "{slow}");
        assert!(slow.contains(" MB/s it fills the disk within 16 min 0"), "{slow}");
        let fast = said("", 50_000_000_000).unwrap();
        assert!(fast.contains("at 1 GB/s it fills the disk within 50.0 s; expected run.events"), "{fast}");
    }

    #[test]
    fn a_run_with_an_end_is_said_to_fill_the_disk_only_if_it_is_too_long_for_it() {
        assert_eq!(said("run.events = 1000\n", 20_000_000), None);
        let long = said("run.events = 10000\n", 20_000_000).unwrap();
        assert!(long.starts_with("the run may record 10") && long.contains("MB, more than the disk"), "{long}");
        assert_eq!(said("run.duration = \"10 s\"\ndfm.rate = \"100 Hz\"\n", 20_000_000), None);
        assert!(said("run.duration = \"1 h\"\ndfm.rate = \"100 Hz\"\n", 20_000_000).is_some());
        assert_eq!(said("run.events = 10000\nef = { policy = \"prescale\", prescale = 10 }\n", 20_000_000), None);
        assert_eq!(said("run.duration = \"1 h\"\n", 20_000_000), None, "how fast it is nobody knows");
        assert_eq!(said("run.size = \"19 MB\"\n", 20_000_000), None);
        assert!(said("run.size = \"21 MB\"\n", 20_000_000).unwrap().contains("21 MB, more than the disk"));
    }
}

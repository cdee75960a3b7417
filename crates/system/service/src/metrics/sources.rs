//! What is measured of sources that send by themselves.

use partition::Source;

use super::Sample;
use crate::sources::SourceRates;

/// What is measured of a source.
pub(super) fn samples(source: &SourceRates, samples: &mut Vec<Sample>) {
    let Source { application, link, in_buffers, last_number, last_time_ns, .. } = &source.source;
    let mut push = |sample: Sample| {
        let labels = [vec![("source", link.name.clone())], sample.labels].concat();
        samples.push(Sample { application: Some(application.clone()), labels, ..sample });
    };
    for state in partition::SOURCE_STATES {
        let is_so = u64::from(state == link.state);
        push(Sample::count("weir_source_state", is_so).with("state", state.to_owned()));
    }
    for (metric, count) in [
        ("weir_source_fragments_total", link.fragments),
        ("weir_source_bytes_total", link.bytes),
        ("weir_source_kept_total", link.kept),
        ("weir_source_in_buffers", *in_buffers),
        ("weir_source_missing_total", link.missing),
        ("weir_source_lost_total", link.lost),
    ] {
        push(Sample::count(metric, count));
    }
    let (damage, device) = (&link.damage, &link.device);
    for (metric, counts) in [
        (
            "weir_source_dropped_total",
            &[
                ("late", link.late),
                ("doubled", link.doubled),
                ("unplaced", link.unplaced),
                ("never triggered", link.never_triggered),
            ][..],
        ),
        (
            "weir_source_damaged_total",
            &[
                ("checksum", damage.checksum),
                ("data", damage.data),
                ("control", damage.control),
                ("no begin", damage.no_begin),
                ("no end", damage.no_end),
                ("cut", damage.cut),
            ],
        ),
        (
            "weir_source_frames_lost_total",
            &[
                ("missing", device.missing),
                ("repeated", device.repeated),
                ("malformed", device.malformed),
                ("foreign", device.foreign),
                ("outside", device.outside),
                ("unread", device.unread),
            ],
        ),
    ] {
        counts.iter().for_each(|(cause, count)| push(Sample::count(metric, *count).with("cause", (*cause).to_owned())));
    }
    last_number.iter().for_each(|number| push(Sample::count("weir_source_last_number", *number)));
    let seconds = |ns: f64| ns / 1e9;
    let last_time = last_time_ns.map(|ns| seconds(ns as f64));
    last_time.into_iter().for_each(|time| push(Sample::real("weir_source_last_time_seconds", time)));
    let Some(clock) = link.clock else { return };
    push(Sample::real("weir_source_clock_offset_seconds", seconds(clock.offset_ns as f64)));
    push(Sample::real("weir_source_clock_drift_ratio", clock.drift_ppt as f64 / 1e12));
    push(Sample::real("weir_source_clock_quality_seconds", seconds(clock.quality_ns as f64)));
    push(Sample::count("weir_source_clock_steps_total", clock.steps));
    push(Sample::count("weir_source_slips_total", clock.slips));
}

#[cfg(test)]
mod tests {
    use crate::sources::full;

    #[test]
    fn samples_have_the_name_of_the_source() {
        let mut samples = Vec::new();
        super::samples(&full(), &mut samples);
        let text = super::super::text(Some("p"), &samples);
        for line in [
            "weir_source_state{partition=\"p\",application=\"ros-1\",source=\"tlu\",state=\"running\"} 1",
            "weir_source_state{partition=\"p\",application=\"ros-1\",source=\"tlu\",state=\"lost\"} 0",
            "weir_source_dropped_total{partition=\"p\",application=\"ros-1\",source=\"tlu\",cause=\"late\"} 3",
            "weir_source_last_time_seconds{partition=\"p\",application=\"ros-1\",source=\"tlu\"} 1.5",
            "weir_source_clock_offset_seconds{partition=\"p\",application=\"ros-1\",source=\"tlu\"} -0.000002",
            "weir_source_clock_drift_ratio{partition=\"p\",application=\"ros-1\",source=\"tlu\"} 0.00001",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}

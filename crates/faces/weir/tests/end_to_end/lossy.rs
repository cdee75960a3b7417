//! Datagrams through a network that drops some of them, in a network namespace of its own. Tries and rates: `weir bench losses`.

use crate::account::Summary;
use crate::running::Job;

#[test]
fn every_event_is_complete_although_a_tenth_of_the_datagrams_is_dropped() {
    if !can_lose("every_event_is_complete_although_a_tenth_of_the_datagrams_is_dropped") {
        return;
    }
    for (size, events) in [("9 kB", 400), ("37500 B", 100)] {
        let (_, summary) = builder(size, events).losing(10).run().expect_ok();
        assert_eq!(summary.count("built_complete"), events, "{summary:?}");
        let (sent, received) = (count(&summary, "sent"), count(&summary, "received"));
        assert!(received * 100 < sent * 95, "the network drops none: {summary:?}");
        assert!(count(&summary, "repeated") > 0 && count(&summary, "asked") > 0, "{summary:?}");
        // Four requests for each event: hardly one of them is repeated as a whole.
        let reasks = summary.0["reasks"].as_u64().unwrap();
        assert!(reasks < 4 * events / 10, "{reasks} re-asks: {summary:?}");
    }
}

/// Each message is delivered once and in order: nothing has to be asked for by the protocols above.
#[test]
fn acknowledged_datagrams_lose_nothing_although_a_tenth_is_dropped() {
    if !can_lose("acknowledged_datagrams_lose_nothing_although_a_tenth_is_dropped") {
        return;
    }
    let window = "{datagram=\"1472 B\", offload=false, window=\"256 kB\", retransmits=1000}";
    let job = builder("9 kB", 400).patient().set("transport.clear", "udp").set("transport.udp", window);
    let (_, summary) = job.losing(10).run().expect_ok();
    assert_eq!(summary.count("built_complete"), 400, "{summary:?}");
    let (sent, received) = (count(&summary, "sent"), count(&summary, "received"));
    assert!(received * 100 < sent * 95, "the network drops none: {summary:?}");
    assert!(count(&summary, "repeated") > 0, "{summary:?}");
    assert_eq!(summary.0["reasks"].as_u64(), Some(0), "{summary:?}");
}

#[test]
fn level_2_decides_on_regions_although_a_tenth_of_the_datagrams_is_dropped() {
    if !can_lose("level_2_decides_on_regions_although_a_tenth_of_the_datagrams_is_dropped") {
        return;
    }
    let job = Job::example("quickstart").events(200).processes(true).set("transport.roi_request", "udp");
    let job = job.set("ros.request_timeout", "60 s").set("l2sv.timeout", "60 s");
    // A multicast is counted once where it is sent, and by each receiver.
    let job = over_udp(job.set("transport.roi_reply", "udp")).set("transport.clear", "udp");
    let (_, summary) = job.set("sfi.request_timeout", "10 s").losing(10).run().expect_ok();
    assert!(count(&summary, "received") < count(&summary, "sent"), "{summary:?}");
}

/// Event building alone from four sources, recorded, with requests, replies and clears in datagrams that an Ethernet
/// carries, and that nothing joins on their way. Patient: a machine with other work is not what repeats requests.
fn builder(size: &str, events: u64) -> Job {
    let job = Job::example("event-builder").set("sfo", "{}").events(events).processes(true);
    let job = job.set("sfi.request_timeout", "10 s").set("dfm.build_timeout", "60 s");
    over_udp(job.set("ros.fragment", &format!("{{kind=\"fixed\", size={size:?}}}")).set("ros.page_size", "64 KiB"))
}

fn over_udp(job: Job) -> Job {
    let udp = [("event_request", "udp"), ("event_reply", "udp"), ("clear", "multicast")];
    let job = udp.into_iter().fold(job, |job, (key, value)| job.set(&format!("transport.{key}"), value));
    job.set("transport.udp", "{datagram=\"1472 B\", offload=false}")
}

fn count(summary: &Summary, count: &str) -> u64 {
    summary.0["network"]["datagrams"][count].as_u64().unwrap()
}

/// Whether this machine can have a network that drops; else the test is skipped by name.
pub(crate) fn can_lose(test: &str) -> bool {
    benchmarks::lossy::check().inspect_err(|reason| testkit::skip(test, reason)).is_ok()
}

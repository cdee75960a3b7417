//! How many replies a read-out system keeps to send them again.

use configuration::{FRAGMENT_OVERHEAD_BYTES, MessageType, Partition, RosInput, Way};
use transport::udp::Acknowledged;

/// Replies to one builder or level-2 unit that a read-out system keeps, until they are acknowledged or in case a lost
/// part is asked for.
pub(crate) fn replies_kept(partition: &Partition) -> usize {
    if !partition.transport.has_datagrams() {
        return 0;
    }
    replies_asked_for(partition).max(replies_unacknowledged(partition))
}

/// An older one is no longer missed, or given up.
fn replies_asked_for(partition: &Partition) -> usize {
    if partition.transport.udp.ask_after.duration().is_zero() {
        return 0;
    }
    let at_one_source = partition.sfi.outstanding_requests.div_ceil(partition.ros.count.max(1)) as usize;
    let workers = partition.l2pu.as_ref().map_or(0, |l2pu| l2pu.workers as usize);
    let pushed = partition.push().map_or(0, |_| partition.sfi.building as usize);
    KEPT_PER_CREDIT * at_one_source.max(workers).max(pushed)
}

/// What waits for the window is of events that its receiver waits for, and in no page beyond those of the events.
fn replies_unacknowledged(partition: &Partition) -> usize {
    let transport = &partition.transport;
    let replies = [MessageType::EventReply, MessageType::Pushed, MessageType::RoiReply];
    let has_replies = replies.into_iter().any(|of| transport.way(of) == Way::Udp);
    let Some(window) = transport.udp.window.filter(|_| has_replies) else { return 0 };
    // A shorter one is copied, unless it travels with others.
    let unknown_len = transport.copy_below.bytes();
    let ros = &partition.ros;
    let emulated = ros.fragment.distribution().filter(|_| ros.input == RosInput::Emulator);
    let reply_len = emulated.map_or(unknown_len, |sizes| {
        sizes.size_mean().bytes().saturating_add(FRAGMENT_OVERHEAD_BYTES).saturating_mul(u64::from(ros.robs))
    });
    let replies = window.bytes() / reply_len.max(1);
    usize::try_from(replies).unwrap_or(usize::MAX).clamp(1, Acknowledged::MESSAGES_MAX)
}

/// While one reply is incomplete, others come and go: of those that may wait at one source so many times as many are kept.
const KEPT_PER_CREDIT: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_by(overrides: &[&str]) -> usize {
        let text = "partition.name = \"p\"\nros.count = 4\nsfi.count = 2\n";
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        replies_kept(&Partition::parse("p", text, &overrides).unwrap())
    }

    #[test]
    fn nothing_is_kept_for_nobody_who_asks() {
        assert_eq!(kept_by(&[]), 0);
        assert_eq!(kept_by(&["transport.clear=udp", "transport.udp.ask_after=0 s"]), 0);
    }

    #[test]
    fn what_is_not_acknowledged_is_kept() {
        let kept = |window: &str, more: &[&str]| {
            let udp = format!("transport.udp={{window=\"{window}\", ask_after=\"0 s\"}}");
            kept_by(&[&[udp.as_str()], more].concat())
        };
        let replies = ["transport.event_reply=udp"];
        // Replies of 1 kB and headers.
        assert!((80..100).contains(&kept("100 kB", &replies)), "{}", kept("100 kB", &replies));
        assert_eq!((kept("1 GB", &replies), kept("1 kB", &replies)), (512, 1));
        assert_eq!((kept("100 kB", &["transport.clear=udp"]), kept("100 kB", &[])), (0, 0));
        let both = ["transport.event_reply=udp", "transport.udp.window=1 kB"];
        assert_eq!(kept_by(&both), kept_by(&both[..1]));
    }
}

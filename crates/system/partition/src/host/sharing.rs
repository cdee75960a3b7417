//! Connections through shared memory.

use configuration::Partition;
use transport::frame::FrameLimits;
use transport::page_pool::{Pool, PoolOptions};
use transport::poller::Poller;
use transport::shm::{LENT_POOLS_MAX, Process, ShmListener, ShmOptions};
use transport::waker::Waker;

use super::links::LinksError;

/// What a process needs for them.
pub(super) struct Sharing {
    pub(super) listener: ShmListener,
    /// `None` before the settings of the partition are known: peers wait to be accepted until then.
    pub(super) process: Option<Process>,
}

impl Sharing {
    pub(super) fn listen(poller: &mut Poller) -> Result<Self, LinksError> {
        let mut listener = ShmListener::bind()?;
        listener.register(poller)?;
        Ok(Self { listener, process: None })
    }

    /// Accepts and connects from now on. The pages of these pools travel as they are, all else in copies.
    pub(super) fn start(
        &mut self,
        options: &ShmOptions,
        copies: &PoolOptions,
        mut lent: Vec<Pool>,
        waker: &Waker,
    ) -> Result<(), LinksError> {
        let copies = Pool::shared(copies)?;
        copies.wake_on_return(waker.clone());
        lent.retain(Pool::is_shared);
        lent.truncate(LENT_POOLS_MAX);
        self.process = Some(Process::new(options, copies, lent)?);
        Ok(())
    }

    /// Whether a peer waits that can be accepted.
    pub(super) fn is_acceptable(&self) -> bool {
        self.process.is_some() && self.listener.is_acceptable()
    }
}

/// The settings that a partition asks for; `None` if no connection is of that kind.
pub(super) fn options(partition: &Partition, limits: FrameLimits) -> Option<ShmOptions> {
    let Partition { transport, ros, sfi, l2pu, .. } = partition;
    if !transport.has_shared_memory() {
        return None;
    }
    // A builder may hold a slice of each link of a ROS for each of its events, a unit of level 2 for each of its workers, and
    // as many that they asked for in vain.
    let links = if ros.robs == 0 { LINKS_UNKNOWN } else { ros.robs };
    let workers = l2pu.as_ref().map_or(0, |l2pu| l2pu.workers);
    let held = 4 * u64::from(sfi.events.max(workers).max(1)) * u64::from(links);
    let copy_below = usize::try_from(transport.copy_below.bytes()).unwrap_or(usize::MAX).min(COPY_BELOW_MAX);
    Some(ShmOptions {
        copy_below,
        queue_bytes_max: usize::MAX / 2,
        queue_frames_max: super::links::SEND_QUEUE_FRAMES,
        tickets_max: held.next_power_of_two().clamp(TICKETS_MIN, TICKETS_MAX) as usize,
        ..ShmOptions::new(limits)
    })
}

/// Links of a read-out system where the input says how many.
const LINKS_UNKNOWN: u32 = 64;
const TICKETS_MIN: u64 = 1024;
const TICKETS_MAX: u64 = 1 << 20;

/// Longer bulk is cheaper to hand over than to copy.
const COPY_BELOW_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_last_for_all_that_a_peer_may_hold() {
        let tickets = |events: u32, workers: u32| {
            let text = format!(
                "partition.name = \"p\"\ntransport.connections = \"shm\"\nros.count = 1\nros.robs = 12\n\
                 sfi = {{ count = 1, events = {events}, building = 4 }}\nl2pu = {{ count = 1, workers = {workers} }}\n\
                 l2sv = {{}}\nlevel1 = {{}}\n"
            );
            let partition = Partition::parse("p", &text, &[]).unwrap();
            options(&partition, FrameLimits::new(32, 1 << 20).unwrap()).unwrap().tickets_max
        };
        assert_eq!(tickets(8, 1), TICKETS_MIN as usize);
        assert!(tickets(8, 200) >= 12 * 200);
        assert!(tickets(200, 1) >= 12 * 200);
    }
}

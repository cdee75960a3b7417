//! Connections through shared memory.

use assembly::bounds;
use configuration::Partition;
use transport::page_pool::{Pool, PoolOptions};
use transport::poller::Poller;
use transport::shm::{LENT_POOLS_MAX, Process, ShmListener, ShmOptions};
use transport::tcp::TcpOptions;
use transport::waker::Waker;

use super::links_error::LinksError;

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

/// The settings that a partition asks for, beside those of TCP; `None` if no connection is of that kind.
pub(super) fn options(partition: &Partition, tcp: &TcpOptions) -> Option<ShmOptions> {
    partition.transport.has_shared_memory().then(|| ShmOptions {
        copy_below: tcp.copy_below.min(COPY_BELOW_MAX),
        queue_bytes_max: tcp.queue_bytes_max,
        queue_frames_max: tcp.queue_frames_max,
        tickets_max: bounds::tickets(partition),
        ..ShmOptions::new(tcp.limits)
    })
}

/// Longer bulk is cheaper to hand over than to copy.
const COPY_BELOW_MAX: usize = 512;

//! Why a process has no network.

use membership::passage::Strand;
use transport::error::OsError;
use transport::page_pool::PoolError;
use transport::shm::ShmError;
use transport::tcp::{InvalidOptions, ListenError};
use transport::udp;

use super::channel::PeerAddress;

/// Why a process has no network.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum LinksError {
    #[error("transport.pages, transport.page_size, sfi.events and sfi.max_event_size: {0}")]
    Pool(#[from] PoolError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Options(#[from] InvalidOptions),
    #[error("datagrams: {0}")]
    Datagrams(#[from] udp::InvalidOptions),
    #[error("transport.udp.group and transport.udp.port: {0}")]
    Group(udp::InvalidOptions),
    #[error(transparent)]
    Shm(#[from] ShmError),
    #[error("peer at {address} does not listen as the partition asks for: {strand}")]
    NoWay { address: PeerAddress, strand: Strand },
    #[error(transparent)]
    Os(#[from] OsError),
}

//! One connection of a process, of either kind.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::str::FromStr;

use membership::passage::Medium;
use transport::frame::Frame;
use transport::link::Link;
use transport::page_pool::Pool;
use transport::shm::{Address, ShmLink};
use transport::tcp::{Connection, InvalidOptions, TcpOptions};

/// An ordered, lossless connection.
#[expect(clippy::large_enum_variant, reason = "connections of a process are nearly always of one kind")]
pub(super) enum Channel {
    Tcp(Connection),
    Shm(Box<ShmLink>),
}

/// From where a connection came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// This process made it.
    Ours,
    Address(IpAddr),
    /// Through shared memory, or so short that its address is not known any more.
    ThisHost,
}

impl Channel {
    pub(super) fn link(&self) -> &dyn Link {
        match self {
            Self::Tcp(connection) => connection,
            Self::Shm(link) => &**link,
        }
    }

    pub(super) fn link_mut(&mut self) -> &mut dyn Link {
        match self {
            Self::Tcp(connection) => connection,
            Self::Shm(link) => &mut **link,
        }
    }

    /// Gives it the settings of a partition. Through shared memory it has them from its beginning.
    pub(super) fn renew(&mut self, options: &TcpOptions, pool: &Pool) -> Result<(), InvalidOptions> {
        match self {
            Self::Tcp(connection) => connection.renew(options, pool),
            Self::Shm(_) => Ok(()),
        }
    }

    /// Whether all that came was delivered, and ended with a frame.
    pub(super) fn is_between_frames(&self) -> bool {
        match self {
            Self::Tcp(connection) => connection.is_between_frames(),
            // What follows is read by the same settings.
            Self::Shm(_) => true,
        }
    }

    /// From where it came.
    pub(super) fn origin(&self) -> Origin {
        match self {
            Self::Tcp(connection) => {
                connection.peer_address().map_or(Origin::ThisHost, |address| Origin::Address(address.ip()))
            }
            Self::Shm(_) => Origin::ThisHost,
        }
    }

    pub(super) fn medium(&self) -> Medium {
        match self {
            Self::Tcp(_) => Medium::Tcp,
            Self::Shm(_) => Medium::Shm,
        }
    }

    pub(super) fn next_frame(&mut self) -> Option<Frame> {
        match self {
            Self::Tcp(connection) => connection.next_slice().map(Frame::whole),
            Self::Shm(link) => link.next_frame(),
        }
    }

    /// Bytes that were sent and are not on their way.
    pub(super) fn queued_bytes(&self) -> usize {
        match self {
            Self::Tcp(connection) => connection.queued_bytes(),
            Self::Shm(link) => link.queued_bytes(),
        }
    }

    /// Whether so much waits that it goes before the end of the pass: the peer works on it meanwhile.
    pub(super) fn has_batch(&self) -> bool {
        match self {
            Self::Tcp(connection) => {
                connection.copied_bytes() >= COPIED_BATCH || connection.queued_bytes() >= SLICES_BATCH
            }
            Self::Shm(link) => link.queued_bytes() >= SHM_BATCH,
        }
    }
}

/// Where a process listens: for TCP, through shared memory if it does that, and at further network ports if it has some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    /// For TCP.
    pub tcp: SocketAddr,
    /// For shared memory.
    pub shm: Option<Address>,
    /// The further network ports.
    pub ports: Vec<SocketAddr>,
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.tcp)?;
        self.shm.iter().try_for_each(|shm| write!(f, ",{shm}"))?;
        self.ports.iter().try_for_each(|port| write!(f, ",{port}"))
    }
}

/// A text that is no address of a process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?}: expected an address such as 127.0.0.1:40001 or 127.0.0.1:40001,shm:0001a")]
pub struct InvalidPeerAddress {
    text: String,
}

impl FromStr for PeerAddress {
    type Err = InvalidPeerAddress;

    fn from_str(text: &str) -> Result<Self, InvalidPeerAddress> {
        let invalid = || InvalidPeerAddress { text: text.to_owned() };
        let mut parts = text.split(',');
        let tcp = parts.next().and_then(|tcp| tcp.parse().ok()).ok_or_else(invalid)?;
        let mut address = Self { tcp, shm: None, ports: Vec::new() };
        for part in parts {
            match part.parse() {
                Ok(shm) if address.shm.is_none() => address.shm = Some(shm),
                _ => address.ports.push(part.parse().map_err(|_| invalid())?),
            }
        }
        Ok(address)
    }
}

/// What was copied is still in the cache, and copying took a while in which the peer could have worked.
const COPIED_BATCH: usize = 64 << 10;
/// Of slices: they cost the kernel the less, the more of them it takes at once. With 64 kB four sources of 37.5 kB fragments made
/// 43,900 events/s instead of 76,300.
pub const SLICES_BATCH: usize = 512 << 10;
/// The same of what goes through shared memory.
pub const SHM_BATCH: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::PeerAddress;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in [
            "127.0.0.1:40001",
            "[::1]:9,shm:0001a",
            "127.0.0.1:40001,127.0.0.2:2,127.0.0.3:2",
            "127.0.0.1:1,shm:0001a,127.0.0.2:2",
        ] {
            assert_eq!(text.parse::<PeerAddress>().unwrap().to_string(), text);
        }
        for text in ["", "shm:0001a", "127.0.0.1:40001,", "127.0.0.1:40001,127.0.0.1", "[::1]:9,shm:1,shm:2"] {
            assert!(text.parse::<PeerAddress>().is_err(), "{text}");
        }
    }
}

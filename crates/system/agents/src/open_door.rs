//! Where an agent listens for run control that comes back.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use base::ids::Incarnation;
use base::time::Time;
use membership::agents::control;
use membership::challenge::Member;
use membership::run_secret::RunSecret;
use rustix::event::PollFlags;
use transport::random::random;

use crate::peer::{Heard, Peer};

/// A listening agent, and those who have connected and not proved who they are.
pub(crate) struct OpenDoor {
    listener: TcpListener,
    address: SocketAddr,
    secret: RunSecret,
    agent: Member,
    /// The oldest first.
    strangers: Vec<(Time, Peer)>,
}

impl OpenDoor {
    /// At a free port of this address.
    pub(crate) fn open(at: IpAddr, secret: &RunSecret, agent: Member) -> io::Result<Self> {
        let listener = TcpListener::bind((at, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, secret: secret.clone(), agent, strangers: Vec::new() })
    }

    /// Where it is.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// For what a poll has to wait.
    pub(crate) fn awaits(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let strangers = self.strangers.iter().map(|(_, peer)| (peer.as_fd(), peer.awaits()));
        strangers.chain([(self.listener.as_fd(), PollFlags::IN)])
    }

    /// Takes in who has connected; those who have proved to be run control, each in a life.
    pub(crate) fn let_in(&mut self, now: Time) -> Vec<(Peer, Incarnation)> {
        for _ in 0..ACCEPTED_MAX {
            // One that is gone again, or finds no descriptor, comes again.
            let (Ok((stream, _)), Ok(nonce)) = (self.listener.accept(), random()) else { break };
            if self.strangers.len() >= STRANGERS_MAX {
                self.strangers.remove(0);
            }
            let peer = Peer::accepted(stream, (&self.secret, self.agent), nonce);
            self.strangers.extend(peer.ok().map(|peer| (now, peer)));
        }
        self.strangers.retain(|(since, _)| now.since(*since) <= STRANGER_TIMEOUT);
        let mut proven = Vec::new();
        for (since, mut peer) in core::mem::take(&mut self.strangers) {
            let (heard, result) = peer.hear();
            let met = heard.into_iter().find_map(|heard| match heard {
                Heard::Met(member) => (member == control(member.1)).then_some(member.1),
                Heard::Frame(_) => None,
            });
            match (met, result.and_then(|()| peer.flush())) {
                (Some(life), Ok(())) => proven.push((peer, life)),
                (None, Ok(())) if peer.is_stranger() => self.strangers.push((since, peer)),
                _ => {}
            }
        }
        proven
    }
}

/// So many in a pass: a crowd keeps an agent from nothing else.
const ACCEPTED_MAX: usize = 8;
const STRANGERS_MAX: usize = 16;
const STRANGER_TIMEOUT: Duration = Duration::from_secs(5);

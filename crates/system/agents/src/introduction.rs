//! Run control tells a child that it starts which application it is, and the secret of the run; an agent likewise.
//!
//! It writes both to a pipe: the child's standard input. The child reads them and replaces the pipe by an empty input before it
//! does anything else. Other processes can read the command line, the environment and the open files of a process, and those that
//! it starts inherit them.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::process::ChildStdin;
use std::time::Duration;

use base::ids::{Incarnation, NodeId, RunNumber};
use membership::NO_RUN;
use membership::agents::words::{Errand, fingerprint};
use membership::challenge::{Member, Prover};
use membership::run_secret::RunSecret;
use rustix::stdio::dup2_stdin;

/// All that a child needs to be a member of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// The secret of the run.
    pub secret: RunSecret,
    /// The run.
    pub run: RunNumber,
    /// Which application it is.
    pub node: NodeId,
    /// In which life.
    pub life: Incarnation,
    /// What the sources of links prove, if the partition has a key.
    pub links: Option<link::Secret>,
    /// The life that run control is in.
    pub control: Incarnation,
}

impl Introduction {
    /// With this the child proves to others that it is a member.
    pub fn prover(&self) -> Prover {
        Prover::new(&self.secret, self.run, (self.node, self.life))
    }

    /// Tells a child, and closes the pipe. The pipe has room for all of it, so this does not wait for the child.
    pub(crate) fn tell(&self, mut child: ChildStdin) -> io::Result<()> {
        child.write_all(&self.to_bytes())
    }

    /// Hears it from the parent. From then on standard input is empty.
    ///
    /// # Errors
    /// The standard input holds none.
    pub fn hear() -> io::Result<Self> {
        hear().map(|bytes| Self::from_bytes(&bytes))
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Self { secret, run, node, life, links, control } = self;
        let has_links = [u8::from(links.is_some())];
        let links = links.as_ref().map_or([0; 32], link::Secret::to_bytes);
        let (run, node, life) = (run.0.to_le_bytes(), node.0.to_le_bytes(), life.0.to_le_bytes());
        [&secret.to_bytes()[..], &run, &node, &life, &has_links, &links, &control.0.to_le_bytes()].concat()
    }

    fn from_bytes(bytes: &[u8; LEN]) -> Self {
        let (secret, rest) = bytes.split_first_chunk().expect("a secret comes first");
        let (run, rest) = rest.split_first_chunk().expect("then the run number");
        let (node, rest) = rest.split_first_chunk().expect("then the node");
        let (life, rest) = rest.split_first_chunk().expect("then its life");
        let ([has_links], rest) = rest.split_first_chunk().expect("then whether there is a key of links");
        let (links, rest) = rest.split_first_chunk().expect("then that");
        let control = rest.first_chunk().copied().expect("then the life of run control");
        Self {
            secret: RunSecret::of_bytes(*secret),
            run: RunNumber(u32::from_le_bytes(*run)),
            node: NodeId(u16::from_le_bytes(*node)),
            life: Incarnation(u32::from_le_bytes(*life)),
            links: (*has_links != 0).then(|| link::Secret::of_bytes(*links)),
            control: Incarnation(u32::from_le_bytes(control)),
        }
    }
}

/// All that an agent needs to serve run control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfAgent {
    /// What agents prove with.
    pub(crate) secret: RunSecret,
    /// The secret that its applications have, or one before that.
    pub(crate) of_applications: RunSecret,
    /// What the sources of links prove, if the partition has a key.
    pub(crate) links: Option<link::Secret>,
    /// Which agent it is.
    pub(crate) agent: Member,
    /// An agent that is silent for so long is lost.
    pub(crate) lease: Duration,
    /// The life that run control is in.
    pub(crate) control: Incarnation,
}

impl OfAgent {
    /// Tells an agent, through whatever launches it, and closes the pipe.
    pub(crate) fn tell(&self, mut launcher: ChildStdin) -> io::Result<()> {
        launcher.write_all(&self.to_bytes())
    }

    pub(crate) fn hear() -> io::Result<Self> {
        Self::read(&hear::<LEN_OF_AGENT>()?)
    }

    /// What run control has told an agent by its launcher.
    ///
    /// # Errors
    /// These bytes hold no introduction.
    pub fn read(bytes: &[u8]) -> io::Result<Self> {
        bytes.try_into().ok().and_then(Self::from_bytes).ok_or_else(no_introduction)
    }

    /// What an application is told that starts for this errand. Secrets before the one that is meant are of no use any more.
    ///
    /// # Errors
    /// The secret does not follow from the one that the agent knows.
    pub fn of(&mut self, errand: &Errand) -> Result<Introduction, &'static str> {
        let of_runs = core::iter::successors(Some(self.of_applications.clone()), |secret| Some(secret.next()));
        let secret = of_runs.take(RUNS_MAX).find(|secret| fingerprint(secret) == errand.secret);
        let secret = secret.ok_or("its secret does not follow from the one that its agent knows")?;
        self.of_applications = secret.clone();
        let (links, control) = (self.links.clone(), self.control);
        Ok(Introduction { secret, run: NO_RUN, node: errand.node, life: errand.life, links, control })
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let Self { secret, of_applications, links, agent: (node, life), lease, control } = self;
        let has_links = [u8::from(links.is_some())];
        let links = links.as_ref().map_or([0; 32], link::Secret::to_bytes);
        let lease_us = u64::try_from(lease.as_micros()).unwrap_or(u64::MAX).to_le_bytes();
        let (node, life, control) = (node.0.to_le_bytes(), life.0.to_le_bytes(), control.0.to_le_bytes());
        let of_applications = of_applications.to_bytes();
        [&secret.to_bytes()[..], &of_applications, &has_links, &links, &node, &life, &lease_us, &control].concat()
    }

    /// None if its lease is longer than any.
    fn from_bytes(bytes: &[u8; LEN_OF_AGENT]) -> Option<Self> {
        let (secret, rest) = bytes.split_first_chunk().expect("a secret comes first");
        let (of_applications, rest) = rest.split_first_chunk().expect("then another one");
        let ([has_links], rest) = rest.split_first_chunk().expect("then whether there is a key of links");
        let (links, rest) = rest.split_first_chunk().expect("then that");
        let (node, rest) = rest.split_first_chunk().expect("then the agent");
        let (life, rest) = rest.split_first_chunk().expect("then its life");
        let (lease, rest) = rest.split_first_chunk().expect("then the lease");
        let lease = Duration::from_micros(u64::from_le_bytes(*lease));
        let control = rest.first_chunk().copied().expect("then the life of run control");
        (lease <= LEASE_MAX).then(|| Self {
            secret: RunSecret::of_bytes(*secret),
            of_applications: RunSecret::of_bytes(*of_applications),
            links: (*has_links != 0).then(|| link::Secret::of_bytes(*links)),
            agent: (NodeId(u16::from_le_bytes(*node)), Incarnation(u32::from_le_bytes(*life))),
            lease,
            control: Incarnation(u32::from_le_bytes(control)),
        })
    }
}

/// So many bytes from the standard input, which then is empty.
fn hear<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = Vec::new();
    let mut input = io::stdin().lock();
    if !input.is_terminal() {
        input.by_ref().take(N as u64 + 1).read_to_end(&mut bytes)?;
    }
    dup2_stdin(File::open("/dev/null")?)?;
    bytes.try_into().map_err(|_| no_introduction())
}

fn no_introduction() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it holds no introduction")
}

const LEN: usize = 32 + 4 + 2 + 4 + 1 + 32 + 4;
pub(crate) const LEN_OF_AGENT: usize = 32 + 32 + 1 + 32 + 2 + 4 + 8 + 4;
/// Far more runs than the same processes have.
const RUNS_MAX: usize = 1 << 20;
/// Far longer than a configuration allows.
const LEASE_MAX: Duration = Duration::from_secs(1 << 20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bytes_make_a_lease_that_cannot_be() {
        assert_eq!(OfAgent::from_bytes(&[0xff; LEN_OF_AGENT]), None);
    }

    #[test]
    fn it_is_heard_as_it_is_told() {
        let secret = RunSecret::new("key", &[1; 16]);
        for links in [None, Some(link::Secret::new("key"))] {
            let (secret, run, node, life) = (secret.clone(), RunNumber(7), NodeId(300), Incarnation(2));
            let told = Introduction { secret, run, node, life, links, control: Incarnation(5) };
            let bytes = told.to_bytes();
            assert_eq!(Introduction::from_bytes(bytes.as_slice().try_into().unwrap()), told);
            let (secret, of_applications) = (told.secret.next(), told.secret);
            let (links, agent, lease) = (told.links, (node, life), Duration::from_millis(250));
            let control = Incarnation(5);
            let told = OfAgent { secret, of_applications, links, agent, lease, control };
            let bytes = told.to_bytes();
            assert_eq!(OfAgent::from_bytes(bytes.as_slice().try_into().unwrap()), Some(told));
        }
    }
}

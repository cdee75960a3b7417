//! Run control tells a child that it starts which application it is, and the secret of the run.
//!
//! It writes both to a pipe: the child's standard input. The child reads them and replaces the pipe by an empty input before it
//! does anything else. Other processes can read the command line, the environment and the open files of a process, and those that
//! it starts inherit them.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::process::ChildStdin;

use base::ids::{Incarnation, NodeId, RunNumber};
use membership::challenge::Prover;
use membership::run_secret::RunSecret;
use rustix::stdio::dup2_stdin;

/// All that a child needs to be a member of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Introduction {
    pub(crate) secret: RunSecret,
    pub(crate) run: RunNumber,
    pub(crate) node: NodeId,
    pub(crate) life: Incarnation,
    /// What the sources of links prove, if the partition has a key.
    pub(crate) links: Option<link::Secret>,
}

impl Introduction {
    /// With this the child proves to others that it is a member.
    pub(crate) fn prover(&self) -> Prover {
        Prover::new(&self.secret, self.run, (self.node, self.life))
    }

    /// Tells a child, and closes the pipe. The pipe has room for all of it, so this does not wait for the child.
    pub(crate) fn tell(&self, mut child: ChildStdin) -> io::Result<()> {
        child.write_all(&self.to_bytes())
    }

    /// Hears it from the parent. From then on standard input is empty.
    pub(crate) fn hear() -> io::Result<Self> {
        let mut bytes = Vec::new();
        let mut input = io::stdin().lock();
        if !input.is_terminal() {
            input.by_ref().take(LEN as u64 + 1).read_to_end(&mut bytes)?;
        }
        dup2_stdin(File::open("/dev/null")?)?;
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "it holds no introduction");
        bytes.as_slice().try_into().map(Self::from_bytes).map_err(|_| wrong())
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Self { secret, run, node, life, links } = self;
        let has_links = [u8::from(links.is_some())];
        let links = links.as_ref().map_or([0; 32], link::Secret::to_bytes);
        let (run, node, life) = (run.0.to_le_bytes(), node.0.to_le_bytes(), life.0.to_le_bytes());
        [&secret.to_bytes()[..], &run, &node, &life, &has_links, &links].concat()
    }

    fn from_bytes(bytes: &[u8; LEN]) -> Self {
        let (secret, rest) = bytes.split_first_chunk().expect("a secret comes first");
        let (run, rest) = rest.split_first_chunk().expect("then the run number");
        let (node, rest) = rest.split_first_chunk().expect("then the node");
        let (life, rest) = rest.split_first_chunk().expect("then its life");
        let ([has_links], rest) = rest.split_first_chunk().expect("then whether there is a key of links");
        let links = rest.first_chunk().copied().expect("then that");
        Self {
            secret: RunSecret::of_bytes(*secret),
            run: RunNumber(u32::from_le_bytes(*run)),
            node: NodeId(u16::from_le_bytes(*node)),
            life: Incarnation(u32::from_le_bytes(*life)),
            links: (*has_links != 0).then(|| link::Secret::of_bytes(links)),
        }
    }
}

const LEN: usize = 32 + 4 + 2 + 4 + 1 + 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_heard_as_it_is_told() {
        let secret = RunSecret::new("key", &[1; 16]);
        for links in [None, Some(link::Secret::new("key"))] {
            let (secret, run, node, life) = (secret.clone(), RunNumber(7), NodeId(300), Incarnation(2));
            let told = Introduction { secret, run, node, life, links };
            let bytes = told.to_bytes();
            assert_eq!(Introduction::from_bytes(bytes.as_slice().try_into().unwrap()), told);
        }
    }
}

//! Child processes: one for each application that is not in the parent.

use std::io;
use std::net::IpAddr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use base::ids::NodeId;

use crate::host::PeerAddress;
use crate::introduction::Introduction;

/// The child processes of a partition. Dropping them ends those that still live.
pub(crate) struct Children {
    entries: Vec<Entry>,
    /// Further options of their command line.
    options: Vec<String>,
}

/// One child.
pub(crate) struct Entry {
    pub(crate) node: NodeId,
    pub(crate) name: String,
    program: PathBuf,
    child: Child,
    /// Addresses of its further network ports.
    ports: Vec<IpAddr>,
    ended: Option<ExitStatus>,
}

impl Children {
    /// None yet; all will have these `options`.
    pub(crate) fn new(options: Vec<String>) -> Self {
        Self { entries: Vec::new(), options }
    }

    /// Ends all of them, and has none any more.
    pub(crate) fn renew(&mut self) {
        *self = Self::new(core::mem::take(&mut self.options));
    }

    /// Starts the process of an application with this `weir`; it listens at the `ports` as well.
    pub(crate) fn spawn(
        &mut self,
        program: PathBuf,
        name: String,
        join: &PeerAddress,
        introduction: &Introduction,
        ports: Vec<IpAddr>,
    ) -> io::Result<()> {
        let child = start(&program, &name, join, introduction, (&ports, &self.options))?;
        self.entries.push(Entry { node: introduction.node, name, program, child, ports, ended: None });
        Ok(())
    }

    /// Starts a child that has ended again.
    pub(crate) fn start_again(&mut self, join: &PeerAddress, introduction: &Introduction) -> io::Result<()> {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.node == introduction.node) {
            entry.child = start(&entry.program, &entry.name, join, introduction, (&entry.ports, &self.options))?;
            entry.ended = None;
        }
        Ok(())
    }

    /// Whether an application has or had a process.
    pub(crate) fn has(&self, node: NodeId) -> bool {
        self.entries.iter().any(|entry| entry.node == node)
    }

    /// All children.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// Children that have ended since the last call, with how.
    pub(crate) fn reap(&mut self) -> Vec<(NodeId, String)> {
        let mut ended = Vec::new();
        for entry in self.entries.iter_mut().filter(|entry| entry.ended.is_none()) {
            if let Ok(Some(status)) = entry.child.try_wait() {
                entry.ended = Some(status);
                ended.push((entry.node, describe(status)));
            }
        }
        ended
    }

    /// Whether all have ended.
    pub(crate) fn all_ended(&self) -> bool {
        self.entries.iter().all(|entry| entry.ended.is_some())
    }

    /// Ends children at once, and waits until they have ended; says how each did.
    pub(crate) fn end(&mut self, nodes: &[NodeId]) -> Vec<(NodeId, String)> {
        // All of them before any is waited for: none sees another end, and complains.
        let is_wanted = |entry: &&mut Entry| entry.ended.is_none() && nodes.contains(&entry.node);
        let mut living: Vec<_> = self.entries.iter_mut().filter(is_wanted).collect();
        living.iter_mut().for_each(|entry| _ = entry.child.kill());
        living.iter_mut().for_each(|entry| entry.ended = entry.child.wait().ok());
        living.into_iter().filter_map(|entry| Some((entry.node, describe(entry.ended?)))).collect()
    }

    /// Ends a child at once.
    pub(crate) fn kill(&mut self, node: NodeId) {
        let living = self.entries.iter_mut().find(|entry| entry.node == node && entry.ended.is_none());
        if let Some(entry) = living {
            // It may have ended by itself in between.
            let _ = entry.child.kill();
        }
    }
}

impl Entry {
    /// Whether its process has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// The id of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        let all: Vec<NodeId> = self.entries.iter().map(|entry| entry.node).collect();
        self.end(&all);
    }
}

/// `weir node` for an application. Its own process group keeps the terminal's Ctrl-C for the parent.
fn start(
    program: &Path,
    name: &str,
    join: &PeerAddress,
    introduction: &Introduction,
    (ports, options): (&[IpAddr], &[String]),
) -> io::Result<Child> {
    let mut child = Command::new(program)
        .args(["node", "--name", name, "--join", &join.to_string()])
        .args(ports.iter().flat_map(|port| ["--port".to_owned(), port.to_string()]))
        .args(options)
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let input = child.stdin.take().expect("its input is a pipe");
    // A child that is gone already is found when it is reaped.
    let _ = introduction.tell(input);
    Ok(child)
}

fn describe(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => match nix::sys::signal::Signal::try_from(signal) {
            Ok(name) => format!("killed by {name}"),
            Err(_) => format!("killed by signal {signal}"),
        },
        (None, Some(code)) => format!("exited with status {code}"),
        (None, None) => "ended".into(),
    }
}

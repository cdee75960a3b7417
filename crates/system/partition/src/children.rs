//! Child processes: one for each application that is not in the parent.

use std::io;
use std::net::IpAddr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use base::ids::{Incarnation, NodeId, RunNumber};
use base::time::Time;
use dataflow::message::PeerPlace;
use membership::run_secret::RunSecret;

use crate::host::{FIRST_LIFE, LinkId, PeerAddress};
use crate::introduction::Introduction;

/// The child processes of a partition. Dropping them ends those that still live.
#[derive(Default)]
pub(crate) struct Children(Vec<Entry>);

/// One child.
pub(crate) struct Entry {
    pub(crate) node: NodeId,
    pub(crate) name: String,
    /// How often it was started again.
    pub(crate) life: Incarnation,
    program: PathBuf,
    child: Child,
    /// Addresses of its further network ports.
    ports: Vec<IpAddr>,
    /// Its connection, once it has joined.
    pub(crate) link: Option<LinkId>,
    /// Another one for the messages of components here, if it has made one.
    pub(crate) data_link: Option<LinkId>,
    /// Where its peers reach it.
    pub(crate) address: Option<String>,
    pub(crate) ready: bool,
    /// Its connection was lost then, for this reason.
    pub(crate) lost: Option<(Time, String)>,
    ended: Option<ExitStatus>,
    /// It has ended, and is started again then.
    pub(crate) starts_at: Option<Time>,
    /// It was started again, and has to be ready by then.
    pub(crate) ready_by: Option<Time>,
}

impl Children {
    /// Starts the process of an application with this `weir`; it listens at the `ports` as well.
    pub(crate) fn spawn(
        &mut self,
        program: &Path,
        (node, name): (NodeId, &str),
        join: &PeerAddress,
        (secret, run): (&RunSecret, RunNumber),
        ports: &[IpAddr],
    ) -> io::Result<()> {
        let life = FIRST_LIFE;
        let child = start(program, name, join, &Introduction { secret: secret.clone(), run, node, life }, ports)?;
        let name = name.to_owned();
        self.0.push(Entry {
            node,
            name,
            life,
            program: program.to_owned(),
            child,
            ports: ports.to_vec(),
            link: None,
            data_link: None,
            address: None,
            ready: false,
            lost: None,
            ended: None,
            starts_at: None,
            ready_by: None,
        });
        Ok(())
    }

    /// Starts a child that has ended again, in its next life, to be ready at some time.
    pub(crate) fn start_again(
        &mut self,
        node: NodeId,
        join: &PeerAddress,
        (secret, run): (&RunSecret, RunNumber),
        by: Time,
    ) -> io::Result<()> {
        let life = Incarnation(self.life(node).0 + 1);
        self.start_in_life(node, life, join, (secret, run))?;
        self.at(node).into_iter().for_each(|entry| entry.ready_by = Some(by));
        Ok(())
    }

    /// Starts a child that has ended again, in this life.
    pub(crate) fn start_in_life(
        &mut self,
        node: NodeId,
        life: Incarnation,
        join: &PeerAddress,
        (secret, run): (&RunSecret, RunNumber),
    ) -> io::Result<()> {
        let Some(entry) = self.at(node) else { return Ok(()) };
        entry.child = start(
            &entry.program,
            &entry.name,
            join,
            &Introduction { secret: secret.clone(), run, node, life },
            &entry.ports,
        )?;
        entry.life = life;
        (entry.ended, entry.starts_at, entry.ready_by) = (None, None, None);
        Ok(())
    }

    /// All children.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter()
    }

    /// All of them, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.0.iter_mut()
    }

    /// The child at a node.
    pub(crate) fn at(&mut self, node: NodeId) -> Option<&mut Entry> {
        self.0.iter_mut().find(|entry| entry.node == node)
    }

    /// Where those that have joined listen.
    pub(crate) fn places(&self) -> impl Iterator<Item = PeerPlace> {
        self.0.iter().filter_map(Entry::place)
    }

    /// The child behind a connection.
    pub(crate) fn behind(&mut self, link: LinkId) -> Option<&mut Entry> {
        self.0.iter_mut().find(|entry| [entry.link, entry.data_link].contains(&Some(link)))
    }

    /// Children that have ended since the last call, with how.
    pub(crate) fn reap(&mut self) -> Vec<(NodeId, String)> {
        let mut ended = Vec::new();
        for entry in self.0.iter_mut().filter(|entry| entry.ended.is_none()) {
            if let Ok(Some(status)) = entry.child.try_wait() {
                entry.ended = Some(status);
                ended.push((entry.node, describe(status)));
            }
        }
        ended
    }

    /// Whether the child at a node has ended.
    pub(crate) fn has_ended(&self, node: NodeId) -> bool {
        self.0.iter().any(|entry| entry.node == node && entry.ended.is_some())
    }

    /// The life of the child at a node.
    pub(crate) fn life(&self, node: NodeId) -> Incarnation {
        self.0.iter().find(|entry| entry.node == node).map_or(FIRST_LIFE, |entry| entry.life)
    }

    /// Whether one has ended that is not started again.
    pub(crate) fn any_ended_for_good(&self) -> bool {
        self.0.iter().any(Entry::is_gone)
    }

    /// Whether one has ended.
    pub(crate) fn any_ended(&self) -> bool {
        self.0.iter().any(|entry| entry.ended.is_some())
    }

    /// Whether all have ended.
    pub(crate) fn all_ended(&self) -> bool {
        self.0.iter().all(|entry| entry.ended.is_some())
    }

    /// Ends children at once, and waits until they have ended.
    pub(crate) fn end(&mut self, nodes: &[NodeId]) {
        // All of them before any is waited for: none sees another end, and complains.
        let is_wanted = |entry: &&mut Entry| entry.ended.is_none() && nodes.contains(&entry.node);
        let mut living: Vec<_> = self.0.iter_mut().filter(is_wanted).collect();
        living.iter_mut().for_each(|entry| _ = entry.child.kill());
        living.iter_mut().for_each(|entry| entry.ended = entry.child.wait().ok());
    }

    /// Ends a child at once.
    pub(crate) fn kill(&mut self, node: NodeId) {
        if let Some(entry) = self.at(node).filter(|entry| entry.ended.is_none()) {
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

    /// Whether it has ended and is not started again.
    pub(crate) fn is_gone(&self) -> bool {
        self.ended.is_some() && self.starts_at.is_none()
    }

    /// How its process has ended, if it has.
    pub(crate) fn how_it_ended(&self) -> Option<String> {
        self.ended.map(describe)
    }

    /// The id of its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Where it listens, once it has joined.
    pub(crate) fn place(&self) -> Option<PeerPlace> {
        Some(PeerPlace { node: self.node, life: self.life, address: self.address.clone()? })
    }

    /// One of its connections is gone.
    pub(crate) fn lose(&mut self, now: Time, link: LinkId, reason: String) {
        if self.data_link == Some(link) {
            self.data_link = None;
        } else {
            self.link = None;
        }
        self.lost = Some((now, reason));
    }

    /// It has ended: nothing of its life is left.
    pub(crate) fn forget_life(&mut self) -> [Option<LinkId>; 2] {
        (self.address, self.ready, self.lost, self.ready_by) = (None, false, None, None);
        [self.link.take(), self.data_link.take()]
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        let all: Vec<NodeId> = self.0.iter().map(|entry| entry.node).collect();
        self.end(&all);
    }
}

/// `weir node` for an application. Its own process group keeps the terminal's Ctrl-C for the parent.
fn start(
    program: &Path,
    name: &str,
    join: &PeerAddress,
    introduction: &Introduction,
    ports: &[IpAddr],
) -> io::Result<Child> {
    let mut child = Command::new(program)
        .args(["node", "--name", name, "--join", &join.to_string()])
        .args(ports.iter().flat_map(|port| ["--port".to_owned(), port.to_string()]))
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

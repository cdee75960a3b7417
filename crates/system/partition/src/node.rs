//! `weir node`: the process of one application, commanded by its parent.

mod place;
mod showing;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::time::Duration;

use agents::{Introduction, end_with_parent};
use base::time::Time;
use membership::participant::{End, Identity, Participant};
use transport::clock;
use transport::error::OsError;
use transport::idle::IdleStrategy;
use transport::scheduler::{Context, Scheduler, Task};
use transport::waker::Waker;

use crate::hands::Hands;
use driver::Assembly;
use driver::{Host, InvalidPeerAddress, LinkEvent, Links, LinksError, NetworkOptions, PeerAddress, RestingLinks};
use place::Child;
use showing::Showing;

/// Why a node does not take part.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum NodeError {
    #[error(
        "standard input: {0}: `weir node` is started by `weir run --processes`, which tells it the secret of the run there"
    )]
    NotIntroduced(std::io::Error),
    #[error("the kernel does not end it with its agent: {0}")]
    NotTied(std::io::Error),
    #[error("--join {0}")]
    Address(#[from] InvalidPeerAddress),
    #[error(transparent)]
    Links(#[from] LinksError),
    #[error("ros.ports: {0}: expected an address of this host")]
    Port(LinksError),
    #[error(transparent)]
    Os(#[from] OsError),
    #[error("{0}")]
    Refused(String),
    #[error("run control is gone: what was in hand was given up")]
    Orphaned,
}

/// An application that runs in this process, as run control has started it.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where run control listens.
    pub join: String,
    /// Its name in the partition, such as `sfi-1`.
    pub name: String,
    /// Addresses of its further network ports.
    pub ports: Vec<IpAddr>,
    /// The address of its host in the network that carries data, if it is not that of run control.
    pub at: Option<IpAddr>,
}

impl Node {
    /// Lives until run control ends it, through one run or several. The standard input holds what run control tells nobody else.
    ///
    /// # Errors
    /// It cannot take part, or run control is gone.
    pub fn run(&self) -> Result<(), NodeError> {
        if self.at.is_some() {
            // Its agent answers for it: one that is gone cannot end it.
            end_with_parent().map_err(NodeError::NotTied)?;
        }
        let introduction = Introduction::hear().map_err(NodeError::NotIntroduced)?;
        take_part(self, introduction)
    }
}

/// Lives as the application `name` until run control ends it.
fn take_part(Node { join, name, ports, at }: &Node, introduction: Introduction) -> Result<(), NodeError> {
    let address: PeerAddress = join.parse()?;
    let mut scheduler = Scheduler::<Host>::new(IdleStrategy::default())?;
    let waker = scheduler.waker();
    let options = NetworkOptions::joining(at.unwrap_or_else(|| address.tcp.ip()));
    let mut links = Links::listen(options, introduction.prover(), true, scheduler.poller(), &waker)?;
    let opened = ports.iter().try_for_each(|port| links.listen_at_port(*port, scheduler.poller()));
    opened.map_err(NodeError::Port)?;
    let mut host = Host::empty(links);
    let mut application = Application::join(&mut host, &mut scheduler, (join, name, *at), introduction, waker)?;
    host.run(scheduler, &mut application)?;
    application.failure().map_or(Ok(()), Err)
}

/// One application on its way through a run.
struct Application {
    participant: Participant,
    introduction: Introduction,
    at: Option<IpAddr>,
    waker: Waker,
    resting: RestingLinks,
    /// The partition, once it has its place.
    assembly: Option<Assembly>,
    /// To whoever is logged in here, where an agent answers for this process.
    showing: Option<Showing>,
    /// It has lost run control, and closes its files until then.
    ends_at: Option<Time>,
}

impl Task<Host> for &mut Application {
    fn poll(&mut self, context: &mut Context<'_, Host>) -> bool {
        let is_due = self.participant.next_deadline().is_some_and(|at| at <= context.now);
        let shows = self.showing.as_ref().is_some_and(|showing| showing.is_due(context));
        !context.shared.link_events.is_empty() || is_due || shows || self.is_over(context)
    }

    fn action(&mut self, context: &mut Context<'_, Host>) {
        while let Some(event) = context.shared.link_events.pop_front() {
            self.on_link_event(context, event);
        }
        self.participant.on_deadline(context.now);
        if let Some(showing) = &mut self.showing {
            showing.serve(context, self.assembly.as_ref(), self.introduction.node);
        }
        self.end_if_orphaned(context);
        if self.is_over(context) {
            context.stop();
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        let showing = self.showing.as_ref().and_then(Showing::next_deadline);
        [self.ends_at, self.participant.next_deadline(), showing].into_iter().flatten().min()
    }
}

impl Application {
    fn join(
        host: &mut Host,
        scheduler: &mut Scheduler<'_, Host>,
        (control, name, at): (&str, &str, Option<IpAddr>),
        mut introduction: Introduction,
        waker: Waker,
    ) -> Result<Self, NodeError> {
        let address = host.links.address().expect("a process that listens has an address").to_string();
        let (run, member) = (introduction.run, (introduction.node, introduction.life));
        let (control, control_life) = (control.to_owned(), introduction.control);
        let identity = Identity { run, member, name: name.to_owned(), address, control, control_life };
        let (mut assembly, mut idle, resting) = (None, None, RestingLinks::default());
        let side = Child {
            introduction: &mut introduction,
            at,
            waker: &waker,
            resting: &resting,
            poller: scheduler.poller(),
            assembly: &mut assembly,
            idle: &mut idle,
        };
        let mut hands = Hands { now: clock::now(), host, side };
        let participant = Participant::join(&mut hands, identity).map_err(NodeError::Refused)?;
        let showing = at.and_then(|_| Showing::open(name, scheduler.poller()));
        Ok(Self { participant, introduction, at, waker, resting, assembly, showing, ends_at: None })
    }

    fn on_link_event(&mut self, context: &mut Context<'_, Host>, event: LinkEvent) {
        let mut idle = None;
        let side = Child {
            introduction: &mut self.introduction,
            at: self.at,
            waker: &self.waker,
            resting: &self.resting,
            poller: context.poller,
            assembly: &mut self.assembly,
            idle: &mut idle,
        };
        let mut hands = Hands { now: context.now, host: context.shared, side };
        let participant = &mut self.participant;
        match event {
            // Whoever waits for this process in vain says so.
            LinkEvent::NotAccepted { .. } => {}
            LinkEvent::Crowd { who } => participant.notice(&mut hands, who),
            LinkEvent::Proven { link } => participant.on_proven(&mut hands, link),
            LinkEvent::Message { link, envelope, message } => {
                participant.on_message(&mut hands, link, envelope, message);
            }
            LinkEvent::Lost { link, reason } => participant.on_lost(&mut hands, link, &reason),
        }
        if let Some(strategy) = idle {
            context.set_idle(strategy);
        }
    }

    fn end_if_orphaned(&mut self, context: &mut Context<'_, Host>) {
        // Without run control nobody would end this process: it gives up what it holds, closes its files and ends.
        if self.participant.end() == Some(&End::Orphaned) && self.ends_at.is_none() {
            let closing = if self.participant.has_place() { CLOSING_TIME } else { Duration::ZERO };
            self.ends_at = Some(context.now + closing);
            context.shared.abandon_all(context.now);
        }
    }

    /// Whether nothing is left to say, or to wait for.
    fn is_over(&self, context: &Context<'_, Host>) -> bool {
        match self.participant.end() {
            None => false,
            Some(End::Orphaned) => self.ends_at.is_some_and(|end| end <= context.now),
            Some(End::Dismissed | End::Refused(_)) => self.participant.is_alone() || context.shared.links.is_flushed(),
        }
    }

    fn failure(self) -> Option<NodeError> {
        match self.participant.end() {
            None | Some(End::Dismissed) => None,
            Some(End::Refused(reason)) => Some(NodeError::Refused(reason.clone())),
            Some(End::Orphaned) => Some(NodeError::Orphaned),
        }
    }
}

/// How long an orphaned application takes to close its files.
const CLOSING_TIME: Duration = Duration::from_secs(1);

//! The connections of a process to others.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use base::ids::{Incarnation, NodeId};
use base::time::Time;
use dataflow::message::{DatagramAddresses, Envelope, Message};
use dataflow::wire;
use membership::challenge::{Member, Proven, Prover};
use membership::frame_numbers::FrameNumbers;
use membership::passage::{LinkId, Medium, Passage, Recipient, Strand};
use transport::clock;
use transport::frame::{Frame, FrameLimits};
use transport::link::{Filled, Link, Lost};
use transport::page_pool::{Pool, PoolError, PoolOptions};
use transport::poller::Poller;
use transport::random::random;
use transport::shm::{ShmLink, ShmOptions};
use transport::tcp::{Connection, Listener, TcpOptions};
use transport::waker::Waker;

use super::backlog::{Backlog, Overdrawn};
use super::channel::{Channel, PeerAddress};
use super::datagrams::{DatagramOptions, Datagrams};
use super::links_error::LinksError;
use super::sharing::{self, Sharing};
use super::unproven::{Outcome, Unproven};
use assembly::Assembly;
use assembly::bounds::{self, Bounds, Covered, SendQueue};

/// What happened on a connection, for whoever conducts the process.
#[derive(Debug)]
pub enum LinkEvent {
    /// A peer waits that cannot be accepted, for this reason.
    NotAccepted {
        /// In words.
        reason: String,
    },
    /// Strangers have taken all places, and are ended for others; who they are.
    Crowd {
        /// Their addresses.
        who: String,
    },
    /// Both ends of this connection have proved to each other who they are.
    Proven {
        /// The connection.
        link: LinkId,
    },
    /// A message about joining, or any message on a connection that is not open yet.
    Message {
        /// The connection.
        link: LinkId,
        /// From whom and to whom.
        envelope: Envelope,
        /// What is said.
        message: Message,
    },
    /// The connection is gone, for this reason.
    Lost {
        /// The connection.
        link: LinkId,
        /// In words.
        reason: String,
    },
}

impl LinkEvent {
    /// The connection, if it is about one that is or was proved.
    pub fn link(&self) -> Option<LinkId> {
        match self {
            Self::Proven { link } | Self::Message { link, .. } | Self::Lost { link, .. } => Some(*link),
            Self::NotAccepted { .. } | Self::Crowd { .. } => None,
        }
    }
}

/// Settings of all connections of a process.
#[derive(Clone, Debug)]
pub struct NetworkOptions {
    address: SocketAddr,
    tcp: TcpOptions,
    /// What the send queue of a connection may hold.
    queue: SendQueue,
    /// What may be on its way under credits, once the partition is known.
    bounds: Option<Bounds>,
    /// For connections through shared memory, if there are any.
    shm: Option<ShmOptions>,
    page_len: usize,
    bulk_pages: usize,
    control_pages: usize,
    /// Connections that may be open without a peer that has proved who it is; for a further one the oldest has to go. None
    /// before the partition is known: peers that greet have to find this process in its place.
    strangers_max: usize,
    /// Connections that this process makes, at most.
    made_max: usize,
    /// Whether peers that send bulk are so many that most of their pages are nearly empty at any time.
    has_many_peers: bool,
    /// How long a connection may stay without a peer that has proved who it is and then said what it comes for. That is
    /// as long as a whole start, in which many processes share few processors.
    greet_timeout: Duration,
}

/// All connections of a process, with the pages that they receive into.
///
/// Connections that bring bulk to be kept (this process opened them: data flow from lower nodes to higher ones) use a
/// pool of their own. When it is empty they wait, and the messages that free it still get through.
#[derive(Default)]
pub struct Links {
    network: Option<NetworkParts>,
    sharing: Option<Sharing>,
    /// Connections that are there, by rising number: every pass looks at all of them.
    slots: Vec<(LinkId, Slot)>,
    next: usize,
    /// For the messages that are chosen to travel so, if there are any.
    pub datagrams: Option<Datagrams>,
}

struct NetworkParts {
    listener: Listener,
    /// At further network ports of this process, in their order.
    ports: Vec<Listener>,
    options: NetworkOptions,
    bulk: Pool,
    control: Pool,
    unproven: Unproven,
}

/// Why a message does not go out.
pub(super) enum NotSent {
    /// The connection is gone.
    Gone,
    /// So many bytes wait, and no credit covers the message.
    NoRoom { covered: Covered, queued_bytes: usize },
    /// More waits than the credit allows that covers the message.
    Overdrawn(Overdrawn),
}

/// A peer was accepted.
pub struct Accepted {
    /// Whether a stranger was ended for it.
    pub(super) in_a_crowd: bool,
}

struct Slot {
    connection: Channel,
    /// Of the frames from now on.
    numbers: FrameNumbers,
    /// What waits to be sent.
    backlog: Backlog,
    /// Who is at the other end, and what it lets through.
    passage: Passage,
    /// Whether this process has made the connection.
    is_ours: bool,
    /// When it was accepted, until it is open; none if this process has made the connection.
    accepted_at: Option<Time>,
    /// By which network port of a read-out system it goes, once both know.
    port: Option<usize>,
}

impl NetworkOptions {
    /// The settings that a partition asks for, for a process with so many connections to each of its peers.
    ///
    /// # Panics
    /// The longest frame of the partition has no room for a header.
    pub fn new(assembly: &Assembly, to_peers: &[usize]) -> Self {
        let partition = &assembly.partition;
        let transport = &partition.transport;
        let page_len = bounds::page_len(partition);
        let frame_max = bounds::frame_max(partition);
        let limits = FrameLimits::new(wire::HEADER_LEN, frame_max).expect("a header is shorter than a frame");
        let buffer = transport.socket_buffer.map(|size| usize::try_from(size.bytes()).unwrap_or(usize::MAX));
        let bounds = assembly.bounds();
        let queue = bounds.send_queue();
        let tcp = TcpOptions {
            copy_below: usize::try_from(transport.copy_below.bytes()).unwrap_or(usize::MAX),
            queue_bytes_max: queue.bytes,
            queue_frames_max: queue.frames,
            send_buffer_bytes: buffer,
            receive_buffer_bytes: buffer,
            congestion_control: transport.congestion.clone(),
            ..TcpOptions::new(limits)
        };
        let connections = to_peers.iter().sum::<usize>();
        Self {
            address: SocketAddr::new(transport.host, 0),
            shm: sharing::options(partition, &tcp),
            tcp,
            queue,
            bounds: Some(bounds),
            page_len,
            bulk_pages: bounds::receive_pages(partition, to_peers),
            control_pages: bounds::control_pages(to_peers),
            strangers_max: bounds::strangers(connections),
            made_max: connections,
            has_many_peers: connections.saturating_mul(page_len) > HUGE_PAGES_BYTES_MAX,
            greet_timeout: partition.processes.start_timeout.duration(),
        }
    }
}

impl NetworkOptions {
    /// Whether pages that were made for the one serve the other: from run to run a process keeps its memory.
    fn has_pools_of(&self, other: &Self) -> bool {
        let pools = |of: &Self| (of.page_len, of.bulk_pages, of.control_pages, of.has_many_peers);
        pools(self) == pools(other)
    }

    /// Whether connections to other applications, or some of them, go through shared memory.
    pub fn shares(&self) -> bool {
        self.shm.is_some()
    }

    /// The longest message in bytes.
    pub fn frame_max(&self) -> usize {
        self.tcp.limits.len_max()
    }

    /// The same for run control where no component is: applications connect to it, and bring no data to build.
    pub fn without_components(self, applications: usize) -> Self {
        let control_pages = self.control_pages.min(bounds::pages_of_run_control(applications));
        Self { bulk_pages: 1, control_pages, ..self }
    }

    /// Settings to join a partition with, before its own are known.
    ///
    /// # Panics
    /// Never: a page of joining has room for a header.
    pub fn joining(host: IpAddr) -> Self {
        let limits = FrameLimits::new(wire::HEADER_LEN, JOINING_PAGE_LEN).expect("a header is shorter than a frame");
        // The connection to the parent stays, and has the bounds of the partition when that is known.
        let tcp = TcpOptions::new(limits);
        let address = SocketAddr::new(host, 0);
        let greet_timeout = GREET_TIMEOUT_JOINING;
        Self {
            address,
            queue: SendQueue::of(tcp.queue_frames_max, tcp.queue_bytes_max),
            bounds: None,
            tcp,
            shm: None,
            page_len: JOINING_PAGE_LEN,
            bulk_pages: 8,
            control_pages: 1,
            strangers_max: 0,
            made_max: 1,
            has_many_peers: true,
            greet_timeout,
        }
    }
}

impl Links {
    /// Uses these settings from now on, also for the connections that this process has opened. Peers are accepted if they were
    /// not before: each connection is of the partition's settings from its beginning.
    ///
    /// # Errors
    /// No pages or sockets are to be had for these settings.
    ///
    /// # Panics
    /// This process does not listen.
    pub fn reconfigure(&mut self, options: NetworkOptions, waker: &Waker) -> Result<(), LinksError> {
        let network = self.network.as_mut().expect("a process that listens");
        if !network.options.has_pools_of(&options) {
            (network.bulk, network.control) = pools(&options, waker)?;
        }
        let NetworkOptions { tcp, strangers_max, made_max, greet_timeout, .. } = &options;
        network.unproven.renew(tcp, *strangers_max, *made_max, *greet_timeout)?;
        // Before the partition is known nobody is accepted.
        self.slots.iter_mut().try_for_each(|(_, slot)| slot.connection.renew(tcp, &network.bulk))?;
        network.options = options;
        Ok(())
    }

    /// Listens for peers; with `sharing` also for those that come through shared memory. `prover` is what this process proves
    /// with who it is.
    ///
    /// # Errors
    /// The address is not to be had, or no pages are.
    pub fn listen(
        options: NetworkOptions,
        prover: Prover,
        sharing: bool,
        poller: &mut Poller,
        waker: &Waker,
    ) -> Result<Self, LinksError> {
        let (bulk, control) = pools(&options, waker)?;
        let sharing = sharing.then(|| Sharing::listen(poller)).transpose()?;
        let mut listener = Listener::bind(options.address, &options.tcp)?;
        listener.register(poller)?;
        let NetworkOptions { tcp, strangers_max, made_max, greet_timeout, .. } = &options;
        let unproven = Unproven::new(prover, tcp, *strangers_max, *made_max, *greet_timeout)?;
        let network = Some(NetworkParts { listener, ports: Vec::new(), options, bulk, control, unproven });
        Ok(Self { network, sharing, ..Self::default() })
    }

    /// Proves with this from now on who it is. Who has proved it already stays.
    pub fn prove_with(&mut self, prover: &Prover) {
        self.network.iter_mut().for_each(|network| network.unproven.prove_with(prover.clone()));
    }

    /// Whoever has proved to be at the other end is this member from now on.
    pub fn rename(&mut self, link: LinkId, member: Member) {
        self.slot(link).into_iter().for_each(|slot| slot.passage.rename(member));
    }

    /// Ends all connections but this one. Peers wait to be accepted until this process has [new settings](Links::reconfigure), and
    /// so its place in the next run.
    pub fn keep_only(&mut self, link: LinkId) {
        self.slots.retain(|(other, _)| *other == link);
        self.network.iter_mut().for_each(|network| network.unproven.admit_nobody());
        self.forget_run();
    }

    /// Nobody comes through shared memory or sends datagrams until there is another run.
    pub fn forget_run(&mut self) {
        self.datagrams = None;
        self.sharing.iter_mut().for_each(|sharing| sharing.process = None);
    }

    /// Listens at this address as well: a network port of a read-out system `[EB2007 §II-A]`.
    ///
    /// # Errors
    /// The address is not to be had.
    ///
    /// # Panics
    /// This process does not listen.
    pub fn listen_at_port(&mut self, address: IpAddr, poller: &mut Poller) -> Result<(), LinksError> {
        let network = self.network.as_mut().expect("a process that listens");
        let mut listener = Listener::bind(SocketAddr::new(address, 0), &network.options.tcp)?;
        listener.register(poller)?;
        network.ports.push(listener);
        Ok(())
    }

    /// Connects through shared memory from now on, if the partition asks for that. The pages of these pools travel as they are.
    ///
    /// # Errors
    /// No shared memory is to be had.
    pub fn share(&mut self, lent: Vec<Pool>, waker: &Waker) -> Result<(), LinksError> {
        let (Some(network), Some(sharing)) = (&self.network, &mut self.sharing) else { return Ok(()) };
        let NetworkOptions { shm, page_len, bulk_pages, .. } = &network.options;
        let Some(shm) = shm else { return Ok(()) };
        let copies = PoolOptions { name: "copies".into(), page_len: *page_len, pages: *bulk_pages, prefault: false };
        sharing.start(shm, &copies, lent, waker)
    }

    /// Sends and takes datagrams as well, into the same pools, from now on.
    ///
    /// # Errors
    /// The addresses are not to be had.
    ///
    /// # Panics
    /// This process does not listen.
    pub fn open_datagrams(&mut self, options: &DatagramOptions, poller: &mut Poller) -> Result<(), LinksError> {
        let network = self.network.as_ref().expect("a process with peers has a network");
        self.datagrams = Some(Datagrams::open(options, &network.bulk, &network.control, poller)?);
        Ok(())
    }

    /// Where this process takes datagrams.
    pub fn datagram_addresses(&self) -> DatagramAddresses {
        self.datagrams.as_ref().map(Datagrams::addresses).unwrap_or_default()
    }

    /// A node takes datagrams there.
    pub fn meet(&mut self, node: NodeId, life: Incarnation, at: &DatagramAddresses) -> bool {
        self.datagrams.as_mut().is_none_or(|datagrams| datagrams.meet(node, life, at))
    }

    /// Whether connections to other applications, or some of them, go through shared memory.
    pub fn are_shared(&self) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| sharing.process.is_some())
    }

    /// Where this process listens.
    pub fn address(&self) -> Option<PeerAddress> {
        let shm = self.sharing.as_ref().map(|sharing| sharing.listener.address().clone());
        self.network.as_ref().map(|network| {
            let ports = network.ports.iter().map(Listener::local_address).collect();
            PeerAddress { tcp: network.listener.local_address(), shm, ports }
        })
    }

    /// Begins to connect to run control, or to a peer that sends bulk.
    ///
    /// # Errors
    /// There is no such way to this address, or nobody takes the connection there.
    ///
    /// # Panics
    /// This process does not listen, but has peers.
    pub fn connect(
        &mut self,
        (to, address): (Member, &PeerAddress),
        strand: Strand,
        now: Time,
        poller: &mut Poller,
        waker: &Waker,
    ) -> Result<LinkId, LinksError> {
        let incomplete = || LinksError::NoWay { address: address.clone(), strand };
        if strand.medium == Medium::Tcp {
            let at = strand.port.map_or(Some(&address.tcp), |port| address.ports.get(port)).ok_or_else(incomplete)?;
            let connection = self.connect_by_tcp(*at, now, poller)?;
            return self.add_made(connection, to, now);
        }
        let network = self.network.as_ref().expect("a process with peers has a network");
        let process = self.sharing.as_ref().and_then(|sharing| sharing.process.as_ref());
        let (Some(process), Some(shm)) = (process, &address.shm) else { return Err(incomplete()) };
        let mut link = ShmLink::connect(shm, process, &network.bulk, now + network.options.greet_timeout)?;
        link.register(poller, waker)?;
        self.add_made(Channel::Shm(Box::new(link)), to, now)
    }

    fn connect_by_tcp(&self, address: SocketAddr, now: Time, poller: &mut Poller) -> Result<Channel, LinksError> {
        let Unproven { tcp, pool, .. } = &self.network.as_ref().expect("a process with peers has a network").unproven;
        let mut connection = Connection::connect(address, tcp, pool, now + CONNECT_TIMEOUT)?;
        connection.register(poller)?;
        Ok(Channel::Tcp(connection))
    }

    fn add_made(&mut self, connection: Channel, to: Member, now: Time) -> Result<LinkId, LinksError> {
        let (link, nonce) = (self.new_id(), random()?);
        let network = self.network.as_mut().expect("a process with peers has a network");
        network.unproven.add_made(link, connection, to, nonce, now);
        Ok(link)
    }

    /// What a connection is, if it is there.
    pub fn strand(&self, link: LinkId) -> Option<Strand> {
        let slot = &self.slots[self.place(link)?].1;
        Some(Strand { medium: slot.connection.medium(), port: slot.port })
    }

    /// A connection goes by this network port of a read-out system.
    pub(super) fn set_port(&mut self, link: LinkId, port: Option<usize>) {
        if let Some(place) = self.place(link) {
            self.slots[place].1.port = port;
        }
    }

    /// Takes in a peer that waits to be accepted; `None` if none does, or too many have come and not proved who they are.
    ///
    /// # Errors
    /// The system has no random numbers, or no more connections.
    ///
    /// # Panics
    /// Somebody came though this process does not listen: a broken invariant.
    pub fn accept(&mut self, now: Time, poller: &mut Poller, waker: &Waker) -> Result<Option<Accepted>, LinksError> {
        if !self.is_acceptable(now) {
            return Ok(None);
        }
        let nonce = random()?;
        let connection = match self.accept_tcp(poller)? {
            Some(connection) => Channel::Tcp(connection),
            None => match self.accept_shared(poller, waker)? {
                Some(link) => Channel::Shm(Box::new(link)),
                None => return Ok(None),
            },
        };
        let (link, origin) = (self.new_id(), connection.origin());
        let network = self.network.as_mut().expect("a process that accepts has a network");
        let in_a_crowd = network.unproven.admit(link, connection, origin, nonce, now);
        Ok(Some(Accepted { in_a_crowd }))
    }

    /// Who has not proved who he is, in words.
    pub(super) fn crowd(&self) -> String {
        self.network.as_ref().map(|network| network.unproven.describe()).unwrap_or_default()
    }

    /// Whether somebody who has not proved who he is has something to say.
    pub(super) fn has_unproven(&self, now: Time) -> bool {
        self.network.as_ref().is_some_and(|network| network.unproven.is_receivable(now))
    }

    /// Hears some of them; what became of those that are done. Those that are turned away are gone already.
    pub(super) fn hear_unproven(&mut self, now: Time) -> Vec<Heard> {
        let Some(network) = &mut self.network else { return Vec::new() };
        let mut heard = Vec::new();
        for mut waiting in network.unproven.hear(now) {
            let (link, is_ours, outcome) = (waiting.link, waiting.is_ours(), waiting.outcome());
            if let Outcome::Proven(Proven { peer, numbers }) = outcome {
                let (mut connection, since) = (waiting.channel, waiting.since);
                let pool = if is_ours { &network.bulk } else { &network.control };
                connection.renew(&network.options.tcp, pool).expect("the pools hold frames of the settings");
                let accepted_at = (!is_ours).then_some(since);
                let slot = Slot {
                    connection,
                    numbers,
                    passage: Passage::new(peer),
                    is_ours,
                    accepted_at,
                    port: None,
                    backlog: Backlog::default(),
                };
                let place = self.slots.partition_point(|(other, _)| *other < link);
                self.slots.insert(place, (link, slot));
            }
            heard.push(Heard { link, is_ours, outcome });
        }
        heard
    }

    /// For whom a message is that came over a connection.
    pub(super) fn recipient(&self, link: LinkId, envelope: &Envelope, message: &Message) -> Recipient {
        self.place(link).map_or(Recipient::Nobody, |place| self.slots[place].1.passage.recipient(envelope, message))
    }

    fn accept_tcp(&self, poller: &mut Poller) -> Result<Option<Connection>, LinksError> {
        let Some(network) = &self.network else { return Ok(None) };
        for listener in core::iter::once(&network.listener).chain(&network.ports) {
            if listener.is_acceptable()
                && let Some(mut connection) = listener.accept(&network.unproven.tcp, &network.unproven.pool)?
            {
                connection.register(poller)?;
                return Ok(Some(connection));
            }
        }
        Ok(None)
    }

    fn accept_shared(&self, poller: &mut Poller, waker: &Waker) -> Result<Option<ShmLink>, LinksError> {
        let Some((network, sharing)) = self.network.as_ref().zip(self.sharing.as_ref()) else { return Ok(None) };
        let Some(process) = sharing.process.as_ref().filter(|_| sharing.is_acceptable()) else { return Ok(None) };
        let mut accepted = sharing.listener.accept(process, &network.control)?;
        accepted.iter_mut().try_for_each(|link| link.register(poller, waker))?;
        Ok(accepted)
    }

    /// Whether a peer may wait that can be accepted.
    pub fn is_acceptable(&self, now: Time) -> bool {
        self.may_wait() && self.network.as_ref().is_some_and(|network| network.unproven.has_room(now))
    }

    /// Whether a peer may wait.
    fn may_wait(&self) -> bool {
        let Some(network) = &self.network else { return false };
        network.listener.is_acceptable()
            || network.ports.iter().any(Listener::is_acceptable)
            || self.sharing.as_ref().is_some_and(Sharing::is_acceptable)
    }

    /// The peer has said what it comes for: its messages go to the components.
    pub fn open(&mut self, link: LinkId) {
        if let Some(place) = self.place(link) {
            let slot = &mut self.slots[place].1;
            slot.passage.open();
            slot.accepted_at = None;
        }
    }

    /// Ends a connection.
    pub fn close(&mut self, link: LinkId) {
        let slot = self.place(link).map(|place| self.slots.remove(place).1);
        let Some(network) = &mut self.network else { return };
        match slot {
            Some(slot) if !slot.is_ours => network.unproven.miss(slot.passage.peer(), clock::now()),
            Some(_) => {}
            None => network.unproven.close(link),
        }
    }

    /// Ends connections whose peer has taken too long to prove who it is, or to say what it comes for; how many.
    pub fn close_silent(&mut self, now: Time) -> usize {
        let Some(network) = &mut self.network else { return 0 };
        let (before, timeout) = (self.slots.len(), network.options.greet_timeout);
        self.slots.retain(|(_, slot)| slot.accepted_at.is_none_or(|at| now.since(at) <= timeout));
        before - self.slots.len() + network.unproven.close_late(now)
    }

    pub(super) fn connection(&mut self, link: LinkId) -> Option<&mut Channel> {
        self.slot(link).map(|slot| &mut slot.connection)
    }

    fn slot(&mut self, link: LinkId) -> Option<&mut Slot> {
        self.place(link).map(|place| &mut self.slots[place].1)
    }

    /// Where a frame of so many bytes goes that is sent now, and its number.
    pub(super) fn next_sent(
        &mut self,
        link: LinkId,
        envelope: &Envelope,
        message: &Message,
        len: usize,
    ) -> Result<(&mut Channel, u32), NotSent> {
        let place = self.place(link).ok_or(NotSent::Gone)?;
        let network = self.network.as_ref().expect("who has connections has a network");
        let slot = &mut self.slots[place].1;
        let queued_bytes = slot.connection.queued_bytes();
        if let Some(covered) = network.options.queue.has_no_room(queued_bytes, message) {
            return Err(NotSent::NoRoom { covered, queued_bytes });
        }
        if let Some(bounds) = &network.options.bounds {
            slot.backlog.note(queued_bytes, len, envelope, message, bounds).map_err(NotSent::Overdrawn)?;
        }
        Ok((&mut slot.connection, slot.numbers.next_sent()))
    }

    /// The next frame that came, and the number that it has to have.
    pub(super) fn next_frame(&mut self, link: LinkId) -> Option<(Frame, u32)> {
        let slot = self.slot(link)?;
        let frame = slot.connection.next_frame()?;
        Some((frame, slot.numbers.next_received()))
    }

    /// Takes in bytes; false if there are none now.
    pub(super) fn fill(&mut self, now: Time, link: LinkId) -> Result<bool, Lost> {
        let Some(connection) = self.connection(link) else { return Ok(false) };
        match connection.link_mut().fill(now) {
            Ok(Filled::Some | Filled::FramesWaiting) => Ok(true),
            Ok(Filled::WouldBlock | Filled::PoolEmpty) => Ok(false),
            Err(lost) => {
                self.close(link);
                Err(lost)
            }
        }
    }

    /// Connections with something to receive.
    pub(super) fn receivable(&self, now: Time) -> impl Iterator<Item = LinkId> + '_ {
        self.select(move |connection| connection.is_receivable(now))
    }

    /// Hands everything queued on connections to the kernel, as far as it takes it.
    pub(super) fn flush(&mut self, now: Time) {
        for (_, Slot { connection, .. }) in &mut self.slots {
            if connection.link().is_flushable() {
                // A loss is reported when the last frames have been received.
                let _ = connection.link_mut().flush(now);
            }
        }
        if let Some(network) = &mut self.network {
            network.unproven.flush(now);
        }
    }

    /// The same of datagrams. How many bytes were queued.
    pub(super) fn flush_datagrams(&mut self, now: Time) -> usize {
        let Some(datagrams) = &mut self.datagrams else { return 0 };
        let bytes = datagrams.queued_bytes();
        datagrams.flush(now);
        bytes
    }

    /// How many connections there are.
    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    /// How many connections have something queued that can go out now, and how many bytes.
    pub(super) fn flushable_bytes(&self) -> (usize, usize) {
        let channels =
            self.slots.iter().map(|(_, slot)| &slot.connection).filter(|channel| channel.link().is_flushable());
        channels.fold((0, 0), |(count, bytes), channel| (count + 1, bytes + channel.queued_bytes()))
    }

    /// Whether something queued can go out now.
    pub(super) fn is_flushable(&self) -> bool {
        self.select(|link| link.is_flushable()).next().is_some()
            || self.network.as_ref().is_some_and(|network| network.unproven.is_flushable())
            || self.datagrams.as_ref().is_some_and(Datagrams::is_flushable)
    }

    /// Whether nothing waits to be sent.
    pub fn is_flushed(&self) -> bool {
        self.slots.iter().all(|(_, slot)| slot.connection.queued_bytes() == 0)
            && self.datagrams.as_ref().is_none_or(Datagrams::is_flushed)
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        let network = self.network.as_ref()?;
        let timeout = network.options.greet_timeout;
        let silent = |slot: &Slot| slot.accepted_at.map(|at| at + timeout + TICK);
        let connections =
            self.slots.iter().flat_map(|(_, slot)| [silent(slot), slot.connection.link().next_deadline()]);
        let room = network.unproven.room_at().filter(|_| self.may_wait());
        let datagrams = self.datagrams.as_ref().and_then(Datagrams::next_deadline);
        connections.chain([room, datagrams, network.unproven.next_deadline()]).flatten().min()
    }

    fn select(&self, which: impl Fn(&dyn Link) -> bool) -> impl Iterator<Item = LinkId> {
        self.slots.iter().filter(move |(_, slot)| which(slot.connection.link())).map(|(link, _)| *link)
    }

    fn new_id(&mut self) -> LinkId {
        self.next += 1;
        LinkId(self.next - 1)
    }

    fn place(&self, link: LinkId) -> Option<usize> {
        self.slots.binary_search_by_key(&link, |(link, _)| *link).ok()
    }
}

fn pools(options: &NetworkOptions, waker: &Waker) -> Result<(Pool, Pool), PoolError> {
    let pool = |name: &str, pages: usize| {
        let name = name.to_owned();
        let pool = Pool::new(&PoolOptions { name, page_len: options.page_len, pages, prefault: false })?;
        pool.wake_on_return(waker.clone());
        Ok(pool)
    };
    let (bulk, control) = (pool("receive", options.bulk_pages)?, pool("control", options.control_pages)?);
    // Each connection has a page, of which messages of control touch the beginning only.
    control.avoid_huge_pages();
    if options.has_many_peers {
        bulk.avoid_huge_pages();
    }
    Ok((bulk, control))
}

/// The longest message of run control to a child that has not got its settings.
pub const JOINING_PAGE_LEN: usize = 1 << 20;

/// Pages of connections that may be huge altogether: idle ones hold them, too, and a machine may have hundreds of processes.
const HUGE_PAGES_BYTES_MAX: usize = 64 << 20;

/// What became of a connection on the way to its proof.
pub(super) struct Heard {
    pub(super) link: LinkId,
    /// Whether this process has made it.
    pub(super) is_ours: bool,
    pub(super) outcome: Outcome,
}

/// Before the partition's own limit is known.
const GREET_TIMEOUT_JOINING: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(1);

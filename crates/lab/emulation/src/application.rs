//! An emulated application: it joins run control, has its real component, and answers by that. It has no peers: none of its data exist.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Arc;

use agents::Introduction;
use assembly::Assembly;
use base::bulk::{Bulk, PageSlice};
use base::ids::{Incarnation, NodeId, Role};
use base::time::Time;
use configuration::Partition;
use dataflow::component::{Action, Input, Outbox, Outcome, PeerState, Unfinished, Work};
use dataflow::message::{Command, Envelope, Message};
use dataflow::node::{Node, RUN_CONTROL};
use dataflow::wire;
use membership::challenge::{Challenge, Member};
use membership::frame_numbers::FrameNumbers;
use membership::participant::{End, Identity, Participant, ParticipantDriver, Place, Welcome};
use membership::passage::{Driver, LinkId, Medium, Strand, Way};
use rol::Inputs;
use transport::clock;
use transport::random::random;

use crate::sockets::begin_to_connect;

/// One application.
pub(crate) struct Application {
    stream: TcpStream,
    input: Vec<u8>,
    stage: Stage,
    hands: Hands,
}

enum Stage {
    Proving(Challenge, Identity),
    Joined(Box<Participant>),
}

/// What it does for whoever sees to joining.
struct Hands {
    introduction: Introduction,
    name: String,
    numbers: Option<FrameNumbers>,
    output: Vec<u8>,
    node: Option<Node>,
    /// Whom it waits for when it drains.
    awaited: Vec<NodeId>,
    assemblies: Assemblies,
    /// What was delivered and is still to be taken.
    delivered: VecDeque<(Envelope, Message)>,
    is_closed: bool,
}

/// The partition, once for all applications that are told the same.
#[derive(Clone, Default)]
pub(crate) struct Assemblies(Rc<RefCell<Option<Rc<Known>>>>);

struct Known {
    configuration: String,
    assembly: Assembly,
    roles: Arc<[Role]>,
    inputs: Inputs,
}

/// Its connection has ended.
pub(crate) struct Ended;

impl Application {
    /// Begins to join run control, which listens at `join`.
    pub(crate) fn join(
        introduction: Introduction,
        name: &str,
        join: &str,
        assemblies: &Assemblies,
    ) -> Result<Self, String> {
        let control: SocketAddr =
            join.split(',').next().and_then(|tcp| tcp.parse().ok()).ok_or_else(|| format!("{join}: no address"))?;
        let stream = begin_to_connect(control).map_err(|error| error.to_string())?;
        let nonce = random().map_err(|error| error.to_string())?;
        let (run, member) = (introduction.run, (introduction.node, introduction.life));
        // As long as those of real ones; nobody calls there.
        let address = format!("127.0.0.1:9,shm:{:08x}", member.0.0);
        let (control, control_life) = (join.to_owned(), introduction.control);
        let identity = Identity { run, member, name: name.to_owned(), address, control, control_life };
        let challenge = Challenge::of_connected((RUN_CONTROL, control_life), nonce);
        let hands = Hands {
            introduction,
            name: name.to_owned(),
            numbers: None,
            output: Vec::new(),
            node: None,
            awaited: Vec::new(),
            assemblies: assemblies.clone(),
            delivered: VecDeque::new(),
            is_closed: false,
        };
        Ok(Self { stream, input: Vec::new(), stage: Stage::Proving(challenge, identity), hands })
    }

    /// Takes in what has come, and says what there is to say.
    pub(crate) fn pass(&mut self, now: Time) -> Result<(), Ended> {
        let read = self.read();
        while let Some(frame) = self.next_frame()? {
            self.on_frame(now, &frame)?;
        }
        // What was said before the end counts.
        read.map_err(|_| Ended)?;
        self.call_in_time(now);
        self.flush().map_err(|_| Ended)?;
        let is_over = matches!(&self.stage, Stage::Joined(participant) if participant.end().is_some());
        if self.hands.is_closed || (is_over && self.hands.output.is_empty()) { Err(Ended) } else { Ok(()) }
    }

    /// The exit status that `weir node` would have by now.
    pub(crate) fn exit_status(&self) -> u8 {
        let end = match &self.stage {
            Stage::Proving(..) => return NOT_STARTED,
            Stage::Joined(participant) => participant.end(),
        };
        match end {
            Some(End::Dismissed) => 0,
            Some(End::Refused(_)) => NOT_STARTED,
            // Its connection alone ties it to run control.
            Some(End::Orphaned) | None => ABORTED,
        }
    }

    /// When its component wants to be called.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.hands.node.as_ref().and_then(Node::next_deadline)
    }

    fn read(&mut self) -> io::Result<()> {
        let mut bytes = [0; READ_LEN];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(len) => self.input.extend_from_slice(&bytes[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn next_frame(&mut self) -> Result<Option<PageSlice>, Ended> {
        let Some(field) = self.input.first_chunk::<4>() else { return Ok(None) };
        let len = u32::from_le_bytes(*field) as usize;
        if !(wire::HEADER_LEN..=FRAME_MAX).contains(&len) {
            return Err(Ended);
        }
        if self.input.len() < len {
            return Ok(None);
        }
        let frame = PageSlice::copy_of(&self.input[..len]);
        self.input.drain(..len);
        if self.input.is_empty() {
            // Five thousand of them keep no memory of what is long ago.
            self.input = Vec::new();
        }
        Ok(Some(frame))
    }

    fn on_frame(&mut self, now: Time, frame: &PageSlice) -> Result<(), Ended> {
        match &mut self.stage {
            Stage::Proving(challenge, identity) => {
                let (envelope, message) = wire::decode(frame).map_err(|_| Ended)?;
                let step = challenge.on_message(&self.hands.introduction.prover(), &envelope, &message);
                let step = step.map_err(|_| Ended)?;
                step.say.iter().for_each(|(envelope, message)| self.hands.queue(envelope, message));
                if let Some(proven) = step.proven {
                    self.hands.numbers = Some(proven.numbers);
                    let participant = Participant::join(&mut self.hands, identity.clone()).map_err(|_| Ended)?;
                    participant.on_proven(&mut self.hands, CONTROL);
                    self.stage = Stage::Joined(Box::new(participant));
                }
            }
            Stage::Joined(participant) => {
                let number = self.hands.numbers.as_mut().map_or(0, FrameNumbers::next_received);
                let (envelope, message) = wire::decode_numbered(frame, Bulk::empty(), number).map_err(|_| Ended)?;
                participant.on_message(&mut self.hands, CONTROL, envelope, message);
                self.hands.take_delivered(now);
            }
        }
        Ok(())
    }

    fn call_in_time(&mut self, now: Time) {
        if self.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.hands.input(now, Input::Deadline);
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.hands.output.is_empty() {
            match self.stream.write(&self.hands.output) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(len) => _ = self.hands.output.drain(..len),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.hands.output = Vec::new();
        Ok(())
    }
}

impl AsFd for Application {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl Hands {
    fn queue(&mut self, envelope: &Envelope, message: &Message) {
        let mut encoded = Vec::new();
        wire::encode(envelope, message, &mut encoded);
        if let Some(numbers) = &mut self.numbers {
            wire::set_number(&mut encoded, numbers.next_sent());
        }
        self.output.append(&mut encoded);
    }

    fn take_delivered(&mut self, now: Time) {
        while let Some((envelope, message)) = self.delivered.pop_front() {
            if message == Message::Command(Command::Drain) {
                // They have nothing to say, and no way to say that.
                let gone = core::mem::take(&mut self.awaited).into_iter();
                gone.for_each(|node| self.input(now, Input::Peer { node, state: PeerState::Gone }));
            }
            let Some(node) = &mut self.node else { return };
            let mut out = Outbox::new();
            node.receive(now, &envelope, message, &mut out);
            self.carry_out(now, out);
        }
    }

    fn input(&mut self, now: Time, input: Input) {
        let Some(node) = &mut self.node else { return };
        let mut out = Outbox::new();
        node.handle(now, input, &mut out);
        self.carry_out(now, out);
    }

    /// Says what is for run control. Of data there are none.
    fn carry_out(&mut self, now: Time, mut out: Outbox) {
        let mut done = Vec::new();
        for action in out.drain() {
            match action {
                Action::Send { to: RUN_CONTROL, message } => {
                    let envelope = self.node.as_ref().and_then(|node| node.envelope_to(RUN_CONTROL));
                    envelope.iter().for_each(|envelope| self.queue(envelope, &message));
                }
                Action::Start { ticket, work: Work::Close } => {
                    let outcome = Outcome::Closed { files: Vec::new(), unfinished: Unfinished::default() };
                    done.push(Input::Done { ticket, outcome });
                }
                _ => {}
            }
        }
        done.into_iter().for_each(|input| self.input(now, input));
        if let Some(node) = &mut self.node {
            let mut out = Outbox::new();
            node.flush(now, &mut out);
            if !out.is_empty() {
                self.carry_out(now, out);
            }
        }
    }
}

impl Driver for Hands {
    fn say(&mut self, _: LinkId, envelope: Envelope, message: Message) {
        self.queue(&envelope, &message);
    }

    fn open(&mut self, _: LinkId) {}

    fn close(&mut self, _: LinkId) {
        self.is_closed = true;
    }

    fn refuse(&mut self, _: LinkId) {
        self.is_closed = true;
    }

    fn deliver(&mut self, envelope: Envelope, message: Message) {
        self.delivered.push_back((envelope, message));
    }

    fn route(&mut self, _: NodeId, _: LinkId, _: Way) {}

    fn tell(&mut self, node: NodeId, state: PeerState) {
        self.input(clock::now(), Input::Peer { node, state });
    }

    fn now(&self) -> Time {
        clock::now()
    }
}

impl ParticipantDriver for Hands {
    fn connect(&mut self, to: Member, _: &str, _: Strand) -> Result<LinkId, String> {
        if to.0 == RUN_CONTROL { Ok(CONTROL) } else { Err("an emulated application has no peers".to_owned()) }
    }

    fn take_place(&mut self, welcome: Welcome, _: LinkId) -> Result<Place, String> {
        let Introduction { node, life, .. } = self.introduction;
        let known = self.assemblies.of(&welcome)?;
        let Known { assembly, roles, inputs, .. } = &*known;
        if assembly.name(node) != self.name {
            return Err(format!("{} was told to be {}", self.name, assembly.name(node)));
        }
        let triggers = inputs.triggers().filter(|_| roles[usize::from(node.0)] == Role::Level1);
        let component = assembly.parameters(node, life != Incarnation::FIRST).component(triggers);
        self.node = Some(Node::new(node, assembly.run(), life, Arc::clone(roles), component));
        self.awaited = awaited_by(roles[usize::from(node.0)]).iter().flat_map(|role| assembly.of(*role)).collect();
        self.tell(RUN_CONTROL, PeerState::Up(Incarnation::FIRST));
        Ok(Place::default())
    }

    fn leave_place(&mut self, _: LinkId) {
        self.node = None;
        self.introduction.life = Incarnation::FIRST;
        self.introduction.secret = self.introduction.secret.next();
    }

    fn medium(&self, _: LinkId) -> Option<Medium> {
        Some(Medium::Tcp)
    }
}

impl Assemblies {
    fn of(&self, welcome: &Welcome) -> Result<Rc<Known>, String> {
        let mut known = self.0.borrow_mut();
        if let Some(known) = known.as_ref().filter(|known| known.configuration == welcome.configuration) {
            return Ok(Rc::clone(known));
        }
        let partition = Partition::parse("welcome", &welcome.configuration, &[]);
        let partition = partition.map_err(|error| error.to_string())?;
        let inputs = Inputs::open(&partition).map_err(|error| error.to_string())?;
        let assembly = Assembly::new(partition, welcome.robs.clone());
        let (roles, configuration) = (assembly.roles().into(), welcome.configuration.clone());
        Ok(Rc::clone(known.insert(Rc::new(Known { configuration, assembly, roles, inputs }))))
    }
}

/// Whose last word a role waits for when it drains.
const fn awaited_by(role: Role) -> &'static [Role] {
    match role {
        Role::L2sv => &[Role::Level1],
        Role::Dfm => &[Role::Level1, Role::L2sv, Role::Sfi],
        Role::Ros | Role::Pros => &[Role::Dfm],
        _ => &[],
    }
}

const CONTROL: LinkId = LinkId(0);
const READ_LEN: usize = 4096;
/// Exit statuses.
const NOT_STARTED: u8 = 2;
const ABORTED: u8 = 3;
/// Far longer than what run control says.
const FRAME_MAX: usize = 64 << 20;

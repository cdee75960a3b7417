//! A read-out system among processes that the test plays.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use agents::Introduction;
use base::bulk::{Bulk, PageSlice};
use base::ids::{Incarnation, NodeId, Role, RunNumber};
use configuration::Partition;
use dataflow::message::{Command, DatagramAddresses, Envelope, Message, PeerPlace};
use dataflow::node::RUN_CONTROL;
use dataflow::wire;
use membership::challenge::{Challenge, Member, Prover, Step};
use membership::frame_numbers::FrameNumbers;
use membership::run_secret::RunSecret;
use rol::Inputs;

use super::Node;
use super::{NodeError, take_part};
use driver::Assembly;
use driver::{JOINING_PAGE_LEN, PeerAddress};

#[test]
fn only_the_connections_that_both_know_of_are_taken() {
    let run = Run::new();
    let (first, port) = (run.address.tcp, run.address.ports[0]);
    let mut further = run.connect(port, 1);
    assert!(further.is_greeted(1), "before the first connection");
    for (at, part) in [(port, 1), (port, 2), (first, 9), (first, u16::MAX)] {
        assert!(!run.connect(at, part).is_greeted(part), "part {part}");
    }
    assert!(run.connect(first, 0).is_greeted(0));
    run.end();
}

#[test]
fn a_peer_is_lost_with_any_of_its_connections() {
    let mut run = Run::new();
    for lost in 0..2 {
        let (first, port) = (run.address.tcp, run.address.ports[0]);
        let life = Incarnation(LIFE.0 + lost);
        let mut links = [run.connect_in_life(first, 0, life), run.connect_in_life(port, 1, life)];
        assert!((0..).zip(&mut links).all(|(part, link)| link.is_greeted(part)));
        let [mut one, mut other] = links;
        if lost == 0 {
            core::mem::swap(&mut one, &mut other);
        }
        drop(other);
        while one.hear().is_some() {}
        let told = core::iter::from_fn(|| run.control.hear());
        let of = told.into_iter().find_map(|(_, message)| match message {
            Message::Lost { node, .. } => Some(node),
            _ => None,
        });
        assert_eq!(of, Some(run.sfi));
    }
    run.end();
}

/// Its connection was ended, and it was taken for there all the same.
#[test]
fn a_peer_that_greets_twice_is_lost() {
    let mut run = Run::new();
    let mut link = run.connect(run.address.tcp, 0);
    assert!(link.is_greeted(0));
    link.say((run.sfi, run.ros), &Message::Greet { part: 0, datagrams: Box::default() });
    assert!(link.hear().is_none());
    assert!(matches!(run.control.hear(), Some((_, Message::Lost { node, .. })) if node == run.sfi));
    let next = Incarnation(LIFE.0 + 1);
    assert!(run.connect_in_life(run.address.tcp, 0, next).is_greeted(0), "there is room for its next life");
    run.end();
}

#[test]
fn a_greeting_of_a_former_life_is_turned_away() {
    let run = Run::new();
    let next = Incarnation(LIFE.0 + 1);
    let mut present = run.connect_in_life(run.address.tcp, 0, next);
    assert!(present.is_greeted(0));
    for (at, part) in [(run.address.tcp, 0), (run.address.ports[0], 1)] {
        assert!(!run.connect(at, part).is_greeted(part), "part {part}");
    }
    assert!(run.connect_in_life(run.address.ports[0], 1, next).is_greeted(1));
    run.end();
}

#[test]
fn an_application_joins_again_after_a_run_and_takes_nobody_of_it() {
    let mut run = Run::new();
    let mut of_former_run = run.connect(run.address.tcp, 0);
    assert!(of_former_run.is_greeted(0));
    run.control.say((RUN_CONTROL, run.ros), &Message::Command(Command::Disconnect));
    assert!(
        matches!(run.control.hear(), Some((_, Message::Join { address, .. })) if address == run.address.to_string())
    );
    assert!(of_former_run.hear().is_none());
    run.welcome();
    let mut of_former_secret = Talk::new(TcpStream::connect(run.address.tcp).unwrap());
    assert!(!run.is_proved(&mut of_former_secret, LIFE));
    run.secret = run.secret.next();
    assert!(run.connect(run.address.tcp, 0).is_greeted(0));
    run.end();
}

#[test]
fn connections_from_before_the_welcome_carry_frames_of_the_partitions_length() {
    let mut run = Run::not_welcomed();
    // Longer than the longest frame of joining, shorter than that of the partition.
    let long = "x".repeat(JOINING_PAGE_LEN + 1);
    let stream = TcpStream::connect(run.address.tcp).unwrap();
    run.welcome();
    let mut early = Talk::new(stream);
    assert!(run.is_proved(&mut early, LIFE));
    let datagrams = Box::new(DatagramAddresses { control: long.clone(), ..DatagramAddresses::default() });
    early.say((run.sfi, run.ros), &Message::Greet { part: 0, datagrams });
    assert!(early.is_greeted(0));
    let itself = PeerPlace { node: run.ros, life: LIFE, address: long };
    run.control.say((RUN_CONTROL, run.ros), &Message::Peers(vec![itself]));
    assert!(matches!(run.control.hear(), Some((_, Message::Ready { .. }))));
    run.end();
}

/// A read-out system with one network port, which answers through shared memory, and its run control.
struct Run {
    control: Talk,
    address: PeerAddress,
    ros: NodeId,
    sfi: NodeId,
    welcome: Message,
    secret: RunSecret,
    process: JoinHandle<Result<(), NodeError>>,
}

impl Run {
    /// It has joined, and has its place.
    fn new() -> Self {
        let mut run = Self::not_welcomed();
        run.welcome();
        run
    }

    /// It has joined.
    fn not_welcomed() -> Self {
        let port = IpAddr::from([127, 0, 0, 2]);
        let text = format!(
            "partition.name = \"p\"\nros = {{ count = 1, ports = [\"{port}\"] }}\nsfi.count = 1\n\
             transport.event_reply = \"shm\"\n"
        );
        let partition = Partition::parse("p", &text, &[]).unwrap();
        let robs = Inputs::open(&partition).unwrap().shares().to_vec();
        let configuration = partition.to_toml();
        let assembly = Assembly::new(partition, robs.clone()).unwrap();
        let [ros, sfi] = [Role::Ros, Role::Sfi].map(|role| assembly.of(role)[0]);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let join = listener.local_addr().unwrap().to_string();
        let args = Node { join, name: "ros-1".into(), ports: vec![port], at: None };
        let control = Incarnation::FIRST;
        let introduction = Introduction { secret: secret(), run: RUN, node: ros, life: LIFE, links: None, control };
        let process = thread::spawn(move || take_part(&args, introduction));
        let mut control = Talk::new(listener.accept().unwrap().0);
        control.challenge((ros, LIFE));
        let Some((_, Message::Join { address, .. })) = control.hear() else { panic!("it does not join") };
        let welcome = Message::Welcome { configuration, hosted: Vec::new(), robs, datagrams: Box::default() };
        Self { control, address: address.parse().unwrap(), ros, sfi, welcome, secret: secret(), process }
    }

    fn welcome(&mut self) {
        self.control.say((RUN_CONTROL, self.ros), &self.welcome);
    }

    /// A connection of the event builder, which says which one it is.
    fn connect(&self, at: SocketAddr, part: u16) -> Talk {
        self.connect_in_life(at, part, LIFE)
    }

    fn connect_in_life(&self, at: SocketAddr, part: u16, life: Incarnation) -> Talk {
        let mut link = Talk::new(TcpStream::connect(at).unwrap());
        assert!(self.is_proved(&mut link, life));
        link.life = life;
        link.say((self.sfi, self.ros), &Message::Greet { part, datagrams: Box::default() });
        link
    }

    /// Whether the event builder and the read-out system prove to each other who they are.
    fn is_proved(&self, link: &mut Talk, life: Incarnation) -> bool {
        let prover = Prover::new(&self.secret, RUN, (self.sfi, life));
        let mut challenge = Challenge::of_connected((self.ros, LIFE), [1; 32]);
        let proven = core::iter::from_fn(|| link.go_on(&mut challenge, &prover).map(|step| step.proven));
        proven.flatten().any(|proven| proven.peer == (self.ros, LIFE))
    }

    fn end(mut self) {
        self.control.say((RUN_CONTROL, self.ros), &Message::Command(Command::Exit));
        self.process.join().unwrap().unwrap();
    }
}

struct Talk {
    stream: TcpStream,
    /// Who says it is in this life.
    life: Incarnation,
    /// Of the frames behind the proof.
    numbers: Option<FrameNumbers>,
}

impl Talk {
    fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, life: LIFE, numbers: None }
    }

    fn say(&mut self, (from, to): (NodeId, NodeId), message: &Message) {
        self.send(&Envelope { from, to, run: RUN, from_incarnation: self.life, to_incarnation: LIFE }, message);
    }

    fn send(&mut self, envelope: &Envelope, message: &Message) {
        let mut bytes = Vec::new();
        wire::encode(envelope, message, &mut bytes);
        wire::set_number(&mut bytes, self.numbers.as_mut().map_or(0, FrameNumbers::next_sent));
        self.stream.write_all(&bytes).unwrap();
    }

    /// As run control, which was connected to.
    fn challenge(&mut self, peer: Member) {
        let prover = Prover::new(&secret(), RUN, (RUN_CONTROL, LIFE));
        let (mut challenge, (envelope, word)) = Challenge::of_accepted(&prover, [2; 32]);
        self.send(&envelope, &word);
        assert_eq!(self.go_on(&mut challenge, &prover).unwrap().proven.unwrap().peer, peer);
    }

    /// Takes in what the other says, and answers.
    fn go_on(&mut self, challenge: &mut Challenge, prover: &Prover) -> Option<Step> {
        let (envelope, message) = self.hear()?;
        let step = challenge.on_message(prover, &envelope, &message).unwrap();
        step.say.iter().for_each(|(envelope, message)| self.send(envelope, message));
        self.numbers = step.proven.map(|proven| proven.numbers);
        Some(step)
    }

    /// The next message; none if the connection was ended.
    fn hear(&mut self) -> Option<(Envelope, Message)> {
        let mut bytes = vec![0; wire::HEADER_LEN];
        match self.stream.read_exact(&mut bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("nothing is said"),
            ended => ended.ok()?,
        }
        let len = u32::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
        bytes.resize(len, 0);
        self.stream.read_exact(&mut bytes[wire::HEADER_LEN..]).unwrap();
        let number = self.numbers.as_mut().map_or(0, FrameNumbers::next_received);
        Some(wire::decode_numbered(&PageSlice::from(bytes), Bulk::empty(), number).unwrap())
    }

    fn is_greeted(&mut self, part: u16) -> bool {
        matches!(self.hear(), Some((_, Message::Greet { part: found, .. })) if found == part)
    }
}

fn secret() -> RunSecret {
    RunSecret::new("key", &[7; 16])
}

const RUN: RunNumber = RunNumber(1);
const LIFE: Incarnation = Incarnation(0);

/// What needs milliseconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(600);

//! What others can send to a UDP endpoint: nothing but what is refused and counted by cause.

use aegis::aegis128l::Aegis128LMac;
use base::bulk::Bulk;
use proptest::prelude::*;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;
use transport::clock;
use transport::frame::FrameLimits;
use transport::link::Filled;
use transport::page_pool::{Pool, PoolOptions};
use transport::udp::{Acknowledged, Authenticate, Endpoint, PeerId, UdpCounters, UdpOptions, check_any_conversation};

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Where tags do not cover addresses.
const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
const KEY: [u8; 16] = [9; 16];
const HEADER_LEN: usize = 40;
const SEGMENT_LEN: u32 = 1432;
const LEN_MAX: u32 = 64 << 10;

#[test]
fn what_we_forge_well_is_delivered() {
    let mut victim = Victim::new();
    victim.send(&Forged::whole(1, 500).bytes());
    assert_eq!(victim.receive(), [frame(500)]);
    assert_eq!(victim.counters(), UdpCounters { datagrams_received: 1, delivered_in_place: 1, ..none() });
}

#[test]
fn datagrams_of_every_length_up_to_a_header() {
    let mut victim = Victim::new();
    let datagram = Forged::whole(1, 500).bytes();
    for len in 0..=HEADER_LEN {
        victim.send(&datagram[..len]);
        assert_eq!(victim.receive(), NOTHING);
    }
    let counters = victim.counters();
    assert_eq!((counters.not_ours, counters.not_proved), (40, 1));
}

#[test]
fn too_long() {
    let mut victim = Victim::new();
    victim.send(&[Forged::whole(1, SEGMENT_LEN).bytes(), vec![0]].concat());
    victim.send(&vec![7; 60_000]);
    assert_eq!(victim.receive(), NOTHING);
    assert_eq!(victim.counters(), UdpCounters { datagrams_received: 2, oversized: 2, ..none() });
}

#[test]
fn from_an_address_that_is_no_peer() {
    let mut victim = Victim::new();
    let stranger = UdpSocket::bind(LOOPBACK).unwrap();
    stranger.send_to(&Forged::whole(1, 500).bytes(), victim.endpoint.local_address()).unwrap();
    assert_eq!(victim.receive(), NOTHING);
    assert_eq!(victim.counters().foreign, 1);
}

#[test]
fn without_the_key() {
    let mut victim = Victim::new();
    victim.send(&Forged { key: [8; 16], ..Forged::whole(1, 500) }.bytes());
    assert_eq!(victim.receive(), NOTHING);
    assert_eq!(victim.counters().not_proved, 1);
}

#[test]
fn headers_that_contradict_themselves() {
    let whole = Forged::whole(1, 500);
    let part = Forged { message_len: 5000, payload: vec![1; 1432], ..whole.clone() };
    let contradictions = [
        Forged { message_len: 499, ..whole.clone() },
        Forged { message_len: 501, ..whole.clone() },
        Forged { message_len: 0, ..whole.clone() },
        Forged { message_len: 7, payload: vec![0; 7], ..whole.clone() },
        Forged { message_len: LEN_MAX + 1, ..part.clone() },
        Forged { message_len: u32::MAX, ..part.clone() },
        Forged { offset: 1, ..whole.clone() },
        Forged { offset: u32::MAX, ..whole.clone() },
        Forged { offset: 500, ..whole.clone() },
        Forged { offset: 5000, ..part.clone() },
        // One that would overlap its neighbours.
        Forged { offset: 1431, ..part.clone() },
        Forged { offset: 4296, ..part.clone() },
        Forged { payload: vec![1; 1431], ..part.clone() },
        Forged { offset: u32::MAX / SEGMENT_LEN * SEGMENT_LEN, message_len: u32::MAX, ..part.clone() },
        // The frame's own length.
        Forged { payload: vec![0xff; 500], ..whole.clone() },
    ];
    let mut victim = Victim::new();
    for (number, forged) in contradictions.iter().enumerate() {
        victim.send(&Forged { number: number as u64 * 3, ..forged.clone() }.bytes());
        assert_eq!(victim.receive(), NOTHING, "{forged:?}");
        assert_eq!(victim.counters().contradictory, number as u64 + 1, "{forged:?}");
    }
    for segment_len in [0, 1, 1431, 1433, u32::MAX] {
        victim.send(&Forged { segment_len, ..part.clone() }.bytes());
    }
    assert_eq!(victim.receive(), NOTHING);
    assert_eq!(victim.counters().other_segment_len, 5);
    assert_eq!(victim.endpoint.incomplete(victim.peer).count(), 0);
}

#[test]
fn asks_cost_bounded_work() {
    let mut victim = Victim::keeping();
    victim.endpoint.send(victim.peer, &frame(5000), &Bulk::empty()).unwrap();
    victim.endpoint.flush(clock::now());
    let ask = Forged { flags: 2, message_len: 0, payload: Vec::new(), ..Forged::whole(0, 500) };
    let senseless = [
        Forged { number: 1, ..ask.clone() },
        Forged { number: u64::MAX, ..ask.clone() },
        Forged { offset: 1, ..ask.clone() },
        Forged { offset: u32::MAX, ..ask.clone() },
        Forged { offset: u32::MAX / SEGMENT_LEN * SEGMENT_LEN, message_len: u32::MAX, ..ask.clone() },
        Forged { offset: 4 * SEGMENT_LEN, ..ask.clone() },
    ];
    for (count, forged) in senseless.iter().enumerate() {
        victim.send(&forged.bytes());
        assert_eq!(victim.receive(), NOTHING);
        assert_eq!((victim.counters().asks_refused, victim.counters().repeated), (count as u64 + 1, 0), "{forged:?}");
    }
    victim.send(&Forged { key: [8; 16], ..ask.clone() }.bytes());
    victim.send(&Forged { segment_len: 7, ..ask.clone() }.bytes());
    // Behind an ask come others, and nothing else.
    victim.send(&[ask.bytes(), Forged::whole(3, 12).bytes(), ask.bytes()[..39].to_vec()].concat());
    assert_eq!(victim.receive(), NOTHING);
    let counters = victim.counters();
    assert_eq!((counters.not_proved, counters.other_segment_len, counters.contradictory), (1, 1, 3));
    assert_eq!((counters.asks_answered, counters.repeated), (1, 4));
    // An ask that somebody has copied and repeats.
    for _ in 0..1000 {
        victim.send(&[ask.bytes(), ask.bytes()].concat());
        victim.receive();
        victim.endpoint.flush(clock::now());
    }
    let counters = victim.counters();
    assert_eq!((counters.repeated, counters.asks_answered), (16 * 4, 16), "{counters:?}");
}

#[test]
fn a_peer_that_asks_for_everything_takes_nothing_from_another() {
    let options = UdpOptions { keep_parts_max: 1000, keep_bytes_max: 8 << 20, ..options() };
    let mut victim = Victim::with(&UdpOptions { segmentation_offload: false, receive_offload: false, ..options });
    let modest = UdpSocket::bind(LOOPBACK).unwrap();
    modest.set_nonblocking(true).unwrap();
    let modest_peer = victim.endpoint.add_peer(modest.local_addr().unwrap()).unwrap();
    for _ in 0..500 {
        victim.endpoint.send(victim.peer, &frame(5000), &Bulk::empty()).unwrap();
    }
    victim.endpoint.send(modest_peer, &frame(40_000), &Bulk::empty()).unwrap();
    victim.endpoint.flush(clock::now());
    let mut place = [0; 2048];
    while modest.recv(&mut place).is_ok() {}
    let asks = |numbers: core::ops::Range<u64>, offset: u32, len: u32| {
        let ask = |number| Forged { flags: 2, message_len: len, offset, payload: vec![], ..Forged::whole(number, 500) };
        numbers.flat_map(|number| ask(number).bytes()).collect::<Vec<u8>>()
    };
    // All of 500 messages of four segments; then the other misses some of its one.
    (0..20).for_each(|some| victim.send(&asks(some * 25..some * 25 + 25, 0, 0)));
    modest.send_to(&asks(0..1, 2 * SEGMENT_LEN, 20 * SEGMENT_LEN), victim.endpoint.local_address()).unwrap();
    assert_eq!(victim.receive(), NOTHING);
    victim.endpoint.flush(clock::now());
    assert!((512..=1024).contains(&(victim.counters().repeated - 20)), "{:?}", victim.counters());
    let came = std::iter::from_fn(|| modest.recv(&mut place).ok()).count();
    assert_eq!(came, 20, "{:?}", victim.counters());
}

#[test]
fn an_ask_for_what_waits_to_be_sent_sends_nothing_twice() {
    let mut victim = Victim::keeping();
    victim.endpoint.send(victim.peer, &frame(5000), &Bulk::empty()).unwrap();
    let ask = Forged { flags: 2, message_len: 0, payload: Vec::new(), ..Forged::whole(0, 500) };
    victim.send(&ask.bytes());
    assert_eq!(victim.receive(), NOTHING);
    victim.endpoint.flush(clock::now());
    let counters = victim.counters();
    assert_eq!((counters.repeated, counters.datagrams_sent, counters.asks_refused), (0, 4, 1), "{counters:?}");
}

#[test]
fn segments_that_disagree_with_each_other() {
    let mut victim = Victim::new();
    let part = Forged { message_len: 5000, payload: vec![1; 1432], ..Forged::whole(1, 500) };
    victim.send(&part.bytes());
    victim.send(&Forged { message_len: 5001, offset: 1432, ..part.clone() }.bytes());
    victim.send(&Forged { payload: vec![2; 1432], ..part.clone() }.bytes());
    assert_eq!(victim.receive(), NOTHING);
    let counters = victim.counters();
    assert_eq!((counters.contradictory, counters.duplicates), (1, 1));
    let incomplete = victim.endpoint.incomplete(victim.peer).next().unwrap();
    assert_eq!(incomplete.missing.into_iter().flatten().collect::<Vec<_>>(), (1432..5000).collect::<Vec<_>>());
}

#[test]
fn damaged_payloads_and_payloads_without_a_checksum() {
    for (authenticate, flags) in [(Authenticate::Everything, PROVED), (Authenticate::Header, CHECKED)] {
        let mut victim = Victim::with(&UdpOptions { authenticate, ..options() });
        let refused = |victim: &Victim| match authenticate {
            Authenticate::Everything => victim.counters().not_proved,
            Authenticate::Header => victim.counters().corrupt,
        };
        let whole = Forged { flags, ..Forged::whole(1, 500) };
        let good = whole.bytes();
        for byte in [40, 41, 200, 539] {
            let mut damaged = good.clone();
            damaged[byte] ^= 1;
            victim.send(&damaged);
        }
        victim.send(&Forged { flags: 0, ..whole.clone() }.bytes());
        assert_eq!(victim.receive(), NOTHING);
        assert_eq!(refused(&victim), 5);
        victim.send(&Forged { flags: 8, ..whole.clone() }.bytes());
        victim.send(&[b"WD\x01", &good[3..]].concat());
        assert_eq!(victim.receive(), NOTHING);
        assert_eq!(victim.counters().not_ours, 2);
        victim.send(&good);
        assert_eq!(victim.receive(), [frame(500)]);
    }
}

#[test]
fn the_header_of_a_genuine_datagram_before_another_payload_is_refused() {
    let mut victim = Victim::new();
    let forged = |of: &Forged| [&of.bytes()[..HEADER_LEN], &[6; 500]].concat();
    victim.send(&forged(&Forged::whole(1, 500)));
    // Nor does it help to say that the tag covers the header alone, who has the key of another run.
    victim.send(&forged(&Forged { flags: CHECKED, key: [8; 16], ..Forged::whole(1, 500) }));
    assert_eq!((victim.receive(), victim.counters().not_proved), (NOTHING.to_vec(), 2));
    // Where only headers are proved, it is taken.
    let header_only = UdpOptions { authenticate: Authenticate::Header, checksum_payload: false, ..options() };
    let mut victim = Victim::with(&header_only);
    let header = &Forged { flags: 0, ..Forged::whole(1, 500) }.bytes()[..HEADER_LEN];
    victim.send(&[header, &[&500_u32.to_le_bytes()[..], &[6; 496]].concat()].concat());
    assert_eq!(victim.receive().len(), 1);
}

#[test]
fn a_datagram_that_was_captured_is_refused_everywhere_else_and_a_second_time() {
    let pool = Pool::new(&PoolOptions { name: "p".into(), page_len: 64 << 10, pages: 8, prefault: false }).unwrap();
    let run = |number: u8| UdpOptions::new(limits(), [number; 16]);
    // An endpoint in each place where the datagram could be taken, which believes that its peer is the one that it came from.
    let sender = UdpSocket::bind(LOOPBACK).unwrap();
    let from = sender.local_addr().unwrap();
    let endpoint = |options: &UdpOptions| Endpoint::bind(LOOPBACK, options, &pool).unwrap();
    let mut genuine = endpoint(&run(1));
    let mut another = endpoint(&run(1));
    let mut later_run = endpoint(&run(2));
    let mut later_life = endpoint(&UdpOptions { incarnation: 1, ..run(1) });
    let key = [1; 16];
    let to = |receiver: &Endpoint, life| Forged {
        key,
        parties: parties(from, receiver.local_address(), life),
        ..Forged::whole(3, 500)
    };
    let take = |endpoint: &mut Endpoint, datagram: &[u8]| {
        sender.send_to(datagram, endpoint.local_address()).unwrap();
        endpoint.fill(clock::now()).unwrap();
        core::iter::from_fn(|| endpoint.next_frame()).count()
    };
    for victim in [&mut genuine, &mut another, &mut later_run, &mut later_life] {
        victim.add_peer(from).unwrap();
    }
    let captured = to(&genuine, 0).bytes();
    assert_eq!((take(&mut genuine, &captured), take(&mut genuine, &captured)), (1, 0));
    assert_eq!(genuine.udp_counters().duplicates, 1);
    assert_eq!(take(&mut another, &captured), 0, "to another receiver");
    // As if they had the address that the captured one went to.
    let (to_later_run, to_later_life) = (to(&later_run, 0).bytes(), to(&later_life, 0).bytes());
    assert_eq!(take(&mut later_run, &to_later_run), 0, "in another run with the same partition key");
    assert_eq!(take(&mut later_life, &to_later_life), 0, "to another life of the receiver");
    for victim in [&another, &later_run, &later_life] {
        assert_eq!((victim.udp_counters().not_proved, victim.udp_counters().refused()), (1, 1));
    }
}

#[test]
fn a_later_life_is_what_the_connection_says_not_what_a_datagram_says() {
    let mut victim = Victim::new();
    for life in 1..4 {
        // Made with the key: what it says is no word of run control.
        victim.send(&Forged { incarnation: life << 16, ..Forged::whole(9, 500) }.bytes());
    }
    assert_eq!((victim.receive(), victim.counters().stale), (NOTHING.to_vec(), 3));
    victim.send(&Forged::whole(0, 500).bytes());
    assert_eq!(victim.receive(), [frame(500)]);
    let address = victim.socket.local_addr().unwrap();
    victim.endpoint.remove_peer(victim.peer);
    victim.peer = victim.endpoint.add_peer_in_life(address, 2).unwrap();
    victim.send(&Forged::whole(1, 500).bytes());
    victim.send(&Forged { incarnation: 2 << 16, ..Forged::whole(0, 500) }.bytes());
    assert_eq!((victim.receive(), victim.counters().stale), (vec![frame(500)], 4));
}

#[test]
fn numbers_that_jump_and_return() {
    let mut victim = Victim::new();
    for number in [0, u64::MAX - 1, 5, 0, u64::MAX - 1, u64::MAX - 2, u64::MAX, u64::MAX] {
        victim.send(&Forged::whole(number, 500).bytes());
    }
    assert_eq!(victim.receive().len(), 3);
    let counters = victim.counters();
    assert_eq!((counters.late, counters.duplicates), (4, 1));
}

#[test]
fn acknowledged_numbers_come_to_an_end() {
    let mut victim = Victim::acknowledging();
    let say = |incarnation, flags, number| Forged {
        incarnation,
        flags,
        message_len: 0,
        payload: Vec::new(),
        ..Forged::whole(number, 8)
    };
    let (given_up, acknowledgement) = (6, 5);
    for incarnation in 0..3 {
        // The first message, so that what is given up counts as lost; each life as much as can be.
        victim.send(&Forged { incarnation, ..Forged::whole(0, 500) }.bytes());
        victim.send(&say(incarnation, given_up, u64::MAX - 1).bytes());
        for number in [u64::MAX, u64::MAX - 1, u64::MAX] {
            victim.send(&Forged { incarnation, ..Forged::whole(number, 500) }.bytes());
        }
        victim.send(&say(incarnation, given_up, u64::MAX).bytes());
        victim.send(&Forged { incarnation, ..Forged::whole(u64::MAX, 500) }.bytes());
        assert_eq!(victim.receive().len(), 2);
        victim.endpoint.flush(clock::now());
        assert_eq!(victim.counters().late, 3 * u64::from(incarnation + 1));
    }
    assert_eq!(victim.counters().messages_lost, u64::MAX);
    // It has sent nothing.
    for (number, beyond) in [(1, 0), (u64::MAX, 0), (0, u32::MAX), (u64::MAX, u32::MAX)] {
        let said = Forged { message_len: beyond, offset: beyond, checksum: Some(0), ..say(2, acknowledgement, number) };
        victim.send(&said.bytes());
    }
    assert_eq!(victim.receive(), NOTHING);
    assert_eq!(victim.counters().acknowledgements_refused, 4);
}

#[test]
fn acknowledgements_that_nobody_gives_change_nothing() {
    let mut victim = Victim::acknowledging();
    let say = |end: u64, beyond: u64, sender: u32| Forged {
        flags: 5,
        message_len: beyond as u32,
        offset: (beyond >> 32) as u32,
        checksum: Some(sender),
        payload: Vec::new(),
        ..Forged::whole(end, 8)
    };
    // Of 60 messages of 40 kB, 26 fit in the window.
    let sent = (0..60).filter(|_| victim.endpoint.send(victim.peer, &frame(40_000), &Bulk::empty()).is_ok()).count();
    assert_eq!(sent, 60);
    victim.endpoint.flush(clock::now());
    let waiting = victim.endpoint.queued_bytes();
    assert_eq!(waiting, 34 * 40_000);
    let lies = [
        // Beyond what was released, although it was given to be sent.
        say(27, 0, 0),
        say(60, 0, 0),
        say(0, 1 << 26, 0),
        say(25, 1, 0),
        say(26, 1, 0),
        say(u64::MAX, 0, 0),
        say(0, u64::MAX, 0),
        say(u64::MAX, u64::MAX, 0),
        // For another life of ours, or for what we were to a peer that was removed.
        say(26, 0, 1),
        say(26, 0, 1 << 16),
        say(26, 0, u32::MAX),
    ];
    for (count, lie) in lies.iter().enumerate() {
        victim.send(&lie.bytes());
        assert_eq!(victim.receive(), NOTHING);
        victim.endpoint.flush(clock::now());
        let refused = victim.counters().acknowledgements_refused;
        assert_eq!((refused, victim.endpoint.queued_bytes()), (count as u64 + 1, waiting), "{lie:?}");
    }
    // True ones, then older ones: the window does not go back.
    for (end, left) in [(10, 24), (5, 24), (0, 24), (26, 8), (0, 8), (52, 0), (60, 0), (7, 0), (0, 0)] {
        victim.send(&say(end, 0, 0).bytes());
        assert_eq!(victim.receive(), NOTHING);
        victim.endpoint.flush(clock::now());
        assert_eq!(victim.endpoint.queued_bytes(), left * 40_000, "{end}");
    }
    assert_eq!(victim.counters().acknowledgements_refused, lies.len() as u64);
    // An acknowledgement in the name of a former life of the peer.
    victim.send(&Forged { incarnation: 3, ..say(60, 0, 0) }.bytes());
    victim.send(&Forged { incarnation: 2, ..say(60, 0, 0) }.bytes());
    assert_eq!(victim.receive(), NOTHING);
    assert_eq!(victim.counters().stale, 1);
}

#[test]
fn claims_of_what_was_sent_or_given_up_hold_no_memory_and_cost_no_time() {
    for mut victim in [Victim::acknowledging(), Victim::keeping()] {
        for flags in [3, 4, 6] {
            for number in [1 << 20, 1 << 40, 1, u64::MAX - 1, 0, u64::MAX] {
                victim.send(&Forged { flags, payload: Vec::new(), ..Forged::whole(number, 8) }.bytes());
                assert_eq!(victim.receive(), NOTHING);
                victim.endpoint.flush(clock::now());
            }
        }
        assert_eq!(victim.endpoint.incomplete(victim.peer).count(), 0);
        assert!(victim.pool.counters().in_use_max <= 2);
    }
}

/// The corpus of the fuzz target `datagrams`; `UPDATE_CORPUS=1` writes it.
#[test]
fn the_corpus_is_replayed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../fuzz/corpus/datagrams");
    if std::env::var_os("UPDATE_CORPUS").is_some() {
        std::fs::create_dir_all(folder).unwrap();
        for (name, steps) in conversations() {
            for mode in 0..4 {
                std::fs::write(format!("{folder}/{name}_{mode}"), [&[mode][..], &steps.concat()].concat()).unwrap();
            }
        }
    }
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() > 10, "the corpus has {} files", files.len());
    files.iter().for_each(|path| check_any_conversation(&std::fs::read(path).unwrap()));
}

/// Steps of conversations as `udp/conversation.rs` reads them: what, life, base of a number, number, two words, length.
fn conversations() -> Vec<(&'static str, Vec<[u8; 8]>)> {
    let [segment, ask, sent, received, given_up, acknowledgement, send] = [0, 1, 2, 3, 4, 5, 6];
    let [at_once, pass, long] = [0, 3, 255].map(|ms| [7, 0, 0, 0, ms, 0, 0, 0]);
    let say = |what: u8, base: u8, number: u8| [what, 0, base, number, 1, 1, 0xff, 0xff];
    let sending = [send, 0, 0, 0, 31, 0, 0, 2];
    let ask_long = |number, first| [ask, 0x20, 0, number, first, 0, 0, 0x50];
    let every = |what: u8| (0..7).flat_map(move |base| [say(what, base, 0), say(what, base, 255), pass]);
    let lives = |what: u8| (0..4).flat_map(move |life| [[what, life, 0, 3, 0, 0, 200, 0], pass]);
    let mut all = vec![
        ("segments", (0..40).map(|number| [segment, 0, 0, number, 0, 1, 100, 0]).chain([pass]).collect()),
        ("parts", (0..40).flat_map(|number| [[segment, 0, 0, number, number % 3, 1, 0, 2], pass]).collect()),
        ("silence", vec![sending, pass, sending, long, long, long, long, long, sending, long]),
        ("no_key", vec![sending, [acknowledgement, 0x80, 0, 3, 0, 0, 0, 0], pass]),
        (
            "other_length",
            vec![sending, [acknowledgement, 0x40, 0, 3, 0, 0, 0, 0], [segment, 0x40, 0, 0, 0, 0, 9, 0], pass],
        ),
        ("backwards", (0..20).rev().flat_map(|end| [[acknowledgement, 0, 0, end, 0, 0, 0, 0], at_once]).collect()),
        (
            "other_sender",
            vec![sending, pass, [acknowledgement, 0, 0, 5, 0, 1, 0, 0], [acknowledgement, 0, 0, 5, 0, 2, 0, 0], pass],
        ),
        // Six asks per datagram, each for sixteen segments, and more of all than wait at most.
        (
            "flood",
            [[send, 0, 0, 0, 4, 0, 0, 0x40], pass]
                .into_iter()
                .chain([0, 1, 0, 2, 0, 3, 0, 1, 2, 3, 1, 2].map(|number| [ask, 0, 0, number, 0, 5, 0x80, 0x0d]))
                .chain([pass, at_once])
                .collect(),
        ),
        // Two messages of 147 segments, in turns.
        (
            "long",
            [0, 32, 64, 96, 128]
                .into_iter()
                .flat_map(|first| [0, 1].map(|number| [segment, 0x20, 0, number, first, 1, 0, 0x7c]))
                .chain([pass])
                .flat_map(|step| [step, if step[4] == 0 { at_once } else { pass }])
                .collect(),
        ),
        // Of what is sent in parts: one that follows, all, one that waits, one that is forgotten.
        (
            "ask_long",
            [[send, 0, 0, 0, 1, 0, 0, 0x80], pass, [send, 0, 0, 0, 1, 0, 0, 0x50], pass]
                .into_iter()
                .chain([(0, 28), (0, 0), (1, 28), (0, 60), (1, 28)].map(|(number, first)| ask_long(number, first)))
                .chain([pass, ask_long(1, 28), [send, 0, 0, 0, 3, 0, 0, 0x80], ask_long(0, 28), ask_long(2, 28), long])
                .collect(),
        ),
        ("nonsense", vec![[8, 1, 2, 3, 4, 5, 6, 7], [0x88, 1, 2, 3, 4, 5, 6, 7], pass]),
    ];
    for (name, name_of_lives, what) in [
        ("ask", "ask_lives", ask),
        ("sent", "sent_lives", sent),
        ("received", "received_lives", received),
        ("given_up", "given_up_lives", given_up),
        ("acknowledgement", "acknowledgement_lives", acknowledgement),
    ] {
        all.push((name, [sending, pass].into_iter().chain(every(what)).chain([sending, pass, long]).collect()));
        let of_lives = [sending, pass].into_iter().chain(lives(what)).chain(lives(segment)).chain([long]);
        all.push((name_of_lives, of_lives.collect()));
    }
    all
}

#[test]
fn a_flood_of_beginnings_holds_bounded_memory() {
    let mut victim = Victim::new();
    let part = Forged { message_len: LEN_MAX, payload: vec![1; 1432], ..Forged::whole(1, 500) };
    for number in 0..5000 {
        victim.send(&Forged { number, ..part.clone() }.bytes());
        if number % 50 == 0 {
            assert_eq!(victim.receive(), NOTHING);
        }
    }
    assert!(victim.endpoint.incomplete(victim.peer).count() <= 64);
    assert!(victim.pool.counters().in_use_max <= 8);
    let Victim { endpoint, pool, .. } = victim;
    drop(endpoint);
    assert_eq!(pool.counters().in_use, 0);
}

/// Datagrams of another length that the kernel joins have no place as they come.
#[test]
fn joined_datagrams_of_any_length() {
    for len in [100_u32, 700, 1431, 1432] {
        let mut victim = Victim::new();
        let datagrams: Vec<_> = (0..12).map(|number| Forged::whole(number, len).bytes()).collect();
        let short = [Forged::whole(12, 60).bytes(), vec![1; 10], vec![]];
        for short in short {
            let all = [datagrams.concat(), short].concat();
            if !send_joined(&victim.socket, victim.endpoint.local_address(), &all, datagrams[0].len()) {
                testkit::skip("joined_datagrams_of_any_length", "this kernel does not cut datagrams (UDP_SEGMENT)");
                return;
            }
        }
        let received = victim.receive();
        assert_eq!(received.iter().filter(|bytes| **bytes == frame(len)).count(), 12, "{:?}", victim.counters());
        assert_eq!(received.iter().filter(|bytes| **bytes == frame(60)).count(), 1);
        let counters = victim.counters();
        assert_eq!((counters.duplicates, counters.not_ours, counters.datagrams_received), (24, 1, 38), "{counters:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_a_peer_with_the_key_says_does_no_harm(
        mode in 0_u8..4,
        steps in prop::collection::vec((prop::array::uniform8(any::<u8>()), any::<bool>()), 0..200),
    ) {
        // Every other number is a small one: there the state is.
        let steps = steps.iter().flat_map(|(step, is_near)| {
            let [what, life, base, number, rest @ ..] = *step;
            let near = [what, life % 4, base % 3, number % 32];
            (if *is_near { near } else { [what, life, base, number] }).into_iter().chain(rest)
        });
        check_any_conversation(&[mode].into_iter().chain(steps).collect::<Vec<u8>>());
    }

    #[test]
    fn random_bytes_are_refused(
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..1600), 1..20),
        mimic in any::<bool>(),
    ) {
        let mut victim = Victim::new();
        for datagram in &datagrams {
            let mut datagram = datagram.clone();
            if mimic && datagram.len() > 4 {
                datagram[..4].copy_from_slice(b"WD\x02\x07");
            }
            victim.send(&datagram);
        }
        prop_assert_eq!(victim.receive(), NOTHING);
        let counters = victim.counters();
        prop_assert_eq!(counters.datagrams_received, datagrams.len() as u64);
        prop_assert_eq!(counters.refused(), datagrams.len() as u64);
    }

    #[test]
    fn random_headers_with_the_key_do_no_harm(
        headers in prop::collection::vec((0_u64..4, 0_u32..6000, 0_u32..5, 0_u32..3, 0_usize..1500), 1..60),
    ) {
        let mut victim = Victim::new();
        for (number, message_len, segment, slip, payload_len) in &headers {
            let offset = segment * SEGMENT_LEN + slip / 2;
            let fitting = message_len.saturating_sub(offset).min(SEGMENT_LEN) as usize;
            let payload = vec![1; if *slip == 0 { fitting } else { *payload_len }];
            victim.send(&Forged { number: *number, message_len: *message_len, offset, payload, ..Forged::whole(0, 8) }.bytes());
        }
        for frame in victim.receive() {
            prop_assert_eq!(frame.len(), u32::from_le_bytes(*frame.first_chunk().unwrap()) as usize);
        }
        prop_assert_eq!(victim.counters().datagrams_received, headers.len() as u64);
        let Victim { endpoint, pool, .. } = victim;
        drop(endpoint);
        prop_assert_eq!(pool.counters().in_use, 0);
    }
}

const NOTHING: [Vec<u8>; 0] = [];

/// An endpoint with one peer, which is ours to play.
struct Victim {
    endpoint: Endpoint,
    peer: PeerId,
    pool: Pool,
    socket: UdpSocket,
}

impl Victim {
    fn new() -> Self {
        Self::with(&options())
    }

    /// One that sends again what it is asked for.
    fn keeping() -> Self {
        Self::with(&UdpOptions { keep_parts_max: 8, keep_bytes_max: 1 << 20, ..options() })
    }

    fn acknowledging() -> Self {
        let retransmit_after = Duration::from_millis(20);
        let acknowledged = Some(Acknowledged { window_bytes: 1 << 20, retransmit_after, retransmits_max: 8 });
        Self::with(&UdpOptions { acknowledged, ..options() })
    }

    fn with(options: &UdpOptions) -> Self {
        let page_len = LEN_MAX as usize;
        let pool = Pool::new(&PoolOptions { name: "receive".into(), page_len, pages: 8, prefault: false }).unwrap();
        let mut endpoint = Endpoint::bind(LOOPBACK, options, &pool).unwrap();
        let socket = UdpSocket::bind(LOOPBACK).unwrap();
        let peer = endpoint.add_peer(socket.local_addr().unwrap()).unwrap();
        Self { endpoint, peer, pool, socket }
    }

    fn send(&self, datagram: &[u8]) {
        self.socket.send_to(datagram, self.endpoint.local_address()).unwrap();
    }

    fn receive(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while self.endpoint.fill(clock::now()).unwrap() == Filled::Some {
            while let Some((peer, frame)) = self.endpoint.next_frame() {
                assert_eq!(peer, self.peer);
                frames.push(frame.head.as_bytes().to_vec());
            }
        }
        frames
    }

    fn counters(&self) -> UdpCounters {
        *self.endpoint.udp_counters()
    }
}

/// A datagram made by the description of the header, not by its code.
#[derive(Clone, Debug)]
struct Forged {
    flags: u8,
    incarnation: u32,
    number: u64,
    message_len: u32,
    offset: u32,
    segment_len: u32,
    /// In the place of the checksum, if it is not that.
    checksum: Option<u32>,
    key: [u8; 16],
    parties: [u8; 32],
    payload: Vec<u8>,
}

impl Forged {
    fn whole(number: u64, len: u32) -> Self {
        let payload = frame(len);
        let (flags, incarnation, segment_len) = (PROVED, 0, SEGMENT_LEN);
        let (checksum, key, parties) = (None, KEY, parties(ANY, ANY, 0));
        Self { flags, incarnation, number, message_len: len, offset: 0, segment_len, checksum, key, parties, payload }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![b'W', b'D', 2, self.flags];
        bytes.extend(self.incarnation.to_le_bytes());
        bytes.extend(self.number.to_le_bytes());
        let checksum = if self.flags == CHECKED { crc32fast::hash(&self.payload) } else { 0 };
        for field in [self.message_len, self.offset, self.segment_len, self.checksum.unwrap_or(checksum)] {
            bytes.extend(field.to_le_bytes());
        }
        let mut mac = Aegis128LMac::<16>::new(&self.key);
        mac.update(&self.parties);
        mac.update(&bytes);
        mac.update(if self.flags == PROVED { &self.payload } else { &[] });
        bytes.extend(&mac.finalize()[..8]);
        bytes.extend(&self.payload);
        bytes
    }
}

/// Who sends to whom, and the receiver's life.
fn parties(sender: SocketAddr, receiver: SocketAddr, life: u32) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("weir 2026 the ends of a datagram");
    for end in [sender, receiver] {
        let SocketAddr::V4(end) = end else { panic!("an address of IPv4") };
        hasher.update(&end.ip().to_ipv6_mapped().octets()).update(&end.port().to_le_bytes());
    }
    hasher.update(&life.to_le_bytes()).finalize().into()
}

/// The kinds of segments.
const CHECKED: u8 = 1;
const PROVED: u8 = 7;

/// Of an endpoint whose peers may be at any address.
fn options() -> UdpOptions {
    UdpOptions { relayed: true, ..UdpOptions::new(limits(), KEY) }
}

fn limits() -> FrameLimits {
    FrameLimits::new(8, LEN_MAX as usize).unwrap()
}

fn frame(len: u32) -> Vec<u8> {
    let mut frame = vec![3; len as usize];
    frame[..4].copy_from_slice(&len.to_le_bytes());
    frame
}

fn none() -> UdpCounters {
    UdpCounters::default()
}

/// Sends bytes that the kernel cuts into datagrams of `datagram_len`; returns whether it can.
fn send_joined(socket: &UdpSocket, to: SocketAddr, bytes: &[u8], datagram_len: usize) -> bool {
    let value = i32::try_from(datagram_len).unwrap();
    let len = size_of::<i32>() as libc::socklen_t;
    let (level, option) = (libc::SOL_UDP, libc::UDP_SEGMENT);
    // SAFETY: the value is an integer of the length stated, and lives across the call.
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), len) };
    set == 0 && socket.send_to(bytes, to).is_ok()
}

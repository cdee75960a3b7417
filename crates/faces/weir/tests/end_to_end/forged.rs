//! Somebody on the network of a run who has no key, hears its multicasts and speaks in the names of its applications.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::Duration;

use base::bulk::PageSlice;
use base::ids::EventId;
use dataflow::message::Message;
use dataflow::wire::{decode, encode};
use nix::sys::signal::Signal;
use rustix::fd::OwnedFd;
use rustix::net::sockopt::{set_ip_add_membership, set_ip_multicast_if, set_socket_reuseaddr};
use rustix::net::{AddressFamily, Protocol, SendFlags, SocketType, bind, sendto, socket};

use crate::running::{Job, Running, within_deadline};

/// One clear with another payload had all later events refused: 3,945 of 5,001 lost their data.
#[test]
fn clears_forged_from_captured_ones_lose_no_event() {
    attack("clears_forged_from_captured_ones_lose_no_event", |_, captured| {
        let (header, payload) = captured.split_at(HEADER_LEN);
        let Ok((envelope, Message::Clear { sequence, last, events, .. })) = decode(&PageSlice::from(payload.to_vec()))
        else {
            return Vec::new();
        };
        let with = |oldest_valid, sequence| {
            let clear = Message::Clear { sequence, oldest_valid: EventId(oldest_valid), last, events: events.clone() };
            let mut forged = Vec::new();
            encode(&envelope, &clear, &mut forged);
            [header, &forged].concat()
        };
        vec![with(1 << 40, sequence), with(0, 1 << 40)]
    });
}

/// Clears of "a later life" had every genuine one refused as stale; those that were captured were taken again.
#[test]
fn clears_of_a_later_life_and_captured_ones_change_nothing() {
    attack("clears_of_a_later_life_and_captured_ones_change_nothing", |_, captured| {
        let mut of_a_later_life = captured.to_vec();
        of_a_later_life[LIFE_AT] += 1;
        vec![of_a_later_life, captured.to_vec()]
    });
}

/// Clears of a former run with the same key were taken: 3,939 of 5,001 events were incomplete.
#[test]
fn clears_of_a_former_run_with_the_same_key_change_nothing() {
    let name = "clears_of_a_former_run_with_the_same_key_change_nothing";
    let Some(mut former) = Attack::start(name) else { return };
    let captured: Vec<Vec<u8>> = (0..FORGED).map(|_| former.capture().1).collect();
    former.end();
    let mut former = captured.into_iter().cycle();
    attack(name, |_, _| former.next().into_iter().collect());
}

/// Says something for each clear that is captured, in the name of who sent it; the run notices nothing but what it counts.
fn attack(name: &str, mut forge: impl FnMut(SocketAddrV4, &[u8]) -> Vec<Vec<u8>>) {
    let Some(mut attack) = Attack::start(name) else { return };
    let mut said = 0;
    while said < FORGED {
        let (from, captured) = attack.capture();
        for forged in forge(from, &captured) {
            attack.say(from, &forged);
            said += 1;
        }
    }
    attack.running.until_more_is_recorded();
    let (_, summary) = attack.end().expect_ok();
    let count = |of: &str| summary.0["network"]["datagrams"][of].as_u64().unwrap();
    assert_eq!((summary.count("built_incomplete"), summary.count("residual")), (0, 0), "{summary:?}");
    let refused = count("malformed") + count("stale") + count("duplicates");
    assert!(refused >= said as u64, "{refused} refused of {said} forged at least: {summary:?}");
}

struct Attack {
    running: Running,
    group: SocketAddrV4,
    hears: UdpSocket,
    speaks: OwnedFd,
    /// Keeps the port from others.
    _port: UdpSocket,
}

impl Attack {
    /// Starts a run beside somebody who may send in any name; `None` if nobody may here.
    fn start(name: &str) -> Option<Self> {
        let raw = socket(AddressFamily::INET, SocketType::RAW, Some(Protocol::from_raw(RAW.try_into().unwrap())));
        let Ok(speaks) = raw else {
            testkit::skip(name, "only the superuser may send in the name of others");
            return None;
        };
        set_ip_multicast_if(&speaks, &Ipv4Addr::LOCALHOST).unwrap();
        let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let group = SocketAddrV4::new(Ipv4Addr::new(239, 192, 0, 1), port.local_addr().unwrap().port());
        let hears = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
        set_socket_reuseaddr(&hears, true).unwrap();
        bind(&hears, &group).unwrap();
        set_ip_add_membership(&hears, group.ip(), &Ipv4Addr::LOCALHOST).unwrap();
        let hears = UdpSocket::from(hears);
        hears.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let job = Job::example("quickstart").patient().endless().processes(true).set("level1.rate", "2 kHz");
        let job = job.set("transport.clear", "multicast").set("transport.udp.port", &group.port().to_string());
        let job = job.set("dfm.clear_group", "10").with_key("a key that is used for years");
        let mut running = job.start();
        running.until_recording();
        Some(Self { running, group, hears, speaks, _port: port })
    }

    /// The next clear that somebody multicasts, and who does.
    fn capture(&mut self) -> (SocketAddrV4, Vec<u8>) {
        let mut place = vec![0; 1 << 16];
        let mut captured = None;
        within_deadline("a clear is multicast", || {
            match self.hears.recv_from(&mut place) {
                Ok((len, SocketAddr::V4(from))) => captured = Some((from, place[..len].to_vec())),
                Ok(_) => {}
                Err(error) => assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}"),
            }
            captured.is_some()
        });
        captured.expect("it was just seen")
    }

    /// Multicasts something as if another had.
    fn say(&self, from: SocketAddrV4, payload: &[u8]) {
        let word = |value: usize| u16::try_from(value).unwrap().to_be_bytes();
        let (len, udp_len) =
            (word(IP_HEADER_LEN + UDP_HEADER_LEN + payload.len()), word(UDP_HEADER_LEN + payload.len()));
        let [version_and_len, service, time_to_live, protocol] = [0x45, 0, 1, 17];
        let mut packet = vec![version_and_len, service];
        packet.extend(len);
        packet.extend([0, 0, 0, 0, time_to_live, protocol, 0, 0]);
        packet.extend(from.ip().octets().into_iter().chain(self.group.ip().octets()));
        packet.extend(from.port().to_be_bytes().into_iter().chain(self.group.port().to_be_bytes()));
        packet.extend(udp_len.into_iter().chain([0, 0]));
        packet.extend(payload);
        sendto(&self.speaks, &packet, SendFlags::empty(), &self.group).unwrap();
    }

    fn end(self) -> crate::running::Ended {
        self.running.signal(Signal::SIGINT);
        self.running.end()
    }
}

const HEADER_LEN: usize = 40;
/// The lower byte of the sender's life.
const LIFE_AT: usize = 6;
const FORGED: usize = 40;
const IP_HEADER_LEN: usize = 20;
const UDP_HEADER_LEN: usize = 8;
/// `IPPROTO_RAW`: packets bring their own header.
const RAW: u32 = 255;

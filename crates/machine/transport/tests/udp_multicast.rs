//! Multicast on the loopback interface: one sender, several receivers, as clears travel `[EB2007 §II-B.4]`.

use base::bulk::Bulk;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use transport::clock;
use transport::frame::FrameLimits;
use transport::link::{Filled, Flushed};
use transport::page_pool::{Pool, PoolOptions};
use transport::udp::{Endpoint, InvalidOptions, UdpOptions};

#[test]
fn a_group_receives_what_is_sent_to_it_once() {
    let (options, pool) = (options(), pool());
    let group = Ipv4Addr::new(239, 77, 31, 5);
    let join = |port| Endpoint::join(SocketAddrV4::new(group, port), Ipv4Addr::LOCALHOST, &options, &pool).unwrap();
    let first = join(0);
    let second = join(first.local_address().port());
    let bind = || Endpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &options, &pool).unwrap();
    let (mut sender, mut stranger) = (bind(), bind());
    let to_group = sender.add_peer(first.local_address()).unwrap();
    let stranger_to_group = stranger.add_peer(first.local_address()).unwrap();
    let mut receivers = [first, second];
    for receiver in &mut receivers {
        receiver.add_peer(sender.local_address()).unwrap();
    }
    for len in [20, 5000, 12, 40_000] {
        sender.send(to_group, &frame(len), &Bulk::empty()).unwrap();
        stranger.send(stranger_to_group, &frame(20), &Bulk::empty()).unwrap();
        assert_eq!((sender.flush(clock::now()), stranger.flush(clock::now())), (Flushed::All, Flushed::All));
    }
    for receiver in &mut receivers {
        let mut frames = Vec::new();
        while receiver.fill(clock::now()).unwrap() == Filled::Some {
            frames
                .extend(core::iter::from_fn(|| receiver.next_frame()).map(|(_, frame)| frame.head.as_bytes().to_vec()));
        }
        assert_eq!(frames, [20, 5000, 12, 40_000].map(frame));
        assert_eq!(receiver.udp_counters().foreign, 4);
    }
    drop(receivers);
    assert_eq!(pool.counters().in_use, 0);
}

#[test]
fn only_a_group_can_be_joined() {
    let address = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 1), 0);
    let refused = Endpoint::join(address, Ipv4Addr::LOCALHOST, &options(), &pool()).map(|_| ()).unwrap_err();
    assert_eq!(refused, InvalidOptions::NoGroup(*address.ip()));
    assert!(refused.to_string().contains("192.0.2.1"));
}

fn options() -> UdpOptions {
    let mut options = UdpOptions::new(FrameLimits::new(8, 64 << 10).unwrap(), [4; 16]);
    options.multicast.interface = Some(Ipv4Addr::LOCALHOST);
    options
}

fn pool() -> Pool {
    Pool::new(&PoolOptions { name: "receive".into(), page_len: 64 << 10, pages: 16, prefault: false }).unwrap()
}

fn frame(len: u32) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..len).map(|index| index as u8).collect();
    frame[..4].copy_from_slice(&len.to_le_bytes());
    frame
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let group = SocketAddrV4::new(Ipv4Addr::new(239, 1, 2, 3), port);
    let refused = Endpoint::join(group, Ipv4Addr::LOCALHOST, &options(), &pool()).map(|_| ()).unwrap_err().to_string();
    assert!(refused.starts_with(&format!("no datagrams can be received at 239.1.2.3:{port}: ")), "{refused}");
}

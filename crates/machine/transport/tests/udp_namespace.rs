//! UDP through a network that drops datagrams, in a network namespace of its own.

use base::bulk::Bulk;
use rustix::thread::UnshareFlags;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Duration;
use transport::clock;
use transport::frame::FrameLimits;
use transport::link::{Filled, Flushed};
use transport::page_pool::{Pool, PoolOptions};
use transport::poller::Poller;
use transport::udp::{Endpoint, UdpOptions};

const LOSS_PERCENT: usize = 10;

#[test]
fn every_message_arrives_through_loss_if_it_is_sent_again() {
    // The namespace is that of one thread, and goes with it.
    std::thread::spawn(|| match enter_lossy_network() {
        Ok(()) => send_until_all_arrive(),
        Err(reason) => testkit::skip("every_message_arrives_through_loss_if_it_is_sent_again", &reason),
    })
    .join()
    .unwrap();
}

/// The kernel does not cut into datagrams that the network would have to fragment; whole, it fragments them.
#[test]
fn datagrams_longer_than_the_network_takes_arrive_in_fragments() {
    std::thread::spawn(|| match enter_network().and_then(|()| run(&mut ip("lo mtu 1500"), "")) {
        Ok(()) => send_in_long_datagrams(),
        Err(reason) => testkit::skip("datagrams_longer_than_the_network_takes_arrive_in_fragments", &reason),
    })
    .join()
    .unwrap();
}

/// The kernel takes no more than the send buffer while a slow network holds it.
#[test]
fn a_slow_network_holds_the_queue_up_and_loses_nothing() {
    let slow = || {
        enter_network()?;
        // 20 Mbit/s: the buffer below takes some 20 ms.
        run(Command::new("tc").args("qdisc add dev lo root tbf rate 20mbit burst 3000 limit 10m".split(' ')), "")
    };
    std::thread::spawn(move || match slow() {
        Ok(()) => send_more_than_the_buffer(),
        Err(reason) => testkit::skip("a_slow_network_holds_the_queue_up_and_loses_nothing", &reason),
    })
    .join()
    .unwrap();
}

fn send_more_than_the_buffer() {
    const MESSAGES: u32 = 40;
    let page_len = 64 << 10;
    let pool = Pool::new(&PoolOptions { name: "receive".into(), page_len, pages: 64, prefault: false }).unwrap();
    let mut options = UdpOptions::new(FrameLimits::new(8, page_len).unwrap(), [6; 16]);
    (options.send_buffer_bytes, options.segmentation_offload) = (16 << 10, false);
    let bind = || Endpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &options, &pool).unwrap();
    let (mut first, mut second) = (bind(), bind());
    let mut poller = Poller::new().unwrap();
    first.register(&mut poller).unwrap();
    second.register(&mut poller).unwrap();
    let to_second = first.add_peer(second.local_address()).unwrap();
    second.add_peer(first.local_address()).unwrap();
    for number in 0..MESSAGES {
        first.send(to_second, &frame(number), &Bulk::empty()).unwrap();
    }
    assert_eq!(first.flush(clock::now()), Flushed::WouldBlock);
    assert!(first.queued_bytes() > 0 && !first.is_flushable() && first.counters().send_would_blocks == 1);
    let (mut arrived, deadline) = (0, clock::now() + Duration::from_secs(600));
    while arrived < MESSAGES {
        assert!(clock::now() < deadline, "{arrived} of {MESSAGES} arrived: {first:?} {second:?}");
        poller.wait(Some(Duration::from_millis(100))).unwrap();
        if first.is_flushable() {
            first.flush(clock::now());
        }
        while second.is_receivable(clock::now()) && second.fill(clock::now()).unwrap() != Filled::WouldBlock {
            while let Some((_, received)) = second.next_frame() {
                assert!(received.head.as_bytes() == frame(arrived), "message {arrived}");
                arrived += 1;
            }
        }
    }
    assert_eq!((first.udp_counters().datagrams_not_sent, first.queued_bytes()), (0, 0));
    assert!(first.counters().send_would_blocks > 1, "{first:?}");
}

fn send_in_long_datagrams() {
    let page_len = 64 << 10;
    let pool = Pool::new(&PoolOptions { name: "receive".into(), page_len, pages: 8, prefault: false }).unwrap();
    let mut options = UdpOptions::new(FrameLimits::new(8, page_len).unwrap(), [6; 16]);
    options.datagram_len = 4000;
    let bind = || Endpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &options, &pool).unwrap();
    let (mut first, mut second) = (bind(), bind());
    let to_second = first.add_peer(second.local_address()).unwrap();
    second.add_peer(first.local_address()).unwrap();
    for number in 0..20 {
        first.send(to_second, &frame(number), &Bulk::empty()).unwrap();
        first.flush(clock::now());
        second.fill(clock::now()).unwrap();
        let (_, received) = second.next_frame().expect("the loopback interface loses nothing");
        assert!(received.head.as_bytes() == frame(number));
    }
    assert_eq!((first.udp_counters().datagrams_not_sent, first.send_refused()), (0, None));
}

fn send_until_all_arrive() {
    let page_len = 64 << 10;
    let pool = Pool::new(&PoolOptions { name: "receive".into(), page_len, pages: 64, prefault: false }).unwrap();
    let mut options = UdpOptions::new(FrameLimits::new(8, page_len).unwrap(), [6; 16]);
    // What the kernel cuts later would be dropped as one.
    options.segmentation_offload = false;
    let bind = || Endpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &options, &pool).unwrap();
    let (mut first, mut second) = (bind(), bind());
    let to_second = first.add_peer(second.local_address()).unwrap();
    second.add_peer(first.local_address()).unwrap();
    let mut missing: Vec<u32> = (0..200).collect();
    let mut tries = 0;
    while !missing.is_empty() {
        assert!(tries < 100, "{missing:?} still missing: {second:?}");
        tries += 1;
        for chunk in missing.clone().chunks(16) {
            for number in chunk {
                first.send(to_second, &frame(*number), &Bulk::empty()).unwrap();
            }
            first.flush(clock::now());
            while second.fill(clock::now()).unwrap() == Filled::Some {
                while let Some((_, received)) = second.next_frame() {
                    let bytes = received.head.as_bytes();
                    let number = u32::from_le_bytes(*bytes[4..].first_chunk().unwrap());
                    assert!(bytes == frame(number), "message {number}");
                    missing.retain(|wanted| *wanted != number);
                }
            }
        }
    }
    let (sent, received) = (first.udp_counters().datagrams_sent, second.udp_counters().datagrams_received);
    let lost_percent = 100 * (sent - received) / sent;
    assert!((3..25).contains(&lost_percent), "{lost_percent} % lost in {tries} tries: {second:?}");
    drop((first, second));
    assert_eq!(pool.counters().in_use, 0);
}

fn frame(number: u32) -> Vec<u8> {
    let len = 1000 + number % 9 * 1000;
    let mut frame: Vec<u8> = (0..len).map(|index| (index + number) as u8).collect();
    frame[..4].copy_from_slice(&len.to_le_bytes());
    frame[4..8].copy_from_slice(&number.to_le_bytes());
    frame
}

/// Moves this thread to a network namespace whose loopback interface drops some datagrams.
fn enter_lossy_network() -> Result<(), String> {
    Command::new("nft").arg("--version").output().map_err(|error| format!("nft (package nftables): {error}"))?;
    enter_network()?;
    let drop_some = format!(
        "table inet lossy {{\n chain in {{\n type filter hook input priority 0;\n \
         meta l4proto udp numgen random mod 100 < {LOSS_PERCENT} drop\n }}\n}}\n"
    );
    run(Command::new("nft").args(["-f", "-"]), &drop_some)
}

/// Moves this thread to a network namespace of its own, with a loopback interface.
fn enter_network() -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("needs root, for a network namespace".into());
    }
    // SAFETY: only the network changes, which no library of this process has a state about.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
        .map_err(|errno| format!("no network namespace: {errno}"))?;
    run(&mut ip("lo up"), "")
}

fn ip(change: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["link", "set"]).args(change.split(' '));
    command
}

fn run(command: &mut Command, input: &str) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let failed = |error: &dyn std::fmt::Display| format!("{program}: {error}");
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = piped.spawn().map_err(|error| failed(&error))?;
    let mut stdin = child.stdin.take().expect("piped");
    // A program that has ended already says why below.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().map_err(|error| failed(&error))?;
    if output.status.success() { Ok(()) } else { Err(failed(&String::from_utf8_lossy(&output.stderr))) }
}

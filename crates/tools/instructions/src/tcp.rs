//! Frames through a connection on the loopback interface, both ends in one thread. It counts the send queue, the
//! assembler and the code around the system calls, not these themselves.

use base::bulk::{Bulk, PageSlice};
use base::time::Time;
use core::time::Duration;
use transport::frame::FrameLimits;
use transport::link::Link;
use transport::page_pool::{Pool, PoolOptions};
use transport::tcp::{Connection, Listener, TcpOptions};

/// Frames of 1 kB behind a head, in groups of 32.
pub(crate) fn frames(frames: u64) {
    let limits = FrameLimits::new(HEAD_BYTES, 1 << 16).expect("a frame is longer than its head");
    let options = TcpOptions::new(limits);
    let (name, page_len) = ("frames".to_owned(), 1 << 18);
    let pool = Pool::new(&PoolOptions { name, page_len, pages: 64, prefault: true }).expect("a pool of this size");
    let listener = Listener::on_loopback(&options).expect("a port on the loopback interface");
    let deadline = Time::ZERO + Duration::from_secs(1);
    let address = listener.local_address();
    let mut sender = Connection::connect(address, &options, &pool, deadline).expect("a connection");
    let mut receiver = accept(&listener, &options, &pool);
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&((HEAD_BYTES + BULK_BYTES) as u32).to_le_bytes());
    let bulk = Bulk::Pages(PageSlice::from(vec![7; BULK_BYTES]));
    for _ in 0..frames / GROUP {
        for _ in 0..GROUP {
            sender.send(&head, &bulk).expect("the queue has room for a group");
        }
        sender.flush(Time::ZERO).expect("the receiver is there");
        let mut received = 0;
        while received < GROUP {
            receiver.fill(Time::ZERO).expect("the sender is there");
            while let Some(frame) = receiver.next_slice() {
                assert_eq!(frame.len(), HEAD_BYTES + BULK_BYTES);
                received += 1;
            }
        }
    }
}

/// The connection is there when it is made, or soon after.
fn accept(listener: &Listener, options: &TcpOptions, pool: &Pool) -> Connection {
    loop {
        if let Some(connection) = listener.accept(options, pool).expect("it can be accepted") {
            return connection;
        }
    }
}

const HEAD_BYTES: usize = 32;
const BULK_BYTES: usize = 1000;
/// Less than a socket buffer holds.
const GROUP: u64 = 32;

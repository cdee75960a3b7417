//! Frames through a link of shared memory, both ends in one thread: records of the ring, handles and their tickets. Nobody
//! sleeps, so there is no system call.

use base::bulk::Bulk;
use base::time::Time;
use core::time::Duration;
use transport::frame::FrameLimits;
use transport::link::Link;
use transport::page_pool::{Pool, PoolOptions};
use transport::shm::{Process, ShmLink, ShmListener, ShmOptions};

/// Frames of 9 kB behind a head, which stay in their pages, and frames of a head alone, by turns; in groups of 32.
pub(crate) fn frames(frames: u64) {
    let limits = FrameLimits::new(HEAD_BYTES, 1 << 16).expect("a frame is longer than its head");
    let pool = |name: &str| PoolOptions { name: name.to_owned(), page_len: 1 << 16, pages: 64, prefault: true };
    let receive = Pool::new(&pool("receive")).expect("a pool of this size");
    let (copies, lent) = (Pool::shared(&pool("copies")), Pool::shared(&pool("lent")));
    let (copies, lent) = (copies.expect("a pool of this size"), lent.expect("a pool of this size"));
    let process = Process::new(&ShmOptions::new(limits), copies, vec![lent.clone()]).expect("settings that fit");
    let listener = ShmListener::bind().expect("a name of the kernel's choice");
    let deadline = Time::ZERO + Duration::from_secs(1);
    let mut sender = ShmLink::connect(listener.address(), &process, &receive, deadline).expect("a link");
    let mut receiver = accept(&listener, &process, &receive);
    let head = |len: usize| {
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&(len as u32).to_le_bytes());
        head
    };
    let (long, short) = (head(HEAD_BYTES + BULK_BYTES), head(HEAD_BYTES));
    for _ in 0..frames / GROUP {
        for number in 0..GROUP {
            let (head, bulk) = if number % 2 == 0 {
                let page = lent.take().expect("pages of the group before are back");
                (&long, Bulk::Pages(page.freeze(BULK_BYTES)))
            } else {
                (&short, Bulk::empty())
            };
            sender.send(head, &bulk).expect("the queue has room for a group");
        }
        let mut received = 0;
        while received < GROUP {
            sender.flush(Time::ZERO).expect("the receiver is there");
            receiver.fill(Time::ZERO).expect("the sender is there");
            while let Some(frame) = receiver.next_frame() {
                assert_eq!(frame.rest.len(), if received % 2 == 0 { BULK_BYTES } else { 0 });
                received += 1;
            }
        }
        // Takes the tickets back.
        sender.fill(Time::ZERO).expect("the receiver is there");
    }
}

fn accept(listener: &ShmListener, process: &Process, pool: &Pool) -> ShmLink {
    loop {
        if let Some(link) = listener.accept(process, pool).expect("it can be accepted") {
            return link;
        }
    }
}

const HEAD_BYTES: usize = 32;
const BULK_BYTES: usize = 9000;
const GROUP: u64 = 32;

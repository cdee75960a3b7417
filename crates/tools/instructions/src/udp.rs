//! Messages in datagrams over the loopback interface, both ends in one thread. It counts cutting, tags of headers,
//! putting together, and keeping parts to be sent again. System calls are not counted, the kernel neither cuts nor
//! joins, and nothing checks the payload: that is a library's work.

use base::bulk::{Bulk, PageSlice};
use base::time::Time;
use core::time::Duration;
use transport::frame::FrameLimits;
use transport::page_pool::{Pool, PoolOptions};
use transport::udp::{Acknowledged, DATAGRAM_LEN_ETHERNET, Endpoint, UdpOptions};

/// Messages of one datagram each, such as requests.
pub(crate) fn short_messages(messages: u64) {
    exchange(messages, 200, 16, false);
}

/// Messages of 26 datagrams each, such as replies of 37.5 kB on an Ethernet.
pub(crate) fn cut_messages(messages: u64) {
    exchange(messages, 37_500, 2, false);
}

/// The same, each delivered once and acknowledged.
pub(crate) fn acknowledged_messages(messages: u64) {
    exchange(messages, 37_500, 2, true);
}

fn exchange(messages: u64, bulk_bytes: usize, group: u64, is_acknowledged: bool) {
    let limits = FrameLimits::new(HEAD_BYTES, 1 << 16).expect("a frame is longer than its head");
    let (name, page_len) = ("messages".to_owned(), 1 << 18);
    let pool = Pool::new(&PoolOptions { name, page_len, pages: 64, prefault: true }).expect("a pool of this size");
    let options = UdpOptions {
        datagram_len: DATAGRAM_LEN_ETHERNET,
        checksum_payload: false,
        segmentation_offload: false,
        receive_offload: false,
        receive_buffer_bytes: 1 << 20,
        ask_after: Duration::from_millis(2),
        keep_parts_max: 64,
        acknowledged: is_acknowledged.then_some(Acknowledged {
            window_bytes: 1 << 18,
            retransmit_after: Duration::from_secs(1),
            retransmits_max: 1,
        }),
        ..UdpOptions::new(limits, [1; 16])
    };
    let bind = || Endpoint::bind("127.0.0.1:0".parse().expect("an address"), &options, &pool).expect("a port");
    let (mut sender, mut receiver) = (bind(), bind());
    let to = sender.add_peer(receiver.local_address()).expect("none was removed");
    receiver.add_peer(sender.local_address()).expect("none was removed");
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&((HEAD_BYTES + bulk_bytes) as u32).to_le_bytes());
    let bulk = Bulk::Pages(PageSlice::from(vec![7; bulk_bytes]));
    for _ in 0..messages / group {
        for _ in 0..group {
            sender.send(to, &head, &bulk).expect("the queue has room for a group");
        }
        sender.flush(Time::ZERO);
        let mut received = 0;
        while received < group {
            receiver.fill(Time::ZERO).expect("the socket is there");
            while let Some((_, frame)) = receiver.next_frame() {
                assert_eq!(frame.len(), HEAD_BYTES + bulk_bytes);
                received += 1;
            }
        }
        if is_acknowledged {
            // Acknowledgements go, and open the window for the next group.
            receiver.flush(Time::ZERO);
            sender.fill(Time::ZERO).expect("the socket is there");
        }
    }
}

const HEAD_BYTES: usize = 32;

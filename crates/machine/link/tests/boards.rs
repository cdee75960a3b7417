//! Boards that know nothing of Weir, and send datagrams.

mod bench;

use std::net::UdpSocket;

use base::losses::Losses;
use bench::{Bench, SIZE_MAX, Tally};
use link::{ByteOrder, Counter, Extent, Field, FrameFormat, LinkError, LinkOrder, Ticks};

#[test]
fn datagrams_are_fragments_with_the_number_and_time_that_their_header_says() {
    for strip in [false, true] {
        let mut board = Board::new(FrameFormat { strip, ..format() });
        board.start(1);
        let sent: Vec<Vec<u8>> = (0..500).map(|number| frame(number, number as usize * 7 % 90)).collect();
        let came = board.send_all(&sent);
        assert!(came.losses.are_none(), "{}", came.losses);
        for (number, (fragment, sent)) in came.fragments.iter().zip(&sent).enumerate() {
            let time = 1000 * number as u64;
            assert_eq!((fragment.head.number, fragment.head.time), (Some(number as u64), Some((time, time))));
            assert!(fragment.payload == sent[if strip { HEADER } else { 0 }..], "{fragment:?}");
        }
        assert_eq!(board.end().ended, Some((500, 500)));
    }
}

#[test]
fn several_frames_of_a_datagram_are_a_fragment_each() {
    let mut board = Board::new(FrameFormat { extent: said(), ..format() });
    board.start(1);
    let frames: Vec<Vec<u8>> = (0..60).map(|number| frame(number, number as usize)).collect();
    frames.chunks(7).for_each(|frames| board.send(&frames.concat()));
    let came = board.came(|came| came.fragments.len() == 60);
    assert!(came.fragments.iter().map(|fragment| &fragment.payload).eq(&frames), "{came:?}");
    let fixed = FrameFormat { extent: Extent::Fixed(HEADER + 4), ..format() };
    let mut board = Board::new(fixed);
    board.start(1);
    board.send(&[frame(3, 4), frame(4, 4), frame(5, 4)].concat());
    assert_eq!(board.came(|came| came.fragments.len() == 3).numbers(), [3, 4, 5]);
}

#[test]
fn a_narrow_counter_that_begins_again_goes_on() {
    let counter = Counter { field: Field { at: 3, width: 1, order: ByteOrder::Big }, modulus: None };
    let mut board = Board::new(FrameFormat { counter: Some(counter), ..format() });
    board.start(1);
    let came = board.send_all(&(250..1100).map(|number| frame(number, 3)).collect::<Vec<_>>());
    assert!(came.numbers().into_iter().eq(250..1100) && came.losses.are_none(), "{came:?}");
}

#[test]
fn the_time_of_a_late_frame_is_not_taken_for_one_after_the_clock_began_again() {
    let narrow = Ticks { field: Field { at: 8, width: 4, order: ByteOrder::Big }, ns: 1, per: 1 };
    let mut board = Board::new(FrameFormat { time: vec![narrow], ..format() });
    board.start(1);
    for (number, ticks) in [(0, 10_000), (2, 1_010_000), (1, 510_000)] {
        let mut frame = frame(number, 5);
        frame[8..12].copy_from_slice(&u32::to_be_bytes(ticks));
        board.send(&frame);
    }
    let came = board.came(|came| came.fragments.len() == 3);
    let times: Vec<u64> = came.fragments.iter().map(|fragment| fragment.head.time.unwrap().0).collect();
    assert_eq!(times, [10_000, 510_000, 1_010_000]);
}

#[test]
fn what_the_network_turns_round_doubles_and_loses_is_put_right_or_counted() {
    let mut board = Board::new(format());
    board.start(1);
    for number in [10, 12, 11, 11, 13, 15, 16, 13] {
        board.send(&frame(number, 5));
    }
    let came = board.came(|came| came.fragments.len() == 6);
    assert_eq!(came.numbers(), [10, 11, 12, 13, 15, 16]);
    let mut losses = came.losses;
    let ended = board.end();
    losses += ended.losses;
    assert_eq!(losses, Losses { missing: 1, repeated: 2, ..Losses::default() });
    assert_eq!(ended.ended, Some((7, 6)));
}

#[test]
fn who_is_not_the_board_is_left_out_counted_and_named_once() {
    let mut board = Board::with("127.0.0.1", Some("127.0.0.1"));
    board.start(1);
    let stranger = UdpSocket::bind("127.0.0.2:0").unwrap();
    for number in 0..5 {
        stranger.send_to(&frame(number, 9), board.to()).unwrap();
    }
    (0..3).for_each(|number| board.send(&frame(number, 5)));
    let came = board.came(|came| came.fragments.len() == 3 && came.losses.foreign == 5);
    assert_eq!(came.losses, Losses { foreign: 5, ..Losses::default() });
    assert_eq!(came.said, ["127.0.0.2 is not 127.0.0.1, whose datagrams are taken"]);

    let mut board = Board::with("127.0.0.2", None);
    board.start(1);
    board.send(&frame(0, 5));
    let came = board.came(|came| came.fragments.len() == 1);
    assert_eq!(came.numbers(), [0], "the first one that comes is the board");
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(&frame(1, 5), board.to()).unwrap();
    assert_eq!(board.came(|came| came.losses.foreign == 1).fragments, []);
}

#[test]
fn lying_lengths_and_rubbish_are_counted_and_the_rest_is_taken() {
    let mut board = Board::new(FrameFormat { extent: said(), ..format() });
    board.start(1);
    let mut lying = frame(1, 8);
    lying[12..16].copy_from_slice(&u32::MAX.to_be_bytes());
    let mut wild = frame(3, 8);
    wild[..4].copy_from_slice(&0xf000_0000_u32.to_be_bytes());
    board.send(&frame(0, 8));
    board.send(&[frame(1, 8), lying].concat());
    for rubbish in [&wild[..], b"rubbish", &[], &frame(9, 8)[..HEADER + 3]] {
        board.send(rubbish);
    }
    board.send(&frame(2, 8));
    let came = board.came(|came| came.fragments.len() == 3);
    assert_eq!(came.numbers(), [0, 1, 2]);
    assert_eq!(came.losses, Losses { malformed: 5, ..Losses::default() });
    assert_eq!(came.said.len(), 1, "{came:?}");
    assert!(came.said[0].contains("is not as [source.frame] says: a frame of 4294967311 bytes"), "{came:?}");
    // Longer than a page holds.
    board.send(&vec![0; SIZE_MAX + 1]);
    assert_eq!(board.came(|came| came.losses.malformed == 1).fragments, []);
}

#[test]
fn what_comes_outside_of_a_run_belongs_to_none() {
    let mut board = Board::new(format());
    (0..10).for_each(|number| board.send(&frame(number, 5)));
    assert_eq!(board.came(|came| came.losses.outside == 10).fragments, []);
    for run in [1, 2] {
        board.start(run);
        (0..10).for_each(|number| board.send(&frame(number, 5)));
        let came = board.came(|came| came.fragments.len() == 10);
        assert!(came.losses.are_none(), "{came:?}");
        assert_eq!(board.end().ended, Some((10, 10)));
    }
}

#[test]
fn a_board_that_never_stops_does_not_hold_up_the_end_of_a_run() {
    let mut board = Board::new(format());
    board.start(1);
    board.bench.intake.order(LinkOrder::Stop);
    let mut number = 0;
    let (to, socket) = (board.to(), board.socket.try_clone().unwrap());
    let ended = std::cell::Cell::new(false);
    while !ended.get() {
        socket.send_to(&frame(number, 5), &to).unwrap();
        number += 1;
        let came = board.came(|came| !came.fragments.is_empty() || came.losses.outside > 0 || came.ended.is_some());
        ended.set(came.ended.is_some_and(|(sent, received)| sent == received && received <= number.into()));
    }
}

#[test]
fn what_a_full_readout_leaves_in_the_socket_until_the_kernel_drops_it_is_counted() {
    let mut board = Board::new(format());
    board.start(1);
    board.bench.poll();
    board.bench.room = 0;
    const SENT: u32 = 5000;
    (0..SENT).for_each(|number| board.send(&frame(number, 30_000)));
    board.bench.poll();
    board.bench.room = 64;
    board.bench.intake.order(LinkOrder::Stop);
    let came = board.came(|came| came.ended.is_some());
    let unread = came.losses.unread;
    assert!(unread > 0, "{:?}", came.losses);
    assert_eq!(came.fragments.len() as u64 + unread, SENT.into(), "{:?}", came.losses);
}

#[test]
fn a_board_without_a_description_is_refused() {
    let parameters = bench::parameters(link::Address::of_intake("udp://127.0.0.1:0", "test").unwrap(), None);
    let refused = bench::open_intake(parameters).map(drop);
    assert!(matches!(refused, Err(LinkError::FramesUndescribed { .. })), "{refused:?}");
}

/// Datagrams of a front-end board of KM3NeT, as it sent them: acoustic data, several datagrams to a time slice of 100 ms. The counter
/// says which datagram of the slice it is; the header says when the slice begins, in seconds and in ticks of 16 ns.
#[test]
fn real_datagrams_of_a_neutrino_telescope_come_byte_by_byte() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared/rawdata/km3net_clb_acoustics.csk");
    let Ok(file) = std::fs::read(path) else {
        return testkit::skip("real_datagrams_of_a_neutrino_telescope_come_byte_by_byte", "no data");
    };
    let datagrams = datagrams(&file);
    assert_eq!(datagrams.len(), 129);
    let big = |at| Field { at, width: 4, order: ByteOrder::Big };
    let mut board = Board::new(FrameFormat {
        header: 40,
        strip: false,
        extent: Extent::Whole,
        counter: Some(Counter { field: big(8), modulus: Some(9) }),
        time: vec![Ticks { field: big(12), ns: 1_000_000_000, per: 1 }, Ticks { field: big(16), ns: 16, per: 1 }],
    });
    board.start(1);
    let came = board.send_all(&datagrams);
    assert!(came.losses.are_none(), "{}", came.losses);
    assert!(came.fragments.iter().map(|fragment| &fragment.payload).eq(&datagrams));
    assert!(came.numbers().into_iter().eq(7..7 + 129), "{:?}", came.numbers());
    let times: Vec<u64> = came.fragments.iter().map(|fragment| fragment.head.time.unwrap().0).collect();
    assert_eq!(times[0], 0x65bb_7230 * 1_000_000_000 + 0x011e_1a30 * 16);
    assert!(times.windows(2).all(|pair| [0, 100_000_000].contains(&(pair[1] - pair[0]))), "{times:?}");
    assert_eq!(board.end().ended, Some((129, 129)));
}

/// Each with its length in front.
fn datagrams(mut file: &[u8]) -> Vec<Vec<u8>> {
    let mut datagrams = Vec::new();
    while let Some((len, rest)) = file.split_first_chunk::<4>() {
        let (datagram, rest) = rest.split_at(u32::from_le_bytes(*len) as usize);
        datagrams.push(datagram.to_vec());
        file = rest;
    }
    datagrams
}

struct Board {
    bench: Bench,
    socket: UdpSocket,
}

impl Board {
    fn new(format: FrameFormat) -> Self {
        let bench = Bench::of_device("udp://127.0.0.1:0", format);
        Self { bench, socket: UdpSocket::bind("127.0.0.1:0").unwrap() }.settled()
    }

    fn with(host: &str, from: Option<&str>) -> Self {
        let bench = Bench::with_device("udp://127.0.0.1:0", |parameters| {
            parameters.frames = Some(format());
            parameters.from = from.map(|from| from.parse().unwrap());
        });
        Self { bench, socket: UdpSocket::bind((host, 0)).unwrap() }.settled()
    }

    /// It is there at once; that the kernel gives little room may be said, too.
    fn settled(mut self) -> Self {
        self.bench.until(|came| matches!(came.first(), Some(bench::Came::Up(_))));
        self
    }

    fn to(&self) -> String {
        self.bench.at().strip_prefix("udp://").unwrap().to_owned()
    }

    fn send(&self, datagram: &[u8]) {
        self.socket.send_to(datagram, self.to()).unwrap();
    }

    /// A few at a time: they fit into the socket of any host.
    fn send_all(&mut self, datagrams: &[Vec<u8>]) -> Tally {
        let mut came = Tally::default();
        for some in datagrams.chunks(16) {
            some.iter().for_each(|datagram| self.send(datagram));
            let more = self.came(|came| came.fragments.len() == some.len());
            came.fragments.extend(more.fragments);
            came.losses += more.losses;
        }
        came
    }

    fn start(&mut self, run: u32) {
        self.bench.intake.order(LinkOrder::Start { run });
    }

    fn came(&mut self, is_enough: impl Fn(&Tally) -> bool) -> Tally {
        self.bench.came(is_enough)
    }

    fn end(&mut self) -> Tally {
        self.bench.intake.order(LinkOrder::Stop);
        self.bench.came(|came| came.ended.is_some())
    }
}

/// Counter, time in microseconds, length of the data; all big-endian.
fn format() -> FrameFormat {
    let field = |at, width| Field { at, width, order: ByteOrder::Big };
    FrameFormat {
        header: HEADER,
        strip: false,
        extent: Extent::Whole,
        counter: Some(Counter { field: field(0, 4), modulus: None }),
        time: vec![Ticks { field: field(4, 8), ns: 1000, per: 1 }],
    }
}

fn said() -> Extent {
    Extent::Said { field: Field { at: 12, width: 4, order: ByteOrder::Big }, unit: 1, plus: HEADER as u64 }
}

fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut frame = number.to_be_bytes().to_vec();
    frame.extend_from_slice(&u64::from(number).to_be_bytes());
    frame.extend_from_slice(&(len as u32).to_be_bytes());
    frame.extend((0..len).map(|at| (at as u32 * 31 + number) as u8));
    frame
}

const HEADER: usize = 16;

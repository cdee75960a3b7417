//! An S-LINK: words over TCP, to blocks, to fragments with what was wrong with them.

mod bench;

use std::io::{Read, Write};
use std::net::TcpStream;

use base::losses::Losses;
use bench::{Bench, Came, Fragment, PAGES};
use link::slink::{BEGIN, CONTROL_ERROR, DATA_ERROR, END, GREETING, NoLink, Words, XOFF, XON};
use link::{ByteOrder, Counter, Extent, Faults, Field, Flags, FrameFormat, LinkOrder, Lost, Violation};

#[test]
fn blocks_are_fragments_with_the_number_that_their_header_says() {
    let (mut bench, mut link) = connected();
    start(&mut bench, &mut link, 1);
    link.send(|words| (7..7 + 10).for_each(|number| block(words, number, 0)));
    let came = bench.came(|came| came.fragments.len() == 10);
    for (number, fragment) in (7..).zip(&came.fragments) {
        assert_eq!(fragment.head.number, Some(u64::from(number)));
        assert!(fragment.payload == rod(number) && fragment.faults.is_empty(), "{fragment:?}");
    }
    assert!(came.losses.are_none(), "{}", came.losses);
    bench.intake.order(LinkOrder::Stop);
    let ended = bench.came(|came| came.ended.is_some());
    assert_eq!((ended.ended, link.hear()), (Some((10, 10)), XOFF));
}

#[test]
fn what_the_link_says_of_errors_goes_with_the_fragment() {
    let (mut bench, mut link) = connected();
    start(&mut bench, &mut link, 1);
    link.send(|words| {
        block(words, 0, 0);
        block(words, 1, DATA_ERROR);
        block(words, 2, CONTROL_ERROR);
        words.control(BEGIN, 0);
        words.data(&rod(3), true);
        block(words, 4, 0);
        words.data(&rod(5), false);
        words.control(END, 0);
        words.control(BEGIN, 0);
        words.data(b"too shor", false);
        words.control(END, 0);
    });
    let came = bench.came(|came| came.fragments.len() == 6 && came.losses.malformed == 1);
    let found: Vec<(u64, bool, Faults)> = came.fragments.iter().map(marks).collect();
    let expected = [
        (0, false, Faults::empty()),
        (1, true, Faults::empty()),
        (2, false, Faults::CONTROL_WORD),
        (3, true, Faults::NO_END),
        (4, false, Faults::empty()),
        (5, false, Faults::NO_BEGIN),
    ];
    assert_eq!(found, expected);
    assert_eq!(came.losses, Losses { malformed: 1, ..Losses::default() });
    assert!(came.said[0].contains("a block is not as [source.frame] says: 8 bytes"), "{:?}", came.said);
}

/// A front end that reads XOFF late has sent more meanwhile: it waits in the socket.
#[test]
fn a_full_read_out_system_turns_the_link_off_and_loses_nothing() {
    let (mut bench, mut link) = connected();
    start(&mut bench, &mut link, 1);
    bench.keeps_pages = true;
    link.send(|words| (0..PAGES as u32).for_each(|number| block(words, number, 0)));
    let mut numbers = bench.came(|came| came.fragments.len() == PAGES).numbers();
    bench.intake.order(LinkOrder::Off);
    assert_eq!(link.hear(), XOFF);
    let more = PAGES as u32..PAGES as u32 + 5;
    link.send(|words| more.clone().for_each(|number| block(words, number, 0)));
    bench.kept.clear();
    bench.keeps_pages = false;
    bench.intake.order(LinkOrder::On);
    assert_eq!(link.hear(), XON);
    numbers.extend(bench.came(|came| came.fragments.len() == 5).numbers());
    assert!(numbers.into_iter().eq(0..u64::from(more.end)));
}

#[test]
fn what_was_on_its_way_between_runs_belongs_to_none() {
    let (mut bench, mut link) = connected();
    link.send(|words| {
        block(words, 0, 0);
        block(words, 1, 0);
        words.control(BEGIN, 0);
        words.data(&rod(2), false);
    });
    // The kernel has it at once: both ends are on this host.
    start(&mut bench, &mut link, 1);
    link.send(|words| {
        words.control(END, 0);
        block(words, 3, 0);
    });
    assert_eq!(bench.came(|came| came.fragments.len() == 1).numbers(), [3]);
    bench.intake.order(LinkOrder::Stop);
    let ended = bench.came(|came| came.ended.is_some());
    assert_eq!((ended.losses.outside, ended.ended), (3, Some((1, 1))));
}

#[test]
fn a_link_that_goes_down_in_a_block_loses_it_and_comes_again() {
    let (mut bench, mut link) = connected();
    start(&mut bench, &mut link, 1);
    link.send(|words| {
        block(words, 0, 0);
        words.control(BEGIN, 0);
        words.data(&rod(1), false);
    });
    drop(link);
    let came = bench.until(|came| came.contains(&Came::Down(Lost::Closed)));
    assert!(came.iter().any(|came| matches!(came, Came::Lost(Losses { malformed: 1, .. }))), "{came:?}");
    assert!(came.iter().any(|came| matches!(came, Came::Fragment(_))), "{came:?}");
    let mut link = Link::connect(&mut bench);
    assert_eq!(link.hear(), XON, "the run goes on");
    link.send(|words| block(words, 2, 0));
    assert_eq!(bench.came(|came| came.fragments.len() == 1).numbers(), [2]);
}

#[test]
fn what_is_no_link_is_named_and_a_second_one_turned_away() {
    let mut bench = bench();
    let mut stranger = TcpStream::connect(place(&bench)).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    bench.poll();
    let mut link = Link::connect(&mut bench);
    assert_eq!(link.hear(), XOFF, "whoever has not greeted makes room");
    let second = TcpStream::connect(place(&bench)).unwrap();
    let came = bench.until(|came| matches!(came.last(), Some(Came::TurnedAway(_))));
    assert!(format!("{came:?}").contains("a link is connected already"), "{came:?}");
    drop(second);
    start(&mut bench, &mut link, 1);
    link.stream.write_all(&(1_u32 << 20 | 1).to_le_bytes()).unwrap();
    let found = NoLink::Group { found: 1 << 20 | 1 };
    bench.until(|came| came.contains(&Came::Down(Lost::Violated(Violation::Words(found)))));
}

/// As it is on the wire; a change of it is another version.
#[test]
fn the_words_of_a_fragment() {
    let mut words = Words::default();
    words.control(BEGIN, 0);
    words.data(&[1, 2, 3, 4, 5, 6, 7, 8], false);
    words.data(&[9, 10, 11, 12], true);
    words.control(END, DATA_ERROR | CONTROL_ERROR);
    let expected = [
        &[0x01, 0x00, 0x01, 0x00, 0x00, 0x00, 0xf0, 0xb0][..],
        &[0x02, 0x00, 0x00, 0x00, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0x01, 0x00, 0x02, 0x00, 9, 10, 11, 12],
        &[0x01, 0x00, 0x01, 0x00, 0x03, 0x00, 0xf0, 0xe0],
    ];
    assert_eq!(words.bytes, expected.concat());
    assert_eq!((&GREETING, XOFF, XON), (b"S-LINK\0\x01", 0x13, 0x11));
}

fn marks(fragment: &Fragment) -> (u64, bool, Faults) {
    let has_error = fragment.head.flags.contains(Flags::TRANSMISSION_ERROR);
    (fragment.head.number.unwrap(), has_error, fragment.faults)
}

/// A front end.
struct Link {
    stream: TcpStream,
}

impl Link {
    fn connect(bench: &mut Bench) -> Self {
        let mut stream = TcpStream::connect(place(bench)).unwrap();
        stream.write_all(&GREETING).unwrap();
        bench.until(|came| matches!(came.last(), Some(Came::Up(_))));
        Self { stream }
    }

    fn send(&mut self, add: impl FnOnce(&mut Words)) {
        let mut words = Words::default();
        add(&mut words);
        self.stream.write_all(&words.bytes).unwrap();
    }

    /// What it is told next.
    fn hear(&mut self) -> u8 {
        let mut said = [0];
        self.stream.read_exact(&mut said).unwrap();
        said[0]
    }
}

fn bench() -> Bench {
    let field = Field { at: 20, width: 4, order: ByteOrder::Little };
    let counter = Some(Counter { field, modulus: None });
    let format = FrameFormat { header: 36, strip: false, extent: Extent::Whole, counter, time: Vec::new() };
    Bench::of_device("slink://127.0.0.1:0", format)
}

fn connected() -> (Bench, Link) {
    let mut bench = bench();
    let mut link = Link::connect(&mut bench);
    assert_eq!(link.hear(), XOFF);
    (bench, link)
}

fn start(bench: &mut Bench, link: &mut Link, run: u32) {
    bench.intake.order(LinkOrder::Start { run });
    assert_eq!(link.hear(), XON);
}

fn place(bench: &Bench) -> String {
    bench.at().strip_prefix("slink://").unwrap().to_owned()
}

fn block(words: &mut Words, number: u32, errors: u32) {
    words.control(BEGIN, 0);
    words.data(&rod(number), false);
    words.control(END, errors);
}

/// A header of nine words with the level-1 id in the sixth, and data.
fn rod(number: u32) -> Vec<u8> {
    let words = [0xee12_34ee, 9, 0x0301_0000, 0x51_0000, 1, number, 0, 0, 0];
    words.into_iter().chain((0..number % 7).map(|word| word * 31)).flat_map(u32::to_le_bytes).collect()
}

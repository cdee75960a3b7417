//! An emulated S-LINK: a front end that sends ROD fragments between control words, and obeys XOFF.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use eformat::{ROB_HEADER_WORDS, ROB_PREFIX_BYTES, ROB_SUFFIX_BYTES, RobParams, RodHeader, SourceId, WORD_BYTES};
use link::slink::{BEGIN, CONTROL_ERROR, DATA_ERROR, END, GREETING, Words, XOFF, XON};
use rol::detector::Detector;
use terminal::{Exit, complain};
use transport::clock;
use weir_source::{Flags, Reading, Source};

use super::FeedArgs;

/// Sends all that the feed has, as long as the destination takes it; then waits for it to end the link.
pub(super) fn feed(place: &str, name: &str, args: &FeedArgs, mut detector: Detector) -> Exit {
    let mut stream = match connect(place, args.patience.duration()) {
        Ok(stream) => stream,
        Err(error) => {
            complain(&format!(
                "weir: slink://{place}: no partition: {error}; start the partition, or check the address"
            ));
            return Exit::NotStarted;
        }
    };
    match send_all(&mut stream, args, &mut detector) {
        Ok(sent) => {
            complain(&format!("{name}: {sent} blocks"));
            Exit::Well
        }
        Err(error) => {
            complain(&format!("weir: slink://{place}: {error}"));
            Exit::Aborted
        }
    }
}

fn connect(place: &str, patience: Duration) -> io::Result<TcpStream> {
    let until = clock::now() + patience;
    loop {
        match TcpStream::connect(place) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused && clock::now() < until => pause(),
            connected => return connected,
        }
    }
}

fn send_all(stream: &mut TcpStream, args: &FeedArgs, detector: &mut Detector) -> io::Result<u64> {
    stream.set_nodelay(true)?;
    stream.write_all(&GREETING)?;
    let failed = |failure: weir_source::Failure| io::Error::other(failure.to_string());
    let (mut destination, mut sent) = (Destination { is_off: true, is_gone: false }, 0);
    let (mut words, mut page) = (Words::default(), vec![0; PAGE_BYTES]);
    destination.hear(stream, true)?;
    detector.start(0).map_err(failed)?;
    loop {
        destination.hear(stream, destination.is_off)?;
        if destination.is_gone {
            break;
        }
        let room = PAGE_BYTES - ROB_PREFIX_BYTES - ROB_SUFFIX_BYTES - WORD_BYTES;
        match detector.read(&mut page[ROB_PREFIX_BYTES..ROB_PREFIX_BYTES + room]).map_err(failed)? {
            Reading::Committed(head, len) => {
                let number = head.number.unwrap_or_default();
                let has_error = head.flags.contains(Flags::TRANSMISSION_ERROR);
                add_block(&mut words, args, number, rod(&mut page, number, len), has_error);
                sent += 1;
            }
            Reading::End => {
                stream.write_all(&words.bytes)?;
                words.bytes.clear();
                detector.stop().map_err(failed)?;
                destination.hear_to_the_end(stream)?;
                break;
            }
            _ => pause(),
        }
        // Few blocks at a time, so that XOFF comes through; those of a slow device at once.
        if words.bytes.len() >= TOGETHER_BYTES || args.rate.is_some() {
            match stream.write_all(&words.bytes) {
                Err(error) if is_end(&error) => break,
                written => written?,
            }
            words.bytes.clear();
        }
    }
    Ok(sent)
}

/// A whole ROD fragment around the data that are in the page. What fills them up to whole words is zero.
fn rod(page: &mut [u8], number: u64, len: usize) -> &[u8] {
    let data_bytes = len.next_multiple_of(WORD_BYTES);
    page[ROB_PREFIX_BYTES + len..ROB_PREFIX_BYTES + data_bytes].fill(0);
    let rod = RodHeader { source_id: SourceId(SOURCE_ID), lvl1_id: number as u32, ..RodHeader::default() };
    let params = RobParams { rod, ..RobParams::default() };
    let end = params.rob_bytes(data_bytes);
    eformat::write_rob_fragment(&mut page[..end], &params, data_bytes);
    &page[ROB_HEADER_WORDS * WORD_BYTES..end]
}

/// With the errors that are asked for.
fn add_block(words: &mut Words, args: &FeedArgs, number: u64, rod: &[u8], has_data_error: bool) {
    let has = |numbers: &[u64]| numbers.contains(&number);
    let data_error = if has_data_error { DATA_ERROR } else { 0 };
    let control_error = if has(&args.misbehaviour.control_error) { CONTROL_ERROR } else { 0 };
    if !has(&args.misbehaviour.no_begin) {
        words.control(BEGIN, 0);
    }
    words.data(rod, false);
    if !has(&args.misbehaviour.no_end) {
        words.control(END, data_error | control_error);
    }
}

/// What the destination of the link has said last.
struct Destination {
    is_off: bool,
    is_gone: bool,
}

impl Destination {
    /// Hears what it says; with `waits` until it wants words.
    fn hear(&mut self, stream: &mut TcpStream, waits: bool) -> io::Result<()> {
        stream.set_nonblocking(!waits)?;
        loop {
            let mut said = [0; 64];
            match stream.read(&mut said) {
                Ok(0) => self.is_gone = true,
                Ok(len) => self.obey(&said[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if is_end(&error) => self.is_gone = true,
                Err(error) => return Err(error),
            }
            if self.is_gone || (waits && !self.is_off) {
                break;
            }
        }
        stream.set_nonblocking(false)
    }

    fn hear_to_the_end(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        while !self.is_gone {
            self.is_off = true;
            self.hear(stream, true)?;
        }
        Ok(())
    }

    fn obey(&mut self, said: &[u8]) {
        for byte in said {
            match *byte {
                XOFF => self.is_off = true,
                XON => self.is_off = false,
                _ => {}
            }
        }
    }
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

#[expect(clippy::disallowed_methods, reason = "the time itself is what is waited for")]
fn pause() {
    thread::sleep(BETWEEN_LOOKS);
}

const PAGE_BYTES: usize = 1 << 20;
const TOGETHER_BYTES: usize = 16 << 10;
const BETWEEN_LOOKS: Duration = Duration::from_micros(100);
/// Of the ROD: test beam. The configuration gives the ROB its own.
const SOURCE_ID: u32 = 0x0051_0000;

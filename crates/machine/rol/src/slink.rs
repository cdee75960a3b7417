//! An emulated S-LINK: a front end that sends ROD fragments between control words, and obeys XOFF.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use eformat::{ROB_HEADER_WORDS, ROB_PREFIX_BYTES, ROB_SUFFIX_BYTES, RobParams, RodHeader, SourceId, WORD_BYTES};
use link::slink::{BEGIN, CONTROL_ERROR, DATA_ERROR, END, GREETING, Words, XOFF, XON};
use transport::clock;
use transport::error::OsError;
use weir_source::{Flags, Function, LinkError, Reading, Source, SourceError};

use crate::detector::Detector;

/// The front end of a link.
#[derive(Clone, Debug)]
pub struct FrontEnd {
    /// In messages.
    pub name: String,
    /// Source identifier of the ROD.
    pub source_id: u32,
    /// Of the longest ROD fragment, in bytes.
    pub size_max: usize,
    /// For so long it looks for the destination.
    pub patience: Duration,
    /// What goes wrong with control words.
    pub mistakes: ControlMistakes,
}

/// What goes wrong with control words, by events.
#[derive(Clone, Debug, Default)]
pub struct ControlMistakes {
    /// A transmission error in one.
    pub control_error: BTreeSet<u64>,
    /// None before the fragment.
    pub no_begin: BTreeSet<u64>,
    /// None behind it.
    pub no_end: BTreeSet<u64>,
}

/// What a front end has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// ROD fragments.
    pub sent: u64,
    /// How often XOFF has come.
    pub offs: u64,
}

impl FrontEnd {
    /// Sends all that the detector has to the destination at `place`, as long as that takes it. Then it waits until the destination ends the
    /// link.
    ///
    /// # Errors
    /// Nobody listens there, the link breaks, or the detector fails.
    pub fn send(&self, place: &str, detector: &mut Detector) -> Result<Blocks, SourceError> {
        let mut stream = self.connect(place)?;
        self.send_all(&mut stream, detector)
    }

    fn connect(&self, place: &str) -> Result<TcpStream, SourceError> {
        let until = clock::now() + self.patience;
        loop {
            match TcpStream::connect(place) {
                Err(error) if error.kind() == ErrorKind::ConnectionRefused && clock::now() < until => pause(),
                Ok(stream) => return Ok(stream),
                Err(error) => {
                    let (at, last) = (format!("slink://{place}"), error.to_string());
                    return Err(LinkError::NoPartition { at, patience: self.patience, last }.into());
                }
            }
        }
    }

    fn send_all(&self, stream: &mut TcpStream, detector: &mut Detector) -> Result<Blocks, SourceError> {
        let failed = |function| move |failure| SourceError::Failed { name: self.name.clone(), function, failure };
        let mut link = Link { stream, words: Words::default(), is_off: true, is_gone: false, offs: 0 };
        link.greet().map_err(broken)?;
        let room = self.size_max.saturating_sub(ROD_BYTES) / WORD_BYTES * WORD_BYTES;
        let (mut sent, mut page) = (0, vec![0; ROB_PREFIX_BYTES + room + ROB_SUFFIX_BYTES]);
        link.hear(true).map_err(broken)?;
        detector.start(0).map_err(failed(Function::Start))?;
        loop {
            link.hear(link.is_off).map_err(broken)?;
            if link.is_gone {
                return Ok(Blocks { sent, offs: link.offs });
            }
            let slot = &mut page[ROB_PREFIX_BYTES..ROB_PREFIX_BYTES + room];
            let is_there = match detector.read(slot).map_err(failed(Function::Read))? {
                Reading::Committed(head, len) => {
                    let number = head.number.unwrap_or_default();
                    let has_error = head.flags.contains(Flags::TRANSMISSION_ERROR);
                    self.add_block(&mut link.words, number, self.rod(&mut page, number, len), has_error);
                    sent += 1;
                    true
                }
                Reading::End => {
                    link.write().map_err(broken)?;
                    detector.stop().map_err(failed(Function::Stop))?;
                    link.hear_to_the_end().map_err(broken)?;
                    return Ok(Blocks { sent, offs: link.offs });
                }
                _ => false,
            };
            // Few blocks at a time, so that XOFF comes through; those of a slow device at once.
            if !is_there || link.words.bytes.len() >= TOGETHER_BYTES {
                link.write().map_err(broken)?;
            }
            if !is_there {
                pause();
            }
        }
    }

    /// A whole ROD fragment around the data that are in the page. What fills them up to whole words is zero.
    fn rod<'a>(&self, page: &'a mut [u8], number: u64, len: usize) -> &'a [u8] {
        let data_bytes = len.next_multiple_of(WORD_BYTES);
        page[ROB_PREFIX_BYTES + len..ROB_PREFIX_BYTES + data_bytes].fill(0);
        let rod = RodHeader { source_id: SourceId(self.source_id), lvl1_id: number as u32, ..RodHeader::default() };
        let params = RobParams { rod, ..RobParams::default() };
        let end = params.rob_bytes(data_bytes);
        eformat::write_rob_fragment(&mut page[..end], &params, data_bytes);
        &page[ROB_HEADER_WORDS * WORD_BYTES..end]
    }

    /// With the errors that are asked for.
    fn add_block(&self, words: &mut Words, number: u64, rod: &[u8], has_data_error: bool) {
        let ControlMistakes { control_error, no_begin, no_end } = &self.mistakes;
        let data_error = if has_data_error { DATA_ERROR } else { 0 };
        let control_error = if control_error.contains(&number) { CONTROL_ERROR } else { 0 };
        if !no_begin.contains(&number) {
            words.control(BEGIN, 0);
        }
        words.data(rod, false);
        if !no_end.contains(&number) {
            words.control(END, data_error | control_error);
        }
    }
}

/// Where an S-LINK on this host connects to that listens at such an address.
pub fn from_here(listens_at: &str) -> Option<SocketAddr> {
    let mut at: SocketAddr = listens_at.parse().ok()?;
    match at.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => at.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => at.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    Some(at)
}

/// The connection, what is to go out, and what the destination has said last.
struct Link<'a> {
    stream: &'a mut TcpStream,
    words: Words,
    is_off: bool,
    is_gone: bool,
    offs: u64,
}

impl Link<'_> {
    fn greet(&mut self) -> io::Result<()> {
        self.stream.set_nodelay(true)?;
        self.stream.write_all(&GREETING)
    }

    fn write(&mut self) -> io::Result<()> {
        match self.stream.write_all(&self.words.bytes) {
            Err(error) if is_end(&error) => self.is_gone = true,
            written => written?,
        }
        self.words.bytes.clear();
        Ok(())
    }

    /// Hears what it says; with `waits` until it wants words.
    fn hear(&mut self, waits: bool) -> io::Result<()> {
        self.stream.set_nonblocking(!waits)?;
        loop {
            let mut said = [0; 64];
            match self.stream.read(&mut said) {
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
        self.stream.set_nonblocking(false)
    }

    fn hear_to_the_end(&mut self) -> io::Result<()> {
        while !self.is_gone {
            self.is_off = true;
            self.hear(true)?;
        }
        Ok(())
    }

    fn obey(&mut self, said: &[u8]) {
        for byte in said {
            match *byte {
                XOFF => {
                    self.offs += u64::from(!self.is_off);
                    self.is_off = true;
                }
                XON => self.is_off = false,
                _ => {}
            }
        }
    }
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

fn broken(error: io::Error) -> SourceError {
    match error.raw_os_error() {
        Some(code) => LinkError::System(OsError { call: "send", code }).into(),
        None => SourceError::System(error),
    }
}

#[expect(clippy::disallowed_methods, reason = "the time itself is what is waited for")]
fn pause() {
    thread::sleep(BETWEEN_LOOKS);
}

/// Of a ROD fragment around its data.
const ROD_BYTES: usize = ROB_PREFIX_BYTES - ROB_HEADER_WORDS * WORD_BYTES + ROB_SUFFIX_BYTES;
const TOGETHER_BYTES: usize = 16 << 10;
const BETWEEN_LOOKS: Duration = Duration::from_micros(100);

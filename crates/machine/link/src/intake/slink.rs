//! An S-LINK: words of a link that knows nothing of Weir, over TCP.

use std::net::{IpAddr, SocketAddr};

use base::losses::Losses;
use base::time::Time;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};
use transport::error::OsError;
use transport::poller::{Poller, Readiness};

use super::device::{Carrier, Desk};
use super::doorway::Doorway;
use super::{Arrival, IntakeParameters};
use crate::error::LinkError;
use crate::frame::Marks;
use crate::slink::{Block, Blocks, XOFF, XON};
use crate::socket::{Lost, read, watch_over, write};

/// The destination of a link.
pub(super) struct Slink {
    doorway: Doorway,
    /// Who may connect, if the configuration says so.
    from: Option<IpAddr>,
    len_max: usize,
    line: Option<Line>,
    /// The link is down; what came before is still taken.
    lost: Lost,
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    found: Option<Block>,
    may_send: bool,
    outside: u64,
}

/// A connection.
struct Line {
    socket: OwnedFd,
    readiness: Readiness,
    blocks: Blocks,
    /// While it may send nothing, something has come that is not read.
    has_unread: bool,
}

impl Slink {
    /// Waits for the link.
    pub(super) fn open(parameters: &IntakeParameters) -> Result<Self, LinkError> {
        let format = parameters.frames.as_ref();
        let len_max = format.map_or(parameters.size_max, |format| format.len_max(parameters.size_max));
        Ok(Self {
            doorway: Doorway::open(&parameters.at)?,
            from: parameters.from,
            len_max,
            line: None,
            lost: Lost::Closed,
            bytes: vec![0; READ_BYTES].into(),
            start: 0,
            end: 0,
            found: None,
            may_send: false,
            outside: 0,
        })
    }

    fn has_greeted(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.blocks.has_greeted())
    }

    fn let_in(&mut self, desk: &mut Desk, poller: &mut Poller) {
        while let Some(socket) = self.doorway.accept() {
            let peer = rustix::net::getpeername(&socket).ok().flatten();
            let visitor = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
            let who = visitor.map_or("somebody".to_owned(), |visitor| visitor.to_string());
            if let Some(from) = self.from.filter(|from| visitor.is_none_or(|visitor| visitor.ip() != *from)) {
                desk.notices.push(Arrival::TurnedAway { why: format!("{who} is not {from}, whose link is taken") });
                continue;
            }
            if self.has_greeted() {
                desk.notices
                    .push(Arrival::TurnedAway { why: format!("{who}: a link is connected already; end it first") });
                continue;
            }
            let registered = watch_over(&socket).and_then(|()| poller.register(&socket));
            if let Ok(readiness) = registered {
                // Whoever has not greeted by now makes room.
                (self.start, self.end) = (0, 0);
                self.line = Some(Line { socket, readiness, blocks: Blocks::new(self.len_max), has_unread: false });
            }
        }
    }

    /// What a link may not have sent is looked at only to see whether it is there.
    fn look(&mut self) -> Result<(), Lost> {
        let Some(line) = self.line.as_mut().filter(|line| line.readiness.is_readable()) else { return Ok(()) };
        line.readiness.clear_readable();
        match recv(&line.socket, &mut [0; 1][..], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
            Ok((0, _)) => Err(Lost::Closed),
            Ok(_) => {
                line.has_unread = true;
                Ok(())
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(errno) => Err(Lost::System(OsError::new("recv", errno))),
        }
    }

    fn hear_again(&mut self) {
        if let Some(line) = &mut self.line
            && core::mem::take(&mut line.has_unread)
        {
            line.readiness.set_readable();
        }
    }

    /// Words, or none: as the run and its buffers allow.
    fn tell(&self) {
        if let Some(line) = self.line.as_ref().filter(|line| line.blocks.has_greeted()) {
            // One byte always fits a link that reads what it is told; one that does not is held up by its socket.
            let _ = write(&line.socket, &[if self.may_send { XON } else { XOFF }]);
        }
    }

    /// Reads more. False if nothing has come.
    fn read(&mut self) -> Result<bool, Lost> {
        let Some(line) = self.line.as_mut().filter(|line| line.readiness.is_readable()) else { return Ok(false) };
        line.readiness.clear_readable();
        let had_greeted = line.blocks.has_greeted();
        let Some(len) = read(&line.socket, &mut self.bytes)? else { return Ok(false) };
        line.readiness.set_readable();
        (self.start, self.end) = (0, len);
        self.part()?;
        if !had_greeted && self.has_greeted() {
            self.tell();
        }
        Ok(true)
    }

    /// Goes on to the end of the next block.
    fn part(&mut self) -> Result<(), Lost> {
        let Some(line) = &mut self.line else { return Ok(()) };
        let mut rest = &self.bytes[self.start..self.end];
        self.found = line.blocks.next(&mut rest).map_err(|error| Lost::Violated(error.into()))?;
        self.start = self.end - rest.len();
        Ok(())
    }

    fn lose(&mut self, lost: Lost, desk: &mut Desk) {
        self.lost = lost;
        (self.start, self.end) = (0, 0);
        if self.line.take().is_some_and(|mut line| line.blocks.skip()) {
            desk.numbering.note_malformed();
            desk.complain(|| "the link went down in a block, which is left out".to_owned());
        }
    }
}

impl Carrier for Slink {
    fn waits(&self) -> bool {
        true
    }

    fn address(&self) -> &str {
        self.doorway.address()
    }

    fn register(&mut self, poller: &mut Poller) -> Result<(), OsError> {
        self.doorway.register(poller)
    }

    /// What was on its way when the last run ended belongs to none.
    fn start(&mut self) -> Result<(), Lost> {
        self.outside = 0;
        self.hear_again();
        for _ in 0..READS_AT_START {
            self.outside += u64::from(self.found.take().is_some());
            if self.start < self.end {
                self.part()?;
            } else if !self.read()? {
                break;
            }
        }
        self.line.iter_mut().for_each(|line| self.outside += u64::from(line.blocks.skip()));
        Ok(())
    }

    fn has_some(&self, _: &Desk) -> bool {
        self.found.is_some()
    }

    fn is_readable(&self) -> bool {
        self.start < self.end || self.line.as_ref().is_some_and(|line| line.readiness.is_readable())
    }

    fn fill(&mut self, desk: &mut Desk, _: &mut Poller) -> Result<bool, Lost> {
        let filled = if self.start < self.end { self.part().map(|()| true) } else { self.read() };
        Ok(filled.unwrap_or_else(|lost| {
            self.lose(lost, desk);
            true
        }))
    }

    fn take(&mut self, now: Time, desk: &mut Desk) {
        let Some(Block { bytes, flags, faults }) = self.found.take() else { return };
        if let Some(why) = desk.take_marked(now, &bytes, Marks { flags, faults }) {
            desk.complain(|| format!("a block is not as [source.frame] says: {why}"));
        }
    }

    fn leave(&mut self) -> u64 {
        0
    }

    fn is_at_end(&self) -> bool {
        false
    }

    fn lost_in_run(&self) -> Losses {
        Losses { outside: self.outside, ..Losses::default() }
    }

    fn keeps_order(&self) -> bool {
        true
    }

    fn presence(&self) -> Result<(), Lost> {
        let is_there = self.has_greeted() || self.found.is_some();
        if is_there { Ok(()) } else { Err(self.lost) }
    }

    fn has_visitor(&self) -> bool {
        let is_heard = |line: &Line| !line.blocks.has_greeted() || (!self.may_send && !line.has_unread);
        self.doorway.is_acceptable()
            || self.line.as_ref().is_some_and(|line| line.readiness.is_readable() && is_heard(line))
    }

    fn visit(&mut self, desk: &mut Desk, poller: &mut Poller) {
        self.let_in(desk, poller);
        let met = match (self.has_greeted(), self.may_send) {
            (false, _) => self.read().map(drop),
            (true, false) => self.look(),
            (true, true) => Ok(()),
        };
        if let Err(lost) = met {
            self.lose(lost, desk);
        }
    }

    fn permit(&mut self, may_send: bool) {
        self.may_send = may_send;
        if may_send {
            self.hear_again();
        }
        self.tell();
    }
}

const READ_BYTES: usize = 256 << 10;
/// What fits the sockets of both ends.
const READS_AT_START: usize = 4096;

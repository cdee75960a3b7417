//! The source's end of a link.

mod carrier;
mod connecting;
mod control;
mod opening;
mod shared;
mod stream;

use std::collections::VecDeque;
use std::time::Duration;

use rustix::fd::{AsFd, BorrowedFd};
use transport::clock;

use crate::error::LinkError;
use crate::kind::Kind;
use crate::proof::Secret;
use crate::record::{Flags, Head, NAME_BYTES_MAX, RecordHead, TEXT_BYTES_MAX};
use crate::socket::shut_down;
use carrier::Carrier;
use control::Told;
use shared::Shared;
use stream::Stream;

/// What a source says of itself.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its name, the one that the configuration of the partition has.
    pub name: String,
    /// Its source identifier, if it knows it.
    pub id: Option<u32>,
    /// What both ends prove; needed over TCP.
    pub key: Option<Secret>,
    /// How long to wait for a partition.
    pub patience: Duration,
}

/// What a source is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A run begins: fragments from now on are of this run.
    Start {
        /// Its number.
        run: u32,
    },
    /// No more triggers. The source sends what it has, then [`Sender::end`].
    Stop,
    /// Nothing, or there may be room again.
    Nothing,
    /// The partition has ended the link.
    Closed,
}

/// The source's end of a link. One thread uses it.
///
/// 1. [`open`](Self::open), then [`wait`](Self::wait) for the start of a run.
/// 2. For each fragment: [`reserve`](Self::reserve), write, [`commit`](Self::commit).
/// 3. [`flush`](Self::flush) or [`wait`](Self::wait) when there is nothing more to send for now.
/// 4. After [`Order::Stop`]: [`end`](Self::end), then wait for the next run, or [`close`](Self::close).
pub struct Sender {
    at: String,
    carrier: Carrier,
    told: Told,
    run: u32,
    is_running: bool,
    /// Whether the run is to end, and has not been ended.
    is_stopping: bool,
    sequence: u64,
    size_max: usize,
    reserved: Option<usize>,
    /// What could not be said yet, one of each kind at most: a later one says all that an earlier one would.
    late: VecDeque<(RecordHead, Vec<u8>)>,
    /// The length that there was no room for.
    wanted: Option<usize>,
    /// Whether it has asked for orders: then it is configured.
    has_waited: bool,
    is_closed: bool,
}

/// What the other end said, in order.
type Orders = VecDeque<Order>;

impl Sender {
    /// Connects to a partition: `shm:NAME`, `shm:PARTITION/NAME`, `shm:/PATH` or `tcp://HOST:PORT`. Waits for it.
    ///
    /// # Errors
    /// What is no address; nobody there in time; a refusal; an end that does not know the key.
    pub fn open(at: &str, settings: &Settings) -> Result<Self, LinkError> {
        check_text("name", &settings.name, NAME_BYTES_MAX)?;
        let (opened, inbox) = opening::open(at, settings)?;
        let (run, size_max) = (opened.welcome.run, opened.welcome.size_max as usize);
        let told = Told::new(inbox);
        let carrier = match opened.welcome.memory {
            Some(_) => Carrier::Shared(Shared::new(opened)?),
            None => Carrier::Stream(Stream::new(opened.socket, size_max)),
        };
        Ok(Self {
            at: at.to_owned(),
            carrier,
            told,
            run,
            is_running: false,
            is_stopping: false,
            sequence: 0,
            size_max,
            reserved: None,
            late: VecDeque::new(),
            wanted: None,
            has_waited: false,
            is_closed: false,
        })
    }

    /// Flushes, then waits for an order, or until there may be room again for what was last refused, or for so long. The start of the
    /// next run waits for the [`end`](Self::end) of this one.
    ///
    /// # Errors
    /// A partition that does not keep to the protocol.
    pub fn wait(&mut self, timeout: Duration) -> Result<Order, LinkError> {
        let until = clock::now() + timeout;
        if !std::mem::replace(&mut self.has_waited, true) {
            self.say_soon(&RecordHead::plain(Kind::Here, 0), &[]);
        }
        loop {
            self.exchange(true)?;
            if let Some(order) = self.told.next_order(self.is_stopping) {
                return Ok(self.obey(order));
            }
            if self.is_closed {
                return Ok(Order::Closed);
            }
            if self.has_room_again() {
                self.wanted = None;
                return Ok(Order::Nothing);
            }
            let left = until.since(clock::now());
            if left.is_zero() {
                return Ok(Order::Nothing);
            }
            // What XOFF or something late hinders, room alone does not help.
            let wants_room = self.wanted.is_some() && !self.told.is_off() && self.late.is_empty();
            self.carrier.sleep(wants_room, !self.late.is_empty(), left)?;
        }
    }

    /// Room for a payload of `len` bytes, to be written and [committed](Self::commit). `None`: not now, since there is no run, the
    /// read-out system is busy (XOFF), or no page or buffer is free. Try again, and count it as dead time.
    ///
    /// # Errors
    /// A payload longer than [`size_max`](Self::size_max); a link that has ended.
    pub fn reserve(&mut self, len: usize) -> Result<Option<&mut [u8]>, LinkError> {
        if len > self.size_max {
            return Err(LinkError::TooLong { len, size_max: self.size_max });
        }
        self.reserved = None;
        self.check_open()?;
        if !self.is_running {
            return Ok(None);
        }
        if self.carrier.shows_news() {
            self.exchange(true)?;
            self.check_open()?;
        }
        if !self.can_take(len) {
            self.wanted = Some(len);
            self.exchange(true)?;
            self.check_open()?;
            if !self.can_take(len) {
                return Ok(None);
            }
        }
        (self.wanted, self.reserved) = (None, Some(len));
        Ok(Some(self.carrier.payload(len)))
    }

    /// Sends what was reserved last, or its first `len` bytes. It may travel with the next ones: see [`flush`](Self::flush).
    ///
    /// # Errors
    /// More than was reserved; a link that has ended.
    pub fn commit(&mut self, head: &Head, len: usize) -> Result<(), LinkError> {
        let reserved = self.reserved.take();
        let Some(_) = reserved.filter(|reserved| len <= *reserved) else {
            return Err(LinkError::NotReserved { len, reserved: reserved.unwrap_or_default() });
        };
        let payload = &self.carrier.payload(len)[..len];
        let head = RecordHead::of_fragment(head, len as u32, self.sequence, self.run, || crc32c::crc32c(payload));
        self.sequence += 1;
        self.carrier.commit(&head);
        self.told.sends();
        // The other end waits for it, and says nothing before.
        if self.told.is_off() || self.carrier.is_well_filled() { self.exchange(false) } else { Ok(()) }
    }

    /// Says that nothing with a lower number or an earlier time (ns) follows.
    ///
    /// # Errors
    /// A link that has ended.
    pub fn idle(&mut self, number: u64, time: u64) -> Result<(), LinkError> {
        let flags = Flags::NUMBER | Flags::TIME;
        let head = RecordHead { number, begin: time, flags, ..RecordHead::plain(Kind::Idle, 0) };
        self.say(&head, &[])
    }

    /// Says something for people.
    ///
    /// # Errors
    /// A text longer than [`TEXT_BYTES_MAX`]; a link that has ended.
    pub fn report(&mut self, text: &str) -> Result<(), LinkError> {
        check_text("a status", text, TEXT_BYTES_MAX)?;
        self.say(&RecordHead::plain(Kind::Status, text.len() as u32), text.as_bytes())
    }

    /// Ends the run: says how many fragments were sent. [`reserve`](Self::reserve) gives nothing until the next start.
    ///
    /// # Errors
    /// A link that has ended.
    pub fn end(&mut self) -> Result<(), LinkError> {
        (self.is_running, self.is_stopping) = (false, false);
        self.say(&RecordHead { sequence: self.sequence, ..RecordHead::plain(Kind::End, 0) }, &[])?;
        self.exchange(false)
    }

    /// Sends what has been committed, as far as the connection takes it now.
    ///
    /// # Errors
    /// A link that has ended.
    pub fn flush(&mut self) -> Result<(), LinkError> {
        self.exchange(false)?;
        self.check_open()
    }

    /// Ends the link: sends what is left, and waits until the other end has taken all and closed. Whether it has in time. A sender that
    /// is only dropped may leave fragments behind that are still on their way.
    ///
    /// # Errors
    /// A partition that does not keep to the protocol.
    pub fn close(mut self, patience: Duration) -> Result<bool, LinkError> {
        let until = clock::now() + patience;
        let mut has_shut_down = false;
        loop {
            self.exchange(true)?;
            if self.is_closed {
                return Ok(has_shut_down);
            }
            if self.is_flushed() && !has_shut_down {
                has_shut_down = shut_down(self.carrier.socket());
            }
            let left = until.since(clock::now());
            if left.is_zero() {
                return Ok(false);
            }
            self.carrier.sleep(false, !self.late.is_empty(), left)?;
        }
    }

    /// The longest payload in bytes.
    pub fn size_max(&self) -> usize {
        self.size_max
    }

    /// Fragments committed on this connection in this run.
    pub fn sent(&self) -> u64 {
        self.sequence
    }

    /// Whether an order was read that [`wait`](Self::wait) has not given yet.
    pub fn has_order(&self) -> bool {
        self.told.has_order()
    }

    fn say(&mut self, head: &RecordHead, body: &[u8]) -> Result<(), LinkError> {
        self.reserved = None;
        self.check_open()?;
        self.say_soon(head, body);
        self.say_what_is_late();
        Ok(())
    }

    fn say_soon(&mut self, head: &RecordHead, body: &[u8]) {
        self.late.retain(|(late, _)| late.kind != head.kind);
        self.late.push_back((RecordHead { run: self.run, ..*head }, body.to_vec()));
    }

    fn check_open(&self) -> Result<(), LinkError> {
        match self.told.refusal() {
            _ if !self.is_closed => Ok(()),
            Some(why) => Err(LinkError::Refused { at: self.at.clone(), why: why.to_owned() }),
            None => Err(LinkError::Closed),
        }
    }

    fn obey(&mut self, order: Order) -> Order {
        match order {
            Order::Start { run } => {
                if run != self.run {
                    (self.run, self.sequence) = (run, 0);
                }
                self.is_running = true;
            }
            Order::Stop => self.is_stopping = self.is_running,
            Order::Nothing | Order::Closed => {}
        }
        order
    }

    /// Whether all that was committed and said has been handed over.
    pub fn is_flushed(&self) -> bool {
        self.late.is_empty() && self.carrier.is_flushed()
    }

    /// Writes what is there to be written, and reads what was said: where that costs a system call for nothing, only if it `must`.
    fn exchange(&mut self, must_read: bool) -> Result<(), LinkError> {
        self.say_what_is_late();
        let mut exchanged = self.carrier.flush();
        // What the other end said before it closed tells why.
        if exchanged.is_err() || self.carrier.has_news() || must_read {
            let read = self.told.read(self.carrier.socket());
            exchanged = exchanged.and(read);
        }
        if self.told.was_asked() {
            self.say_soon(&RecordHead::plain(Kind::Here, 0), &[]);
        }
        let Err(lost) = exchanged else { return Ok(()) };
        self.is_closed = true;
        match lost.into() {
            LinkError::Closed => Ok(()),
            error => Err(error),
        }
    }

    /// Not over what is being written.
    fn say_what_is_late(&mut self) {
        if self.reserved.is_some() {
            return;
        }
        while let Some((head, body)) = self.late.front() {
            if !self.carrier.try_say(head, body) {
                return;
            }
            self.late.pop_front();
        }
    }

    /// Nothing overtakes what is late.
    #[inline]
    fn can_take(&mut self, len: usize) -> bool {
        !self.told.is_off() && self.late.is_empty() && self.carrier.has_room(len)
    }

    fn has_room_again(&mut self) -> bool {
        self.wanted.is_some_and(|len| self.can_take(len))
    }
}

/// Readable while an order waits to be read: for a watch over a source that blocks. Not to be read from.
impl AsFd for Sender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.carrier.socket().as_fd()
    }
}

fn check_text(what: &'static str, text: &str, len_max: usize) -> Result<(), LinkError> {
    let fits = (1..=len_max).contains(&text.len());
    if fits { Ok(()) } else { Err(LinkError::Text { what, len: text.len(), len_max }) }
}

//! The links of the system, each end driven by a scheduler as in a run.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use base::bulk::{Bulk, PageSlice};
use base::time::Time;
use transport::clock;
use transport::frame::FrameLimits;
use transport::idle::IdleStrategy;
use transport::link::{Flushed, Link, SendError};
use transport::local::{LocalLink, LocalOptions};
use transport::page_pool::{Pool, PoolOptions};
use transport::scheduler::{Context, Scheduler, Task};
use transport::shm::{Process, ShmLink, ShmListener, ShmOptions};
use transport::tcp::{Connection, Listener, TcpOptions};
use transport::udp::{DATAGRAM_LEN_LOOPBACK, Endpoint, UdpOptions};

use super::talk::{HEAD_BYTES, Talk, head, read_head};
use super::udp_link::UdpLink;
use super::{LinkArguments, Session, listen_line, say_line};
use crate::bench::PATIENCE;
use crate::bench::arguments::BenchLink;

/// One end of a link between processes.
pub(super) struct LinkEnd(Scheduler<'static, Talk>);

impl LinkEnd {
    /// Together with the other end, which finds out over the socket where this one is.
    pub(super) fn open(arguments: &LinkArguments, socket: &UnixStream, is_near: bool) -> io::Result<Self> {
        let mut scheduler = Scheduler::<Talk>::new(IdleStrategy::default()).map_err(io::Error::other)?;
        let end = End::open(arguments, socket, is_near, &mut scheduler)?;
        scheduler.add("talk", end);
        Ok(Self(scheduler))
    }
}

impl Session for LinkEnd {
    fn hold(&mut self, talk: &mut Talk) -> io::Result<()> {
        self.0.run(talk).map_err(io::Error::other)
    }
}

/// Both ends in one process, the far one in a thread of its own.
pub(super) fn converse_locally(arguments: &LinkArguments, far: Talk, begin: impl FnOnce() -> Talk) -> io::Result<Talk> {
    let window = usize::try_from(arguments.window).unwrap_or(usize::MAX);
    let options = LocalOptions {
        limits: limits(arguments),
        copy_below: 512,
        queue_bytes_max: usize::MAX / 2,
        queue_frames_max: window.max(2),
    };
    let (near, other) = LocalLink::pair(&options);
    let run = |mut link: LocalLink, talk: &mut dyn FnMut() -> Talk| {
        let mut scheduler = Scheduler::<Talk>::new(IdleStrategy::default()).map_err(io::Error::other)?;
        link.set_waker(&scheduler.waker());
        scheduler.add("talk", End::new(Box::new(link), Data::prefilled(arguments)));
        let mut talk = talk();
        scheduler.run(&mut talk).map_err(io::Error::other)?;
        drop(scheduler);
        Ok::<_, io::Error>(talk)
    };
    std::thread::scope(|scope| {
        let mut far = Some(far);
        let other = scope.spawn(move || run(other, &mut || far.take().expect("a conversation is held once")));
        let mut begin = Some(begin);
        let talk = run(near, &mut || (begin.take().expect("a conversation is held once"))());
        other.join().expect("the far end does not panic")?;
        talk
    })
}

/// One end of a link, as a task.
struct End {
    link: Box<dyn Link>,
    data: Data,
    /// A frame that found the queue full.
    held: Option<([u8; HEAD_BYTES], Bulk)>,
    /// Whether all that was sent is on its way.
    is_flushed: bool,
    /// When the talk has to be looked at.
    end: Option<Time>,
}

/// Where the data of frames lie.
enum Data {
    /// In one place, filled once.
    Prefilled(PageSlice),
    /// In pages of a shared pool, filled once.
    Shared(Pool),
}

impl End {
    fn new(link: Box<dyn Link>, data: Data) -> Self {
        Self { link, data, held: None, is_flushed: true, end: None }
    }

    fn open(
        arguments: &LinkArguments,
        socket: &UnixStream,
        is_near: bool,
        scheduler: &mut Scheduler<'_, Talk>,
    ) -> io::Result<Self> {
        let pool = Pool::new(&pool("receive", arguments)).map_err(io::Error::other)?;
        pool.wake_on_return(scheduler.waker());
        let data = Data::prefilled(arguments);
        match arguments.link {
            BenchLink::Tcp => {
                let options = TcpOptions { queue_bytes_max: usize::MAX / 2, ..TcpOptions::new(limits(arguments)) };
                let mut link = if is_near {
                    let listener = Listener::on_loopback(&options).map_err(io::Error::other)?;
                    say_line(socket, &listener.local_address().to_string())?;
                    until(|| listener.accept(&options, &pool).map_err(io::Error::other))?
                } else {
                    let address = listen_line(socket)?.parse().map_err(io::Error::other)?;
                    Connection::connect(address, &options, &pool, clock::now() + OPEN_TIMEOUT)
                        .map_err(io::Error::other)?
                };
                link.register(scheduler.poller()).map_err(io::Error::other)?;
                Ok(Self::new(Box::new(link), data))
            }
            BenchLink::Shm => {
                let waker = scheduler.waker();
                let shared = |options: &PoolOptions| Pool::shared(options).map_err(io::Error::other);
                let (copies, lent) = (shared(&self::pool("copies", arguments))?, shared(&lent_pages(arguments))?);
                fill(&lent);
                [&copies, &lent].iter().for_each(|pool| pool.wake_on_return(waker.clone()));
                let options = ShmOptions { queue_bytes_max: usize::MAX / 2, ..ShmOptions::new(limits(arguments)) };
                let process = Process::new(&options, copies, vec![lent.clone()]).map_err(io::Error::other)?;
                let mut link = if is_near {
                    let listener = ShmListener::bind().map_err(io::Error::other)?;
                    say_line(socket, &listener.address().to_string())?;
                    until(|| listener.accept(&process, &pool).map_err(io::Error::other))?
                } else {
                    let address = listen_line(socket)?.parse().map_err(io::Error::other)?;
                    ShmLink::connect(&address, &process, &pool, clock::now() + OPEN_TIMEOUT)
                        .map_err(io::Error::other)?
                };
                link.register(scheduler.poller(), &waker).map_err(io::Error::other)?;
                Ok(Self::new(Box::new(link), Data::Shared(lent)))
            }
            BenchLink::Udp => {
                let loopback = "127.0.0.1:0".parse().expect("an address");
                let endpoint = Endpoint::bind(loopback, &udp_options(arguments), &pool).map_err(io::Error::other)?;
                say_line(socket, &endpoint.local_address().to_string())?;
                let peer = listen_line(socket)?.parse().map_err(io::Error::other)?;
                let mut link = UdpLink::new(endpoint, peer, false);
                link.register(scheduler.poller()).map_err(io::Error::other)?;
                Ok(Self::new(Box::new(link), data))
            }
            BenchLink::Local => unreachable!("both ends of a local link are in one process"),
        }
    }

    /// Whether the peer is there still.
    fn exchange(&mut self, now: Time, talk: &mut Talk) -> bool {
        for _ in 0..FILLS_PER_PASS {
            if !self.link.is_receivable(now) {
                break;
            }
            if self.link.fill(now).is_err() {
                return false;
            }
            while let Some(frame) = self.link.next_frame() {
                if let Some(said) = read_head(frame.head.as_bytes()) {
                    talk.take(said.number);
                }
            }
        }
        while let Some((head, bulk)) = self.held.take().or_else(|| self.next(talk)) {
            match self.link.send(&head, &bulk) {
                Ok(()) => {}
                Err(SendError::Full) => {
                    self.held = Some((head, bulk));
                    break;
                }
                Err(SendError::Lost(_)) => return false,
            }
        }
        let flushed = self.link.flush(now);
        self.is_flushed = flushed == Ok(Flushed::All);
        flushed.is_ok()
    }

    fn next(&self, talk: &mut Talk) -> Option<([u8; HEAD_BYTES], Bulk)> {
        if !talk.is_due() || !self.data.is_there() {
            return None;
        }
        let outgoing = talk.due()?;
        Some((head(outgoing), self.data.bulk(outgoing.len - HEAD_BYTES)))
    }
}

impl Task<Talk> for End {
    fn poll(&mut self, context: &mut Context<'_, Talk>) -> bool {
        let is_over = context.shared.is_over(context.now);
        self.end = context.shared.deadline();
        if is_over && ((self.held.is_none() && self.is_flushed) || !context.shared.is_done()) {
            context.stop();
            return false;
        }
        let can_send = self.held.is_none() && context.shared.is_due() && self.data.is_there();
        can_send || self.link.is_receivable(context.now) || self.link.is_flushable()
    }

    fn action(&mut self, context: &mut Context<'_, Talk>) {
        if !self.exchange(context.now, context.shared) {
            context.stop();
        }
    }

    fn next_deadline(&self) -> Option<Time> {
        [self.end, self.link.next_deadline()].into_iter().flatten().min()
    }
}

impl Data {
    fn prefilled(arguments: &LinkArguments) -> Self {
        Self::Prefilled(PageSlice::from(vec![7; arguments.frame_bytes as usize]))
    }

    fn is_there(&self) -> bool {
        match self {
            Self::Prefilled(_) => true,
            Self::Shared(pool) => pool.has_free(),
        }
    }

    fn bulk(&self, len: usize) -> Bulk {
        match self {
            _ if len == 0 => Bulk::empty(),
            Self::Prefilled(bytes) => Bulk::Pages(bytes.slice(0..len)),
            Self::Shared(pool) => Bulk::Pages(pool.take().expect("it was looked for").freeze(len)),
        }
    }
}

fn fill(pool: &Pool) {
    let mut pages = Vec::new();
    pool.take_some(pool.pages(), &mut pages);
    pages.iter_mut().for_each(|page| page.bytes_mut().fill(7));
}

fn limits(arguments: &LinkArguments) -> FrameLimits {
    FrameLimits::new(HEAD_BYTES, arguments.frame_bytes as usize).expect("a frame is as long as its head at least")
}

fn pool(name: &str, arguments: &LinkArguments) -> PoolOptions {
    let page_len = (arguments.frame_bytes as usize).next_multiple_of(PAGE_ALIGN_BYTES).max(PAGE_BYTES_MIN);
    let pages = 2 * usize::try_from(arguments.window).unwrap_or(PAGES_MIN).max(PAGES_MIN);
    PoolOptions { name: name.to_owned(), page_len, pages, prefault: false }
}

/// As many as the reference has slots, and as long: all of them are filled.
fn lent_pages(arguments: &LinkArguments) -> PoolOptions {
    let page_len = (arguments.frame_bytes as usize).next_multiple_of(PAGE_ALIGN_BYTES);
    let pages = usize::try_from(arguments.window).unwrap_or(usize::MAX).max(2);
    PoolOptions { name: "lent".to_owned(), page_len, pages, prefault: false }
}

/// Datagrams as in a run over the loopback interface; a receiver asks for what is missing.
fn udp_options(arguments: &LinkArguments) -> UdpOptions {
    let window = usize::try_from(arguments.window).unwrap_or(usize::MAX).max(2);
    let window_bytes = window.saturating_mul(arguments.frame_bytes as usize);
    UdpOptions {
        datagram_len: DATAGRAM_LEN_LOOPBACK,
        checksum_payload: false,
        queue_bytes_max: window_bytes,
        queue_frames_max: window,
        receive_buffer_bytes: super::UDP_BUFFER_BYTES,
        incomplete_messages_max: window,
        incomplete_bytes_max: window_bytes,
        ask_after: Duration::from_millis(2),
        keep_parts_max: 2 * window,
        keep_bytes_max: window_bytes,
        ..UdpOptions::new(limits(arguments), [7; 16])
    }
}

fn until<T>(mut happens: impl FnMut() -> io::Result<Option<T>>) -> io::Result<T> {
    let deadline = clock::now() + OPEN_TIMEOUT;
    loop {
        if let Some(done) = happens()? {
            return Ok(done);
        }
        if clock::now() > deadline {
            return Err(io::ErrorKind::TimedOut.into());
        }
        rustix::thread::sched_yield();
    }
}

const FILLS_PER_PASS: usize = 4;
const PAGE_ALIGN_BYTES: usize = 64;
const PAGE_BYTES_MIN: usize = 64 << 10;
const PAGES_MIN: usize = 16;
const OPEN_TIMEOUT: Duration = PATIENCE;

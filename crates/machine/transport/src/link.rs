//! What every transport offers: one side of a bidirectional, ordered, lossless link between two peers.
//!
//! # Sending
//! [`Link::send`] puts a frame into a bounded queue and makes no system call; [`Link::flush`] hands over as many queued
//! frames as the peer takes. Send many, flush once.
//!
//! # Receiving
//! [`Link::fill`] takes in one batch of at most the link's read budget, so that no peer starves others;
//! [`Link::next_frame`] delivers it frame by frame. While frames wait, `fill` takes in nothing more: a receiver that stops
//! asking stops its peer.
//!
//! # Loss
//! The loss of a peer is one typed, lasting reason. `flush` and `send` report it as soon as it is known. `fill`
//! reports it after it has delivered the last frame: a peer's last frames may still be waiting to be received.

use crate::error::OsError;
use crate::frame::{Frame, Malformed};
use crate::violation::Violation;
use base::bulk::Bulk;
use base::time::Time;

/// One side of a link. See the module for how the calls go together.
pub trait Link {
    /// Queues a frame made of `head`, which starts with the frame's total length, and `bulk`.
    ///
    /// # Errors
    /// A full queue, which holds the frame back: try again after a [`flush`](Self::flush). The loss of the peer.
    ///
    /// # Panics
    /// If the two are not a legal frame.
    fn send(&mut self, head: &[u8], bulk: &Bulk) -> Result<(), SendError>;

    /// Hands over queued frames.
    ///
    /// # Errors
    /// The loss of the peer; frames in the queue are lost.
    fn flush(&mut self, now: Time) -> Result<Flushed, Lost>;

    /// Takes in one batch of frames, unless some still wait to be delivered.
    ///
    /// # Errors
    /// The loss of the peer, after its last frame was delivered.
    fn fill(&mut self, now: Time) -> Result<Filled, Lost>;

    /// The next frame of the batch.
    fn next_frame(&mut self) -> Option<Frame>;

    /// Whether [`fill`](Self::fill) or [`next_frame`](Self::next_frame) has something to do now, a loss to report
    /// included. No system call.
    fn is_receivable(&self, now: Time) -> bool;

    /// Whether [`flush`](Self::flush) has something to do now. No system call.
    fn is_flushable(&self) -> bool;

    /// When [`fill`](Self::fill) has to be called even if nothing happens.
    fn next_deadline(&self) -> Option<Time>;

    /// The counters.
    fn counters(&self) -> &LinkCounters;
}

/// How a flush ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// The queue is empty.
    All,
    /// The peer, or the kernel on its behalf, takes no more now.
    WouldBlock,
}

/// How an intake ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// Something came in; it may be a part of a frame only.
    Some,
    /// There is nothing to take in now.
    WouldBlock,
    /// Frames of an earlier batch wait to be delivered.
    FramesWaiting,
    /// The page pool is empty: nothing is taken in until a page returns to it.
    PoolEmpty,
}

/// Why a frame was not queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The queue is at its bound.
    #[error("send queue full: flush, then send again")]
    Full,
    /// There is no peer.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// Why a peer is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The peer closed in good order, between two frames.
    #[error("closed by peer")]
    Closed,
    /// The peer closed within a frame.
    #[error("closed by peer within a frame: {received_len} bytes of it received")]
    ClosedWithinFrame {
        /// How much of the frame came.
        received_len: usize,
    },
    /// The peer ended without closing, or has closed and does not take what we send.
    #[error("connection reset by peer")]
    Reset,
    /// The peer sent what cannot be a frame.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The peer broke the rules of the memory that it shares with us.
    #[error("shared memory: {0}")]
    Violated(#[from] Violation),
    /// The peer had begun a frame when it got another pool, and that has no page to continue the frame in.
    #[error("no page is free for a frame that has begun")]
    NoPage,
    /// Nobody listens at the peer's address.
    #[error("connection refused: nobody listens there")]
    Refused,
    /// The connection was not established by its deadline.
    #[error("not connected by the deadline")]
    ConnectTimedOut,
    /// The peer, or the network to it, has not answered for longer than the kernel waits.
    #[error("peer does not answer")]
    TimedOut,
    /// The kernel reports something else.
    #[error(transparent)]
    Os(#[from] OsError),
}

/// What a link has done; counted from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Frames handed over completely.
    pub frames_sent: u64,
    /// Bytes handed over.
    pub bytes_sent: u64,
    /// System calls (or, in a process, exchanges of a queue) that sent.
    pub send_calls: u64,
    /// Flushes that the peer stopped.
    pub send_would_blocks: u64,
    /// Frames refused because the queue was full.
    pub sends_refused: u64,
    /// Complete frames taken in.
    pub frames_received: u64,
    /// Of these, frames below `copy_below`, each of which holds a page that it hardly fills.
    pub small_frames_received: u64,
    /// Bytes taken in.
    pub bytes_received: u64,
    /// System calls (or exchanges of a queue) that received.
    pub receive_calls: u64,
    /// Intakes that found nothing.
    pub receive_would_blocks: u64,
    /// Intakes refused because the page pool was empty.
    pub pool_empty: u64,
    /// Bytes copied because a frame crossed the end of a page.
    pub bytes_moved: u64,
}

//! A connection between run control and an agent, or `weir host` and its caller: frames behind a proof.
//!
//! A frame is its length in 32 bits, its bytes, and behind the proof a tag. Orders and words have a queue with a bound; who does
//! not take them loses the connection. What is only to be seen goes out when nothing waits, or not at all.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use aegis::aegis256::Aegis256;
use membership::agents::{Forged, Handshake, Met, Seal, Step};
use membership::challenge::{Member, Nonce, Unproven};
use membership::run_secret::RunSecret;
use rustix::event::PollFlags;

/// One end of it.
pub(crate) struct Peer {
    stream: TcpStream,
    stage: Stage,
    input: Vec<u8>,
    output: Vec<u8>,
}

enum Stage {
    Proving(Box<Handshake>),
    Proven { to_peer: Seal, from_peer: Seal, has_confided: bool },
}

/// What came.
pub(crate) enum Heard {
    /// The other has proved to be this member.
    Met(Member),
    /// It says this.
    Frame(Vec<u8>),
}

/// Why a connection is of no use any more.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum Gone {
    #[error("the connection has ended")]
    Ended,
    #[error("connection: {0}")]
    Broken(#[from] io::Error),
    #[error("who connected {0}")]
    Unproven(#[from] Unproven),
    #[error("connection: {0}")]
    Forged(#[from] Forged),
    #[error("connection: a frame of {0} bytes, which none has")]
    TooLong(usize),
    #[error("{0} bytes wait to be taken, which is too much")]
    Full(usize),
}

impl Peer {
    /// Of the member `here`, who has accepted it.
    pub(crate) fn accepted(
        stream: TcpStream,
        (secret, here): (&RunSecret, Member),
        nonce: Nonce,
    ) -> Result<Self, Gone> {
        let (handshake, first) = Handshake::of_accepted(secret, here, nonce);
        let mut peer = Self::new(stream, handshake)?;
        peer.queue(&first, &[])?;
        Ok(peer)
    }

    /// Of the member `here`, who has connected to another.
    pub(crate) fn connected(
        stream: TcpStream,
        secret: &RunSecret,
        (here, to): (Member, Member),
        nonce: Nonce,
    ) -> Result<Self, Gone> {
        Self::new(stream, Handshake::of_connected(secret, (here, to), nonce))
    }

    fn new(stream: TcpStream, handshake: Handshake) -> Result<Self, Gone> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, stage: Stage::Proving(Box::new(handshake)), input: Vec::new(), output: Vec::new() })
    }

    /// Whether the other has still to prove who it is.
    pub(crate) fn is_stranger(&self) -> bool {
        matches!(self.stage, Stage::Proving(_))
    }

    /// For what a poll has to wait.
    pub(crate) fn awaits(&self) -> PollFlags {
        if self.output.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT }
    }

    /// Says this, after all that was said before.
    pub(crate) fn say(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        let Stage::Proven { to_peer, .. } = &mut self.stage else { return Err(Unproven::OutOfTurn.into()) };
        let tag = to_peer.tag(bytes);
        self.queue(bytes, &tag)
    }

    /// Says this so that the other alone can read it. Once for each connection.
    pub(crate) fn confide(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        let Stage::Proven { to_peer, has_confided, .. } = &mut self.stage else {
            return Err(Unproven::OutOfTurn.into());
        };
        assert!(!core::mem::replace(has_confided, true), "its key hides one message");
        let (hidden, tag) = cover(to_peer).encrypt(bytes, &[]);
        self.say(&[&hidden[..], &tag].concat())
    }

    /// What the other has confided in this frame.
    pub(crate) fn confided(&self, frame: &[u8]) -> Result<Vec<u8>, Gone> {
        let Stage::Proven { from_peer, .. } = &self.stage else { return Err(Unproven::OutOfTurn.into()) };
        let (hidden, tag) = frame.split_last_chunk::<COVER_TAG_LEN>().ok_or(Forged)?;
        cover(from_peer).decrypt(hidden, tag, &[]).map_err(|_| Forged.into())
    }

    /// Whether the kernel has all that was said.
    pub(crate) fn has_sent_all(&self) -> bool {
        self.output.is_empty()
    }

    /// Says this if nothing waits to go out; whether it does.
    pub(crate) fn show(&mut self, bytes: &[u8]) -> Result<bool, Gone> {
        if !self.output.is_empty() {
            return Ok(false);
        }
        self.say(bytes).map(|()| true)
    }

    /// What has come by now, and what became of the connection behind that.
    pub(crate) fn hear(&mut self) -> (Vec<Heard>, Result<(), Gone>) {
        let mut heard = Vec::new();
        let mut result = Ok(());
        for _ in 0..READS_MAX {
            match self.read() {
                Ok(0) => break,
                Ok(_) => {}
                Err(gone) => {
                    result = Err(gone);
                    break;
                }
            }
        }
        // What was said before the end counts.
        let taken = self.take_frames(&mut heard);
        (heard, taken.and(result))
    }

    /// Hands what waits to the kernel, as far as it takes it.
    pub(crate) fn flush(&mut self) -> Result<(), Gone> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(0) => return Err(Gone::Ended),
                Ok(len) => _ = self.output.drain(..len),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn queue(&mut self, bytes: &[u8], tag: &[u8]) -> Result<(), Gone> {
        let len = bytes.len() + tag.len();
        if self.output.len() + len > QUEUE_MAX {
            return Err(Gone::Full(self.output.len()));
        }
        let header = u32::try_from(len).map_err(|_| Gone::TooLong(len))?.to_le_bytes();
        [&header, bytes, tag].into_iter().for_each(|part| self.output.extend_from_slice(part));
        Ok(())
    }

    /// How many bytes came; none if none is there.
    fn read(&mut self) -> Result<usize, Gone> {
        let mut bytes = [0; READ_LEN];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(Gone::Ended),
                Ok(len) => {
                    self.input.extend_from_slice(&bytes[..len]);
                    return Ok(len);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn take_frames(&mut self, heard: &mut Vec<Heard>) -> Result<(), Gone> {
        while let Some(header) = self.input.first_chunk() {
            let (len, max) = (u32::from_le_bytes(*header) as usize, self.frame_max());
            if len > max {
                return Err(Gone::TooLong(len));
            }
            let end = HEADER_LEN + len;
            if self.input.len() < end {
                break;
            }
            let frame: Vec<u8> = self.input.drain(..end).skip(HEADER_LEN).collect();
            heard.extend(self.on_frame(&frame)?);
        }
        Ok(())
    }

    fn on_frame(&mut self, frame: &[u8]) -> Result<Option<Heard>, Gone> {
        let Step { say, met } = match &mut self.stage {
            Stage::Proven { from_peer, .. } => return Ok(Some(Heard::Frame(from_peer.open(frame)?.to_vec()))),
            Stage::Proving(handshake) => handshake.on_frame(frame)?,
        };
        say.into_iter().try_for_each(|bytes| self.queue(&bytes, &[]))?;
        Ok(met.map(|Met { peer, to_peer, from_peer }| {
            self.stage = Stage::Proven { to_peer, from_peer, has_confided: false };
            Heard::Met(peer)
        }))
    }

    /// A stranger gets no more memory than a proof takes.
    fn frame_max(&self) -> usize {
        if self.is_stranger() { PROOF_MAX } else { FRAME_MAX }
    }
}

/// The key is of this connection and direction alone, so the nonce needs not differ.
fn cover(seal: &Seal) -> Aegis256<COVER_TAG_LEN> {
    Aegis256::new(&seal.key_for("weir 2026 what a caller confides"), &[0; 32])
}

impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

const COVER_TAG_LEN: usize = 32;
const HEADER_LEN: usize = 4;
const PROOF_MAX: usize = 256;
/// An order with texts of full length, or a beat of all applications of a host.
const FRAME_MAX: usize = 1 << 20;
/// Orders to start all applications of a host, and as many to end them.
const QUEUE_MAX: usize = 16 << 20;
const READ_LEN: usize = 4096;
/// Others get their turn.
const READS_MAX: usize = 64;

#[cfg(test)]
pub(crate) mod tests {
    use std::net::TcpListener;

    use base::ids::{Incarnation, NodeId};

    use super::*;

    const CONTROL: Member = (NodeId(0), Incarnation::FIRST);
    const AGENT: Member = (NodeId(1), Incarnation(1));

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (here, listener.accept().unwrap().0)
    }

    pub(crate) fn proven() -> (Peer, Peer) {
        let (secret, (here, there)) = (RunSecret::new("key", &[1; 16]), pair());
        let mut agent = Peer::connected(here, &secret, (AGENT, CONTROL), [1; 32]).unwrap();
        let mut control = Peer::accepted(there, (&secret, CONTROL), [2; 32]).unwrap();
        let mut met = Vec::new();
        while agent.is_stranger() || control.is_stranger() {
            for peer in [&mut agent, &mut control] {
                peer.flush().unwrap();
                let (heard, result) = peer.hear();
                result.unwrap();
                met.extend(heard.into_iter().filter_map(|heard| match heard {
                    Heard::Met(member) => Some(member),
                    Heard::Frame(_) => None,
                }));
            }
        }
        assert_eq!(met, [AGENT, CONTROL]);
        (agent, control)
    }

    /// Until the end of the connection.
    fn frames(peer: &mut Peer) -> (Vec<Vec<u8>>, Gone) {
        let mut frames = Vec::new();
        loop {
            let (heard, result) = peer.hear();
            frames.extend(heard.into_iter().map(|heard| match heard {
                Heard::Frame(frame) => frame,
                Heard::Met(_) => panic!("met twice"),
            }));
            if let Err(gone) = result {
                return (frames, gone);
            }
        }
    }

    #[test]
    fn what_was_said_before_the_end_is_heard() {
        let (mut agent, mut control) = proven();
        control.say(b"start").unwrap();
        assert!(!control.show(b"beat").unwrap(), "something waits");
        control.flush().unwrap();
        assert!(control.show(b"beat").unwrap());
        control.flush().unwrap();
        drop(control);
        let (frames, gone) = frames(&mut agent);
        assert_eq!(frames, [&b"start"[..], b"beat"]);
        assert!(matches!(gone, Gone::Ended), "{gone}");
    }

    #[test]
    fn what_is_confided_is_read_by_the_other_alone() {
        let (mut agent, mut control) = proven();
        control.confide(b"a secret").unwrap();
        control.flush().unwrap();
        drop(control.stream);
        let (frames, _) = frames(&mut agent);
        let frame = &frames[0];
        assert!(!frame.windows(6).any(|part| part == b"secret"));
        assert_eq!(agent.confided(frame).unwrap(), b"a secret");
        assert!(matches!(agent.confided(&frame[1..]), Err(Gone::Forged(_))));
        let (_, other_way) = proven();
        assert!(matches!(other_way.confided(frame), Err(Gone::Forged(_))));
    }

    #[test]
    fn who_takes_nothing_loses_the_connection() {
        let (_agent, mut control) = proven();
        let order = vec![0; FRAME_MAX - Seal::LEN];
        let gone = (0..).find_map(|_| control.say(&order).err()).unwrap();
        assert!(matches!(gone, Gone::Full(_)), "{gone}");
        control.flush().unwrap();
        assert!(control.awaits().contains(PollFlags::OUT));
    }

    #[test]
    fn strangers_get_nothing_and_no_memory() {
        let secret = RunSecret::new("key", &[1; 16]);
        for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], &[5, 0, 0, 0, 1, 2, 3, 4, 5]] {
            let (mut here, there) = pair();
            let mut control = Peer::accepted(there, (&secret, CONTROL), [2; 32]).unwrap();
            here.write_all(bytes).unwrap();
            drop(here);
            let (frames, gone) = frames(&mut control);
            assert!(frames.is_empty() && !matches!(gone, Gone::Ended), "{gone}");
            assert!(matches!(control.say(b"start"), Err(Gone::Unproven(_))));
        }
    }

    #[test]
    fn what_others_put_into_a_connection_ends_it() {
        let (mut agent, control) = proven();
        let mut stream = control.stream.try_clone().unwrap();
        stream.write_all(&[&20_u32.to_le_bytes()[..], &[0; 20]].concat()).unwrap();
        let (frames, gone) = frames(&mut agent);
        assert!(frames.is_empty() && matches!(gone, Gone::Forged(_)), "{gone}");
    }
}

//! A source that says and writes what it likes.

use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use link::wire::{Greeting, HEAD_BYTES, Prover, RecordHead, Welcome, record};
use link::{Kind, LinkOrder, Secret};
use rustix::fd::OwnedFd;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::{Bench, Came};

/// The end of a source on a stream, behind its welcome.
pub(crate) struct RawStream(pub(crate) TcpStream);

/// The end of a source on shared memory, behind its welcome.
pub(crate) struct RawShared {
    pub(crate) socket: UnixStream,
    pub(crate) welcome: Welcome,
    rings: OwnedFd,
    committed: u64,
}

impl RawStream {
    pub(crate) fn connected(bench: &mut Bench) -> Self {
        let mut socket = TcpStream::connect(bench.at().strip_prefix("tcp://").unwrap()).unwrap();
        let greeting = greeting();
        socket.write_all(&greeting).unwrap();
        let mut challenge = [0; HEAD_BYTES + 32];
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| socket.read_exact(&mut challenge));
            while !reading.is_finished() {
                bench.poll();
            }
            reading.join().unwrap().unwrap();
        });
        let proof = Secret::new("key").proof(Prover::Source, &greeting, challenge[HEAD_BYTES..].try_into().unwrap());
        socket.write_all(&record(Kind::Proof, 0, &proof)).unwrap();
        bench.until(|came| came.contains(&Came::Up("tlu".into())));
        bench.intake.order(LinkOrder::Start { run: 7 });
        Self(socket)
    }
}

impl RawShared {
    pub(crate) fn connected(bench: &mut Bench) -> Self {
        let mut socket = UnixStream::connect(bench.at().strip_prefix("shm:").unwrap()).unwrap();
        socket.write_all(&greeting()).unwrap();
        bench.until(|came| came.contains(&Came::Up("tlu".into())));
        let mut bytes = [0; HEAD_BYTES + 56];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(5))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let slices = &mut [IoSliceMut::new(&mut bytes)];
        assert_eq!(recvmsg(&socket, slices, &mut control, RecvFlags::empty()).unwrap().bytes, HEAD_BYTES + 56);
        let rights = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(rights) => Some(rights.collect::<Vec<_>>()),
            _ => None,
        });
        let rings = rights.unwrap().swap_remove(1);
        let head = RecordHead::decode(bytes.first_chunk().unwrap()).unwrap();
        let welcome = Welcome::decode(&head, &bytes[HEAD_BYTES..]).unwrap();
        bench.intake.order(LinkOrder::Start { run: 7 });
        Self { socket, welcome, rings, committed: 0 }
    }

    /// The index of the page that was lent as this one.
    pub(crate) fn lent(&self, position: u64) -> u64 {
        let mut index = [0; 8];
        rustix::io::pread(&self.rings, &mut index, HEADER_BYTES + 8 * position).unwrap();
        u64::from_le_bytes(index)
    }

    /// Writes an entry, whatever it says, at the next place.
    pub(crate) fn commit(&mut self, head: &[u8; HEAD_BYTES], index: u64) {
        self.overwrite(self.committed, head, index);
        self.set_committed(self.committed + 1);
    }

    /// Writes an entry over another one.
    pub(crate) fn overwrite(&self, position: u64, head: &[u8; HEAD_BYTES], index: u64) {
        let entries = HEADER_BYTES + 8 * u64::from(self.welcome.memory.unwrap().ring);
        self.write(entries + 64 * position, &[&head[..], &index.to_le_bytes()].concat());
    }

    /// Says that so many entries are there.
    pub(crate) fn set_committed(&mut self, committed: u64) {
        self.committed = committed;
        self.write(COMMITTED, &committed.to_le_bytes());
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        assert_eq!(rustix::io::pwrite(&self.rings, bytes, offset).unwrap(), bytes.len());
    }
}

fn greeting() -> Vec<u8> {
    Greeting { version: 1, id: None, nonce: [3; 32], name: "tlu".into() }.encode()
}

/// The words before the rings, and the one that counts entries: the layout of version 1.
const HEADER_BYTES: u64 = 512;
const COMMITTED: u64 = 3 * 64;

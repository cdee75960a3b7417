//! The numbers that the frames of a proven connection carry: none is missing, repeated, in another place or of another connection.
//!
//! They count on from where the proof says, which differs for each connection and direction. Nobody knows it without the key and
//! without having read the connection. It is no tag: who can read a connection and write into it knows the next number, too. Such
//! a one can alter bytes of events as well, which no tag over heads would find: `docs/protocols/joining.md`.

/// What a frame of each direction carries next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameNumbers {
    send: u32,
    receive: u32,
}

impl FrameNumbers {
    /// At the beginning of a connection, of the bytes that its ends have derived for each direction.
    pub(crate) const fn new(send: [u8; 4], receive: [u8; 4]) -> Self {
        Self { send: u32::from_le_bytes(send), receive: u32::from_le_bytes(receive) }
    }

    /// The number of the frame that is sent now.
    pub const fn next_sent(&mut self) -> u32 {
        let number = self.send;
        self.send = number.wrapping_add(1);
        number
    }

    /// The number that the frame has to have that is received now.
    pub const fn next_received(&mut self) -> u32 {
        let number = self.receive;
        self.receive = number.wrapping_add(1);
        number
    }
}

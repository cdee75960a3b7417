//! A network between two endpoints that does to datagrams what a test says, and messages that say which they are.
#![allow(dead_code, unreachable_pub)]

use std::net::{SocketAddr, UdpSocket};

/// Of a message in datagrams of 1,472 bytes.
const SEGMENT_LEN: usize = 1472 - 40;

pub enum Treatment {
    Pass,
    Drop,
    Repeat,
    /// Behind all that comes at the same time.
    Delay,
}

/// Carries what waits, up to 16 datagrams; whether there was anything.
pub fn carry(
    from: &UdpSocket,
    through: &UdpSocket,
    to: SocketAddr,
    treat: &mut impl FnMut(&[u8]) -> Treatment,
) -> bool {
    let mut place = vec![0; 1 << 16];
    let (mut count, mut delayed) = (0, Vec::new());
    let pass = |datagram: &[u8]| through.send_to(datagram, to).unwrap();
    while count < 16
        && let Ok(len) = from.recv(&mut place)
    {
        count += 1;
        match treat(&place[..len]) {
            Treatment::Pass => _ = pass(&place[..len]),
            Treatment::Drop => {}
            Treatment::Repeat => (0..2).for_each(|_| _ = pass(&place[..len])),
            Treatment::Delay => delayed.push(place[..len].to_vec()),
        }
    }
    delayed.iter().for_each(|datagram| _ = pass(datagram));
    count > 0
}

/// Its number is behind its length.
pub fn message(number: u64, len: usize) -> Vec<u8> {
    let mut message: Vec<u8> = (0..len).map(|index| (index / SEGMENT_LEN + index + number as usize) as u8).collect();
    message[..4].copy_from_slice(&u32::try_from(len).unwrap().to_le_bytes());
    message[4..12].copy_from_slice(&number.to_le_bytes());
    message
}

/// A number generator of the simplest kind, so that a test does the same each time.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

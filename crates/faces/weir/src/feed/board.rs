//! A board that sends datagrams, and knows nothing of Weir.
//!
//! A datagram is a frame: counter (4 bytes), time in ns (8), length of the data (4), all big-endian, then the data.

use std::io;
use std::net::UdpSocket;
use std::thread;
use std::time::Duration;

use configuration::Rate;
use rol::detector::Detector;
use terminal::{Exit, complain};
use transport::clock;
use weir_source::{Reading, Source};

/// Sends all that the feed has. It hears nothing from the partition, not even that there is none.
pub(super) fn feed(place: &str, name: &str, mut detector: Detector) -> Exit {
    match send_all(place, &mut detector) {
        Ok(sent) => {
            complain(&format!("{name}: {sent} datagrams"));
            Exit::Well
        }
        Err(error) => {
            complain(&format!("weir: udp://{place}: {error}"));
            Exit::NotStarted
        }
    }
}

fn send_all(place: &str, detector: &mut Detector) -> io::Result<u64> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(place)?;
    let failed = |failure: weir_source::Failure| io::Error::other(failure.to_string());
    let (mut sent, mut datagram) = (0, vec![0; HEADER_BYTES + DATA_BYTES_MAX]);
    detector.start(0).map_err(failed)?;
    loop {
        let (head, len) = match detector.read(&mut datagram[HEADER_BYTES..]).map_err(failed)? {
            Reading::Committed(head, len) => (head, len),
            Reading::End => break,
            _ => {
                #[expect(clippy::disallowed_methods, reason = "the time itself is what is waited for")]
                thread::sleep(BETWEEN_LOOKS);
                continue;
            }
        };
        let number = head.number.unwrap_or_default();
        datagram[..4].copy_from_slice(&(number as u32).to_be_bytes());
        datagram[4..12].copy_from_slice(&clock::now().as_ns().to_be_bytes());
        datagram[12..HEADER_BYTES].copy_from_slice(&(len as u32).to_be_bytes());
        match socket.send(&datagram[..HEADER_BYTES + len]) {
            // Nobody listens there now; a board would not know.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            other => drop(other?),
        }
        sent += 1;
    }
    detector.stop().map_err(failed)?;
    Ok(sent)
}

const HEADER_BYTES: usize = 16;
const DATA_BYTES_MAX: usize = 65_507 - HEADER_BYTES;
const BETWEEN_LOOKS: Duration = Duration::from_micros(100);
/// Of a board, in fragments per second.
pub(super) const DEFAULT_RATE: Rate = Rate::from_millihertz(1_000_000);

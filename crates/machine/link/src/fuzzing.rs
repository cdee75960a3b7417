//! What a fuzzer and its corpus feed with bytes.

use crate::greeting::{Greeting, Welcome, text};
use crate::inbox::Inbox;
use crate::kind::Kind;
use crate::record::{HEAD_BYTES, TEXT_BYTES_MAX};

/// Reads any bytes as records, as they come in pieces of all lengths. What is understood comes out unchanged.
///
/// # Panics
/// If it does not.
pub fn check_any_stream(bytes: &[u8]) {
    let mut inbox = Inbox::new(HEAD_BYTES + TEXT_BYTES_MAX);
    let (mut rest, mut understood) = (bytes, 0);
    loop {
        match inbox.record(TEXT_BYTES_MAX) {
            Err(_) => return,
            Ok(Some((head, body))) => {
                let record = [&head.encode()[..], body].concat();
                assert_eq!(bytes[understood..understood + record.len()], record, "a record comes out unchanged");
                let again = match head.kind {
                    Kind::Greeting => Greeting::decode(body).ok().map(|greeting| greeting.encode()),
                    Kind::Welcome => Welcome::decode(&head, body).ok().map(|welcome| welcome.encode()),
                    Kind::Status => {
                        text(Kind::Status, body).ok().map(|text| [&head.encode()[..], text.as_bytes()].concat())
                    }
                    _ => None,
                };
                // Of the head of a greeting nothing counts but its kind and length.
                assert!(
                    again.is_none_or(|again| again[HEAD_BYTES..] == record[HEAD_BYTES..]),
                    "nor does its body change"
                );
                understood += record.len();
            }
            Ok(None) if rest.is_empty() => return,
            Ok(None) => {
                let room = inbox.room();
                // From one byte at a time to as much as there is room for.
                let len = rest.len().min(room.len()).min(1 + (rest.len() * 7) % 61);
                assert!(len > 0, "a record that may come has room");
                room[..len].copy_from_slice(&rest[..len]);
                inbox.filled(len);
                rest = &rest[len..];
            }
        }
    }
}

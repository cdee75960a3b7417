//! What visitors at a local door have said so far.

use std::io::{ErrorKind, Read};

/// Takes what has come; false once the visitor is gone or has said more than `most` bytes.
pub(crate) fn hear(stream: &mut impl Read, said: &mut Vec<u8>, most: usize) -> bool {
    let mut bytes = [0; 1024];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return false,
            Ok(len) if said.len() + len <= most => said.extend_from_slice(&bytes[..len]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return false,
        }
    }
}

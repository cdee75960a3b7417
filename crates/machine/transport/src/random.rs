//! Numbers that nobody can foretell.

use crate::error::OsError;
use rustix::rand::{GetRandomFlags, getrandom};

/// So many bytes from the kernel.
///
/// # Errors
/// A kernel that has none: a broken environment.
pub fn random<const N: usize>() -> Result<[u8; N], OsError> {
    let mut bytes = [0; N];
    let mut len = 0;
    while len < N {
        let more = rustix::io::retry_on_intr(|| getrandom(&mut bytes[len..], GetRandomFlags::empty()));
        len += more.map_err(|errno| OsError::new("getrandom", errno))?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::random;

    #[test]
    fn each_draw_is_another() {
        let draws: [[u8; 300]; 3] = core::array::from_fn(|_| random().unwrap());
        assert!(draws[0] != draws[1] && draws[1] != draws[2]);
        assert!(draws.iter().all(|draw| draw[256..].iter().any(|byte| *byte != 0)), "to its end");
    }
}

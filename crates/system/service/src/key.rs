//! The key of a session: who has it may command.

use std::io;

/// 32 random bytes, as hexadecimal digits. Its debug form does not show them.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionKey(String);

impl SessionKey {
    /// A key that nobody can guess.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn draw() -> io::Result<Self> {
        let bytes: [u8; 32] = transport::random::random().map_err(io::Error::other)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The key of these digits, if they are one.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == DIGITS && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    /// The digits.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether somebody has the key. The time that this takes does not tell how much of it is right.
    pub fn is(&self, shown: &str) -> bool {
        let (ours, theirs) = (self.0.as_bytes(), shown.as_bytes());
        ours.len() == theirs.len() && ours.iter().zip(theirs).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

impl core::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SessionKey(…)")
    }
}

const DIGITS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_key_is_it() {
        let key = SessionKey::draw().unwrap();
        assert!(key.is(key.text()) && key.text().len() == 64);
        for wrong in ["", &key.text()[1..], &"0".repeat(64)] {
            assert!(!key.is(wrong));
        }
        assert_ne!(key, SessionKey::draw().unwrap());
        assert_eq!(SessionKey::of_text(key.text()), Some(key.clone()));
        assert_eq!([&key.text()[1..], &"G".repeat(64)].map(SessionKey::of_text), [None, None]);
        assert!(!format!("{key:?}").contains(key.text()));
    }
}

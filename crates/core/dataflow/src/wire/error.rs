//! Why a frame is refused.

use core::fmt;

use super::VERSION;

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// Shorter than its header, or than its header says.
    Truncated {
        /// Bytes that there are.
        len: usize,
    },
    /// Another version of the layout.
    Version {
        /// The version found.
        found: u16,
    },
    /// No such kind of message.
    Kind {
        /// The kind found.
        found: u16,
    },
    /// The body is shorter or longer than its kind of message, or a value in it is impossible.
    Body {
        /// The kind of message.
        kind: u16,
        /// Offset in the body.
        offset: usize,
    },
    /// It is not the frame that has to come now: frames are missing, repeated, in another order or of another connection.
    Number {
        /// Its number.
        found: u32,
        /// That of the frame that has to come, or zero.
        expected: u32,
    },
    /// Bulk behind a message that carries none.
    Bulk {
        /// The kind of message.
        kind: u16,
    },
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { len } => write!(f, "message cut after {len} bytes"),
            Self::Version { found } => {
                write!(f, "message layout version {found}, expected {VERSION}: both ends need the same release")
            }
            Self::Kind { found } => write!(f, "no message is of kind {found}"),
            Self::Body { kind, offset } => write!(f, "message of kind {kind}: bad body at byte {offset}"),
            Self::Number { found, expected } => write!(
                f,
                "frame {found:#010x} came where {expected:#010x} has to: something between the two ends drops, repeats or mixes frames"
            ),
            Self::Bulk { kind } => write!(f, "message of kind {kind} with bulk behind it, expected none"),
        }
    }
}

impl core::error::Error for WireError {}

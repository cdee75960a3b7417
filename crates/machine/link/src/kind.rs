//! Kinds of records.

/// What a record says. Below 32 it is one of the handshake or the intake's, from 32 on the source's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Source: who it is, and a nonce.
    Greeting = 1,
    /// Intake: a nonce.
    Challenge = 2,
    /// Source: the proof of the key.
    Proof = 3,
    /// Intake: the proof of the key, the sizes, over shared memory the descriptors.
    Welcome = 4,
    /// Intake: why not. `aux` is 1 if it is worth another try.
    Refused = 5,
    /// Intake: the run begins.
    Start = 16,
    /// Intake: no more triggers.
    Stop = 17,
    /// Intake: no more fragments for now.
    Xoff = 18,
    /// Intake: fragments again.
    Xon = 19,
    /// Intake: does the source still live?
    Ask = 20,
    /// Intake: one fragment at a time, the next one after the next [`Kind::Xon`].
    Single = 21,
    /// Source: a fragment.
    Fragment = 32,
    /// Source: nothing with a lower number or an earlier time follows.
    Idle = 33,
    /// Source: a text for people.
    Status = 34,
    /// Source: the end of the run; `sequence` is the number of fragments sent.
    End = 35,
    /// Source: it lives.
    Here = 36,
}

impl Kind {
    /// `None` if there is no such kind.
    pub(crate) const fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Greeting,
            2 => Self::Challenge,
            3 => Self::Proof,
            4 => Self::Welcome,
            5 => Self::Refused,
            16 => Self::Start,
            17 => Self::Stop,
            18 => Self::Xoff,
            19 => Self::Xon,
            20 => Self::Ask,
            21 => Self::Single,
            32 => Self::Fragment,
            33 => Self::Idle,
            34 => Self::Status,
            35 => Self::End,
            36 => Self::Here,
            _ => return None,
        })
    }
}

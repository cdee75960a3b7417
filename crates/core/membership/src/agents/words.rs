//! What run control and agents say to each other, as values and as bytes.
//!
//! Numbers are little-endian. A text has its length before it, in 16 bits; a list the number of its items.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use base::ids::{Incarnation, NodeId};
use control::states::State;

/// Run control → agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Run control is there, and its partition is in this state. Sent within each quarter of a lease, and when the state changes.
    Beat(State),
    /// Start an application. Answered by [`Word::Ended`], when that is so.
    Start(Errand),
    /// End what was started so, at once.
    End(u32),
    /// Run control leaves in order, and nobody comes back for what was here.
    Release,
    /// An application that the agent [wants](Word::Wanted) does not start, for this reason.
    Refuse {
        /// Its address.
        node: NodeId,
        /// Why.
        why: String,
    },
}

/// What an application is started for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errand {
    /// By this both know it; never the same again.
    pub number: u32,
    /// Its address.
    pub node: NodeId,
    /// Its life.
    pub life: Incarnation,
    /// Which secret it gets, of those that follow from the one that the agent knows: what [`fingerprint`] says of it. The secret
    /// itself does not travel.
    pub secret: [u8; 16],
    /// `sfi-1`.
    pub name: String,
    /// Where run control listens for it.
    pub join: String,
    /// Further options of its command line.
    pub options: Vec<String>,
}

/// Agent → run control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// The agent is there. Within each quarter of a lease, unless so much waits already.
    Beat(Beat),
    /// An application has ended, or was not started.
    Ended {
        /// That of its errand.
        number: u32,
        /// How.
        how: String,
    },
    /// Somebody at its host has ended an application, which is to stay away until it is wanted.
    Stopped {
        /// That of its errand.
        number: u32,
        /// By whom.
        how: String,
    },
    /// Somebody at its host wants an application back that was [stopped](Word::Stopped) there.
    Wanted(NodeId),
    /// Where the agent listens for run control that comes back.
    Listens(String),
    /// Who lives here, as run control is told that comes back.
    Census(Census),
    /// Where the agent shows what it measures.
    Shows(String),
}

/// What an agent knows of its applications when run control comes back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Since it heard run control last.
    pub silent: Duration,
    /// Those that live.
    pub living: Vec<Living>,
    /// The last lives of those that do not.
    pub ended: Vec<Ended>,
}

/// An application that lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Living {
    /// That of its errand.
    pub number: u32,
    /// Its address.
    pub node: NodeId,
    /// Its life.
    pub life: Incarnation,
}

/// An application that has ended, or was not started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its address.
    pub node: NodeId,
    /// Its life.
    pub life: Incarnation,
    /// How.
    pub how: String,
    /// Whether somebody at its host has ended it, and it is to stay away until it is wanted.
    pub is_stopped: bool,
}

/// What an agent sees of its applications.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beat {
    /// Beats that were left out, as others still waited to go out.
    pub left_out: u32,
    /// Processor time of each application that lives, in µs.
    pub cpu_us: Vec<(u32, u64)>,
}

/// Bytes that are no such word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("what came is not of this protocol")]
pub struct NotAWord;

/// What tells one secret of a run from another, and nothing else of it.
pub fn fingerprint(secret: &crate::run_secret::RunSecret) -> [u8; 16] {
    let [a @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] =
        secret.key_for("weir 2026 which secret an application gets");
    a
}

impl Order {
    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Writer(Vec::new());
        match self {
            Self::Beat(state) => bytes.put(&[0, position(*state)]),
            Self::Start(errand) => {
                let Errand { number, node, life, secret, name, join, options } = errand;
                bytes
                    .put(&[1])
                    .put(&number.to_le_bytes())
                    .put(&node.0.to_le_bytes())
                    .put(&life.0.to_le_bytes())
                    .put(secret);
                bytes.text(name).text(join).len(options.len());
                options.iter().for_each(|option| _ = bytes.text(option));
                &mut bytes
            }
            Self::End(number) => bytes.put(&[2]).put(&number.to_le_bytes()),
            Self::Refuse { node, why } => bytes.put(&[3]).put(&node.0.to_le_bytes()).text(why),
            Self::Release => bytes.put(&[4]),
        };
        bytes.0
    }

    /// From bytes.
    ///
    /// # Errors
    /// They are none, to the last one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NotAWord> {
        let mut bytes = Reader(bytes);
        let order = match bytes.take::<1>()? {
            [0] => {
                let [position] = bytes.take()?;
                Self::Beat(*State::ALL.get(usize::from(position)).ok_or(NotAWord)?)
            }
            [1] => Self::Start(Errand {
                number: u32::from_le_bytes(bytes.take()?),
                node: bytes.node()?,
                life: bytes.life()?,
                secret: bytes.take()?,
                name: bytes.text()?,
                join: bytes.text()?,
                options: bytes.list(Reader::text)?,
            }),
            [2] => Self::End(u32::from_le_bytes(bytes.take()?)),
            [3] => Self::Refuse { node: NodeId(u16::from_le_bytes(bytes.take()?)), why: bytes.text()? },
            [4] => Self::Release,
            _ => return Err(NotAWord),
        };
        bytes.end(order)
    }
}

impl Word {
    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Writer(Vec::new());
        match self {
            Self::Beat(Beat { left_out, cpu_us }) => {
                bytes.put(&[0]).put(&left_out.to_le_bytes()).len(cpu_us.len());
                for (number, us) in cpu_us {
                    bytes.put(&number.to_le_bytes()).put(&us.to_le_bytes());
                }
            }
            Self::Ended { number, how } => _ = bytes.put(&[1]).put(&number.to_le_bytes()).text(how),
            Self::Stopped { number, how } => _ = bytes.put(&[2]).put(&number.to_le_bytes()).text(how),
            Self::Wanted(node) => _ = bytes.put(&[3]).put(&node.0.to_le_bytes()),
            Self::Listens(address) => _ = bytes.put(&[4]).text(address),
            Self::Shows(address) => _ = bytes.put(&[6]).text(address),
            Self::Census(Census { silent, living, ended }) => {
                let silent_us = u64::try_from(silent.as_micros()).unwrap_or(u64::MAX);
                bytes.put(&[5]).put(&silent_us.to_le_bytes()).len(living.len());
                for Living { number, node, life } in living {
                    bytes.put(&number.to_le_bytes()).put(&node.0.to_le_bytes()).put(&life.0.to_le_bytes());
                }
                bytes.len(ended.len());
                for Ended { node, life, how, is_stopped } in ended {
                    bytes.put(&node.0.to_le_bytes()).put(&life.0.to_le_bytes()).put(&[u8::from(*is_stopped)]).text(how);
                }
            }
        }
        bytes.0
    }

    /// From bytes.
    ///
    /// # Errors
    /// They are none, to the last one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NotAWord> {
        let mut bytes = Reader(bytes);
        let word = match bytes.take::<1>()? {
            [0] => Self::Beat(Beat {
                left_out: u32::from_le_bytes(bytes.take()?),
                cpu_us: bytes
                    .list(|bytes| Ok((u32::from_le_bytes(bytes.take()?), u64::from_le_bytes(bytes.take()?))))?,
            }),
            [1] => Self::Ended { number: u32::from_le_bytes(bytes.take()?), how: bytes.text()? },
            [2] => Self::Stopped { number: u32::from_le_bytes(bytes.take()?), how: bytes.text()? },
            [3] => Self::Wanted(NodeId(u16::from_le_bytes(bytes.take()?))),
            [4] => Self::Listens(bytes.text()?),
            [5] => Self::Census(Census {
                silent: Duration::from_micros(u64::from_le_bytes(bytes.take()?)),
                living: bytes.list(|bytes| {
                    let number = u32::from_le_bytes(bytes.take()?);
                    Ok(Living { number, node: bytes.node()?, life: bytes.life()? })
                })?,
                ended: bytes.list(|bytes| {
                    let (node, life, [is_stopped]) = (bytes.node()?, bytes.life()?, bytes.take()?);
                    Ok(Ended { node, life, is_stopped: is_stopped == 1, how: bytes.text()? })
                })?,
            }),
            [6] => Self::Shows(bytes.text()?),
            _ => return Err(NotAWord),
        };
        bytes.end(word)
    }
}

/// A state travels as its place among all.
fn position(state: State) -> u8 {
    State::ALL.iter().position(|other| *other == state).expect("all states are there") as u8
}

struct Writer(Vec<u8>);

impl Writer {
    fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// The beginning of a text that is too long: such are for people alone.
    fn text(&mut self, text: &str) -> &mut Self {
        let len = text.floor_char_boundary(usize::from(u16::MAX));
        self.len(len).put(&text.as_bytes()[..len])
    }

    fn len(&mut self, len: usize) -> &mut Self {
        self.put(&u16::try_from(len).expect("a host has fewer than 65,536 applications").to_le_bytes())
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], NotAWord> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(NotAWord)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn node(&mut self) -> Result<NodeId, NotAWord> {
        Ok(NodeId(u16::from_le_bytes(self.take()?)))
    }

    fn life(&mut self) -> Result<Incarnation, NotAWord> {
        Ok(Incarnation(u32::from_le_bytes(self.take()?)))
    }

    fn text(&mut self) -> Result<String, NotAWord> {
        let len = usize::from(u16::from_le_bytes(self.take()?));
        let (text, rest) = self.0.split_at_checked(len).ok_or(NotAWord)?;
        self.0 = rest;
        core::str::from_utf8(text).map(Into::into).map_err(|_| NotAWord)
    }

    /// Grows as items come, not as their number claims.
    fn list<T>(&mut self, item: impl Fn(&mut Self) -> Result<T, NotAWord>) -> Result<Vec<T>, NotAWord> {
        (0..u16::from_le_bytes(self.take()?)).map(|_| item(self)).collect()
    }

    fn end<T>(&self, value: T) -> Result<T, NotAWord> {
        if self.0.is_empty() { Ok(value) } else { Err(NotAWord) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_secret::RunSecret;
    use alloc::borrow::ToOwned;
    use alloc::vec;

    fn errand() -> Errand {
        Errand {
            number: 7,
            node: NodeId(300),
            life: Incarnation(2),
            secret: [9; 16],
            name: "sfi-1".to_owned(),
            join: "10.0.0.1:4000".to_owned(),
            options: vec!["--trace".to_owned(), String::new()],
        }
    }

    #[test]
    fn words_are_heard_as_they_are_said_and_nothing_else_is() {
        let refusal = Order::Refuse { node: NodeId(300), why: "it lives".to_owned() };
        let beats = State::ALL.map(Order::Beat);
        for order in beats.into_iter().chain([Order::Start(errand()), Order::End(7), Order::Release, refusal]) {
            let bytes = order.to_bytes();
            assert_eq!(Order::from_bytes(&bytes), Ok(order));
            (0..bytes.len()).for_each(|len| assert_eq!(Order::from_bytes(&bytes[..len]), Err(NotAWord)));
            assert_eq!(Order::from_bytes(&[&bytes[..], &[0]].concat()), Err(NotAWord));
        }
        let beat = Beat { left_out: 3, cpu_us: vec![(7, 1 << 40), (8, 0)] };
        let (ended, stopped) = ("killed by SIGKILL".to_owned(), "by the agent".to_owned());
        let living = vec![Living { number: 7, node: NodeId(300), life: Incarnation(2) }];
        let (node, life) = (NodeId(1), Incarnation::FIRST);
        let old = Ended { node, life, how: "killed by SIGKILL".to_owned(), is_stopped: false };
        let census = Census {
            silent: Duration::from_millis(250),
            living,
            ended: vec![Ended { is_stopped: true, ..old.clone() }, old],
        };
        let shows = Word::Shows("10.0.0.2:9100".to_owned());
        let more = [Word::Census(census), Word::Listens("10.0.0.2:4000".to_owned()), shows];
        let ends = [Word::Ended { number: 7, how: ended }, Word::Stopped { number: 7, how: stopped }];
        for word in ends.into_iter().chain([Word::Beat(beat), Word::Wanted(NodeId(300))]).chain(more) {
            let bytes = word.to_bytes();
            assert_eq!(Word::from_bytes(&bytes), Ok(word));
            (0..bytes.len()).for_each(|len| assert_eq!(Word::from_bytes(&bytes[..len]), Err(NotAWord)));
        }
        assert_eq!(Order::from_bytes(&[5]), Err(NotAWord));
        assert_eq!(Order::from_bytes(&[0, 9]), Err(NotAWord), "no state");
        assert_eq!(Word::from_bytes(&[1, 0, 0, 0, 0, 1, 0, 0xff]), Err(NotAWord), "no text");
    }

    #[test]
    fn a_text_that_is_too_long_is_cut() {
        let how: String = core::iter::repeat_n('µ', 40_000).collect();
        let Word::Ended { how: heard, .. } = Word::from_bytes(&Word::Ended { number: 1, how }.to_bytes()).unwrap()
        else {
            unreachable!()
        };
        assert_eq!(heard.chars().count(), 32_767);
    }

    #[test]
    fn secrets_have_fingerprints_of_their_own() {
        let secret = RunSecret::new("key", &[1; 16]);
        assert_ne!(fingerprint(&secret), fingerprint(&secret.next()));
    }
}

//! What the two ends tell each other before the first fragment.

use crate::error::Violation;
use crate::kind::Kind;
use crate::proof::{Hash, NONCE_BYTES, Nonce};
use crate::record::{HEAD_BYTES, NAME_BYTES_MAX, RecordHead, TEXT_BYTES_MAX};

/// Who a source is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    /// The version of the protocol that it speaks.
    pub version: u32,
    /// Its source identifier, if it knows it.
    pub id: Option<u32>,
    /// A number that it has drawn.
    pub nonce: Nonce,
    /// Its name.
    pub name: String,
}

impl Greeting {
    /// As a record.
    pub fn encode(&self) -> Vec<u8> {
        let words = [self.version, self.id.is_some().into(), self.id.unwrap_or_default()];
        let body = words.iter().flat_map(|word| word.to_le_bytes()).chain(self.nonce).chain(self.name.bytes());
        record(Kind::Greeting, 0, &body.collect::<Vec<u8>>())
    }

    /// From what follows the head.
    ///
    /// # Errors
    /// What is no greeting of version 1.
    pub fn decode(body: &[u8]) -> Result<Self, Violation> {
        let length = Violation::Length { kind: Kind::Greeting, len: body.len() as u64, expected: "45 to 108" };
        let (words, rest) = body.split_first_chunk::<12>().ok_or(length)?;
        let [version, has_id, id] = words_of(words);
        if version != crate::record::VERSION {
            return Err(Violation::Version { found: version });
        }
        let (nonce, name) = rest.split_first_chunk::<NONCE_BYTES>().ok_or(length)?;
        if !(1..=NAME_BYTES_MAX).contains(&name.len()) {
            return Err(length);
        }
        let id = match (has_id, id) {
            (0, 0) => None,
            (1, id) => Some(id),
            _ => return Err(Violation::Unannounced),
        };
        Ok(Self { version, id, nonce: *nonce, name: text(Kind::Greeting, name)? })
    }
}

/// What a source is told when it may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Proof that the intake knows the key; `None` if it has none.
    pub proof: Option<Hash>,
    /// The longest payload in bytes.
    pub size_max: u32,
    /// The memory, over shared memory.
    pub memory: Option<MemorySizes>,
    /// The run.
    pub run: u32,
}

/// How shared memory is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySizes {
    /// Length of each page in bytes.
    pub page_len: u32,
    /// Number of pages.
    pub pages: u32,
    /// Bytes of a page before the payload.
    pub headroom: u32,
    /// Entries of each ring, a power of two.
    pub ring: u32,
}

impl Welcome {
    /// As a record.
    pub fn encode(&self) -> Vec<u8> {
        let MemorySizes { page_len, pages, headroom, ring } = self.memory.unwrap_or(NO_MEMORY);
        let words = [self.proof.is_some().into(), self.size_max, page_len, pages, headroom, ring];
        let body = words.iter().flat_map(|word| word.to_le_bytes()).chain(self.proof.unwrap_or_default());
        record(Kind::Welcome, self.run, &body.collect::<Vec<u8>>())
    }

    /// From a record.
    ///
    /// # Errors
    /// What is no welcome of version 1.
    pub fn decode(head: &RecordHead, body: &[u8]) -> Result<Self, Violation> {
        let length = Violation::Length { kind: Kind::Welcome, len: body.len() as u64, expected: "56" };
        let body: &[u8; 56] = body.try_into().map_err(|_| length)?;
        let (words, hash) = body.split_first_chunk::<24>().ok_or(length)?;
        let [is_proven, size_max, page_len, pages, headroom, ring] = words_of(words);
        let hash: Hash = hash.try_into().map_err(|_| length)?;
        let proof = match is_proven {
            0 if hash == Hash::default() => None,
            1 => Some(hash),
            _ => return Err(Violation::Unannounced),
        };
        let memory = MemorySizes { page_len, pages, headroom, ring };
        Ok(Self { proof, size_max, memory: (memory != NO_MEMORY).then_some(memory), run: head.run })
    }
}

const NO_MEMORY: MemorySizes = MemorySizes { page_len: 0, pages: 0, headroom: 0, ring: 0 };

/// A refusal; `is_worth_another_try` of a place that is taken for now.
pub fn refusal(why: &str, is_worth_another_try: bool) -> Vec<u8> {
    let why = &why[..why.floor_char_boundary(TEXT_BYTES_MAX)];
    let head = RecordHead { aux: is_worth_another_try.into(), ..RecordHead::plain(Kind::Refused, why.len() as u32) };
    let mut bytes = head.encode().to_vec();
    bytes.extend_from_slice(why.as_bytes());
    bytes
}

/// A record with this body.
///
/// # Panics
/// If the body is longer than 4 GiB.
pub fn record(kind: Kind, run: u32, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len()).expect("what is said beside fragments is short");
    let mut bytes = Vec::with_capacity(HEAD_BYTES + body.len());
    bytes.extend_from_slice(&RecordHead { run, ..RecordHead::plain(kind, len) }.encode());
    bytes.extend_from_slice(body);
    bytes
}

/// The text of a record of this kind.
///
/// # Errors
/// What is not UTF-8.
pub fn text(kind: Kind, body: &[u8]) -> Result<String, Violation> {
    core::str::from_utf8(body).map(str::to_owned).map_err(|_| Violation::Text { kind })
}

fn words_of<const N: usize>(bytes: &[u8]) -> [u32; N] {
    let (words, _) = bytes.as_chunks::<4>();
    core::array::from_fn(|word| u32::from_le_bytes(words[word]))
}

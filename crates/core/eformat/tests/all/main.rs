//! The format: what is written is read, known words keep their meaning, damage is named.

mod common;
mod corpus;
mod golden;
mod meaning;
mod robustness;
mod roundtrip;
mod vectors;

//! Tests that check the tree itself; there is no code in here to use. See the files in `tests/tidy/`:
//!
//! | file | checks |
//! |---|---|
//! | `purity.rs` | the crate `dataflow` has no I/O, clock, thread, entropy or unsafe code |
//! | `dependencies.rs` | the direction of dependencies between crates; licences and origin of all others |
//! | `sources.rs` | what every crate and every source file keeps to |
//! | `structure.rs` | crates stay small, and their files use each other one way |
//! | `documents.rs` | links and examples named in documents exist |
//! | `sentences.rs` | sentences of documents and comments are short |
#![forbid(unsafe_code)]

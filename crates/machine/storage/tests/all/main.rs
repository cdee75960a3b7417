//! Files on disk: written, damaged, recovered, gone on with.

mod bad_input;
mod common;
mod disk;
mod failures;
mod golden;
mod recovery;
mod resume;
mod writing;

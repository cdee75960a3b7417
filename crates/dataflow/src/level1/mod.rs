//! Level 1: where events begin.

pub mod pace;
pub mod trigger;

//! Checks of the tree itself; each file holds those of one kind.

mod dependencies;
mod documents;
mod purity;
mod sentences;
mod sources;
mod structure;
mod tree;

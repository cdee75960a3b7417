//! The selection on physics samples, by hand-made hits, and on damaged data.

mod agreement;
mod algorithms;
mod common;
mod damage;
mod filter;
mod geography;
mod menu;

//! How messages travel between applications.

use super::setup::Links;

/// The way of messages.
pub enum Wire {
    /// Every pair alike, with faults drawn for each message; `slow` says which pairs take much longer than the others.
    Links {
        /// What every pair has.
        links: Links,
        /// Fraction of pairs that are slow.
        slow: f64,
    },
}

//! The words of every part of Weir: [`time`], identities ([`ids`]), bulk data ([`bulk`]), where it is found by event
//! ([`event_manager`]), events in hand ([`event_map`]). There are also repeatable [`random`] numbers, [`histogram`]s,
//! [`losses`] of devices, [`sources`] at the ends of links, and which events are shown ([`sampling`]).
//!
//! Everything here is a value. Nothing does I/O, reads a clock or draws a number that a seed does not fix.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bulk;
pub mod causes;
pub mod event_manager;
pub mod event_map;
pub mod histogram;
pub mod ids;
pub mod losses;
pub mod numbered;
pub mod random;
pub mod sampling;
pub mod several;
pub mod sources;
pub mod time;

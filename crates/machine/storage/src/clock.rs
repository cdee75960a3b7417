//! Wall-clock time and identities of new files: the only places where this crate asks the host for them.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{Datelike, Local, Timelike};
use eformat::{Date, Guid, Stamp, Time};

/// Now, in local time of this host, as the records of a file hold it (format note §11.1).
///
/// # Panics
///
/// If the clock of the host is outside the years 1 to 9999.
#[expect(clippy::disallowed_methods, reason = "the one place where this crate asks for the date of a record")]
pub fn local_stamp() -> Stamp {
    let now = Local::now();
    let year = u32::try_from(now.year()).ok();
    let date = year.and_then(|year| Date::new(now.day(), now.month(), year));
    let time = Time::new(now.hour(), now.minute(), now.second());
    Stamp {
        date: date.expect("the host clock is within the years 1 to 9999"),
        time: time.expect("a clock shows a time of the day"),
    }
}

/// A new time-based GUID (format note §11.3). The node part is random, so that hosts need no identity.
#[expect(clippy::disallowed_methods, reason = "a time-based identity; nothing depends on its value")]
pub fn fresh_guid() -> Guid {
    static SEQUENCE: AtomicU16 = AtomicU16::new(0);
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ticks = TICKS_1582_TO_1970 + (since_1970.as_nanos() / 100) as u64;
    let random = RandomState::new().hash_one(std::process::id()).to_le_bytes();
    let node = [random[0] | MULTICAST_BIT, random[1], random[2], random[3], random[4], random[5]];
    Guid::time_based(ticks, SEQUENCE.fetch_add(1, Ordering::Relaxed), node)
}

/// 100 ns ticks between the origins of UUID time and unix time.
const TICKS_1582_TO_1970: u64 = 0x01b2_1dd2_1381_4000;
/// Marks a node part that is no hardware address.
const MULTICAST_BIT: u8 = 1;

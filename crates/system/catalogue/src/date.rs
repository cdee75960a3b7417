//! When something is written down.

use std::time::SystemTime;

/// The date and the time of day, for those who keep runs.
#[expect(
    clippy::disallowed_methods,
    reason = "services and commands are the drivers of the catalogue, which takes dates as data"
)]
pub fn now() -> SystemTime {
    SystemTime::now()
}

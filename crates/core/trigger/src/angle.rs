//! Azimuth differences.

use std::f64::consts::{PI, TAU};

/// The same angle in [−π, π).
pub(crate) fn wrap(angle: f64) -> f64 {
    (angle + PI).rem_euclid(TAU) - PI
}

//! How many ports an event builder needs [ATM1997 §II-A, Fig. 2].

/// The size of the event builder [ATM1997 eq. 1, 2]: N = E / F, with fragments F = kT / f.
pub fn ports(event_bytes: f64, trigger_hz: f64, load: f64, link_bytes_per_s: f64) -> f64 {
    event_bytes / fragment_bytes(trigger_hz, load, link_bytes_per_s)
}

/// The largest fragments that a link carries at this rate of triggers [ATM1997 eq. 1].
pub fn fragment_bytes(trigger_hz: f64, load: f64, link_bytes_per_s: f64) -> f64 {
    load * link_bytes_per_s / trigger_hz
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_paper() {
        // "an event builder of 100 X 100", "an event fragment size of 10 KByte"
        assert!((ports(1e6, 1e3, 0.6, 16.8e6) / 100.0 - 1.0).abs() < 0.01);
        assert!((fragment_bytes(1e3, 0.6, 16.8e6) / 10e3 - 1.0).abs() < 0.01);
    }
}

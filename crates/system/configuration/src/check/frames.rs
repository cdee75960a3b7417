//! What devices demand that know nothing of Weir: `[source.frame]` and `source.from`.

use super::Checker;
use crate::tables::{FrameDescription, FrameField, LinkSource};

impl Checker<'_> {
    /// Whether there is a description, and what is wrong with it.
    pub(super) fn device(&mut self, place: usize, source: &LinkSource) {
        let key = |key: &str| format!("source.{place}.{key}");
        let at = source.address();
        let sends_datagrams = at.starts_with("udp://");
        let is_slink = at.starts_with("slink://");
        let is_device = sends_datagrams || is_slink || at.starts_with("file:");
        if source.from.is_some() && !sends_datagrams && !is_slink {
            let message =
                format!("only for a board or an S-LINK, whose `at` begins with udp:// or slink://, found {at:?}");
            self.problem(&[&key("from"), &key("at")], message);
        }
        let frame = match &source.frame {
            Some(frame) if is_device => frame,
            Some(_) => {
                let message = format!(
                    "only for a device that knows nothing of Weir, whose `at` begins with udp://, slink:// or file:, found {at:?}: \
                     a program says itself what it sends"
                );
                return self.problem(&[&key("frame"), &key("at")], message);
            }
            None if is_device => {
                let message = "missing; a device does not say what it sends: expected [source.frame], such as { header = 16, \
                               counter = { at = 0, width = 4 } }";
                return self.problem(&[&key("frame"), &key("at")], message.to_owned());
            }
            None => return,
        };
        if is_slink && (frame.size.is_some() || frame.length.is_some()) {
            let message = "not for an S-LINK: its control words say where a block ends".to_owned();
            self.problem(&[&key("frame"), &key("at")], message);
        }
        self.frame(&key("frame"), frame, source.size_max.bytes());
    }

    fn frame(&mut self, key: &str, frame: &FrameDescription, size_max: u64) {
        let longest = if frame.strip { size_max.saturating_add(frame.header.into()) } else { size_max };
        let mut fields: Vec<(String, FrameField)> = Vec::new();
        fields.extend(frame.counter.iter().map(|counter| (format!("{key}.counter"), counter.field())));
        fields.extend(frame.length.iter().map(|length| (format!("{key}.length"), length.field())));
        let times = frame.time.iter().enumerate();
        fields.extend(times.map(|(place, ticks)| (format!("{key}.time.{place}"), ticks.field())));
        for (key, field) in &fields {
            self.field(key, *field, frame.header);
        }
        if let (Some(counter), true) = (frame.counter, fields.iter().all(|(_, field)| (1..=8).contains(&field.width))) {
            let values = 1_u128 << (8 * counter.width);
            if counter.modulus.is_some_and(|modulus| !(2..=values).contains(&modulus.into())) {
                let message = format!("expected 2 to {values}, as many as the counter has values");
                self.problem(&[&format!("{key}.counter.modulus")], message);
            }
        }
        if frame.length.is_some_and(|length| length.unit == 0) {
            self.problem(&[&format!("{key}.length.unit")], "expected at least 1".to_owned());
        }
        for (place, ticks) in frame.time.iter().enumerate() {
            let key = format!("{key}.time.{place}");
            if ticks.unit.is_some() && ticks.clock.is_some() {
                let message = "expected either the unit or the clock, found both".to_owned();
                self.problem(&[&format!("{key}.clock"), &format!("{key}.unit")], message);
            }
            if ticks.clock.is_some_and(|clock| clock.millihertz() == 0) {
                self.problem(&[&format!("{key}.clock")], "expected a clock that ticks".to_owned());
            }
            if ticks.unit.is_some_and(|unit| unit.ns() == 0) {
                self.problem(&[&format!("{key}.unit")], "expected a time, such as \"16 ns\"".to_owned());
            }
        }
        if frame.length.is_some() && frame.size.is_some() {
            let message =
                "expected either `length`, or `size` where all frames are equally long, found both".to_owned();
            self.problem(&[&format!("{key}.size"), &format!("{key}.length")], message);
        }
        let least = u64::from(frame.header.max(1));
        if frame.size.is_some_and(|size| !(least..=longest.max(least)).contains(&size.bytes())) {
            let message =
                format!("expected {least} to {longest} bytes: at least the header, at most size_max of the source");
            self.problem(&[&format!("{key}.size")], message);
        }
        if u64::from(frame.header) > longest {
            let message = format!("expected at most size_max of the source, {size_max} bytes, found {}", frame.header);
            self.problem(&[&format!("{key}.header")], message);
        }
    }

    fn field(&mut self, key: &str, field: FrameField, header: u32) {
        if !(1..=8).contains(&field.width) {
            let message = format!("expected 1 to 8 bytes, found {}", field.width);
            self.problem(&[&format!("{key}.width")], message);
        } else if u64::from(field.at) + u64::from(field.width) > header.into() {
            let message = format!(
                "expected a field within the header of {header} bytes, found one of bytes {} to {}",
                field.at,
                u64::from(field.at) + u64::from(field.width) - 1
            );
            self.problem(&[&format!("{key}.at")], message);
        }
    }
}

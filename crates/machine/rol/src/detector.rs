//! A detector that is not there: a source whose data are made up, or come from the input of a configuration.

mod beam;
mod played;
mod processor;
mod traits;

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use base::random::Random;
use base::time::Time;
use configuration::SizeSpread;
use transport::clock;
use weir_source::{Failure, Flags, Head, Reading, Source};

use beam::Beam;
use played::Payload;
pub use played::{Played, PlayedError, in_words};
use processor::Processor;
pub use traits::{Beams, Chunks, Content, Hook, Mistakes, Pace, SinceT0, Traits};

/// A source that needs no detector. What it sends in a run depends on its [`Traits`] alone; a second run is as the first one.
pub struct Detector {
    traits: Traits,
    /// Events whose fragment is still to be sent a second time.
    double: Vec<u64>,
    /// Of the next fragment.
    number: u64,
    beam: Option<Beam>,
    processor: Option<Processor>,
    /// When T0 was said.
    t0: Option<Time>,
    begun: Time,
    /// The same in ns since 1970.
    origin: u64,
    /// Whether it has said when the next chunk begins.
    has_said: bool,
    sent_in_run: u64,
    /// When it was told to stop: later ones it does not see.
    stopped: Option<Time>,
    /// Writes each fragment down, too.
    record: Option<Box<dyn Write + Send>>,
    /// Is called before each fragment.
    before: Option<Hook>,
}

impl Detector {
    /// One with these traits.
    pub fn new(traits: Traits) -> Self {
        Self {
            double: Vec::new(),
            number: traits.first,
            beam: None,
            processor: None,
            t0: None,
            begun: clock::now(),
            origin: unix_ns(),
            has_said: false,
            sent_in_run: 0,
            stopped: None,
            record: None,
            before: None,
            traits,
        }
    }

    /// The same, that writes each fragment down, too, with all numbers little-endian: the number of the event (8 bytes), unless it sends
    /// chunks. With these and in a beam follow begin and end (8 bytes each). Then follow its length (4 bytes) and the payload.
    #[must_use]
    pub fn recorded_to(self, record: Box<dyn Write + Send>) -> Self {
        Self { record: Some(record), ..self }
    }

    /// The same, that calls a function with the event before each fragment.
    #[must_use]
    pub fn calling(self, before: Hook) -> Self {
        Self { before: Some(before), ..self }
    }

    /// What time it is for the detector, since the run began, ns.
    fn elapsed(&self) -> u64 {
        let now = self.stopped.unwrap_or_else(clock::now);
        u64::try_from(now.since(self.begun).as_nanos()).unwrap_or(u64::MAX)
    }

    fn ordinal(&self, number: u64) -> u64 {
        number - self.traits.first
    }

    /// Whether the next fragment is due.
    fn is_due(&mut self) -> bool {
        let (pace, elapsed, ordinal) = (self.traits.pace, self.elapsed(), self.ordinal(self.number));
        match (pace, &mut self.beam) {
            (Pace::Trigger, Some(beam)) if self.stopped.is_none() => elapsed >= beam.trigger(ordinal),
            (Pace::Beam { delay_ns }, Some(beam)) => {
                let delay_ns = if self.stopped.is_some() { 0 } else { delay_ns };
                elapsed >= beam.trigger(ordinal).saturating_add(delay_ns)
            }
            // What comes without end is not kept.
            _ if self.stopped.is_some() => false,
            (Pace::Every { period_ns }, _) => {
                let vetoed = self.processor.as_ref().map_or(0, Processor::vetoed);
                u128::from(elapsed) >= u128::from(period_ns) * u128::from(self.sent_in_run + vetoed)
            }
            (Pace::Free | Pace::Trigger | Pace::Beam { .. }, _) => true,
        }
    }

    /// When the chunk of this number begins and ends.
    fn time_of(&self, chunks: &Chunks, number: u64) -> (u64, u64) {
        let begin = self.origin.saturating_add(chunks.every_ns.max(1).saturating_mul(self.ordinal(number)));
        (begin, begin.saturating_add(chunks.length_ns))
    }

    /// What it says while no chunk is due; `None` if one is.
    fn wait_for_time(&mut self, chunks: &Chunks) -> Option<Reading> {
        let (begin, end) = self.time_of(chunks, self.number);
        if chunks.silent_from.is_some_and(|from| self.number >= from) {
            return Some(Reading::Nothing);
        }
        let delay_ns = if self.stopped.is_some() { 0 } else { chunks.delay_ns };
        if self.origin.saturating_add(self.elapsed()) >= end.saturating_add(delay_ns) {
            self.has_said = false;
            return None;
        }
        let says = !std::mem::replace(&mut self.has_said, true);
        Some(if says { Reading::Passed(begin) } else { Reading::Nothing })
    }

    /// Whether it has still to say that T0 has come.
    fn awaits_t0(&self) -> bool {
        self.traits.t0.is_some_and(|t0| self.t0.is_none() && self.sent_in_run >= t0.after)
    }

    /// What it says of a fragment.
    fn head(&mut self, number: u64) -> Head {
        let mut head = Head { number: Some(self.said(number)).filter(|_| self.traits.has_numbers), ..Head::default() };
        if self.traits.t0.is_some() {
            let since = clock::now().since(self.t0.unwrap_or(Time::ZERO)).as_nanos() as u64;
            head.time = Some((since, since));
        }
        head.flags.set(Flags::CRC, self.traits.checksum);
        if let Some(chunks) = &self.traits.chunks {
            head.time = Some(self.time_of(chunks, number));
        } else if self.traits.checksum && head.time.is_none() {
            head.time = Some((clock::now().as_ns(), clock::now().as_ns()));
        }
        let ordinal = self.ordinal(number);
        if let (Some(beam), Some(beams)) = (&mut self.beam, &self.traits.beam) {
            let time = beam.time_of(number, ordinal, beams);
            head.time = Some((time, time));
        }
        head
    }

    /// The trigger of an event; those that came while it could not be sent are vetoed.
    fn trigger(&mut self, number: u64, slot: &mut [u8]) -> Reading {
        let due = match self.traits.pace {
            Pace::Every { period_ns } => self.elapsed() / period_ns.max(1),
            Pace::Free | Pace::Trigger | Pace::Beam { .. } => 0,
        };
        let (waiting, ordinal) = (due.saturating_sub(self.sent_in_run), self.ordinal(number));
        let processor = self.processor.as_mut().expect("a processor");
        let Some((mut head, len)) = processor.trigger((number, ordinal), waiting, slot) else {
            return Reading::End;
        };
        head.number = Some(self.said(number));
        head.flags.set(Flags::CRC, self.traits.checksum);
        Reading::Committed(head, len)
    }

    /// Writes the payload of an event: what is played, or made up.
    fn payload(&mut self, number: u64, slot: &mut [u8]) -> Result<Payload, Failure> {
        let ordinal = self.ordinal(number);
        match &mut self.traits.content {
            Content::Played(played) => played.payload(ordinal, slot),
            Content::MadeUp { mean_bytes, spread } => {
                let random = Random::new(self.traits.seed ^ number.wrapping_mul(PAYLOAD_SEED));
                Ok(Payload::Bytes(fill(random, *mean_bytes, *spread, slot), false))
            }
            Content::Triggers(_) => unreachable!("triggers have no payload"),
        }
    }

    /// Whether it sees an event.
    fn sees(&self, number: u64) -> bool {
        let efficiency = self.traits.efficiency.as_f64();
        efficiency >= 1.0 || Random::new(self.traits.seed ^ number.wrapping_mul(SIGHT_SEED)).chance(efficiency)
    }

    fn is_behind(&self, number: u64) -> bool {
        self.traits.count.is_some_and(|count| number >= self.traits.first.saturating_add(count))
    }

    /// The number that it says of an event.
    fn said(&self, number: u64) -> u64 {
        let Traits { mistakes, counts_from, number_bits, .. } = &self.traits;
        let before = |events: &[u64]| events.iter().filter(|event| **event <= number).count() as u64;
        let said = (number + before(&mistakes.skip_number)).saturating_sub(before(&mistakes.repeat_number));
        said.wrapping_add_signed(*counts_from) & (u64::MAX >> (u64::BITS - number_bits))
    }

    /// What it says of the next event; `None` if that has no data.
    fn next(&mut self, slot: &mut [u8]) -> Result<Option<Reading>, Failure> {
        let number = self.number;
        if self.is_behind(number) {
            return Ok(Some(Reading::End));
        }
        if self.awaits_t0() {
            self.t0 = Some(clock::now());
            return Ok(Some(Reading::Passed(0)));
        }
        if let Some(chunks) = self.traits.chunks.clone() {
            if let Some(waits) = self.wait_for_time(&chunks) {
                return Ok(Some(waits));
            }
        } else if !self.is_due() {
            return Ok(Some(Reading::Nothing));
        }
        if self.traits.mistakes.skip.contains(&number) || !self.sees(number) {
            self.number += 1;
            return Ok(None);
        }
        self.before.iter_mut().for_each(|before| before(number));
        if self.processor.is_some() {
            let reading = self.trigger(number, slot);
            if !matches!(reading, Reading::End) {
                self.go_on(number);
            }
            return Ok(Some(reading));
        }
        let (len, is_cut) = match self.payload(number, slot)? {
            Payload::Bytes(len, is_cut) => (len, is_cut),
            Payload::End => return Ok(Some(Reading::End)),
            Payload::Absent => {
                self.number += 1;
                return Ok(None);
            }
        };
        self.fragment(number, &slot[..len], is_cut).map(Some)
    }

    /// What it says of this payload of an event.
    fn fragment(&mut self, number: u64, payload: &[u8], is_cut: bool) -> Result<Reading, Failure> {
        let mut head = self.head(number);
        head.flags.set(Flags::CUT, is_cut);
        self.write_down(number, &head, payload)?;
        head.flags.set(Flags::TRANSMISSION_ERROR, self.traits.mistakes.damage.contains(&number));
        self.go_on(number);
        Ok(Reading::Committed(head, payload.len()))
    }

    /// That nothing comes of the events before the next one, where numbers say that.
    fn passes(&self) -> Reading {
        let Traits { has_numbers, t0, number_bits, .. } = &self.traits;
        let says = *has_numbers && t0.is_none() && *number_bits == u64::BITS;
        if says { Reading::Idle(self.said(self.number)) } else { Reading::Nothing }
    }

    /// To the next fragment.
    fn go_on(&mut self, number: u64) {
        self.sent_in_run += 1;
        match self.double.iter().position(|event| *event == number) {
            Some(place) => drop(self.double.swap_remove(place)),
            None => self.number += 1,
        }
    }

    fn write_down(&mut self, number: u64, head: &Head, payload: &[u8]) -> io::Result<()> {
        let has_time = self.traits.chunks.is_some() || self.beam.is_some();
        let Some(record) = &mut self.record else { return Ok(()) };
        if self.traits.chunks.is_none() {
            record.write_all(&number.to_le_bytes())?;
        }
        if let Some((begin, end)) = head.time.filter(|_| has_time) {
            record.write_all(&begin.to_le_bytes())?;
            record.write_all(&end.to_le_bytes())?;
        }
        record.write_all(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes())?;
        record.write_all(payload)
    }
}

impl Source for Detector {
    fn start(&mut self, _: u32) -> Result<(), Failure> {
        let traits = &self.traits;
        self.number = traits.first;
        self.beam = traits.beam.as_ref().map(|beams| Beam::new(beams, traits.seed));
        self.processor = match &traits.content {
            Content::Triggers(triggers) => Some(Processor::new(triggers())),
            Content::MadeUp { .. } | Content::Played(_) => None,
        };
        self.double = traits.mistakes.double.iter().copied().collect();
        (self.sent_in_run, self.stopped, self.t0, self.has_said) = (0, None, None, false);
        (self.begun, self.origin) = (clock::now(), unix_ns());
        Ok(())
    }

    fn read(&mut self, slot: &mut [u8]) -> Result<Reading, Failure> {
        // Whatever is due at the stop is read until nothing is there.
        let together = if self.stopped.is_some() { u64::MAX } else { ABSENT_TOGETHER };
        for absent in 0..together {
            match self.next(slot)? {
                Some(Reading::Nothing) if absent > 0 => break,
                Some(reading) => return Ok(reading),
                None => {}
            }
        }
        Ok(self.passes())
    }

    fn stop(&mut self) -> Result<(), Failure> {
        self.stopped = Some(clock::now());
        match &mut self.record {
            Some(record) => Ok(record.flush()?),
            None => Ok(()),
        }
    }

    fn status(&mut self) -> String {
        if !self.traits.says_event {
            return String::new();
        }
        match self.processor.as_ref().map_or(0, Processor::vetoed) {
            0 => format!("event {}", self.number),
            vetoed => format!("event {}, {vetoed} triggers vetoed", self.number),
        }
    }
}

/// Makes the payload of an event up, which depends on the event and the seed alone. Gives its length.
fn fill(mut random: Random, mean_bytes: u64, spread: SizeSpread, slot: &mut [u8]) -> usize {
    let size = match spread {
        SizeSpread::Fixed => mean_bytes,
        SizeSpread::Exponential => (mean_bytes as f64 * random.exponential()) as u64,
    };
    let len = usize::try_from(size).unwrap_or(usize::MAX).min(slot.len());
    for bytes in slot[..len].chunks_mut(8) {
        bytes.copy_from_slice(&random.next_u64().to_le_bytes()[..bytes.len()]);
    }
    len
}

/// The time that hosts have in common, as far as they keep it.
#[expect(clippy::disallowed_methods, reason = "the time of an emulated chunk is the wall clock's")]
fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Events without data that are passed over before orders are looked at again.
const ABSENT_TOGETHER: u64 = 1000;
const PAYLOAD_SEED: u64 = 0x9e37_79b9;
const SIGHT_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use configuration::Fraction;
    use weir_source::{Reading, Source};

    use super::{ABSENT_TOGETHER, Beam, Beams, Detector, Pace, Traits};

    #[test]
    fn what_is_delayed_is_sent_at_the_stop_behind_any_number_of_events_without_data() {
        let beams = Beams { seed: 1, mean_ns: 2, jitter_ns: 0, drift_ppm: 0.0, clock_step: None };
        let mut detector = Detector::new(Traits {
            pace: Pace::Beam { delay_ns: u64::MAX },
            efficiency: "0.1 %".parse::<Fraction>().unwrap(),
            has_numbers: false,
            beam: Some(beams.clone()),
            ..Traits::default()
        });
        let mut slot = [0; 1000];
        detector.start(1).unwrap();
        assert!(matches!(detector.read(&mut slot), Ok(Reading::Nothing)));
        while detector.elapsed() < 50_000 {}
        detector.stop().unwrap();
        let (mut beam, until) = (Beam::new(&beams, 1), detector.elapsed());
        let due: Vec<u64> = (0..).take_while(|event| beam.trigger(*event) <= until).collect();
        let sent = (0..).take_while(|_| matches!(detector.read(&mut slot), Ok(Reading::Committed(..)))).count();
        assert!(due.len() as u64 > 10 * ABSENT_TOGETHER, "{}", due.len());
        assert_eq!(sent, due.iter().filter(|event| detector.sees(**event)).count());
    }
}

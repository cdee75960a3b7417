//! Results of level 2 and of the event filter: as fragments of their own, and in the event header.

use eformat::{SourceId, SubDetector, WORD_BYTES, words};
use thiserror::Error;

/// Source identifier of the fragment with the level-2 result.
pub const LEVEL2_RESULT: SourceId = SourceId::new(SubDetector::TDAQ_LVL2, 0);

/// Source identifier of the fragment with the event filter's result.
pub const FILTER_RESULT: SourceId = SourceId::new(SubDetector::TDAQ_HLT, 0);

/// Bytes of a failure's reason in the event filter's result, at most; what is longer is cut.
pub const REASON_BYTES_MAX: usize = 4096;

/// The level-2 decision on an event. Sets of chains have the bit numbers of the menu.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Level-1 items that fired, after prescale.
    pub items: u32,
    /// Chains whose item fired and that were not prescaled away.
    pub input: u64,
    /// Chains that accept the event, those that were passed through included.
    pub passed: u64,
    /// Chains that accept the event whatever they found.
    pub passed_through: u64,
    /// ROBs that were asked for.
    pub requested_robs: u32,
    /// Payload bytes of those that came, without headers.
    pub requested_payload_bytes: u32,
    /// How many times data were asked for.
    pub steps: u32,
    /// ROBs that were asked for and did not come.
    pub missing_robs: u32,
    /// ROBs whose payload was not legal.
    pub bad_payloads: u32,
}

/// The event filter's decision on an event. Sets of chains have the bit numbers of the menu.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilterDecision {
    /// Chains that ran: those that passed level 2.
    pub input: u64,
    /// Chains that accept the event.
    pub passed: u64,
    /// Fragments of the detector and of level 1 that are not in the event.
    pub missing_fragments: u32,
    /// Fragments whose payload was not legal.
    pub bad_payloads: u32,
}

/// What the event filter records with an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilterResult {
    /// The decision; empty if there was none.
    pub decision: FilterDecision,
    /// Why the event could not be processed; empty if it could.
    pub reason: String,
}

/// Why words are not a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadResult {
    /// Another content or version.
    #[error("word 0 of the {result} is {found:#010x}; expected {expected:#010x}")]
    Version {
        /// Of which level.
        result: &'static str,
        /// The word.
        found: u32,
        /// That of the known version.
        expected: u32,
    },
    /// Too few or too many words.
    #[error("the {result} has {found} bytes; expected {expected}")]
    Length {
        /// Of which level.
        result: &'static str,
        /// Its bytes.
        found: usize,
        /// Those that its content has.
        expected: usize,
    },
    /// The length of the reason is out of range.
    #[error(
        "the reason in the event filter's result has {found} bytes (word {REASON_WORD}); expected at most {REASON_BYTES_MAX}"
    )]
    ReasonLength {
        /// Its length.
        found: u32,
    },
    /// The reason is no text.
    #[error("the reason in the event filter's result is not UTF-8, or its padding is not zero")]
    Reason,
    /// Sets of chains that contradict each other.
    #[error("in the {result} chains {chains:#x} accept the event without having run")]
    Chains {
        /// Of which level.
        result: &'static str,
        /// Those chains.
        chains: u64,
    },
}

impl Decision {
    /// Whether the event is accepted.
    #[must_use]
    pub fn accept(&self) -> bool {
        self.passed != 0
    }

    /// The words of the level-2 result fragment.
    #[must_use]
    pub fn to_words(&self) -> [u32; LEVEL2_WORDS] {
        let ([input_low, input_high], [passed_low, passed_high]) = (halves(self.input), halves(self.passed));
        let [through_low, through_high] = halves(self.passed_through);
        [
            LEVEL2_VERSION,
            self.items,
            input_low,
            input_high,
            passed_low,
            passed_high,
            through_low,
            through_high,
            self.requested_robs,
            self.requested_payload_bytes,
            self.steps,
            self.missing_robs,
            self.bad_payloads,
        ]
    }

    /// Reads the payload of a level-2 result fragment.
    ///
    /// # Errors
    /// Another version, another length, or chains that passed without having run.
    pub fn from_bytes(payload: &[u8]) -> Result<Self, BadResult> {
        let result = "level-2 result";
        check_version(result, payload, LEVEL2_VERSION)?;
        let words = head::<LEVEL2_WORDS>(result, payload)?;
        check_length(result, payload, LEVEL2_WORDS)?;
        let [
            _,
            items,
            input_low,
            input_high,
            passed_low,
            passed_high,
            through_low,
            through_high,
            requested_robs,
            requested_payload_bytes,
            steps,
            missing_robs,
            bad_payloads,
        ] = words;
        let decision = Self {
            items,
            input: whole([input_low, input_high]),
            passed: whole([passed_low, passed_high]),
            passed_through: whole([through_low, through_high]),
            requested_robs,
            requested_payload_bytes,
            steps,
            missing_robs,
            bad_payloads,
        };
        check_chains(result, decision.passed, decision.input)?;
        check_chains(result, decision.passed_through, decision.passed)?;
        Ok(decision)
    }
}

impl FilterDecision {
    /// Whether the event is accepted.
    #[must_use]
    pub fn accept(&self) -> bool {
        self.passed != 0
    }
}

impl FilterResult {
    /// The words of the event filter's result fragment. A long reason is cut at [`REASON_BYTES_MAX`].
    #[must_use]
    pub fn to_words(&self) -> Vec<u32> {
        let decision = &self.decision;
        let ([input_low, input_high], [passed_low, passed_high]) = (halves(decision.input), halves(decision.passed));
        let reason = &self.reason.as_bytes()[..self.reason.floor_char_boundary(REASON_BYTES_MAX)];
        let mut words = vec![
            FILTER_VERSION,
            input_low,
            input_high,
            passed_low,
            passed_high,
            decision.missing_fragments,
            decision.bad_payloads,
            reason.len() as u32,
        ];
        words.extend(reason.chunks(WORD_BYTES).map(|chunk| {
            let mut word = [0; WORD_BYTES];
            word[..chunk.len()].copy_from_slice(chunk);
            u32::from_le_bytes(word)
        }));
        words
    }

    /// Reads the payload of an event filter result fragment.
    ///
    /// # Errors
    /// Another version, another length, chains that passed without having run, or a reason that is no text.
    pub fn from_bytes(payload: &[u8]) -> Result<Self, BadResult> {
        let result = "event filter's result";
        check_version(result, payload, FILTER_VERSION)?;
        let [_, input_low, input_high, passed_low, passed_high, missing_fragments, bad_payloads, reason_bytes] =
            head::<FILTER_HEAD_WORDS>(result, payload)?;
        if reason_bytes as usize > REASON_BYTES_MAX {
            return Err(BadResult::ReasonLength { found: reason_bytes });
        }
        let reason_bytes = reason_bytes as usize;
        check_length(result, payload, FILTER_HEAD_WORDS + reason_bytes.div_ceil(WORD_BYTES))?;
        let (reason, padding) = payload[FILTER_HEAD_WORDS * WORD_BYTES..].split_at(reason_bytes);
        let reason = str::from_utf8(reason).map_err(|_| BadResult::Reason)?.to_owned();
        if padding.iter().any(|byte| *byte != 0) {
            return Err(BadResult::Reason);
        }
        let (input, passed) = (whole([input_low, input_high]), whole([passed_low, passed_high]));
        check_chains(result, passed, input)?;
        Ok(Self { decision: FilterDecision { input, passed, missing_fragments, bad_payloads }, reason })
    }
}

/// The trigger information of level 2, or of the event filter, in the event header: the chains that passed, low word first.
#[must_use]
pub fn trigger_info(passed: u64) -> [u32; 2] {
    halves(passed)
}

/// The chains that passed, by the trigger information in an event header; none if it is not of two words.
#[must_use]
pub fn passed_of_trigger_info(info: &[u32]) -> Option<u64> {
    info.try_into().ok().map(whole)
}

fn halves(set: u64) -> [u32; 2] {
    [set as u32, (set >> 32) as u32]
}

fn whole([low, high]: [u32; 2]) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn check_version(result: &'static str, payload: &[u8], expected: u32) -> Result<(), BadResult> {
    match words(payload).next() {
        Some(found) if found == expected => Ok(()),
        Some(found) => Err(BadResult::Version { result, found, expected }),
        None => Err(BadResult::Length { result, found: payload.len(), expected: WORD_BYTES }),
    }
}

fn head<const N: usize>(result: &'static str, payload: &[u8]) -> Result<[u32; N], BadResult> {
    let head = payload.as_chunks::<WORD_BYTES>().0.first_chunk::<N>();
    let head = head.ok_or(BadResult::Length { result, found: payload.len(), expected: N * WORD_BYTES })?;
    Ok(head.map(u32::from_le_bytes))
}

fn check_length(result: &'static str, payload: &[u8], words: usize) -> Result<(), BadResult> {
    let (found, expected) = (payload.len(), words * WORD_BYTES);
    if found == expected { Ok(()) } else { Err(BadResult::Length { result, found, expected }) }
}

fn check_chains(result: &'static str, chains: u64, run: u64) -> Result<(), BadResult> {
    let chains = chains & !run;
    if chains == 0 { Ok(()) } else { Err(BadResult::Chains { result, chains }) }
}

/// Words of a level-2 result.
pub const LEVEL2_WORDS: usize = 13;

const FILTER_HEAD_WORDS: usize = 8;
const REASON_WORD: usize = FILTER_HEAD_WORDS - 1;

/// Marker, level, version.
const LEVEL2_VERSION: u32 = 0xd202_0001;
const FILTER_VERSION: u32 = 0xd203_0001;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn decisions_come_back_as_they_went(input: u64, passed: u64, through: u64, rest: [u32; 6]) {
            let passed = passed & input;
            let [items, requested_robs, requested_payload_bytes, steps, missing_robs, bad_payloads] = rest;
            let decision = Decision {
                items,
                input,
                passed,
                passed_through: through & passed,
                requested_robs,
                requested_payload_bytes,
                steps,
                missing_robs,
                bad_payloads,
            };
            prop_assert_eq!(Decision::from_bytes(&bytes(&decision.to_words())), Ok(decision));
            prop_assert_eq!(passed_of_trigger_info(&trigger_info(passed)), Some(passed));
        }

        #[test]
        fn filter_results_come_back_as_they_went(input: u64, passed: u64, rest: [u32; 2], reason in ".{0,40}") {
            let [missing_fragments, bad_payloads] = rest;
            let decision = FilterDecision { input, passed: passed & input, missing_fragments, bad_payloads };
            let result = FilterResult { decision, reason };
            prop_assert_eq!(FilterResult::from_bytes(&bytes(&result.to_words())), Ok(result));
        }

        #[test]
        fn anything_else_is_refused_or_means_the_same_words(
            version in prop_oneof![Just(LEVEL2_VERSION), Just(FILTER_VERSION)],
            mut payload in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            payload.splice(..0, version.to_le_bytes());
            if let Ok(decision) = Decision::from_bytes(&payload) {
                prop_assert_eq!(bytes(&decision.to_words()), payload.clone());
            }
            if let Ok(result) = FilterResult::from_bytes(&payload) {
                prop_assert_eq!(bytes(&result.to_words()), payload);
            }
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let decision = Decision { input: 3, passed: 1, ..Decision::default() };
        let words = decision.to_words();
        let refuses = |change: &dyn Fn(&mut Vec<u32>)| {
            let mut words = words.to_vec();
            change(&mut words);
            Decision::from_bytes(&bytes(&words)).unwrap_err()
        };
        let result = "level-2 result";
        let version = BadResult::Version { result, found: LEVEL2_VERSION + 1, expected: LEVEL2_VERSION };
        assert_eq!(refuses(&|words| words[0] += 1), version);
        assert_eq!(refuses(&|words| words.push(0)), BadResult::Length { result, found: 56, expected: 52 });
        assert_eq!(refuses(&|words| words.truncate(12)), BadResult::Length { result, found: 48, expected: 52 });
        assert_eq!(refuses(&Vec::clear), BadResult::Length { result, found: 0, expected: 4 });
        assert_eq!(refuses(&|words| words[4] = 4), BadResult::Chains { result, chains: 4 });
        assert_eq!(refuses(&|words| words[7] = 1), BadResult::Chains { result, chains: 1 << 32 });
        assert_eq!(passed_of_trigger_info(&[1]), None);

        let failed = FilterResult { decision: FilterDecision::default(), reason: "time-out".to_owned() };
        let words = failed.to_words();
        let refuses = |change: &dyn Fn(&mut Vec<u32>)| {
            let mut words = words.clone();
            change(&mut words);
            FilterResult::from_bytes(&bytes(&words)).unwrap_err()
        };
        assert_eq!(refuses(&|words| words[7] = 1 << 31), BadResult::ReasonLength { found: 1 << 31 });
        assert_eq!(refuses(&|words| words[7] = 7), BadResult::Reason, "padding that is not zero");
        assert_eq!(refuses(&|words| words[8] = 0xffff_ffff), BadResult::Reason);
        assert!(matches!(refuses(&|words| words[7] = 9), BadResult::Length { .. }));
        assert!(matches!(refuses(&|words| words.truncate(7)), BadResult::Length { .. }));
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let reason = format!("x{}", "é".repeat(REASON_BYTES_MAX));
        let result = FilterResult { decision: FilterDecision::default(), reason };
        let back = FilterResult::from_bytes(&bytes(&result.to_words())).unwrap();
        assert_eq!(back.reason.len(), REASON_BYTES_MAX - 1);
        assert!(result.reason.starts_with(&back.reason));
    }

    fn bytes(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

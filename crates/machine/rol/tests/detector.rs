//! Detectors that are not there: what they send, and when.

use std::collections::BTreeSet;
use std::path::Path;

use configuration::{Fraction, Partition, SizeSpread};
use rol::detector::{Beams, Chunks, Content, Detector, Mistakes, Pace, PlayedError, SinceT0, Traits};
use rol::{Inputs, detector_of};
use weir_source::{Head, Reading, Source};

const LONG_NS: u64 = u64::MAX / 4;

/// A run that has begun.
struct Run(Detector);

impl Run {
    fn of(traits: Traits) -> Self {
        Self::with(Detector::new(traits))
    }

    fn with(mut detector: Detector) -> Self {
        detector.start(1).unwrap();
        Self(detector)
    }

    fn reads(&mut self) -> (Reading, Vec<u8>) {
        let mut slot = vec![0; 4096];
        let reading = self.0.read(&mut slot).unwrap();
        let len = if let Reading::Committed(_, len) = reading { len } else { 0 };
        (reading, slot[..len].to_vec())
    }

    /// The next fragments, whatever is said between them.
    fn fragments(&mut self, count: usize) -> Vec<(Head, Vec<u8>)> {
        let mut fragments = Vec::new();
        while fragments.len() < count {
            match self.reads() {
                (Reading::Committed(head, _), payload) => fragments.push((head, payload)),
                (Reading::End, _) => panic!("the end behind {} fragments", fragments.len()),
                _ => {}
            }
        }
        fragments
    }

    fn numbers(&mut self, count: usize) -> Vec<Option<u64>> {
        self.fragments(count).into_iter().map(|(head, _)| head.number).collect()
    }

    fn times(&mut self, count: usize) -> Vec<(u64, u64)> {
        self.fragments(count).into_iter().map(|(head, _)| head.time.unwrap()).collect()
    }
}

fn beams(mean_ns: u64) -> Beams {
    Beams { seed: 7, mean_ns, jitter_ns: 0, drift_ppm: 0.0, clock_step: None }
}

#[test]
fn numbers_are_of_their_bits_and_count_from_where_they_are_told() {
    let traits = || Traits { first: 5, number_bits: 3, counts_from: -1, ..Traits::default() };
    assert_eq!(Run::of(traits()).numbers(5), [4, 5, 6, 7, 0].map(Some));
    assert_eq!(Run::of(Traits { has_numbers: false, ..traits() }).numbers(2), [None; 2]);
}

#[test]
fn a_second_run_is_as_the_first_one() {
    let mut run = Run::of(Traits {
        content: Content::MadeUp { mean_bytes: 100, spread: SizeSpread::Exponential },
        efficiency: "50 %".parse::<Fraction>().unwrap(),
        ..Traits::default()
    });
    let first = run.fragments(100);
    run.0.stop().unwrap();
    run.0.start(2).unwrap();
    assert_eq!(run.fragments(100), first);
}

#[test]
fn the_part_that_is_seen_is_that_of_the_efficiency() {
    let of = |seed| {
        let efficiency = "25 %".parse::<Fraction>().unwrap();
        Run::of(Traits { seed, efficiency, ..Traits::default() }).numbers(1000)
    };
    let (one, other) = (of(1), of(2));
    assert!((3500..4500).contains(&one[999].unwrap()), "{:?}", one[999]);
    assert_ne!(one, other);
}

#[test]
fn a_run_ends_behind_its_count_and_its_mistakes() {
    let mistakes = Mistakes { skip: BTreeSet::from([1]), double: BTreeSet::from([3]), ..Mistakes::default() };
    let mut run = Run::of(Traits { count: Some(5), mistakes, ..Traits::default() });
    assert_eq!(run.numbers(5), [0, 2, 3, 3, 4].map(Some));
    assert!(matches!(run.reads(), (Reading::End, _)));
}

#[test]
fn t0_is_said_once_behind_its_fragments() {
    let mut run = Run::of(Traits { t0: Some(SinceT0 { after: 2 }), ..Traits::default() });
    assert_eq!(run.numbers(2), [0, 1].map(Some));
    assert!(matches!(run.reads(), (Reading::Passed(0), _)));
    let times = run.times(10);
    assert!(times.is_sorted() && times.iter().all(|(begin, end)| begin == end), "{times:?}");
    run.0.start(2).unwrap();
    run.fragments(2);
    assert!(matches!(run.reads(), (Reading::Passed(0), _)), "in each run");
}

#[test]
fn chunks_follow_one_another_with_their_overlap() {
    let chunks = Chunks { length_ns: 3000, every_ns: 2000, delay_ns: 0, silent_from: Some(4) };
    let mut run = Run::of(Traits { chunks: Some(chunks), has_numbers: false, ..Traits::default() });
    let times = run.times(4);
    assert!(times.iter().all(|(begin, end)| end - begin == 3000), "{times:?}");
    assert!(times.windows(2).all(|pair| pair[1].0 - pair[0].0 == 2000), "{times:?}");
    assert!(matches!(run.reads(), (Reading::Nothing, _)), "it is silent, and lives on");
}

#[test]
fn a_chunk_whose_time_is_not_over_says_once_how_far_the_source_is() {
    let chunks = Chunks { length_ns: LONG_NS, every_ns: LONG_NS, delay_ns: 0, silent_from: None };
    let mut run = Run::of(Traits { chunks: Some(chunks), ..Traits::default() });
    assert!(matches!(run.reads(), (Reading::Passed(begin), _) if begin > 0));
    for _ in 0..3 {
        // That nothing is there is said by the number that comes next.
        assert!(matches!(run.reads(), (Reading::Nothing | Reading::Idle(0), _)));
    }
}

#[test]
fn what_comes_in_equal_distances_comes_at_once_and_then_waits() {
    let mut run = Run::of(Traits { pace: Pace::Every { period_ns: LONG_NS }, ..Traits::default() });
    assert_eq!(run.numbers(1), [Some(0)]);
    assert!(matches!(run.reads(), (Reading::Nothing, _)));
    run.0.stop().unwrap();
    assert!(!matches!(run.reads(), (Reading::Committed(..), _)));
}

#[test]
fn triggers_of_a_beam_that_come_when_the_run_has_stopped_are_none() {
    let mut run = Run::of(Traits { pace: Pace::Trigger, beam: Some(beams(1)), ..Traits::default() });
    run.fragments(3);
    run.0.stop().unwrap();
    assert!(!matches!(run.reads(), (Reading::Committed(..), _)));
}

#[test]
fn all_that_see_a_beam_say_the_same_times_of_an_event() {
    let traits = |seed, efficiency: &str| Traits {
        seed,
        efficiency: efficiency.parse::<Fraction>().unwrap(),
        beam: Some(beams(1000)),
        ..Traits::default()
    };
    let all = Run::of(traits(1, "100 %")).times(400);
    assert!(all.is_sorted(), "{all:?}");
    for (head, _) in Run::of(traits(2, "50 %")).fragments(100) {
        assert_eq!(head.time, Some(all[head.number.unwrap() as usize]));
    }
}

/// A test beam whose sources are played, or not.
fn partition(plays: [&str; 3]) -> Partition {
    let [tlu, telescope, device] = plays;
    let text = format!(
        "partition.name = \"p\"\nlevel1 = {{ source = \"link\", leader = \"tlu\" }}\nros.count = 1\nsfi.count = 1\n\
         run.first_lvl1_id = 3\n\
         [[source]]\nname = \"tlu\"\nemulated = {{ rate = \"100 kHz\", size = \"40 B\" }}\n{tlu}\n\
         [[source]]\nname = \"telescope\"\nemulated = {{ size = \"3 kB\", efficiency = \"50 %\" }}\n{telescope}\n\
         [[source]]\nname = \"device\"\nmatch = \"count\"\nfirst_count = 0\nemulated = {{ size = \"300 B\" }}\n{device}\n"
    );
    Partition::parse("p", &text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_partition_plays_what_is_emulated() {
    let partition = partition(["play = \"emulator\""; 3]);
    let inputs = Inputs::open(&partition).unwrap();
    let of = |place| Run::with(detector_of(&partition, place, &inputs).unwrap().unwrap());
    let leader = of(0).fragments(200);
    assert!(leader.iter().zip(3..).all(|((head, data), number)| head.number == Some(number) && data.len() == 40));
    let telescope = of(1).fragments(50);
    assert!(telescope[49].0.number > Some(60) && telescope[0].1.len() == 3000, "half of the events");
    assert_eq!(of(2).numbers(4), [0, 1, 2, 3].map(Some));
}

#[test]
fn a_source_that_is_not_played_has_no_detector() {
    let partition = partition(["", "play = \"emulator\"", ""]);
    let inputs = Inputs::open(&partition).unwrap();
    for place in [0, 2] {
        assert!(detector_of(&partition, place, &inputs).unwrap().is_none());
    }
    let mut run = Run::with(detector_of(&partition, 1, &inputs).unwrap().unwrap());
    assert!(run.fragments(3).iter().all(|(head, _)| head.time.is_none()), "nobody here knows the beam");
}

#[test]
fn a_source_without_data_in_the_input_is_none() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/data/replay.data");
    let text = format!(
        "partition.name = \"p\"\ninput.files = [{files:?}]\nlevel1.source = \"link\"\nros.count = 1\nsfi.count = 1\n\
         [[source]]\nname = \"calo\"\nid = 0x12\nplay = \"replay\"\n"
    );
    let partition = Partition::parse("p", &text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let inputs = Inputs::open(&partition).unwrap();
    let error = detector_of(&partition, 0, &inputs).err().unwrap();
    assert!(matches!(&error, PlayedError::Unknown { rob: 0x12, known } if !known.is_empty()), "{error}");
}

//! What all applications count in runs of every level of faults, summed over seeds. Any change in the work of a
//! component shows in some of these counts. `UPDATE_GOLDEN=1` writes them anew; then their difference is to be read.

use std::collections::BTreeMap;
use std::fmt::Write;

use base::ids::Role;
use dataflow::report::{Counter, Report};
use swarm::{LEVELS, Plan};

/// Sums of one level of faults.
#[derive(Default)]
struct Sums {
    /// By role, in the order of its counters, with the time spent blocked at the end.
    roles: BTreeMap<Role, Vec<u128>>,
    /// Messages and their inputs, and time in virtual nanoseconds.
    whole: [u128; 3],
}

impl Sums {
    fn add(&mut self, report: &Report) {
        let blocked = report.blocked.iter().map(|blocked| blocked.time_ns).sum();
        let counts = report.counters.iter().copied().chain([blocked]);
        let sums = self.roles.entry(report.role).or_insert_with(|| vec![0; report.counters.len() + 1]);
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += u128::from(count));
    }

    fn text(&self) -> String {
        let [messages, inputs, time] = self.whole;
        let mut text = format!("messages {messages}, inputs {inputs}, ns {time}\n");
        for (role, sums) in &self.roles {
            let names = Counter::of_role(*role).iter().map(|counter| counter.name).chain(["ns blocked"]);
            let counts = names.zip(sums).filter(|(_, sum)| **sum > 0);
            let counts: Vec<String> = counts.map(|(name, sum)| format!("{name} {sum}")).collect();
            writeln!(text, "{role}: {}", counts.join(", ")).unwrap();
        }
        text
    }
}

#[test]
fn what_is_counted_stays_the_same() {
    let mut text = String::new();
    for level in 0..LEVELS {
        let mut sums = Sums::default();
        for seed in 0..SEEDS {
            let outcomes = Plan::draw_in(DRAWS, seed, level).run().outcomes;
            outcomes.ending.reports.values().for_each(|report| sums.add(report));
            let time = outcomes.ended.since(outcomes.began).as_nanos();
            let whole = [outcomes.network.messages.into(), outcomes.inputs.into(), time];
            sums.whole.iter_mut().zip(whole).for_each(|(sum, of_run)| *sum += of_run);
        }
        writeln!(text, "# {SEEDS} runs of level {level}\n{}", sums.text()).unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/counts.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let known = std::fs::read_to_string(path).unwrap();
    let other: Vec<_> = text.lines().zip(known.lines()).filter(|(now, known)| now != known).collect();
    let whole = "if it was to change, UPDATE_GOLDEN=1 writes the file anew: read its difference";
    assert!(text == known, "{path}, line by line what is counted now and what was: {other:#?}\n{whole}");
}

const SEEDS: u64 = 40;
/// The edition of the draws: a later one draws other runs.
const DRAWS: u32 = 7;

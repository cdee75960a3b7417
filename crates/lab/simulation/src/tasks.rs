//! The processing tasks of a simulated event filter.

use base::bulk::{Bulk, PageSlice};
use configuration::{BadMenu, Interval, Partition, Pt, RosInput};
use dataflow::component::Processed;
use dataflow::message::{BuiltEvent, Chains};
use processing::{Decision, FailReason, Verdict};
use trigger::Filter;

use driver::processed;
use partition::menu_task::decide;
use rol::fragments;

/// What processing tasks decide; how long they take says `simulation.processing`.
pub(super) enum Tasks {
    /// Every event is accepted: there are no data, or a program of a user is not run.
    Accept,
    /// The menu, on the data of the whole event, as in a live run.
    Menu { filter: Box<Filter>, run_number: u32 },
}

impl Tasks {
    pub(super) fn new(partition: &Partition) -> Result<Self, BadMenu> {
        let menu = if runs_menu(partition) { partition.resolve_menu()? } else { None };
        let run_number = partition.run.number();
        Ok(menu.map_or(Self::Accept, |menu| Self::Menu { filter: Box::new(Filter::new(menu)), run_number }))
    }

    pub(super) fn process(&mut self, built: &BuiltEvent) -> Processed {
        let Self::Menu { filter, run_number } = self else {
            return Processed::Accept { streams: 0, chains: Chains::default(), result: Bulk::empty(), windowed: None };
        };
        let data: Vec<(u32, PageSlice)> = fragments(&built.bulk).collect();
        let data = data.iter().map(|(source_id, data)| (*source_id, data.as_bytes())).collect();
        let verdict = match decide(filter, built.event.event.0, data) {
            Decision::Accept { streams, chains, input, result, windows } => {
                let result = result.into_iter().flat_map(u32::to_le_bytes).collect();
                Verdict::Accepted { streams, chains, input, result, windows }
            }
            Decision::Reject { chains, input } => Verdict::Rejected { chains, input },
            Decision::Fail(message) => Verdict::Failed { reason: FailReason::Exception, message },
        };
        processed(&built.event, *run_number, verdict, None)
    }
}

/// What of `[pt]` and `[[stream]]` is not as in a live run, in words.
pub(super) fn not_simulated(partition: &Partition) -> Vec<String> {
    let mut notes = Vec::new();
    let takes = partition.simulation.clone().unwrap_or_default().processing;
    match &partition.pt {
        Some(pt) if !pt.is_menu() => notes.push(format!(
            "the program of [pt] is not run: every event is accepted, after simulation.processing = \"{takes}\""
        )),
        Some(_) if !runs_menu(partition) => notes.push(format!(
            "emulated fragments hold nothing for the menu of [pt]: every event is accepted, after simulation.processing = \
             \"{takes}\"; ros.input = \"sample\" or \"replay\" has data"
        )),
        Some(_) if takes == Interval::default() => {
            notes.push("simulation.processing is \"0 s\": deciding on an event takes no time".to_owned());
        }
        _ => {}
    }
    let partial = partition.stream.iter().position(|stream| !stream.robs.is_empty());
    notes.extend(partial.map(|index| {
        format!("stream.{index}.robs is not simulated: what is recorded there counts with all its fragments")
    }));
    notes
}

fn runs_menu(partition: &Partition) -> bool {
    partition.pt.as_ref().is_some_and(Pt::is_menu) && partition.ros.input != RosInput::Emulator
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_simulated_of_the_event_filter_is_said() {
        let notes = |more: &str| {
            let text = format!("partition.name = \"p\"\nros.count = 3\nsfi.count = 1\nef = {{}}\nsfo = {{}}\n{more}");
            not_simulated(&Partition::parse("p", &text, &[]).unwrap_or_else(|error| panic!("{error}")))
        };
        assert!(notes("").is_empty());
        let own = notes("pt.algorithm = \"my.py:Mine\"\nsimulation.processing = \"2 ms\"\n");
        assert!(own[0].contains("every event is accepted, after simulation.processing = \"2 ms\""), "{own:?}");
        let partial = notes("[[stream]]\nname = \"A\"\n[[stream]]\nname = \"B\"\nrobs = [\"0x51\"]\n");
        assert!(partial[0].starts_with("stream.1.robs is not simulated"), "{partial:?}");
    }
}

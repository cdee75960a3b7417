//! An event as a tree, decoded as far as its parts are known.

use base::ids::Role;
use eformat::{CheckOptions, Event, Rob, StatusWord, WORD_BYTES, check_event, stream_tag};
use serde::Serialize;
use trigger::windows::{FILTER_WINDOWS, LeftOut, WindowsResult};
use trigger::{Decision, FILTER_RESULT, FilterResult, LEVEL2_RESULT};

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Tree {
    /// What the header says; none if it cannot be read.
    header: Option<Header>,
    /// What is wrong with the event, in words.
    problems: Vec<String>,
    /// Its fragments, by who has read them out.
    readout: Vec<Branch>,
}

/// The header of a full event.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Header {
    /// Its bytes, from the beginning of the event.
    bytes: usize,
    source_id: String,
    /// Status words.
    status: Vec<String>,
    event: u64,
    run: u32,
    run_type: String,
    lumi_block: u32,
    level1_id: u32,
    bcid: u32,
    trigger_type: u32,
    /// Time of the event since 1970.
    seconds: u32,
    nanoseconds: u32,
    level1_info: Vec<String>,
    level2_info: Vec<String>,
    filter_info: Vec<String>,
    streams: Vec<String>,
}

/// Fragments that have come from one place.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Branch {
    /// The read-out system, or what has decided.
    name: String,
    bytes: usize,
    robs: Vec<RobNode>,
}

/// A ROB fragment.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct RobNode {
    source_id: String,
    /// The sub-detector, if it is known.
    detector: Option<&'static str>,
    /// Where it begins in the event.
    offset: usize,
    bytes: usize,
    status: Vec<String>,
    /// It stands for data that are not there.
    lost: bool,
    /// What the ROD fragment in it says, unless it cannot be read.
    rod: Option<RodNode>,
    problem: Option<String>,
}

/// A ROD fragment.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct RodNode {
    run: u32,
    level1_id: u32,
    bcid: u32,
    trigger_type: u32,
    event_type: u32,
    status: Vec<String>,
    data_words: usize,
    /// Where the data begin in the event.
    data_offset: usize,
    /// What the data are, where that is known.
    decoded: Vec<(&'static str, String)>,
}

impl Tree {
    /// The tree of an event. `readout` are the ROBs of each read-out system, and `chains` the names of those of the menu.
    pub(crate) fn of(bytes: &[u8], readout: &[Vec<u32>], chains: &[String]) -> Self {
        let mut problems = Vec::new();
        check_event(bytes, &CheckOptions::default(), &mut problems);
        let mut problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        let Ok(event) = Event::parse(bytes) else { return Self { header: None, problems, readout: Vec::new() } };
        let mut branches: Vec<Branch> = Vec::new();
        let begin = event.fragment().payload_range().start;
        let payload = event.fragment().payload();
        for rob in event.robs(payload) {
            match rob {
                Ok(rob) => {
                    let name = place(rob.source_id().0, readout);
                    let node = RobNode::of(&rob, begin, chains);
                    match branches.iter_mut().find(|branch| branch.name == name) {
                        Some(branch) => branch.add(node),
                        None => branches.push(Branch { name, bytes: node.bytes, robs: vec![node] }),
                    }
                }
                Err(problem) => problems.push(format!("no further fragment can be read: {problem}")),
            }
        }
        problems.dedup();
        branches.iter_mut().for_each(|branch| branch.robs.sort_by(|a, b| a.source_id.cmp(&b.source_id)));
        // By number, as people count.
        let rank = |name: &str| readout_index(name).unwrap_or(usize::MAX);
        branches.sort_by(|a, b| rank(&a.name).cmp(&rank(&b.name)).then_with(|| a.name.cmp(&b.name)));
        Self { header: Some(Header::of(&event)), problems, readout: branches }
    }
}

impl Branch {
    fn add(&mut self, node: RobNode) {
        self.bytes += node.bytes;
        self.robs.push(node);
    }
}

impl Header {
    fn of(event: &Event<'_>) -> Self {
        let streams = stream_tag::decode(event.stream_tags()).into_iter().map(|entry| match entry {
            stream_tag::Entry::Tag(tag) => format!("{}_{}", tag.stream_type(), tag.name()),
            stream_tag::Entry::Foreign(text) => text.escape_ascii().to_string(),
        });
        Self {
            bytes: event.fragment().header_words() * WORD_BYTES,
            source_id: event.source_id().to_string(),
            status: hex(event.fragment().status_words()),
            event: event.global_id(),
            run: event.run_number(),
            run_type: event.run_type().to_string(),
            lumi_block: event.lumi_block(),
            level1_id: event.lvl1_id(),
            bcid: event.bcid(),
            trigger_type: event.trigger_type(),
            seconds: event.seconds(),
            nanoseconds: event.nanoseconds(),
            level1_info: hex(event.lvl1_info()),
            level2_info: hex(event.lvl2_info()),
            filter_info: hex(event.hlt_info()),
            streams: streams.collect(),
        }
    }
}

impl RobNode {
    fn of(rob: &Rob<'_>, begin: usize, chains: &[String]) -> Self {
        let offset = begin + rob.offset();
        let fragment = rob.fragment();
        let rod = rob.rod();
        let problem = rod.as_ref().err().map(|problem| problem.shifted(offset as u64).to_string());
        Self {
            source_id: format!("{:#010x}", rob.source_id().0),
            detector: rob.source_id().sub_detector().name(),
            offset,
            bytes: fragment.bytes().len(),
            status: hex(fragment.status_words()),
            lost: rob.status() == StatusWord::LOST,
            rod: rod.ok().map(|rod| RodNode {
                run: rod.run_number(),
                level1_id: rod.lvl1_id(),
                bcid: rod.bcid(),
                trigger_type: rod.trigger_type(),
                event_type: rod.event_type(),
                status: hex(rod.status_words()),
                data_words: rod.data().len() / WORD_BYTES,
                data_offset: offset + fragment.payload_range().start + rod.data_range().start,
                decoded: decoded(rob.source_id().0, rod.data(), chains),
            }),
            problem,
        }
    }
}

/// What the results of the selection say.
fn decoded(source: u32, data: &[u8], chains: &[String]) -> Vec<(&'static str, String)> {
    if source == LEVEL2_RESULT.0
        && let Ok(decision) = Decision::from_bytes(data)
    {
        return vec![
            ("level-1 items", format!("{:#010x}", decision.items)),
            ("chains that looked", names(decision.input, chains)),
            ("chains that accepted", names(decision.passed, chains)),
            ("ROBs asked for", decision.requested_robs.to_string()),
            ("ROBs missing", decision.missing_robs.to_string()),
            ("steps", decision.steps.to_string()),
        ];
    }
    if source == FILTER_RESULT.0
        && let Ok(result) = FilterResult::from_bytes(data)
    {
        let mut said = vec![
            ("chains that looked", names(result.decision.input, chains)),
            ("chains that accepted", names(result.decision.passed, chains)),
            ("fragments missing", result.decision.missing_fragments.to_string()),
        ];
        said.extend((!result.reason.is_empty()).then(|| ("reason", result.reason.clone())));
        return said;
    }
    if source == FILTER_WINDOWS.0
        && let Ok(WindowsResult { asked, left_out }) = WindowsResult::from_bytes(data)
    {
        let sum = |of: fn(&LeftOut) -> u32| left_out.iter().map(|one| u64::from(of(one))).sum::<u64>().to_string();
        return vec![
            ("windows", asked.len().to_string()),
            ("chunks left out", sum(|one| one.chunks)),
            ("bytes left out", sum(|one| one.bytes)),
        ];
    }
    Vec::new()
}

/// Names of the chains whose bits are set.
fn names(bits: u64, chains: &[String]) -> String {
    let set = (0..u64::BITS as usize).filter(|bit| bits >> bit & 1 == 1);
    let names: Vec<String> =
        set.map(|bit| chains.get(bit).cloned().unwrap_or_else(|| format!("chain {bit}"))).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Who has given a ROB.
fn place(source: u32, readout: &[Vec<u32>]) -> String {
    match readout.iter().position(|robs| robs.contains(&source)) {
        Some(index) => format!("{}-{}", Role::Ros, index + 1),
        None if source == LEVEL2_RESULT.0 => "level 2".to_owned(),
        None if [FILTER_RESULT.0, FILTER_WINDOWS.0].contains(&source) => "event filter".to_owned(),
        None => "elsewhere".to_owned(),
    }
}

fn readout_index(name: &str) -> Option<usize> {
    name.rsplit_once('-')?.1.parse().ok()
}

fn hex(words: impl Iterator<Item = u32>) -> Vec<String> {
    words.map(|word| format!("{word:#010x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fragment_of_windows_says_what_was_asked_for_and_left_out() {
        let left_out = |chunks, bytes| LeftOut { source: 7, kept_chunks: 1, chunks, bytes };
        let asked = vec![trigger::windows::Window::of(vec![7]); 3];
        let result = WindowsResult { asked, left_out: vec![left_out(2, 100), left_out(u32::MAX, 28)] };
        let bytes: Vec<u8> = result.to_words().into_iter().flat_map(u32::to_le_bytes).collect();
        let said = decoded(FILTER_WINDOWS.0, &bytes, &[]);
        let said: Vec<(&str, &str)> = said.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(said, [("windows", "3"), ("chunks left out", "4294967297"), ("bytes left out", "128")]);
        assert_eq!(decoded(FILTER_WINDOWS.0, &bytes[..bytes.len() - 4], &[]), []);
        assert_eq!(place(FILTER_WINDOWS.0, &[vec![7]]), "event filter");
    }
}

//! The work of an EFD: built events go to processing tasks, and come back decided.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use base::bulk::{Bulk, PageSlice};
use configuration::{LinkSource, Partition, Pt};
use dataflow::component::{Outcome, Processed, Ticket, Windowed};
use dataflow::message::{BuiltEvent, Chains, DebugReason, EventInfo, Grounds};
use eformat::WORD_BYTES;
use processing::event::{HEAD_BYTES, INDEX_BYTES_PER_FRAGMENT};
use processing::{EventHead, FailReason, Tasks, TasksError, TasksOptions, Verdict};
use rol::{Windowing, fragments, rob_fragment};
use transport::waker::Waker;
use trigger::{FILTER_RESULT, FilterDecision, FilterResult, LEVEL2_RESULT};

use super::recorder::Done;
use crate::assembly::Assembly;
use crate::observer::{Observer, Seen};
use crate::scratch::Scratch;

/// The processing tasks of an EFD.
pub(super) struct Filtering {
    tasks: Tasks,
    /// Events that the tasks have.
    in_hand: BTreeMap<u64, Given>,
    /// Events for which no slot was free.
    waiting: VecDeque<(Ticket, BuiltEvent)>,
    run_number: u32,
    windowing: Windowing,
    /// Events that the tasks failed on.
    failed: u64,
    observer: Option<Observer>,
    /// Where the Python package is.
    _directory: Option<Scratch>,
}

/// An event that the tasks have.
struct Given {
    built: BuiltEvent,
    /// Chains that accepted it at level 2.
    level2: u64,
}

/// Why there are no processing tasks.
#[derive(Debug, thiserror::Error)]
pub enum FilteringError {
    #[error(transparent)]
    Tasks(#[from] TasksError),
    #[error("the Python package of the processing tasks cannot be written to {}: {cause}", path.display())]
    Package { path: PathBuf, cause: std::io::Error },
    #[error("no temporary directory for the Python package of the processing tasks: {0}")]
    Scratch(std::io::Error),
    #[error("the program of the processing tasks is not known: {0}")]
    Program(std::io::Error),
}

impl Filtering {
    /// Starts the tasks of the EFD called `name`, and waits until they are ready.
    pub(super) fn start(assembly: &Assembly, name: &str, waker: Waker) -> Result<Self, FilteringError> {
        let partition = &assembly.partition;
        // With the result of level 2.
        let fragments = assembly.robs.iter().map(Vec::len).sum::<usize>() + 1;
        let pt = partition.pt.clone().unwrap_or_default();
        let slots = partition.event_filter().map_or(1, |ef| ef.slots.max(partition.sfi.count) as usize);
        let program = Program::new(assembly, &pt)?;
        let limit = pt.memory_limit.bytes();
        let options = TasksOptions {
            name: name.to_owned(),
            command: program.command,
            environment: program.environment,
            count: pt.count as usize,
            slots,
            slot_bytes: slot_bytes(partition, fragments),
            timeout: pt.timeout.duration(),
            start_timeout: partition.processes.start_timeout.duration(),
            memory_limit_bytes: (limit > 0).then_some(limit),
            streams: partition.stream_names(),
            setup: program.setup,
        };
        Ok(Self {
            tasks: Tasks::start(options, waker)?,
            in_hand: BTreeMap::new(),
            waiting: VecDeque::new(),
            run_number: partition.run.number(),
            windowing: Windowing::new(partition),
            failed: 0,
            observer: assembly.observer(),
            _directory: program.directory,
        })
    }

    /// Gives an event to the tasks.
    pub(super) fn begin(&mut self, ticket: Ticket, built: BuiltEvent) {
        self.waiting.push_back((ticket, built));
        self.submit();
    }

    fn submit(&mut self) {
        while self.tasks.has_free()
            && let Some((ticket, built)) = self.waiting.pop_front()
        {
            let EventInfo { event, ordinal, bcid, trigger_type, items, grounds } = built.event;
            let level2 = level2_passed(&built.bulk);
            let head = EventHead {
                event_number: event.0,
                ordinal,
                lvl1_id: event.lvl1_id().0,
                run_number: self.run_number,
                bcid,
                trigger_type,
                items: u64::from(items),
                level2_chains: level2,
                forced: grounds == Grounds::Timeout,
                missing: &built.missing,
            };
            self.tasks.submit(ticket.0, &head, built.bulk.slices().iter().map(PageSlice::as_bytes));
            self.in_hand.insert(ticket.0, Given { built, level2 });
        }
    }

    /// Whether something came back.
    pub(super) fn has_done(&self) -> bool {
        self.tasks.has_done() || self.tasks.has_notice()
    }

    /// The next event that is decided.
    pub(super) fn next_done(&mut self) -> Option<Done> {
        let (ticket, verdict) = self.tasks.next_done()?;
        let Given { built, level2 } = self.in_hand.remove(&ticket).expect("the tasks decide on what they were given");
        let (verdict, windowed) = self.windowed(&built, with_chains(verdict, level2));
        let event = built.event;
        self.submit();
        if let (Some(observer), Verdict::Accepted { chains: passed, .. }) = (&self.observer, &verdict) {
            observer.note(Seen::Filter { ordinal: event.ordinal, passed: *passed });
        }
        let complaint = match &verdict {
            Verdict::Failed { reason, message } => self.complain(&event, *reason, message),
            _ => None,
        };
        Some((Ticket(ticket), Outcome::Processed(processed(&event, self.run_number, verdict, windowed)), complaint))
    }

    /// What is recorded in place of the event, if an algorithm asks for windows of it; it fails with windows that are none.
    fn windowed(&self, built: &BuiltEvent, mut verdict: Verdict) -> (Verdict, Option<Box<Windowed>>) {
        let Verdict::Accepted { windows, .. } = &mut verdict else { return (verdict, None) };
        if windows.is_empty() {
            return (verdict, None);
        }
        match self.windowing.apply(built, core::mem::take(windows)) {
            Ok(windowed) => (verdict, Some(Box::new(windowed))),
            Err(bad) => (Verdict::Failed { reason: FailReason::BadAnswer, message: bad.to_string() }, None),
        }
    }

    /// The first failures are told one by one, later ones as their number grows tenfold.
    fn complain(&mut self, event: &EventInfo, reason: FailReason, message: &str) -> Option<String> {
        self.failed += 1;
        let failed = self.failed;
        let so_far = if failed > TOLD_ONE_BY_ONE { format!(" ({failed} events so far)") } else { String::new() };
        let is_told = failed <= TOLD_ONE_BY_ONE || failed == 10_u64.pow(failed.ilog10());
        is_told.then(|| format!("event {} goes to the debug stream: {reason}: {message}{so_far}", event.event))
    }

    /// The next piece of news of the tasks, for people.
    pub(super) fn next_notice(&mut self) -> Option<String> {
        self.tasks.next_notice().map(|notice| format!("{}: {}", notice.task, notice.text))
    }
}

/// A verdict as the component takes it, with the result fragment of the event filter, and what its windows take.
pub fn processed(event: &EventInfo, run_number: u32, verdict: Verdict, windowed: Option<Box<Windowed>>) -> Processed {
    let result = |words: &[u32]| rob_fragment(FILTER_RESULT, event, run_number, words);
    match verdict {
        Verdict::Accepted { streams, chains: passed, input, result: given, .. } => {
            let words: Vec<u32> = if given.is_empty() {
                let decision = FilterDecision { input, passed, ..FilterDecision::default() };
                FilterResult { decision, reason: String::new() }.to_words()
            } else {
                given.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
            };
            let chains = Chains { input, passed };
            Processed::Accept { streams, chains, result: result(&words), windowed }
        }
        Verdict::Rejected { chains: passed, input } => Processed::Reject { chains: Chains { input, passed } },
        Verdict::Failed { reason, message } => {
            let failure = FilterResult { decision: FilterDecision::default(), reason: format!("{reason}: {message}") };
            Processed::Fail { reason: debug_reason(reason), result: result(&failure.to_words()) }
        }
    }
}

/// An algorithm that knows nothing of chains decides for all that accepted at level 2.
fn with_chains(verdict: Verdict, level2: u64) -> Verdict {
    match verdict {
        Verdict::Accepted { streams, chains: 0, input: 0, result, windows } => {
            Verdict::Accepted { streams, chains: level2, input: level2, result, windows }
        }
        Verdict::Rejected { chains: 0, input: 0 } => Verdict::Rejected { chains: 0, input: level2 },
        other => other,
    }
}

/// Room for the largest event that is built, and for what the tasks are told about it.
fn slot_bytes(partition: &Partition, fragments: usize) -> usize {
    let event = usize::try_from(partition.sfi.max_event_size.bytes()).unwrap_or(usize::MAX);
    let told = HEAD_BYTES + fragments * (INDEX_BYTES_PER_FRAGMENT + WORD_BYTES);
    event.saturating_add(told)
}

/// The chains that accepted at level 2, by its result among the fragments.
fn level2_passed(bulk: &Bulk) -> u64 {
    let result = fragments(bulk).find(|(source_id, _)| *source_id == LEVEL2_RESULT.0);
    result
        .and_then(|(_, data)| trigger::Decision::from_bytes(data.as_bytes()).ok())
        .map_or(0, |decision| decision.passed)
}

fn debug_reason(reason: FailReason) -> DebugReason {
    match reason {
        FailReason::Crash(_) => DebugReason::Crash,
        FailReason::Exception => DebugReason::Exception,
        FailReason::Timeout => DebugReason::Timeout,
        FailReason::Memory => DebugReason::Memory,
        FailReason::TooLarge => DebugReason::TooLarge,
        FailReason::Malformed => DebugReason::Malformed,
        FailReason::BadAnswer => DebugReason::BadAnswer,
        FailReason::Unavailable => DebugReason::NoTask,
    }
}

/// What a processing task runs.
struct Program {
    command: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    setup: String,
    /// Holds the Python package.
    directory: Option<Scratch>,
}

impl Program {
    fn new(assembly: &Assembly, pt: &Pt) -> Result<Self, FilteringError> {
        let partition = &assembly.partition;
        if !pt.command.is_empty() {
            let command = pt.command.iter().map(OsString::from).collect();
            return Ok(Self { command, environment: Vec::new(), setup: setup(partition, pt), directory: None });
        }
        match pt.python_class() {
            Some(class) => Self::python(partition, pt, class),
            None => Self::menu(assembly),
        }
    }

    fn python(partition: &Partition, pt: &Pt, class: &str) -> Result<Self, FilteringError> {
        let directory = Scratch::new().map_err(FilteringError::Scratch)?;
        let path = directory.path();
        let python = processing::python::command(OsStr::new(&pt.python), class, path)
            .map_err(|cause| FilteringError::Package { path: path.to_owned(), cause })?;
        let (command, environment) = (python.command, python.environment);
        Ok(Self { command, environment, setup: setup(partition, pt), directory: Some(directory) })
    }

    /// `weir` as a processing task.
    fn menu(assembly: &Assembly) -> Result<Self, FilteringError> {
        let program = assembly.program().map_err(FilteringError::Program)?;
        let command = vec![program.into_os_string(), "pt".into()];
        let setup = assembly.partition.without_secrets().to_toml();
        Ok(Self { command, environment: Vec::new(), setup, directory: None })
    }
}

/// What an algorithm of a user gets to know besides the streams.
fn setup(partition: &Partition, pt: &Pt) -> String {
    let chains: Vec<&str> =
        partition.menu.iter().flat_map(|menu| &menu.chain).map(|chain| chain.name.as_str()).collect();
    let source = |(place, source): (usize, &LinkSource)| serde_json::json!({ "name": source.name, "id": source.source_id(place), "offset": partition.offset_ns(source) });
    let sources: Vec<_> = partition.source.iter().enumerate().map(source).collect();
    serde_json::json!({ "parameters": pt.parameters, "chains": chains, "sources": sources }).to_string()
}

/// Failures that are told one by one.
const TOLD_ONE_BY_ONE: u64 = 5;

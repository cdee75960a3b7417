//! How a run went, or why it did not begin.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use base::ids::{NodeId, Role};
use base::time::Time;
use configuration::{BadMenu, ConfigurationError};
use control::accounting::Accounting;
use control::controller::Ending;
use control::states::Illegal;
use dataflow::report::{Network, Report};
use membership::registrar::NotStarted;
use rol::InputError;
use transport::error::OsError;

use super::{Metered, Restart};
use crate::keeping::Away;
use crate::run_number::RunNumberError;
use driver::Assembly;
use driver::{Host, LinksError, WorkshopError};

/// How a run went.
pub struct Outcome {
    /// The partition.
    pub assembly: Assembly,
    /// What run control has heard.
    pub ending: Ending,
    /// Every event from level-1 accept to file.
    pub account: Accounting,
    /// Where the time of this process went, with a meter.
    pub metered: Metered,
    /// Applications that were started again, in order.
    pub restarts: Vec<Restart>,
    /// When the run began.
    pub began: Time,
    /// From the beginning of the run to the end of its triggers.
    pub duration: Duration,
    /// From the launch, or from the wish for the run, until all applications were ready and the run began.
    pub starting: Duration,
    /// Processor time of all processes in that time; none where the kernel does not say.
    pub cpu_starting: Option<Duration>,
    /// Processor time of all processes since then, until the outcome was known: in one run alone, in their whole life.
    pub cpu: Duration,
    /// Of each child that lived from the beginning of the run to its end; none where the kernel does not say.
    pub cpu_of_children: BTreeMap<NodeId, Duration>,
    /// Ids of the processes of the children that lived at the end of the run: the next run has the same.
    pub processes: BTreeMap<NodeId, u32>,
    /// Processor time of this process from the beginning of the run to its end.
    pub cpu_while_running: Duration,
    /// The part of all processors' time that others left to the run, from its beginning to its end, where the kernel says it.
    pub left_to_us: Option<f64>,
    /// How many processors the run has used, in the mean over the same time; none where the kernel does not say.
    pub cores_used: f64,
    /// Traffic of all applications.
    pub network: Network,
    /// Messages of former lives and runs, which were refused.
    pub stale: u64,
    /// Whether somebody has asked for an early end.
    pub interrupted: bool,
    /// When the run had no run control.
    pub away: Vec<Away>,
}

impl Outcome {
    /// What applications of a role have counted.
    pub fn reports(&self, role: Role) -> impl Iterator<Item = &Report> {
        self.ending.reports.values().filter(move |report| report.role == role)
    }
}

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum StartError {
    #[error(transparent)]
    Settings(#[from] ConfigurationError),
    #[error(transparent)]
    Input(#[from] InputError),
    #[error(transparent)]
    RunNumber(#[from] RunNumberError),
    #[error(transparent)]
    Menu(#[from] BadMenu),
    #[error(transparent)]
    Workshop(#[from] WorkshopError),
    #[error(transparent)]
    Links(#[from] LinksError),
    #[error(transparent)]
    Os(#[from] OsError),
    #[error(transparent)]
    Spawn(#[from] NotStarted),
    #[error("no port for the multicast group of the read-out systems: {0}")]
    Port(io::Error),
    #[error("this program does not know where it is: {0}")]
    Program(io::Error),
    #[error("no thread for the run: {0}")]
    Thread(io::Error),
    #[error("{name} could not start: {reason}")]
    Child { name: String, reason: String },
    #[error(
        "not all applications were ready within {timeout:?}: {missing} did not answer{cause}; processes.start_timeout sets the limit"
    )]
    StartTimeout { timeout: Duration, missing: String, cause: String },
    #[error(
        "the configuration and the lists of ROBs take {len} bytes, an application is told at most {max}: shorten the menu or the lists, or raise sfi.max_event_size"
    )]
    Welcome { len: usize, max: usize },
    #[error("the run that was left cannot be taken over: {0}")]
    TakenOver(io::Error),
    #[error("interrupted before the run began")]
    Interrupted,
    #[error(transparent)]
    State(#[from] Illegal),
    #[error(
        "no run can begin: {name} was lost: {how}; processes.on_loss does not have it started again: boot the partition again"
    )]
    Lost { name: String, how: String },
    #[error("the partition is shut down")]
    ShutDown,
}

/// What all processes received: the children tell it with their reports.
pub(super) fn network(host: &Host, ending: &Ending) -> (Network, u64) {
    let here: Vec<NodeId> = host.hosted().collect();
    let all = ending.lives.all();
    let elsewhere = all.iter().filter(|(node, _)| !here.contains(node)).map(|(_, report)| report.network);
    let sum = elsewhere.fold(host.network(), Network::plus);
    (sum, host.stale() + all.values().map(|report| report.stale).sum::<u64>())
}

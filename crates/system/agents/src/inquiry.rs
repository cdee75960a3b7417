//! What an agent says of its host to another thread of its process, such as one that shows metrics.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use crate::desk::Status;

/// What an agent sees of its host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostNow {
    /// Its applications, and what the host does.
    pub status: Status,
    /// Since the agent heard run control last.
    pub silence: Duration,
    /// How often the agent has started each application.
    pub starts: BTreeMap<String, u64>,
}

/// Asks an agent. Clones ask the same one.
#[derive(Clone, Debug)]
pub struct Inquirer(SyncSender<SyncSender<HostNow>>);

/// The agent's side.
#[derive(Debug)]
pub struct Inquiries(Receiver<SyncSender<HostNow>>);

/// A way to ask an agent. Whoever asks too often is not answered.
pub fn inquiries() -> (Inquirer, Inquiries) {
    let (asks, asked) = sync_channel(WAITING_MAX);
    (Inquirer(asks), Inquiries(asked))
}

impl Inquirer {
    /// What the agent sees now; waits for it. Nothing if it does not answer.
    pub fn ask(&self) -> Option<HostNow> {
        let (answers, answer) = sync_channel(1);
        self.0.try_send(answers).ok()?;
        answer.recv_timeout(PATIENCE).ok()
    }
}

impl Inquiries {
    /// Answers those who have asked; waits for nobody.
    pub(crate) fn answer(&self, mut now: impl FnMut() -> HostNow) {
        // Who has asked may have gone.
        self.0.try_iter().for_each(|answers| _ = answers.try_send(now()));
    }
}

/// So many questions wait for an agent.
const WAITING_MAX: usize = 4;
/// An agent looks for questions in each of its passes.
const PATIENCE: Duration = Duration::from_secs(5);

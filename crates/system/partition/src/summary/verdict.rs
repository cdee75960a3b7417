//! How a run ended: the state in the summary, the last line of the table, the exit status.

use std::collections::BTreeMap;

use configuration::Tolerate;
use control::accounting::Accounting;
use control::controller::Ending;
use control::losses::Loss;
use serde::{Deserialize, Serialize};

use crate::human::grouped;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// By its limits or a request to stop, with every event accounted for and all that was accepted whole in the files.
    Ok,
    /// Likewise, but more accepted events than `run.tolerate` allows are lost, incomplete, recorded for a failed
    /// filter, or were decided without all their data.
    Degraded,
    /// With events that are not accounted for.
    Residual,
    /// Cut short: something died, did not drain, or the stop was forced.
    Aborted,
}

/// Events by the key of what has struck them.
pub type Losses = BTreeMap<String, u64>;

/// The state of a run with its reasons.
pub(super) struct Verdict {
    pub(super) state: RunState,
    /// Why it is not `ok`, in words.
    pub(super) reason: Option<String>,
    /// More than is tolerated.
    pub(super) degraded_by: Losses,
    pub(super) tolerated: Losses,
}

impl Verdict {
    pub(super) fn new(tolerate: &Tolerate, forced: bool, ending: &Ending, account: &Accounting) -> Self {
        let (tolerated, degraded_by): (Vec<Loss>, Vec<Loss>) = account.losses().partition(|loss| tolerate.allows(loss));
        let differences = || format!("residual {}: {}", account.residual, account.differences.join("; "));
        let mut reasons = ending.reasons.clone();
        if forced && reasons.is_empty() {
            reasons.push("the stop was forced".to_owned());
        }
        let (state, reason) = match (reasons.is_empty(), account.residual) {
            (true, 0) if degraded_by.is_empty() => (RunState::Ok, None),
            (true, 0) => (RunState::Degraded, Some(in_words(&degraded_by))),
            (true, _) => (RunState::Residual, Some(differences())),
            (false, residual) => {
                reasons.extend((residual > 0).then(differences));
                (RunState::Aborted, Some(reasons.join("; ")))
            }
        };
        Self { state, reason, degraded_by: by_key(&degraded_by), tolerated: by_key(&tolerated) }
    }
}

fn in_words(losses: &[Loss]) -> String {
    let words = losses.iter().map(|loss| format!("{} {}", grouped(loss.events), loss.cause.describe()));
    words.collect::<Vec<_>>().join("; ")
}

fn by_key(losses: &[Loss]) -> Losses {
    losses.iter().map(|loss| (loss.cause.key().to_owned(), loss.events)).collect()
}

//! Runs that others observe as well: what they miss touches no run.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::served::Served;

/// Stops the run; nothing of it was lost.
pub(crate) fn ends_well(served: &mut Served, run: u64) {
    served.ctl("anna", &["stop"]);
    served.until("the run is over", |status| status["last"]["number"] == run);
    is_well(served, run);
}

/// Nothing of the run was lost.
pub(crate) fn is_well(served: &Served, run: u64) {
    let record = served.get(&format!("runs/{run}"));
    let summary = &record["summary"];
    let found = (&summary["state"], &summary["accounting"]["residual"], &record["quality"]);
    assert_eq!(found, (&json!("ok"), &json!(0), &json!("good")), "{record}");
}

/// Ends run control.
pub(crate) fn leave(served: Served) {
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);
}

//! Signals between the runs of a command.

use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use partition::Control;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::raise;
use terminal::Interrupts;

/// Nobody catches it then, and it was ignored.
#[test]
fn an_interrupt_between_two_runs_of_a_benchmark_did_nothing() {
    if let Ok(signal) = env::var(INTERRUPTED) {
        for _ in 0..2 {
            drop(Interrupts::end(Control::default()).unwrap());
        }
        raise(signal.parse().unwrap()).unwrap();
        return;
    }
    for signal in [SIGINT, SIGTERM] {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args(["--exact", "an_interrupt_between_two_runs_of_a_benchmark_did_nothing"]);
        let status = command.env(INTERRUPTED, signal.to_string()).stdout(Stdio::null()).status().unwrap();
        assert_eq!(status.signal(), Some(signal), "{status}");
    }
}

/// Set in the process that is interrupted.
const INTERRUPTED: &str = "WEIR_INTERRUPTED_BY";

//! Event building by datagrams in a network of its own, [`crate::lossy`], for each run.

use std::io::{self, Read};
use std::process::{Child, Stdio};

use base::ids::Role;
use configuration::RequestCredits;
use dataflow::report::SfiCounters;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde::{Deserialize, Serialize};

use super::event_builder::{self, InNetwork, Parameters as Building};
use super::paired::Figures;
use super::reference::Sources;
use super::{BenchError, sound};
use crate::lossy;

/// What a run came to.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) events: u64,
    seconds: f64,
    cpu_seconds: f64,
    pub(super) messages: u64,
    /// Messages asked for in part or whole, each as often as it was, and the most of any.
    pub(super) asked: u64,
    pub(super) asked_most: u64,
    /// Datagrams sent again because they were asked for.
    pub(super) repeated: u64,
    /// Requests of the event builder that it repeated as a whole.
    pub(super) reasks: u64,
}

impl InNetwork {
    /// Starts it in a network that these commands of a shell make. However this process ends, so does that one, and with it the
    /// network.
    pub(super) fn run(&self, network: &str) -> Result<Run, BenchError> {
        let failed = |error| BenchError::System { what: "event building in a network of its own", error };
        let mut child = Sources(vec![self.spawn(network).map_err(failed)?]);
        let mut said = String::new();
        let mut output = child.0[0].stdout.take().expect("the standard output of the child is a pipe");
        output.read_to_string(&mut said).map_err(failed)?;
        serde_json::from_str(&said).map_err(|_| failed(io::Error::other("it ended without a result")))
    }

    fn spawn(&self, network: &str) -> io::Result<Child> {
        let &Self { sources, fragment_bytes, datagram_bytes, asking, seconds } = self;
        let asking = asking.map(|asking| {
            let adaptive = (asking.credits == RequestCredits::Adaptive).then(|| "--adaptive".to_owned());
            ["--outstanding-requests".to_owned(), asking.outstanding_requests.to_string()].into_iter().chain(adaptive)
        });
        let commands = format!("{network}exec \"$0\" \"$@\"");
        lossy::in_network(&commands, std::env::current_exe()?.as_os_str())
            .args(["bench-part", "in-network", &std::process::id().to_string()])
            .args([sources, fragment_bytes, datagram_bytes].map(|number| number.to_string()))
            .arg(seconds.to_string())
            .args(asking.into_iter().flatten())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
    }

    /// What such a run has shown.
    pub(super) fn figures(&self, run: &Run) -> Figures {
        let bytes = f64::from(self.sources) * f64::from(self.fragment_bytes);
        Figures::of(run.events as f64, Some(bytes), run.seconds, run.cpu_seconds)
    }
}

/// The process in the network: builds, and says in JSON what it came to.
pub(super) fn main(parent: u32, building: InNetwork) -> Result<String, BenchError> {
    let failed = |error| BenchError::System { what: "the end of the parent process", error };
    set_parent_process_death_signal(Some(Signal::TERM)).map_err(|errno| failed(errno.into()))?;
    // One that ended before sends no signal any more.
    if std::os::unix::process::parent_id() != parent {
        return Err(failed(io::Error::other("it has ended already")));
    }
    let (_, conducted) = event_builder::conduct_building(&Building::in_network(&building))?;
    let datagrams = conducted.network.datagrams;
    let run = Run {
        events: sound(&conducted)?.built_complete,
        seconds: conducted.duration.as_secs_f64(),
        cpu_seconds: conducted.cpu.as_secs_f64(),
        messages: conducted.network.messages,
        asked: datagrams.asked,
        asked_most: datagrams.asked_most,
        repeated: datagrams.repeated,
        reasks: SfiCounters::total(conducted.reports(Role::Sfi)).reasks,
    };
    Ok(super::to_json(&run))
}

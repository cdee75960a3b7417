//! What the agent of a host measures of its applications, as metrics.

use std::fs;

use agents::{HostNow, Local};
use control::states::State;

use crate::metrics::Sample;

/// All metrics of a host, as they are now.
pub(crate) fn samples(host: &HostNow) -> Vec<Sample> {
    let HostNow { status, silence, starts } = host;
    let mut samples: Vec<Sample> = State::ALL
        .into_iter()
        .map(|state| {
            Sample::count("weir_host_state", u64::from(state == status.state)).with("state", state.name().into())
        })
        .collect();
    samples.push(Sample::real("weir_agent_silence_seconds", silence.as_secs_f64()));
    let agent = Use::of(std::process::id());
    samples.push(Sample::count("weir_agent_resident_bytes", agent.resident_bytes));
    for local in &status.applications {
        let starts = starts.get(&local.name).copied().unwrap_or_default();
        samples.extend(of_application(local, starts).into_iter().map(|sample| sample.of(&local.name)));
    }
    samples
}

fn of_application(local: &Local, starts: u64) -> Vec<Sample> {
    let mut samples = vec![
        Sample::count("weir_application_lives", u64::from(local.process.is_some())),
        Sample::count("weir_application_starts_total", starts),
    ];
    let Some(process) = local.process else { return samples };
    let Use { resident_bytes, threads, open_files } = Use::of(process);
    samples.push(Sample::real("weir_application_cpu_seconds_total", local.cpu.as_secs_f64()));
    samples.push(Sample::count("weir_application_resident_bytes", resident_bytes));
    samples.push(Sample::count("weir_application_threads", threads));
    samples.push(Sample::count("weir_application_open_files", open_files));
    samples
}

/// What a process has of its machine now; 0 of one that has just ended.
#[derive(Debug, Default, PartialEq, Eq)]
struct Use {
    resident_bytes: u64,
    threads: u64,
    open_files: u64,
}

impl Use {
    fn of(process: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        let open_files = fs::read_dir(format!("/proc/{process}/fd")).map_or(0, |files| files.count() as u64);
        Self { open_files, ..Self::read(&status) }
    }

    /// From the text of `/proc/PID/status`.
    fn read(status: &str) -> Self {
        let number = |key: &str| {
            let rest = status.lines().find_map(|line| line.strip_prefix(key))?;
            rest.split_ascii_whitespace().next()?.parse::<u64>().ok()
        };
        let resident_bytes = number("VmRSS:").unwrap_or_default() << 10;
        Self { resident_bytes, threads: number("Threads:").unwrap_or_default(), open_files: 0 }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use agents::Status;

    use super::*;

    /// A host with an application that lives and one that does not.
    pub(crate) fn host() -> HostNow {
        let local = |name: &str, process| Local {
            name: name.to_owned(),
            process,
            cpu: Duration::from_millis(1500),
            is_refused: false,
            words: String::new(),
        };
        let applications = vec![local("ros-1", Some(std::process::id())), local("sfi-1", None)];
        let status = Status { host: "b".to_owned(), state: State::Fault, applications };
        HostNow { status, silence: Duration::from_millis(250), starts: BTreeMap::from([("ros-1".to_owned(), 2)]) }
    }

    #[test]
    fn what_a_process_has_is_read_as_the_kernel_says_it() {
        let text = "Name:\tweir (a)\nVmRSS:\t    2048 kB\nThreads:\t3\n";
        assert_eq!(Use::read(text), Use { resident_bytes: 2 << 20, threads: 3, open_files: 0 });
        assert_eq!(Use::read(""), Use::default());
        let own = Use::of(std::process::id());
        assert!(own.resident_bytes > 0 && own.threads > 0 && own.open_files > 0, "{own:?}");
    }

    #[test]
    fn who_lives_and_who_does_not_is_told() {
        let text = crate::metrics::text(None, &samples(&host()));
        for line in [
            "weir_host_state{state=\"fault\"} 1",
            "weir_agent_silence_seconds 0.25",
            "weir_application_lives{application=\"sfi-1\"} 0",
            "weir_application_starts_total{application=\"ros-1\"} 2",
            "weir_application_cpu_seconds_total{application=\"ros-1\"} 1.5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("weir_application_threads{application=\"sfi-1\"}"), "it has no process");
    }
}

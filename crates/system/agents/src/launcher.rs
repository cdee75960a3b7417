//! What starts the agent of a host.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use configuration::{Host, Launcher};

/// The command that runs `weir` with these arguments on a host. Its standard input goes to that.
pub(crate) fn command(host: &Host, weir: &Path, arguments: &[OsString]) -> Command {
    let program = host.program.as_ref().map_or(weir, Path::new);
    match host.launcher {
        Launcher::Local => {
            let mut command = Command::new(program);
            command.args(arguments);
            command
        }
        Launcher::Ssh => {
            let line = core::iter::once(program.as_os_str()).chain(arguments.iter().map(OsString::as_os_str));
            let line: Vec<String> = line.map(|word| quoted(&word.to_string_lossy())).collect();
            let mut command = Command::new("ssh");
            // What comes first counts: options of the host before ours.
            command.args(&host.options).args(SSH).arg("--").arg(host.address()).arg(line.join(" "));
            command
        }
        Launcher::Slurm => {
            let mut command = Command::new("srun");
            let on = format!("--nodelist={}", host.address());
            command.args(SRUN).arg(on).args(&host.options).arg(program).args(arguments);
            command
        }
        Launcher::Service => {
            let mut command = Command::new(weir);
            command.arg("call").arg(host.address()).args(&host.options).arg("--").args(arguments);
            command
        }
    }
}

/// A word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// It asks nobody, and ends soon after a host that does not answer.
const SSH: [&str; 10] = [
    "-T",
    "-x",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=2",
    "-o",
    "ServerAliveCountMax=3",
];

/// One task, beside others of the allocation.
const SRUN: [&str; 4] = ["--nodes=1", "--ntasks=1", "--overlap", "--unbuffered"];

#[cfg(test)]
mod tests {
    use super::*;

    fn line(host: &Host) -> Vec<String> {
        let command = command(host, Path::new("/opt/my weir"), &["agent".into(), "--host".into(), "b's".into()]);
        let words = core::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn each_launcher_runs_the_agent_there() {
        let host = Host { name: "b".into(), options: vec!["-p".into(), "22".into()], ..Host::default() };
        assert_eq!(line(&host), ["/opt/my weir", "agent", "--host", "b's"]);
        let ssh = line(&Host { launcher: Launcher::Ssh, address: Some("me@10.0.0.2".into()), ..host.clone() });
        assert_eq!(ssh[..3], ["ssh", "-p", "22"]);
        assert_eq!(ssh[ssh.len() - 2..], ["me@10.0.0.2", r"'/opt/my weir' agent --host 'b'\''s'"]);
        let program = Some("/usr/bin/weir".into());
        let call = line(&Host { launcher: Launcher::Service, ..host.clone() });
        assert_eq!(call, ["/opt/my weir", "call", "b", "-p", "22", "--", "agent", "--host", "b's"]);
        let srun = line(&Host { launcher: Launcher::Slurm, program, ..host });
        assert!(srun[0] == "srun" && srun.contains(&"--nodelist=b".into()), "{srun:?}");
        assert_eq!(srun[srun.len() - 4..], ["/usr/bin/weir", "agent", "--host", "b's"]);
    }
}

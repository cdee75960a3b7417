//! Hosts that are logged in to: a real `sshd` on each.

use std::fs;

use super::farm::{Farm, HOSTS, shell};
use crate::children::MARK;
use crate::running::{Job, within_deadline};

impl Farm {
    /// None where `sshd` is missing, too.
    pub(super) fn to_log_in(test: &str) -> Option<Self> {
        Self::new(test, "sshd (package openssh-server)", Self::keys)
    }

    fn keys(&self) -> Result<(), String> {
        let (host_key, key, known) = (self.path("host_key"), self.path("key"), self.path("known_hosts"));
        shell(&format!(
            "test -x /usr/sbin/sshd; mkdir -p /run/sshd
             ssh-keygen -q -t ed25519 -N '' -f {host_key}; ssh-keygen -q -t ed25519 -N '' -f {key}"
        ))?;
        let public = fs::read_to_string(self.path("host_key.pub")).map_err(|error| error.to_string())?;
        self.write("known_hosts", &format!("10.77.0.* {public}"))?;
        self.write(
            "ssh_config",
            &format!("IdentityFile {key}\nUserKnownHostsFile {known}\nStrictHostKeyChecking yes\n"),
        )
    }

    /// A run with run control in this network and applications on its hosts; the last one is called at this address.
    pub(super) fn logged_in(&mut self, job: Job, last: &str) -> Job {
        let daemon = format!(
            "HostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nSetEnv {MARK}={}\n",
            self.path("host_key"),
            self.path("key.pub"),
            job.directory().display()
        );
        self.write("sshd_config", &daemon).unwrap();
        for host in HOSTS {
            let mut sshd = self.within(host, "/usr/sbin/sshd");
            sshd.args(["-D", "-e", "-f", &self.path("sshd_config")]);
            self.keep(sshd);
        }
        let config = self.path("ssh_config");
        for address in ["10.77.0.2", "10.77.0.3", "10.77.0.4"] {
            within_deadline("a host can be logged in to", || {
                let mut ssh = self.within("rc", "ssh");
                ssh.args(["-F", &config, "-o", "BatchMode=yes", address, "true"]);
                ssh.output().is_ok_and(|output| output.status.success())
            });
        }
        let host = |name: &str, address: &str, rest: &str| {
            format!("{{name={name:?}, launcher=\"ssh\", address={address:?}, options=[\"-F\", {config:?}]{rest}}}")
        };
        let hosts = [
            host("a", "10.77.0.2", ""),
            host("b", "10.77.0.3", ", roles={pros=1, ros=1, efd=1, sfo=1}"),
            host("c", last, ", roles={l2pu=1, ros=1, sfi=1}"),
        ];
        let job = job.in_namespace(&self.namespace("rc")).set("transport.host", "10.77.0.1");
        job.set("host", &format!("[{}]", hosts.join(", ")))
    }
}

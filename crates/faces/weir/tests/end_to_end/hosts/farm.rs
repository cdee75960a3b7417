//! Three hosts and the machine of run control: network namespaces with addresses of their own.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use testkit::TempDir;

/// The network of three hosts, and what the tests start on them. Dropping it ends all of it.
pub(super) struct Farm {
    name: String,
    directory: TempDir,
    daemons: Vec<Child>,
}

/// The hosts; the first has the address 10.77.0.2, the others follow.
pub(super) const HOSTS: [&str; 3] = ["a", "b", "c"];

impl Farm {
    /// None where such cannot be made, or where `prepare` finds that something is missing.
    pub(super) fn new(test: &str, needs: &str, prepare: impl FnOnce(&Self) -> Result<(), String>) -> Option<Self> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("weir-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let farm = Self { name, directory: TempDir::new("hosts"), daemons: Vec::new() };
        match farm.network().and_then(|()| prepare(&farm)) {
            Ok(()) => Some(farm),
            Err(reason) => {
                testkit::skip(test, &format!("needs root, ip (package iproute2) and {needs}: {reason}"));
                None
            }
        }
    }

    fn network(&self) -> Result<(), String> {
        let control = self.namespace("rc");
        let host = |(place, host): (usize, &&str)| {
            let (there, address) = (self.namespace(host), place + 2);
            format!(
                "ip netns add {there}; ip -n {there} link set lo up
                 ip -n {control} link add v{place} type veth peer name data netns {there}
                 ip -n {control} link set v{place} master bridge up
                 ip -n {there} address add 10.77.0.{address}/24 dev data; ip -n {there} link set data up\n"
            )
        };
        let hosts: String = HOSTS.iter().enumerate().map(host).collect();
        shell(&format!(
            "ip netns add {control}; ip -n {control} link set lo up
             ip -n {control} link add bridge type bridge; ip -n {control} address add 10.77.0.1/24 dev bridge
             ip -n {control} link set bridge up\n{hosts}"
        ))
    }

    /// A path in the folder of this farm.
    pub(super) fn path(&self, name: &str) -> String {
        self.directory.join(name).display().to_string()
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), String> {
        fs::write(self.directory.join(name), text).map_err(|error| error.to_string())
    }

    /// Starts what runs as long as the farm is there.
    pub(super) fn keep(&mut self, mut daemon: Command) {
        let quiet = daemon.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.daemons.push(quiet.spawn().unwrap());
    }

    /// Whether something that was started has ended.
    pub(super) fn has_lost_any(&mut self) -> bool {
        self.daemons.iter_mut().any(|daemon| daemon.try_wait().unwrap().is_some())
    }

    /// Nothing gets to a host or away from it any more.
    pub(super) fn cut_off(&self, host: &str) {
        shell(&format!("ip -n {} link set data down", self.namespace(host))).unwrap();
    }

    /// The processes that are on a host.
    pub(super) fn processes(&self, host: &str) -> Vec<i32> {
        let output = Command::new("ip").args(["netns", "pids", &self.namespace(host)]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).lines().map(|pid| pid.parse().unwrap()).collect()
    }

    pub(super) fn namespace(&self, host: &str) -> String {
        format!("{}-{host}", self.name)
    }

    /// A program on a host. It sees the same files as here, `/sys` too.
    pub(super) fn within(&self, host: &str, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.namespace(host))).arg(program);
        command
    }
}

impl Drop for Farm {
    fn drop(&mut self) {
        // The last one started needs the others.
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        for host in HOSTS.into_iter().chain(["rc"]) {
            // A step of a job may have outlived its daemon.
            self.processes(host).into_iter().for_each(|left| _ = kill(Pid::from_raw(left), Signal::SIGKILL));
            // What was not made cannot be removed.
            let _ = Command::new("ip").args(["netns", "delete", &self.namespace(host)]).output();
        }
    }
}

/// Runs commands, of which none may fail.
pub(super) fn shell(commands: &str) -> Result<(), String> {
    let output = Command::new("sh").args(["-ec", commands]).stdin(Stdio::null()).output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

//! Hosts that are nodes of a real Slurm: a controller, and a `slurmd` for each.

use std::fs;
use std::path::Path;

use testkit::TempDir;

use super::farm::{Farm, HOSTS, shell};
use super::{
    check_left_alone, check_lost_when_cut_off, check_lost_with_its_agent, check_runs, quickstart, quickstart_for,
};
use crate::children::MARK;
use crate::files::check_all;
use crate::running::{Job, Running, examples, is_within_deadline, program, within_deadline};

#[test]
fn a_partition_runs_on_three_nodes() {
    let Some((farm, running)) = start("slurm::a_partition_runs_on_three_nodes", quickstart()) else { return };
    check_runs(&farm, running);
    within_deadline("no job is left", || farm.jobs().is_empty());
}

#[test]
fn runs_follow_one_another_within_an_allocation() {
    let test = "slurm::runs_follow_one_another_within_an_allocation";
    let Some(mut farm) = Farm::of_nodes(test) else { return };
    let job = farm.on_nodes(quickstart_for(300).with(&["--runs", "2"]));
    let ended = job.launched_by(&["salloc", "--quiet", "--nodes=3"]).run().expect(0);
    assert_eq!(ended.stdout.matches(": ok, residual 0").count(), 2, "{}", ended.stdout);
    assert_eq!(check_all(ended.output()).len(), 2);
}

#[test]
fn a_node_that_is_cut_off_is_lost() {
    let Some((farm, running)) = start("slurm::a_node_that_is_cut_off_is_lost", quickstart()) else { return };
    check_lost_when_cut_off(&farm, running);
}

#[test]
fn a_node_whose_agent_dies_is_lost_at_once() {
    let test = "slurm::a_node_whose_agent_dies_is_lost_at_once";
    let Some((_farm, running)) = start(test, quickstart()) else { return };
    check_lost_with_its_agent(running);
}

#[test]
fn without_run_control_nothing_is_left_on_any_node() {
    let test = "slurm::without_run_control_nothing_is_left_on_any_node";
    let Some((farm, mut running)) = start(test, quickstart()) else { return };
    running.until_recording();
    check_left_alone(&running);
    within_deadline("no job is left", || farm.jobs().is_empty());
}

/// Run control is on the first node of the job, and the nodes are its hosts.
#[test]
fn the_script_for_sbatch_takes_a_run_on_the_nodes_of_its_job() {
    let test = "slurm::the_script_for_sbatch_takes_a_run_on_the_nodes_of_its_job";
    let Some(farm) = Farm::of_nodes(test) else { return };
    let folder = TempDir::new("sbatch");
    let mut batch = farm.within("rc", "sbatch");
    batch.args(["--quiet", "--wait", "--output=said"]).arg(examples().join("hosts/weir-run.sbatch"));
    batch.arg(examples().join("quickstart.toml")).args(["--events", "300", "--summary", "summary.json"]);
    for key in ["l2sv.timeout", "l2pu.request_timeout", "ros.request_timeout", "sfi.request_timeout"] {
        batch.args(["--set", &format!("{key}=60 s")]);
    }
    batch.args(["--set", "processes.start_timeout=240 s"]).current_dir(folder.path());
    batch.env("SLURM_CONF", farm.path("slurm.conf")).env("WEIR", program()).env(MARK, folder.path());
    let told = batch.output().unwrap();
    let said = fs::read_to_string(folder.join("said")).unwrap_or_default();
    assert!(told.status.success() && said.contains(": ok, residual 0"), "{told:?}\n{said}");
    assert_eq!(check_all(&folder.join("out")).len(), 1);
    within_deadline("no job is left", || farm.jobs().is_empty());
}

fn start(test: &str, job: Job) -> Option<(Farm, Running)> {
    let mut farm = Farm::of_nodes(test)?;
    let running = farm.on_nodes(job).start();
    Some((farm, running))
}

impl Farm {
    /// None where Slurm is missing, too.
    pub(super) fn of_nodes(test: &str) -> Option<Self> {
        let mut farm = Self::new(test, "Slurm (packages slurmctld, slurmd, slurm-client, munge)", Self::cluster)?;
        if farm.start_daemons() {
            return Some(farm);
        }
        testkit::skip(test, &format!("Slurm does not start on this machine:\n{}", farm.complaints()));
        None
    }

    fn cluster(&self) -> Result<(), String> {
        let key = self.path("munge.key");
        shell(&format!(
            "for program in munged slurmctld slurmd srun salloc nsenter; do
                 PATH=$PATH:/usr/sbin command -v $program >/dev/null || {{ echo no $program >&2; exit 1; }}
             done
             umask 077; head -c 128 /dev/urandom > {key}; chmod 755 {}; mkdir {}",
            self.path(""),
            self.path("state")
        ))?;
        let machine = fs::read_to_string("/proc/sys/kernel/hostname").map_err(|error| error.to_string())?;
        let machine = machine.trim();
        let nodes: String = HOSTS
            .iter()
            .zip(2..)
            .map(|(host, last)| {
                format!("NodeName={host} NodeHostname={machine} NodeAddr=10.77.0.{last} Port=17001 CPUs=2\n")
            })
            .collect();
        let in_folder = [
            ("AuthInfo", "socket=", "munge.socket"),
            ("StateSaveLocation", "", "state"),
            ("SlurmctldPidFile", "", "slurmctld.pid"),
            ("SlurmctldLogFile", "", "slurmctld.log"),
            ("SlurmdSpoolDir", "", "spool.%n"),
            ("SlurmdPidFile", "", "slurmd.%n.pid"),
            ("SlurmdLogFile", "", "slurmd.%n.log"),
        ];
        let paths: String =
            in_folder.iter().map(|(key, kind, name)| format!("{key}={kind}{}\n", self.path(name))).collect();
        self.write(
            "slurm.conf",
            &format!(
                "ClusterName=weir\nSlurmctldHost={machine}(10.77.0.1)\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\n{paths}\
                 ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSelectType=select/cons_tres\nReturnToService=2\n\
                 {nodes}PartitionName=p Nodes=a,b,c Default=YES State=UP OverSubscribe=FORCE:4\n"
            ),
        )
    }

    /// Whether all nodes wait for work.
    fn start_daemons(&mut self) -> bool {
        let mut munged = self.within("rc", "/usr/sbin/munged");
        munged.arg("--foreground");
        for (option, name) in
            [("key-file", "key"), ("socket", "socket"), ("pid-file", "pid"), ("seed-file", "seed"), ("log-file", "log")]
        {
            munged.arg(format!("--{option}={}", self.path(&format!("munge.{name}"))));
        }
        self.keep(munged);
        if !is_within_deadline(|| self.has_lost_any() || Path::new(&self.path("munge.socket")).exists()) {
            return false;
        }
        let configuration = self.path("slurm.conf");
        let mut controller = self.within("rc", "/usr/sbin/slurmctld");
        controller.args(["-D", "-f", &configuration]);
        self.keep(controller);
        for host in HOSTS {
            let mut node = self.within(host, "/usr/sbin/slurmd");
            node.args(["-D", "-f", &configuration, "-N", host]);
            self.keep(node);
        }
        let mut are_idle = false;
        is_within_deadline(|| {
            are_idle = self.ask("sinfo", &["-h", "-t", "idle", "-o", "%D"]) == "3";
            are_idle || self.has_lost_any()
        });
        are_idle
    }

    /// The ends of what the daemons have written.
    fn complaints(&self) -> String {
        let logs = ["munge.log", "slurmctld.log", "slurmd.a.log", "slurmd.b.log", "slurmd.c.log"];
        let end = |log: &str| {
            let text = fs::read_to_string(self.path(log)).unwrap_or_default();
            let last = text.lines().rev().take(5).collect::<Vec<_>>();
            format!("{log}:\n{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"))
        };
        logs.map(end).join("\n")
    }

    /// A run with run control at Slurm's controller and applications on its nodes.
    pub(super) fn on_nodes(&mut self, job: Job) -> Job {
        let host = |name: &str, last: u8, rest: &str| {
            format!("{{name={name:?}, launcher=\"slurm\", data=\"10.77.0.{last}\"{rest}}}")
        };
        let hosts = [
            host("a", 2, ""),
            host("b", 3, ", roles={pros=1, ros=1, efd=1, sfo=1}"),
            host("c", 4, ", roles={l2pu=1, ros=1, sfi=1}"),
        ];
        let job = job.in_namespace(&self.namespace("rc")).set("transport.host", "10.77.0.1");
        let job = job.environment("SLURM_CONF", Path::new(&self.path("slurm.conf")));
        job.set("host", &format!("[{}]", hosts.join(", ")))
    }

    /// What Slurm runs or is about to run.
    pub(super) fn jobs(&self) -> String {
        self.ask("squeue", &["-h"])
    }

    fn ask(&self, program: &str, arguments: &[&str]) -> String {
        let mut command = self.within("rc", program);
        let output = command.args(arguments).env("SLURM_CONF", self.path("slurm.conf")).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

//! Hosts on which `weir host` stays.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use nix::sys::signal::Signal;
use testkit::TempDir;

use super::farm::{Farm, HOSTS};
use super::{
    check_left_alone, check_lost_when_cut_off, check_lost_with_its_agent, check_runs, quickstart, quickstart_for,
};
use crate::children::{MARK, stays};
use crate::files::check_all;
use crate::running::{Job, Running, examples, program, send, within_deadline};

#[test]
fn a_partition_runs_on_three_hosts() {
    let Some((farm, running)) = start("service::a_partition_runs_on_three_hosts", quickstart()) else { return };
    check_runs(&farm, running);
}

/// Each has its own agents on them, and the same name.
#[test]
fn two_partitions_share_the_hosts() {
    let Some(mut farm) = Farm::to_call("service::two_partitions_share_the_hosts") else { return };
    let one = farm.called(quickstart_for(300)).start();
    let other = farm.calling(quickstart_for(300)).run().expect(0);
    for ended in [one.end().expect(0), other] {
        assert!(ended.stdout.contains(": ok, residual 0"), "{}", ended.stdout);
        assert_eq!(check_all(ended.output()).len(), 1);
    }
}

#[test]
fn a_host_that_is_cut_off_is_lost() {
    let Some((farm, running)) = start("service::a_host_that_is_cut_off_is_lost", quickstart()) else { return };
    check_lost_when_cut_off(&farm, running);
}

#[test]
fn a_host_whose_agent_dies_is_lost_at_once() {
    let test = "service::a_host_whose_agent_dies_is_lost_at_once";
    let Some((_farm, running)) = start(test, quickstart()) else { return };
    check_lost_with_its_agent(running);
}

#[test]
fn without_run_control_nothing_is_left_on_any_host() {
    let test = "service::without_run_control_nothing_is_left_on_any_host";
    let Some((_farm, mut running)) = start(test, quickstart()) else { return };
    running.until_recording();
    check_left_alone(&running);
}

#[test]
fn time_stamps_are_named_host_by_host() {
    let test = "service::time_stamps_are_named_host_by_host";
    let Some((_farm, running)) = start(test, quickstart_for(300).set("run.stamps", "on")) else { return };
    let ended = running.end().expect(0);
    for (host, files) in [("a", 6), ("b", 4), ("c", 3)] {
        let said = format!("time stamps on host {host}: {files} files in /");
        assert!(ended.stderr.contains(&said), "{said}: {}", ended.stderr);
    }
}

/// An agent needs it for its start alone.
#[test]
fn a_run_goes_on_without_the_services() {
    let Some((farm, mut running)) = start("service::a_run_goes_on_without_the_services", quickstart()) else { return };
    running.until_recording();
    let services: Vec<i32> = HOSTS.iter().flat_map(|host| farm.processes(host)).filter(|pid| stays(*pid)).collect();
    assert_eq!(services.len(), HOSTS.len());
    services.into_iter().for_each(|service| send(service, Signal::SIGKILL));
    running.until_more_is_recorded();
    running.signal(Signal::SIGINT);
    running.end().expect_ok();
}

#[test]
fn who_has_another_key_starts_nothing() {
    let Some(mut farm) = Farm::to_call("service::who_has_another_key_starts_nothing") else { return };
    let job = farm.called(quickstart());
    farm.write("farm.key", &"another key, also of 32 characters".repeat(2)).unwrap();
    let ended = job.run().expect(2);
    let all = ["does not listen: ", "is the key of the farm the same there?", "its launcher exited with status 2"];
    assert!(all.iter().all(|said| ended.stderr.contains(said)), "{}", ended.stderr);
}

#[test]
fn the_manifest_for_kubernetes_is_valid() {
    let Some(python) = testkit::python("service::the_manifest_for_kubernetes_is_valid") else { return };
    let mut validate = Command::new(python);
    validate.args(["-m", "kubernetes_validate", "--strict"]).arg(examples().join("hosts/weir-host.yaml"));
    let said = validate.output().unwrap();
    assert!(said.status.success(), "{}{}", text(&said.stdout), text(&said.stderr));
}

#[test]
fn the_unit_of_systemd_is_valid() {
    let unit = fs::read_to_string(examples().join("hosts/weir-host.service")).unwrap();
    let folder = TempDir::new("unit");
    let path = folder.join("weir-host.service");
    fs::write(&path, unit.replace("/usr/local/bin/weir", &program())).unwrap();
    let Ok(said) = Command::new("systemd-analyze").arg("verify").arg(&path).output() else {
        return testkit::skip("service::the_unit_of_systemd_is_valid", "no systemd-analyze (package systemd)");
    };
    // What it does not know it names, and is content.
    assert!(said.status.success() && !text(&said.stderr).contains("weir-host.service"), "{}", text(&said.stderr));
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn start(test: &str, job: Job) -> Option<(Farm, Running)> {
    let mut farm = Farm::to_call(test)?;
    let running = farm.called(job).start();
    Some((farm, running))
}

impl Farm {
    fn to_call(test: &str) -> Option<Self> {
        Self::new(test, "nothing else", |farm| {
            farm.write("farm.key", "a key that this farm alone has, and no other")?;
            fs::set_permissions(farm.path("farm.key"), fs::Permissions::from_mode(0o600))
                .map_err(|error| error.to_string())
        })
    }

    /// A run with run control in this network and applications on its hosts, on which the service is.
    fn called(&mut self, job: Job) -> Job {
        for (host, last) in HOSTS.iter().zip(2..) {
            let mut service = self.within(host, &program());
            let listen = format!("10.77.0.{last}:7350");
            service.args(["host", "--listen", &listen, "--key", &self.path("farm.key")]).env(MARK, job.directory());
            self.keep(service);
            within_deadline("a host can be called", || {
                let mut try_it = self.within("rc", "bash");
                try_it.args(["-c", &format!("exec 3<>/dev/tcp/10.77.0.{last}/7350")]);
                try_it.output().is_ok_and(|output| output.status.success())
            });
        }
        self.calling(job)
    }

    /// A run on hosts on which the service is already. It has the mark of another.
    fn calling(&self, job: Job) -> Job {
        let key = self.path("farm.key");
        let host = |name: &str, address: &str, rest: &str| {
            format!("{{name={name:?}, launcher=\"service\", address={address:?}, options=[\"--key\", {key:?}]{rest}}}")
        };
        let hosts = [
            host("a", "10.77.0.2", ""),
            host("b", "10.77.0.3:7350", ", roles={pros=1, ros=1, efd=1, sfo=1}"),
            host("c", "10.77.0.4", ", roles={l2pu=1, ros=1, sfi=1}"),
        ];
        let job = job.in_namespace(&self.namespace("rc")).set("transport.host", "10.77.0.1");
        job.set("host", &format!("[{}]", hosts.join(", ")))
    }
}

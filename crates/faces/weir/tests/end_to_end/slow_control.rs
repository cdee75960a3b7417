//! Values of the slow control as a source: a channel of a real server of EPICS.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::files::check_all;
use crate::running::{Job, within_deadline};
use crate::sources::{Installed, ended, spawn};

#[test]
fn each_slice_has_the_values_of_its_time() {
    let Some(python) = testkit::python("each_slice_has_the_values_of_its_time") else { return };
    let installed = Installed::new();
    let folder = installed.directory.path();
    // The port is fixed, so the server has a loopback address of its own.
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    let address = Ipv4Addr::new(127, 110 + high, middle, low).to_string();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/slow_control.py");
    let mut server = Command::new(&python);
    server.arg(&script).args(["serve", &address]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _server = Server(server.spawn().unwrap());
    // Else the client looks for it seldom.
    within_deadline("the server listens", || TcpStream::connect((address.as_str(), 5064)).is_ok());
    let at = format!("shm:{}", folder.join("slow").display());
    let configuration = folder.join("slow.toml");
    fs::write(&configuration, CONFIGURATION.replace("shm:slow", &at)).unwrap();
    let running = Job::of(&configuration).patient().events(EVENTS).start();
    let mut values = Command::new(&python);
    values.args(["-m", "weir.slow_control", &at, "TEST:VOLTAGE"]).current_dir(folder);
    values.env("PYTHONPATH", installed.prefix.join("lib/weir/python")).env("PYTHONDONTWRITEBYTECODE", "1");
    values.env("EPICS_CA_ADDR_LIST", &address).env("EPICS_CA_AUTO_ADDR_LIST", "NO");
    let values = spawn(&mut values);
    let (ended_run, summary) = running.end().expect_ok();
    let values = ended(values);
    assert!(values.status.success(), "{values:?}");
    assert_eq!(summary.count("recorded"), EVENTS);
    check_all(ended_run.output());
    let told = Command::new(&python).arg(script).arg("check").arg(ended_run.output()).output().unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
}

/// Dropping it ends it.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Those of eight seconds.
const EVENTS: u64 = 800;
const CONFIGURATION: &str = r#"
[partition]
name = "slow"
[level1]
source = "time"
slice = "10 ms"
grace = "60 s"
[ros]
count = 1
[[source]]
name = "slow"
at = "shm:slow"
size_max = "4 kB"
[dfm]
[sfi]
count = 1
[sfo]
count = 1
"#;

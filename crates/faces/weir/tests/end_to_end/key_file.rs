//! The key for orders, and who commands, outlive run control in a file.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use nix::sys::signal::Signal;
use testkit::TempDir;

use crate::running::Job;
use crate::served::Served;

#[test]
fn a_service_that_is_started_again_has_the_key_and_the_lock_of_the_one_before() {
    let folder = TempDir::new("key-file");
    let file = folder.join("session.key");
    let path = file.to_str().unwrap();
    let job = || Job::example("quickstart").patient().with(&["--one-process", "--key-file", path]);
    let mut served = Served::start(job());
    let key = served.key.clone();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::read_to_string(&file).unwrap(), key.clone() + "\n");
    served.ctl("anna", &["boot"]);
    served.running.signal(Signal::SIGKILL);
    served.running.end_of_last();

    served.again(&[]);
    assert_eq!((&served.key, served.status()["operator"]["name"].as_str()), (&key, Some("anna")));
    assert!(served.refused("bob", &["boot"], 1).starts_with("weir: anna commands this partition"));
    // Whoever has the file needs no other way to the service than its address.
    let elsewhere = TempDir::new("elsewhere");
    let mut ctl = served.ctl_command("bob");
    ctl.env("XDG_RUNTIME_DIR", elsewhere.path()).args(["--key-file", path, "--address", &served.address]);
    let told = ctl.args(["--take-over", "boot"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&told.stdout), "the applications run\n", "{told:?}");
    let other = folder.join("other.key");
    fs::write(&other, "0".repeat(64)).unwrap();
    fs::set_permissions(&other, Permissions::from_mode(0o600)).unwrap();
    let refused = served.refused("bob", &["--key-file", other.to_str().unwrap(), "shutdown"], 1);
    assert!(refused.contains("a key is missing or wrong"), "{refused}");
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);

    // In order it gives command up, and keeps the key.
    let mut served = Served::start(job());
    assert_eq!((&served.key, served.status()["operator"].is_null()), (&key, true));
    served.running.signal(Signal::SIGTERM);
    assert!(served.running.end_of_last().success());
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    let ended = job().served().run().expect(2);
    let why = format!("--key-file, {path}: others can read it: expected the mode 600, found 640");
    assert!(ended.stderr.contains(&why), "{}", ended.stderr);
}

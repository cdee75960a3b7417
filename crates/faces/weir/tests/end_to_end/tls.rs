//! `weir serve` beyond loopback: all is encrypted, and commands on this machine go on as before.

use std::fs;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use testkit::TempDir;

use crate::running::{Job, Running};

#[test]
fn a_service_beyond_loopback_is_known_by_its_certificate() {
    let mut running = Job::example("quickstart").served_at("0.0.0.0:0").start();
    let Place { port, key, fingerprint } = Place::of(&mut running);
    ask(&port, &key, &fingerprint);
    let here = running.directory().path();
    let whereabouts = fs::read_to_string(here.join("weir/quickstart.json")).unwrap();
    let is_other = !whereabouts.contains(&format!(":{port}\""));
    assert!(whereabouts.contains("127.0.0.1:") && is_other, "{whereabouts}");
    running.signal(Signal::SIGTERM);
    running.end().expect(0);
}

/// Openssl makes one, as a site would.
#[test]
fn a_certificate_of_ones_own_is_shown_at_loopback_too() {
    let folder = TempDir::new("certificate");
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| folder.join(name).display().to_string());
    let names = "subjectAltName=DNS:localhost,DNS:".to_owned() + &host() + ",IP:127.0.0.1";
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=daq", "-addext", &names, "-keyout", &key, "-out", &certificate])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let arguments = ["--certificate", &certificate, "--certificate-key", &key];
    let mut running = Job::example("quickstart").served().with(&arguments).start();
    let Place { port, key, fingerprint } = Place::of(&mut running);
    ask(&port, &key, &fingerprint);
    running.signal(Signal::SIGTERM);
    running.end().expect(0);
}

/// What a service has printed.
struct Place {
    port: String,
    key: String,
    fingerprint: String,
}

impl Place {
    fn of(running: &mut Running) -> Self {
        let mut found = None;
        running.until("somebody listens", |running| {
            found = Self::said(&running.error_output());
            found.is_some()
        });
        found.expect("waited for")
    }

    fn said(printed: &str) -> Option<Self> {
        let (_, place) = printed.split_once("open https://")?;
        let (address, rest) = place.split_once("/#key=")?;
        let (key, rest) = rest.split_once(' ')?;
        let (_, fingerprint) = rest.split_once("SHA-256 ")?;
        let (fingerprint, _) = fingerprint.split_once('\n')?;
        let port = address.rsplit(':').next()?;
        Some(Self { port: port.to_owned(), key: key.to_owned(), fingerprint: fingerprint.to_owned() })
    }
}

fn ask(port: &str, key: &str, fingerprint: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/tls.py");
    let told = Command::new("python3").arg(script).args([port, key, fingerprint]).output().unwrap();
    assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

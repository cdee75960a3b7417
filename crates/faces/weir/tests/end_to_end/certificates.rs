//! Certificates of servers, which openssl makes.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A certificate of a server at an IP address, and its key, in a directory.
pub(crate) fn certificate(directory: &Path, ip: &str, of: &str) -> [PathBuf; 2] {
    let [certificate, key] = ["pem", "key"].map(|kind| directory.join(format!("{of}.{kind}")));
    let name = format!("subjectAltName=IP:{ip}");
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", &format!("/CN={of}"), "-addext", &name, "-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-keyout")
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    [certificate, key]
}

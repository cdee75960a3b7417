//! The page of `weir serve` in a real browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;

use crate::running::Job;
use crate::served::Served;

/// Nothing but the browser: two runs from boot to shutdown, all views, light and dark. `WEIR_SCREENSHOTS` keeps what was seen.
#[test]
fn people_take_data_at_the_page_and_find_it() {
    let name = "people_take_data_at_the_page_and_find_it";
    let (Some(python), Some(chromium)) = (testkit::python(name), chromium(name)) else { return };
    let served = Served::start(Job::example("quickstart").patient());
    let directory = served.running.directory().path();
    let screenshots = std::env::var_os("WEIR_SCREENSHOTS").map_or_else(|| directory.join("screenshots"), PathBuf::from);
    fs::create_dir_all(&screenshots).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/end_to_end/page.py");
    let mut people = Command::new(python);
    people.arg(script).args([&served.link().into(), &chromium, screenshots.as_os_str()]);
    // What the browser writes goes with the test.
    let seen = people.env("HOME", directory).env("TMPDIR", directory).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(seen.status.success(), "{}{}", text(&seen.stdout), text(&seen.stderr));
    served.running.signal(Signal::SIGINT);
    served.end().expect(0);
}

/// The browser; without it the test is skipped by name.
pub(crate) fn chromium(test: &str) -> Option<std::ffi::OsString> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("chromium")).find(|path| path.is_file());
    if found.is_none() {
        testkit::skip(test, "no chromium (on Debian: apt-get install chromium)");
    }
    found.map(Into::into)
}

//! `weir top` on a terminal that `script` makes for it.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::json;

use crate::running::{Job, is_within_deadline, program};
use crate::served::Served;

#[test]
fn a_run_is_watched_and_commanded_by_keys() {
    let mut served =
        Served::start(Job::example("quickstart").patient().set("ros.count", "2").set("run.events", "1000000000"));
    served.ctl("anna", &["boot"]);
    let mut screen = Screen::open(&served);
    screen.until_shown(&["quickstart", "booted", "anna commands", "nobody waits for another|ready for a run", "quit"]);
    screen.press("s");
    served.until_state("running");
    served.running.until_recording();
    screen.until_shown(&["quickstart  running", "p pause", "level 1, at most", "dead time"]);
    screen.press("p");
    served.until_state("paused");
    screen.until_shown(&["quickstart  paused", "r resume"]);
    screen.press("r");
    served.until_state("running");
    screen.until_shown(&["quickstart  running", "p pause", "x stop"]);
    // No is said first.
    screen.press("xnx");
    screen.until_shown(&["stop? y: yes"]);
    assert_eq!(served.status()["state"], json!("running"));
    screen.press("y");
    let ended = served.until_state("booted");
    screen.until_shown(&["quickstart  booted", "s start"]);
    assert_eq!(ended["last"]["number"], json!(1), "{ended}");
    screen.press("q");
    assert_eq!(screen.end(), Some(0));
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);
}

#[test]
fn it_goes_on_without_run_control_and_ends_with_its_signal() {
    let served = Served::start(Job::example("quickstart"));
    let mut screen = Screen::open(&served);
    screen.until_shown(&["quickstart", "no application runs"]);
    served.running.signal(Signal::SIGTERM);
    screen.until_shown(&["nothing is heard: "]);
    served.end();
    screen.press("\u{3}");
    assert_eq!(screen.end(), Some(0));
}

#[test]
fn it_needs_a_terminal_and_a_partition() {
    let top = |arguments: &[&str]| {
        let here = testkit::TempDir::new("top");
        let output = Command::new(program()).arg("top").args(arguments).env("XDG_RUNTIME_DIR", here.path()).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, said) = top(&[]);
    assert!(status == Some(2) && said.contains("`weir ctl status --watch`"), "{said}");
}

/// `weir top` of a service, as the same person who commands it.
struct Screen {
    child: Child,
    /// All that was written to the terminal.
    written: PathBuf,
}

const ROWS: u16 = 30;
const COLUMNS: u16 = 110;

impl Screen {
    fn open(served: &Served) -> Self {
        let here = served.running.directory().path();
        let written = here.join("screen");
        let command = format!("stty rows {ROWS} cols {COLUMNS}; exec {} top", program());
        let child = Command::new("script")
            .args(["--quiet", "--flush", "--return", "--command", &command, "/dev/null"])
            .current_dir(here)
            .env("XDG_RUNTIME_DIR", here)
            .env("WEIR_OPERATOR", "anna")
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(File::create(&written).unwrap())
            .spawn()
            .unwrap();
        Self { child, written }
    }

    fn press(&mut self, keys: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(keys.as_bytes()).and_then(|()| input.flush()).unwrap();
    }

    /// Waits until each of these stands on the screen; `|` stands between words of which one is enough.
    fn until_shown(&self, all: &[&str]) {
        let is_shown = || {
            let text = self.text();
            all.iter().all(|words| words.split('|').any(|words| text.contains(words)))
        };
        assert!(is_within_deadline(is_shown), "expected {all:?} on the screen, found\n{}", self.text());
    }

    fn text(&self) -> String {
        let mut terminal = vt100::Parser::new(ROWS, COLUMNS, 0);
        terminal.process(&fs::read(&self.written).unwrap());
        terminal.screen().contents()
    }

    fn end(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing is left to end where it was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! The API, asked for what its document allows and for what it does not.

use std::process::Command;

use nix::sys::signal::Signal;

use crate::running::Job;
use crate::served::Served;

/// Whatever is asked, with the key or without one: the answer is one that the document names, and the service goes on.
#[test]
fn the_api_answers_all_requests_as_its_document_says() {
    let Some(python) = testkit::python("the_api_answers_all_requests_as_its_document_says") else { return };
    let served = Served::start(Job::example("quickstart").patient().with(&["--one-process"]));
    let directory = served.running.directory().path();
    let mut schemathesis = Command::new(python.with_file_name("schemathesis"));
    schemathesis.args(["run", &format!("http://{}/api/openapi.json", served.address), "--no-color", "--seed", "1"]);
    schemathesis.args(["--header", &format!("Authorization: Bearer {}", served.key), "--max-examples", "10"]);
    schemathesis
        .args(["--request-timeout", "600", "--checks", CHECKS])
        .args(EXCLUDED.iter().flat_map(|path| ["--exclude-path", path]));
    // What it remembers goes with the test.
    let told = schemathesis.current_dir(directory).env("HOME", directory).output().unwrap();
    let said = String::from_utf8_lossy(&told.stdout);
    assert!(
        told.status.success(),
        "{said}{}\n{}",
        String::from_utf8_lossy(&told.stderr),
        served.running.error_output()
    );
    assert!(said.contains("Tested: "), "{said}");
    served.status();
    served.running.signal(Signal::SIGINT);
    served.end().expect(0);
}

const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,ignored_auth";
/// Two never end, and one simulates for a minute.
const EXCLUDED: [&str; 3] = ["/api/events", "/api/samples/events", "/api/forecast"];

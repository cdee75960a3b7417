//! What changed keys would do: the check and a simulation, over HTTP.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::running::Job;
use crate::served::Served;

#[test]
fn changed_keys_are_checked_and_simulated_and_nothing_changes() {
    let served = Served::start(Job::example("quickstart"));
    let before = served.get("configuration");
    let ask = |what: &str, set: &[&str]| served.post(what, &json!({ "set": set }));
    let told = |what: &str, set: &[&str]| -> Value {
        let answer = ask(what, set);
        assert_eq!(answer.status, 200, "{answer:?}");
        serde_json::from_str(&answer.body).unwrap()
    };
    let checked = told("check", &["sfi.count=3"]);
    assert_eq!(checked["errors"], json!([]), "{checked}");
    assert!(checked["toml"].as_str().unwrap().contains("[sfi]\ncount = 3\n"), "{checked}");
    let foretold = told("forecast", &["level1.rate=500 Hz", "sfi.count=1"]);
    let rate = foretold["summary"]["rates_hz"]["level1"].as_f64().unwrap();
    assert!((450.0..550.0).contains(&rate) && foretold["summary"]["accounting"]["level1"] == 5000, "{foretold}");
    assert!(foretold["notes"].to_string().contains("built-in costs"), "{}", foretold["notes"]);

    for (what, set, said) in [
        ("check", "sfi.count=many", "sfi.count"),
        ("forecast", "sfi.counts=2", "sfi.counts"),
        ("check", "@/etc/passwd", "expected key=value"),
    ] {
        let answer = ask(what, &[set]);
        assert!(answer.status == 422 && answer.error().contains(said), "{set}: {answer:?}");
    }
    let answer = served.ask("POST", "/api/forecast", &[("Content-Type", "application/json")], "{}");
    assert_eq!(answer.status, 401);
    assert_eq!(served.get("configuration"), before);
    served.running.signal(Signal::SIGTERM);
    served.end().expect(0);
}

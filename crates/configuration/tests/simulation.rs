//! `[simulation]`, and the scenarios that have it.

use std::fs;
use std::path::Path;

use configuration::Partition;

#[test]
fn the_scenarios_are_good() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut found = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        // That of ATM is no partition.
        if path.extension().is_some_and(|extension| extension == "toml") && !path.ends_with("atm1997.toml") {
            let partition = Partition::load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
            assert!(partition.simulation.is_some(), "{}", path.display());
            found += 1;
        }
    }
    assert!(found > 0);
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    for (key, word) in [
        ("simulation.cores=0", "simulation.cores"),
        ("simulation.tcp_window=\"1 kB\"", "simulation.tcp_window"),
        ("simulation.cost=[{ role = \"rose\" }]", "did you mean"),
        ("simulation.fault=[{ application = \"sfi-9\" }]", "expected an application"),
    ] {
        let text = "[partition]\nname = \"p\"\n[ros]\ncount = 4\n[sfi]\ncount = 2\n";
        let error = Partition::parse("p.toml", text, &[key.to_owned()]).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

//! Dependencies go one way between our crates, and what comes from outside is permissively licensed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::tree::{assert_none, packages, root, wings};

/// Which wings the crates of each wing may depend on, besides their own.
const ALLOWED: [(&str, &[&str]); 6] = [
    ("core", &[]),
    ("machine", &["core"]),
    ("system", &["machine", "core"]),
    ("faces", &["lab", "system", "machine", "core"]),
    ("lab", &["system", "machine", "core"]),
    ("tools", &["lab", "system", "machine", "core"]),
];

/// What stands across these arrows: `rol` reads types of the configuration, and the laboratory talks to people as the program does.
const STANDS_ACROSS: [(&str, &str); 5] = [
    ("rol", "configuration"),
    ("simulation", "terminal"),
    ("benchmarks", "terminal"),
    ("studies", "terminal"),
    ("traces", "terminal"),
];

/// For tests, any crate may also use this one.
const FOR_TESTS: &str = "testkit";

#[test]
fn wings_depend_on_each_other_one_way() {
    let wings = wings();
    let allowed = BTreeMap::from(ALLOWED);
    let mut found = Vec::new();
    for package in packages().iter().filter(|package| package["source"].is_null()) {
        let name = package["name"].as_str().unwrap();
        let wing = wings[name];
        for dependency in package["dependencies"].as_array().unwrap() {
            let on = dependency["name"].as_str().unwrap();
            let Some(&its) = wings.get(on) else { continue };
            let in_test = dependency["kind"] == "dev" && (on == FOR_TESTS || on == name);
            let may = its == wing || allowed[wing].contains(&its) || STANDS_ACROSS.contains(&(name, on));
            if !may && !in_test {
                found.push(format!("{name} of {wing} depends on {on} of {its}"));
            }
        }
    }
    assert_none("dependencies between wings go one way", &found);
}

/// Cargo writes the lock of the fuzz targets, which are a workspace of their own, only when somebody fuzzes.
#[test]
fn the_lock_of_the_fuzz_targets_follows_our_crates() {
    let lock: toml::Table = fs::read_to_string(root().join("fuzz/Cargo.lock")).unwrap().parse().unwrap();
    let locked: BTreeMap<&str, BTreeSet<&str>> = lock["package"].as_array().unwrap().iter().map(locked).collect();
    let mut found = Vec::new();
    for package in packages().iter().filter(|package| package["source"].is_null()) {
        let name = package["name"].as_str().unwrap();
        let Some(locked) = locked.get(name) else { continue };
        let all = package["dependencies"].as_array().unwrap().iter();
        let needed = all.filter(|dependency| dependency["kind"] != "dev" && dependency["optional"] == false);
        let needed: BTreeSet<&str> = needed.map(|dependency| dependency["name"].as_str().unwrap()).collect();
        let differ: Vec<_> = needed.symmetric_difference(locked).collect();
        if !differ.is_empty() {
            found.push(format!("{name}: {differ:?}: run `cargo metadata --manifest-path fuzz/Cargo.toml`"));
        }
    }
    assert_none("fuzz/Cargo.lock names the dependencies of our crates", &found);
}

/// A package of a lock file, and what it depends on.
fn locked(package: &toml::Value) -> (&str, BTreeSet<&str>) {
    let all = package.get("dependencies").and_then(|all| all.as_array()).into_iter().flatten();
    let names = all.map(|text| text.as_str().unwrap().split(' ').next().unwrap());
    (package["name"].as_str().unwrap(), names.collect())
}

#[test]
fn all_that_comes_from_outside_is_published_permissively_licensed_and_not_banned() {
    let deny: toml::Table = fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap();
    let listed = deny["licenses"]["allow"].as_array().unwrap();
    let listed: Vec<&str> = listed.iter().map(|licence| licence.as_str().unwrap()).collect();
    for licence in &listed {
        assert!(PERMISSIVE.contains(licence), "{licence} in deny.toml is not one of the permissive licences agreed on");
    }
    let banned: Vec<&str> =
        deny["bans"]["deny"].as_array().unwrap().iter().map(|ban| ban["crate"].as_str().unwrap()).collect();
    assert!(banned.contains(&"cmake"), "{banned:?}");
    let mut found = Vec::new();
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        if banned.contains(&name) {
            found.push(format!("{name}: banned"));
        }
        let licence = package["license"].as_str().unwrap_or("none");
        if !may_be_used(licence, &listed) {
            found.push(format!("{name}: licence {licence}"));
        }
        let source = package["source"].as_str();
        if source.is_some_and(|source| source != "registry+https://github.com/rust-lang/crates.io-index") {
            found.push(format!("{name}: from {}", package["source"]));
        }
    }
    assert_none(
        "dependencies come from the public registry, under a licence listed in deny.toml, which does not ban them",
        &found,
    );
}

/// Whether an SPDX expression lets us choose listed licences only. The older `/` means `OR`.
fn may_be_used(expression: &str, listed: &[&str]) -> bool {
    let expression = expression.replace('/', " OR ");
    // In SPDX, AND binds more tightly than OR.
    if let Some((before, rest)) = expression.split_once('(') {
        let (inner, after) = rest.split_once(')').unwrap_or((rest, ""));
        let inner_may = inner.split(" OR ").any(|choice| may_be_used(choice, listed));
        let word = if inner_may { listed[0] } else { "not listed" };
        return may_be_used(&format!("{before}{word}{after}"), listed);
    }
    let all = |choice: &str| choice.split(" AND ").all(|licence| listed.contains(&licence.trim()));
    expression.split(" OR ").any(all)
}

#[test]
fn licence_expressions_are_understood() {
    let listed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"];
    for good in ["MIT", "MIT/GPL-2.0", "GPL-2.0 OR MIT", "MIT AND ISC", "(MIT OR GPL-2.0) AND ISC"] {
        assert!(may_be_used(good, &listed), "{good}");
    }
    for bad in ["GPL-2.0", "none", "MIT AND GPL-2.0", "(MIT OR ISC) AND GPL-2.0", "(GPL-2.0 OR LGPL-3.0) AND MIT", ""] {
        assert!(!may_be_used(bad, &listed), "{bad}");
    }
}

const PERMISSIVE: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

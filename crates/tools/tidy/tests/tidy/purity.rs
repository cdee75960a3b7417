//! The protocol logic is pure (ARCHITECTURE.md): no I/O, clock, thread, entropy or unsafe code. What has neither `std`,
//! nor `unsafe`, nor a dependency that brings them, can have none of these. Its dependencies have no `std` either: `base` holds
//! values, `pages` counts holders of memory, and `timing` matches by time. `membership` proves with a hash besides, and
//! `control` has no other.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use testkit::TempDir;

use crate::tree::{directory, files, host, manifest, packages, root, run};

const CORE: [&str; 4] = ["control", "dataflow", "membership", "timing"];

/// Compiles the core with a toolchain that has `core` and `alloc` but no `std`. That is the stronger form of a look for
/// `extern crate std`, and needs no other target to be installed.
#[test]
fn the_core_compiles_where_there_is_no_standard_library() {
    let host = host();
    let directory = Path::new("lib/rustlib").join(&host).join("lib");
    let complete = Path::new(run("rustc", &["--print", "sysroot"]).trim()).join(&directory);
    let sysroot = TempDir::new("sysroot");
    let reduced = sysroot.path().join(&directory);
    fs::create_dir_all(&reduced).unwrap();
    for entry in fs::read_dir(complete).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if ["libcore-", "liballoc-", "libcompiler_builtins-"].iter().any(|kept| name.starts_with(kept)) {
            symlink(entry.path(), reduced.join(name)).unwrap();
        }
    }
    let output = Command::new("cargo")
        .args(["check", "--locked", "--offline", "--lib", "--target", &host])
        .args(CORE.iter().flat_map(|name| ["-p", name]))
        .arg("--target-dir")
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("purity"))
        .env("CARGO_ENCODED_RUSTFLAGS", format!("--sysroot\x1f{}", sysroot.path().display()))
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_core_forbids_std_and_unsafe_code() {
    let sources = files(&["rs"]);
    for root in CORE.map(|name| format!("{}/src/lib.rs", directory(name))) {
        let lib = sources.iter().find(|file| file.name == root).expect("the crate has a root");
        for attribute in ["#![no_std]", "#![forbid(unsafe_code)]"] {
            let found = lib.text.lines().any(|line| line == attribute);
            assert!(found, "{} has {attribute}, without any condition", lib.name);
        }
    }
}

#[test]
fn the_core_depends_on_handles_alone() {
    let packages = packages();
    let dependencies = |of: &str| {
        let package = packages.iter().find(|package| package["name"] == of).expect("a package of ours");
        let kept = package["dependencies"].as_array().unwrap().iter().filter(|dependency| dependency["kind"] != "dev");
        kept.map(|dependency| dependency["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        dependencies("dataflow"),
        ["base", "pages", "timing"],
        "what the core depends on, build scripts included"
    );
    assert_eq!(dependencies("control"), ["base", "dataflow"], "what conducts runs, build scripts included");
    let of_membership = ["base", "blake3", "control", "dataflow", "thiserror"];
    assert_eq!(dependencies("membership"), of_membership, "what proves membership, build scripts included");
    assert_eq!(dependencies("timing"), ["base"], "what matches by time depends on, build scripts included");
    assert_eq!(dependencies("base"), ["pages"], "what its words depend on, build scripts included");
    assert_eq!(dependencies("pages"), Vec::<String>::new(), "what the handles depend on, build scripts included");
}

#[test]
fn the_core_has_no_build_script_and_no_feature_that_changes_it() {
    for name in CORE {
        assert!(!root().join(directory(name)).join("build.rs").exists());
        let manifest = manifest(name);
        assert!(manifest["package"].get("build").is_none());
        assert!(manifest.get("features").is_none());
    }
}

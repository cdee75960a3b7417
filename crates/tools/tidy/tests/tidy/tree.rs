//! The files and packages that the checks look at.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A file of the tree.
#[derive(Debug)]
pub(crate) struct File {
    /// From the root of the tree, with `/`.
    pub(crate) name: String,
    pub(crate) text: String,
}

pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    root.canonicalize().expect("this package lies two levels below the root")
}

/// The names of all files below the root, without what is built, in their order.
pub(crate) fn names() -> Vec<String> {
    let root = root();
    let mut names = Vec::new();
    collect(&root, &root, &mut names);
    names.sort();
    names
}

/// All text files below the root with one of the extensions, in the order of their names.
pub(crate) fn files(extensions: &[&str]) -> Vec<File> {
    let root = root();
    let mut files = Vec::new();
    for name in names() {
        if extensions.contains(&name.rsplit('.').next().unwrap_or("")) {
            let text = fs::read_to_string(root.join(&name)).unwrap();
            files.push(File { name, text });
        }
    }
    files
}

fn collect(root: &Path, directory: &Path, names: &mut Vec<String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(root).unwrap().to_str().expect("names of files are UTF-8").to_owned();
        let last = path.file_name().unwrap().to_str().unwrap();
        if path.is_symlink() || BUILT.contains(&last) || (last.starts_with('.') && last != ".ci") {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, names);
        } else {
            names.push(name);
        }
    }
}

/// The wings of the tree, in the order in which they may use each other: `crates/WING/CRATE`.
pub(crate) const WINGS: [&str; 6] = ["core", "machine", "system", "faces", "lab", "tools"];

/// The workspace's own crates, which have the names of their directories, and the wing of each.
pub(crate) fn wings() -> BTreeMap<String, &'static str> {
    let mut found = BTreeMap::new();
    for wing in WINGS {
        let entries = fs::read_dir(root().join("crates").join(wing)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| path.join("Cargo.toml").is_file());
        found.extend(paths.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), wing)));
    }
    found
}

/// The names of the workspace's own crates.
pub(crate) fn crates() -> BTreeSet<String> {
    wings().into_keys().collect()
}

/// Where a crate of ours is, from the root of the tree.
pub(crate) fn directory(name: &str) -> String {
    format!("crates/{}/{name}", wings()[name])
}

pub(crate) fn manifest(name: &str) -> toml::Table {
    let path = root().join(directory(name)).join("Cargo.toml");
    fs::read_to_string(path).unwrap().parse().expect("cargo has read this file")
}

/// What cargo says of all packages, our own and foreign, that are built for this machine.
pub(crate) fn packages() -> Vec<Value> {
    let host = host();
    let metadata = ["metadata", "--locked", "--offline", "--format-version=1", "--filter-platform", &host];
    let metadata = run("cargo", &metadata);
    let mut metadata: Value = serde_json::from_str(&metadata).unwrap();
    let nodes = metadata["resolve"]["nodes"].take();
    let built: BTreeSet<&str> = nodes.as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap()).collect();
    let packages = metadata["packages"].as_array().unwrap().iter();
    packages.filter(|package| built.contains(package["id"].as_str().unwrap())).cloned().collect()
}

/// The target triple of this machine.
pub(crate) fn host() -> String {
    let version = run("rustc", &["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.expect("rustc names its host").to_owned()
}

/// The standard output of a program that runs at the root and must succeed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Fails with all lines that a check has found, if any.
pub(crate) fn assert_none(rule: &str, found: &[String]) {
    assert!(found.is_empty(), "{rule}:\n  {}", found.join("\n  "));
}

/// Directories of things that are built, recorded or installed, not written.
const BUILT: [&str; 5] = ["target", "out", "corpus", "artifacts", "node_modules"];

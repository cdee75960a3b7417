//! What documents name exists.

use std::path::Path;

use configuration::Partition;
use testkit::TempDir;

use crate::tree::{File, assert_none, crates, files, root};

#[test]
fn links_point_to_files_of_the_tree() {
    let root = root();
    let mut found = Vec::new();
    for File { name, text } in files(&["md"]) {
        let directory = root.join(Path::new(&name).parent().unwrap());
        for target in link_targets(&text) {
            let path = target.split('#').next().unwrap_or("");
            let elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !elsewhere && !path.is_empty() && !directory.join(path).exists() {
                found.push(format!("{name}: {target}"));
            }
        }
    }
    assert_none("links in documents point to files", &found);
}

/// The targets of `[text](target)`, outside of code.
fn link_targets(text: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for after in line.split("](").skip(1) {
            targets.extend(after.split_once(')').map(|(target, _)| target.split(' ').next().unwrap_or("")));
        }
    }
    targets
}

#[test]
fn link_targets_are_found() {
    let text = "a [b](c.md#d) and ![e](f \"title\")\n```\n[no](code)\n```\n[g](https://h)";
    assert_eq!(link_targets(text), ["c.md#d", "f", "https://h"]);
}

#[test]
fn examples_and_documents_agree() {
    let root = root();
    let mut found = Vec::new();
    let documents = files(&["md"]);
    for File { name, text } in &documents {
        for word in text.split(|c: char| c.is_whitespace() || "`()\"'[]".contains(c)) {
            let is_example = word.starts_with("examples/") && word.ends_with(".toml");
            if is_example && !root.join(word).is_file() {
                found.push(format!("{name} names {word}, which does not exist"));
            }
        }
    }
    let readme = documents.iter().find(|file| file.name == "README.md").expect("there is a README.md");
    for File { name, .. } in files(&["toml"]) {
        if name.starts_with("examples/") && !readme.text.contains(&name) {
            found.push(format!("README.md does not name {name}"));
        }
    }
    assert_none("documents and examples agree", &found);
}

#[test]
fn configurations_for_users_are_right() {
    let directory = TempDir::new("readme");
    let mut names = Vec::new();
    for File { name, text } in files(&["md"]).into_iter().filter(|file| is_for_users(&file.name)) {
        for block in text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
            let path = directory.join("readme.toml");
            std::fs::write(&path, block).unwrap();
            Partition::load(&path, &[]).unwrap_or_else(|error| panic!("{name}: {block}\n{error}"));
            names.push(name.clone());
        }
    }
    assert!(names.contains(&"README.md".to_owned()), "{names:?}");
}

fn is_for_users(document: &str) -> bool {
    document == "README.md" || document.starts_with("docs/")
}

#[test]
fn the_map_of_the_architecture_names_every_crate() {
    let map =
        files(&["md"]).into_iter().find(|file| file.name == "ARCHITECTURE.md").expect("there is an architecture page");
    let missing: Vec<String> = crates().into_iter().filter(|name| !map.text.contains(name.as_str())).collect();
    assert_none("ARCHITECTURE.md names every crate", &missing);
}

/// What is longer is not read.
#[test]
fn documents_are_short() {
    let mut found = Vec::new();
    for File { name, text } in files(&["md"]) {
        let (lines_max, bytes_max) = match name.as_str() {
            "README.md" => (120, 9_000),
            "ARCHITECTURE.md" => (usize::MAX, 14_000),
            "CONTRIBUTING.md" => (usize::MAX, 6_000),
            name if name.starts_with("docs/protocols/") => (110, usize::MAX),
            _ => continue,
        };
        let (lines, bytes) = (text.lines().count(), text.len());
        if lines > lines_max || bytes > bytes_max {
            found.push(format!("{name}: {lines} lines, {bytes} bytes"));
        }
    }
    assert_none("documents are short: what is more goes to a page of its own under docs/", &found);
}

#[test]
fn make_commands_in_documents_exist() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let mut found = Vec::new();
    for File { name, text } in files(&["md"]) {
        for after in text.split("`make ").skip(1) {
            let target = after.split(|c: char| !c.is_ascii_lowercase()).next().unwrap_or("");
            if !makefile.lines().any(|line| line.starts_with(&format!("{target}:"))) {
                found.push(format!("{name}: make {target}"));
            }
        }
    }
    assert_none("make commands in documents exist", &found);
}

//! What every crate and every source file keeps to.

use crate::tree::{File, assert_none, crates, directory, files, manifest, names};

const LINES_MAX: usize = 900;

/// The crates that may have unsafe code, each block with its reason. The first talks to the operating system. The next
/// ones count the holders of pages, share memory with the program of a detector, take pointers from C, and read the
/// time-stamp counter. The last ones have semaphores and allocate.
const MAY_BE_UNSAFE: [&str; 7] = ["transport", "pages", "link", "weir-c", "stamps", "semaphores", "heap"];

#[test]
fn nothing_is_left_lying_about() {
    for name in names() {
        let extension = name.rsplit('.').next().unwrap_or("");
        assert!(!["orig", "rej", "bak", "swp", "log", "patch"].contains(&extension), "{name} is of no use here");
        assert!(name.contains('/') || name.contains('.') || ["LICENSE", "Makefile"].contains(&name.as_str()), "{name}");
    }
}

#[test]
fn every_crate_has_lints_description_and_licence() {
    for name in crates() {
        let manifest = manifest(&name);
        let package = manifest["package"].as_table().unwrap();
        let inherits = |table: &toml::Table, key: &str| {
            table.get(key).and_then(|value| value.get("workspace")).and_then(toml::Value::as_bool) == Some(true)
        };
        assert_eq!(package["name"].as_str(), Some(name.as_str()), "the directory has the name of its crate");
        assert!(inherits(&manifest, "lints"), "{name}: [lints] workspace = true");
        assert!(package.get("description").is_some_and(toml::Value::is_str), "{name}: a description");
        for key in ["version", "edition", "rust-version", "license"] {
            assert!(inherits(package, key), "{name}: {key}.workspace = true");
        }
    }
}

#[test]
fn unsafe_code_is_forbidden_but_where_it_is_needed() {
    let sources = files(&["rs"]);
    let mut found = Vec::new();
    for name in crates().iter().filter(|name| !MAY_BE_UNSAFE.contains(&name.as_str())) {
        let roots = ["lib.rs", "main.rs"].map(|root| format!("{}/src/{root}", directory(name)));
        for file in sources.iter().filter(|file| roots.contains(&file.name)) {
            if !file.text.lines().any(|line| line == "#![forbid(unsafe_code)]") {
                found.push(format!("{}: #![forbid(unsafe_code)]", file.name));
            }
        }
    }
    assert_none("these crates need no unsafe code and say so", &found);
}

#[test]
fn no_file_is_too_long() {
    let mut found = Vec::new();
    for File { name, text } in files(&["rs", "py", "md", "toml", "js", "css", "html"]) {
        let lines = text.lines().count();
        if lines > LINES_MAX {
            found.push(format!("{name}: {lines} lines"));
        }
    }
    assert_none(&format!("no file has more than {LINES_MAX} lines"), &found);
}

#[test]
fn nothing_is_left_for_later() {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("to", "do!("), concat!("d", "bg!(")];
    let found = lines_with(&["rs", "py", "md", "toml", "js"], |line| marks.iter().any(|mark| line.contains(mark)));
    assert_none("nothing is left for later in the sources: finish it, or write an issue", &found);
}

#[test]
fn a_test_that_is_ignored_says_why() {
    let bare = concat!("#[ign", "ore]");
    let found = lines_with(&["rs"], |line| line.contains(bare) || line.contains(&bare.replace(['#', '['], "")));
    assert_none("an ignored test gives its reason", &found);
}

#[test]
fn files_end_in_one_line_feed_and_have_no_trailing_blanks() {
    let mut found = lines_with(&["rs", "py", "md", "toml", "sh"], |line| line.ends_with([' ', '\t', '\r']));
    for File { name, text } in files(&["rs", "py", "md", "toml", "sh"]) {
        if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
            found.push(format!("{name}: its end"));
        }
    }
    assert_none("files are clean text", &found);
}

fn lines_with(extensions: &[&str], is_found: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for File { name, text } in files(extensions) {
        let lines = text.lines().enumerate().filter(|(_, line)| is_found(line));
        found.extend(lines.map(|(number, line)| format!("{name}:{}: {}", number + 1, line.trim())));
    }
    found
}

//! Crates stay small, and their files use each other one way.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{File, assert_none, crates, directory, files};

const CRATE_LINES_MAX: usize = 13_000;
/// The crates that may be larger: the protocols of all roles are one whole.
const LARGER: [(&str, usize); 1] = [("dataflow", 20_000)];

/// A module of a crate: the names from its root on.
type Module = Vec<String>;

#[test]
fn no_crate_is_too_long() {
    let larger = BTreeMap::from(LARGER);
    let mut found = Vec::new();
    for (name, sources) in sources() {
        let lines: usize = sources.iter().map(|file| file.text.lines().count()).sum();
        let most = larger.get(name.as_str()).copied().unwrap_or(CRATE_LINES_MAX);
        if lines > most {
            found.push(format!("{name}: {lines} lines, above {most}"));
        }
    }
    assert_none("a crate is one thing that one person can know", &found);
}

#[test]
fn files_of_a_crate_use_each_other_one_way() {
    let mut found = Vec::new();
    for (name, sources) in sources() {
        let sources: Vec<_> = sources.iter().filter_map(|file| Some((module_of(file)?, file))).collect();
        let modules: BTreeSet<Module> = sources.iter().map(|(module, _)| module.clone()).collect();
        let mut uses: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (module, file) in sources {
            let used = paths(&file.text).filter_map(|path| named(&modules, &module, &path));
            uses.entry(module.clone()).or_default().extend(used.filter(|used| !module.starts_with(used)));
            // A file uses its children, and they may use it.
            if let Some(parent) =
                (0..module.len()).rev().map(|len| &module[..len]).find(|above| modules.contains(*above))
            {
                uses.entry(parent.to_vec()).or_default().insert(module);
            }
        }
        for (module, used) in in_circles(uses) {
            let used: Vec<String> = used.iter().map(|module| module.join("::")).collect();
            found.push(format!("{name}: {} uses {}", module.join("::"), used.join(", ")));
        }
    }
    assert_none("files use each other in circles only where one is the parent of the other", &found);
}

/// The sources of each crate of ours.
fn sources() -> BTreeMap<String, Vec<File>> {
    let mut sources: BTreeMap<String, Vec<File>> = crates().into_iter().map(|name| (name, Vec::new())).collect();
    let directories: Vec<(String, String)> =
        sources.keys().map(|name| (format!("{}/src/", directory(name)), name.clone())).collect();
    for file in files(&["rs"]) {
        if let Some((_, name)) = directories.iter().find(|(directory, _)| file.name.starts_with(directory)) {
            sources.get_mut(name).expect("made of the same names").push(file);
        }
    }
    sources
}

/// The module that a file holds. Tests have none: nothing uses them.
fn module_of(file: &File) -> Option<Module> {
    let (_, below) = file.name.split_once("/src/")?;
    let mut module: Module = below.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if module.iter().any(|part| part == "tests") {
        return None;
    }
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    Some(module)
}

/// The paths that the sources of a file name, from `crate` or `super` on, without those in its tests and comments.
fn paths(text: &str) -> impl Iterator<Item = Vec<String>> {
    let code: String = before_tests(text)
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .fold(String::new(), |all, line| all + line + "\n");
    let mut found = Vec::new();
    for (at, start) in ["crate::", "super::"].iter().flat_map(|start| code.match_indices(start)) {
        let before = code[..at].chars().next_back().unwrap_or(' ');
        // `super::super::` is found at its first word.
        if !before.is_alphanumeric() && before != '_' && before != ':' {
            let whole = &code[at + start.len()..];
            branches(vec![start.trim_end_matches(':').to_owned()], whole, &mut found);
        }
    }
    found.into_iter()
}

/// The text before the tests that end it: a module with its body in this file, not one in a file of its own.
fn before_tests(text: &str) -> &str {
    let mark = "#[cfg(test)]\nmod ";
    let is_body = |at: &usize| {
        let name_and_rest = &text[at + mark.len()..];
        name_and_rest.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').starts_with(" {")
    };
    text.match_indices(mark).map(|(at, _)| at).find(is_body).map_or(text, |at| &text[..at])
}

/// Follows a path through its `::` and, where it divides, through each of `{a, b::{c, d}}`. Gives the rest of the text.
fn branches<'a>(mut path: Vec<String>, mut text: &'a str, found: &mut Vec<Vec<String>>) -> &'a str {
    loop {
        if let Some(inside) = text.strip_prefix('{') {
            text = inside.trim_start();
            while !text.is_empty() && !text.starts_with('}') {
                text = branches(path.clone(), text, found).trim_start_matches([',', ' ', '\n']);
            }
            return text.get(1..).unwrap_or("");
        }
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        path.push(text[..end].to_owned());
        text = &text[end..];
        match text.strip_prefix("::") {
            Some(rest) if end > 0 => text = rest,
            _ => break,
        }
    }
    found.push(path);
    // What stands before the next branch, such as `as Name` or `*`.
    let end = text.find([',', '}', ';', '{', '(']).unwrap_or(text.len());
    &text[end..]
}

/// The module of the crate that a path within a module goes through, the deepest one.
fn named(modules: &BTreeSet<Module>, within: &Module, path: &[String]) -> Option<Module> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let mut module = if ups > 0 { within[..within.len().checked_sub(ups)?].to_vec() } else { Vec::new() };
    for part in &path[ups.max(1)..] {
        module.push(part.clone());
        if !modules.contains(&module) {
            module.pop();
            break;
        }
    }
    Some(module)
}

/// What is left if all that uses nothing, and all that nothing uses, is taken away again and again.
fn in_circles(mut uses: BTreeMap<Module, BTreeSet<Module>>) -> BTreeMap<Module, BTreeSet<Module>> {
    loop {
        let used: BTreeSet<Module> = uses.values().flatten().cloned().collect();
        let before = uses.len();
        uses.retain(|module, uses| !uses.is_empty() && used.contains(module));
        let left: BTreeSet<Module> = uses.keys().cloned().collect();
        uses.values_mut().for_each(|uses| uses.retain(|module| left.contains(module)));
        if uses.len() == before && uses.values().all(|uses| !uses.is_empty()) {
            return uses;
        }
    }
}

#[test]
fn paths_are_understood() {
    let text = "use crate::a::{b, c::{d, e as f}};\nuse super::super::g;\nlet x = crate::h::i(1);\n// crate::no\n";
    let mut found: Vec<String> = paths(text).map(|path| path.join("::")).collect();
    found.sort();
    assert_eq!(found, ["crate::a::b", "crate::a::c::d", "crate::a::c::e", "crate::h::i", "super::super::g"]);
}

#[test]
fn only_a_body_of_tests_ends_the_paths_of_a_file() {
    let text = "#[cfg(test)]\nmod tests;\nuse crate::seen;\n#[cfg(test)]\nmod more {\n    use crate::not_seen;\n}\n";
    let found: Vec<String> = paths(text).map(|path| path.join("::")).collect();
    assert_eq!(found, ["crate::seen"]);
}

#[test]
fn circles_are_found() {
    let module = |name: &str| vec![name.to_owned()];
    let uses = |pairs: &[(&str, &str)]| {
        pairs.iter().fold(BTreeMap::<_, BTreeSet<_>>::new(), |mut uses, (from, to)| {
            uses.entry(module(from)).or_default().insert(module(to));
            uses.entry(module(to)).or_default();
            uses
        })
    };
    assert!(in_circles(uses(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    let found = in_circles(uses(&[("start", "a"), ("a", "b"), ("b", "c"), ("c", "a"), ("c", "end")]));
    assert_eq!(found.keys().map(|module| module.join("")).collect::<Vec<_>>(), ["a", "b", "c"]);
}

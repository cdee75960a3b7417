//! Sentences that people read once: in documents, and in comments of sources.

use crate::tree::{assert_none, files};

const WORDS_MAX: usize = 25;
/// Stands in front of a comment of another kind than that of the line before. It is white space.
const OTHER_KIND: char = '\u{b}';

#[test]
fn sentences_of_documents_are_short() {
    let found = files(&["md"]).into_iter().flat_map(|file| long(&file.name, &file.text));
    assert_none(&rule(), &found.collect::<Vec<_>>());
}

#[test]
fn sentences_of_comments_are_short() {
    let found = files(&["rs"]).into_iter().flat_map(|file| long(&file.name, &comments(&file.text)));
    assert_none(&rule(), &found.collect::<Vec<_>>());
}

fn rule() -> String {
    format!("a sentence has at most {WORDS_MAX} words: split it")
}

/// The sentences of a text in Markdown that have too many words, with the line where their paragraph begins.
fn long(name: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (line, paragraph) in paragraphs(text) {
        let sentences = sentences(&paragraph).into_iter().filter(|(words, _)| *words > WORDS_MAX);
        found.extend(sentences.map(|(words, sentence)| format!("{name}:{line}: {words} words: {sentence}")));
    }
    found
}

/// The comments of a source, each on its own line without its marks. All other lines are empty.
fn comments(source: &str) -> String {
    let (mut text, mut marks_before) = (String::new(), "");
    for line in source.lines().map(str::trim_start) {
        let marks = ["///", "//!", "//"].into_iter().find(|marks| line.starts_with(marks)).unwrap_or("");
        // A comment of another kind begins another paragraph: this character says so.
        if marks != marks_before && !marks.is_empty() && !marks_before.is_empty() {
            text.push(OTHER_KIND);
        }
        text += if marks.is_empty() { "" } else { &line[marks.len()..] };
        text.push('\n');
        marks_before = marks;
    }
    text
}

/// The paragraphs and list items of a text in Markdown, each in one line, with the number of its first line. Headings,
/// tables and blocks of code are left out.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let (mut in_code, mut is_open) = (false, false);
    for (number, line) in text.lines().enumerate() {
        is_open &= !line.starts_with(OTHER_KIND);
        let line = line.trim();
        let item = line.strip_prefix("* ").or_else(|| line.strip_prefix("- ")).or_else(|| numbered(line));
        if line.starts_with("```") {
            (in_code, is_open) = (!in_code, false);
        } else if in_code || line.is_empty() || line.starts_with(['#', '|']) {
            is_open = false;
        } else if let (true, None, Some((_, paragraph))) = (is_open, item, found.last_mut()) {
            paragraph.push(' ');
            *paragraph += line;
        } else {
            found.push((number + 1, item.unwrap_or(line).to_owned()));
            is_open = true;
        }
    }
    found
}

/// What stands behind the number of a list item.
fn numbered(line: &str) -> Option<&str> {
    line.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(". ").filter(|rest| rest.len() + 2 < line.len())
}

/// The sentences of a paragraph, with how many words each has.
fn sentences(paragraph: &str) -> Vec<(usize, String)> {
    let (mut found, mut words, mut sentence) = (Vec::new(), 0, String::new());
    for word in without_code_and_links(paragraph).split_whitespace() {
        words += usize::from(word.contains(char::is_alphanumeric));
        sentence = if sentence.is_empty() { word.to_owned() } else { sentence + " " + word };
        if word.trim_end_matches(['"', '\'', '”', ')', '*', '_']).ends_with(['.', '!', '?']) {
            found.push((words, std::mem::take(&mut sentence)));
            words = 0;
        }
    }
    found.push((words, sentence));
    found
}

/// The text with a word for each piece of code, link and reference: `code`, `[text](target)`, `[note]`.
fn without_code_and_links(text: &str) -> String {
    let mut rest = text;
    let mut short = String::new();
    while let Some(at) = rest.find(['`', '[']) {
        short += &rest[..at];
        let from = &rest[at..];
        let end = if from.starts_with('`') { end_of_code(from) } else { end_of_link(from) };
        short += if end.is_some() { "X" } else { &from[..1] };
        rest = &from[end.unwrap_or(1)..];
    }
    short + rest
}

/// Where the code at the beginning of this text ends: behind as many back quotes as it begins with.
fn end_of_code(text: &str) -> Option<usize> {
    let marks = &text[..text.len() - text.trim_start_matches('`').len()];
    text[marks.len()..].find(marks).map(|at| at + 2 * marks.len())
}

/// Where the link or reference at the beginning of this text ends.
fn end_of_link(text: &str) -> Option<usize> {
    let mut depth = 0;
    let closing = text.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '[') - i32::from(*c == ']');
        depth == 0
    });
    let end = closing?.0 + 1;
    let target = text[end..].strip_prefix('(').and_then(|target| target.find(')'));
    Some(end + target.map_or(0, |len| len + 2))
}

#[test]
fn words_are_counted() {
    let text = "One (two) `three is code` [four is](a link), 5 – six. \"Seven eight!\" ``nine ` code`` 10.5 [`e` f]";
    let found: Vec<usize> = sentences(text).into_iter().map(|(words, _)| words).collect();
    assert_eq!(found, [6, 2, 3]);
    assert_eq!(sentences("not `closed [here").into_iter().map(|(words, _)| words).sum::<usize>(), 3);
}

#[test]
fn paragraphs_are_joined_and_code_tables_and_headings_left_out() {
    let text = "# no\na\nb\n* c\n  d\n1. e\n\n| no |\n```\nno\n```\nf\n";
    let found = paragraphs(text);
    let expected = [(2, "a b"), (4, "c d"), (6, "e"), (12, "f")];
    assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
}

#[test]
fn comments_are_found_by_their_kind() {
    let source = "//! a\n/// b\n    // c\n    // d\nlet x = 1; // no\n/// e\n";
    let found = paragraphs(&comments(source));
    let expected = [(1, "a"), (2, "b"), (3, "c d"), (6, "e")];
    assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
}

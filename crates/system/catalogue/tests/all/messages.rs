//! What was said, as the catalogue keeps it.

use std::time::Duration;

use catalogue::{Catalogue, MESSAGES_AGE_MAX, MESSAGES_MAX, Message, MessageStore, Severity, Sought};
use testkit::TempDir;

use super::at;

const SAID_MS: u64 = 1_700_000_000_000;

fn message(number: u64) -> Message {
    Message {
        number,
        at_ms: SAID_MS,
        run: Some(7),
        application: Some("sfi-1".into()),
        severity: Severity::Error,
        text: format!("word {number}"),
        causes: vec!["the disk is full".into(), "nobody looked".into()],
        repeats: 0,
        last_ms: SAID_MS,
    }
}

fn numbers(store: &MessageStore, partition: &str, sought: &Sought) -> Vec<u64> {
    store.find(partition, sought).unwrap().iter().map(|message| message.number).collect()
}

#[test]
fn all_of_a_message_is_kept_and_what_is_said_again_is_counted() {
    let directory = TempDir::new("messages");
    let file = directory.join("runs.sqlite");
    let mut store = MessageStore::beside(&file).unwrap();
    let notice = Message { run: None, application: None, severity: Severity::Notice, causes: vec![], ..message(2) };
    store.keep("beam", &[message(1), notice.clone()]).unwrap();
    let again = Message { repeats: 3, last_ms: SAID_MS + 5, ..message(1) };
    store.keep("beam", core::slice::from_ref(&again)).unwrap();
    store.keep("other", &[message(1)]).unwrap();
    drop(store);
    let store = MessageStore::existing(&file).unwrap().unwrap();
    assert_eq!(store.find("beam", &Sought::default()).unwrap(), [again, notice]);
    assert_eq!(numbers(&store, "beam", &Sought { run: Some(7), ..Sought::default() }), [1]);
    assert_eq!(numbers(&store, "nobody", &Sought::default()), [0; 0]);
}

#[test]
fn the_newest_that_are_sought_are_found_also_between_numbers() {
    let directory = TempDir::new("messages");
    let mut store = MessageStore::beside(&directory.join("runs.sqlite")).unwrap();
    store.keep("beam", &Vec::from_iter((1..=2000).map(message))).unwrap();
    assert_eq!(numbers(&store, "beam", &Sought::default()).len(), 1000);
    let few = Sought { newest: Some(2), before: Some(500), ..Sought::default() };
    assert_eq!(numbers(&store, "beam", &few), [498, 499]);
    let words = Some("WORD 77".to_owned());
    assert_eq!(numbers(&store, "beam", &Sought { words, ..Sought::behind(770) }), (771..780).collect::<Vec<_>>());
}

#[test]
fn what_is_too_much_or_too_old_goes() {
    let directory = TempDir::new("messages");
    let mut store = MessageStore::beside(&directory.join("runs.sqlite")).unwrap();
    store.keep("beam", &[message(1), message(9)]).unwrap();
    store.keep("other", &[message(1)]).unwrap();
    store.keep("beam", &[message(MESSAGES_MAX + 8)]).unwrap();
    assert_eq!(numbers(&store, "beam", &Sought::default()), [9, MESSAGES_MAX + 8]);
    let now = at(0) + MESSAGES_AGE_MAX;
    store.forget_old("beam", now).unwrap();
    assert_eq!(numbers(&store, "beam", &Sought::default()).len(), 2);
    store.forget_old("beam", now + Duration::from_millis(1)).unwrap();
    assert_eq!(numbers(&store, "beam", &Sought::default()), [0; 0]);
    assert_eq!(numbers(&store, "other", &Sought::default()), [1], "others are not touched");
}

#[test]
fn long_words_and_too_many_messages_are_refused() {
    let sought = |text: &str| serde_json::from_str::<Sought>(text);
    let words = |count: usize| sought(&format!("{{\"words\": {:?}}}", "ä".repeat(count)));
    assert!(words(200).is_ok() && words(201).is_err());
    assert!(sought("{}").unwrap().words.is_none());
    for (newest, is_right) in [(0, false), (1, true), (10_000, true), (10_001, false)] {
        assert_eq!(sought(&format!("{{\"newest\": {newest}}}")).is_ok(), is_right, "{newest}");
    }
    assert_eq!("warning".parse(), Ok(Severity::Warning));
    assert!("loud".parse::<Severity>().unwrap_err().to_string().contains("loud"));
}

/// Such as run control that was stopped while it wrote, and that another one takes over.
#[test]
fn who_hangs_while_it_writes_keeps_nobody_from_reading() {
    let directory = TempDir::new("messages");
    let file = directory.join("runs.sqlite");
    assert!(MessageStore::existing(&file).unwrap().is_none());
    MessageStore::beside(&file).unwrap().keep("beam", &[message(1)]).unwrap();
    let hung = rusqlite::Connection::open(directory.join("runs.sqlite.messages")).unwrap();
    hung.execute_batch("BEGIN IMMEDIATE; DELETE FROM messages").unwrap();
    let store = MessageStore::beside(&file).unwrap();
    assert_eq!(numbers(&store, "beam", &Sought::default()), [1]);
    assert!(Catalogue::open(&file).is_ok(), "runs are elsewhere");
}

#[test]
fn a_file_of_another_program_is_refused() {
    let directory = TempDir::new("messages");
    let file = directory.join("runs.sqlite");
    std::fs::write(directory.join("runs.sqlite.messages"), "no database at all").unwrap();
    let error = MessageStore::beside(&file).unwrap_err().to_string();
    assert!(error.contains("runs.sqlite.messages"), "{error}");
}

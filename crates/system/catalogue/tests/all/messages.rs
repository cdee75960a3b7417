//! What was said, as the catalogue keeps it.

use std::time::Duration;

use catalogue::{Catalogue, MESSAGES_AGE_MAX, MESSAGES_MAX, Message, Severity, Sought};
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

fn numbers(catalogue: &Catalogue, partition: &str, sought: &Sought) -> Vec<u64> {
    catalogue.messages(partition, sought).unwrap().iter().map(|message| message.number).collect()
}

#[test]
fn all_of_a_message_is_kept_and_what_is_said_again_is_counted() {
    let directory = TempDir::new("messages");
    let file = directory.join("runs.sqlite");
    let mut catalogue = Catalogue::open(&file).unwrap();
    let notice = Message { run: None, application: None, severity: Severity::Notice, causes: vec![], ..message(2) };
    catalogue.keep_messages("beam", &[message(1), notice.clone()]).unwrap();
    let again = Message { repeats: 3, last_ms: SAID_MS + 5, ..message(1) };
    catalogue.keep_messages("beam", core::slice::from_ref(&again)).unwrap();
    catalogue.keep_messages("other", &[message(1)]).unwrap();
    drop(catalogue);
    let catalogue = Catalogue::existing(&file).unwrap();
    assert_eq!(catalogue.messages("beam", &Sought::default()).unwrap(), [again, notice]);
    assert_eq!(numbers(&catalogue, "beam", &Sought { run: Some(7), ..Sought::default() }), [1]);
    assert_eq!(numbers(&catalogue, "nobody", &Sought::default()), [0; 0]);
}

#[test]
fn the_newest_that_are_sought_are_found_also_between_numbers() {
    let directory = TempDir::new("messages");
    let mut catalogue = Catalogue::open(&directory.join("runs.sqlite")).unwrap();
    catalogue.keep_messages("beam", &Vec::from_iter((1..=2000).map(message))).unwrap();
    assert_eq!(numbers(&catalogue, "beam", &Sought::default()).len(), 1000);
    let few = Sought { newest: Some(2), before: Some(500), ..Sought::default() };
    assert_eq!(numbers(&catalogue, "beam", &few), [498, 499]);
    let words = Some("WORD 77".to_owned());
    assert_eq!(numbers(&catalogue, "beam", &Sought { words, ..Sought::behind(770) }), (771..780).collect::<Vec<_>>());
}

#[test]
fn what_is_too_much_or_too_old_goes() {
    let directory = TempDir::new("messages");
    let mut catalogue = Catalogue::open(&directory.join("runs.sqlite")).unwrap();
    catalogue.keep_messages("beam", &[message(1), message(9)]).unwrap();
    catalogue.keep_messages("other", &[message(1)]).unwrap();
    catalogue.keep_messages("beam", &[message(MESSAGES_MAX + 8)]).unwrap();
    assert_eq!(numbers(&catalogue, "beam", &Sought::default()), [9, MESSAGES_MAX + 8]);
    let now = at(0) + MESSAGES_AGE_MAX;
    catalogue.forget_old_messages("beam", now).unwrap();
    assert_eq!(numbers(&catalogue, "beam", &Sought::default()).len(), 2);
    catalogue.forget_old_messages("beam", now + Duration::from_millis(1)).unwrap();
    assert_eq!(numbers(&catalogue, "beam", &Sought::default()), [0; 0]);
    assert_eq!(numbers(&catalogue, "other", &Sought::default()), [1], "others are not touched");
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

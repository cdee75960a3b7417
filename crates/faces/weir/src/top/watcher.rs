//! Hears run control, and comes back to it where it was away.

use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use service::{RunControl, Unheard};

use super::model::News;
use crate::commands::operator;

/// Sends what happens at the service of a partition, until nobody wants to know.
pub(super) fn watch(partition: Option<String>, news: SyncSender<News>) {
    let pulse = (partition.clone(), news.clone());
    thread::spawn(move || {
        while hear(partition.as_deref(), &news).is_ok() {
            wait();
        }
    });
    thread::spawn(move || while look(pulse.0.as_deref(), &pulse.1).is_ok() {});
}

/// Gives an order, and sends why it was not carried out.
pub(super) fn order(partition: Option<String>, verb: String, news: SyncSender<News>) {
    said(partition, news, move |found| found.post(&format!("orders/{verb}"), json!({ "run": {}, "runs": 1 })));
}

/// Takes command over, and sends why it was not carried out.
pub(super) fn take_over(partition: Option<String>, news: SyncSender<News>) {
    said(partition, news, RunControl::take_over);
}

fn said(
    partition: Option<String>,
    news: SyncSender<News>,
    ask: impl FnOnce(&RunControl) -> Result<Result<Value, String>, Unheard> + Send + 'static,
) {
    thread::spawn(move || {
        let answer = RunControl::find(partition.as_deref(), operator()).and_then(|found| ask(&found));
        if let Err(why) = answer.unwrap_or_else(|error| Err(error.to_string())) {
            // Who has left does not want to know.
            let _ = news.send(News::Refusal(why));
        }
    });
}

/// All that happens until run control ends.
fn hear(partition: Option<&str>, news: &SyncSender<News>) -> Result<(), Gone> {
    let heard = RunControl::find(partition, operator()).and_then(|found| {
        // What comes between the two comes twice rather than never.
        let events = found.events()?;
        Ok((found.get("trend")?, found.get("messages")?, events))
    });
    let (trend, messages, events) = match heard {
        Ok(heard) => heard,
        Err(error) => return tell(news, News::Silence(error.to_string())),
    };
    tell(news, News::Trend(read(trend.unwrap_or_default())))?;
    tell(news, News::Messages(read(messages.unwrap_or_default())))?;
    for (event, value) in events {
        match event.as_str() {
            "status" => tell(news, News::Status(read(value)))?,
            "message" => tell(news, News::Message(read(value)))?,
            _ => {}
        }
    }
    tell(news, News::Silence("run control has ended".into()))
}

/// What nobody announces, each second.
fn look(partition: Option<&str>, news: &SyncSender<News>) -> Result<(), Gone> {
    match RunControl::find(partition, operator()).and_then(|found| found.get("dataflow")) {
        Ok(Ok(mut dataflow)) => {
            let (stages, sources) = (read(dataflow["stages"].take()), read(dataflow["sources"].take()));
            tell(news, News::Dataflow(stages, sources))?;
        }
        Ok(Err(why)) => tell(news, News::Silence(why))?,
        Err(error) => tell(news, News::Silence(error.to_string()))?,
    }
    tell(news, News::Second)?;
    wait();
    Ok(())
}

/// Nobody wants to know any more.
struct Gone;

fn tell(news: &SyncSender<News>, what: News) -> Result<(), Gone> {
    news.send(what).map_err(|_| Gone)
}

#[expect(clippy::disallowed_methods, reason = "the time itself is what is waited for")]
fn wait() {
    thread::sleep(SECOND);
}

/// What another version says otherwise is not known.
fn read<T: Default + for<'a> Deserialize<'a>>(value: Value) -> T {
    serde_json::from_value(value).unwrap_or_default()
}

const SECOND: Duration = Duration::from_secs(1);

//! A NATS server as the bus. One connection is made after the other, each from the beginning: it first tells what was missed.

use core::time::Duration;
use std::time::UNIX_EPOCH;

use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, HeaderMap};
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::time::sleep;

use super::Shared;
use super::login::Login;
use super::observer::{News, Observer};
use super::subjects::{EVENT, MESSAGE, METRICS, RECORD, SAMPLE, STATUS, Subjects};
use super::traffic::Traffic;
use crate::desk::Desk;
use crate::hosts::this_machine;
use crate::messages::Severity;
use crate::samples::SampledEvent;

/// Tells what a desk has to tell, until the desk is left.
pub(super) async fn tell(bus: &Shared, desk: &Desk) {
    let subjects = Subjects::of(&desk.configured().partition, &this_machine());
    let mut observer = Observer::of(desk);
    let mut absence = Absence { bus, desk, told: None };
    loop {
        let connected = tokio::select! {
            connected = Connection::open(bus, &subjects) => connected,
            () = observer.lose(&bus.traffic) => return,
        };
        let why = match connected {
            Ok(mut connection) => {
                absence.is_over();
                match connection.tell(&mut observer).await {
                    Ended::Left => return,
                    Ended::Lost => Why::Lost,
                }
            }
            Err(why) => why,
        };
        absence.tell(why);
        tokio::select! {
            () = sleep(RETRY_AFTER) => {}
            () = observer.lose(&bus.traffic) => return,
        }
    }
}

/// Why the bus is not there.
enum Why {
    Absent(String),
    Refused(String),
    Lost,
}

/// Says that the bus is away: once, and again if it is there and refuses.
struct Absence<'a> {
    bus: &'a Shared,
    desk: &'a Desk,
    /// Whether it refused, when it was last told that it is away.
    told: Option<bool>,
}

impl Absence<'_> {
    fn tell(&mut self, why: Why) {
        self.bus.traffic.set_connected(false);
        let is_refused = matches!(why, Why::Refused(_));
        if self.told == Some(is_refused) || self.told.is_some() && !is_refused {
            return;
        }
        self.told = Some(is_refused);
        let why = match why {
            Why::Absent(cause) => format!("is not there: {cause}"),
            Why::Refused(cause) => format!("refuses run control: {cause}"),
            Why::Lost => "is lost".to_owned(),
        };
        let text = format!("the bus {} {why}; runs go on without it, and it is tried again", self.bus.server);
        self.desk.tell_all(Severity::Warning, text);
    }

    fn is_over(&mut self) {
        self.told = None;
        self.bus.traffic.set_connected(true);
        self.desk.say(format!("the bus {} gets what is observed", self.bus.server));
    }
}

impl Drop for Absence<'_> {
    fn drop(&mut self) {
        // Nothing goes there any more, however the telling ends.
        self.bus.traffic.set_connected(false);
    }
}

/// How a connection ended.
enum Ended {
    Left,
    Lost,
}

/// The connection no longer takes anything.
pub(super) struct Lost;

/// A connection to the server.
struct Connection<'a> {
    publisher: Publisher<'a>,
    events: Receiver<Event>,
}

impl<'a> Connection<'a> {
    async fn open(bus: &'a Shared, subjects: &'a Subjects) -> Result<Self, Why> {
        let (happens, events) = channel(EVENTS_MAX);
        let options = ConnectOptions::new()
            .name(subjects.stream())
            .client_capacity(UNSENT_MAX)
            .connection_timeout(PATIENCE)
            .ping_interval(PING_EVERY)
            // A server may name others, which need not encrypt.
            .ignore_discovered_servers()
            .require_tls(bus.server.starts_with("tls://"))
            // A reconnection publishes late; one is the least that there can be.
            .max_reconnects(1)
            .event_callback(move |event| {
                // The receiver is never late: the first event that matters ends the connection.
                let _ = happens.try_send(event);
                core::future::ready(())
            });
        let login =
            bus.login.as_deref().map(Login::read).transpose().map_err(|error| Why::Refused(error.to_string()))?;
        let options = match login {
            Some(Login { user, password }) => options.user_and_password(user, password),
            None => options,
        };
        let client = options.connect(bus.server.as_str()).await.map_err(|error| match error.kind() {
            ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                Why::Refused(format!("{error}; expected its user and password in control.bus_login"))
            }
            _ => Why::Absent(error.to_string()),
        })?;
        let publisher = Publisher { client, subjects, bus, keeps: false, told_of_loss: false };
        Ok(Self { publisher, events })
    }

    /// Tells all that is new, until the desk is left or the connection is lost.
    async fn tell(&mut self, observer: &mut Observer) -> Ended {
        let (desk, bus) = (observer.desk().clone(), self.publisher.bus);
        tokio::select! {
            ended = self.publisher.tell(observer) => ended.map_or_else(|Lost| Ended::Lost, |()| Ended::Left),
            () = until_lost(&mut self.events, &bus.server, &desk) => Ended::Lost,
        }
    }
}

/// Says the first objection of the server, once for a connection.
async fn until_lost(events: &mut Receiver<Event>, server: &str, desk: &Desk) {
    let mut told = false;
    while let Some(event) = events.recv().await {
        match event {
            Event::ServerError(error) if !told => {
                told = true;
                desk.tell_all(Severity::Warning, format!("the bus {server} objects: {error}"));
            }
            Event::Disconnected | Event::Closed => return,
            _ => {}
        }
    }
}

/// What goes over a connection.
pub(super) struct Publisher<'a> {
    pub(super) client: Client,
    pub(super) subjects: &'a Subjects,
    pub(super) bus: &'a Shared,
    /// Whether there is a stream that keeps messages and run records, and says so.
    pub(super) keeps: bool,
    told_of_loss: bool,
}

impl Publisher<'_> {
    async fn tell(&mut self, observer: &mut Observer) -> Result<(), Lost> {
        self.make_stream(observer.desk()).await?;
        self.messages(observer).await?;
        loop {
            match observer.next().await {
                News::Said => self.messages(observer).await?,
                News::Changed => self.status(observer.desk()).await?,
                News::Shown(sample) => self.sample(observer.desk(), &sample).await?,
                News::Missed(samples) => self.traffic().lose(samples),
                News::Second => self.all(observer.desk()).await?,
                News::Left => {
                    self.messages(observer).await?;
                    self.all(observer.desk()).await?;
                    return self.client.flush().await.map_err(|_| Lost);
                }
            }
        }
    }

    /// Status and metrics, also for latecomers.
    async fn all(&mut self, desk: &Desk) -> Result<(), Lost> {
        self.subjects.follow(&desk.configured().partition);
        self.status(desk).await?;
        for application in desk.dataflow().stages.iter().flat_map(|stage| &stage.applications) {
            let subject = self.subjects.of_application(&application.name, METRICS);
            self.publish(desk, subject, None, json_of(application)).await?;
        }
        Ok(())
    }

    async fn status(&mut self, desk: &Desk) -> Result<(), Lost> {
        self.publish(desk, self.subjects.of_run_control(STATUS), None, json_of(&desk.status())).await
    }

    async fn sample(&mut self, desk: &Desk, sample: &SampledEvent) -> Result<(), Lost> {
        // It may have made room for newer ones.
        let Some(event) = desk.sampled(sample.number) else {
            self.traffic().lose(1);
            return Ok(());
        };
        let subject = self.subjects.of_application(&sample.application, SAMPLE);
        self.publish(desk, subject, None, json_of(sample)).await?;
        let mut headers = HeaderMap::new();
        headers.insert(NUMBER_OF_SAMPLE, sample.number.to_string());
        let subject = self.subjects.of_application(&sample.application, EVENT);
        self.publish(desk, subject, Some(headers), Bytes::from_owner(event)).await
    }

    pub(super) async fn publish(
        &mut self,
        desk: &Desk,
        subject: String,
        headers: Option<HeaderMap>,
        payload: Bytes,
    ) -> Result<(), Lost> {
        if !self.fits(desk, &subject, payload.len()) {
            return Ok(());
        }
        let published = match headers {
            Some(headers) => self.client.publish_with_headers(subject, headers, payload).await,
            None => self.client.publish(subject, payload).await,
        };
        published.map_err(|_| Lost)?;
        self.traffic().publish();
        Ok(())
    }

    /// Messages and records of runs that ended, which a bus that was away gets later.
    async fn messages(&mut self, observer: &mut Observer) -> Result<(), Lost> {
        let (messages, given_up) = observer.messages();
        self.traffic().lose(given_up);
        for message in messages {
            let name = format!("{}.{}", message.at_ms, message.number);
            self.keep(observer.desk(), MESSAGE, name, json_of(&message)).await?;
            observer.has_told(&message);
        }
        for record in observer.records() {
            let began = record.entry.began.duration_since(UNIX_EPOCH).unwrap_or_default();
            let name = format!("run.{}", began.as_millis());
            self.keep(observer.desk(), RECORD, name, json_of(&record)).await?;
            observer.has_recorded(&record);
        }
        Ok(())
    }

    /// Whether the server takes so much. Otherwise it is lost; the first loss of a connection is said.
    pub(super) fn fits(&mut self, desk: &Desk, subject: &str, bytes: usize) -> bool {
        let (server, bytes_max) = (&self.bus.server, self.client.max_payload().saturating_sub(HEADERS_MAX));
        let fits = bytes <= bytes_max;
        if !fits {
            self.traffic().lose(1);
        }
        if !fits && !core::mem::replace(&mut self.told_of_loss, true) {
            let why = format!("it takes {bytes_max} bytes; raise its max_payload");
            let text = format!("the bus {server} does not get {subject} of {bytes} bytes: {why}");
            desk.tell_all(Severity::Warning, text);
        }
        fits
    }

    pub(super) fn traffic(&self) -> &Traffic {
        &self.bus.traffic
    }
}

pub(super) fn json_of(what: &impl Serialize) -> Bytes {
    serde_json::to_vec(what).expect("numbers, strings and lists are JSON").into()
}

/// An absent server is tried again after this time.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// A server that is there takes a connection within this time.
const PATIENCE: Duration = Duration::from_secs(5);
/// The third one without an answer ends the connection.
const PING_EVERY: Duration = Duration::from_secs(5);
/// So many publications may wait to be sent, each of `max_payload` bytes at most: 16 MiB with a server as it comes.
const UNSENT_MAX: usize = 16;
/// So much may have happened to a connection unnoticed.
const EVENTS_MAX: usize = 16;
/// Names of messages, numbers of samples.
const HEADERS_MAX: usize = 256;
/// The header of an event with the number of its sample.
const NUMBER_OF_SAMPLE: &str = "Weir-Sample";

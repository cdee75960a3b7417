//! Sources and level-1 processors that a partition plays itself. Each is a thread, which sends over the link as the program of a detector
//! does, or as an S-LINK.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use link::{LinkError, Secret};
use rol::detector::Detector;
use rol::slink::FrontEnd;
use transport::error::OsError;
use transport::scheduler::unpin;
use transport::scheduling::{SchedulingClass, set_scheduling_class};
use transport::waker::Waker;
use weir_source::{Sent, Settings, SourceError, run_here};

/// A source that is played. It ends with the link, which has to be closed before this is dropped.
pub(super) struct Player {
    until_dropped: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What players have to say to people.
#[derive(Clone)]
pub(super) struct Complaints {
    texts: Arc<Mutex<Vec<String>>>,
    /// Whether there are texts: a pass without any takes no lock.
    are_there: Arc<AtomicBool>,
    waker: Waker,
}

impl Player {
    /// Sends what the detector has to a link that listens already and takes nobody without the key.
    pub(super) fn start(
        (name, title): (&str, &str),
        at: String,
        key: Secret,
        mut detector: Detector,
        complaints: Complaints,
    ) -> Result<Self, LinkError> {
        let settings = Settings { key: Some(key), patience: Duration::ZERO, ..Settings::named(name) };
        let once = move || run_here(&at, settings.clone(), &mut detector);
        Self::spawn(title.to_owned(), once, complaints)
    }

    /// Sends the same as an S-LINK.
    pub(super) fn start_slink(
        front_end: FrontEnd,
        place: SocketAddr,
        mut detector: Detector,
        complaints: Complaints,
    ) -> Result<Self, LinkError> {
        let (title, place) = (format!("source {}", front_end.name), place.to_string());
        let once = move || {
            let fragments = front_end.send(&place, &mut detector)?.sent;
            Ok(Sent { fragments, ..Sent::default() })
        };
        Self::spawn(title, once, complaints)
    }

    fn spawn(
        title: String,
        once: impl FnMut() -> Result<Sent, SourceError> + Send + 'static,
        complaints: Complaints,
    ) -> Result<Self, LinkError> {
        let (until_dropped, dropped) = sync_channel(0);
        let thread = thread::Builder::new().name("weir player".into()).spawn(move || {
            let say = |text| complaints.say(format!("{title}, which is played, {text}"));
            // A detector has its own processors: this one takes none from an application in real time. On the processor of one it would
            // not get to leave that, once it is normal.
            for error in [unpin(), set_scheduling_class(SchedulingClass::Normal)].into_iter().filter_map(Result::err) {
                say(format!("stays scheduled as what it sends to: {error}"));
            }
            play(once, |pause| pauses(&dropped, pause), say);
        });
        let no_thread =
            |error: std::io::Error| OsError { call: "clone", code: error.raw_os_error().unwrap_or_default() };
        Ok(Self { until_dropped: Some(until_dropped), thread: Some(thread.map_err(no_thread)?) })
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        drop(self.until_dropped.take());
        // One that has panicked was reported by its panic.
        self.thread.take().map(JoinHandle::join);
    }
}

impl Complaints {
    pub(super) fn new(waker: Waker) -> Self {
        Self { texts: Arc::default(), are_there: Arc::default(), waker }
    }

    pub(super) fn are_there(&self) -> bool {
        self.are_there.load(Ordering::Acquire)
    }

    pub(super) fn take(&self) -> Vec<String> {
        if !self.are_there() {
            return Vec::new();
        }
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        self.are_there.store(false, Ordering::Relaxed);
        core::mem::take(&mut texts)
    }

    fn say(&self, text: String) {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.push(text);
        self.are_there.store(true, Ordering::Release);
        drop(texts);
        self.waker.wake();
    }
}

/// Until the link is closed for good. What ends before begins anew, as a program that is started again. It does so ever more slowly, since
/// the run tells of each time. A reason that repeats is told once.
fn play(
    mut once: impl FnMut() -> Result<Sent, SourceError>,
    mut pauses: impl FnMut(Duration) -> bool,
    say: impl Fn(String),
) {
    let (mut told, mut until_begun_anew) = (None, FIRST_PAUSE);
    loop {
        let ended = once();
        // The read-out system may take a while until it looks at who has come.
        let is_absent =
            matches!(ended, Err(SourceError::Link(LinkError::NoPartition { .. } | LinkError::Taken { .. })));
        if !pauses(if is_absent { BETWEEN_TRIES } else { until_begun_anew }) {
            return;
        }
        if is_absent {
            continue;
        }
        until_begun_anew = LONGEST_PAUSE.min(until_begun_anew * 2);
        let text = format!("has ended and begins anew: {}", why(ended));
        if told.as_ref() != Some(&text) {
            say(text.clone());
            told = Some(text);
        }
    }
}

/// Without the name of the source, which is said before.
fn why(ended: Result<Sent, SourceError>) -> String {
    match ended {
        Ok(_) => LinkError::Closed.to_string(),
        Err(SourceError::Failed { function, failure, .. }) => format!("{function}: {failure}"),
        Err(error) => error.to_string(),
    }
}

/// Waits so long; `false` at once when the link is closed for good.
fn pauses(dropped: &Receiver<()>, pause: Duration) -> bool {
    matches!(dropped.recv_timeout(pause), Err(RecvTimeoutError::Timeout))
}

const BETWEEN_TRIES: Duration = Duration::from_millis(20);
/// Until what has ended begins anew.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// One that fails at once fills the messages of the run no faster.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use transport::idle::IdleStrategy;
    use transport::scheduler::Scheduler;
    use weir_source::Function;

    use super::*;

    fn failed() -> Result<Sent, SourceError> {
        Err(SourceError::Failed { name: "tlu".into(), function: Function::Read, failure: "no data".into() })
    }

    fn absent() -> Result<Sent, SourceError> {
        let (at, last) = ("shm:tlu".into(), "nobody".into());
        Err(SourceError::Link(LinkError::NoPartition { at, patience: Duration::ZERO, last }))
    }

    /// Plays a source that ends in these ways, one after another. The link closes behind the last one. Returns what is said, and the pauses.
    fn played(ends: Vec<Result<Sent, SourceError>>) -> (Vec<String>, Vec<Duration>) {
        let (said, mut paused, count) = (RefCell::<Vec<String>>::default(), Vec::new(), ends.len());
        let mut ends = ends.into_iter();
        let pauses = |pause| {
            paused.push(pause);
            paused.len() < count
        };
        play(|| ends.next().unwrap(), pauses, |text| said.borrow_mut().push(text));
        (said.into_inner(), paused)
    }

    #[test]
    fn a_source_that_ends_begins_anew_and_says_why_unless_that_repeats() {
        let closed = || Ok(Sent::default());
        let (said, paused) = played(vec![absent(), failed(), absent(), failed(), closed(), failed(), closed()]);
        let short = BETWEEN_TRIES;
        assert_eq!(
            paused,
            [short, FIRST_PAUSE, short, FIRST_PAUSE * 2, FIRST_PAUSE * 4, FIRST_PAUSE * 8, FIRST_PAUSE * 16]
        );
        let [no_data, is_closed] = ["read: no data", "the partition has ended the link"]
            .map(|why| format!("has ended and begins anew: {why}"));
        assert_eq!(said, [no_data.clone(), is_closed, no_data]);
        let (_, paused) = played((0..9).map(|_| failed()).collect());
        assert_eq!(paused[6..], [LONGEST_PAUSE; 3]);
    }

    #[test]
    fn the_end_of_the_link_is_no_failure() {
        assert_eq!(played(vec![Ok(Sent::default())]), (Vec::new(), vec![FIRST_PAUSE]));
    }

    #[test]
    fn complaints_are_taken_once() {
        let complaints = Complaints::new(Scheduler::<()>::new(IdleStrategy::default()).unwrap().waker());
        assert!(!complaints.are_there());
        complaints.say("one".into());
        complaints.say("two".into());
        assert!(complaints.are_there());
        assert_eq!(complaints.take(), ["one", "two"]);
        assert!(!complaints.are_there() && complaints.take().is_empty());
    }
}

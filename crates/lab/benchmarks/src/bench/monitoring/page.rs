//! A page that somebody has open: what it asks over HTTP, and how often. `crates/system/service/page` is what does so in a browser.

use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::Duration;

use serde_json::Value;
use service::{RunControl, Unheard};
use transport::clock;

use crate::bench::served::pass;

/// What a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// The status as it changes.
    Shift,
    /// The same, and each second the dataflow.
    Dataflow,
    /// The same, what is sampled, and each second the newest event with its bytes.
    Events,
    /// The same, and every other second all histograms and one of them.
    Quality,
}

/// Those that ask for something as long as they are shown; the others ask once.
pub(super) const VIEWS: [View; 4] = [View::Shift, View::Dataflow, View::Events, View::Quality];

/// Pages, to be opened and closed.
pub(super) struct Pages<'a> {
    control: &'a RunControl,
    count: u32,
    /// All that they have read.
    bytes: Arc<AtomicU64>,
    /// Why one of them could not be shown.
    failed: Mutex<Option<Unheard>>,
}

/// Those that are open. Dropping it closes them; a stream ends with the next thing that comes on it.
pub(super) struct Open(Arc<AtomicBool>);

/// One of them.
struct Page<'a> {
    pages: &'a Pages<'a>,
    is_open: Arc<AtomicBool>,
}

impl<'a> Pages<'a> {
    pub(super) fn new(control: &'a RunControl, count: u32) -> Self {
        Self { control, count, bytes: Arc::default(), failed: Mutex::default() }
    }

    /// Counts what they read.
    pub(super) fn bytes(&self) -> Arc<AtomicU64> {
        self.bytes.clone()
    }

    /// Opens all of them.
    pub(super) fn open<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> Open {
        let is_open = Arc::new(AtomicBool::new(true));
        for view in VIEWS.into_iter().cycle().take(self.count as usize) {
            let page = Page { pages: self, is_open: is_open.clone() };
            scope.spawn(move || {
                if let Err(error) = page.show(view) {
                    *page.pages.failed() = Some(error);
                }
            });
        }
        Open(is_open)
    }

    /// Whether all that were closed were shown until then.
    pub(super) fn were_shown(&self) -> Result<(), Unheard> {
        self.failed().take().map_or(Ok(()), Err)
    }

    fn failed(&self) -> MutexGuard<'_, Option<Unheard>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Page<'_> {
    /// Until it is to be closed.
    fn show(&self, view: View) -> Result<(), Unheard> {
        thread::scope(|scope| {
            let streams = [Some("events"), (view == View::Events).then_some("samples/events")];
            let streams: Vec<_> = streams.into_iter().flatten().map(|path| scope.spawn(|| self.listen(path))).collect();
            let asked = self.open().and_then(|()| self.ask(view));
            let heard = streams.into_iter().try_for_each(|stream| stream.join().expect("it does not panic"));
            asked.and(heard)
        })
    }

    /// What a page fetches when it has a connection.
    fn open(&self) -> Result<(), Unheard> {
        ["messages", "trend"].into_iter().try_for_each(|path| self.get(path).map(drop))
    }

    fn ask(&self, view: View) -> Result<(), Unheard> {
        let mut next = clock::now();
        while self.is_open.load(Ordering::Relaxed) {
            if clock::now() < next {
                pass(LOOK_EVERY);
                continue;
            }
            next = next.max(clock::now()) + SECOND;
            match view {
                View::Shift => {}
                View::Dataflow => _ = self.get("dataflow")?,
                View::Events => self.open_newest()?,
                View::Quality => {
                    next = next + SECOND;
                    self.open_histogram()?;
                }
            }
        }
        Ok(())
    }

    fn open_newest(&self) -> Result<(), Unheard> {
        let samples: Vec<Value> = serde_json::from_slice(&self.get("samples")?).unwrap_or_default();
        let Some(number) = samples.last().and_then(|sample| sample["number"].as_u64()) else { return Ok(()) };
        self.get(&format!("samples/{number}"))?;
        self.get(&format!("samples/{number}/raw")).map(drop)
    }

    fn open_histogram(&self) -> Result<(), Unheard> {
        let heads: Vec<Value> = serde_json::from_slice(&self.get("histograms")?).unwrap_or_default();
        let Some(name) = heads.first().and_then(|head| head["name"].as_str()) else { return Ok(()) };
        self.get(&format!("histograms/{name}")).map(drop)
    }

    /// One that is not there any more is none to show.
    fn get(&self, path: &str) -> Result<Vec<u8>, Unheard> {
        let bytes = self.pages.control.bytes(path)?.unwrap_or_default();
        self.pages.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes)
    }

    /// Something comes in each second of a run.
    fn listen(&self, path: &str) -> Result<(), Unheard> {
        let (mut stream, mut bytes) = (self.pages.control.stream(path)?, vec![0; STREAM_BYTES]);
        while self.is_open.load(Ordering::Relaxed) {
            let Ok(len @ 1..) = stream.read(&mut bytes) else { break };
            self.pages.bytes.fetch_add(len as u64, Ordering::Relaxed);
        }
        Ok(())
    }
}

const SECOND: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(50);
const STREAM_BYTES: usize = 64 << 10;

//! The stamps of this process: they are armed and disarmed for all threads at once.

use core::cell::OnceCell;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ring::{NO_EVENT, Ring, pack};
use crate::ticks::{self, Anchor, Scale};
use crate::{NOWHERE, Place, Section, Stamp, StampKind};

pub use crate::ticks::Source;

/// Whether stamps are taken.
#[inline]
pub fn is_armed() -> bool {
    ARMED.load(Ordering::Relaxed)
}

/// Whether a scheduler stamps Poll functions too, most of which find nothing to do.
#[inline]
pub fn are_polls_armed() -> bool {
    POLLS.load(Ordering::Relaxed) && is_armed()
}

/// Whether Poll functions are stamped while stamps are armed; they are not unless this is called.
pub fn stamp_polls(yes: bool) {
    POLLS.store(yes, Ordering::Relaxed);
}

/// A section begins. `peer` is who sent what it handles, if anybody did.
#[inline]
pub fn enter(section: Section, place: Place, peer: Place, event: Option<u64>) {
    if is_armed() {
        record(StampKind::Enter, section, place, peer, event);
    }
}

/// The section that began last in this thread ends.
#[inline]
pub fn leave() {
    if is_armed() {
        record(StampKind::Leave, Section(0), NOWHERE, NOWHERE, None);
    }
}

/// The section that began last in this thread is about a further event.
#[inline]
pub fn serves(event: u64) {
    if is_armed() {
        record(StampKind::Further, Section(0), NOWHERE, NOWHERE, Some(event));
    }
}

/// A message leaves `place` for `peer`, where this section will handle it.
#[inline]
pub fn sends(section: Section, place: Place, peer: Place, event: Option<u64>) {
    if is_armed() {
        record(StampKind::Send, section, place, peer, event);
    }
}

/// The section with this name, for the whole life of the process.
///
/// # Panics
/// If there are more than 65,535 names.
pub fn section(name: &str) -> Section {
    let mut names = locked(&NAMES);
    let index = names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    Section(u16::try_from(index).expect("a program names less than 65536 sections"))
}

/// The names of all sections, by their numbers.
pub fn section_names() -> Vec<String> {
    locked(&NAMES).clone()
}

/// Says who an application is, for traces.
pub fn name_place(place: Place, name: &str) {
    let mut places = locked(&PLACES);
    if !places.iter().any(|(known, known_name)| (*known, &**known_name) == (place, name)) {
        places.push((place, name.to_owned()));
    }
}

/// The applications that have names, in the order in which they were named.
pub fn places() -> Vec<(Place, String)> {
    locked(&PLACES).clone()
}

/// Takes stamps from now on, so many of each thread; those of former times are forgotten. Threads that have a ring already keep
/// its size.
pub fn arm(stamps_per_thread: usize) {
    let mut state = locked(&STATE);
    if is_armed() {
        return;
    }
    CAPACITY.store(stamps_per_thread.max(1), Ordering::Relaxed);
    let source = ticks::choose();
    // Of threads that have ended.
    state.rings.retain(|ring| Arc::strong_count(ring) > 1);
    state.rings.iter().for_each(|ring| ring.clear());
    state.since = Some((source, Anchor::now()));
    ARMED.store(true, Ordering::Relaxed);
}

/// Takes no more stamps. Those that were taken can be [`drain`]ed until they are armed again.
pub fn disarm() {
    ARMED.store(false, Ordering::Relaxed);
}

/// What counts the time of stamps; `None` if they never were armed.
pub fn source() -> Option<Source> {
    locked(&STATE).since.map(|(source, _)| source)
}

/// What one thread has stamped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drained {
    /// The number of its ring, which no other thread has.
    pub ring: u64,
    /// Its name.
    pub name: String,
    /// How many stamps were overwritten before this call.
    pub lost: u64,
    /// The others, oldest first.
    pub stamps: Vec<Stamp>,
}

/// Takes what was stamped since the call before, or since arming.
pub fn drain() -> Vec<Drained> {
    let state = locked(&STATE);
    let Some((_, since)) = state.since else { return Vec::new() };
    let scale = Scale::between(since, Anchor::now());
    let of_ring = |ring: &Arc<Ring>| {
        let (stamps, lost) = ring.drain(|ticks| scale.ns(ticks));
        Drained { ring: ring.number, name: ring.thread.clone(), lost, stamps }
    };
    state.rings.iter().map(of_ring).collect()
}

#[cold]
#[inline(never)]
fn record(kind: StampKind, section: Section, place: Place, peer: Place, event: Option<u64>) {
    RING.with(|ring| {
        if let Some(ring) = ring.get_or_init(ring_of_this_thread) {
            ring.write(ticks::now(), pack(kind, section, place, peer), event.unwrap_or(NO_EVENT));
        }
    });
}

/// None beyond the bound: such a thread leaves no stamps.
fn ring_of_this_thread() -> Option<Arc<Ring>> {
    let mut state = locked(&STATE);
    if state.rings.len() >= RINGS_MAX {
        return None;
    }
    let name = std::thread::current().name().unwrap_or("unnamed").to_owned();
    let ring = Arc::new(Ring::new(state.made, name, CAPACITY.load(Ordering::Relaxed)));
    state.made += 1;
    state.rings.push(Arc::clone(&ring));
    Some(ring)
}

/// A thread that panicked left it whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Rings {
    rings: Vec<Arc<Ring>>,
    /// How many rings there ever were.
    made: u64,
    since: Option<(Source, Anchor)>,
}

static ARMED: AtomicBool = AtomicBool::new(false);
static POLLS: AtomicBool = AtomicBool::new(false);
static PLACES: Mutex<Vec<(Place, String)>> = Mutex::new(Vec::new());
static CAPACITY: AtomicUsize = AtomicUsize::new(1);
static NAMES: Mutex<Vec<String>> = Mutex::new(Vec::new());
static STATE: Mutex<Rings> = Mutex::new(Rings { rings: Vec::new(), made: 0, since: None });

thread_local! {
    static RING: OnceCell<Option<Arc<Ring>>> = const { OnceCell::new() };
}

/// Threads with a ring: more than any process of a partition has.
const RINGS_MAX: usize = 256;

//! Insert, find and remove with a million resident events: a working set far beyond the caches.
//!
//! The result to look at is `turnover`: insert + find + remove of one event together, removed in random order.

use std::hint::black_box;
use std::time::{Duration, Instant};

use base::bulk::Bulk;
use base::event_manager::EventManager;
use base::ids::EventId;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

const RESIDENT: u64 = 1_000_000;
const SEED: u64 = 1;

/// As large as what a read-out buffer keeps of a fragment: identifiers, sizes and status, and a handle on its bytes.
struct Fragment {
    head: [u32; 10],
    bulk: Bulk,
}

impl Fragment {
    fn new(id: u64) -> Self {
        Self { head: [id as u32; 10], bulk: Bulk::Modelled { len_bytes: 1024, seed: id as u32 } }
    }
}

/// One million events are resident throughout: find one, remove it, insert a new one.
struct Turnover {
    manager: EventManager<Fragment>,
    removal_order: Vec<u64>,
    id: fn(u64) -> EventId,
    round_begin: u64,
    next: usize,
}

impl Turnover {
    fn new(removal_order: Vec<u64>, id: fn(u64) -> EventId) -> Self {
        let mut manager = EventManager::new(RESIDENT as usize + 1);
        for n in 0..RESIDENT {
            assert!(manager.insert(id(n), Fragment::new(n)).is_ok());
        }
        let mut turnover = Self { manager, removal_order, id, round_begin: 0, next: 0 };
        for _ in 0..RESIDENT {
            turnover.step();
        }
        turnover
    }

    fn step(&mut self) {
        let old = (self.id)(self.round_begin + self.removal_order[self.next]);
        let new = (self.id)(self.round_begin + RESIDENT + self.next as u64);
        let arrived = black_box(Fragment::new(new.0));
        let fragment = self.manager.find(old).expect("a resident event");
        black_box(fragment.head[3] as usize + fragment.bulk.len());
        black_box(self.manager.remove(old));
        assert!(self.manager.insert(new, arrived).is_ok());
        self.next += 1;
        if self.next == self.removal_order.len() {
            self.next = 0;
            self.round_begin += RESIDENT;
        }
    }
}

/// All inserts, then all finds, then all removals; every operation goes to memory that has left the caches.
fn phases(manager: &mut EventManager<Fragment>, order: &[u64], first: u64) -> [Duration; 3] {
    let begin = now();
    for n in first..first + RESIDENT {
        assert!(manager.insert(EventId(n), Fragment::new(n)).is_ok());
    }
    let inserted = now();
    for n in order {
        let fragment = manager.find(EventId(first + n)).expect("a resident event");
        black_box(fragment.head[3] as usize + fragment.bulk.len());
    }
    let found = now();
    for n in order.iter().rev() {
        black_box(manager.remove(EventId(first + n)));
    }
    [inserted - begin, found - inserted, found.elapsed()]
}

fn shuffled() -> Vec<u64> {
    let mut order: Vec<u64> = (0..RESIDENT).collect();
    let mut state = SEED;
    for n in (1..order.len()).rev() {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        order.swap(n, ((u128::from(state) * (n as u128 + 1)) >> 64) as usize);
    }
    order
}

fn turnover(c: &mut Criterion) {
    let mut group = c.benchmark_group("event_manager/turnover");
    group.throughput(Throughput::Elements(1));
    let mut case = |name: &str, order: Vec<u64>, id: fn(u64) -> EventId| {
        let mut turnover = Turnover::new(order, id);
        group.bench_function(name, |b| b.iter(|| turnover.step()));
        turnover.manager.check();
    };
    case("random", shuffled(), EventId);
    case("random, ids 2^24 apart", shuffled(), |n| EventId(n << 24));
    case("random, ids scattered", shuffled(), |n| EventId(n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)));
    case("in sequence", (0..RESIDENT).collect(), EventId);
}

fn separate(c: &mut Criterion) {
    let mut group = c.benchmark_group("event_manager/separate");
    group.throughput(Throughput::Elements(1)).sample_size(10);
    let order = shuffled();
    let mut manager = EventManager::new(RESIDENT as usize);
    let mut first = 0;
    phases(&mut manager, &order, first);
    for (index, name) in ["insert", "find", "remove"].into_iter().enumerate() {
        group.bench_function(name, |b| {
            b.iter_custom(|iterations| {
                let rounds = iterations.div_ceil(RESIDENT);
                let mut total = Duration::ZERO;
                for _ in 0..rounds {
                    first += RESIDENT;
                    total += phases(&mut manager, &order, first)[index];
                }
                total.mul_f64(iterations as f64 / (rounds * RESIDENT) as f64)
            });
        });
    }
}

fn garbage_collection(c: &mut Criterion) {
    let mut group = c.benchmark_group("event_manager/garbage_collection");
    group.sample_size(10);
    group.bench_function("half of a million", |b| {
        let order = shuffled();
        b.iter_batched_ref(
            || Turnover::new(order.clone(), EventId).manager,
            |manager| manager.remove_older_than(EventId(RESIDENT * 3 / 2), |_, fragment| drop(black_box(fragment))),
            BatchSize::PerIteration,
        );
    });
}

#[expect(clippy::disallowed_methods, reason = "a benchmark of a crate without a clock")]
fn now() -> Instant {
    Instant::now()
}

criterion_group!(benches, turnover, separate, garbage_collection);
criterion_main!(benches);

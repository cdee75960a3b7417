//! Speed of the simulator: events per second of the queue, frames per second of a network, cells per second of a switch.

use base::random::Random;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use simulator::atm::{Demand, Fragments, Paths, RateDivision, Shaping, Switch, SwitchConfig};
use simulator::engine::Queue;
use simulator::network::{HostId, Message, Network, Protocol, Step, Topology};

/// Takes the next event and puts in another, with as many in the queue: the "hold" model.
fn queue(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("queue");
    group.throughput(Throughput::Elements(1));
    for size in [100, 10_000, 1_000_000] {
        let mut queue = Queue::new();
        let mut random = Random::new(1);
        for _ in 0..size {
            queue.after(random.below(MEAN_PS * 2), [0_u32; 4]);
        }
        group.bench_function(format!("hold {size}"), |bencher| {
            bencher.iter(|| {
                let event = queue.pop().expect("the queue is never empty");
                queue.after(random.below(MEAN_PS * 2), event);
            });
        });
    }
    group.finish();
}

/// Each of 40 hosts has a message of 10 kB under way to another; frames per hop.
fn ethernet(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ethernet");
    group.throughput(Throughput::Elements(1));
    for protocol in [Protocol::Udp, Protocol::Tcp] {
        let mut network = Network::new(&Topology::star(HOSTS), 1).expect("a star can be built");
        let mut queue: Queue<Step> = Queue::new();
        let send = |network: &mut Network, queue: &mut Queue<Step>, from: u16| {
            let to = HostId((from + 7) % HOSTS);
            network.send(queue, Message { from: HostId(from), to, len_bytes: 10_000, protocol, tag: u64::from(from) });
        };
        (0..HOSTS).for_each(|from| send(&mut network, &mut queue, from));
        group.bench_function(format!("{protocol:?}, per event"), |bencher| {
            bencher.iter(|| {
                let step = queue.pop().expect("something is always under way");
                network.step(&mut queue, step);
                while let Some(outcome) = network.next_outcome() {
                    send(&mut network, &mut queue, outcome.from.0);
                }
            });
        });
    }
    group.finish();
}

/// A slot of a switch of 256 ports at 70 % load, with three stages: 179 cells.
fn atm(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("atm");
    let config = SwitchConfig { ports: 256, element_ports: 16, buffer_cells: 256, paths: Paths::Multiple };
    let fragments = Fragments { mean_bytes: 10_240.0, sigma: 0.3 };
    let shaping = Shaping::Unsynchronised { allotted: 0.7 };
    let mut switch = Switch::new(config, 1);
    let mut sources = RateDivision::new(config.ports, Demand::Saturated, fragments, shaping, 1);
    group.throughput(Throughput::Elements(179));
    group.bench_function("256 x 256, per cell", |bencher| {
        bencher.iter(|| {
            switch.step(|_| {});
            sources.step(|cell| switch.offer(cell));
        });
    });
    group.finish();
}

const MEAN_PS: u64 = 10_000_000;
const HOSTS: u16 = 40;

criterion_group!(benches, queue, ethernet, atm);
criterion_main!(benches);

//! ATM: switches against queueing theory, order, and the account of every cell; event building over them.

use std::collections::BTreeMap;

use base::random::Random;
use proptest::prelude::*;
use simulator::atm::occupancy::{self, Observation};
use simulator::atm::{Cell, Demand, Fragments, Paths, RateDivision, Shaping, Switch, SwitchConfig, Tail, pull, push};

const ELEMENT: SwitchConfig = SwitchConfig { ports: 16, element_ports: 16, buffer_cells: 4096, paths: Paths::Single };
const LARGE: SwitchConfig = SwitchConfig { ports: 256, element_ports: 16, buffer_cells: 4096, paths: Paths::Multiple };

/// Occupancy of one element under cells that come independently in each slot, for one output or for all at random.
fn random_traffic(load: f64, one_output: bool, slots: u64) -> Tail {
    let mut switch = Switch::new(ELEMENT, 1);
    let mut random = Random::new(2);
    let mut tail = vec![Tail::new(4096)];
    for slot in 0..slots {
        switch.step(|_| {});
        for source in 0..16 {
            let part = if one_output { load / 16.0 } else { load };
            if random.chance(part) {
                let destination = if one_output { 3 } else { random.below(16) as u16 };
                switch.offer(Cell { destination, source, mark: 0 });
            }
        }
        if slot > slots / 20 {
            switch.observe(&mut tail);
        }
    }
    tail.remove(0)
}

/// The probability of more than n cells in a queue that gets binomial arrivals and sends one cell a slot, after
/// arrivals. It is the fixed point of its Markov chain.
fn markov_tail(load: f64, up_to: usize) -> Vec<f64> {
    let part = load / 16.0;
    let mut arrivals = vec![1.0];
    for _ in 0..16 {
        let mut next = vec![0.0; arrivals.len() + 1];
        for (count, probability) in arrivals.iter().enumerate() {
            next[count] += probability * (1.0 - part);
            next[count + 1] += probability * part;
        }
        arrivals = next;
    }
    let mut state = vec![0.0; up_to * 2 + 20];
    state[0] = 1.0;
    for _ in 0..3_000 {
        let mut next = vec![0.0; state.len()];
        for (cells, probability) in state.iter().enumerate() {
            for (count, arrival) in arrivals.iter().enumerate() {
                let after = (cells.saturating_sub(1) + count).min(next.len() - 1);
                next[after] += probability * arrival;
            }
        }
        state = next;
    }
    (0..up_to).map(|cells| state[cells + 1..].iter().sum()).collect()
}

#[test]
fn an_output_has_the_tail_of_its_markov_chain() {
    let seen = random_traffic(0.8, true, 4_000_000);
    for (cells, expected) in markov_tail(0.8, 30).into_iter().enumerate().filter(|(_, expected)| *expected > 3e-3) {
        let ratio = seen.above(cells) / expected;
        assert!((0.85..1.15).contains(&ratio), "more than {cells}: {} of {expected}", seen.above(cells));
    }
}

#[test]
fn an_element_holds_as_much_as_theory_says() {
    for load in [0.5, 0.7, 0.9_f64] {
        let seen = random_traffic(load, false, 400_000).mean();
        // Each of 16 outputs holds ρ + (N-1)/N ρ²/(2(1-ρ)) cells after arrivals [Karol et al. 1987].
        let theory = 16.0 * (load + 15.0 / 16.0 * load * load / (2.0 * (1.0 - load)));
        assert!((seen / theory - 1.0).abs() < 0.05, "load {load}: {seen} of {theory}");
    }
}

/// Rate division makes the traffic to an output periodic: the queue is N·D/D/1, whose tail is known in closed form
/// [Roberts and Virtamo 1991]. A slot is cut for each cell, not a point, which is a little less than half a cell.
#[test]
fn rate_division_makes_the_tail_of_periodic_sources() {
    let (sources, load) = (64, 0.8);
    let config = SwitchConfig { ports: sources, element_ports: 64, buffer_cells: 4096, paths: Paths::Single };
    let mut switch = Switch::new(config, 1);
    let fragments = Fragments { mean_bytes: 200.0, sigma: 0.3 };
    let shaping = Shaping::Unsynchronised { allotted: load };
    let mut traffic = RateDivision::new(sources, Demand::Saturated, fragments, shaping, 7);
    let mut tail = vec![Tail::new(4096)];
    for slot in 0..2_000_000_u64 {
        switch.step(|_| {});
        // What goes to one output alone is in the buffer.
        traffic.step(|cell| {
            if cell.destination == 0 {
                switch.offer(cell);
            }
        });
        if slot > 10_000 {
            switch.observe(&mut tail);
        }
    }
    for cells in [1, 3, 5, 7] {
        let (seen, theory) = (tail[0].above(cells), periodic_tail(sources.into(), load, cells as f64));
        let next = periodic_tail(sources.into(), load, cells as f64 - 1.0);
        assert!((theory * 0.8..next * 1.2).contains(&seen), "more than {cells}: {seen}, not in {theory} to {next}");
    }
}

/// The probability that more than `level` cells of work wait in an N·D/D/1 queue.
fn periodic_tail(sources: u32, load: f64, level: f64) -> f64 {
    let period = f64::from(sources) / load;
    let count = f64::from(sources);
    let mut sum = 0.0;
    let mut binomial = 1.0;
    for n in 1..=sources {
        let n_cells = f64::from(n);
        binomial *= f64::from(sources - n + 1) / n_cells;
        if n_cells > level {
            let part = (n_cells - level) / period;
            sum += binomial * part.powi(n as i32) * (1.0 - part).powi((sources - n) as i32) * (period - count + level)
                / (period - n_cells + level);
        }
    }
    sum
}

#[test]
fn an_overloaded_output_sends_a_cell_in_every_slot() {
    let mut switch = Switch::new(SwitchConfig { buffer_cells: 64, ..ELEMENT }, 1);
    let mut sent = 0;
    for _ in 0..1_000 {
        switch.step(|_| sent += 1);
        (0..2).for_each(|source| switch.offer(Cell { destination: 5, source, mark: 0 }));
    }
    assert_eq!(sent, 999);
    let (offered, delivered, dropped) = switch.counts();
    assert_eq!((offered, delivered + dropped + switch.held()), (2_000, 2_000));
    assert_eq!(switch.held(), 64);
}

/// [ATM1997 §IV]: at 70 % load a buffer of 256 cells hardly ever overflows, if sources are not synchronised.
#[test]
fn unsynchronised_sources_keep_the_buffers_of_a_large_switch_low() {
    let run = |shaping| -> Observation {
        occupancy::observe(&occupancy::Scenario {
            switch: LARGE,
            demand: Demand::Saturated,
            fragments: Fragments { mean_bytes: 10_240.0, sigma: 0.3 },
            shaping,
            slots: 10_000,
            warm_up_slots: 2_000,
            seed: 1,
        })
    };
    let good = run(Shaping::Unsynchronised { allotted: 0.7 });
    assert!(good.fullest().max() < 80, "{}", good.fullest().max());
    let per_slot = good.offered as f64 / 12_000.0 / 256.0;
    assert!((per_slot / 0.7 - 1.0).abs() < 0.005, "{per_slot}");
    let bad = run(Shaping::Synchronised { allotted: 0.7 });
    assert!(bad.fullest().max() > 256, "{}", bad.fullest().max());
}

#[test]
fn events_load_the_links_as_asked() {
    for shaping in [Shaping::Unsynchronised { allotted: 0.8 }, Shaping::Bursts] {
        let seen = occupancy::observe(&occupancy::Scenario {
            switch: SwitchConfig { ports: 64, ..LARGE },
            demand: Demand::Events { load: 0.5 },
            fragments: Fragments { mean_bytes: 500.0, sigma: 0.3 },
            shaping,
            slots: 100_000,
            warm_up_slots: 0,
            seed: 1,
        });
        let load = (seen.offered + seen.backlog) as f64 / 100_000.0 / 64.0;
        assert!((load / 0.5 - 1.0).abs() < 0.05, "{load}");
        assert_eq!(seen.offered, seen.delivered + seen.dropped + seen.held);
        // Unshaped fragments of an event meet at its destination.
        assert_eq!(seen.fullest().mean() > 100.0, shaping == Shaping::Bursts, "{}", seen.fullest().mean());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Cells in = cells out + dropped + held, at any time; on a single way a flow keeps its order.
    #[test]
    fn cells_are_accounted_for_and_in_order(
        seed: u64, multiple: bool, ports in 2_u16..64, buffer_cells in 1_u16..40, load in 0.1..1.0,
    ) {
        let paths = if multiple { Paths::Multiple } else { Paths::Single };
        let mut switch = Switch::new(SwitchConfig { ports, element_ports: 8, buffer_cells, paths }, seed);
        let mut random = Random::new(seed);
        let (mut marks, mut last) = (BTreeMap::<(u16, u16), u32>::new(), BTreeMap::new());
        for _ in 0..300 {
            switch.step(|cell| {
                let before = last.insert((cell.source, cell.destination), cell.mark);
                assert!(multiple || before.is_none_or(|before| before < cell.mark));
            });
            for source in 0..ports {
                if random.chance(load) {
                    let destination = random.below(ports.into()) as u16;
                    let mark = marks.entry((source, destination)).or_default();
                    *mark += 1;
                    switch.offer(Cell { destination, source, mark: *mark });
                }
            }
            let (offered, delivered, dropped) = switch.counts();
            prop_assert_eq!(offered, delivered + dropped + switch.held());
        }
        for _ in 0..100 * u32::from(buffer_cells) {
            switch.step(|_| {});
        }
        prop_assert_eq!(switch.held(), 0);
    }
}

#[test]
fn equal_seeds_give_equal_observations() {
    let run = |seed| {
        let fragments = Fragments { mean_bytes: 1000.0, sigma: 0.3 };
        let shaping = Shaping::Unsynchronised { allotted: 0.9 };
        let (switch, demand) = (LARGE, Demand::Events { load: 0.8 });
        occupancy::observe(&occupancy::Scenario {
            switch,
            demand,
            fragments,
            shaping,
            slots: 2_000,
            warm_up_slots: 0,
            seed,
        })
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

fn push(fragment_bytes: f64) -> push::Demonstrator {
    push::Demonstrator {
        ports: 8,
        buffer_cells: 256,
        fragments: Fragments { mean_bytes: fragment_bytes, sigma: 0.3 },
        send_overhead_ns: 16_000,
        receive_overhead_ns: 25_000,
        memory_fragments: 64,
        duration_ms: 50,
        seed: 1,
    }
}

#[test]
fn push_is_limited_by_processors_for_small_fragments_and_by_links_for_large_ones() {
    let small = push(64.0).fastest();
    assert!((36e3..40e3).contains(&small.built_hz), "{small:?}");
    let large = push(2048.0).fastest();
    assert!((0.85..0.99).contains(&(large.bytes_per_s / 8.0 / simulator::atm::link_bytes_per_s())), "{large:?}");
    let overloaded = push(2048.0).run(20e3);
    assert!(overloaded.lost > 0, "{overloaded:?}");
}

#[test]
fn pull_is_limited_by_the_destination_for_small_fragments_and_by_its_link_for_large_ones() {
    let run = |fragment_bytes| {
        pull::Demonstrator {
            sources: 6,
            buffer_cells: 1024,
            fragments: Fragments { mean_bytes: fragment_bytes, sigma: 0.0 },
            packet_overhead_ns: 16_000,
            receive_overhead_ns: 25_000,
            duration_ms: 50,
            seed: 1,
        }
        .run()
    };
    let small = run(64.0);
    let theory_hz = 1.0 / (6.0 * 41e-6);
    assert!((small.built_hz / theory_hz - 1.0).abs() < 0.02, "{small:?}");
    let large = run(4096.0);
    assert!((0.95..1.0).contains(&(large.bytes_per_s / simulator::atm::link_bytes_per_s())), "{large:?}");
    assert_eq!((small.lost, large.lost), (0, 0));
}

//! What OS1998 gives, and whether its conclusions hold here.

use super::Found;
use super::latency::{Row, Source, Wait};
use super::machine::Class;
use super::semaphores::Cycle;
use ::semaphores::Family;
use partition::human::si;

/// A processor board of the paper.
pub(super) struct Board {
    pub(super) name: &'static str,
    /// Table 1.
    pub(super) dhrystones_hz: f64,
    /// Table 2, beside each load; the paper has not all of them.
    pub(super) lock_unlock_us: [Option<f64>; 3],
    /// Table 3.
    pub(super) context_switch_us: f64,
}

pub(super) const BOARDS: [Board; 3] = [
    Board {
        name: "RTPC-604, LynxOS",
        dhrystones_hz: 208_117.0,
        lock_unlock_us: [Some(9.5), Some(18.9), Some(9.5)],
        context_switch_us: 8.0,
    },
    Board {
        name: "VMIVME-7587, Windows NT",
        dhrystones_hz: 165_000.0,
        lock_unlock_us: [Some(14.0), None, None],
        context_switch_us: 13.5,
    },
    Board {
        name: "RAID-8239, EP/LX",
        dhrystones_hz: 56_242.0,
        lock_unlock_us: [Some(19.6), Some(39.0), Some(19.3)],
        context_switch_us: 13.0,
    },
];

/// Events per second of SPIDER in §3: with software triggers on Windows NT and on LynxOS, with interrupts.
pub(super) const SOFTWARE_HZ: f64 = 6600.0;
pub(super) const SOFTWARE_LYNXOS_HZ: f64 = 5000.0;
pub(super) const INTERRUPTS_HZ: f64 = 3300.0;
/// From an interrupt to a routine of the user, and of the kernel (§3).
pub(super) const USER_ROUTINE_US: f64 = 170.0;
pub(super) const KERNEL_ROUTINE_US: f64 = 13.5;

/// A conclusion of the paper, and what is so here.
pub(super) struct Conclusion {
    pub(super) of_the_paper: &'static str,
    /// None where this machine alone cannot tell.
    pub(super) holds: Option<bool>,
    pub(super) because: String,
}

/// All of them.
pub(super) fn conclusions(found: &Found) -> Vec<Conclusion> {
    let mut all = vec![of_processors(found)];
    all.extend(found.classes().map(|class| of_fairness(found, class)));
    all.extend([of_semaphores(found), of_context_switches(found), of_select(found), of_routines(found)]);
    all.extend([of_triggers(found), of_power(found), of_real_time(found)]);
    all
}

impl Found {
    fn classes(&self) -> impl Iterator<Item = Class> {
        let real_time = self.cycles.iter().any(|cycle| cycle.class == Class::RealTime);
        [Class::Normal].into_iter().chain(real_time.then_some(Class::RealTime))
    }

    /// How much faster than the PowerPC 604 this processor computes.
    fn computing(&self) -> f64 {
        self.speed.integer_hz / BOARDS[0].dhrystones_hz
    }

    fn cycle(&self, kind: Family, class: Class) -> &Cycle {
        let cycle = self.cycles.iter().find(|cycle| (cycle.kind, cycle.class) == (kind, class));
        cycle.expect("each kind is measured in each class")
    }

    fn row(&self, source: Source, wait: Wait, class: Class) -> &Row {
        let row = self.latencies.iter().find(|row| (row.source, row.wait, row.class) == (source, wait, class));
        row.expect("each way to wait is measured in each class")
    }

    /// Median without load.
    fn median_us(&self, source: Source, wait: Wait) -> f64 {
        self.row(source, wait, Class::Normal).beside[0].us(0.5).unwrap_or_default()
    }
}

fn of_processors(found: &Found) -> Conclusion {
    let of_boards = BOARDS.iter().map(|board| board.dhrystones_hz);
    let (least, most) = (of_boards.clone().fold(f64::INFINITY, f64::min), of_boards.fold(0.0, f64::max));
    let apart = most / least;
    Conclusion {
        of_the_paper: "Processors differ in power: the 604 has close to four times that of the MIPS (Table 1).",
        holds: Some(found.computing() >= apart),
        because: format!(
            "The boards are {apart:.1} apart. One core here has {:.0} times the power of the 604, and {:.0} times that of the MIPS.",
            found.computing(),
            found.speed.integer_hz / least
        ),
    }
}

fn of_fairness(found: &Found, class: Class) -> Conclusion {
    let of_cycles = |place: usize| {
        let ratios = Family::ALL.map(|kind| {
            let [alone, ..] = found.cycle(kind, class).lock_unlock_us;
            found.cycle(kind, class).lock_unlock_us[place] / alone
        });
        (ratios.iter().copied().fold(f64::INFINITY, f64::min), ratios.iter().copied().fold(0.0, f64::max))
    };
    let (same, lower) = (of_cycles(1), of_cycles(2));
    let of_the_paper = match class {
        Class::Normal => {
            "Beside a load of the same priority semaphores take twice as long, beside one of lower priority as long as alone (Table 2); here: normal class."
        }
        Class::RealTime => "The same; here: real-time class.",
    };
    Conclusion {
        of_the_paper,
        holds: Some(same.0 >= 1.5 && same.1 <= 2.5 && lower.1 <= 1.2),
        because: format!(
            "{:.2} to {:.2} times as long beside the same priority, {:.2} to {:.2} times beside a lower one.",
            same.0, same.1, lower.0, lower.1
        ),
    }
}

fn of_semaphores(found: &Found) -> Conclusion {
    let of = |kind| 9.5 / found.cycle(kind, Class::Normal).lock_unlock_us[0];
    let (system_v, futex) = (of(Family::SystemV), of(Family::Futex));
    Conclusion {
        of_the_paper: "Semaphores do not gain as much as the processors (Tables 1 and 2).",
        holds: Some(system_v < found.computing()),
        because: format!(
            "Against the 604, computing is {:.0} times as fast, and semaphores of System V, which call the kernel, {system_v:.1} \
             times. Where nobody waits, a futex needs no kernel and is {futex:.0} times as fast.",
            found.computing()
        ),
    }
}

fn of_context_switches(found: &Found) -> Conclusion {
    const OF_THE_PAPER: &str = "The time of a context switch gains little from a faster processor (Table 3).";
    let us = Family::ALL.iter().filter_map(|kind| found.cycle(*kind, Class::Normal).context_switch_us());
    let Some(least) = us.min_by(f64::total_cmp) else {
        let because =
            "The machine was too busy to tell: a ping-pong took less than the locks and unlocks in it.".to_owned();
        return Conclusion { of_the_paper: OF_THE_PAPER, holds: None, because };
    };
    let gain = BOARDS[0].context_switch_us / least;
    Conclusion {
        of_the_paper: OF_THE_PAPER,
        holds: Some(gain < found.computing()),
        because: format!(
            "The shortest takes {least:.2} µs: {gain:.1} times as fast as on the 604, where computing is {:.0} times as fast.",
            found.computing()
        ),
    }
}

fn of_select(found: &Found) -> Conclusion {
    let [block, poll] = [Wait::Block, Wait::Poll].map(|wait| found.median_us(Source::Timer, wait));
    Conclusion {
        of_the_paper: "To wait for several interrupts at once (select) costs more time than to wait for one (§2).",
        holds: Some(poll > block),
        because: format!(
            "Median from the timer to the program: {poll:.2} µs with poll, {block:.2} µs with read alone."
        ),
    }
}

fn of_routines(found: &Found) -> Conclusion {
    let [block, spin] = [Wait::Block, Wait::Spin].map(|wait| found.median_us(Source::Timer, wait));
    Conclusion {
        of_the_paper: "A routine of the user sees an interrupt after 170 µs, one of the kernel after 13.5 µs: the latter is worth writing (§3).",
        holds: Some(block > KERNEL_ROUTINE_US),
        because: format!(
            "A program of the user is told {block:.1} µs after the timer, {spin:.1} µs if it polls ({:.1} and {:.1} times the kernel's in the paper).",
            block / KERNEL_ROUTINE_US,
            spin / KERNEL_ROUTINE_US
        ),
    }
}

fn of_triggers(found: &Found) -> Conclusion {
    let small = &found.sizes[0];
    let software = small.software.recorded_hz;
    let Some(timer) = small.timer else {
        return Conclusion {
            of_the_paper: TRIGGERS,
            holds: Some(true),
            because: format!(
                "Level 1 keeps none of the rates of a timer that were tried; software triggers make {}.",
                si(software, "Hz")
            ),
        };
    };
    Conclusion {
        of_the_paper: TRIGGERS,
        holds: Some(timer.recorded_hz <= 0.6 * software),
        because: format!(
            "Events of 1 KiB: {} by software triggers, and {} by a timer that is kept: {:.2} of it.",
            si(software, "Hz"),
            si(timer.recorded_hz, "Hz"),
            timer.recorded_hz / software
        ),
    }
}

fn of_power(found: &Found) -> Conclusion {
    let gain = found.sizes[0].software.recorded_hz / SOFTWARE_LYNXOS_HZ;
    Conclusion {
        of_the_paper: "The operating system does not fully exploit the power of the processor (§4).",
        holds: Some(gain < found.computing()),
        because: format!(
            "The whole chain, of six processes, takes {gain:.1} times the events that SPIDER took on LynxOS, with {:.0} times the \
             power in each core.",
            found.computing()
        ),
    }
}

fn of_real_time(found: &Found) -> Conclusion {
    let tail = |class| found.row(Source::Timer, Wait::Block, class).beside[1].us(0.999).unwrap_or_default();
    let normal = tail(Class::Normal);
    let real_time = found.classes().any(|class| class == Class::RealTime);
    let [alone, lower] = [0, 2].map(|load| {
        real_time.then(|| found.row(Source::Timer, Wait::Block, Class::RealTime).beside[load].us(0.999)).flatten()
    });
    let because = match alone.zip(lower) {
        Some((alone, lower)) => format!(
            "Beside a load of the same priority one wake-up in 1000 of a normal thread comes later than {normal:.0} µs. In real time \
             it is {alone:.0} µs without load, {lower:.0} µs beside a load of lower priority."
        ),
        None => format!("Beside a load of the same priority one wake-up in 1000 comes later than {normal:.0} µs."),
    };
    Conclusion {
        of_the_paper: "A general operating system does for data acquisition without extreme demands in real time (§4).",
        holds: Some(found.sizes[0].software.recorded_hz > SOFTWARE_HZ),
        because,
    }
}

const TRIGGERS: &str = "Interrupts halve the rate of events: 3300 Hz, with software triggers 6600 Hz (§3).";

//! Tables and figures.

use std::fmt::Write;

use plotters::chart::SeriesLabelPosition;

use super::Found;
use super::acquisition::{Acquisition, SETTING_EVENT_BYTES, Size, Taken, idle_name};
use super::advice::{Advice, mean};
use super::given::{
    self, BOARDS, Board, INTERRUPTS_HZ, KERNEL_ROUTINE_US, SOFTWARE_HZ, SOFTWARE_LYNXOS_HZ, USER_ROUTINE_US,
};
use super::latency::{Latencies, Row, Source, Wait};
use super::machine::{Class, Load, Machine};
use super::tables;
use crate::plot::{Axis, Curve, Look, Plot, Scale};
use partition::human::si;

/// What was measured, and with what.
pub(super) struct Subject<'a> {
    pub(super) machine: &'a Machine,
    pub(super) about: &'a str,
    /// What is to be known of other work.
    pub(super) others: Option<String>,
    pub(super) acquisition: &'a Acquisition,
}

/// All tables, in Markdown.
pub(super) fn report(subject: &Subject<'_>, found: &Found, advice: &Advice) -> String {
    let mut text = String::new();
    write_report(&mut text, subject, found, advice).expect("a string takes all");
    text
}

fn write_report(text: &mut String, subject: &Subject<'_>, found: &Found, advice: &Advice) -> std::fmt::Result {
    let Subject { machine, about, others, acquisition } = subject;
    writeln!(text, "# What the operating system gives a data acquisition\n\nMeasured on {about}.")?;
    if let Some(others) = others {
        writeln!(text, "\n{others}")?;
    }
    if let Some(error) = machine.no_real_time {
        writeln!(text, "\nNothing was measured in real time: {error}; it needs CAP_SYS_NICE or ulimit -r.")?;
    }
    write_processors(text, found)?;
    write_lock_unlock(text, found)?;
    write_context_switches(text, found)?;
    write_latencies(text, machine, found)?;
    write_sizes(text, &acquisition.name(), &found.sizes)?;
    writeln!(text, "\n## Whether the conclusions of OS1998 hold here\n")?;
    writeln!(text, "| conclusion | holds | because |\n|---|---|---|")?;
    for conclusion in given::conclusions(found) {
        let holds = conclusion.holds.map_or("not told", |holds| if holds { "yes" } else { "no" });
        writeln!(text, "| {} | {holds} | {} |", conclusion.of_the_paper, conclusion.because)?;
    }
    writeln!(text, "\n{MISSING}")?;
    write_settings(text, found)?;
    writeln!(text, "\n## What suits this machine\n\n{}\n\n```toml\n{}```", advice.paragraph(), advice.fragment())
}

fn write_processors(text: &mut String, found: &Found) -> std::fmt::Result {
    writeln!(text, "\n## Table 1: processors\n")?;
    let names: Vec<&str> = BOARDS.iter().map(|board| board.name).collect();
    writeln!(text, "| | {} | here, one core |\n|---|{}", names.join(" | "), "---:|".repeat(names.len() + 1))?;
    let speeds: Vec<String> = BOARDS.iter().map(|board| format!("{:.0}", board.dhrystones_hz)).collect();
    writeln!(text, "| Dhrystones/s | {} | {:.0} |", speeds.join(" | "), found.speed.integer_hz)?;
    let none = " not given |".repeat(BOARDS.len());
    writeln!(text, "| Whetstone-like, 10⁶ operations/s |{none} {:.0} |", found.speed.floating_mflops)?;
    writeln!(
        text,
        "\nThe kernels here are our own, with the mix of operations of Dhrystone and of Whetstone: their numbers are of the same \
         kind, and not those that the programs of these names would give."
    )
}

fn write_lock_unlock(text: &mut String, found: &Found) -> std::fmt::Result {
    writeln!(text, "\n## Table 2: lock and unlock in one process [µs]\n")?;
    let loads = Load::ALL.map(|load| load.to_string());
    writeln!(text, "| platform | {} |\n|---|---:|---:|---:|", loads.join(" | "))?;
    for Board { name, lock_unlock_us, .. } in &BOARDS {
        let cells = lock_unlock_us.map(|us| us.map_or("not given".to_owned(), |us| format!("{us}")));
        writeln!(text, "| {name} | {} |", cells.join(" | "))?;
    }
    for cycle in &found.cycles {
        let cells = cycle.lock_unlock_us.map(|us| format!("{us:.4}"));
        writeln!(text, "| here, {} | {} |", cycle.name(), cells.join(" | "))?;
    }
    writeln!(
        text,
        "\nThe load computes on the same core: at the same priority (SP), or at a lower one (LP), which is nice 19 in the normal \
         class and a lower priority in real time."
    )
}

fn write_context_switches(text: &mut String, found: &Found) -> std::fmt::Result {
    writeln!(text, "\n## Table 3: context switch [µs]\n")?;
    writeln!(text, "| platform | ping-pong | context switch |\n|---|---:|---:|")?;
    for Board { name, context_switch_us, .. } in &BOARDS {
        writeln!(text, "| {name} | not given | {context_switch_us} |")?;
    }
    for cycle in &found.cycles {
        let switch =
            cycle.context_switch_us().map_or("not measurable: no more than locks".to_owned(), |us| format!("{us:.3}"));
        writeln!(text, "| here, {} | {:.3} | {switch} |", cycle.name(), cycle.ping_pong_us)?;
    }
    writeln!(
        text,
        "\nTwo processes on one core; a context switch is half of what their ping-pong takes above two locks and unlocks."
    )
}

fn write_latencies(text: &mut String, machine: &Machine, found: &Found) -> std::fmt::Result {
    writeln!(text, "\n## §2: from the signal to the program [µs]\n")?;
    let signals = found.latencies.iter().flat_map(|row| &row.beside).map(Latencies::count).min().unwrap_or_default();
    writeln!(
        text,
        "Median / 99.9 % / largest of {signals} signals or more. The paper: {KERNEL_ROUTINE_US} µs from an interrupt to a routine of the kernel, {USER_ROUTINE_US} µs to one \
         of the user, on Windows NT. A timer signals on the core of the program; others signal from core {}, and the program \
         is on core {}. Who polls leaves the core to nobody.",
        machine.there, machine.here
    )?;
    for class in machine.classes() {
        writeln!(text, "\nIn the class {class}:\n")?;
        let loads = Load::ALL.map(|load| load.to_string());
        writeln!(text, "| signal | wait | {} |\n|---|---|---:|---:|---:|", loads.join(" | "))?;
        for Row { source, wait, beside, .. } in found.latencies.iter().filter(|row| row.class == *class) {
            let cells: Vec<String> = beside.iter().map(quantiles).collect();
            writeln!(text, "| {source} | {} | {} |", wait.of(*source), cells.join(" | "))?;
        }
    }
    Ok(())
}

fn quantiles(latencies: &Latencies) -> String {
    let cell = |part| latencies.us(part).map_or("none".to_owned(), |us| format!("{us:.1}"));
    [0.5, 0.999, 1.0].map(cell).join(" / ")
}

fn write_sizes(text: &mut String, name: &str, sizes: &[Size]) -> std::fmt::Result {
    writeln!(text, "\n## §3: the whole data acquisition, `{name}`\n")?;
    writeln!(
        text,
        "| event | software triggers | bytes | processor time | timer | of software triggers |\n|---:|---:|---:|---:|---:|---:|"
    )?;
    for Size { event_bytes, software, timer } in sizes {
        let bytes = software.recorded_hz * f64::from(*event_bytes);
        let [kept, part] = match timer {
            Some(timer) => [si(timer.recorded_hz, "Hz"), format!("{:.2}", timer.recorded_hz / software.recorded_hz)],
            None => ["none is kept", "none is kept"].map(str::to_owned),
        };
        writeln!(
            text,
            "| {event_bytes} B | {} | {} | {:.1} µs | {kept} | {part} |",
            si(software.recorded_hz, "Hz"),
            si(bytes, "B/s"),
            software.cpu_us_per_event
        )?;
    }
    writeln!(
        text,
        "\nThe paper: SPIDER took {SOFTWARE_HZ} events/s by software triggers and {INTERRUPTS_HZ} by interrupts on Windows NT, \
         {SOFTWARE_LYNXOS_HZ} by software triggers on LynxOS, of a size that it does not give. The rate by a timer is the highest that was tried \
         and that level 1 kept. Here detectors push over links of their own, and make their data up: that is in the processor time."
    )
}

fn write_settings(text: &mut String, found: &Found) -> std::fmt::Result {
    writeln!(text, "\n## Ways to wait, classes and cores: events of {SETTING_EVENT_BYTES} B\n")?;
    writeln!(text, "| cores | class | idle | events/s | of each run | processor time |\n|---|---|---|---:|---:|---:|")?;
    for (setting, taken) in &found.settings {
        let Taken { recorded_hz, cpu_us_per_event, .. } = mean(taken);
        let each: Vec<String> = taken.iter().map(|taken| format!("{:.0}", taken.recorded_hz)).collect();
        // Applications in real time that spin may leave detectors no processor.
        let cpu = if recorded_hz == 0.0 { "nothing came".to_owned() } else { format!("{cpu_us_per_event:.1} µs") };
        writeln!(
            text,
            "| {} | {} | {} | {recorded_hz:.0} | {} | {cpu} |",
            setting.layout.name,
            setting.class,
            idle_name(setting.idle),
            each.join(", ")
        )?;
    }
    Ok(())
}

/// All figures; none of the paper's survives with its points, so that its numbers are lines.
pub(super) fn plots(found: &Found) -> Vec<Plot> {
    let mut plots =
        vec![tables::processors(found), lock_unlock(found), tables::context_switches(found), sizes(&found.sizes)];
    for (class, title) in [
        (Class::Normal, "From the timer to the program, normal"),
        (Class::RealTime, "From the timer to the program, real time"),
    ] {
        let rows: Vec<&Row> =
            found.latencies.iter().filter(|row| row.class == class && row.source == Source::Timer).collect();
        if let Some(row) = rows.iter().find(|row| row.wait == Wait::Block) {
            plots.push(tails(title, row));
        }
    }
    plots
}

fn lock_unlock(found: &Found) -> Plot {
    let of_paper = BOARDS.iter().map(|board| {
        let points = board.lock_unlock_us.iter().enumerate().filter_map(|(place, us)| Some((place as f64, (*us)?)));
        Curve { name: board.name.to_owned(), points: points.collect(), look: Look::Marked }
    });
    let normal = found.cycles.iter().filter(|cycle| cycle.class == Class::Normal);
    let here = normal.map(|cycle| {
        let points = cycle.lock_unlock_us.iter().enumerate().map(|(place, us)| (place as f64, *us));
        Curve { name: format!("here, {}", cycle.kind), points: points.collect(), look: Look::Marked }
    });
    Plot {
        title: "Table 2: lock and unlock",
        x: Axis { label: "", scale: Scale::Linear, low: 0.0, high: 2.0, number: load_name },
        y: Axis { label: "[µs]", scale: Scale::Logarithmic, low: 1e-3, high: 1e3, number: |us| format!("{us}") },
        curves: of_paper.chain(here).collect(),
        names: SeriesLabelPosition::UpperRight,
    }
}

fn load_name(place: f64) -> String {
    let is_load = (place - place.round()).abs() < 1e-9;
    let load = Load::ALL.get(place.round() as usize).filter(|_| is_load);
    load.map(Load::to_string).unwrap_or_default()
}

fn sizes(sizes: &[Size]) -> Plot {
    let curve = |name: &str, hz: &dyn Fn(&Size) -> Option<f64>| Curve {
        name: name.to_owned(),
        points: sizes.iter().filter_map(|size| Some((f64::from(size.event_bytes), hz(size)?))).collect(),
        look: Look::Marked,
    };
    let line = |name: &str, hz: f64| Curve {
        name: name.to_owned(),
        points: vec![(EVENT_BYTES_LOW, hz), (EVENT_BYTES_HIGH, hz)],
        look: Look::Line,
    };
    Plot {
        title: "§3: the whole data acquisition",
        x: Axis {
            label: "event",
            scale: Scale::Logarithmic,
            low: EVENT_BYTES_LOW,
            high: EVENT_BYTES_HIGH,
            number: |x| si(x, "B"),
        },
        y: Axis { label: "events", scale: Scale::Logarithmic, low: 10.0, high: 1e6, number: |y| si(y, "Hz") },
        curves: vec![
            curve("software triggers", &|size| Some(size.software.recorded_hz)),
            curve("timer", &|size| size.timer.map(|timer| timer.recorded_hz)),
            line("SPIDER, software triggers", SOFTWARE_HZ),
            line("SPIDER, LynxOS", SOFTWARE_LYNXOS_HZ),
            line("SPIDER, interrupts", INTERRUPTS_HZ),
        ],
        names: SeriesLabelPosition::LowerLeft,
    }
}

fn tails(title: &'static str, row: &Row) -> Plot {
    let here = row.beside.iter().zip(Load::ALL);
    let here =
        here.map(|(latencies, load)| Curve { name: load.to_string(), points: latencies.tail(), look: Look::Line });
    let line =
        |name: &str, us: f64| Curve { name: name.to_owned(), points: vec![(us, 1e-5), (us, 1.0)], look: Look::Line };
    let of_paper = [line("Windows NT, kernel", KERNEL_ROUTINE_US), line("Windows NT, user", USER_ROUTINE_US)];
    Plot {
        title,
        x: Axis { label: "[µs]", scale: Scale::Logarithmic, low: 0.1, high: 1e6, number: |us| format!("{us}") },
        y: Axis {
            label: "part that takes longer",
            scale: Scale::Logarithmic,
            low: 1e-5,
            high: 1.0,
            number: |part| format!("{part:.0e}"),
        },
        curves: here.chain(of_paper).collect(),
        names: SeriesLabelPosition::UpperRight,
    }
}

const EVENT_BYTES_LOW: f64 = 500.0;
const EVENT_BYTES_HIGH: f64 = 2e6;

const MISSING: &str = "Page 3 of the paper is not in the copy at hand: what LynxOS gave for interrupts and task dispatch with ioctl and select, \
                       and the rates of the RD13 system, cannot be set beside these.";

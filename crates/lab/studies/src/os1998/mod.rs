//! `weir study os1998`: what the operating system gives a data acquisition, measured on this machine beside OS1998.

mod acquisition;
mod advice;
mod given;
mod latency;
mod machine;
mod processor;
mod report;
mod semaphores;
mod tables;

use std::fs;

use partition::Control;
use terminal::Interrupts;

use super::error::StudyError;
use super::others::Others;
use super::results;
use crate::arguments::StudyArgs;
use ::semaphores::Family;
use acquisition::{Acquisition, SETTING_EVENT_BYTES, Setting, Size, Taken};
use advice::Advice;
use latency::{Row, Source, Wait};
use machine::{Class, Machine};
use processor::Speed;
use semaphores::Cycle;

pub(crate) use acquisition::idle_name;
pub(crate) use semaphores::pong_main;

/// This machine in words.
pub(super) fn about_machine() -> String {
    Machine::new().about()
}

/// Measures all.
pub(super) fn study(args: &StudyArgs) -> Result<(), StudyError> {
    let acquisition = Acquisition::new(args.config.as_ref())?;
    results::prepare(args)?;
    let machine = Machine::new();
    let about = machine.about();
    let others = Others::watch();
    let found = Found::new(&machine, &acquisition)?;
    let others = others.remark();
    let advice = Advice::new(&found.settings);
    let text = report::report(
        &report::Subject { machine: &machine, about: &about, others, acquisition: &acquisition },
        &found,
        &advice,
    );
    if let Some(directory) = &args.output {
        let path = directory.join("os1998.toml");
        fs::write(&path, advice.fragment()).map_err(|cause| StudyError::Output { path, cause })?;
    }
    results::write(args, "os1998", &text, &report::plots(&found))
}

/// What was measured.
struct Found {
    speed: Speed,
    cycles: Vec<Cycle>,
    latencies: Vec<Row>,
    sizes: Vec<Size>,
    /// In rounds, so that what else the machine does strikes all of them; after the first, of those that can be the best.
    settings: Vec<(Setting, Vec<Taken>)>,
}

impl Found {
    fn new(machine: &Machine, acquisition: &Acquisition) -> Result<Self, StudyError> {
        let (speed, cycles, latencies) = of_single_parameters(machine, acquisition)?;
        let mut sizes = Vec::new();
        for event_bytes in EVENT_BYTES {
            let size = acquisition.take_size(event_bytes)?;
            terminal::complain(&format!("events of {event_bytes} B: {:.0} Hz", size.software.recorded_hz));
            sizes.push(size);
        }
        let mut settings: Vec<_> = Setting::all(machine).into_iter().map(|setting| (setting, Vec::new())).collect();
        for round in 0..ROUNDS {
            let best_hz = settings.iter().map(|(_, taken)| advice::mean(taken).recorded_hz).fold(0.0, f64::max);
            terminal::complain(&format!(
                "settings: round {} of {ROUNDS}, events of {SETTING_EVENT_BYTES} B",
                round + 1
            ));
            for (place, (setting, taken)) in settings.iter_mut().enumerate() {
                if round == 0 || place == 0 || advice::mean(taken).recorded_hz >= IN_THE_RUNNING * best_hz {
                    taken.push(acquisition.take_as(setting)?);
                }
            }
        }
        Ok(Self { speed, cycles, latencies, sizes, settings })
    }
}

/// An interrupt ends it between two measurements: semaphores of System V would outlive the program.
fn of_single_parameters(
    machine: &Machine,
    acquisition: &Acquisition,
) -> Result<(Speed, Vec<Cycle>, Vec<Row>), StudyError> {
    let each = acquisition.each()?;
    let interrupts = Interrupts::end(Control::default()).map_err(StudyError::Signals)?;
    let goes_on = || if interrupts.any() { Err(StudyError::Interrupted) } else { Ok(()) };
    terminal::complain("processor");
    let speed =
        machine::beside(machine::Seat::new(machine.here, Class::Normal), machine::Load::None, || Speed::measure(each))?;
    let (mut cycles, mut latencies) = (Vec::new(), Vec::new());
    for class in machine.classes() {
        terminal::complain(&format!("semaphores and latencies, {class}"));
        for kind in Family::ALL {
            cycles.push(Cycle::measure(machine, kind, *class, each)?);
            goes_on()?;
        }
        for source in Source::ALL {
            for wait in Wait::ALL {
                latencies.push(Row::measure(machine, (source, wait), *class, each)?);
                goes_on()?;
            }
        }
    }
    Ok((speed, cycles, latencies))
}

/// Of built events.
const EVENT_BYTES: [u32; 5] = [1 << 10, 4 << 10, 16 << 10, 128 << 10, 1 << 20];
const ROUNDS: usize = 3;
/// Of the best rate: whoever is below this in one round is not the best in others either.
const IN_THE_RUNNING: f64 = 0.7;

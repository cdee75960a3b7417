//! The whole chain, each application a process: links that push, read-out systems, event builder, recorder [OS1998 §3].

use std::collections::BTreeMap;
use std::path::PathBuf;

use base::ids::Role;
use configuration::{Idle, Interval, Partition};
use driver::scratch::Scratch;
use partition::{Placement, Run};
use terminal::conduct;

use super::machine::{Class, Machine};
use crate::error::StudyError;

/// The configuration, and where its files go.
pub(super) struct Acquisition {
    path: PathBuf,
    text: String,
    scratch: Scratch,
}

/// What came of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) level1_hz: f64,
    pub(super) recorded_hz: f64,
    /// Of all processes.
    pub(super) cpu_us_per_event: f64,
}

/// Events of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) event_bytes: u32,
    /// A trigger as soon as there is room for its event.
    pub(super) software: Taken,
    /// The highest rate of a timer that level 1 keeps; none if it keeps none that was tried.
    pub(super) timer: Option<Taken>,
}

/// What is to be found out: how processes wait, before whom they run, and where.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    pub(super) idle: Idle,
    pub(super) class: Class,
    pub(super) layout: Layout,
}

/// Which roles run on which cores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) name: &'static str,
    /// Nothing is bound if there are none.
    pub(super) cores: BTreeMap<&'static str, Vec<usize>>,
}

impl Acquisition {
    /// Of this file, or of the one that is built in.
    pub(super) fn new(path: Option<&PathBuf>) -> Result<Self, StudyError> {
        let (path, text) = match path {
            None => (PathBuf::from("acquisition.toml"), SCENARIO.to_owned()),
            Some(path) => {
                let unread =
                    |error: std::io::Error| StudyError::Scenario { path: path.clone(), cause: error.to_string() };
                (path.clone(), std::fs::read_to_string(path).map_err(unread)?)
            }
        };
        let acquisition = Self { path, text, scratch: Scratch::new().map_err(StudyError::Scratch)? };
        if acquisition.partition(&[])?.source.is_empty() {
            let cause = "expected [[source]], each with play = \"emulator\": links in front of the read-out".to_owned();
            return Err(StudyError::Scenario { path: acquisition.path, cause });
        }
        Ok(acquisition)
    }

    pub(super) fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// How long each run lasts; measurements of a single parameter last as long.
    pub(super) fn each(&self) -> Result<std::time::Duration, StudyError> {
        let lasts = self.partition(&[])?.run.duration;
        let cause = || "expected run.duration, which says how long each measurement lasts".to_owned();
        lasts.map(Interval::duration).ok_or_else(|| StudyError::Scenario { path: self.path.clone(), cause: cause() })
    }

    fn files(&self) -> PathBuf {
        self.scratch.path().join("out")
    }

    fn partition(&self, keys: &[String]) -> Result<Partition, StudyError> {
        let directory = serde_json::Value::from(self.files().display().to_string());
        let directory = format!("output.directory={directory}");
        Ok(Partition::parse(&self.name(), &self.text, &[keys, &[directory]].concat())?)
    }

    /// Takes data, and removes the files.
    fn take(&self, keys: &[String]) -> Result<Taken, StudyError> {
        let outcome = conduct(Run::new(self.partition(keys)?).place(Placement::processes()))?;
        std::fs::remove_dir_all(self.files()).map_err(StudyError::Scratch)?;
        if outcome.interrupted {
            return Err(StudyError::Interrupted);
        }
        let account = &outcome.account;
        let reasons = outcome.ending.reasons.iter().chain(&account.differences).cloned();
        if account.residual > 0 || !outcome.ending.reasons.is_empty() {
            let reason = format!(
                "{} events recorded, residual {}: {}",
                account.recorded,
                account.residual,
                reasons.collect::<Vec<_>>().join("; ")
            );
            return Err(StudyError::Unsound { sample: keys.join(" "), reason });
        }
        let seconds = outcome.duration.as_secs_f64();
        let recorded = account.recorded as f64;
        Ok(Taken {
            level1_hz: account.level1 as f64 / seconds,
            recorded_hz: recorded / seconds,
            cpu_us_per_event: outcome.cpu.as_secs_f64() * 1e6 / recorded.max(1.0),
        })
    }

    /// Takes events of one size by both kinds of triggers.
    pub(super) fn take_size(&self, event_bytes: u32) -> Result<Size, StudyError> {
        let sizes = self.keys_of_size(event_bytes)?;
        let software = self.take(&sizes)?;
        if software.recorded_hz == 0.0 {
            let reason = "nothing was recorded: make run.duration longer".to_owned();
            return Err(StudyError::Unsound { sample: sizes.join(" "), reason });
        }
        let mut timer = None;
        for percent in PERCENT_OF_SOFTWARE {
            let rate_hz = (software.recorded_hz * f64::from(percent) / 100.0).max(1.0);
            let taken = self.take(&[&sizes[..], &[format!("level1.rate=\"{rate_hz:.3} Hz\"")]].concat())?;
            if taken.level1_hz >= KEPT * rate_hz {
                timer = Some(taken);
                break;
            }
        }
        Ok(Size { event_bytes, software, timer })
    }

    /// Takes small events with software triggers.
    pub(super) fn take_as(&self, setting: &Setting) -> Result<Taken, StudyError> {
        let mut keys = self.keys_of_size(SETTING_EVENT_BYTES)?;
        keys.extend(setting.keys());
        self.take(&keys)
    }

    /// What makes built events so long, headers included.
    fn keys_of_size(&self, event_bytes: u32) -> Result<Vec<String>, StudyError> {
        let links = self.partition(&[])?.source.len();
        let data = (event_bytes as usize / links).saturating_sub(HEADER_BYTES).max(4);
        let room = (data as u64 + configuration::FRAGMENT_OVERHEAD_BYTES).next_multiple_of(4096);
        let sizes = (0..links).flat_map(|link| {
            let size = |key: &str| format!("source.{link}.{key}=\"{data} B\"");
            [size("size_max"), size("emulated.size")]
        });
        Ok(sizes.chain([format!("sfi.max_event_size=\"{} B\"", (links as u64 + 1) * room)]).collect())
    }
}

impl Setting {
    /// All that can be had on a machine, the simplest first.
    pub(super) fn all(machine: &Machine) -> Vec<Self> {
        let mut all = Vec::new();
        for layout in Layout::all(&machine.cores) {
            for class in machine.classes() {
                for idle in [Idle::Park, Idle::Yield, Idle::Spin] {
                    all.push(Self { idle, class: *class, layout: layout.clone() });
                }
            }
        }
        all
    }

    /// The part of a configuration that says so.
    pub(super) fn fragment(&self) -> String {
        let [idle, scheduling, cores] = self.values();
        format!("[transport]\nidle = {idle}\n\n[processes]\nscheduling = {scheduling}\ncores = {cores}\n")
    }

    fn keys(&self) -> [String; 3] {
        let [idle, scheduling, cores] = self.values();
        [
            format!("transport.idle={idle}"),
            format!("processes.scheduling={scheduling}"),
            format!("processes.cores={cores}"),
        ]
    }

    fn values(&self) -> [String; 3] {
        let scheduling = match self.class {
            Class::Normal => "normal",
            Class::RealTime => "real-time",
        };
        let lists = self.layout.cores.iter().map(|(role, cores)| format!("{role} = {cores:?}"));
        let lists = lists.collect::<Vec<_>>().join(", ");
        let lists = if lists.is_empty() { "{}".to_owned() } else { format!("{{ {lists} }}") };
        [format!("\"{}\"", idle_name(self.idle)), format!("\"{scheduling}\""), lists]
    }
}

impl Layout {
    fn all(cores: &[usize]) -> Vec<Self> {
        let kernel = Self { name: "left to the kernel", cores: BTreeMap::new() };
        if cores.len() < 2 {
            return vec![kernel];
        }
        let (reading, building) = cores.split_at(cores.len() / 2);
        let bound = |name, of: &dyn Fn(Role) -> Vec<usize>| Self {
            name,
            cores: ROLES.into_iter().map(|role| (role.stem(), of(role))).collect(),
        };
        let reads = |role| matches!(role, Role::Level1 | Role::Ros);
        vec![
            kernel,
            bound("read-out apart from building", &|role| (if reads(role) { reading } else { building }).to_vec()),
            bound("all on one core", &|_| vec![cores[cores.len() - 1]]),
        ]
    }
}

pub(crate) fn idle_name(idle: Idle) -> &'static str {
    match idle {
        Idle::Park => "park",
        Idle::Yield => "yield",
        Idle::Spin => "spin",
    }
}

/// Of events by which settings are compared.
pub(super) const SETTING_EVENT_BYTES: u32 = 4096;
const ROLES: [Role; 6] = [Role::Level1, Role::Ros, Role::Dfm, Role::Sfi, Role::Efd, Role::Sfo];
const PERCENT_OF_SOFTWARE: [u32; 4] = [100, 80, 60, 40];
/// A rate is kept if level 1 misses no more than this leaves of it.
const KEPT: f64 = 0.98;
/// Of a fragment, with its share of those of the event.
const HEADER_BYTES: usize = 84;

const SCENARIO: &str = include_str!("acquisition.toml");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_and_size_is_a_right_configuration() {
        let acquisition = Acquisition::new(None).unwrap();
        let machine = Machine { here: 0, there: 3, cores: vec![0, 1, 2, 3], no_real_time: None };
        let settings = Setting::all(&machine);
        assert_eq!(settings.len(), 3 * 2 * 3);
        for setting in &settings {
            let partition = acquisition.partition(&setting.keys()).unwrap();
            assert_eq!(partition.transport.idle, setting.idle);
            let core = partition.processes.cores.of(Role::Sfi, 1);
            assert_eq!(core.is_none(), setting.layout.cores.is_empty());
        }
        for event_bytes in [1, 512, 1 << 20] {
            acquisition.partition(&acquisition.keys_of_size(event_bytes).unwrap()).unwrap();
        }
    }

    #[test]
    fn a_fragment_is_a_part_of_a_configuration() {
        let acquisition = Acquisition::new(None).unwrap();
        let machine = Machine { here: 0, there: 1, cores: vec![0, 1], no_real_time: None };
        for setting in Setting::all(&machine) {
            let text = format!("{}\npartition.name = \"p\"\nros.count = 1\nsfi.count = 1\n", setting.keys().join("\n"));
            let text = text.lines().map(|line| line.replacen('=', " = ", 1)).collect::<Vec<_>>().join("\n");
            let expected = Partition::parse("keys", &text, &[]).unwrap();
            let parts = format!("partition.name = \"p\"\nros.count = 1\nsfi.count = 1\n{}", setting.fragment());
            let found = Partition::parse("fragment", &parts, &[]).unwrap();
            assert_eq!(found, expected);
        }
        assert!(acquisition.each().unwrap() > std::time::Duration::ZERO);
    }

    #[test]
    fn with_one_core_nothing_is_bound() {
        let machine = Machine { here: 0, there: 0, cores: vec![0], no_real_time: None };
        assert!(Setting::all(&machine).iter().all(|setting| setting.layout.cores.is_empty()));
    }
}

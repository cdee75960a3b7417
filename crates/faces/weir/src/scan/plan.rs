//! The file of a scan: which keys take which values, and so which points there are.

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use catalogue::Quality;
use configuration::Interval;
use serde::Deserialize;
use toml::{Table, Value};

/// What a scan does, as its file says.
#[derive(Debug)]
pub(super) struct Plan {
    /// Where the file lies.
    pub folder: PathBuf,
    /// The configuration whose keys change; its path starts from the folder of the plan.
    pub configuration: PathBuf,
    /// Whether every application has a process of its own.
    pub processes: bool,
    /// How often a point is tried until a run is of `accept` or better.
    pub tries: u32,
    pub accept: Quality,
    /// Changes of the configuration at all points.
    pub set: Vec<String>,
    pub prepare: Option<Prepare>,
    /// Tells plans apart whose points are not the same, whatever their axes say.
    pub common: String,
    pub points: Vec<Point>,
}

/// A command that makes a point ready: it sets a voltage, moves a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Prepare {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How long it may take.
    #[serde(default = "prepare_timeout")]
    pub timeout: Interval,
}

/// One point: a value for each axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Point {
    /// From 1.
    pub number: usize,
    pub settings: Vec<Setting>,
}

/// A value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Setting {
    pub name: String,
    pub value: Value,
    /// Whether the name is a key of the configuration; all else is for the command that prepares.
    pub is_key: bool,
}

/// Why a file describes no scan.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadPlan {
    #[error("{0}: cannot be read: {1}")]
    Unread(PathBuf, io::Error),
    #[error("{0}: expected at most {LONGEST} bytes")]
    Long(PathBuf),
    #[error("{0}: {1}")]
    Text(PathBuf, Box<toml::de::Error>),
    #[error("{0}: {1}")]
    Wrong(PathBuf, String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    configuration: PathBuf,
    #[serde(default)]
    processes: bool,
    #[serde(default = "one")]
    tries: u32,
    #[serde(default = "good")]
    accept: Quality,
    #[serde(default)]
    combine: Combine,
    #[serde(default)]
    set: Table,
    prepare: Option<Prepare>,
    axis: Vec<Axis>,
}

/// How axes make points.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Combine {
    /// Each value with each; the last axis changes fastest.
    #[default]
    Grid,
    /// The first values of all axes, then the second ones.
    Together,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Axis {
    key: Option<String>,
    name: Option<String>,
    values: Option<Vec<Value>>,
    from: Option<Value>,
    to: Option<Value>,
    steps: Option<usize>,
    spacing: Option<Spacing>,
    #[serde(default)]
    unit: String,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Spacing {
    #[default]
    Linear,
    Geometric,
}

impl Plan {
    /// Reads the plan of a scan.
    pub(super) fn load(path: &Path) -> Result<Self, BadPlan> {
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
        let length = read.map_err(|error| BadPlan::Unread(path.into(), error))?;
        if length as u64 > LONGEST {
            return Err(BadPlan::Long(path.into()));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let text: Text = toml::from_str(&text).map_err(|error| BadPlan::Text(path.into(), error.into()))?;
        let mut plan = Self::of(text, folder).map_err(|wrong| BadPlan::Wrong(path.into(), wrong))?;
        plan.common = plan.fingerprint();
        Ok(plan)
    }

    /// Of all but the axes. Comments of the configuration do not matter; one that cannot be read is found when it is judged.
    fn fingerprint(&self) -> String {
        let text = fs::read_to_string(&self.configuration).unwrap_or_default();
        let configuration = text.parse::<Table>().unwrap_or_default();
        let prepare = self.prepare.as_ref().map(|prepare| &prepare.command);
        let all = format!("{configuration}\n{:?}\n{}\n{prepare:?}", self.set, self.processes);
        blake3::hash(all.as_bytes()).to_hex()[..16].to_owned()
    }

    fn of(text: Text, folder: &Path) -> Result<Self, String> {
        let prepare = text.prepare;
        if prepare.as_ref().is_some_and(|prepare| prepare.command.is_empty()) {
            return Err("prepare.command: expected a program and its arguments, found nothing".into());
        }
        if prepare.as_ref().is_some_and(|prepare| prepare.timeout.duration().is_zero()) {
            return Err("prepare.timeout: expected a time above 0".into());
        }
        if text.tries == 0 {
            return Err("tries: expected at least 1, found 0".into());
        }
        let axes = text.axis.into_iter().enumerate();
        let axes = axes.map(|(index, axis)| axis.settings().map_err(|wrong| format!("axis {}: {wrong}", index + 1)));
        let axes = axes.collect::<Result<Vec<_>, _>>()?;
        if axes.is_empty() {
            return Err("axis: expected at least one".into());
        }
        distinct(&axes)?;
        if let Some(axis) = axes.iter().flatten().find(|setting| !setting.is_key && prepare.is_none()) {
            return Err(format!(
                "axis {}: nobody would set it: expected prepare.command, or key instead of name",
                axis.name
            ));
        }
        let points = match text.combine {
            Combine::Grid => grid(&axes)?,
            Combine::Together => together(&axes)?,
        };
        let set = leaves("", &Value::Table(text.set)).iter().map(|(key, value)| format!("{key}={value}")).collect();
        Ok(Self {
            folder: folder.to_owned(),
            configuration: folder.join(text.configuration),
            processes: text.processes,
            tries: text.tries,
            accept: text.accept,
            set,
            prepare,
            common: String::new(),
            points: points.into_iter().zip(1..).map(|(settings, number)| Point { number, settings }).collect(),
        })
    }
}

impl Axis {
    /// Its name with each of its values.
    fn settings(self) -> Result<Vec<Setting>, String> {
        let (name, is_key) = match (&self.key, &self.name) {
            (Some(key), None) => (key.clone(), true),
            (None, Some(name)) => (name.clone(), false),
            _ => return Err("expected either key, a key of the configuration, or name".into()),
        };
        let values = match (&self.values, &self.from, &self.to, self.steps) {
            (Some(values), None, None, None) if self.spacing.is_none() => values.clone(),
            (None, Some(from), Some(to), Some(steps)) => self.steps(from, to, steps)?,
            _ => return Err(format!("{name}: expected either values, or from, to and steps, perhaps with spacing")),
        };
        if values.is_empty() {
            return Err(format!("{name}: expected at least one value"));
        }
        let suffix = |value: Value| {
            if self.unit.is_empty() { value } else { Value::String(format!("{} {}", bare(&value), self.unit)) }
        };
        Ok(values.into_iter().map(|value| Setting { name: name.clone(), value: suffix(value), is_key }).collect())
    }

    /// From the one value to the other, both included. Between whole numbers all values are whole.
    fn steps(&self, from: &Value, to: &Value, steps: usize) -> Result<Vec<Value>, String> {
        let number = |value: &Value| match value {
            Value::Integer(value) => Some(*value as f64),
            Value::Float(value) if value.is_finite() => Some(*value),
            _ => None,
        };
        let (Some(first), Some(last)) = (number(from), number(to)) else {
            return Err("from and to: expected numbers; a unit stands in `unit`".into());
        };
        if !(2..=MOST_POINTS).contains(&steps) {
            return Err(format!("steps: expected from 2 to {MOST_POINTS}, found {steps}"));
        }
        let at = |step: usize| {
            let part = step as f64 / (steps - 1) as f64;
            match self.spacing.unwrap_or_default() {
                Spacing::Linear => first + (last - first) * part,
                Spacing::Geometric => first * (last / first).powf(part),
            }
        };
        if matches!(self.spacing, Some(Spacing::Geometric)) && (first * last <= 0.0) {
            return Err("from and to: expected numbers of one sign, not 0, for geometric steps".into());
        }
        let is_whole = matches!((from, to), (Value::Integer(_), Value::Integer(_)));
        // What the powers leave of a last digit belongs to nobody's setting.
        let tidy = |value: f64| format!("{value:.12e}").parse().unwrap_or(value);
        let value =
            |value: f64| if is_whole { Value::Integer(value.round() as i64) } else { Value::Float(tidy(value)) };
        let values: Vec<Value> = (0..steps).map(|step| value(at(step))).collect();
        match values.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("steps: {steps} steps have {} twice: expected fewer", pair[0])),
            None => Ok(values),
        }
    }
}

impl Point {
    /// Its changes of the configuration, as `--set` takes them.
    pub(super) fn overrides(&self) -> impl Iterator<Item = String> {
        self.settings.iter().filter(|setting| setting.is_key).map(|s| format!("{}={}", s.name, s.value))
    }
}

impl Setting {
    /// Its value as text, without quotes.
    pub(super) fn bare(&self) -> String {
        bare(&self.value)
    }

    /// The variable of the environment that says it: `sfi.count` is `WEIR_SFI_COUNT`.
    pub(super) fn variable(&self) -> String {
        let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
        format!("WEIR_{}", self.name.chars().map(letter).collect::<String>())
    }
}

impl Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings: Vec<String> = self.settings.iter().map(|s| format!("{} = {}", s.name, s.bare())).collect();
        f.pad(&settings.join(", "))
    }
}

fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// A command that prepares must tell them apart too.
fn distinct(axes: &[Vec<Setting>]) -> Result<(), String> {
    let mut names: BTreeSet<String> = ["WEIR_POINT", "WEIR_POINTS"].map(str::to_owned).into();
    let again = axes.iter().filter_map(|axis| axis.first()).find(|setting| !names.insert(setting.variable()));
    let wrong = |of: &Setting| Err(format!("axis {}: another value has its variable {}", of.name, of.variable()));
    again.map_or(Ok(()), wrong)
}

fn grid(axes: &[Vec<Setting>]) -> Result<Vec<Vec<Setting>>, String> {
    let number = axes.iter().try_fold(1_usize, |number, axis| number.checked_mul(axis.len()));
    if number.is_none_or(|number| number > MOST_POINTS) {
        return Err(format!("axes: expected at most {MOST_POINTS} points"));
    }
    Ok(axes.iter().fold(vec![Vec::new()], |points, axis| {
        let with =
            |point: &Vec<Setting>, setting: &Setting| [point.as_slice(), core::slice::from_ref(setting)].concat();
        points.iter().flat_map(|point| axis.iter().map(move |setting| with(point, setting))).collect()
    }))
}

fn together(axes: &[Vec<Setting>]) -> Result<Vec<Vec<Setting>>, String> {
    let length = axes.first().map_or(0, Vec::len);
    if let Some(axis) = axes.iter().find(|axis| axis.len() != length) {
        let (name, found) = (&axis[0].name, axis.len());
        return Err(format!("axis {name}: expected {length} values as on the first axis, found {found}"));
    }
    Ok((0..length).map(|step| axes.iter().map(|axis| axis[step].clone()).collect()).collect())
}

/// The keys of a table with those of tables in it, and their values.
fn leaves(name: &str, value: &Value) -> Vec<(String, Value)> {
    let Value::Table(table) = value else { return vec![(name.to_owned(), value.clone())] };
    let named = |key: &String| if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
    table.iter().flat_map(|(key, value)| leaves(&named(key), value)).collect()
}

fn one() -> u32 {
    1
}

fn good() -> Quality {
    Quality::Good
}

fn prepare_timeout() -> Interval {
    Interval::from_ms(60_000)
}

/// A file of a scan is not longer, in bytes.
const LONGEST: u64 = 1 << 20;

/// A scan of more points would take months.
const MOST_POINTS: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Result<Plan, String> {
        let text: Text = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        Plan::of(text, Path::new("scans"))
    }

    fn points(text: &str) -> Vec<String> {
        let plan = plan(&format!("configuration = \"p.toml\"\n{text}")).unwrap();
        assert_eq!(plan.configuration, Path::new("scans/p.toml"));
        plan.points.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn axes_make_a_grid_whose_last_axis_changes_fastest_or_go_together() {
        let axes =
            "[[axis]]\nkey = \"sfi.count\"\nvalues = [1, 2]\n[[axis]]\nkey = \"run.type\"\nvalues = [\"a\", \"b\"]\n";
        let grid = ["1, run.type = a", "1, run.type = b", "2, run.type = a", "2, run.type = b"];
        assert_eq!(points(axes), grid.map(|rest| format!("sfi.count = {rest}")));
        let together = ["sfi.count = 1, run.type = a", "sfi.count = 2, run.type = b"];
        assert_eq!(points(&format!("combine = \"together\"\n{axes}")), together);
    }

    #[test]
    fn steps_have_both_ends_and_stay_whole_between_whole_numbers() {
        let axis = |rest: &str| points(&format!("[[axis]]\nkey = \"k\"\n{rest}"));
        assert_eq!(axis("from = 1\nto = 8\nsteps = 3"), ["k = 1", "k = 5", "k = 8"]);
        assert_eq!(axis("from = 1.0\nto = 2.0\nsteps = 3"), ["k = 1.0", "k = 1.5", "k = 2.0"]);
        let geometric = axis("from = 1\nto = 1000\nsteps = 4\nspacing = \"geometric\"\nunit = \"kHz\"");
        assert_eq!(geometric, ["k = 1 kHz", "k = 10 kHz", "k = 100 kHz", "k = 1000 kHz"]);
        assert_eq!(axis("from = 0.1\nto = 0.3\nsteps = 3"), ["k = 0.1", "k = 0.2", "k = 0.3"]);
        assert_eq!(axis("from = -1\nto = -4\nsteps = 3\nspacing = \"geometric\""), ["k = -1", "k = -2", "k = -4"]);
    }

    #[test]
    fn changes_are_those_that_the_command_line_takes() {
        let text = "configuration = \"p.toml\"\nset = { run.events = 5, sfo = { stream = \"a\" } }\n\
                    [[axis]]\nkey = \"level1.rate\"\nvalues = [\"1 kHz\"]\n[[axis]]\nname = \"voltage\"\nvalues = [7]\n\
                    [prepare]\ncommand = [\"true\"]";
        let plan = plan(text).unwrap();
        assert_eq!(plan.set, ["run.events=5", "sfo.stream=\"a\""]);
        assert_eq!(plan.points[0].overrides().collect::<Vec<_>>(), ["level1.rate=\"1 kHz\""]);
    }

    #[test]
    fn the_plan_of_the_document_has_the_points_that_it_says() {
        let (_, rest) = include_str!("../../../../../docs/scans.md").split_once("```toml scan\n").unwrap();
        let plan = plan(rest.split("```").next().unwrap()).unwrap();
        assert_eq!(plan.points.len(), 12);
        assert_eq!(plan.points[11].to_string(), "sfi.count = 4, voltage = 1300");
        assert_eq!(plan.points[11].settings[1].variable(), "WEIR_VOLTAGE");
    }

    #[test]
    fn a_wrong_plan_is_named() {
        let axis = |rest: &str| format!("[[axis]]\n{rest}");
        let wrong = [
            ("".to_owned(), "missing field `axis`"),
            ("axis = []\nretries = 1".to_owned(), "unknown field `retries`"),
            ("tries = 0\naxis = []".to_owned(), "tries: expected at least 1"),
            ("axis = []\n[prepare]\ncommand = []".to_owned(), "prepare.command: expected a program"),
            (axis("values = [1]"), "axis 1: expected either key"),
            (axis("key = \"a\"\nname = \"a\"\nvalues = [1]"), "axis 1: expected either key"),
            (axis("key = \"a\"\nvalues = []"), "axis 1: a: expected at least one value"),
            (axis("key = \"a\"\nvalues = [1]\nsteps = 2"), "axis 1: a: expected either values, or from"),
            (axis("key = \"a\"\nfrom = \"1 V\"\nto = 2\nsteps = 2"), "axis 1: from and to: expected numbers"),
            (axis("key = \"a\"\nfrom = nan\nto = 2\nsteps = 2"), "axis 1: from and to: expected numbers"),
            (axis("key = \"a\"\nfrom = 1\nto = 2\nsteps = 1"), "axis 1: steps: expected from 2"),
            (axis("key = \"a\"\nfrom = 1\nto = 2\nsteps = 3"), "axis 1: steps: 3 steps have 2 twice"),
            (
                axis("key = \"a\"\nfrom = 0\nto = 2\nsteps = 3\nspacing = \"geometric\""),
                "axis 1: from and to: expected numbers of one sign",
            ),
            (axis("name = \"a\"\nvalues = [1]"), "axis a: nobody would set it"),
            (axis("name = \"points\"\nvalues = [1]"), "axis points: another value has its variable WEIR_POINTS"),
            (axis("key = \"a\"\nvalues = [1]\nspacing = \"linear\""), "axis 1: a: expected either values, or from"),
            ("axis = []\n[prepare]\ncommand = [\"true\"]\ntimeout = \"0 s\"".to_owned(), "prepare.timeout: expected"),
            ("axis = []".to_owned(), "axis: expected at least one"),
            (
                axis("key = \"a.b\"\nvalues = [1]\n[[axis]]\nkey = \"a_b\"\nvalues = [1]"),
                "axis a_b: another value has its variable WEIR_A_B",
            ),
            (
                axis(
                    "key = \"a\"\nfrom = 1\nto = 1000\nsteps = 1000\n[[axis]]\nkey = \"b\"\nfrom = 1\nto = 1000\nsteps = 1000",
                ),
                "axes: expected at most",
            ),
            (
                format!(
                    "combine = \"together\"\n{}",
                    axis("key = \"a\"\nvalues = [1]\n[[axis]]\nkey = \"b\"\nvalues = [1, 2]")
                ),
                "axis b: expected 1 values",
            ),
        ];
        for (text, expected) in wrong {
            let error = plan(&format!("configuration = \"p.toml\"\n{text}")).map(|plan| plan.points).unwrap_err();
            assert!(error.contains(expected), "{text}\n{error}");
        }
    }
}

//! A whole configuration: reading, writing, and the list of applications that it asks for.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use dataflow::ids::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::check;
use crate::problem::{ConfigurationError, Place, Problem};
use crate::source::Node;
use crate::tables::{
    Dfm, DfmInput, Ef, FragmentKind, Identity, Input, L2pu, L2sv, Level1, Level1Source, Output, Processes, Ros,
    RosInput, Run, Sfi, Sfo, Transport,
};
use crate::typing::Typed;

/// The configuration of a partition.
///
/// [`Partition::load`] and [`Partition::parse`] return only what passed all checks; a value that is made or changed by
/// hand did not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Partition {
    /// What this slice of the system is called. Required.
    pub partition: Identity,
    /// The run's number, limits and kind.
    pub run: Run,
    /// The files that a sample or a replay reads.
    pub input: Input,
    /// The source of level-1 triggers. Without it the DFM triggers itself.
    pub level1: Option<Level1>,
    /// The level-2 supervisors. Without them every level-1 event is accepted; they need `[level1]` and `[l2pu]`.
    pub l2sv: Option<L2sv>,
    /// The level-2 processing units; they need `[l2sv]`.
    pub l2pu: Option<L2pu>,
    /// The read-out systems and their read-out buffers (ROBs).
    pub ros: Ros,
    /// The dataflow manager, which assigns events to event builders and clears the read-out systems.
    pub dfm: Dfm,
    /// The event builders. Required.
    pub sfi: Sfi,
    /// The event filter. Without it every built event is accepted.
    pub ef: Option<Ef>,
    /// The recorders. Without them events are dropped at the end of the chain as if recorded.
    pub sfo: Option<Sfo>,
    /// Where files go.
    pub output: Output,
    /// How applications talk to each other.
    pub transport: Transport,
    /// Rules for the applications as processes.
    pub processes: Processes,
}

/// One application of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Application {
    /// Its name, such as `sfi-1`; counted from 1.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// Its place among those of its role, from 0.
    pub index: usize,
}

impl Partition {
    /// Reads the configuration file at `path` and applies overrides of the form `key=value`.
    ///
    /// Relative `input.files` become absolute: those of the file start from its folder, those of an override from the
    /// working directory.
    ///
    /// # Errors
    ///
    /// All that is wrong with the file or the overrides.
    pub fn load(path: impl AsRef<Path>, overrides: &[String]) -> Result<Self, ConfigurationError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let problem = |message: String| ConfigurationError {
            problems: vec![Problem { place: Place::File { name: name.clone() }, key: String::new(), message }],
        };
        let text = read(path).map_err(problem)?;
        let base = |folder: &Path| {
            std::path::absolute(folder).map_err(|error| problem(format!("cannot find the working directory: {error}")))
        };
        let file = base(path)?;
        let bases =
            Bases { file: file.parent().map(Path::to_owned).unwrap_or_default(), overrides: base(Path::new("."))? };
        build(&name, &text, overrides, Some(&bases))
    }

    /// Reads the configuration `text`, which errors call `name`, and applies overrides of the form `key=value`.
    ///
    /// Paths stay as they are.
    ///
    /// # Errors
    ///
    /// All that is wrong with the text or the overrides.
    pub fn parse(name: &str, text: &str, overrides: &[String]) -> Result<Self, ConfigurationError> {
        build(name, text, overrides, None)
    }

    /// The configuration as a TOML text with all defaults written out; [`Partition::parse`] makes the same of it.
    ///
    /// It holds the secret `partition.key`; see [`Partition::without_secrets`].
    ///
    /// # Panics
    ///
    /// Never: all that a partition can hold is TOML.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("tables of numbers, strings and lists are TOML")
    }

    /// The same without what must not be shown, for records that others may read.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        let mut open = self.clone();
        open.partition.key = None;
        open
    }

    /// The event filter's settings: those of `[ef]`, else one EFD that passes everything on to the recorders; `None` if
    /// the chain ends with the event builders.
    pub fn event_filter(&self) -> Option<Ef> {
        match (&self.ef, &self.sfo) {
            (Some(ef), _) => Some(ef.clone()),
            (None, Some(_)) => Some(Ef::default()),
            (None, None) => None,
        }
    }

    /// All applications, in the order in which data move.
    pub fn applications(&self) -> Vec<Application> {
        let level2 = self.l2sv.is_some();
        let counts = [
            (Role::Level1, u32::from(self.level1.is_some())),
            (Role::L2sv, self.l2sv.as_ref().map_or(0, |l2sv| l2sv.count)),
            (Role::L2pu, self.l2pu.as_ref().map_or(0, |l2pu| l2pu.count)),
            (Role::Pros, u32::from(level2)),
            (Role::Ros, self.ros.count),
            (Role::Dfm, 1),
            (Role::Sfi, self.sfi.count),
            (Role::Efd, self.event_filter().map_or(0, |ef| ef.count)),
            (Role::Sfo, self.sfo.as_ref().map_or(0, |sfo| sfo.count)),
        ];
        counts
            .into_iter()
            .flat_map(|(role, count)| (0..count as usize).map(move |index| Application::new(role, index)))
            .collect()
    }

    /// Gives the keys that are absent and have no fixed default the value that the others imply.
    fn resolve(&mut self, root: &Node) {
        if root.get("ros.input").is_none() {
            self.ros.input = match self.level1.as_ref().map(|level1| level1.source) {
                Some(Level1Source::Sample) => RosInput::Sample,
                Some(Level1Source::Replay) => RosInput::Replay,
                Some(Level1Source::Emulator) | None => RosInput::Emulator,
            };
        }
        if root.get("dfm.input").is_none() {
            self.dfm.input = match (&self.l2sv, &self.level1) {
                (Some(_), _) => DfmInput::Level2,
                (None, Some(_)) => DfmInput::Level1,
                (None, None) => DfmInput::SelfTrigger,
            };
        }
        let fragment = &mut self.ros.fragment;
        if fragment.kind == FragmentKind::Fixed && fragment.size.is_none() {
            fragment.size = fragment.distribution().map(|fixed| fixed.size_max());
        }
    }
}

impl Application {
    fn new(role: Role, index: usize) -> Self {
        Self { name: format!("{role}-{}", index + 1), role, index }
    }
}

/// Where relative paths start.
struct Bases {
    file: PathBuf,
    overrides: PathBuf,
}

fn build(name: &str, text: &str, overrides: &[String], bases: Option<&Bases>) -> Result<Partition, ConfigurationError> {
    let mut problems = Vec::new();
    let parsed = Node::parse(name, text);
    let is_toml = parsed.is_ok();
    let mut root = parsed.unwrap_or_else(|syntax| {
        problems = syntax;
        Node::empty(name)
    });
    problems.extend(overrides.iter().filter_map(|text| root.set(text).err()));
    let Typed { value: mut partition, problems: of_values, bad } = Typed::<Partition>::new(&root);
    problems.extend(of_values);
    partition.resolve(&root);
    if is_toml {
        problems.extend(check(&partition, &root, &bad));
    }
    if let Some(bases) = bases {
        resolve_files(&mut partition.input.files, &root, bases, &mut problems);
    }
    if problems.is_empty() {
        return Ok(partition);
    }
    problems.sort_by(|a, b| (&a.place, &a.key).cmp(&(&b.place, &b.key)));
    Err(ConfigurationError { problems })
}

fn resolve_files(files: &mut [String], root: &Node, bases: &Bases, problems: &mut Vec<Problem>) {
    let Some(node) = root.get("input.files") else {
        return;
    };
    let base = match &node.place {
        Place::Override { .. } => &bases.overrides,
        Place::File { .. } | Place::At { .. } => &bases.file,
    };
    for file in files {
        let Some(path) = base.join(&*file).to_str().map(str::to_owned) else {
            problems.push(Problem {
                place: node.place.clone(),
                key: "input.files".to_owned(),
                message: format!("the folder {} is not UTF-8, which TOML needs", base.display()),
            });
            return;
        };
        *file = path;
    }
}

fn read(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let mut file = File::open(path).map_err(|error| format!("cannot open: {error}"))?;
    let read = Read::by_ref(&mut file).take(FILE_SIZE_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| format!("cannot read: {error}"))?;
    if text.len() as u64 > FILE_SIZE_MAX {
        return Err(format!("larger than {FILE_SIZE_MAX} bytes, so not a configuration file"));
    }
    Ok(text)
}

/// Bounds what is read when somebody names a data file by mistake.
const FILE_SIZE_MAX: u64 = 1 << 20;

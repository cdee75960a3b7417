//! A whole configuration: reading, writing, and the list of applications that it asks for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use base::ids::Role;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{check, check_files};
use crate::places::Places;
use crate::problem::{ConfigurationError, Place, Problem};
use crate::ranges::SLOTS_MAX;
use crate::source::{Content, Node};
use crate::tables::{
    BuildingMode, Dfm, DfmInput, Ef, FragmentKind, Identity, Input, L2pu, L2sv, Level1, Level1Source, Menu, Output,
    Processes, Pt, Push, Ros, RosInput, Run, Sfi, Sfo, Simulation, Strategy, Stream, Transport,
};
use crate::text::read;
use crate::typing::Typed;
use crate::units::Size;

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
    /// What level 2 and the event filter select.
    pub menu: Option<Menu>,
    /// The read-out systems and their read-out buffers (ROBs).
    pub ros: Ros,
    /// The dataflow manager, which assigns events to event builders and clears the read-out systems.
    pub dfm: Dfm,
    /// The event builders. Required.
    pub sfi: Sfi,
    /// The event filter. Without it every built event is accepted.
    pub ef: Option<Ef>,
    /// The processing tasks of the event filter; they need `[ef]`. Without them `ef.policy` decides.
    pub pt: Option<Pt>,
    /// The recorders. Without them events are dropped at the end of the chain as if recorded.
    pub sfo: Option<Sfo>,
    /// The streams that accepted events are recorded in, at most 32. Without them all go to `sfo.stream`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stream: Vec<Stream>,
    /// Where files go.
    pub output: Output,
    /// How applications talk to each other.
    pub transport: Transport,
    /// Rules for the applications as processes.
    pub processes: Processes,
    /// What `weir sim` needs to know of hosts and networks.
    pub simulation: Option<Simulation>,
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
    /// working directory. In all paths a leading `~/` stands for the home folder.
    ///
    /// # Errors
    ///
    /// All that is wrong with the file or the overrides.
    pub fn load(path: impl AsRef<Path>, overrides: &[String]) -> Result<Self, ConfigurationError> {
        Self::load_with_costs(path, None, overrides)
    }

    /// The same, with measured costs, which errors give the name at their side: a text with nothing but `[simulation]` as
    /// `weir calibrate` writes it. What the configuration itself says of its simulation comes before that.
    ///
    /// # Errors
    ///
    /// All that is wrong with the file, the costs or the overrides.
    pub fn load_with_costs(
        path: impl AsRef<Path>,
        costs: Option<(&str, &str)>,
        overrides: &[String],
    ) -> Result<Self, ConfigurationError> {
        load(path.as_ref(), costs, overrides).map(|(partition, _)| partition)
    }

    /// [`Partition::load`], with the places of the keys: for those who judge more than the text, such as whether a machine
    /// can run it.
    ///
    /// # Errors
    ///
    /// As [`Partition::load`].
    pub fn load_with_places(
        path: impl AsRef<Path>,
        overrides: &[String],
    ) -> Result<(Self, Places), ConfigurationError> {
        load(path.as_ref(), None, overrides)
    }

    /// The text of a file with measured costs, for [`Partition::load_with_costs`].
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is too large to be one.
    pub fn read_costs(path: &Path) -> Result<String, ConfigurationError> {
        read(path, "file of costs").map_err(|unread| unread.in_file(&path.display().to_string()))
    }

    /// Reads the configuration `text`, which errors call `name`, and applies overrides of the form `key=value`.
    ///
    /// Paths stay as they are.
    ///
    /// # Errors
    ///
    /// All that is wrong with the text or the overrides.
    pub fn parse(name: &str, text: &str, overrides: &[String]) -> Result<Self, ConfigurationError> {
        build(name, text, None, overrides, None).map(|(partition, _)| partition)
    }

    /// [`Partition::parse`] with measured costs, see [`Partition::load_with_costs`].
    ///
    /// # Errors
    ///
    /// All that is wrong with the text, the costs or the overrides.
    pub fn parse_with_costs(name: &str, text: &str, costs: (&str, &str)) -> Result<Self, ConfigurationError> {
        build(name, text, Some(costs), &[], None).map(|(partition, _)| partition)
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

    /// Whether events are built; if not, the chain ends with level 2.
    pub fn builds(&self) -> bool {
        self.sfi.count > 0
    }

    /// How read-out systems push, if they do.
    pub fn push(&self) -> Option<Push> {
        (self.dfm.building != BuildingMode::Pull).then(|| self.ros.push.clone().unwrap_or_default())
    }

    /// Most data that a read-out system has pushed to an event builder and that are on the way.
    pub fn push_window(&self) -> Size {
        let share = || {
            let events = self.sfi.max_event_size.bytes().saturating_mul(u64::from(self.sfi.building));
            Size::from_bytes(events.div_ceil(u64::from(self.ros.count.max(1))))
        };
        self.push().and_then(|push| push.window).unwrap_or_else(share)
    }

    /// The event filter's settings: those of `[ef]`, else one EFD that passes everything on to the recorders; `None` if
    /// the chain ends with the event builders.
    pub fn event_filter(&self) -> Option<Ef> {
        match (&self.ef, &self.sfo) {
            _ if !self.builds() => None,
            (Some(ef), _) => Some(ef.clone()),
            (None, Some(_)) => Some(Ef::default()),
            (None, None) => None,
        }
    }

    /// Names of the streams as `type_name`, in the order of their bits; those that an algorithm may ask for.
    pub fn stream_names(&self) -> Vec<String> {
        self.stream.iter().map(|stream| format!("{}_{}", stream.stream_type.name(), stream.name)).collect()
    }

    /// All applications, in the order in which data move.
    pub fn applications(&self) -> Vec<Application> {
        let level2 = self.l2sv.is_some();
        let counts = [
            (Role::Level1, u32::from(self.level1.is_some())),
            (Role::L2sv, self.l2sv.as_ref().map_or(0, |l2sv| l2sv.count)),
            (Role::L2pu, self.l2pu.as_ref().map_or(0, |l2pu| l2pu.count)),
            (Role::Pros, u32::from(level2 && self.builds())),
            (Role::Ros, self.ros.count),
            (Role::Dfm, u32::from(self.builds())),
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
                Some(Level1Source::Emulator | Level1Source::File | Level1Source::Network) | None => RosInput::Emulator,
            };
        }
        if root.get("dfm.input").is_none() {
            self.dfm.input = match (&self.l2sv, &self.level1) {
                (Some(_), _) => DfmInput::Level2,
                (None, Some(_)) => DfmInput::Level1,
                (None, None) => DfmInput::SelfTrigger,
            };
        }
        if let (Some(sfo), true) = (&mut self.sfo, self.stream.is_empty()) {
            sfo.stream = Some(sfo.stream().to_owned());
        }
        if let (Some(_), Some(l2pu), None) = (&self.menu, &mut self.l2pu, root.get("l2pu.strategy")) {
            l2pu.strategy = Strategy::Menu;
        }
        if let (Some(pt), None) = (&self.pt, root.get("ef.slots")) {
            let ef = self.ef.get_or_insert_default();
            ef.slots = pt.count.saturating_mul(SLOTS_PER_TASK).clamp(1, SLOTS_MAX);
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

fn load(
    path: &Path,
    costs: Option<(&str, &str)>,
    overrides: &[String],
) -> Result<(Partition, Places), ConfigurationError> {
    let name = path.display().to_string();
    let text = read(path, "configuration").map_err(|unread| unread.in_file(&name))?;
    let base = |folder: &Path| {
        std::path::absolute(folder).map_err(|error| {
            let (place, key) = (Place::File { name: name.clone() }, String::new());
            let message = format!("cannot find the working directory: {error}");
            ConfigurationError { problems: vec![Problem { place, key, message }] }
        })
    };
    let file = base(path)?;
    let bases = Bases { file: file.parent().map(Path::to_owned).unwrap_or_default(), overrides: base(Path::new("."))? };
    build(&name, &text, costs, overrides, Some(&bases))
}

fn build(
    name: &str,
    text: &str,
    costs: Option<(&str, &str)>,
    overrides: &[String],
    bases: Option<&Bases>,
) -> Result<(Partition, Places), ConfigurationError> {
    let mut problems = Vec::new();
    let parsed = Node::parse(name, text);
    let is_toml = parsed.is_ok();
    let mut root = parsed.unwrap_or_else(|syntax| {
        problems = syntax;
        Node::empty(name)
    });
    if let Some((name, text)) = costs {
        match Node::parse(name, text) {
            Ok(costs) => problems.extend(add_costs(&mut root, costs)),
            Err(syntax) => problems.extend(syntax),
        }
    }
    problems.extend(overrides.iter().filter_map(|text| root.set(text).err()));
    let Typed { value: mut partition, problems: of_values, bad } = Typed::<Partition>::new(&root);
    problems.extend(of_values);
    partition.resolve(&root);
    if is_toml {
        problems.extend(check(&partition, &root, &bad));
    }
    if let Some(bases) = bases {
        resolve_paths(&mut partition, &root, bases, &mut problems);
        if problems.is_empty() {
            problems.extend(check_files(&partition, &root));
        }
    }
    if problems.is_empty() {
        return Ok((partition, Places::new(root)));
    }
    problems.sort_by(|a, b| (&a.place, &a.key).cmp(&(&b.place, &b.key)));
    Err(ConfigurationError { problems })
}

/// Puts what a file of costs says in the place of what the configuration leaves out; single costs come before those of the
/// configuration, which thus count. Returns what such a file must not say.
fn add_costs(root: &mut Node, costs: Node) -> Vec<Problem> {
    let mut problems = Vec::new();
    let Content::Table(tables) = costs.content else { unreachable!("a TOML text is a table") };
    for (table, node) in tables {
        let (is_simulation, place) = (table == "simulation", node.key_place.clone());
        let mut problem = |key: String, place: Place| {
            let message =
                "expected only what `weir calibrate` writes: [simulation] with cores, driver and cost".to_owned();
            problems.push(Problem { place, key, message });
        };
        match (is_simulation, node.content) {
            (true, Content::Table(keys)) => {
                for (key, node) in keys {
                    match key.as_str() {
                        "cores" | "driver" => root.add("simulation", &key, node),
                        "cost" => root.prepend("simulation", &key, node),
                        _ => problem(format!("simulation.{key}"), node.key_place),
                    }
                }
            }
            _ => problem(table, place),
        }
    }
    if root.get("simulation.driver").is_none() {
        let (place, key) = (costs.place, "simulation.driver".to_owned());
        let message = "expected in a file of costs; `weir calibrate` writes one".to_owned();
        problems.push(Problem { place, key, message });
    }
    problems
}

/// Makes the paths of input files absolute.
fn resolve_paths(partition: &mut Partition, root: &Node, bases: &Bases, problems: &mut Vec<Problem>) {
    let mut resolve = |key: &str, path: &mut String| {
        let Some(node) = root.get(key) else { return };
        let base = match (key, &node.place) {
            ("output.directory" | "pt.python" | "pt.command", _) => Path::new(""),
            (_, Place::Override { .. }) => &bases.overrides,
            (_, Place::File { .. } | Place::At { .. }) => &bases.file,
        };
        let resolved = in_home(path, std::env::var_os("HOME")).map(|path| base.join(path));
        let not_text = |path: PathBuf| format!("the path {} is not UTF-8, which TOML needs", path.display());
        match resolved
            .and_then(|resolved| resolved.into_os_string().into_string().map_err(|path| not_text(path.into())))
        {
            Ok(resolved) => *path = resolved,
            Err(message) => problems.push(Problem { place: node.place.clone(), key: key.to_owned(), message }),
        }
    };
    resolve("output.directory", &mut partition.output.directory);
    partition.input.files.iter_mut().for_each(|file| resolve("input.files", file));
    partition.input.detector.iter_mut().for_each(|file| resolve("input.detector", file));
    let triggers = partition.level1.iter_mut().flat_map(|level1| &mut level1.file);
    triggers.for_each(|file| resolve("level1.file", file));
    if let Some(pt) = &mut partition.pt {
        resolve("pt.python", &mut pt.python);
        pt.command.first_mut().into_iter().for_each(|program| resolve("pt.command", program));
        if pt.python_class().is_some_and(is_python_file) {
            resolve("pt.algorithm", &mut pt.algorithm);
        }
    }
}

/// The path with the home folder of this user in place of a leading `~/`, as in a shell.
fn in_home(path: &str, home: Option<OsString>) -> Result<PathBuf, String> {
    let Some(rest) = path.strip_prefix('~') else { return Ok(path.into()) };
    if !(rest.is_empty() || rest.starts_with('/')) {
        return Err(format!(
            "expected ~/ for your own home folder, found {path:?}; a folder of that name is \"./{path}\""
        ));
    }
    let home = home.filter(|home| !home.is_empty());
    let home = home.ok_or_else(|| format!("expected a path, found {path:?}, but HOME, the home folder, is not set"))?;
    Ok(Path::new(&home).join(rest.trim_start_matches('/')))
}

/// Whether a class is named by its file, not by its module.
fn is_python_file(class: &str) -> bool {
    class.rsplit_once(':').is_some_and(|(file, _)| Path::new(file).extension().is_some_and(|suffix| suffix == "py"))
}

/// Keeps a fast processing task busy.
const SLOTS_PER_TASK: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tilde_made_a_folder_of_that_name() {
        let home = || Some(OsString::from("/home/me"));
        for (path, expected) in [
            ("~/data", "/home/me/data"),
            ("~//data/run", "/home/me/data/run"),
            ("~", "/home/me"),
            ("data/~/x", "data/~/x"),
            ("./~", "./~"),
            ("/a~", "/a~"),
        ] {
            assert_eq!(in_home(path, home()), Ok(expected.into()), "{path}");
        }
        let error = in_home("~you/data", home()).unwrap_err();
        assert!(error.contains("\"./~you/data\""), "{error}");
        for home in [None, Some(OsString::new())] {
            let error = in_home("~/data", home).unwrap_err();
            assert!(error.contains("HOME"), "{error}");
        }
        assert_eq!(in_home("data", None), Ok("data".into()));
    }
}

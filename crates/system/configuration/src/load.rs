//! Reading a configuration: the text, the overrides, the costs, the paths; then all checks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::check::{check, check_files};
use crate::host_ranges;
use crate::partition::Partition;
use crate::places::Places;
use crate::problem::{ConfigurationError, Place, Problem};
use crate::source::{Content, Node};
use crate::text::read;
use crate::typing::Typed;

impl Partition {
    /// Reads the configuration file at `path` and applies overrides: `key=value`, or `@FILE`, a file whose keys come in the
    /// place of those that were there.
    ///
    /// Relative `input.files` become absolute: those of a file start from its folder, those of an override from the
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
        Self::parse_with_places(name, text, overrides).map(|(partition, _)| partition)
    }

    /// [`Partition::parse`], with the places of the keys.
    ///
    /// # Errors
    ///
    /// As [`Partition::parse`].
    pub fn parse_with_places(
        name: &str,
        text: &str,
        overrides: &[String],
    ) -> Result<(Self, Places), ConfigurationError> {
        build(name, text, None, overrides, None)
    }

    /// Whether the keys of `[run]` are as [`Partition::parse`] would take them, for those that a program has set.
    ///
    /// # Errors
    ///
    /// All that is wrong with them.
    pub fn check_run(&self) -> Result<(), ConfigurationError> {
        let name = "settings of the run";
        let place = Place::File { name: name.to_owned() };
        let text = toml::to_string(self).map_err(|error| {
            let message = format!("{error}; expected whole numbers below 2^63");
            ConfigurationError { problems: vec![Problem { place: place.clone(), key: "run".to_owned(), message }] }
        })?;
        let Err(mut error) = Self::parse(name, &text, &[]) else { return Ok(()) };
        error.problems.retain(|problem| problem.key.starts_with("run."));
        // Nobody sees the lines of this text.
        error.problems.iter_mut().for_each(|problem| problem.place = place.clone());
        if error.problems.is_empty() { Ok(()) } else { Err(error) }
    }

    /// [`Partition::parse`] with measured costs, see [`Partition::load_with_costs`].
    ///
    /// # Errors
    ///
    /// All that is wrong with the text, the costs or the overrides.
    pub fn parse_with_costs(name: &str, text: &str, costs: (&str, &str)) -> Result<Self, ConfigurationError> {
        build(name, text, Some(costs), &[], None).map(|(partition, _)| partition)
    }
}

/// Where relative paths start.
struct Bases {
    /// The name of the configuration, and its folder.
    file: (String, PathBuf),
    overrides: PathBuf,
}

impl Bases {
    /// Of what stands there.
    fn of(&self, place: &Place) -> PathBuf {
        match place {
            Place::Override { .. } => self.overrides.clone(),
            Place::File { name } | Place::At { name, .. } if *name == self.file.0 => self.file.1.clone(),
            Place::File { name } | Place::At { name, .. } => {
                self.overrides.join(Path::new(name).parent().unwrap_or(Path::new("")))
            }
        }
    }
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
    let folder = file.parent().map(Path::to_owned).unwrap_or_default();
    let bases = Bases { file: (name.clone(), folder), overrides: base(Path::new("."))? };
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
    for text in overrides {
        match text.strip_prefix('@') {
            Some(file) => problems.extend(overlay(&mut root, file).err().into_iter().flatten()),
            None => problems.extend(root.set(text).err()),
        }
    }
    problems.extend(host_ranges::expand(&mut root));
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

/// Puts the keys of a file in the place of those that are there.
fn overlay(root: &mut Node, file: &str) -> Result<(), Vec<Problem>> {
    let text = read(Path::new(file), "part of a configuration").map_err(|unread| unread.in_file(file).problems)?;
    root.overlay(Node::parse(file, &text)?);
    Ok(())
}

/// Puts the costs of a file in the place of those that the configuration leaves out. Single costs come before those of
/// the configuration, which thus count. Returns what such a file must not say.
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
        let base = match key {
            "output.directory" | "control.catalogue" | "pt.python" | "pt.command" => PathBuf::new(),
            _ => bases.of(&node.place),
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
    partition.control.catalogue.iter_mut().for_each(|file| resolve("control.catalogue", file));
    partition.control.references.iter_mut().for_each(|file| resolve("control.references", file));
    partition.control.bus_login.iter_mut().for_each(|file| resolve("control.bus_login", file));
    partition.control.otlp_certificate.iter_mut().for_each(|file| resolve("control.otlp_certificate", file));
    partition.control.otlp_headers.iter_mut().for_each(|file| resolve("control.otlp_headers", file));
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

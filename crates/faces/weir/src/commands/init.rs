//! `weir init`.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use configuration::{TEMPLATES, Template};

use crate::cli::InitArgs;
use terminal::Exit;

/// Writes a template to a file, and the data that it reads beside it, so that it runs without a checkout of the sources.
/// Nothing is overwritten.
///
/// # Errors
///
/// A stream cannot be written.
pub fn init(args: &InitArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let Some(name) = args.template.as_deref().filter(|_| !args.list) else {
        list(out)?;
        return Ok(Exit::Well);
    };
    let Some(template) = TEMPLATES.iter().find(|template| template.name == name) else {
        writeln!(err, "there is no template {name:?}; expected one of:")?;
        list(err)?;
        return Ok(Exit::Wrong);
    };
    let path = args.file.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.toml")));
    if path == Path::new("-") {
        out.write_all(template.text.as_bytes())?;
        for data in data_of(template) {
            writeln!(err, "note: it reads {}, which `weir init {name} FILE` writes beside FILE", data.path)?;
        }
        return Ok(Exit::Well);
    }
    match write(template, &path, out)? {
        Ok(()) => {
            writeln!(out, "next: weir run {}", path.display())?;
            Ok(Exit::Well)
        }
        Err(message) => {
            out.flush()?;
            writeln!(err, "{message}")?;
            Ok(Exit::Wrong)
        }
    }
}

fn list(out: &mut dyn Write) -> io::Result<()> {
    TEMPLATES.iter().try_for_each(|template| writeln!(out, "  {:16}{}", template.name, template.summary))
}

/// Writes the template and its data; the inner result is what is wrong with the files.
fn write(template: &Template, path: &Path, out: &mut dyn Write) -> io::Result<Result<(), String>> {
    match create(path, template.text.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Ok(Err(format!(
                "{}: it exists and is not overwritten; name another file: weir init {} FILE",
                path.display(),
                template.name
            )));
        }
        Err(error) => return Ok(Err(format!("cannot write {}: {error}", path.display()))),
        Ok(()) => writeln!(out, "wrote {}", path.display())?,
    }
    for data in data_of(template) {
        let target = path.parent().unwrap_or(Path::new("")).join(data.path);
        match create(&target, data.bytes) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                writeln!(out, "kept {}, which was there", target.display())?;
            }
            Err(error) => return Ok(Err(format!("cannot write {}: {error}", target.display()))),
            Ok(()) => writeln!(out, "wrote {}, which it reads", target.display())?,
        }
    }
    Ok(Ok(()))
}

/// Makes a file that did not exist; what cannot be written completely is removed again.
fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes).inspect_err(|_| drop(fs::remove_file(path)))
}

fn data_of(template: &Template) -> impl Iterator<Item = &'static Data> {
    DATA.iter().filter(|data| {
        // A sample is described beside it.
        let named = data.path.strip_suffix(".json").map(|stem| format!("\"{stem}.parquet\""));
        let is_named = |path: &str| template.text.contains(path);
        is_named(&format!("{:?}", data.path)) || named.is_some_and(|path| is_named(&path))
    })
}

/// A file that templates read, by its path beside them.
struct Data {
    path: &'static str,
    bytes: &'static [u8],
}

macro_rules! data {
    ($($path:literal),+ $(,)?) => {
        &[$(Data { path: $path, bytes: include_bytes!(concat!("../../../../../examples/", $path)) }),+]
    };
}

static DATA: &[Data] = data![
    "data/minbias_mu0.accepted.parquet",
    "data/minbias_mu0.accepted.json",
    "data/dijet_mu0.accepted.parquet",
    "data/dijet_mu0.accepted.json",
    "data/wenu_mu0.accepted.parquet",
    "data/wenu_mu0.accepted.json",
    "data/zee_mu0.parquet",
    "data/zee_mu0.json",
    "data/zmumu_mu0.accepted.parquet",
    "data/zmumu_mu0.accepted.json",
    "data/detector.json",
    "data/replay.data",
];

#[cfg(test)]
mod tests {
    use configuration::Partition;

    use super::*;

    #[test]
    fn all_data_of_all_templates_are_at_hand() {
        for template in TEMPLATES {
            let partition = Partition::parse(template.name, template.text, &[]).unwrap();
            let known: Vec<&str> = data_of(template).map(|data| data.path).collect();
            let read = partition.input.files.iter().chain(&partition.input.detector);
            read.for_each(|path| assert!(known.contains(&path.as_str()), "{path} of {}", template.name));
        }
    }
}

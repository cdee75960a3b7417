//! The command line that programs of sources have in common.

use std::collections::BTreeMap;

use crate::handle::Error;

/// What a command line says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// Where the partition listens.
    pub at: String,
    /// The name of the source.
    pub name: Option<String>,
    /// The file with the key of the partition.
    pub key_file: Option<String>,
    /// How long to wait for the partition, in ms.
    pub patience_ms: Option<u32>,
    /// How long the partition may wait, in ms.
    pub deadline_ms: Option<u32>,
    /// Of the source itself.
    pub parameters: BTreeMap<String, String>,
}

impl Arguments {
    /// Reads what stands behind the name of the program.
    ///
    /// # Errors
    /// Help is wanted, or an argument is none; the text says which there are.
    pub fn parse(program: &str, arguments: impl IntoIterator<Item = String>) -> Result<Self, Error> {
        let mut read = Self::default();
        let mut rest = arguments.into_iter();
        while let Some(argument) = rest.next() {
            if !argument.starts_with("--") && read.at.is_empty() {
                read.at = argument;
                continue;
            }
            let (option, value) = match argument.split_once('=') {
                Some((option, value)) => (option, Some(value.to_owned())),
                None => (argument.as_str(), if argument == "--help" { Some(String::new()) } else { rest.next() }),
            };
            read.take(option, value).map_err(|why| refused(program, &why))?;
        }
        if read.at.is_empty() { Err(refused(program, "no address")) } else { Ok(read) }
    }

    fn take(&mut self, option: &str, value: Option<String>) -> Result<(), String> {
        let is_known = ["--name", "--key-file", "--patience", "--deadline", "--set"].contains(&option);
        let value = match value {
            Some(value) if is_known => value,
            None if is_known => return Err(format!("{option}: expected a value behind it")),
            _ if option == "--help" => return Err("help".to_owned()),
            _ => return Err(format!("{option}: no such argument")),
        };
        match option {
            "--name" => self.name = Some(value),
            "--key-file" => self.key_file = Some(value),
            "--patience" => self.patience_ms = Some(milliseconds(option, &value)?),
            "--deadline" => self.deadline_ms = Some(milliseconds(option, &value)?),
            _ => {
                let pair = value.split_once('=').filter(|(key, _)| !key.is_empty());
                let (key, value) = pair.ok_or_else(|| format!("--set {value}: expected KEY=VALUE"))?;
                self.parameters.insert(key.to_owned(), value.to_owned());
            }
        }
        Ok(())
    }

    /// The name that is said, or that of `shm:NAME`.
    #[must_use]
    pub fn name(&self) -> &str {
        let last = || self.at.strip_prefix("shm:").unwrap_or(&self.at).rsplit('/').next().unwrap_or_default();
        self.name.as_deref().unwrap_or_else(|| last().strip_suffix(".sock").unwrap_or_else(last))
    }
}

fn refused(program: &str, why: &str) -> Error {
    let usage = format!("usage: {program} {USAGE}");
    Error::argument(&if why == "help" { usage } else { format!("{why}\n{usage}") })
}

fn milliseconds(option: &str, text: &str) -> Result<u32, String> {
    let seconds = text.parse().ok().filter(|seconds| SECONDS.contains(seconds));
    // It fits, as the range says.
    seconds
        .map(|seconds: f64| (seconds * 1000.0) as u32)
        .ok_or_else(|| format!("{option} {text}: expected seconds, from 0.001 to 1000000"))
}

const SECONDS: std::ops::RangeInclusive<f64> = 0.001..=1e6;
const USAGE: &str = "ADDRESS [options]
  ADDRESS           where the partition listens: shm:NAME or tcp://HOST:PORT
  --name NAME       of the source in the configuration; by default that of shm:NAME
  --key-file FILE   key of the partition; TCP needs one
  --patience S      how long to wait for the partition, in seconds; 60
  --deadline S      how long the partition may wait for the source, in seconds; 5
  --set KEY=VALUE   a parameter of the source";

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Arguments, String> {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned());
        Arguments::parse("device", arguments).map_err(|error| error.text.to_string_lossy().into_owned())
    }

    #[test]
    fn a_command_line_says_who_a_source_is_and_what_it_shall_know() {
        let read = parse(&["shm:/tmp/adc.sock", "--set", "rate=5", "--set=gain=a=b", "--deadline", "0.25"]).unwrap();
        assert_eq!((read.name(), read.deadline_ms, read.patience_ms), ("adc", Some(250), None));
        let parameters: Vec<_> = read.parameters.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(parameters, [("gain", "a=b"), ("rate", "5")]);
        assert_eq!(parse(&["shm:tlu"]).unwrap().name(), "tlu");
        assert_eq!(parse(&["--name=me", "tcp://h:1", "--key-file", "k"]).unwrap().name(), "me");
    }

    #[test]
    fn what_is_no_argument_is_refused_with_those_that_are() {
        for (arguments, says) in [
            (&[][..], "no address"),
            (&["shm:a", "shm:b"], "shm:b: no such argument"),
            (&["shm:a", "--sets", "a=b"], "--sets: no such argument"),
            (&["shm:a", "--name"], "--name: expected a value"),
            (&["shm:a", "--set", "=b"], "--set =b: expected KEY=VALUE"),
            (&["shm:a", "--patience", "long"], "--patience long: expected seconds"),
            (&["--help"], "usage: device ADDRESS"),
        ] {
            let said = parse(arguments).unwrap_err();
            assert!(said.starts_with(says) && said.contains("--set KEY=VALUE"), "{arguments:?}: {said}");
        }
    }
}

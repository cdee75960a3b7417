//! `weir check`.

use std::io::{self, Write};

use base::ids::Role;
use configuration::{Application, Launcher, Level1, Level1Source, Partition, Places, Play, Problem, RosInput};

use crate::cli::CheckArgs;
use crate::loading::load;
use partition::machine::{Findings, judge, number_taken};
use service::{Bus, Telemetry};
use terminal::Exit;

/// Judges a configuration, and whether this machine can run it: all that is wrong with it, or the applications that it asks for.
///
/// # Errors
///
/// A stream cannot be written.
pub fn check(args: &CheckArgs, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<Exit> {
    let (mut partition, places) = match load(&args.config, &args.overrides, &args.playing) {
        Ok(loaded) => loaded,
        Err(error) => {
            writeln!(err, "{error}")?;
            return Ok(Exit::Wrong);
        }
    };
    args.limits.apply(&mut partition);
    let Findings { mut errors, mut warnings } = if args.text_only {
        Findings::default()
    } else {
        judge(&partition, &places, args.processes || !partition.host.is_empty())
    };
    if !args.text_only {
        errors.extend(number_taken(&partition, &places));
        warnings.extend(no_bus(&partition, &places));
        warnings.extend(no_collector(&partition, &places));
    }
    warnings.iter().try_for_each(|warning| writeln!(err, "warning: {warning}"))?;
    if !errors.is_empty() {
        errors.iter().try_for_each(|error| writeln!(err, "{error}"))?;
        return Ok(Exit::Wrong);
    }
    let verdict = match warnings.len() {
        0 => "well".to_owned(),
        1 => "well, with a warning".to_owned(),
        warnings => format!("well, with {warnings} warnings"),
    };
    writeln!(out, "{}: {verdict}", args.config.display())?;
    let applications = partition.applications();
    writeln!(out, "partition {}, {} applications:", partition.partition.name, applications.len())?;
    for group in applications.chunk_by(|a, b| a.role == b.role) {
        writeln!(out, "  {}{}", names(group), why(&partition, group))?;
    }
    placement(&partition, out)?;
    for play in [Play::Emulator, Play::Sample, Play::Replay] {
        let its = partition.source.iter().filter(|source| source.play == play);
        let its: Vec<&str> = its.map(|source| source.name.as_str()).collect();
        if !its.is_empty() {
            writeln!(out, "it plays sources itself ({}): {}", play.name(), its.join(", "))?;
        }
    }
    let processors = partition.level1.iter().flat_map(|level1| &level1.processor);
    let its: Vec<&str> =
        processors.filter(|processor| processor.played().is_some()).map(|processor| processor.name.as_str()).collect();
    if !its.is_empty() {
        writeln!(out, "it plays level-1 processors itself: {}", its.join(", "))?;
    }
    writeln!(out, "{}", limits(&partition))?;
    Ok(Exit::Well)
}

/// Why `weir serve` cannot tell the bus; a run can do without it.
fn no_bus(partition: &Partition, places: &Places) -> Option<Problem> {
    let error = Bus::of(partition).err()?;
    Some(places.problem(&["control.bus"], format!("`weir serve` cannot tell it: {error}")))
}

/// Why `weir serve` cannot tell the collector.
fn no_collector(partition: &Partition, places: &Places) -> Option<Problem> {
    let error = Telemetry::of(partition).err()?;
    Some(places.problem(&["control.otlp"], format!("`weir serve` cannot tell it: {error}")))
}

/// Which host has which applications, on which cores.
fn placement(partition: &Partition, out: &mut dyn Write) -> io::Result<()> {
    // A configuration that was checked has one.
    let placed = partition.placement().unwrap_or_default();
    let applications = partition.applications().into_iter().zip(partition.bound());
    let applications: Vec<String> = applications
        .map(|(app, core)| core.map_or(app.name.clone(), |core| format!("{} (core {core})", app.name)))
        .collect();
    for (place, host) in partition.host.iter().enumerate() {
        let its = applications.iter().zip(&placed).filter(|(_, host)| **host == place);
        let its: Vec<&str> = its.map(|(app, _)| app.as_str()).collect();
        let its = if its.is_empty() { "nothing".to_owned() } else { its.join(", ") };
        let by = match host.launcher {
            Launcher::Local => "this machine".to_owned(),
            launcher => format!("{} {}", launcher.name(), host.address()),
        };
        let data = host.data(partition.transport.host).map(|data| format!(", data at {data}")).unwrap_or_default();
        writeln!(out, "  host {} ({by}{data}): {its}", host.name)?;
    }
    Ok(())
}

/// Why there are applications that the configuration does not name.
fn why(partition: &Partition, group: &[Application]) -> &'static str {
    match group {
        [app, ..] if app.role == Role::Efd && partition.ef.is_none() => {
            "    passes every event on: recorders take events from an event filter, and there is no [ef]"
        }
        _ => "",
    }
}

/// `sfi-1`, or `ros-1 … ros-8`.
fn names(group: &[Application]) -> String {
    match group {
        [] => String::new(),
        [only] => only.name.clone(),
        [first, .., last] if group.len() > 2 => format!("{} … {}", first.name, last.name),
        [first, .., last] => format!("{}, {}", first.name, last.name),
    }
}

fn limits(partition: &Partition) -> String {
    let run = &partition.run;
    let events = run.events.map(|events| format!("{events} level-1 events"));
    let duration = run.duration.map(|duration| duration.to_string());
    let size = run.size.map(|size| format!("{size} of recorded events"));
    let limits: Vec<String> = [events, duration, size].into_iter().flatten().collect();
    if !limits.is_empty() {
        return format!("a run ends after {}", limits.join(" or "));
    }
    match ends_by(partition) {
        Some(end) => format!("a run ends {end}, or when it is stopped"),
        None => "a run ends when it is stopped".to_owned(),
    }
}

/// What ends a run without a limit, if anything does.
fn ends_by(partition: &Partition) -> Option<&'static str> {
    let has_end = |play: Play| match play {
        Play::Emulator => false,
        Play::Sample | Play::Replay => !partition.input.repeat,
        Play::None => true,
    };
    match partition.level1.as_ref().map(|level1| level1.source) {
        Some(Level1Source::External) if partition.level1.as_ref().is_some_and(Level1::plays_processors) => None,
        Some(Level1Source::External) => Some("when all its level-1 processors have ended"),
        Some(Level1Source::Time) => {
            let ends = partition.source.iter().all(|source| has_end(source.play));
            ends.then_some("when all its sources have ended")
        }
        Some(Level1Source::Link) => {
            let leader = &partition.source[partition.leader()?];
            has_end(leader.play).then_some("when its leading source ends")
        }
        _ if partition.input.repeat => None,
        Some(Level1Source::Sample | Level1Source::Replay | Level1Source::File) => Some("with its input"),
        Some(Level1Source::Emulator) | None => match partition.ros.input {
            RosInput::Emulator | RosInput::Links => None,
            RosInput::Sample | RosInput::Replay => Some("with its input"),
        },
    }
}

#[cfg(test)]
mod tests {
    use configuration::Partition;

    #[test]
    fn each_host_is_said_with_its_applications_and_their_cores() {
        let text = "partition.name = \"p\"\nros.count = 3\nsfi.count = 1\nprocesses.cores = { ros = [7] }\n\
                    [[host]]\nname = \"a\"\ncores = { ros = [0, 2] }\nroles = { ros = 2 }\n[[host]]\nname = \"b\"\n";
        let partition = Partition::parse("p.toml", text, &[]).unwrap();
        let mut said = Vec::new();
        super::placement(&partition, &mut said).unwrap();
        let expected = "  host a (this machine, data at 127.0.0.1): ros-1 (core 0), ros-2 (core 2)\n  \
                        host b (this machine, data at 127.0.0.1): ros-3 (core 7), dfm-1, sfi-1\n";
        assert_eq!(String::from_utf8(said).unwrap(), expected);
    }

    #[test]
    fn it_is_said_what_ends_a_run() {
        let stopped = "a run ends when it is stopped";
        let leads = "a run ends when its leading source ends, or when it is stopped";
        let input = "input.files=[\"a\"]";
        for (level1, set, said) in [
            ("source = \"emulator\"", &["ros.input=\"emulator\""][..], stopped),
            ("source = \"sample\"", &[input], "a run ends with its input, or when it is stopped"),
            ("source = \"sample\"", &[input, "input.repeat=true"], stopped),
            ("source = \"link\"", &[], leads),
            ("source = \"link\"", &["source.0.play=\"emulator\""], stopped),
            ("source = \"link\"", &["source.1.play=\"emulator\""], leads),
            ("source = \"link\"", &["source.0.play=\"replay\"", input], leads),
            ("source = \"link\"", &["source.0.play=\"replay\"", input, "input.repeat=true"], stopped),
            (
                "source = \"external\"\n[[level1.processor]]\nname = \"l1\"\n",
                &["ros.input=\"links\"", "source.0.play=\"emulator\""],
                "a run ends when all its level-1 processors have ended, or when it is stopped",
            ),
            (
                "source = \"external\"\n[[level1.processor]]\nname = \"l1\"\nplay = \"emulator\"\n",
                &["ros.input=\"links\""],
                stopped,
            ),
            (
                "source = \"time\"\nslice = \"10 ms\"",
                &[],
                "a run ends when all its sources have ended, or when it is stopped",
            ),
            ("source = \"time\"\nslice = \"10 ms\"", &["source.1.play=\"emulator\""], stopped),
            ("source = \"link\"", &["run.events=7"], "a run ends after 7 level-1 events"),
        ] {
            let has_sources = ["link", "time", "external"].iter().any(|source| level1.contains(source));
            let sources = if has_sources { "[[source]]\nname = \"a\"\n[[source]]\nname = \"b\"\n" } else { "" };
            let text = format!(
                "[partition]\nname = \"p\"\n[level1]\n{level1}\n[ros]\ncount = 1\n[dfm]\n[sfi]\ncount = 1\n{sources}"
            );
            let set: Vec<String> = set.iter().map(|set| (*set).to_owned()).collect();
            let partition = Partition::parse("p.toml", &text, &set).unwrap();
            assert_eq!(super::limits(&partition), said, "{level1} {set:?}");
        }
    }
}

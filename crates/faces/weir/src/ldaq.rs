//! `weir ldaq`: the applications of the host that somebody is logged in to.

use std::fs::{self, File};
use std::io::{self, Write};

use agents::{Ldaq, LdaqError, Local, Status, Wanted};
use eformat::Event;
use storage::{WriterConfig, file_of};
use terminal::{Exit, complain, on_standard_streams};

use crate::cli::{LdaqArgs, LdaqVerb, LocalSampleArgs};

/// Does what is wanted of the agent, and says what came of it.
pub(crate) fn ldaq(args: &LdaqArgs) -> Exit {
    let done = Ldaq::find(args.agent.as_deref()).and_then(|agent| match &args.verb {
        LdaqVerb::Status => agent.status().map(|status| tell(&status)),
        LdaqVerb::Stop { names } => agent.stop(names).map(|names| say_of(&names, "stopped")),
        LdaqVerb::Start { names } => agent.start(names).map(|names| say_of(&names, "started")),
        LdaqVerb::Sample(wanted) => sample(&agent, wanted),
    });
    done.unwrap_or_else(|error| {
        complain(&format!("weir: {error}"));
        if error.is_refusal() || matches!(error, LdaqError::Several(_)) { Exit::Wrong } else { Exit::NotStarted }
    })
}

fn say(line: &str) -> Exit {
    on_standard_streams(|out, _| writeln!(out, "{line}").map(|()| Exit::Well))
}

fn say_of(names: &[String], what: &str) -> Exit {
    match names {
        [] => say(&format!("nothing is {what}: there is none")),
        names => say(&format!("{what}: {}", names.join(", "))),
    }
}

fn tell(Status { host, state, applications }: &Status) -> Exit {
    let line = |Local { name, process, cpu, words, .. }: &Local| match process {
        Some(process) => format!("  {name:<12} process {process}, {:.1} s", cpu.as_secs_f64()),
        None => format!("  {name:<12} {words}"),
    };
    let head = format!("{host} {}", state.name());
    say(&[head].into_iter().chain(applications.iter().map(line)).collect::<Vec<_>>().join("\n"))
}

/// Tries to make the file first: nobody waits for events that have no place. What came is kept, also where it is less than was wanted.
fn sample(agent: &Ldaq, wanted: &LocalSampleArgs) -> Result<Exit, LdaqError> {
    let output = &wanted.output;
    if let Err(cause) = File::create_new(output).and_then(|_| fs::remove_file(output)) {
        return Ok(not_written(wanted, &cause));
    }
    let mut events = Vec::new();
    let sampled = agent.sample(&wanted.stage, asked(wanted), wanted.count as usize, |event| events.push(event));
    let kept = if events.is_empty() { Exit::Well } else { keep(&events, wanted) };
    sampled.map(|()| kept)
}

/// One event in so many stands for a part.
fn asked(wanted: &LocalSampleArgs) -> Wanted {
    let mut trigger_types = [0; 4];
    wanted.types.iter().for_each(|number| trigger_types[usize::from(number / 64)] |= 1 << (number % 64));
    Wanted { trigger_types, prescale: (1.0 / wanted.fraction).round() as u64 }
}

fn not_written(wanted: &LocalSampleArgs, cause: &io::Error) -> Exit {
    complain(&format!("weir: {}: {cause}", wanted.output.display()));
    Exit::Wrong
}

/// Writes the events to their file, or leaves none.
fn keep(events: &[Vec<u8>], wanted: &LocalSampleArgs) -> Exit {
    let LocalSampleArgs { stage, output, .. } = wanted;
    let run_number = events.first().and_then(|event| Event::parse(event).ok()).map(|event| event.run_number());
    let config = WriterConfig {
        run_number: run_number.unwrap_or_default(),
        stream_type: "monitoring".to_owned(),
        stream_name: "Sample".to_owned(),
        application: stage.clone(),
        ..WriterConfig::default()
    };
    let all: Vec<&[u8]> = events.iter().map(Vec::as_slice).collect();
    let file = file_of(&config, &all).map_err(io::Error::other);
    let written = file.and_then(|file| {
        let mut new = File::create_new(output)?;
        new.write_all(&file).inspect_err(|_| _ = fs::remove_file(output))
    });
    match written {
        Ok(()) => say(&format!("{} events of {stage} are in {}", events.len(), output.display())),
        Err(cause) => not_written(wanted, &cause),
    }
}

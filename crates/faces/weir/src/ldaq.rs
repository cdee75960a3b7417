//! `weir ldaq`: the applications of the host that somebody is logged in to.

use std::io::{self, Write};

use agents::{Ldaq, LdaqError, Status};
use terminal::{Exit, complain, on_standard_streams};

use crate::cli::{LdaqArgs, LdaqVerb};

/// Does what is wanted of the agent, and says what came of it.
pub(crate) fn ldaq(args: &LdaqArgs) -> Exit {
    let done = Ldaq::find(args.agent.as_deref()).and_then(|agent| match &args.verb {
        LdaqVerb::Status => agent.status().map(Answer::Status),
        LdaqVerb::Stop { names } => agent.stop(names).map(|names| Answer::Done("stopped", names)),
        LdaqVerb::Start { names } => agent.start(names).map(|names| Answer::Done("started", names)),
    });
    match done {
        Ok(answer) => on_standard_streams(|out, _| answer.write(out).map(|()| Exit::Well)),
        Err(error) => {
            complain(&format!("weir: {error}"));
            if error.is_refusal() || matches!(error, LdaqError::Several(_)) { Exit::Wrong } else { Exit::NotStarted }
        }
    }
}

enum Answer {
    Status(Status),
    Done(&'static str, Vec<String>),
}

impl Answer {
    fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Done(what, names) if names.is_empty() => writeln!(out, "nothing is {what}: there is none"),
            Self::Done(what, names) => writeln!(out, "{what}: {}", names.join(", ")),
            Self::Status(Status { host, state, applications }) => {
                writeln!(out, "{host} {}", state.name())?;
                applications.iter().try_for_each(|local| match local.process {
                    Some(process) => {
                        writeln!(out, "  {:<12} process {process}, {:.1} s", local.name, local.cpu.as_secs_f64())
                    }
                    None => writeln!(out, "  {:<12} {}", local.name, local.words),
                })
            }
        }
    }
}

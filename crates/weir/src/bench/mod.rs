//! `weir bench`: system benchmarks, each in alternation with the bare machine doing the same work.

mod event_builder;
mod paired;
mod reference;

use crate::cli::{BareSourceArgs, BenchArgs, Exit};
use crate::commands::on_standard_streams;

/// Runs a benchmark and prints its result.
pub(crate) fn bench(args: &BenchArgs) -> Exit {
    let Some(name) = &args.name else {
        return print(
            "event-builder  source processes, one building process, the complete protocol over TCP on loopback",
        );
    };
    if name != "event-builder" {
        crate::complain(&format!("weir: no benchmark is called {name}; `weir bench --list` names all"));
        return Exit::Wrong;
    }
    match event_builder::measure(args) {
        Ok(comparison) => print(&if args.json { comparison.to_json() } else { comparison.to_text() }),
        Err(error) => {
            crate::complain(&format!("weir bench {name}: {error}"));
            Exit::NotStarted
        }
    }
}

/// A source process of the bare reference.
pub(crate) fn bare_source(args: &BareSourceArgs) -> Exit {
    let BareSourceArgs { builder, id, fragment_bytes, batch } = *args;
    match reference::source_main(&reference::SourceArguments { builder, id, fragment_bytes, batch }) {
        Ok(()) => Exit::Well,
        Err(error) => {
            crate::complain(&format!("weir bare-source {id}: {error}"));
            Exit::NotStarted
        }
    }
}

fn print(text: &str) -> Exit {
    on_standard_streams(|out, _| writeln!(out, "{text}").map(|()| Exit::Well))
}

//! `weir study`: figures and tables that are measured with the system itself, as data, SVG and HTML.

mod binomial;
mod chain;
mod decisions;
mod figure;
mod page;
mod report;
mod sample;
mod selection;
mod tally;
mod text;
mod truth;

use crate::cli::{Exit, StudyArgs};
use crate::commands::on_standard_streams;

/// Makes a study and prints its tables.
pub(crate) fn study(args: &StudyArgs) -> Exit {
    let Some(name) = &args.name else {
        return on_standard_streams(|out, _| {
            writeln!(
                out,
                "{SELECTION}  the trigger on samples of simulated collisions: efficiencies, rates, data moved"
            )?;
            Ok(Exit::Well)
        });
    };
    if name != SELECTION {
        crate::complain(&format!("weir: no study is called {name}; `weir study --list` names all"));
        return Exit::Wrong;
    }
    match selection::study(args) {
        Ok(()) => Exit::Well,
        Err(error) => {
            crate::complain(&format!("weir study {name}: {error}"));
            error.exit()
        }
    }
}

const SELECTION: &str = "selection";

//! `weir study`: figures and tables that are measured with the system itself, as data, SVG and HTML.
#![forbid(unsafe_code)]

mod arguments;
mod atm1997;
mod binomial;
mod chain;
mod daq1999;
mod decisions;
mod eb2007;
mod error;
mod figure;
mod markdown;
mod os1998;
mod others;
mod page;
mod plot;
mod report;
mod results;
mod sample;
mod selection;
mod tally;
mod text;
mod truth;

pub use arguments::{EXAMPLES, StudyArgs, StudyPart};

use terminal::Exit;
use terminal::on_standard_streams;

/// Makes a study and prints its tables.
pub fn study(args: &StudyArgs) -> Exit {
    let Some(name) = &args.name else {
        return on_standard_streams(|out, _| {
            STUDIES.iter().try_for_each(|study| writeln!(out, "{:11}{}", study.name, study.about))?;
            Ok(Exit::Well)
        });
    };
    let Some(study) = STUDIES.iter().find(|study| study.name == name) else {
        terminal::complain(&format!("weir: no study is called {name}; `weir study --list` names all"));
        return Exit::Wrong;
    };
    let of_selection = !args.sample.is_empty() || args.decisions.is_some() || !args.overrides.set.is_empty();
    if of_selection && study.name != SELECTION {
        terminal::complain(&format!(
            "weir study {name}: --sample, --decisions and --set are for `weir study {SELECTION}`"
        ));
        return Exit::Wrong;
    }
    match (study.make)(args) {
        Ok(()) => Exit::Well,
        Err(error) => {
            terminal::complain(&format!("weir study {name}: {error}"));
            error.exit()
        }
    }
}

/// A process that a study started.
pub fn part(part: &StudyPart) -> Exit {
    let StudyPart::Pong { kind, core, real_time } = *part;
    match os1998::pong_main(kind.into(), core, real_time) {
        Ok(()) => Exit::Well,
        Err(error) => {
            terminal::complain(&format!("weir study-part: {error}"));
            Exit::NotStarted
        }
    }
}

struct Study {
    name: &'static str,
    about: &'static str,
    make: fn(&StudyArgs) -> Result<(), error::StudyError>,
}

const SELECTION: &str = "selection";
const STUDIES: [Study; 5] = [
    Study {
        name: SELECTION,
        about: "the trigger on samples of simulated collisions: efficiencies, rates, data moved",
        make: selection::study,
    },
    Study {
        name: "atm1997",
        about: "event building over ATM, simulated cell by cell: figures 2, 4, 5 and 6 of ATM1997",
        make: atm1997::study,
    },
    Study {
        name: "daq1999",
        about: "a read-out crate and what it feeds, live and traced: figures 2 to 23 of DAQ1999",
        make: daq1999::study,
    },
    Study {
        name: "eb2007",
        about: "one third of the ATLAS event builder, simulated: figures 2 to 6 of EB2007",
        make: eb2007::study,
    },
    Study {
        name: "os1998",
        about: "this machine's processors, semaphores, latencies, and the whole chain live: tables of OS1998, and what suits it",
        make: os1998::study,
    },
];

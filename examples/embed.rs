//! A partition within another program: two runs in the same processes, with what became of every event.
//!
//! `cargo run --release --example embed -- FOLDER`: the folder is the output directory of the runs.

use std::error::Error;
use std::path::Path;

use configuration::Partition;
use partition::{News, Outcome, Placement, Run, RunSettings};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: embed FOLDER")?;
    let outcomes = take_data(Path::new(&folder), Placement::local())?;
    outcomes.iter().for_each(|outcome| println!("{}", outcome.to_text()));
    Ok(())
}

/// Takes data until 2000 events are built, and pauses every now and then; then takes 500 events more in another run.
pub(crate) fn take_data(folder: &Path, placement: Placement) -> Result<[Outcome; 2], Box<dyn Error>> {
    let output = format!("output.directory = {:?}", folder.display().to_string());
    let changes = [output, "run.duration = 1h".into(), "dfm.rate = 4 kHz".into()];
    let configuration = Partition::parse("event-builder.toml", include_str!("event-builder.toml"), &changes)?;
    let mut partition = Run::new(configuration).place(placement).boot()?;
    let (run, mut is_paused) = (partition.start(partition.settings())?, false);
    for news in run.reports() {
        match news {
            News::Said(text) => println!("{text}"),
            News::Figures(figures) if figures.built >= 2000 => run.stop(),
            // A run that ends by itself cannot be paused, nor resumed.
            News::Figures(_) if is_paused => is_paused = run.resume().is_err(),
            News::Figures(_) => is_paused = run.pause().is_ok(),
            // Whole events, for those who want to look into them.
            News::Sample(_) => {}
        }
    }
    let first = run.wait()?;
    let second = partition.start(RunSettings { events: Some(500), ..partition.settings() })?.wait()?;
    partition.shut_down()?;
    Ok([first, second])
}

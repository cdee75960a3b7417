//! A partition within another program: takes data, pauses, goes on, stops, and prints what became of every event.
//!
//! `cargo run --release --example embed -- FOLDER` writes the files of the run to that folder.

use std::error::Error;
use std::path::Path;

use configuration::Partition;
use partition::{News, Outcome, Placement, Run};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: embed FOLDER")?;
    println!("{}", take_data(Path::new(&folder))?.to_text());
    Ok(())
}

/// Takes data until 2000 events are built, and pauses every now and then.
pub(crate) fn take_data(folder: &Path) -> Result<Outcome, Box<dyn Error>> {
    let text = include_str!("event-builder.toml");
    let output = format!("output.directory = {:?}", folder.display().to_string());
    let changes = [output, "run.duration = 1h".into(), "dfm.rate = 4 kHz".into()];
    let configuration = Partition::parse("event-builder.toml", text, &changes)?;
    let run = Run::new(configuration).place(Placement::local()).start()?;
    let mut is_paused = false;
    for news in run.reports() {
        match news {
            News::Said(text) => println!("{text}"),
            News::Figures(figures) if figures.built >= 2000 => run.stop(),
            // A run that ends by itself cannot be paused, nor resumed.
            News::Figures(_) if is_paused => is_paused = run.resume().is_err(),
            News::Figures(figures) => {
                is_paused = run.pause().is_ok();
                println!("paused after {} events", figures.built);
            }
        }
    }
    Ok(run.wait()?)
}

//! What the next life of run control has to find, of `weir serve` and of `weir run` alike.

use std::path::PathBuf;

use configuration::Partition;
use partition::{Keeping, Left, NotKept};
use service::Succession;
use terminal::{Exit, complain};

/// Where runs are kept.
pub(crate) fn catalogue(partition: &Partition) -> PathBuf {
    partition.control.catalogue.as_ref().map_or_else(|| PathBuf::from(CATALOGUE), PathBuf::from)
}

/// Beside the catalogue; none without hosts, where all applications end with this process. Where another process is run control, it
/// `takes_over` all the same or not.
pub(crate) fn begin(partition: &Partition, takes_over: bool) -> Result<Option<Succession>, NotKept> {
    if partition.host.is_empty() {
        return Ok(None);
    }
    let keeping = Keeping::begin(&place(partition), takes_over, end_at_once)?;
    let left = keeping.left(partition, |text| complain(&format!("weir: {text}")))?;
    Ok(Some(Succession { keeping, left: left.filter(can_live) }))
}

/// Where the key for orders lies, and who commands, for a service that takes over.
pub(crate) fn key_file(partition: &Partition) -> PathBuf {
    let mut path = place(partition).into_os_string();
    path.push(".key");
    path.into()
}

/// With what the names of the files begin.
fn place(partition: &Partition) -> PathBuf {
    let mut path = catalogue(partition).into_os_string();
    path.push(format!("{KEPT}{}", partition.partition.name));
    path.into()
}

/// Nobody is called where nothing can live any more. Nobody asks for applications either that were up once without a run.
fn can_live(left: &Left) -> bool {
    if left.is_over() && left.goes_on() {
        let number = left.run_number();
        complain(&format!("weir: run {number} is over: its run control has died, and its applications have ended"));
    }
    !left.is_over()
}

/// Another process has taken over: what this one would end belongs to that.
fn end_at_once() {
    complain("weir: another run control has taken over: this one ends");
    #[expect(clippy::disallowed_methods, reason = "what dropping would end belongs to somebody else")]
    std::process::exit(i32::from(Exit::Aborted as u8));
}

/// Behind the name of the catalogue.
const KEPT: &str = ".control.";
/// Where runs are kept unless `control.catalogue` says so.
const CATALOGUE: &str = "runs.sqlite";

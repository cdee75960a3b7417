//! A file that a dead writer has left gets its end and its last name.

use std::fs::{self, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use eformat::ProblemKind;

use crate::check::{CheckLimits, check};
use crate::recover::{Found, RecoverError, Recovered, find, io_error, recover, sync_directory_of};

/// Makes a closed file of one that a dead writer has left open, under its name with `.data`.
///
/// One that is torn is cut behind its last whole event, in place: that needs no room on a full disk. One that is damaged in any
/// other way is kept, with `.damaged` in its name. Its whole events go to a new file as by [`recover`]. A file that is good only
/// gets its name. Nobody may be writing it.
///
/// # Errors
///
/// See [`RecoverError`]. The file is as it was, or torn as it was; it may be tried again.
pub fn finish_torn(path: &Path) -> Result<Recovered, RecoverError> {
    let target = path.with_extension("data");
    if target != path && target.try_exists().map_err(io_error("look at", &target))? {
        return Err(RecoverError::Exists { path: target });
    }
    let report = check(path, &CheckLimits::default())?;
    let mut found = find(path, &mut |_| Ok(()))?;
    if report.is_good() {
        found.recovered = found.recovered.of_good(&report);
    } else {
        match torn_at(&found, report.bytes) {
            Some(cut) => append_end(path, cut, &found).map_err(io_error("write", path))?,
            None => return keep_and_recover(path, &target),
        }
    }
    if target != path {
        fs::rename(path, &target).map_err(io_error("rename", path))?;
    }
    sync_directory_of(&target)?;
    let closed = check(&target, &CheckLimits::default())?;
    Ok(Recovered { path: target, bytes: closed.bytes, adler32: closed.adler32, ..found.recovered })
}

/// Where a file ends that was torn while an event or the end record was written.
fn torn_at(found: &Found, file_bytes: u64) -> Option<u64> {
    let [damage] = &found.recovered.damages[..] else { return None };
    let is_tail = damage.range.end == file_bytes && damage.events_lost.is_some_and(|lost| lost <= 1);
    let is_torn = matches!(damage.problem.kind, ProblemKind::NoEndRecord | ProblemKind::Truncated { .. });
    (is_tail && is_torn).then_some(damage.range.start)
}

fn append_end(path: &Path, cut: u64, found: &Found) -> io::Result<()> {
    let mut record = Vec::new();
    found.end.emit(&mut record);
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.set_len(cut)?;
    file.seek(SeekFrom::Start(cut))?;
    file.write_all(&record)?;
    file.sync_data()
}

fn keep_and_recover(path: &Path, target: &Path) -> Result<Recovered, RecoverError> {
    let kept = path.with_extension("damaged");
    if kept.try_exists().map_err(io_error("look at", &kept))? {
        return Err(RecoverError::Exists { path: kept });
    }
    fs::rename(path, &kept).map_err(io_error("rename", path))?;
    recover(&kept, Some(target)).inspect_err(|_| {
        // It keeps its name until it can be recovered.
        let _ = fs::rename(&kept, path);
    })
}

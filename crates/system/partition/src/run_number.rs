//! The number of a run: the next free one of the directory that its files go to, unless one is given.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};

use configuration::Partition;

/// A run number that no other run of this host takes for the same directory until this is dropped.
#[derive(Debug)]
pub(crate) struct RunNumber {
    pub(crate) number: u32,
    /// The kernel lets go of it when the process is gone, however that ends; nothing is left in the directory.
    _claim: Option<UnixDatagram>,
}

/// Why a run cannot have its number.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum RunNumberError {
    #[error("output.directory {}: {cause}; expected a directory that can be written to", path.display())]
    Directory { path: PathBuf, cause: io::Error },
    #[error(
        "run.number is {given}, but the replayed files are of run {replayed} and keep that number: leave the key out"
    )]
    Replayed { given: u32, replayed: u32 },
    #[error("{} is there, of run {number} already: {remedy}", path.display())]
    Taken { number: u32, path: PathBuf, remedy: &'static str },
    #[error("another run {number} is recorded into {} at this moment: {remedy}", path.display())]
    Running { number: u32, path: PathBuf, remedy: &'static str },
    #[error("run {number} was a run of these processes already: {remedy}")]
    Used { number: u32, remedy: &'static str },
    #[error("run {number} cannot be claimed: {cause}")]
    Claim { number: u32, cause: io::Error },
    #[error("{} holds files of run {}, the last there can be: give another output.directory", path.display(), u32::MAX)]
    Exhausted { path: PathBuf },
}

impl RunNumber {
    /// The number of the files that are replayed, else that of the configuration, else the next free one.
    ///
    /// # Errors
    ///
    /// Files of this number are there, or are being written by another run; or one of the runs that were `used` had it.
    pub(crate) fn claim(
        partition: &Partition,
        replayed: Option<u32>,
        used: &BTreeSet<u32>,
    ) -> Result<Self, RunNumberError> {
        let (wanted, path) = (wanted(partition, replayed)?, Path::new(&partition.output.directory));
        if let Some(number) = wanted.filter(|number| used.contains(number)) {
            return Err(RunNumberError::Used { number, remedy: remedy(replayed) });
        }
        let last = used.last().copied();
        if partition.sfo.is_none() {
            let number =
                wanted.map_or_else(|| last.map_or(Ok(partition.run.number()), |last| after(last, path)), Ok)?;
            return Ok(Self { number, _claim: None });
        }
        Self::of_directory(path, wanted, last, remedy(replayed))
    }

    /// That of a run that goes on already. Nobody else takes it while files of it are there.
    pub(crate) fn again(partition: &Partition, number: u32) -> Self {
        let claimed = partition.sfo.is_some().then(|| claim(Path::new(&partition.output.directory), number));
        Self { number, _claim: claimed.and_then(Result::ok) }
    }

    fn of_directory(
        path: &Path,
        wanted: Option<u32>,
        last: Option<u32>,
        remedy: &'static str,
    ) -> Result<Self, RunNumberError> {
        let failed = |cause| RunNumberError::Directory { path: path.to_owned(), cause };
        fs::create_dir_all(path).map_err(failed)?;
        let next = || after(files(path).map_err(failed)?.into_keys().chain(last).max().unwrap_or(0), path);
        let mut number = wanted.map_or_else(next, Ok)?;
        loop {
            match claim(path, number) {
                Ok(claim) => match files(path).map_err(failed)?.remove(&number) {
                    None => return Ok(Self { number, _claim: Some(claim) }),
                    // Another run has ended between the two looks.
                    Some(_) if wanted.is_none() => number = next()?,
                    Some(path) => return Err(RunNumberError::Taken { number, path, remedy }),
                },
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && wanted.is_none() => {
                    number = after(number, path)?;
                }
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    return Err(RunNumberError::Running { number, path: path.to_owned(), remedy });
                }
                Err(cause) => return Err(RunNumberError::Claim { number, cause }),
            }
        }
    }
}

fn after(last: u32, path: &Path) -> Result<u32, RunNumberError> {
    last.checked_add(1).ok_or_else(|| RunNumberError::Exhausted { path: path.to_owned() })
}

/// Whether [`RunNumber::claim`] would refuse the number that a run must have, before there is a run.
///
/// # Errors
///
/// As [`RunNumber::claim`].
pub(crate) fn is_free(partition: &Partition, replayed: Option<u32>) -> Result<(), RunNumberError> {
    let (wanted, path) = (wanted(partition, replayed)?, Path::new(&partition.output.directory));
    // One that may choose finds a number, and a directory that is not there holds none.
    if wanted.is_none() || !path.is_dir() {
        return Ok(());
    }
    RunNumber::of_directory(path, wanted, None, remedy(replayed)).map(drop)
}

/// The next free number of the directory that the files of a partition go to; 1 if it records none.
///
/// # Errors
/// The directory cannot be read, or holds the last number that there can be.
pub fn next_run_number(partition: &Partition) -> Result<u32, RunNumberError> {
    let path = Path::new(&partition.output.directory);
    if partition.sfo.is_none() || !path.is_dir() {
        return Ok(1);
    }
    RunNumber::of_directory(path, None, None, REMEDY).map(|claim| claim.number)
}

/// The number that a run must have, if it cannot choose.
fn wanted(partition: &Partition, replayed: Option<u32>) -> Result<Option<u32>, RunNumberError> {
    match (partition.run.number, replayed) {
        (Some(given), Some(replayed)) if given != replayed => Err(RunNumberError::Replayed { given, replayed }),
        (given, replayed) => Ok(replayed.or(given)),
    }
}

fn remedy(replayed: Option<u32>) -> &'static str {
    if replayed.is_some() { REMEDY_OF_REPLAY } else { REMEDY }
}

/// Binds a name in the kernel that only one process can have.
fn claim(directory: &Path, number: u32) -> io::Result<UnixDatagram> {
    let about = fs::metadata(directory)?;
    let name = format!("weir run {number} of {:x}:{:x}", about.dev(), about.ino());
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

/// By run number one of the files in a directory that a run has left: recorded ones, and journals.
fn files(directory: &Path) -> io::Result<BTreeMap<u32, PathBuf>> {
    let mut by_run = BTreeMap::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name();
        if let Some(run) = name.to_str().and_then(run_of) {
            by_run.insert(run, directory.join(name));
        }
    }
    Ok(by_run)
}

/// The run in the name of a file (format note §11.9), of whatever step and with whatever ending.
fn run_of(name: &str) -> Option<u32> {
    let fields: Vec<&str> = name.split('.').collect();
    let digits =
        fields.get(1).filter(|field| field.len() >= RUN_DIGITS && field.bytes().all(|b| b.is_ascii_digit()))?;
    let is_ours = fields.get(4) == Some(&"RAW") || fields.last() == Some(&"journal");
    digits.parse().ok().filter(|_| is_ours)
}

const RUN_DIGITS: usize = 8;
const REMEDY: &str = "choose another run.number or output.directory, or leave run.number out for the next free one";
const REMEDY_OF_REPLAY: &str =
    "replayed files keep their run number; choose another output.directory, or move the files away";

#[cfg(test)]
mod tests {
    use testkit::TempDir;

    use super::*;

    fn claim_in(directory: &TempDir, wanted: Option<u32>) -> Result<RunNumber, RunNumberError> {
        RunNumber::of_directory(directory.path(), wanted, None, REMEDY)
    }

    #[test]
    fn runs_that_begin_at_the_same_time_get_numbers_of_their_own_and_leave_nothing() {
        let directory = TempDir::new("run-number");
        let claims: Vec<RunNumber> = (0..3).map(|_| claim_in(&directory, None).unwrap()).collect();
        assert_eq!(claims.iter().map(|claim| claim.number).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(matches!(claim_in(&directory, Some(2)), Err(RunNumberError::Running { number: 2, .. })));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
        drop(claims);
        assert_eq!(claim_in(&directory, Some(2)).unwrap().number, 2);
    }

    #[test]
    fn the_next_number_is_behind_all_files_and_journals() {
        let directory = TempDir::new("run-number");
        let add = |name: &str| fs::write(directory.join(name), b"").unwrap();
        for (name, next) in [
            ("notes.00000099.txt", 1),
            ("data_test.00000007.physics_Main.daq.RAW._lb0001._SFO-1._0001.data", 8),
            ("other.00000009.physics_Main.merge.RAW._lb0001._SFO-1._0001.1", 10),
            ("data_test.00000012.debug_FilterCrash.daq.RAW._lb0001._SFO-1._0101.writing", 13),
            ("data_test.00000020.sfo-1.journal", 21),
            ("data_test.4294967294.physics_Main.daq.RAW._lb0001._SFO-1._0001.data", u32::MAX),
        ] {
            add(name);
            assert_eq!(claim_in(&directory, None).unwrap().number, next, "{name}");
        }
        assert_eq!(claim_in(&directory, Some(8)).unwrap().number, 8);
        let error = claim_in(&directory, Some(7)).unwrap_err().to_string();
        let file = directory.join("data_test.00000007.physics_Main.daq.RAW._lb0001._SFO-1._0001.data");
        assert_eq!(error, format!("{} is there, of run 7 already: {REMEDY}", file.display()));
        add("data_test.4294967295.physics_Main.daq.RAW._lb0001._SFO-1._0001.data");
        assert!(matches!(claim_in(&directory, None), Err(RunNumberError::Exhausted { .. })));
    }
}

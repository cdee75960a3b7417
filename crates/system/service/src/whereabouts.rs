//! Where a service is, for commands of the same user on the same machine.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::key::SessionKey;

/// A file that says where a service is and what its key is, which its user alone can read. Dropping it removes it.
#[derive(Debug)]
pub struct Whereabouts {
    path: PathBuf,
}

/// What it says.
#[derive(Debug, Deserialize, Serialize)]
struct Said {
    address: SocketAddr,
    key: String,
}

/// Why a service is not found, or cannot be.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what is wrong")]
pub enum WhereaboutsError {
    #[error("{}: {cause}", path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error("{} belongs to somebody else: nothing secret is put there", path.display())]
    Foreign { path: PathBuf },
    #[error("neither XDG_RUNTIME_DIR nor HOME names a folder: nobody is told where `weir serve` is")]
    NoPlace,
    #[error("no `weir serve` of yours runs on this machine{}", of(name))]
    None { name: Option<String> },
    #[error("several `weir serve` of yours run on this machine: name one of the partitions {0} with --partition")]
    Several(String),
    #[error("{} is not what `weir serve` writes: {cause}", path.display())]
    Damaged { path: PathBuf, cause: serde_json::Error },
}

fn of(name: &Option<String>) -> String {
    name.as_ref().map_or(String::new(), |name| format!(" for the partition {name}"))
}

impl Whereabouts {
    /// Says where the service of a partition is. A file that a former one has left is replaced.
    ///
    /// # Errors
    /// It cannot be written.
    ///
    /// # Panics
    /// Never: texts are JSON.
    pub fn say(partition: &str, address: SocketAddr, key: &SessionKey) -> Result<Self, WhereaboutsError> {
        let directory = directory()?;
        let path = directory.join(format!("{partition}.json"));
        let failed = |cause| WhereaboutsError::File { path: path.clone(), cause };
        DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(failed)?;
        if fs::symlink_metadata(&directory).map_err(failed)?.uid() != rustix::process::getuid().as_raw() {
            return Err(WhereaboutsError::Foreign { path: directory });
        }
        let said = Said { address, key: key.text().to_owned() };
        let text = serde_json::to_string(&said).expect("texts are JSON");
        let temporary = directory.join(format!(".{partition}.{}", std::process::id()));
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary).map_err(failed)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&temporary, &path));
        written.map_err(failed)?;
        Ok(Self { path })
    }

    /// Where the service of a partition is, or the only one there is, and its key.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn find(partition: Option<&str>) -> Result<(SocketAddr, String), WhereaboutsError> {
        let directory = directory()?;
        let path = match partition {
            Some(name) => directory.join(format!("{name}.json")),
            None => only(&directory)?,
        };
        let text = fs::read_to_string(&path).map_err(|cause| match cause.kind() {
            io::ErrorKind::NotFound => WhereaboutsError::None { name: partition.map(str::to_owned) },
            _ => WhereaboutsError::File { path: path.clone(), cause },
        })?;
        let said: Said =
            serde_json::from_str(&text).map_err(|cause| WhereaboutsError::Damaged { path: path.clone(), cause })?;
        Ok((said.address, said.key))
    }
}

impl Drop for Whereabouts {
    fn drop(&mut self) {
        // Somebody may have removed it.
        let _ = fs::remove_file(&self.path);
    }
}

fn only(directory: &Path) -> Result<PathBuf, WhereaboutsError> {
    let names = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> =
        names.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect();
    found.sort();
    match found.as_slice() {
        [] => Err(WhereaboutsError::None { name: None }),
        [only] => Ok(only.clone()),
        several => {
            let names = several.iter().filter_map(|path| path.file_stem()).map(|name| name.to_string_lossy());
            Err(WhereaboutsError::Several(names.collect::<Vec<_>>().join(", ")))
        }
    }
}

/// A folder of this user alone.
pub(crate) fn directory() -> Result<PathBuf, WhereaboutsError> {
    let named =
        |name, folder| std::env::var_os(name).filter(|path| !path.is_empty()).map(|path| Path::new(&path).join(folder));
    named("XDG_RUNTIME_DIR", "weir").or_else(|| named("HOME", ".weir")).ok_or(WhereaboutsError::NoPlace)
}

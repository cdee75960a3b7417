//! Where a link is: `shm:NAME`, `shm:PARTITION/NAME`, `shm:/PATH`, `tcp://HOST:PORT`, `udp://HOST:PORT`, `file:/PATH`.

use std::fmt;
use std::fs;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use transport::error::OsError;

use crate::error::LinkError;

/// Where an intake listens and a source connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A socket in the file system, over which shared memory is set up.
    Shared(PathBuf),
    /// A host and a port.
    Tcp(String),
    /// An own host and a port, to which a board sends datagrams.
    Udp(String),
    /// An own host and a port, to which an S-LINK connects.
    Slink(String),
    /// A file of frames, a named pipe, or a directory of such files.
    File(PathBuf),
}

impl Address {
    /// Of an intake of this partition: `shm:NAME` is a socket in the [folder](runtime_folder) of the partition.
    ///
    /// # Errors
    /// What is no address.
    pub fn of_intake(at: &str, partition: &str) -> Result<Self, LinkError> {
        Ok(match parse(at)? {
            Parsed::Tcp(place) => Self::Tcp(place.to_owned()),
            Parsed::Udp(place) => Self::Udp(place.to_owned()),
            Parsed::Slink(place) => Self::Slink(place.to_owned()),
            Parsed::File(path) => Self::File(path.into()),
            Parsed::Path(path) => Self::Shared(path.into()),
            Parsed::Named { partition: of, name } => Self::Shared(socket_in(&root(), of.unwrap_or(partition), name)),
        })
    }

    /// As a source finds it: `shm:NAME` in whatever partition of this user has a source of this name. `None` if there is none now.
    ///
    /// # Errors
    /// What is no address; several partitions with such a source.
    pub fn of_source(at: &str) -> Result<Option<Self>, LinkError> {
        Self::of_source_below(&root(), at)
    }

    fn of_source_below(root: &Path, at: &str) -> Result<Option<Self>, LinkError> {
        let (partition, name) = match parse(at)? {
            Parsed::Tcp(place) => return Ok(Some(Self::Tcp(place.to_owned()))),
            Parsed::Udp(_) | Parsed::Slink(_) | Parsed::File(_) => {
                let expected = "a source does not connect to what a device writes to";
                return Err(LinkError::Address { at: at.to_owned(), expected });
            }
            Parsed::Path(path) => return Ok(Some(Self::Shared(path.into()))),
            Parsed::Named { partition, name } => (partition, name),
        };
        if let Some(partition) = partition {
            return Ok(Some(Self::Shared(socket_in(root, partition, name))));
        }
        let entries = fs::read_dir(root).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        found.retain(|folder| folder.join(socket_name(name)).exists());
        found.sort();
        if found.len() > 1 {
            let names = found.iter().filter_map(|folder| folder.file_name()).map(|name| name.to_string_lossy());
            let partitions = names.collect::<Vec<_>>().join(", ");
            return Err(LinkError::Ambiguous { name: name.to_owned(), partitions });
        }
        Ok(found.pop().map(|folder| Self::Shared(folder.join(socket_name(name)))))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shared(path) => write!(f, "shm:{}", path.display()),
            Self::Tcp(place) => write!(f, "tcp://{place}"),
            Self::Udp(place) => write!(f, "udp://{place}"),
            Self::Slink(place) => write!(f, "slink://{place}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

/// The folder of a partition's sockets: `$XDG_RUNTIME_DIR/weir/PARTITION`, or `/tmp/weir-UID/PARTITION`.
pub fn runtime_folder(partition: &str) -> PathBuf {
    root().join(partition)
}

/// Makes the folder of a socket where there is none. One in the temporary folder of all users must be ours alone.
///
/// # Errors
/// It cannot be made, or is not ours alone.
pub fn make_folder(socket: &Path) -> Result<(), LinkError> {
    let Some(folder) = socket.parent() else { return Ok(()) };
    if !folder.starts_with(root()) {
        return Ok(());
    }
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| OsError { call: "mkdir", code: error.raw_os_error().unwrap_or_default() })?;
    for folder in [folder, &root()] {
        let found = fs::symlink_metadata(folder);
        let is_ours = found.is_ok_and(|found| {
            found.is_dir() && found.uid() == rustix::process::geteuid().as_raw() && found.mode() & 0o077 == 0
        });
        if !is_ours {
            return Err(LinkError::Folder { folder: folder.display().to_string() });
        }
    }
    Ok(())
}

/// Removes the folder of a socket that is gone, if it is one of those that we make and holds nothing else.
pub fn remove_folder(socket: &Path) {
    let root = root();
    for folder in socket.ancestors().skip(1).take_while(|folder| folder.starts_with(&root)) {
        // One that holds something stays.
        if fs::remove_dir(folder).is_err() {
            return;
        }
    }
}

enum Parsed<'a> {
    Tcp(&'a str),
    Udp(&'a str),
    Slink(&'a str),
    File(&'a str),
    Path(&'a str),
    Named { partition: Option<&'a str>, name: &'a str },
}

/// Tries the addresses of a host and a port in turn. Returns what the first attempt that succeeds gives, or the error of the last.
pub(crate) fn by_any_address<T>(place: &str, attempt: impl Fn(SocketAddr) -> io::Result<T>) -> io::Result<T> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in place.to_socket_addrs()? {
        match attempt(address) {
            Ok(made) => return Ok(made),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn parse(at: &str) -> Result<Parsed<'_>, LinkError> {
    let refused = |expected| LinkError::Address { at: at.to_owned(), expected };
    if let Some((carrier @ ("tcp" | "udp" | "slink"), place)) = at.split_once("://") {
        let port = place.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
        port.and_then(|port| port.parse::<u16>().ok()).ok_or(refused("no host and port"))?;
        return Ok(match carrier {
            "tcp" => Parsed::Tcp(place),
            "udp" => Parsed::Udp(place),
            _ => Parsed::Slink(place),
        });
    }
    if let Some(path) = at.strip_prefix("file:") {
        return path.starts_with('/').then_some(Parsed::File(path)).ok_or(refused("no path that begins with /"));
    }
    let place = at.strip_prefix("shm:").ok_or(refused("of no known kind"))?;
    if place.starts_with('/') {
        return Ok(Parsed::Path(place));
    }
    let (partition, name) = place.split_once('/').map_or((None, place), |(partition, name)| (Some(partition), name));
    let is_word = |word: &str| {
        let plain = |c: char| c.is_alphanumeric() || ['-', '_', '.'].contains(&c);
        !word.is_empty() && !word.starts_with('.') && word.chars().all(plain)
    };
    if !is_word(name) || !partition.is_none_or(is_word) {
        return Err(refused("a name of letters, digits, -, _ and ."));
    }
    Ok(Parsed::Named { partition, name })
}

fn root() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => Path::new(&folder).join("weir"),
        None => format!("/tmp/weir-{}", rustix::process::geteuid().as_raw()).into(),
    }
}

fn socket_in(root: &Path, partition: &str, name: &str) -> PathBuf {
    root.join(partition).join(socket_name(name))
}

fn socket_name(name: &str) -> String {
    format!("{name}.sock")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use testkit::TempDir;

    use super::Address;
    use crate::error::LinkError;

    #[test]
    fn a_name_is_found_in_the_one_partition_that_has_it() {
        let root = TempDir::new("link-address");
        let find = |at: &str| Address::of_source_below(root.path(), at);
        assert_eq!(find("shm:tlu"), Ok(None));
        let make = |partition: &str| {
            fs::create_dir_all(root.path().join(partition)).unwrap();
            fs::write(root.path().join(partition).join("tlu.sock"), "").unwrap();
        };
        make("one");
        assert_eq!(find("shm:tlu"), Ok(Some(Address::Shared(root.path().join("one/tlu.sock")))));
        make("two");
        let ambiguous = LinkError::Ambiguous { name: "tlu".into(), partitions: "one, two".into() };
        assert_eq!(find("shm:tlu"), Err(ambiguous));
        assert_eq!(find("shm:two/tlu"), Ok(Some(Address::Shared(root.path().join("two/tlu.sock")))));
    }

    #[test]
    fn addresses_are_understood_or_refused() {
        let of = |at: &str| Address::of_intake(at, "beam");
        assert_eq!(of("shm:/a/b.sock"), Ok(Address::Shared("/a/b.sock".into())));
        assert_eq!(of("file:/a/frames"), Ok(Address::File("/a/frames".into())));
        assert_eq!(of("tcp://127.0.0.1:0"), Ok(Address::Tcp("127.0.0.1:0".into())));
        assert_eq!(of("slink://127.0.0.1:0"), Ok(Address::Slink("127.0.0.1:0".into())));
        let Ok(Address::Shared(path)) = of("shm:tlu") else { panic!("a path") };
        assert!(path.ends_with(Path::new("beam/tlu.sock")), "{path:?}");
        for wrong in [
            "",
            "tlu",
            "shm:",
            "shm:..",
            "shm:../a",
            "shm:a/../b",
            "shm:a/b/c",
            "tcp://",
            "tcp://host",
            "tcp://:1",
            "tcp://h:99999",
            "slink://h",
            "file:",
            "file:frames",
        ] {
            assert!(matches!(of(wrong), Err(LinkError::Address { .. })), "{wrong}");
        }
    }
}

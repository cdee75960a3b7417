//! Bit numbers of level-1 items by their names in the detector description.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Why level-1 items cannot be found.
#[derive(Debug, thiserror::Error)]
pub enum ItemsError {
    /// The file system refused.
    #[error("cannot read {}, the detector description (input.detector): {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Not a detector description.
    #[error("{}: not JSON: {source}", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its line.
        source: serde_json::Error,
    },
    /// It does not list level-1 items.
    #[error("{}: key level1.items[{index}]: expected an object with a name and a bit from 0 to 31, found {found}", path.display())]
    Item {
        /// The file.
        path: PathBuf,
        /// Place in the list, from 0.
        index: usize,
        /// What is there.
        found: String,
    },
    /// The configuration names an item that is not there.
    #[error("input.prescales.{name}: unknown item; {} has {known}", path.display())]
    Unknown {
        /// The name.
        name: String,
        /// The file.
        path: PathBuf,
        /// The items there are.
        known: String,
    },
}

/// Replaces the names of items by their bits.
pub(crate) fn by_bit(path: &Path, prescales: &BTreeMap<String, u32>) -> Result<Vec<(u8, u32)>, ItemsError> {
    let items = read(path)?;
    let bit = |(name, prescale): (&String, &u32)| match items.iter().find(|(known, _)| known == name) {
        Some((_, bit)) => Ok((*bit, *prescale)),
        None => {
            let known = items.iter().map(|(known, _)| known.as_str()).collect::<Vec<_>>().join(", ");
            Err(ItemsError::Unknown { name: name.clone(), path: path.to_owned(), known })
        }
    };
    prescales.iter().map(bit).collect()
}

fn read(path: &Path) -> Result<Vec<(String, u8)>, ItemsError> {
    let io = |source| ItemsError::Io { path: path.to_owned(), source };
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(io(std::io::Error::other("it is not a regular file")));
    }
    let mut text = Vec::new();
    File::open(path).map_err(io)?.take(BYTES_MAX).read_to_end(&mut text).map_err(io)?;
    let root: Value = serde_json::from_slice(&text).map_err(|source| ItemsError::Json { path: path.into(), source })?;
    let illegal = |index, found: &Value| ItemsError::Item { path: path.into(), index, found: found.to_string() };
    let list = &root["level1"]["items"];
    let items = list.as_array().ok_or_else(|| illegal(0, list))?;
    let item = |(index, item): (usize, &Value)| {
        let bit = item["bit"].as_u64().filter(|bit| *bit < 32);
        let named = item["name"].as_str().zip(bit);
        named.map(|(name, bit)| (name.to_owned(), bit as u8)).ok_or_else(|| illegal(index, item))
    };
    items.iter().enumerate().map(item).collect()
}

/// Hundred times what a description has.
const BYTES_MAX: u64 = 1 << 20;

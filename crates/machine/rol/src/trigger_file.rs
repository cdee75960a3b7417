//! Triggers from a file that people write.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dataflow::level1::trigger::{Trigger, TriggerSource};
use dataflow::message::{ROIS_MAX, Roi};
use serde::Deserialize;

use crate::emulator::{ETA_MAX, PI, TOWERS_ETA, TOWERS_PHI, tower};
use crate::input_index;

/// The triggers of a text file, one JSON object on each line. Empty lines and lines that begin with `#` are left out.
///
/// ```text
/// {"bcid": 12, "trigger_type": 132, "items": 8, "rois": [{"kind": "em", "eta": 0.5, "phi": 3.1, "et_mev": 25000, "thresholds": 64}]}
/// ```
///
/// | key of an event | | if absent |
/// |---|---|---|
/// | `bcid` | bunch crossing, 0 to 4095 | 0 |
/// | `trigger_type` | 0 to 255 | 128, physics |
/// | `items` | level-1 items after their prescale, one bit each | 1 |
/// | `rois` | at most 255 regions of interest | none |
///
/// | key of a region | | if absent |
/// |---|---|---|
/// | `kind` | `em`, `jet`, `muon`, `xe` or `te` | required |
/// | `eta`, `phi` | position; φ from 0 to below 2π | 0 |
/// | `ieta`, `iphi` | tower, 0 to 255 | from `eta` and `phi` |
/// | `et_mev` | transverse energy in MeV | 0 |
/// | `aux_mev` | two energies in MeV | 0, 0 |
/// | `thresholds` | thresholds passed, one bit each | 1 |
#[derive(Clone, Debug)]
pub struct FileTriggers {
    triggers: Arc<Vec<Trigger>>,
    repeat: bool,
}

/// Why a file of triggers cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TriggerFileError {
    /// The file system refused.
    #[error("cannot read {}, the triggers of level1.file: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A line that is no trigger.
    #[error("{}:{line}: {message}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong, what was expected.
        message: String,
    },
    /// More than is kept in memory.
    #[error("{}:{line}: the file has more than {limit} {what}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Of what there is too much.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// There is nothing to send.
    #[error("no trigger in {}", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

impl FileTriggers {
    /// Reads the file. The triggers end with it, or with `repeat` go round without end.
    ///
    /// # Errors
    /// A file that cannot be read, has a line that is no trigger, has none at all, or too many.
    pub fn read(path: &Path, repeat: bool) -> Result<Self, TriggerFileError> {
        let io = |source| TriggerFileError::Io { path: path.to_owned(), source };
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            return Err(io(std::io::Error::other("it is not a regular file")));
        }
        let mut reader = BufReader::new(File::open(path).map_err(io)?);
        let (mut triggers, mut rois, mut text) = (Vec::new(), 0, Vec::new());
        for line in 1.. {
            text.clear();
            let read = reader.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut text).map_err(io)?;
            if read == 0 {
                break;
            }
            let too_large = |what, limit| TriggerFileError::TooLarge { path: path.to_owned(), line, what, limit };
            if text.len() > LINE_BYTES_MAX {
                return Err(too_large("bytes in a line", LINE_BYTES_MAX));
            }
            let text = text.trim_ascii();
            if text.is_empty() || text.starts_with(b"#") {
                continue;
            }
            let trigger = parse(text).map_err(|message| TriggerFileError::Line { path: path.into(), line, message })?;
            rois += trigger.rois.len();
            triggers.push(trigger);
            if triggers.len() > TRIGGERS_MAX || rois > FILE_ROIS_MAX {
                return Err(too_large("triggers or regions of interest", TRIGGERS_MAX));
            }
        }
        if triggers.is_empty() {
            return Err(TriggerFileError::Empty { path: path.to_owned() });
        }
        Ok(Self { triggers: Arc::new(triggers), repeat })
    }

    /// Number of triggers in the file.
    pub fn events(&self) -> usize {
        self.triggers.len()
    }
}

impl TriggerSource for FileTriggers {
    fn trigger(&mut self, ordinal: u64) -> Option<Trigger> {
        input_index(ordinal, self.triggers.len(), self.repeat).map(|index| self.triggers[index].clone())
    }
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Line {
    bcid: u16,
    trigger_type: u8,
    items: u32,
    rois: Vec<Region>,
}

impl Default for Line {
    fn default() -> Self {
        Self { bcid: 0, trigger_type: PHYSICS, items: 1, rois: Vec::new() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Region {
    kind: RoiType,
    #[serde(default)]
    eta: f32,
    #[serde(default)]
    phi: f32,
    ieta: Option<u8>,
    iphi: Option<u8>,
    #[serde(default)]
    et_mev: i32,
    #[serde(default)]
    aux_mev: [i32; 2],
    #[serde(default = "one")]
    thresholds: u32,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
enum RoiType {
    Em = 0,
    Jet = 1,
    Muon = 2,
    Xe = 3,
    Te = 4,
}

const fn one() -> u32 {
    1
}

fn parse(text: &[u8]) -> Result<Trigger, String> {
    let line: Line = serde_json::from_slice(text).map_err(|error| {
        let message = error.to_string();
        // The line that the library counts is always the first.
        message.replace(" at line 1 column ", ", column ")
    })?;
    if line.bcid > BCID_MAX {
        return Err(format!("bcid: expected 0 to {BCID_MAX}, found {}", line.bcid));
    }
    if line.rois.len() > ROIS_MAX {
        return Err(format!("rois: expected at most {ROIS_MAX}, found {}", line.rois.len()));
    }
    let rois =
        line.rois.into_iter().enumerate().map(|(index, region)| roi(index, &region)).collect::<Result<_, _>>()?;
    Ok(Trigger { bcid: line.bcid, trigger_type: line.trigger_type, items: line.items, rois })
}

fn roi(index: usize, region: &Region) -> Result<Roi, String> {
    let Region { kind, eta, phi, ieta, iphi, et_mev, aux_mev, thresholds } = *region;
    if !(-ETA_LIMIT..=ETA_LIMIT).contains(&eta) {
        return Err(format!("rois[{index}].eta: expected a number from -{ETA_LIMIT} to {ETA_LIMIT}, found {eta}"));
    }
    if !(0.0..2.0 * PI).contains(&phi) {
        return Err(format!("rois[{index}].phi: expected a number from 0 to below 2π, found {phi}"));
    }
    let (nearest_ieta, nearest_iphi) = towers(kind, eta, phi);
    Ok(Roi {
        kind: kind as u8,
        ieta: ieta.unwrap_or(nearest_ieta),
        iphi: iphi.unwrap_or(nearest_iphi),
        eta,
        phi,
        et_mev,
        aux_mev,
        thresholds,
    })
}

/// The tower that level 1 would name: of clusters and jets the one below the nearest corner, else the one at the place.
fn towers(kind: RoiType, eta: f32, phi: f32) -> (u8, u8) {
    if matches!(kind, RoiType::Em | RoiType::Jet) {
        let corners = ((eta / ETA_MAX + 1.0) / 2.0 * TOWERS_ETA).round().clamp(1.0, TOWERS_ETA);
        let turn = (phi / (2.0 * PI) * TOWERS_PHI).round() + TOWERS_PHI - 1.0;
        return (corners as u8 - 1, (turn % TOWERS_PHI) as u8);
    }
    (tower(eta, ETA_MAX, TOWERS_ETA), tower(phi - PI, PI, TOWERS_PHI))
}

const PHYSICS: u8 = 0x80;
const BCID_MAX: u16 = eformat::Bcid::MAX;
const LINE_BYTES_MAX: usize = 1 << 20;
const TRIGGERS_MAX: usize = 1 << 20;
const FILE_ROIS_MAX: usize = 8 << 20;
const ETA_LIMIT: f32 = 10.0;

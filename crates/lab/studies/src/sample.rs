//! A sample under study: its rows, and what the description beside it says.

use std::io;
use std::path::{Path, PathBuf};

use rol::{SampleError, SampleFacts, SampleRow, read_rows};
use serde::Deserialize;

/// A sample file with its description.
pub(super) struct Sample {
    /// The file.
    pub(super) path: PathBuf,
    /// Its name without folder and suffix.
    pub(super) name: String,
    /// All rows.
    pub(super) rows: Vec<SampleRow>,
    /// Cross section and weights.
    pub(super) facts: SampleFacts,
    /// The rest of the description.
    pub(super) description: Description,
}

/// What a study needs of the description beside the numbers of [`SampleFacts`].
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Description {
    /// What was generated.
    #[serde(default)]
    pub(super) process: String,
    /// Mean number of interactions of pile-up.
    #[serde(default)]
    pub(super) mu: f64,
    /// Path of the detector description, from the folder of the sample.
    detector: Option<PathBuf>,
    /// Read-out layout.
    pub(super) layout: Option<String>,
    /// Whether the events that level 1 rejected were left out.
    #[serde(default)]
    pub(super) only_level1_accepted: bool,
}

/// Why a sample cannot be studied.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadSample {
    #[error(transparent)]
    Sample(#[from] SampleError),
    #[error("cannot read {}, the description that belongs beside the sample: {cause}", path.display())]
    NoDescription { path: PathBuf, cause: io::Error },
    #[error("{}: not the description of a sample: {cause}", path.display())]
    Description { path: PathBuf, cause: serde_json::Error },
    #[error("{}: expected a path that is UTF-8", path.display())]
    Path { path: PathBuf },
}

impl Sample {
    /// Reads a sample.
    pub(super) fn open(path: &Path) -> Result<Self, BadSample> {
        let bad_path = || BadSample::Path { path: path.to_owned() };
        let name = path.file_stem().and_then(|stem| stem.to_str()).ok_or_else(bad_path)?.to_owned();
        let absolute = std::path::absolute(path).map_err(|_| bad_path())?;
        let beside = path.with_extension("json");
        let rows = read_rows(path)?;
        let no_description = |cause| BadSample::NoDescription { path: beside.clone(), cause };
        let facts = match SampleFacts::beside(path) {
            Err(SampleError::NoFacts { source, .. }) => return Err(no_description(source)),
            facts => facts?,
        };
        let text = std::fs::read(&beside).map_err(no_description)?;
        let description =
            serde_json::from_slice(&text).map_err(|cause| BadSample::Description { path: beside.clone(), cause })?;
        Ok(Self { path: absolute, name, rows, facts, description })
    }

    /// The rows that level 1 accepted: event `n` of a run over this sample is row `n` of these.
    pub(super) fn accepted(&self) -> impl Iterator<Item = &SampleRow> {
        self.rows.iter().filter(|row| row.accepted)
    }

    /// The detector description of this sample, if it names one.
    pub(super) fn detector(&self) -> Option<PathBuf> {
        self.description.detector.as_ref().map(|detector| self.path.with_file_name(detector))
    }
}

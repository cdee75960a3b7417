//! All rows of a sample file with what the generator knows of them: for studies, not for runs.

use std::fmt::Display;
use std::fs::File;
use std::path::Path;

use dataflow::message::Roi;
use parquet::basic::Type;
use parquet::data_type::{BoolType, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::SchemaDescriptor;

use super::SampleError;
use super::column::{Column, ColumnError, Values};
use super::file::{find_column, open_regular};
use super::guard::without_panic;

/// One bunch crossing of a sample, accepted by level 1 or not.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleRow {
    /// Column `event_number`.
    pub event_number: u64,
    /// Column `weight`; 1 where the file has none.
    pub weight: f64,
    /// Whether level 1 accepted it.
    pub accepted: bool,
    /// Level-1 items after their prescale.
    pub items: u32,
    /// Regions of interest.
    pub rois: Vec<Roi>,
    /// What the generator made.
    pub truth: Vec<TruthParticle>,
    /// Payload bytes of all its fragments; known of accepted events only, else 0.
    pub payload_bytes: u64,
    /// Payload bytes of its largest fragment; known of accepted events only, else 0.
    pub fragment_bytes_max: u64,
    /// Its fragments; known of accepted events only, else 0.
    pub fragments: usize,
}

/// A particle of the generator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TruthParticle {
    /// What it is, in the numbering scheme of the Particle Data Group.
    pub pdg_id: i32,
    /// Where it comes from: 1 is the decay of the hard W or Z.
    pub origin: u8,
    /// Transverse momentum in GeV.
    pub pt_gev: f32,
    /// Pseudorapidity of its momentum.
    pub eta: f32,
    /// Azimuth of its momentum, from 0 to 2π.
    pub phi: f32,
    /// Pseudorapidity of the point where it meets the calorimeter.
    pub eta_calo: f32,
    /// Azimuth of that point, from 0 to 2π.
    pub phi_calo: f32,
}

/// Reads all rows of a file, in their order. Those that level 1 accepted have the order of [`Sample`](super::Sample).
///
/// Of the columns that a sample has for this, `truth` is a list of { `pdg_id` i32, `origin` u8, `pt`, `eta`, `phi`,
/// `eta_calo`, `phi_calo` f32 }. A file without it has no truth.
///
/// # Errors
/// A file that is not a sample, or is damaged.
pub fn read_rows(path: &Path) -> Result<Vec<SampleRow>, SampleError> {
    let file = open_regular(path)?;
    without_panic(|| Table::open(path, file)?.rows())
        .unwrap_or_else(|| Err(SampleError::Damaged { path: path.to_owned() }))
}

struct Table<'a> {
    path: &'a Path,
    reader: SerializedFileReader<File>,
}

/// One row group while it is read.
struct Group<'a> {
    path: &'a Path,
    reader: &'a dyn RowGroupReader,
    rows: usize,
    /// Row of the file that is the first of the group.
    first_row: u64,
}

impl<'a> Table<'a> {
    fn open(path: &'a Path, file: File) -> Result<Self, SampleError> {
        let reader = SerializedFileReader::new(file).map_err(|source| SampleError::Parquet {
            path: path.to_owned(),
            place: "file footer".to_owned(),
            source,
        })?;
        Ok(Self { path, reader })
    }

    fn rows(&self) -> Result<Vec<SampleRow>, SampleError> {
        let mut all = Vec::new();
        for index in 0..self.reader.num_row_groups() {
            let reader = self.reader.get_row_group(index).map_err(|source| SampleError::Parquet {
                path: self.path.to_owned(),
                place: format!("row group {index}"),
                source,
            })?;
            let rows = usize::try_from(reader.metadata().num_rows()).unwrap_or(usize::MAX);
            let group = Group { path: self.path, reader: &*reader, rows, first_row: all.len() as u64 };
            group.append_to(&mut all)?;
        }
        Ok(all)
    }
}

impl Group<'_> {
    fn append_to(&self, all: &mut Vec<SampleRow>) -> Result<(), SampleError> {
        let numbers = self.column::<Int64Type>("event_number", Type::INT64, "u64")?;
        let accepted = self.column::<BoolType>("l1_accept", Type::BOOLEAN, "a boolean")?;
        let items = self.column::<Int32Type>("l1_tap", Type::INT32, "u32")?;
        let weights = match self.has("weight") {
            true => Some(self.column::<DoubleType>("weight", Type::DOUBLE, "f64")?),
            false => None,
        };
        let mut rois = self.rois()?.into_iter();
        let mut truth = self.truth()?.into_iter();
        let first = all.len();
        for row in 0..self.rows {
            let weight = weights.as_ref().map_or(1.0, |weights| weights.row(row)[0]);
            if !weight.is_finite() {
                return Err(self.value(row, "weight", &"a finite number", &weight));
            }
            all.push(SampleRow {
                event_number: numbers.row(row)[0].cast_unsigned(),
                weight,
                accepted: accepted.row(row)[0],
                items: items.row(row)[0].cast_unsigned(),
                rois: rois.next().unwrap_or_default(),
                truth: truth.next().unwrap_or_default(),
                payload_bytes: 0,
                fragment_bytes_max: 0,
                fragments: 0,
            });
        }
        self.measure(&mut all[first..])
    }

    /// The sizes of accepted events. To unpack the payloads is most of the work, and most events are rejected.
    fn measure(&self, rows: &mut [SampleRow]) -> Result<(), SampleError> {
        if rows.iter().all(|row| !row.accepted) {
            return Ok(());
        }
        let payloads = self.column::<ByteArrayType>("fragments.payload", Type::BYTE_ARRAY, "a list of binary")?;
        for (index, row) in rows.iter_mut().enumerate().filter(|(_, row)| row.accepted) {
            let sizes = payloads.row(index).iter().map(|payload| payload.len() as u64);
            row.fragments = sizes.len();
            row.payload_bytes = sizes.clone().sum();
            row.fragment_bytes_max = sizes.max().unwrap_or(0);
        }
        Ok(())
    }

    fn rois(&self) -> Result<Vec<Vec<Roi>>, SampleError> {
        let bytes = |name| self.column::<Int32Type>(name, Type::INT32, "a list of u8");
        let mev = |name| self.column::<Int32Type>(name, Type::INT32, "a list of i32");
        let angles = |name| self.column::<FloatType>(name, Type::FLOAT, "a list of f32");
        let [kind, ieta, iphi] = [bytes("rois.type")?, bytes("rois.ieta")?, bytes("rois.iphi")?];
        let [eta, phi] = [angles("rois.eta")?, angles("rois.phi")?];
        let [et, aux0, aux1] = [mev("rois.et_mev")?, mev("rois.aux0_mev")?, mev("rois.aux1_mev")?];
        let thresholds = self.column::<Int32Type>("rois.thresholds", Type::INT32, "a list of u32")?;
        let roi = |row: usize, at: usize| {
            let byte = |name, column: &Column<i32>| {
                let value = column.row(row)[at];
                u8::try_from(value).map_err(|_| self.value(row, name, &"0 to 255", &value))
            };
            Ok(Roi {
                kind: byte("rois.type", &kind)?,
                ieta: byte("rois.ieta", &ieta)?,
                iphi: byte("rois.iphi", &iphi)?,
                eta: eta.row(row)[at],
                phi: phi.row(row)[at],
                et_mev: et.row(row)[at],
                aux_mev: [aux0.row(row)[at], aux1.row(row)[at]],
                thresholds: thresholds.row(row)[at].cast_unsigned(),
            })
        };
        let lengths = |row| {
            let ints = [&kind, &ieta, &iphi, &et, &aux0, &aux1, &thresholds].map(|column| column.row(row).len());
            let floats = [&eta, &phi].map(|column| column.row(row).len());
            [&ints[..], &floats[..]].concat()
        };
        self.lists("rois", &lengths, &roi)
    }

    fn truth(&self) -> Result<Vec<Vec<TruthParticle>>, SampleError> {
        if !self.has("truth") {
            return Ok(Vec::new());
        }
        let ints = |name| self.column::<Int32Type>(name, Type::INT32, "a list of i32");
        let floats = |name| self.column::<FloatType>(name, Type::FLOAT, "a list of f32");
        let [pdg_id, origin] = [ints("truth.pdg_id")?, ints("truth.origin")?];
        let [pt, eta, phi] = [floats("truth.pt")?, floats("truth.eta")?, floats("truth.phi")?];
        let [eta_calo, phi_calo] = [floats("truth.eta_calo")?, floats("truth.phi_calo")?];
        let particle = |row: usize, at: usize| {
            let origin = origin.row(row)[at];
            let origin = u8::try_from(origin).map_err(|_| self.value(row, "truth.origin", &"0 to 255", &origin))?;
            Ok(TruthParticle {
                pdg_id: pdg_id.row(row)[at],
                origin,
                pt_gev: pt.row(row)[at],
                eta: eta.row(row)[at],
                phi: phi.row(row)[at],
                eta_calo: eta_calo.row(row)[at],
                phi_calo: phi_calo.row(row)[at],
            })
        };
        let lengths = |row| {
            let ints = [&pdg_id, &origin].map(|column| column.row(row).len());
            let floats = [&pt, &eta, &phi, &eta_calo, &phi_calo].map(|column| column.row(row).len());
            [&ints[..], &floats[..]].concat()
        };
        self.lists("truth", &lengths, &particle)
    }

    /// The lists of all rows. The first of the `lengths` is that of the list, and the others are to be the same.
    fn lists<T>(
        &self,
        column: &'static str,
        lengths: &dyn Fn(usize) -> Vec<usize>,
        entry: &dyn Fn(usize, usize) -> Result<T, SampleError>,
    ) -> Result<Vec<Vec<T>>, SampleError> {
        let list = |row| {
            let lengths = lengths(row);
            if lengths.iter().any(|length| *length != lengths[0]) {
                let expected = format!("{} values in each of its columns", lengths[0]);
                return Err(self.value(row, column, &expected, &format!("{lengths:?}")));
            }
            (0..lengths[0]).map(|at| entry(row, at)).collect()
        };
        (0..self.rows).map(list).collect()
    }

    fn column<D: Values>(
        &self,
        name: &'static str,
        physical: Type,
        expected: &'static str,
    ) -> Result<Column<D::T>, SampleError> {
        let index = find_column(self.path, self.schema(), name, physical, expected)?;
        D::read(self.reader, index, self.rows).map_err(|error| match error {
            ColumnError::Parquet(source) => SampleError::Parquet {
                path: self.path.to_owned(),
                place: format!("rows {} to {}, column {name}", self.first_row, self.first_row + self.rows as u64),
                source,
            },
            ColumnError::Null(row) => self.value(row, name, &"a value", &"none"),
            ColumnError::Wide(row, value) => self.value(row, name, &"a number of 32 bits", &value),
        })
    }

    /// Whether there is a column, or a list, of this name.
    fn has(&self, name: &str) -> bool {
        self.schema().columns().iter().any(|column| column.path().parts().first().is_some_and(|part| part == name))
    }

    fn schema(&self) -> &SchemaDescriptor {
        self.reader.metadata().schema_descr()
    }

    fn value(&self, row: usize, column: &'static str, expected: &dyn Display, found: &dyn Display) -> SampleError {
        let (expected, found) = (expected.to_string(), found.to_string());
        SampleError::Value { path: self.path.to_owned(), row: self.first_row + row as u64, column, expected, found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sample;

    fn example(name: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/data").join(name)
    }

    #[test]
    fn accepted_rows_are_the_events_of_the_sample() {
        let path = example("zee_mu0.parquet");
        let rows = read_rows(&path).unwrap();
        let sample = Sample::load(&[&path]).unwrap();
        let accepted: Vec<&SampleRow> = rows.iter().filter(|row| row.accepted).collect();
        assert_eq!(accepted.len(), sample.events());
        for (event, row) in accepted.into_iter().enumerate() {
            assert_eq!((row.event_number, row.items), (sample.event_number(event), sample.items(event)));
            assert_eq!(row.rois, sample.trigger(event).rois);
            assert_eq!(row.payload_bytes, sample.event_payload_bytes(event) as u64);
            let largest = (0..row.fragments).map(|source| sample.payload(event, source).len()).max();
            assert_eq!(Some(row.fragment_bytes_max as usize), largest);
        }
        let rejected: Vec<u64> = rows.iter().filter(|row| !row.accepted).map(|row| row.event_number).collect();
        assert_eq!(rejected, sample.files()[0].rejected);
    }

    #[test]
    fn the_truth_of_each_event_has_the_electrons_of_its_boson() {
        for row in read_rows(&example("zee_mu0.parquet")).unwrap() {
            let hard = row.truth.iter().filter(|particle| particle.origin == 1);
            let mut electrons: Vec<i32> = hard.map(|particle| particle.pdg_id).filter(|id| id.abs() == 11).collect();
            electrons.sort_unstable();
            assert_eq!(electrons, [-11, 11], "event {}", row.event_number);
        }
    }

    #[test]
    fn what_is_no_sample_is_refused() {
        assert!(matches!(read_rows(&example("absent.parquet")), Err(SampleError::Io { .. })));
        assert!(matches!(read_rows(&example(".")), Err(SampleError::Io { .. })));
        assert!(matches!(read_rows(&example("replay.data")), Err(SampleError::Parquet { .. })));
    }
}

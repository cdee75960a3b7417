//! Reading one file of a sample.

use std::fmt::Display;
use std::fs::File;
use std::path::Path;

use dataflow::message::{ROIS_MAX, Roi};
use eformat::WORD_BYTES;
use parquet::basic::Type;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;
use parquet::schema::types::SchemaDescriptor;

use super::column::{Column, ColumnError, Values, can_be_read};
use super::guard::without_panic;
use super::{Event, Sample, SampleError, SampleFile};

/// Appends the accepted events of a file.
pub(super) fn append(path: &Path, sample: &mut Sample) -> Result<(), SampleError> {
    let file = open_regular(path)?;
    sample.files.push(SampleFile {
        path: path.to_owned(),
        events: sample.events.len()..sample.events.len(),
        rejected: Vec::new(),
    });
    without_panic(|| Table::open(path, file)?.append_to(sample))
        .unwrap_or_else(|| Err(SampleError::Damaged { path: path.to_owned() }))
}

/// Opens a file that is one.
pub(super) fn open_regular(path: &Path) -> Result<File, SampleError> {
    let io = |source| SampleError::Io { path: path.to_owned(), source };
    // Looked at before opening: to open a pipe waits for its writer.
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        return Err(io(std::io::Error::other("it is not a regular file")));
    }
    File::open(path).map_err(io)
}

struct Table<'a> {
    path: &'a Path,
    reader: SerializedFileReader<File>,
    columns: Columns,
}

/// Indices of the columns in the file.
struct Columns {
    accept: usize,
    bcid: usize,
    number: usize,
    trigger_type: usize,
    items: usize,
    weight: Option<usize>,
    process: Option<usize>,
    roi: [usize; 9],
    source_id: usize,
    payload: usize,
}

/// The columns of a row group.
struct Group {
    accept: Column<bool>,
    bcid: Column<i32>,
    number: Column<i64>,
    trigger_type: Column<i32>,
    items: Column<i32>,
    weight: Option<Column<f64>>,
    process: Option<Column<ByteArray>>,
    roi_type: Column<i32>,
    roi_tower: [Column<i32>; 2],
    roi_eta: Column<f32>,
    roi_phi: Column<f32>,
    roi_et: Column<i32>,
    roi_aux: [Column<i32>; 2],
    roi_thresholds: Column<i32>,
    source_id: Column<i32>,
    payload: Column<ByteArray>,
}

impl<'a> Table<'a> {
    fn open(path: &'a Path, file: File) -> Result<Self, SampleError> {
        let reader = SerializedFileReader::new(file).map_err(|source| SampleError::Parquet {
            path: path.to_owned(),
            place: "file footer".to_owned(),
            source,
        })?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let find = |name, physical, expected| find_column(path, schema, name, physical, expected);
        let find_if_there = |name: &'static str, physical, expected| {
            let is_there = schema.columns().iter().any(|column| column.path().parts() == [name]);
            is_there.then(|| find(name, physical, expected)).transpose()
        };
        let columns = Columns {
            accept: find("l1_accept", Type::BOOLEAN, "a boolean")?,
            bcid: find("bcid", Type::INT32, "u16")?,
            number: find("event_number", Type::INT64, "u64")?,
            trigger_type: find("l1_trigger_type", Type::INT32, "u8")?,
            items: find("l1_tap", Type::INT32, "u32")?,
            weight: find_if_there("weight", Type::DOUBLE, "f64")?,
            process: find_if_there("process", Type::BYTE_ARRAY, "a string")?,
            roi: [
                find("rois.type", Type::INT32, "a list of u8")?,
                find("rois.ieta", Type::INT32, "a list of u8")?,
                find("rois.iphi", Type::INT32, "a list of u8")?,
                find("rois.eta", Type::FLOAT, "a list of f32")?,
                find("rois.phi", Type::FLOAT, "a list of f32")?,
                find("rois.et_mev", Type::INT32, "a list of i32")?,
                find("rois.aux0_mev", Type::INT32, "a list of i32")?,
                find("rois.aux1_mev", Type::INT32, "a list of i32")?,
                find("rois.thresholds", Type::INT32, "a list of u32")?,
            ],
            source_id: find("fragments.source_id", Type::INT32, "a list of u32")?,
            payload: find("fragments.payload", Type::BYTE_ARRAY, "a list of binary")?,
        };
        Ok(Self { path, reader, columns })
    }

    fn append_to(&self, sample: &mut Sample) -> Result<(), SampleError> {
        let mut first_row = 0;
        for index in 0..self.reader.num_row_groups() {
            let group = self.reader.get_row_group(index).map_err(|source| SampleError::Parquet {
                path: self.path.to_owned(),
                place: format!("row group {index}"),
                source,
            })?;
            let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(usize::MAX);
            let columns = self.read_group(&*group, rows, first_row)?;
            for row in 0..rows {
                if columns.accept.row(row)[0] {
                    self.append_event(&columns, row, first_row + row as u64, sample)?;
                } else {
                    let file = sample.files.last_mut().expect("the file was added before it is read");
                    file.rejected.push(columns.number.row(row)[0].cast_unsigned());
                }
            }
            first_row += rows as u64;
        }
        Ok(())
    }

    fn read_group(&self, group: &dyn RowGroupReader, rows: usize, first_row: u64) -> Result<Group, SampleError> {
        let columns = &self.columns;
        let [roi_type, ieta, iphi, roi_eta, roi_phi, roi_et, aux0, aux1, roi_thresholds] = columns.roi;
        let ints = |name, index| self.read::<Int32Type>(group, name, index, rows, first_row);
        let floats = |name, index| self.read::<FloatType>(group, name, index, rows, first_row);
        Ok(Group {
            accept: self.read::<BoolType>(group, "l1_accept", columns.accept, rows, first_row)?,
            bcid: ints("bcid", columns.bcid)?,
            number: self.read::<Int64Type>(group, "event_number", columns.number, rows, first_row)?,
            trigger_type: ints("l1_trigger_type", columns.trigger_type)?,
            items: ints("l1_tap", columns.items)?,
            weight: match columns.weight {
                Some(index) => Some(self.read::<DoubleType>(group, "weight", index, rows, first_row)?),
                None => None,
            },
            process: match columns.process {
                Some(index) => Some(self.read::<ByteArrayType>(group, "process", index, rows, first_row)?),
                None => None,
            },
            roi_type: ints("rois.type", roi_type)?,
            roi_tower: [ints("rois.ieta", ieta)?, ints("rois.iphi", iphi)?],
            roi_eta: floats("rois.eta", roi_eta)?,
            roi_phi: floats("rois.phi", roi_phi)?,
            roi_et: ints("rois.et_mev", roi_et)?,
            roi_aux: [ints("rois.aux0_mev", aux0)?, ints("rois.aux1_mev", aux1)?],
            roi_thresholds: ints("rois.thresholds", roi_thresholds)?,
            source_id: ints("fragments.source_id", columns.source_id)?,
            payload: self.read::<ByteArrayType>(group, "fragments.payload", columns.payload, rows, first_row)?,
        })
    }

    fn read<D: Values>(
        &self,
        group: &dyn RowGroupReader,
        column: &'static str,
        index: usize,
        rows: usize,
        first_row: u64,
    ) -> Result<Column<D::T>, SampleError> {
        D::read(group, index, rows).map_err(|error| match error {
            ColumnError::Parquet(source) => SampleError::Parquet {
                path: self.path.to_owned(),
                place: format!("rows {first_row} to {}, column {column}", first_row + rows as u64),
                source,
            },
            ColumnError::Null(row) => self.value(first_row + row as u64, column, &"a value", &"none"),
            ColumnError::Wide(row, value) => self.value(first_row + row as u64, column, &"a number of 32 bits", &value),
        })
    }

    fn append_event(&self, group: &Group, row: usize, file_row: u64, sample: &mut Sample) -> Result<(), SampleError> {
        self.append_fragments(group, row, file_row, sample)?;
        self.append_rois(group, row, file_row, sample)?;
        let narrow = |column, found: i32, max: u16| {
            let legal = u16::try_from(found).ok().filter(|value| *value <= max);
            legal.ok_or_else(|| self.value(file_row, column, &format!("0 to {max}"), &found))
        };
        let weight = group.weight.as_ref().map_or(1.0, |weights| weights.row(row)[0]);
        if !weight.is_finite() {
            return Err(self.value(file_row, "weight", &"a finite number", &weight));
        }
        let process = group.process.as_ref().map_or(&[][..], |names| names.row(row)[0].data());
        let process = self.process(process, file_row, sample)?;
        sample.events.push(Event {
            weight,
            process,
            bcid: narrow("bcid", group.bcid.row(row)[0], BCID_MAX)?,
            trigger_type: narrow("l1_trigger_type", group.trigger_type.row(row)[0], 0xff)? as u8,
            items: group.items.row(row)[0].cast_unsigned(),
            number: group.number.row(row)[0].cast_unsigned(),
            rois_end: u32::try_from(sample.rois.len()).map_err(|_| self.too_large(file_row))?,
        });
        sample.files.last_mut().expect("the file was added before it is read").events.end = sample.events.len();
        Ok(())
    }

    /// Index of a process.
    fn process(&self, name: &[u8], file_row: u64, sample: &mut Sample) -> Result<u8, SampleError> {
        if let Some(known) = sample.processes.iter().position(|known| known.as_bytes() == name) {
            return Ok(u8::try_from(known).expect("as many processes as an index takes"));
        }
        let Ok(index) = u8::try_from(sample.processes.len()) else {
            return Err(self.value(file_row, "process", &"at most 255 different names", &"one more"));
        };
        let Ok(name) = std::str::from_utf8(name) else {
            return Err(self.value(file_row, "process", &"UTF-8", &"other bytes"));
        };
        sample.processes.push(name.to_owned());
        Ok(index)
    }

    fn append_fragments(
        &self,
        group: &Group,
        row: usize,
        file_row: u64,
        sample: &mut Sample,
    ) -> Result<(), SampleError> {
        let sources = group.source_id.row(row);
        let payloads = group.payload.row(row);
        self.check_sources(sources, file_row, sample)?;
        if payloads.len() != sources.len() {
            let expected = format!("{} payloads, one per source", sources.len());
            return Err(self.value(file_row, "fragments.payload", &expected, &payloads.len()));
        }
        for payload in payloads {
            let payload = payload.data();
            if !payload.len().is_multiple_of(WORD_BYTES) {
                let found = format!("{} bytes", payload.len());
                return Err(self.value(file_row, "fragments.payload", &"whole words of 4 bytes", &found));
            }
            let end = u32::try_from(sample.payload.len() + payload.len()).map_err(|_| self.too_large(file_row))?;
            sample.payload.extend_from_slice(payload);
            sample.offsets.push(end);
        }
        Ok(())
    }

    /// The first event of all decides on the sources.
    fn check_sources(&self, sources: &[i32], file_row: u64, sample: &mut Sample) -> Result<(), SampleError> {
        let sources = || sources.iter().map(|source| source.cast_unsigned());
        if sample.events.is_empty() && sample.source_ids.is_empty() {
            sample.source_ids = sources().collect();
            if sample.source_ids.is_empty() || !sample.source_ids.is_sorted_by(|a, b| a < b) {
                let found = format!("{} sources that are not", sample.source_ids.len());
                return Err(self.value(file_row, "fragments.source_id", &"at least one source, rising", &found));
            }
        }
        if sources().eq(sample.source_ids.iter().copied()) {
            return Ok(());
        }
        let expected = format!("the {} sources of the first event", sample.source_ids.len());
        let found = format!("{} sources, or others", sources().len());
        Err(self.value(file_row, "fragments.source_id", &expected, &found))
    }

    fn append_rois(&self, group: &Group, row: usize, file_row: u64, sample: &mut Sample) -> Result<(), SampleError> {
        let types = group.roi_type.row(row);
        let (eta, phi) = (group.roi_eta.row(row), group.roi_phi.row(row));
        let (et, thresholds) = (group.roi_et.row(row), group.roi_thresholds.row(row));
        let [ieta, iphi] = [0, 1].map(|which| group.roi_tower[which].row(row));
        let [aux0, aux1] = [0, 1].map(|which| group.roi_aux[which].row(row));
        let lengths = [ieta, iphi, et, aux0, aux1, thresholds].map(<[i32]>::len);
        if lengths != [types.len(); 6] || [eta, phi].map(<[f32]>::len) != [types.len(); 2] {
            let expected = format!("{} values in each of its columns", types.len());
            return Err(self.value(file_row, "rois", &expected, &format!("{lengths:?}")));
        }
        if types.len() > ROIS_MAX {
            let expected = format!("at most {ROIS_MAX} regions of interest");
            return Err(self.value(file_row, "rois", &expected, &types.len()));
        }
        for index in 0..types.len() {
            let byte =
                |column, value: i32| u8::try_from(value).map_err(|_| self.value(file_row, column, &"0 to 255", &value));
            sample.rois.push(Roi {
                kind: byte("rois.type", types[index])?,
                ieta: byte("rois.ieta", ieta[index])?,
                iphi: byte("rois.iphi", iphi[index])?,
                eta: eta[index],
                phi: phi[index],
                et_mev: et[index],
                aux_mev: [aux0[index], aux1[index]],
                thresholds: thresholds[index].cast_unsigned(),
            });
        }
        Ok(())
    }

    fn value(&self, row: u64, column: &'static str, expected: &dyn Display, found: &dyn Display) -> SampleError {
        let (expected, found) = (expected.to_string(), found.to_string());
        SampleError::Value { path: self.path.to_owned(), row, column, expected, found }
    }

    fn too_large(&self, row: u64) -> SampleError {
        SampleError::TooLarge { path: self.path.to_owned(), row, limit: u64::from(u32::MAX) }
    }
}

/// The column `name`: its first and its last part. Writers call the parts between, of a list, differently.
pub(super) fn find_column(
    path: &Path,
    schema: &SchemaDescriptor,
    name: &'static str,
    physical: Type,
    expected: &'static str,
) -> Result<usize, SampleError> {
    let (table, field) = name.split_once('.').map_or((name, None), |(table, field)| (table, Some(field)));
    let is_named = |parts: &[String]| match field {
        None => parts.len() == 1 && parts[0] == table,
        Some(field) => parts.len() > 1 && parts[0] == table && parts[parts.len() - 1] == field,
    };
    let error = |found: String| SampleError::Column { path: path.to_owned(), column: name, expected, found };
    let mut columns = schema.columns().iter();
    let index =
        columns.position(|column| is_named(column.path().parts())).ok_or_else(|| error("no such column".into()))?;
    let column = schema.column(index);
    let levels = if field.is_some() { 1 } else { 0 };
    if can_be_read(column.physical_type(), physical) && column.max_rep_level() == levels {
        return Ok(index);
    }
    Err(error(format!("{} with {} levels of lists", column.physical_type(), column.max_rep_level())))
}

/// What the 12 bits of the field hold.
const BCID_MAX: u16 = eformat::Bcid::MAX;

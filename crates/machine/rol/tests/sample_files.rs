//! Samples with values that no sample has: the error says where and what was expected.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use rol::{Sample, SampleError};
use testkit::TempDir;

/// Two rows, of which level 1 accepted the second; one region of interest, if not said otherwise, and two fragments each.
struct Content {
    schema: String,
    bcid: Vec<i32>,
    bcid_levels: Option<Vec<i16>>,
    sources: Vec<i32>,
    payload: Vec<u8>,
    /// Regions of interest of the second row.
    rois: usize,
    /// Of the second row, and the column with it that samples may lack.
    weight: Option<f64>,
}

impl Default for Content {
    fn default() -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            bcid: vec![5000, 12],
            bcid_levels: None,
            sources: vec![1, 2, 1, 2],
            payload: vec![9; 8],
            rois: 1,
            weight: None,
        }
    }
}

impl Content {
    fn write(&self, path: &Path) -> Result<(), ParquetError> {
        let optional = self.weight.map_or("", |_| "required double weight; required binary process; }");
        let schema = match optional {
            "" => self.schema.clone(),
            columns => self.schema.trim_end().strip_suffix('}').expect("a schema ends so").to_owned() + columns,
        };
        let schema = Arc::new(parse_message_type(&schema)?);
        let mut writer = SerializedFileWriter::new(File::create(path)?, schema, Arc::default())?;
        let mut group = writer.next_row_group()?;
        put::<BoolType>(&mut group, &[false, true], None, None)?;
        put::<Int32Type>(&mut group, &self.bcid, self.bcid_levels.as_deref(), None)?;
        put::<Int64Type>(&mut group, &[70, 71], None, None)?;
        put::<Int32Type>(&mut group, &[0x84, 0x84], None, None)?;
        put::<Int32Type>(&mut group, &[0, 8], None, None)?;
        let repeats: Vec<i16> = [vec![0, 0], vec![1; self.rois - 1]].concat();
        let levels = (Some(vec![1; repeats.len()]), Some(repeats));
        let levels = (levels.0.as_deref(), levels.1.as_deref());
        let ints = |[first, second]: [i32; 2]| [vec![first], vec![second; self.rois]].concat();
        let floats = |[first, second]: [f32; 2]| [vec![first], vec![second; self.rois]].concat();
        for column in [[2, 1], [10, 11], [20, 21]] {
            put::<Int32Type>(&mut group, &ints(column), levels.0, levels.1)?;
        }
        for column in [[0.5, -1.5], [3.0, 6.0]] {
            put::<FloatType>(&mut group, &floats(column), levels.0, levels.1)?;
        }
        for column in [[20_000, 30_000], [100, 200], [-1, -2], [3, -1]] {
            put::<Int32Type>(&mut group, &ints(column), levels.0, levels.1)?;
        }
        let two_each = (Some([1, 1, 1, 1].as_slice()), Some([0, 1, 0, 1].as_slice()));
        put::<Int32Type>(&mut group, &self.sources, two_each.0, two_each.1)?;
        let payloads = [vec![1; 4], vec![2; 4], vec![], self.payload.clone()].map(Into::into);
        put::<ByteArrayType>(&mut group, &payloads, two_each.0, two_each.1)?;
        if let Some(weight) = self.weight {
            put::<DoubleType>(&mut group, &[1.0, weight], None, None)?;
            put::<ByteArrayType>(&mut group, &["minbias", "zee"].map(Into::into), None, None)?;
        }
        group.close()?;
        writer.close()?;
        Ok(())
    }
}

fn put<D: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    values: &[D::T],
    definition: Option<&[i16]>,
    repetition: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("the schema has the column");
    column.typed::<D>().write_batch(values, definition, repetition)?;
    column.close()
}

fn load(content: &Content) -> Result<Sample, SampleError> {
    let directory = TempDir::new("rol-sample-files");
    let path: PathBuf = directory.join("made.parquet");
    content.write(&path).unwrap();
    Sample::load(&[path])
}

fn message(content: &Content) -> String {
    let error = load(content).unwrap_err().to_string();
    error[error.find("made.parquet").unwrap_or_else(|| panic!("{error}"))..].to_owned()
}

#[test]
fn a_small_sample_is_read() {
    let sample = load(&Content::default()).unwrap();
    assert_eq!((sample.events(), sample.source_ids()), (1, [1, 2].as_slice()));
    assert_eq!((sample.payload(0, 0), sample.payload(0, 1)), ([].as_slice(), [9; 8].as_slice()));
    let trigger = sample.trigger(0);
    assert_eq!((trigger.bcid, trigger.trigger_type, trigger.items, trigger.rois.len()), (12, 0x84, 8, 1));
    assert_eq!(sample.event_number(0), 71);
    let roi = trigger.rois[0];
    assert_eq!((roi.ieta, roi.iphi, roi.aux_mev), (11, 21, [200, -2]));
    assert_eq!((roi.kind, roi.eta, roi.phi, roi.et_mev, roi.thresholds), (1, -1.5, 6.0, 30_000, u32::MAX));
}

#[test]
fn weight_and_process_may_be_absent() {
    let sample = load(&Content::default()).unwrap();
    assert_eq!((sample.weight(0).to_bits(), sample.process(0)), (1_f64.to_bits(), ""));
    let sample = load(&Content { weight: Some(0.25), ..Content::default() }).unwrap();
    assert_eq!((sample.weight(0).to_bits(), sample.process(0)), (0.25_f64.to_bits(), "zee"));
    assert_eq!((sample.files()[0].events.clone(), sample.files()[0].rejected.as_slice()), (0..1, [70].as_slice()));
    assert_eq!(sample.event_payload_bytes(0), 8);
    assert_eq!(
        message(&Content { weight: Some(f64::NAN), ..Content::default() }),
        "made.parquet: row 1, column weight: expected a finite number, found NaN"
    );
}

#[test]
fn a_column_that_is_missing_or_of_another_type_is_named() {
    let schema = SCHEMA.replace("int32 bcid", "int32 bunch");
    assert_eq!(
        message(&Content { schema, ..Content::default() }),
        "made.parquet: column bcid: expected u16, found no such column: not a sample of collisions"
    );
    let schema = SCHEMA.replace("int32 source_id", "int32 id");
    assert!(message(&Content { schema, ..Content::default() }).contains("column fragments.source_id"));
}

#[test]
fn values_that_no_sample_has_are_named() {
    assert_eq!(
        message(&Content { bcid: vec![0, 4096], ..Content::default() }),
        "made.parquet: row 1, column bcid: expected 0 to 4095, found 4096"
    );
    assert_eq!(
        message(&Content { rois: 256, ..Content::default() }),
        "made.parquet: row 1, column rois: expected at most 255 regions of interest, found 256"
    );
    assert_eq!(load(&Content { rois: 255, ..Content::default() }).unwrap().trigger(0).rois.len(), 255);
    assert_eq!(
        message(&Content { payload: vec![1; 7], ..Content::default() }),
        "made.parquet: row 1, column fragments.payload: expected whole words of 4 bytes, found 7 bytes"
    );
    assert_eq!(
        message(&Content { sources: vec![1, 2, 2, 1], ..Content::default() }),
        "made.parquet: row 1, column fragments.source_id: expected at least one source, rising, found 2 sources that are not"
    );
}

#[test]
fn a_value_that_is_missing_is_named() {
    let schema = SCHEMA.replace("required int32 bcid", "optional int32 bcid");
    let content = Content { schema, bcid: vec![1], bcid_levels: Some(vec![1, 0]), ..Content::default() };
    assert_eq!(message(&content), "made.parquet: row 1, column bcid: expected a value, found none");
}

#[test]
fn files_of_other_sources_do_not_go_together() {
    let directory = TempDir::new("rol-two-samples");
    let files = ["first.parquet", "second.parquet"].map(|name| directory.join(name));
    Content::default().write(&files[0]).unwrap();
    Content { sources: vec![1, 3, 1, 3], ..Content::default() }.write(&files[1]).unwrap();
    let error = Sample::load(&files).unwrap_err().to_string();
    assert!(error.contains("second.parquet: row 1, column fragments.source_id"), "{error}");
    assert_eq!(Sample::load(&[&files[0], &files[0]]).unwrap().events(), 2);
}

const SCHEMA: &str = "message sample {
    required boolean l1_accept;
    required int32 bcid;
    required int64 event_number;
    required int32 l1_trigger_type;
    required int32 l1_tap;
    repeated group rois {
        required int32 type;
        required int32 ieta;
        required int32 iphi;
        required float eta;
        required float phi;
        required int32 et_mev;
        required int32 aux0_mev;
        required int32 aux1_mev;
        required int32 thresholds;
    }
    repeated group fragments {
        required int32 source_id;
        required binary payload;
    }
}";

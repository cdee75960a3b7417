//! Reading of the physics samples, a row group at a time.

use std::fs::File;
use std::path::Path;

use base::bulk::PageSlice;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use trigger::Roi;

#[derive(Clone)]
pub struct Event {
    pub number: u64,
    pub accepted: bool,
    pub weight: f64,
    /// Level-1 items after prescale.
    pub items: u32,
    pub rois: Vec<Roi>,
    /// In rising source identifier.
    pub fragments: Vec<(u32, PageSlice)>,
}

impl Event {
    pub fn payload(&self, source_id: u32) -> &PageSlice {
        let index = self.fragments.binary_search_by_key(&source_id, |(source_id, _)| *source_id).unwrap();
        &self.fragments[index].1
    }

    pub fn slices(&self) -> Vec<(u32, &[u8])> {
        self.fragments.iter().map(|(source_id, payload)| (*source_id, payload.as_bytes())).collect()
    }

    pub fn bytes(&self) -> usize {
        self.fragments.iter().map(|(_, payload)| payload.len()).sum()
    }
}

/// Calls `take` with every event of a file, those that level 1 rejected included.
pub fn for_each_event(path: &Path, mut take: impl FnMut(Event)) {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).unwrap();
        read_group(&*group).into_iter().for_each(&mut take);
    }
}

pub fn accepted(path: &Path) -> Vec<Event> {
    let mut events = Vec::new();
    for_each_event(path, |event| events.extend(event.accepted.then_some(event)));
    events
}

fn read_group(group: &dyn RowGroupReader) -> Vec<Event> {
    let numbers = flat::<Int64Type>(group, "event_number");
    let weights = flat::<DoubleType>(group, "weight");
    let accepted = flat::<BoolType>(group, "l1_accept");
    let items = flat::<Int32Type>(group, "l1_tap");
    let ints = |field| lists::<Int32Type>(group, "rois", field);
    let floats = |field| lists::<FloatType>(group, "rois", field);
    let [kind, ieta, iphi] = ["type", "ieta", "iphi"].map(ints);
    let [et, aux0, aux1, thresholds] = ["et_mev", "aux0_mev", "aux1_mev", "thresholds"].map(ints);
    let [eta, phi] = ["eta", "phi"].map(floats);
    let sources = lists::<Int32Type>(group, "fragments", "source_id");
    let payloads = lists::<ByteArrayType>(group, "fragments", "payload");
    let event = |row: usize| Event {
        number: numbers[row].cast_unsigned(),
        accepted: accepted[row],
        weight: weights[row],
        items: items[row].cast_unsigned(),
        rois: (0..kind[row].len())
            .map(|n| Roi {
                kind: kind[row][n] as u8,
                ieta: ieta[row][n] as u8,
                iphi: iphi[row][n] as u8,
                eta: eta[row][n],
                phi: phi[row][n],
                et_mev: et[row][n],
                aux_mev: [aux0[row][n], aux1[row][n]],
                thresholds: thresholds[row][n].cast_unsigned(),
            })
            .collect(),
        fragments: sources[row]
            .iter()
            .zip(&payloads[row])
            .map(|(source, payload)| (source.cast_unsigned(), PageSlice::copy_of(payload.data())))
            .collect(),
    };
    (0..numbers.len()).map(event).collect()
}

fn flat<D: DataType>(group: &dyn RowGroupReader, name: &str) -> Vec<D::T> {
    read::<D>(group, name, None).into_iter().flatten().collect()
}

fn lists<D: DataType>(group: &dyn RowGroupReader, name: &str, field: &str) -> Vec<Vec<D::T>> {
    read::<D>(group, name, Some(field))
}

fn read<D: DataType>(group: &dyn RowGroupReader, name: &str, field: Option<&str>) -> Vec<Vec<D::T>> {
    let schema = group.metadata().schema_descr();
    let is_it = |parts: &[String]| parts[0] == name && field.is_none_or(|field| parts.last().unwrap() == field);
    let index = schema.columns().iter().position(|column| is_it(column.path().parts())).unwrap();
    let column = schema.column(index);
    let rows = usize::try_from(group.metadata().num_rows()).unwrap();
    let mut reader = ColumnReaderImpl::<D>::new(column.clone(), group.get_column_page_reader(index).unwrap());
    let (mut values, mut definition, mut repetition) = (Vec::new(), Vec::new(), Vec::new());
    let (read, _, levels) =
        reader.read_records(rows, Some(&mut definition), Some(&mut repetition), &mut values).unwrap();
    assert_eq!(read, rows);
    let mut values = values.into_iter();
    let mut lists: Vec<Vec<D::T>> = Vec::with_capacity(rows);
    for level in 0..levels {
        if repetition.get(level).is_none_or(|repetition| *repetition == 0) {
            lists.push(Vec::new());
        }
        if definition.get(level).is_none_or(|definition| *definition == column.max_def_level()) {
            lists.last_mut().unwrap().push(values.next().unwrap());
        }
    }
    lists
}

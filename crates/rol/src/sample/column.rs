//! One column of a row group, as plain values.

use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::RowGroupReader;

/// The values of a column, and where those of each row begin.
pub(super) struct Column<T> {
    values: Vec<T>,
    /// One more than there are rows.
    starts: Vec<usize>,
}

/// Why a column could not be read.
pub(super) enum ColumnError {
    Parquet(ParquetError),
    /// No value at this row of the row group.
    Null(usize),
}

impl<T> Column<T> {
    /// Reads column `index`; rows hold one value each, or a list of them.
    pub(super) fn read<D>(group: &dyn RowGroupReader, index: usize, rows: usize) -> Result<Self, ColumnError>
    where
        D: DataType<T = T>,
    {
        let descriptor = group.metadata().schema_descr().column(index);
        let is_list = descriptor.max_rep_level() > 0;
        let mut reader = ColumnReaderImpl::<D>::new(descriptor.clone(), group.get_column_page_reader(index)?);
        let (mut values, mut definition, mut repetition) = (Vec::new(), Vec::new(), Vec::new());
        let (read, _, levels) = reader.read_records(rows, Some(&mut definition), Some(&mut repetition), &mut values)?;
        if read != rows {
            let message = format!("{read} rows of the {rows} that the file header announces");
            return Err(ColumnError::Parquet(ParquetError::General(message)));
        }
        let mut starts = Vec::new();
        let mut value_count = 0;
        for level in 0..levels {
            let begins_row = repetition.get(level).is_none_or(|found| *found == 0);
            if begins_row {
                starts.push(value_count);
            }
            let has_value = definition.get(level).is_none_or(|found| *found == descriptor.max_def_level());
            let is_empty_list = is_list && begins_row && !has_value;
            if !has_value && !is_empty_list {
                return Err(ColumnError::Null(starts.len().saturating_sub(1)));
            }
            value_count += usize::from(has_value);
        }
        if (starts.len(), value_count) != (rows, values.len()) {
            let message = "levels and values do not agree".to_owned();
            return Err(ColumnError::Parquet(ParquetError::General(message)));
        }
        starts.push(value_count);
        Ok(Self { values, starts })
    }

    /// The values of a row.
    pub(super) fn row(&self, row: usize) -> &[T] {
        &self.values[self.starts[row]..self.starts[row + 1]]
    }
}

impl From<ParquetError> for ColumnError {
    fn from(error: ParquetError) -> Self {
        Self::Parquet(error)
    }
}

//! One column of a row group, as plain values.

use parquet::basic::Type;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
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
    /// This value at this row of the row group does not fit into 32 bits.
    Wide(usize, i64),
}

/// Values of a column, as the file has them or converted to the type that they are known to fit into.
pub(super) trait Values: DataType + Sized {
    /// Reads column `index`.
    fn read(group: &dyn RowGroupReader, index: usize, rows: usize) -> Result<Column<Self::T>, ColumnError> {
        Column::read::<Self>(group, index, rows)
    }
}

impl Values for BoolType {}
impl Values for Int64Type {}
impl Values for DoubleType {}
impl Values for ByteArrayType {}

/// The bits of an `i32` or `u32`.
impl Values for Int32Type {
    fn read(group: &dyn RowGroupReader, index: usize, rows: usize) -> Result<Column<i32>, ColumnError> {
        if physical_type(group, index) != Type::INT64 {
            return Column::read::<Self>(group, index, rows);
        }
        let narrow = |wide| i32::try_from(wide).or_else(|_| u32::try_from(wide).map(u32::cast_signed));
        Column::read::<Int64Type>(group, index, rows)?
            .map(|row, wide| narrow(wide).map_err(|_| ColumnError::Wide(row, wide)))
    }
}

impl Values for FloatType {
    fn read(group: &dyn RowGroupReader, index: usize, rows: usize) -> Result<Column<f32>, ColumnError> {
        if physical_type(group, index) != Type::DOUBLE {
            return Column::read::<Self>(group, index, rows);
        }
        Column::read::<DoubleType>(group, index, rows)?.map(|_, wide| Ok(wide as f32))
    }
}

/// Whether a column of `found` can be read as one of `wanted`: pandas widens the numbers in lists to 64 bits.
pub(super) fn can_be_read(found: Type, wanted: Type) -> bool {
    found == wanted || matches!((found, wanted), (Type::INT64, Type::INT32) | (Type::DOUBLE, Type::FLOAT))
}

fn physical_type(group: &dyn RowGroupReader, index: usize) -> Type {
    group.metadata().schema_descr().column(index).physical_type()
}

impl<T> Column<T> {
    /// Reads column `index`; rows hold one value each, or a list of them.
    fn read<D>(group: &dyn RowGroupReader, index: usize, rows: usize) -> Result<Self, ColumnError>
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

    /// The same with other values, of which `convert` is also told the row.
    fn map<U>(self, mut convert: impl FnMut(usize, T) -> Result<U, ColumnError>) -> Result<Column<U>, ColumnError> {
        let Self { values, starts } = self;
        let mut row = 0;
        let values = values.into_iter().enumerate().map(|(at, value)| {
            while starts[row + 1] <= at {
                row += 1;
            }
            convert(row, value)
        });
        Ok(Column { values: values.collect::<Result<_, _>>()?, starts })
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

//! Values between their declared and their stored type: every value as it is, or an error.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeBinaryArray, GenericListArray, Int64Array, MapArray, OffsetSizeTrait,
    RecordBatch, StructArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, FieldRef, Float32Type, SchemaRef, TimeUnit};
use arrow::error::ArrowError;
use windrow_table::TableError;

const MILLIS_PER_DAY: i64 = 86_400_000;

/// The rows with the columns of `schema`, in the types that it has.
pub(crate) fn convert_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, TableError> {
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (column, field) in batch.columns().iter().zip(schema.fields()) {
        let converted = convert(column, field.data_type())
            .map_err(|error| TableError::Schema(format!("column {}: {error}", field.name())))?;
        columns.push(converted);
    }
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// The values in another type, which is a declared one where theirs is its stored one, or the other way round.
pub(crate) fn convert(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, ArrowError> {
    use DataType as T;
    match (array.data_type(), to) {
        (from, to) if from == to => Ok(Arc::clone(array)),
        (T::Timestamp(from, _), T::Timestamp(unit, _)) => {
            let instants = cast(array, &T::Int64)?;
            cast(&rescale(instants.as_primitive(), per_second(*from), per_second(*unit))?, to)
        }
        (T::Date64, T::Date32) => {
            let millis = cast(array, &T::Int64)?;
            let days = rescale(millis.as_primitive(), MILLIS_PER_DAY, 1)?;
            checked_cast(&checked_cast(&days, &T::Int32)?, to)
        }
        (T::Date32, T::Date64) => {
            let days = cast(&cast(array, &T::Int32)?, &T::Int64)?;
            cast(&rescale(days.as_primitive(), 1, MILLIS_PER_DAY)?, to)
        }
        (T::Float32, T::Float16) => {
            let narrow = cast(array, to)?;
            let wide = cast(&narrow, &T::Float32)?;
            let same = array.as_primitive::<Float32Type>().iter().zip(wide.as_primitive::<Float32Type>());
            if same.into_iter().all(|(a, b)| a.map(f32::to_bits) == b.map(f32::to_bits)) {
                return Ok(narrow);
            }
            Err(ArrowError::CastError("a value does not fit a half-precision float".into()))
        }
        (T::Binary, T::FixedSizeBinary(size)) => {
            let values = array.as_binary::<i32>().iter();
            Ok(Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, *size)?))
        }
        (T::List(_), T::List(field)) => lists::<i32, i32>(array.as_list(), field),
        (T::List(_), T::LargeList(field)) => lists::<i32, i64>(array.as_list(), field),
        (T::LargeList(_), T::List(field)) => lists::<i64, i32>(array.as_list(), field),
        (T::LargeList(_), T::LargeList(field)) => lists::<i64, i64>(array.as_list(), field),
        (T::Struct(from), T::Struct(fields)) if from.len() == fields.len() => {
            Ok(Arc::new(structs(array.as_struct(), fields)?))
        }
        (T::Map(..), T::Map(entries, sorted)) => maps(array.as_map(), entries, *sorted),
        _ => checked_cast(array, to),
    }
}

fn checked_cast(array: &dyn Array, to: &DataType) -> Result<ArrayRef, ArrowError> {
    cast_with_options(array, to, &CastOptions { safe: false, ..CastOptions::default() })
}

const fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

/// The numbers counted in another unit; one of `from` and `to` is a multiple of the other.
fn rescale(values: &Int64Array, from: i64, to: i64) -> Result<Int64Array, ArrowError> {
    if to >= from {
        let factor = to / from;
        values.try_unary(|value| {
            value.checked_mul(factor).ok_or_else(|| {
                ArrowError::CastError(format!(
                    "{value} is too far from 1970 to be counted {factor} times finer"
                ))
            })
        })
    } else {
        let factor = from / to;
        values.try_unary(|value| {
            if value % factor == 0 {
                return Ok(value / factor);
            }
            Err(ArrowError::CastError(format!("{value} is not a multiple of {factor}")))
        })
    }
}

fn lists<From: OffsetSizeTrait, To: OffsetSizeTrait>(
    array: &GenericListArray<From>,
    field: &FieldRef,
) -> Result<ArrayRef, ArrowError> {
    let (start, length) = extent(array.offsets());
    if To::from_usize(length).is_none() {
        return Err(ArrowError::OffsetOverflowError(length));
    }
    let values = convert(&array.values().slice(start, length), field.data_type())?;
    let offsets = OffsetBuffer::<To>::from_lengths(array.offsets().lengths());
    Ok(Arc::new(GenericListArray::try_new(Arc::clone(field), offsets, values, array.nulls().cloned())?))
}

fn structs(array: &StructArray, fields: &arrow::datatypes::Fields) -> Result<StructArray, ArrowError> {
    let columns: Vec<_> = array
        .columns()
        .iter()
        .zip(fields)
        .map(|(column, field)| convert(column, field.data_type()))
        .collect::<Result<_, _>>()?;
    StructArray::try_new(fields.clone(), columns, array.nulls().cloned())
}

fn maps(array: &MapArray, entries: &FieldRef, sorted: bool) -> Result<ArrayRef, ArrowError> {
    let DataType::Struct(fields) = entries.data_type() else {
        return Err(ArrowError::CastError("a map has a key and a value".into()));
    };
    let (start, length) = extent(array.offsets());
    let values = structs(&array.entries().slice(start, length), fields)?;
    let offsets = OffsetBuffer::from_lengths(array.offsets().lengths());
    Ok(Arc::new(MapArray::try_new(Arc::clone(entries), offsets, values, array.nulls().cloned(), sorted)?))
}

/// Where the values of a (maybe sliced) list array start, and how many there are.
fn extent<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> (usize, usize) {
    let start = offsets.first().map_or(0, |offset| offset.as_usize());
    let end = offsets.last().map_or(0, |offset| offset.as_usize());
    (start, end - start)
}

#[cfg(test)]
mod tests {
    use arrow::array::{
        Date64Array, Decimal128Array, Float32Array, Int16Array, ListArray, StringArray,
        TimestampMicrosecondArray, TimestampSecondArray, UInt64Array,
    };
    use arrow::datatypes::{Field, UInt64Type};

    use super::*;
    use crate::types::stored_type;

    fn there_and_back(array: ArrayRef) {
        let stored = stored_type(array.data_type()).unwrap();
        let written = convert(&array, &stored).unwrap();
        assert_eq!(written.data_type(), &stored);
        assert_eq!(&convert(&written, array.data_type()).unwrap(), &array);
    }

    #[test]
    fn a_value_that_does_not_fit_is_an_error() {
        let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![i64::MAX / 1_000_000 + 1]));
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        assert!(convert(&seconds, &micros).is_err());
        let odd: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![-1]));
        assert!(convert(&odd, seconds.data_type()).is_err());
        let noon: ArrayRef = Arc::new(Date64Array::from(vec![43_200_000]));
        assert!(convert(&noon, &DataType::Date32).is_err());
        let far: ArrayRef = Arc::new(Date64Array::from(vec![MILLIS_PER_DAY * (i64::from(i32::MAX) + 1)]));
        assert!(convert(&far, &DataType::Date32).is_err());
        let negative: ArrayRef = Arc::new(Int16Array::from(vec![-1]));
        assert!(convert(&negative, &DataType::UInt8).is_err());
        let third: ArrayRef = Arc::new(Float32Array::from(vec![1.0 / 3.0]));
        assert!(convert(&third, &DataType::Float16).is_err());
        let wide =
            Decimal128Array::from(vec![i128::from(u64::MAX) + 1]).with_precision_and_scale(20, 0).unwrap();
        assert!(convert(&(Arc::new(wide) as ArrayRef), &DataType::UInt64).is_err());
        let bytes: ArrayRef = Arc::new(arrow::array::BinaryArray::from(vec![&b"ab"[..], &b"c"[..]]));
        assert!(convert(&bytes, &DataType::FixedSizeBinary(2)).is_err());
    }

    #[test]
    fn nulls_hide_values_that_would_not_fit() {
        let hidden = TimestampSecondArray::new(vec![i64::MAX, 1].into(), Some(vec![false, true].into()));
        there_and_back(Arc::new(hidden));
    }

    #[test]
    fn extremes_survive() {
        there_and_back(Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(0)])));
        let limit = i64::MAX / 1_000_000;
        there_and_back(Arc::new(
            TimestampSecondArray::from(vec![limit, -limit, 0]).with_timezone("Asia/Tokyo"),
        ));
        there_and_back(Arc::new(TimestampMicrosecondArray::from(vec![i64::MIN, i64::MAX])));
        let singles = Float32Array::from(vec![65504.0, -0.0, f32::INFINITY, 6e-8]);
        there_and_back(cast(&singles, &DataType::Float16).unwrap());
        there_and_back(Arc::new(Date64Array::from(vec![-25_567 * MILLIS_PER_DAY, 84_006 * MILLIS_PER_DAY])));
    }

    #[test]
    fn only_the_values_of_a_sliced_list_are_converted() {
        let lists = ListArray::from_iter_primitive::<UInt64Type, _, _>(vec![
            Some(vec![Some(1), None]),
            None,
            Some(vec![]),
            Some(vec![Some(u64::MAX)]),
        ]);
        there_and_back(Arc::new(lists.slice(1, 3)));
        let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "ü"]));
        there_and_back(cast(&names, &DataType::Utf8View).unwrap());
        let field = Arc::new(Field::new("item", DataType::Utf8, true));
        let large = GenericListArray::<i64>::new(field, OffsetBuffer::from_lengths([0, 2]), names, None);
        there_and_back(Arc::new(large));
    }
}

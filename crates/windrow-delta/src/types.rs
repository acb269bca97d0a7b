//! The declared types of a table, and what a Delta table stores for them: see [`check_types`] for the table of them,
//! and [`convert`](crate::convert) for the values.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit,
};

use crate::DeltaError;

/// Whether a Delta table can have these columns.
///
/// Delta has timestamps in microseconds only, and no unsigned, half-precision, view, duration, interval or 256-bit
/// types. A declared type is stored as the type beside it; a value read back equals the value written, or the write
/// was refused.
///
/// | declared | stored | |
/// |---|---|---|
/// | `Boolean`, `Int8`–`Int64`, `Float32`, `Float64`, `Utf8`, `Binary`, `Date32` | the same | |
/// | `Timestamp(s, ms, us)` | `Timestamp(us)`, Delta's `timestamp_ntz` | refused where microseconds overflow |
/// | `Timestamp(s, ms, us, zone)` | `Timestamp(us, UTC)`, Delta's `timestamp` | the declared zone is kept |
/// | `UInt8`, `UInt16`, `UInt32` | `Int16`, `Int32`, `Int64` | |
/// | `UInt64` | `Decimal128(20, 0)` | |
/// | `Float16` | `Float32` | |
/// | `Decimal32`, `Decimal64`, `Decimal128` | `Decimal128` | scale from 0 up to the precision |
/// | `Date64` | `Date32` | refused where it is not midnight |
/// | `LargeUtf8`, `Utf8View` | `Utf8` | |
/// | `LargeBinary`, `BinaryView`, `FixedSizeBinary` | `Binary` | |
/// | `List`, `LargeList` | `List` | of the stored type |
/// | `Struct`, `Map` | the same | of the stored types |
/// | everything else | refused | |
///
/// ```
/// use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
/// use windrow_delta::check_types;
///
/// let column = |name, data_type| Schema::new(vec![Field::new(name, data_type, true)]);
/// assert!(check_types(&column("n", DataType::UInt64)).is_ok());
/// let error = check_types(&column("ts", DataType::Timestamp(TimeUnit::Nanosecond, None)));
/// assert!(error.unwrap_err().to_string().contains("microseconds"));
/// ```
///
/// # Errors
/// [`DeltaError::Type`] for the first column whose type has no counterpart; [`DeltaError::Columns`] when there is no
/// column, or two have names that differ only by case (Delta does not tell them apart).
pub fn check_types(schema: &Schema) -> Result<(), DeltaError> {
    stored_schema(schema).map(|_| ())
}

/// The columns as a Delta table has them.
pub(crate) fn stored_schema(declared: &Schema) -> Result<SchemaRef, DeltaError> {
    if declared.fields().is_empty() {
        return Err(DeltaError::Columns("a table needs a column".into()));
    }
    let mut names: HashMap<String, &str> = HashMap::new();
    let mut fields = Vec::with_capacity(declared.fields().len());
    for field in declared.fields() {
        if let Some(other) = names.insert(field.name().to_lowercase(), field.name()) {
            let name = field.name();
            return Err(DeltaError::Columns(format!(
                "{other} and {name} differ only by case, which Delta does not tell apart"
            )));
        }
        let data_type = stored_type(field.data_type()).map_err(|refusal| DeltaError::Type {
            column: field.name().clone(),
            data_type: refusal.data_type,
            reason: refusal.reason,
        })?;
        fields.push(Field::new(field.name(), data_type, field.is_nullable()));
    }
    Ok(Arc::new(Schema::new(fields)))
}

/// A type that is not stored.
#[derive(Debug)]
pub(crate) struct Refusal {
    data_type: DataType,
    reason: &'static str,
}

/// What is stored for a declared type.
pub(crate) fn stored_type(declared: &DataType) -> Result<DataType, Refusal> {
    use DataType as T;
    let refuse = |reason| Err(Refusal { data_type: declared.clone(), reason });
    Ok(match declared {
        T::Boolean | T::Int8 | T::Int16 | T::Int32 | T::Int64 | T::Float32 | T::Float64 | T::Date32 => {
            declared.clone()
        }
        T::Utf8 | T::LargeUtf8 | T::Utf8View => T::Utf8,
        T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => T::Binary,
        T::UInt8 => T::Int16,
        T::UInt16 => T::Int32,
        T::UInt32 => T::Int64,
        T::UInt64 => T::Decimal128(20, 0),
        T::Float16 => T::Float32,
        T::Date64 => T::Date32,
        T::Decimal32(precision, scale) | T::Decimal64(precision, scale) | T::Decimal128(precision, scale) => {
            if *precision > DECIMAL128_MAX_PRECISION || *scale < 0 || scale.unsigned_abs() > *precision {
                return refuse("its scale must be from 0 up to its precision");
            }
            T::Decimal128(*precision, *scale)
        }
        T::Decimal256(..) => return refuse("a decimal has at most 38 digits there"),
        T::Timestamp(TimeUnit::Nanosecond, _) => {
            return refuse("timestamps there count microseconds: declare TIMESTAMP(6), (3) or (0)");
        }
        T::Timestamp(_, None) => T::Timestamp(TimeUnit::Microsecond, None),
        T::Timestamp(_, Some(_)) => T::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        T::List(item) | T::LargeList(item) => T::List(stored_field("element", item)?),
        T::Struct(fields) if fields.is_empty() => return refuse("a struct needs a field there"),
        T::Struct(fields) => T::Struct(
            fields.iter().map(|field| stored_field(field.name(), field)).collect::<Result<Fields, _>>()?,
        ),
        T::Map(entries, _) => match entries.data_type() {
            T::Struct(fields) if fields.len() == 2 => {
                let key = stored_field("key", &fields[0])?;
                let value = stored_field("value", &fields[1])?;
                T::Map(Arc::new(Field::new("key_value", T::Struct(vec![key, value].into()), false)), false)
            }
            _ => return refuse("a map has a key and a value"),
        },
        T::Dictionary(..) => return refuse("declare the type of its values"),
        T::Time32(_) | T::Time64(_) => return refuse("there is no time of day there"),
        T::Duration(_) | T::Interval(_) => return refuse("there are no durations and intervals there"),
        _ => return refuse("there is no such type there"),
    })
}

fn stored_field(name: &str, declared: &FieldRef) -> Result<FieldRef, Refusal> {
    let data_type = stored_type(declared.data_type())?;
    Ok(Arc::new(Field::new(name, data_type, declared.is_nullable())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_delta_lacks_is_refused_by_column_and_reason() {
        let interval = DataType::Interval(arrow::datatypes::IntervalUnit::DayTime);
        let nested = DataType::List(Arc::new(Field::new("item", DataType::Null, true)));
        for (data_type, word) in [
            (DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), "microseconds"),
            (DataType::Time64(TimeUnit::Microsecond), "time of day"),
            (DataType::Duration(TimeUnit::Second), "durations"),
            (interval, "intervals"),
            (DataType::Decimal256(50, 2), "38 digits"),
            (DataType::Decimal128(10, -2), "scale"),
            (DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8)), "values"),
            (DataType::Struct(Fields::empty()), "struct"),
            (DataType::Null, "no such type"),
            (nested, "no such type"),
        ] {
            let schema = Schema::new(vec![Field::new("a \"b\"", data_type, true)]);
            let message = check_types(&schema).unwrap_err().to_string();
            assert!(message.contains("a \"b\"") && message.contains(word), "{message}");
        }
    }

    #[test]
    fn names_that_differ_only_by_case_are_refused() {
        let field = |name| Field::new(name, DataType::Int8, true);
        let message = check_types(&Schema::new(vec![field("Größe"), field("gRÖSSE"), field("GRÖßE")]));
        assert!(message.unwrap_err().to_string().contains("GRÖßE"));
        assert!(check_types(&Schema::empty()).is_err());
    }

    #[test]
    fn a_stored_type_is_stored_as_itself() {
        for declared in [
            DataType::UInt64,
            DataType::Timestamp(TimeUnit::Second, Some("Europe/Rome".into())),
            DataType::Map(
                Arc::new(Field::new_struct(
                    "entries",
                    vec![
                        Field::new("keys", DataType::UInt8, false),
                        Field::new("values", DataType::Utf8View, true),
                    ],
                    false,
                )),
                true,
            ),
        ] {
            let stored = stored_type(&declared).unwrap();
            assert_eq!(stored_type(&stored).unwrap(), stored);
        }
    }
}

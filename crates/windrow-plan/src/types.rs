//! Which types are stored as which, and what that loses.

use arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, cast};

/// A type as a table stores it: dictionaries as their values, views as what they view.
pub(crate) fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, values) => plain(values),
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Null => DataType::Utf8,
        other => other.clone(),
    }
}

/// `value` of type `from` as type `to`. Instants stay what they are: a plain cast would take a timestamp without zone for
/// local time where `to` has a zone.
pub(crate) fn as_stored(value: Expr, from: &DataType, to: &DataType) -> Expr {
    if from == to {
        return value;
    }
    let value = match (from, to) {
        (DataType::Timestamp(unit, None), DataType::Timestamp(_, Some(_))) => {
            cast(value, DataType::Timestamp(*unit, Some("UTC".into())))
        }
        _ => value,
    };
    cast(value, to.clone())
}

/// Whether every value of type `from` is one of type `to`.
pub(crate) fn holds(to: &DataType, from: &DataType) -> bool {
    use DataType as T;
    let integer = |data_type: &T| -> Option<(bool, usize)> {
        let signed = data_type.is_signed_integer();
        data_type.is_integer().then(|| Some((signed, data_type.primitive_width()?)))?
    };
    if let (Some((to_signed, to_width)), Some((from_signed, from_width))) = (integer(to), integer(from)) {
        return if to_signed == from_signed {
            to_width >= from_width
        } else {
            to_signed && to_width > from_width
        };
    }
    match (from, to) {
        (T::Dictionary(_, from), to) => holds(to, from),
        (T::Null, _) | (T::Float16, T::Float32 | T::Float64) | (T::Float32, T::Float64) => true,
        (T::Int8 | T::Int16 | T::UInt8 | T::UInt16, T::Float32 | T::Float64) => true,
        (T::Int32 | T::UInt32, T::Float64) => true,
        (T::Utf8 | T::LargeUtf8 | T::Utf8View, T::Utf8 | T::LargeUtf8 | T::Utf8View) => true,
        (T::Binary | T::LargeBinary | T::BinaryView, T::Binary | T::LargeBinary | T::BinaryView) => true,
        (T::Timestamp(from, _), T::Timestamp(to, _)) => from <= to,
        (
            T::Decimal32(from_digits, from_scale)
            | T::Decimal64(from_digits, from_scale)
            | T::Decimal128(from_digits, from_scale)
            | T::Decimal256(from_digits, from_scale),
            T::Decimal32(to_digits, to_scale)
            | T::Decimal64(to_digits, to_scale)
            | T::Decimal128(to_digits, to_scale)
            | T::Decimal256(to_digits, to_scale),
        ) => {
            let whole = |digits: &u8, scale: &i8| i16::from(*digits) - i16::from(*scale);
            to_scale >= from_scale && whole(to_digits, to_scale) >= whole(from_digits, from_scale)
        }
        (from, to) => from == to,
    }
}

/// Types that can stand for each other when only a name differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Family {
    Null,
    Number,
    Text,
    Bytes,
    Boolean,
    Timestamp,
    Other(DataType),
}

impl Family {
    pub(crate) fn of(data_type: &DataType) -> Self {
        match data_type {
            DataType::Null => Self::Null,
            DataType::Boolean => Self::Boolean,
            DataType::Timestamp(..) => Self::Timestamp,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Self::Text,
            DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_) => Self::Bytes,
            DataType::Dictionary(_, values) => Self::of(values),
            other if other.is_numeric() => Self::Number,
            other => Self::Other(other.clone()),
        }
    }

    pub(crate) fn fits(self, column: Self) -> bool {
        self == Self::Null || self == column
    }
}

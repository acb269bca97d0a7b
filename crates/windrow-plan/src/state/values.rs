//! Functions of one state: its value, its bytes, and back.
//!
//! # The bytes
//!
//! One byte with the version of this encoding, then the columns of the state in Arrow's row format, which gives every
//! value back bit by bit. The row format and the states themselves are those of the version that wrote them: whoever
//! stores bytes stores [`Merge::state_format`](crate::Merge::state_format) beside them, and reads none that are of
//! another format.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, StructArray, new_empty_array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Fields};
use arrow::row::{RowConverter, SortField};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, EmitTo, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use super::AggregateState;

/// The version of the encoding.
pub(crate) const VERSION: u8 = 1;

/// A row of the sink has no state, because that would have been too long: it cannot be merged into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateMissing;

impl fmt::Display for StateMissing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row to be merged into has no aggregate state: it was longer than max_state_bytes")
    }
}

impl std::error::Error for StateMissing {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Finish,
    Encode { limit: usize },
    Decode,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ValueFunction {
    of: AggregateState,
    step: Step,
    name: String,
    signature: Signature,
}

pub(super) fn finish(of: AggregateState) -> ScalarUDF {
    ValueFunction::udf(of, Step::Finish, "finish")
}

pub(super) fn encode(of: AggregateState, limit: usize) -> ScalarUDF {
    ValueFunction::udf(of, Step::Encode { limit }, "encode")
}

pub(super) fn decode(of: AggregateState) -> ScalarUDF {
    ValueFunction::udf(of, Step::Decode, "decode")
}

pub(super) fn can_be_encoded(fields: &Fields) -> bool {
    RowConverter::supports_fields(&sort_fields(fields))
}

fn sort_fields(fields: &Fields) -> Vec<SortField> {
    fields.iter().map(|field| SortField::new(field.data_type().clone())).collect()
}

impl ValueFunction {
    fn udf(of: AggregateState, step: Step, prefix: &str) -> ScalarUDF {
        let name = format!("{prefix}({})", of.call.fun().name());
        let signature = Signature::new(TypeSignature::Any(1), Volatility::Immutable);
        ScalarUDF::from(Self { of, step, name, signature })
    }
}

impl ScalarUDFImpl for ValueFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.step {
            Step::Finish => self.of.call.field().data_type().clone(),
            Step::Encode { .. } => DataType::Binary,
            Step::Decode => self.of.data_type(),
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [argument] = args.args.as_slice() else { return exec_err!("{} takes one argument", self.name) };
        let argument = argument.to_array(args.number_rows)?;
        let values = match self.step {
            Step::Finish => self.of.finish(&argument)?,
            Step::Encode { limit } => Arc::new(encoded(&argument, limit)?) as ArrayRef,
            Step::Decode => self.of.decoded(&argument)?,
        };
        Ok(ColumnarValue::Array(values))
    }
}

impl AggregateState {
    fn finish(&self, states: &ArrayRef) -> Result<ArrayRef> {
        let columns = Self::columns_of(states)?;
        let rows = states.len();
        if rows == 0 {
            return Ok(new_empty_array(self.call.field().data_type()));
        }
        if self.in_groups {
            let mut groups = self.call.create_groups_accumulator()?;
            let each: Vec<usize> = (0..rows).collect();
            groups.merge_batch(&columns, &each, rows)?;
            return groups.evaluate(EmitTo::All);
        }
        let value = |row: usize| -> Result<ScalarValue> {
            let mut group = self.call.create_accumulator()?;
            let state: Vec<ArrayRef> = columns.iter().map(|column| column.slice(row, 1)).collect();
            group.merge_batch(&state)?;
            group.evaluate()
        };
        let values = (0..rows).map(value).collect::<Result<Vec<_>>>()?;
        ScalarValue::iter_to_array(values)
    }

    fn decoded(&self, bytes: &ArrayRef) -> Result<ArrayRef> {
        let bytes = cast(bytes, &DataType::Binary)?;
        let bytes: &BinaryArray = bytes.as_binary();
        if bytes.null_count() > 0 {
            return Err(DataFusionError::External(Box::new(StateMissing)));
        }
        let converter = RowConverter::new(sort_fields(&self.fields))?;
        let parser = converter.parser();
        let mut rows = Vec::with_capacity(bytes.len());
        for value in bytes.iter().flatten() {
            match value.split_first() {
                Some((&VERSION, row)) => rows.push(parser.parse(row)),
                _ => return exec_err!("an aggregate state is of a version that is not known"),
            }
        }
        let columns = converter.convert_rows(rows)?;
        self.of_columns(columns)
    }
}

fn encoded(states: &ArrayRef, limit: usize) -> Result<BinaryArray> {
    let Some(states): Option<&StructArray> = states.as_struct_opt() else {
        return exec_err!("a state cannot be {}", states.data_type());
    };
    let converter = RowConverter::new(sort_fields(states.fields()))?;
    let rows = converter.convert_columns(states.columns())?;
    let mut bytes = BinaryBuilder::with_capacity(rows.num_rows(), rows.size() + rows.num_rows());
    let mut value = Vec::new();
    for row in &rows {
        if row.data().len() >= limit {
            bytes.append_null();
            continue;
        }
        value.clear();
        value.push(VERSION);
        value.extend_from_slice(row.data());
        bytes.append_value(&value);
    }
    Ok(bytes.finish())
}

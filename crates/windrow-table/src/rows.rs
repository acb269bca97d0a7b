//! Small things about batches of rows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::compute::kernels::aggregate::{max, min};
use arrow::compute::{
    CastOptions, cast, cast_with_options, concat_batches, sort_to_indices, take_record_batch,
};
use arrow::datatypes::{DataType, Int64Type, SchemaRef};

use crate::{TableError, TableSpec, TimeSpan};

/// All rows in one batch.
///
/// # Errors
/// When a batch does not have the schema.
pub fn concat(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<RecordBatch, TableError> {
    Ok(concat_batches(schema, batches)?)
}

/// The rows with the types that a plan says they have. DataFusion's optimiser takes the sum of sums for a sum, and does
/// not see that a sum of decimals has more digits than they.
///
/// # Errors
/// When there are other columns, or a value does not fit.
pub fn fit(schema: &SchemaRef, batch: &RecordBatch) -> Result<RecordBatch, TableError> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        if column.data_type() == field.data_type() {
            return Ok(Arc::clone(column));
        }
        cast_with_options(column, field.data_type(), &options)
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(Arc::clone(schema), columns, &rows)?)
}

/// The time index of the rows, where the table has one.
#[must_use]
pub fn instants_of(spec: &TableSpec, batch: &RecordBatch) -> Option<ArrayRef> {
    spec.time_index().map(|index| batch.column(index).clone())
}

/// From the earliest to the latest time index in the batch; `None` where there is no instant.
///
/// # Errors
/// [`TableError::NullTimeIndex`] when a row has none though the column is declared not to be null.
pub fn time_span(spec: &TableSpec, batch: &RecordBatch) -> Result<Option<TimeSpan>, TableError> {
    let Some(index) = spec.time_index() else { return Ok(None) };
    let column = batch.column(index);
    let field = spec.schema().field(index);
    if column.null_count() > 0 && !field.is_nullable() {
        return Err(TableError::NullTimeIndex { column: field.name().clone() });
    }
    let instants = cast(column, &DataType::Int64)?;
    let instants = instants.as_primitive::<Int64Type>();
    let Some((first, last)) = min(instants).zip(max(instants)) else { return Ok(None) };
    Ok(Some(TimeSpan { first, last, nulls: column.null_count() as u64, rows: column.len() as u64 }))
}

/// The rows in the order of their time index; as they are, where the table has none.
///
/// # Errors
/// When the rows cannot be moved.
pub fn sorted_by_time(spec: &TableSpec, batch: &RecordBatch) -> Result<RecordBatch, TableError> {
    let Some(instants) = instants_of(spec, batch) else { return Ok(batch.clone()) };
    let order = sort_to_indices(&instants, None, None)?;
    Ok(take_record_batch(batch, &order)?)
}

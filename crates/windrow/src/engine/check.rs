//! `ADMIN CHECK_FLOW('f')`: does the sink hold what the query gives?

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Float64Type};
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::logical_expr::LogicalPlan;
use windrow_runner::Flow;
use windrow_table::{ReadBounds, fit};

use super::show::text_rows;
use super::{Answer, Engine, EngineError, Inner};

/// Sums of floats depend on the order of adding, by about this much of their size.
const FLOAT_TOLERANCE: f64 = 1e-9;

/// How a sink compares with its query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckReport {
    /// The flow.
    pub flow: String,
    /// Rows that the query gives.
    pub query_rows: u64,
    /// Rows that the sink holds.
    pub sink_rows: u64,
    /// Rows of the query that the sink does not hold.
    pub missing: u64,
    /// Rows of the sink that the query does not give.
    pub extra: u64,
}

impl CheckReport {
    /// Whether both hold the same rows.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.missing == 0 && self.extra == 0
    }

    pub(super) fn to_answer(&self) -> Result<Answer, EngineError> {
        let verdict = if self.is_equal() { "equal" } else { "DIFFERENT" };
        text_rows(&[
            ("flow", vec![self.flow.clone()]),
            ("sink_equals_query", vec![verdict.to_owned()]),
            ("query_rows", vec![self.query_rows.to_string()]),
            ("sink_rows", vec![self.sink_rows.to_string()]),
            ("missing", vec![self.missing.to_string()]),
            ("extra", vec![self.extra.to_string()]),
        ])
    }
}

impl Engine {
    /// Runs the flow's query over its sources as they are, and compares the result with the sink: every value
    /// exactly, but floats with a tolerance of 10⁻⁹ of their size. The times at which rows were written do not count, nor
    /// do values that a query may give in several ways, such as approximate percentiles or `first_value` without an order.
    ///
    /// # Errors
    /// When there is no such flow, or the query fails.
    pub async fn check_flow(&self, name: &str) -> Result<CheckReport, EngineError> {
        self.0.check_flow(name).await
    }
}

impl Inner {
    pub(super) async fn check_flow(&self, name: &str) -> Result<CheckReport, EngineError> {
        let flow = {
            let entries = self.registry.read();
            let entry = entries.flow(name).ok_or_else(|| EngineError::NoFlow(name.to_owned()))?;
            Arc::clone(&entry.flow)
        };
        let definition = flow.definition();
        let expected = match &definition.window {
            Some(window) => {
                let all = [flow.live_range(window)?];
                windrow_plan::limit_to_ranges(&definition.query, window.time_index(), &all)?
            }
            None => definition.query.clone(),
        };
        let expected = self.one_batch(definition.matched.align(expected)?).await?;
        let held = self.sink_rows(&flow).await?;
        let expected = comparable(&expected, &flow)?;
        let held = comparable(&held, &flow)?;
        compare(name, &expected, &held)
    }

    async fn one_batch(&self, plan: LogicalPlan) -> Result<RecordBatch, EngineError> {
        let frame = self.session.execute_logical_plan(plan).await?;
        let schema = Arc::new(frame.schema().as_arrow().clone());
        let batches = frame.collect().await?;
        let batches = batches.iter().map(|batch| fit(&schema, batch)).collect::<Result<Vec<_>, _>>()?;
        Ok(concat_batches(&schema, &batches)?)
    }

    async fn sink_rows(&self, flow: &Flow) -> Result<RecordBatch, EngineError> {
        let sink = &flow.tables().sink;
        let provider = sink.scan(&ReadBounds::Latest).await?;
        let mut frame = self.session.read_table(provider)?;
        let spec = sink.spec();
        if let (Some(window), Some(index)) = (&flow.definition().window, spec.time_index()) {
            let field = spec.schema().field(index);
            let labels = window.labels_of(flow.live_range(window)?)?;
            let column = datafusion::common::Column::new_unqualified(field.name());
            let live = windrow_plan::in_ranges(column, field.data_type(), &[labels])?;
            frame = frame.filter(live)?;
        }
        let batches = frame.collect().await?;
        Ok(concat_batches(spec.schema(), &batches)?)
    }
}

/// The columns that can be compared: not the one that says when a row was written, and none for which the query may give one of several values.
fn comparable(rows: &RecordBatch, flow: &Flow) -> Result<RecordBatch, EngineError> {
    let definition = flow.definition();
    let outputs = definition.query.schema().fields().len();
    let ambiguous = windrow_plan::ambiguous_outputs(&definition.query)?;
    let exact = (0..outputs).filter(|output| !ambiguous.contains(output));
    let mut kept: Vec<usize> = exact.filter_map(|output| definition.matched.column_of(output)).collect();
    kept.sort_unstable();
    Ok(rows.project(&kept)?)
}

fn compare(flow: &str, expected: &RecordBatch, held: &RecordBatch) -> Result<CheckReport, EngineError> {
    let is_float = |index: &usize| expected.column(*index).data_type().is_floating();
    let (floats, exact): (Vec<usize>, Vec<usize>) = (0..expected.num_columns()).partition(is_float);
    let fields = exact.iter().map(|&i| SortField::new(expected.column(i).data_type().clone())).collect();
    let converter = RowConverter::new(fields)?;
    let keys = |batch: &RecordBatch| -> Result<Vec<OwnedRow>, EngineError> {
        if exact.is_empty() {
            return Ok(Vec::new());
        }
        let columns = exact
            .iter()
            .map(|&i| cast(batch.column(i), expected.column(i).data_type()))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(converter.convert_columns(&columns)?.iter().map(|row| row.owned()).collect())
    };
    let numbers = |batch: &RecordBatch| -> Result<Vec<ArrayRef>, EngineError> {
        Ok(floats.iter().map(|&i| cast(batch.column(i), &DataType::Float64)).collect::<Result<_, _>>()?)
    };
    let (expected_keys, held_keys) = (keys(expected)?, keys(held)?);
    let (expected_floats, held_floats) = (numbers(expected)?, numbers(held)?);
    let key_of = |keys: &[OwnedRow], row: usize| keys.get(row).cloned();

    // Rows that agree exactly wherever they can, by these values; among them, floats decide.
    let mut waiting: HashMap<Option<OwnedRow>, Vec<usize>> = HashMap::new();
    for row in 0..held.num_rows() {
        waiting.entry(key_of(&held_keys, row)).or_default().push(row);
    }
    let mut missing = 0;
    for row in 0..expected.num_rows() {
        let found = waiting.get_mut(&key_of(&expected_keys, row)).and_then(|candidates| {
            let near = |other: &usize| all_near(&expected_floats, row, &held_floats, *other);
            candidates.iter().position(near).map(|index| candidates.swap_remove(index))
        });
        missing += u64::from(found.is_none());
    }
    Ok(CheckReport {
        flow: flow.to_owned(),
        query_rows: expected.num_rows() as u64,
        sink_rows: held.num_rows() as u64,
        missing,
        extra: waiting.values().map(|rows| rows.len() as u64).sum(),
    })
}

fn all_near(left: &[ArrayRef], left_row: usize, right: &[ArrayRef], right_row: usize) -> bool {
    left.iter().zip(right).all(|(left, right)| {
        let value = |array: &ArrayRef, row: usize| {
            array.is_valid(row).then(|| array.as_primitive::<Float64Type>().value(row))
        };
        match (value(left, left_row), value(right, right_row)) {
            (Some(a), Some(b)) => {
                a == b
                    || (a.is_nan() && b.is_nan())
                    || (a - b).abs() <= FLOAT_TOLERANCE * a.abs().max(b.abs())
            }
            (None, None) => true,
            _ => false,
        }
    })
}

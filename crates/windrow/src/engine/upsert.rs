//! `INSERT` into a table whose rows keep the values that newer rows have none for (`merge_mode = 'last_non_null'`).

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch, UInt64Array};
use arrow::compute::{concat_batches, take};
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream;
use windrow_plan::keep_values;
use windrow_table::{Commit, ReadBounds, SinkTable, TableError, Write, fit};

use super::declaration::TableDeclaration;
use super::{EngineError, Inner};

impl Inner {
    /// Commits the rows of `plan`, each with the values that it has none for from the row that has its key.
    pub(super) async fn merge_rows(
        &self,
        table: &dyn SinkTable,
        declaration: &TableDeclaration,
        plan: LogicalPlan,
    ) -> Result<u64, EngineError> {
        let spec = table.spec();
        let schema = spec.schema();
        let key = spec.row_key().unwrap_or_default();
        let others: Vec<usize> = (0..schema.fields().len()).filter(|i| !key.contains(i)).collect();
        // The rows are made once, though it may take several tries to commit them.
        let rows = self.session.execute_logical_plan(plan).await?.collect().await?;
        let rows = rows.iter().map(|batch| fit(schema, batch)).collect::<Result<Vec<_>, _>>()?;
        let rows = last_values(&concat_batches(schema, &rows)?, &key)?;
        let new = self.session.read_batch(rows)?.into_unoptimized_plan();
        loop {
            let at = table.watermarks().await?;
            let old = table.scan(&ReadBounds::Snapshot(at.clone())).await?;
            let old = self.session.read_table(old)?.into_unoptimized_plan();
            let state = self.session.state();
            let plan = keep_values(new.clone(), old, &key, &others)?;
            let physical = state.create_physical_plan(&plan).await?;
            let rows = execute_stream(physical, state.task_ctx())?;
            let write = Write::Upsert { key: key.clone() };
            match table.commit(Commit { write, rows, progress: None, expected: Some(at) }).await {
                Ok(done) => {
                    self.notify_users(&declaration.name);
                    return Ok(done.rows_added);
                }
                Err(TableError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// One row for each key, with the last value of every other column that is not NULL.
fn last_values(rows: &RecordBatch, key: &[usize]) -> Result<RecordBatch, EngineError> {
    let fields = key.iter().map(|&index| SortField::new(rows.column(index).data_type().clone())).collect();
    let converter = RowConverter::new(fields)?;
    let columns: Vec<_> = key.iter().map(|&index| Arc::clone(rows.column(index))).collect();
    let mut groups: HashMap<OwnedRow, usize> = HashMap::new();
    let group_of: Vec<usize> = converter
        .convert_columns(&columns)?
        .iter()
        .map(|row| {
            let next = groups.len();
            *groups.entry(row.owned()).or_insert(next)
        })
        .collect();
    let columns = rows.columns().iter().map(|column| {
        let mut last: Vec<Option<u64>> = vec![None; groups.len()];
        for (row, &group) in group_of.iter().enumerate().filter(|(row, _)| column.is_valid(*row)) {
            last[group] = Some(row as u64);
        }
        take(column, &UInt64Array::from(last), None)
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new(rows.schema(), columns)?)
}

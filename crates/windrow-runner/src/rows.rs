//! From the result of a query to rows of the sink.

use std::sync::Arc;

use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use windrow_plan::keep_values;
use windrow_table::LatestRows;

use crate::{Flow, RefreshError};

impl Flow {
    /// The rows of the sink that the result of `query` makes. Columns that the query gives nothing for keep the values that
    /// they have in `known`, the rows of the sink that are replaced; the commit has to be refused if these have changed.
    pub(crate) fn rows_of(
        &self,
        query: LogicalPlan,
        known: impl FnOnce() -> Result<LogicalPlan, RefreshError>,
    ) -> Result<LogicalPlan, RefreshError> {
        let rows = self.definition.matched.align(query)?;
        let kept = self.kept_columns();
        match self.tables.sink.spec().row_key() {
            Some(key) if !kept.is_empty() => Ok(keep_values(rows, known()?, &key, &kept)?),
            _ => Ok(rows),
        }
    }

    /// The columns of the sink that the query gives nothing for.
    pub(crate) fn kept_columns(&self) -> Vec<usize> {
        self.definition.matched.kept_columns()
    }

    /// All rows of the sink, with the columns that queries do not see.
    pub(crate) fn sink_scan(&self) -> Result<LogicalPlan, RefreshError> {
        let name = self.definition.sink.clone();
        let source = provider_as_source(Arc::new(LatestRows::of(Arc::clone(&self.tables.sink))));
        Ok(LogicalPlanBuilder::scan(name, source, None)?.build()?)
    }
}

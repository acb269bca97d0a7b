//! Running a query in this process.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use chrono::DateTime;
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::Transformed;
use datafusion::datasource::provider_as_source;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use windrow_table::{Commit, RowStream, SelectedColumns, SinkTable, SourceTable, TableError, fit};

use crate::{ExecuteError, Executor, FlowOutcome, FlowQuery, Statement};

/// Finds the tables that a query names.
pub trait TableResolver: Debug + Send + Sync {
    /// The table of that name, as a source.
    fn source(&self, table: &TableReference) -> Option<Arc<dyn SourceTable>>;
    /// The table of that name, as a sink.
    fn sink(&self, table: &TableReference) -> Option<Arc<dyn SinkTable>>;
}

/// Runs queries in this process, in the session that planned them.
pub struct EmbeddedExecutor {
    session: SessionContext,
    tables: Arc<dyn TableResolver>,
}

impl Debug for EmbeddedExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EmbeddedExecutor").field("tables", &self.tables).finish_non_exhaustive()
    }
}

impl EmbeddedExecutor {
    /// An executor on `session`, for the tables that `tables` finds.
    #[must_use]
    pub fn new(session: SessionContext, tables: Arc<dyn TableResolver>) -> Self {
        Self { session, tables }
    }

    async fn run(&self, query: FlowQuery) -> Result<FlowOutcome, ExecuteError> {
        let started = Instant::now();
        let FlowQuery { statement, write, progress, expected_sink, bounds, scheduled_time_millis, .. } =
            query;
        let Statement::InsertInto { table, plan } = statement;
        let sink = self.tables.sink(&table).ok_or_else(|| ExecuteError::UnknownTable(table.clone()))?;
        let mut providers = Vec::with_capacity(bounds.len());
        let mut read = Vec::with_capacity(bounds.len());
        for (name, bounds) in bounds {
            let source = self.tables.source(&name).ok_or_else(|| ExecuteError::UnknownTable(name.clone()))?;
            // A scan that opens reads within exactly its bounds.
            let provider = source.scan(&bounds).await?;
            read.extend(bounds.upto().map(|upto| (name.clone(), upto.clone())));
            providers.push((name, provider));
        }
        let plan = bind(*plan, &providers)?;
        let state = self.state_at(scheduled_time_millis)?;
        let physical = state.create_physical_plan(&plan).await?;
        let rows = execute_stream(Arc::clone(&physical), state.task_ctx())?;
        let schema = Arc::clone(sink.spec().schema());
        let fitting = Arc::clone(&schema);
        let fitted = rows.map(move |batch| {
            fit(&fitting, &batch?).map_err(|error| DataFusionError::External(Box::new(error)))
        });
        let rows: RowStream = Box::pin(RecordBatchStreamAdapter::new(schema, fitted));
        let commit = Commit { write, rows, progress, expected: expected_sink };
        let committed = sink.commit(commit).await?;
        Ok(FlowOutcome {
            rows_written: committed.rows_added,
            rows_removed: committed.rows_removed,
            rows_read: rows_out_of_scans(physical.as_ref()),
            read,
            sink_at: committed.at,
            elapsed: started.elapsed(),
        })
    }

    fn state_at(&self, scheduled_time_millis: Option<i64>) -> Result<SessionState, ExecuteError> {
        let mut state = self.session.state();
        if let Some(millis) = scheduled_time_millis {
            let time = DateTime::from_timestamp_millis(millis).ok_or_else(|| {
                DataFusionError::Plan(format!("the scheduled time {millis} ms is out of range"))
            })?;
            state.execution_props_mut().query_execution_start_time = Some(time);
        }
        Ok(state)
    }
}

#[async_trait]
impl Executor for EmbeddedExecutor {
    async fn execute(&self, query: FlowQuery) -> Result<FlowOutcome, ExecuteError> {
        let Some(deadline) = query.deadline else { return flatten(self.run(query).await) };
        match tokio::time::timeout(deadline, self.run(query)).await {
            Ok(outcome) => flatten(outcome),
            Err(_) => Err(ExecuteError::Deadline(deadline)),
        }
    }
}

/// A table's error that came through DataFusion becomes that error again.
fn flatten(outcome: Result<FlowOutcome, ExecuteError>) -> Result<FlowOutcome, ExecuteError> {
    let (Err(ExecuteError::Query(error)) | Err(ExecuteError::Table(TableError::Query(error)))) = outcome
    else {
        return outcome;
    };
    Err(match error {
        DataFusionError::External(inner) => match inner.downcast::<TableError>() {
            Ok(table) => ExecuteError::Table(*table),
            Err(inner) => ExecuteError::Query(DataFusionError::External(inner)),
        },
        other => ExecuteError::Query(other),
    })
}

/// The plan with these tables read through these providers.
fn bind(
    plan: LogicalPlan,
    providers: &[(TableReference, Arc<dyn TableProvider>)],
) -> DataFusionResult<LogicalPlan> {
    let bound = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::TableScan(mut scan) = node else { return Ok(Transformed::no(node)) };
        let Some((_, provider)) = providers.iter().find(|(name, _)| *name == scan.table_name) else {
            return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
        };
        // The plan may have been made without columns that are not for queries.
        let known = scan.source.schema();
        let provider =
            SelectedColumns::of(Arc::clone(provider), |name| known.column_with_name(name).is_some());
        scan.source = provider_as_source(provider);
        Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
    })?;
    Ok(bound.data)
}

/// How many rows the leaves of a plan that ran gave: by their metrics, or where they keep none, by what they hold.
fn rows_out_of_scans(plan: &dyn ExecutionPlan) -> u64 {
    let children = plan.children();
    if !children.is_empty() {
        return children.into_iter().map(|child| rows_out_of_scans(child.as_ref())).sum();
    }
    let counted = plan.metrics().and_then(|metrics| metrics.output_rows());
    let held = || match StatisticsContext::new().compute(plan, &StatisticsArgs::new()).ok()?.num_rows {
        Precision::Exact(rows) => Some(rows),
        _ => None,
    };
    counted.or_else(held).unwrap_or(0) as u64
}

//! The request and the answer.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use datafusion::common::TableReference;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::LogicalPlan;
use windrow_state::{Progress, Watermarks};
use windrow_table::{ReadBounds, TableError, Write};

/// What is to be computed.
#[derive(Debug, Clone)]
pub enum Statement {
    /// The rows of `plan`, which has exactly the columns of `table`, go into `table`.
    InsertInto {
        /// The sink, fully qualified.
        table: TableReference,
        /// The rows.
        plan: Box<LogicalPlan>,
    },
}

/// One query of a flow.
#[derive(Debug, Clone)]
pub struct FlowQuery {
    /// What is to be computed.
    pub statement: Statement,
    /// What happens to the rows that the sink has.
    pub write: Write,
    /// The name of the flow, and the progress to be committed with the rows.
    pub progress: Option<(String, Progress)>,
    /// The state of the sink that the query was made for.
    pub expected_sink: Option<Watermarks>,
    /// Which rows of each source are read; a table that is not named is read as it is.
    pub bounds: Vec<(TableReference, ReadBounds)>,
    /// What `now()` is in the query, in milliseconds; `None` for the time at which it runs.
    pub scheduled_time_millis: Option<i64>,
    /// How long the query may take.
    pub deadline: Option<Duration>,
}

/// What came of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowOutcome {
    /// Rows added to the sink.
    pub rows_written: u64,
    /// Rows that left the sink.
    pub rows_removed: u64,
    /// Rows that came out of the scans of the query, those of the sink included.
    pub rows_read: u64,
    /// Up to where each table with bounds was read, as its scan has opened it.
    pub read: Vec<(TableReference, Watermarks)>,
    /// The sink's watermarks with the query's commit as the newest.
    pub sink_at: Watermarks,
    /// How long it took.
    pub elapsed: Duration,
}

/// Why a query failed.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// A table of the query is not known.
    #[error("there is no table {0}")]
    UnknownTable(TableReference),
    /// The rows could not be computed.
    #[error(transparent)]
    Query(#[from] DataFusionError),
    /// A source or the sink refused; see [`TableError`] for what can be done about it.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The deadline passed. Whether the commit happened is in the sink's own progress.
    #[error("the query took longer than {0:?}")]
    Deadline(Duration),
}

/// Runs flow queries.
#[async_trait]
pub trait Executor: Debug + Send + Sync {
    /// Runs `query` and commits its rows and progress in one step, or nothing: if a table cannot be read within exactly
    /// its bounds, the progress would not be true.
    ///
    /// # Errors
    /// See [`ExecuteError`].
    async fn execute(&self, query: FlowQuery) -> Result<FlowOutcome, ExecuteError>;
}

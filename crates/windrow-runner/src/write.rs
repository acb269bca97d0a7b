//! What a flow has committed, and how it commits more.

use datafusion::common::TableReference;
use datafusion::logical_expr::LogicalPlan;
use windrow_state::{Progress, Watermarks};
use windrow_table::{CommittedProgress, ReadBounds, SourceTable, TableError, Write};
use windrow_transport::{FlowOutcome, FlowQuery, Statement};

use crate::{Flow, RefreshError};

/// A query whose result goes into a flow's sink.
pub(crate) struct FlowWrite {
    /// Its columns are those of the flow's query.
    pub(crate) query: LogicalPlan,
    pub(crate) write: Write,
    pub(crate) bounds: Vec<(TableReference, ReadBounds)>,
    /// What is true of the sink then.
    pub(crate) progress: Progress,
    /// Where the sink must still be.
    pub(crate) expected_sink: Option<Watermarks>,
    pub(crate) now_millis: i64,
}

impl Flow {
    /// The progress that is in the sink; none if it is that of a source that has another past than this one.
    pub(crate) async fn committed(&self) -> Result<Option<CommittedProgress>, RefreshError> {
        let Some(committed) = self.tables.sink.progress(&self.definition.id).await? else { return Ok(None) };
        let Some(mark) = committed.progress.source_mark() else { return Ok(Some(committed)) };
        match self.source_mark(committed.progress.checkpoint()).await {
            Ok(Some(other)) if other != mark => {
                let flow = &self.definition.name;
                tracing::warn!(flow, "the source was put back to an earlier time: the flow starts over");
                Ok(None)
            }
            // The watermarks say so, too.
            Ok(_) | Err(TableError::Stale { .. }) => Ok(Some(committed)),
            Err(error) => Err(error.into()),
        }
    }

    /// Runs the query, and commits its result with the progress.
    pub(crate) async fn write(
        &self,
        write: FlowWrite,
        known: impl FnOnce(&Write) -> Result<LogicalPlan, RefreshError>,
    ) -> Result<FlowOutcome, RefreshError> {
        let FlowWrite { query, write, bounds, progress, expected_sink, now_millis } = write;
        let plan = Box::new(self.rows_of(query, || known(&write))?);
        let source_mark = self.source_mark(progress.checkpoint()).await?;
        let query = FlowQuery {
            statement: Statement::InsertInto { table: self.definition.sink.clone(), plan },
            write,
            progress: Some((self.definition.id.clone(), progress.with_source_mark(source_mark))),
            expected_sink,
            bounds,
            scheduled_time_millis: self.scheduled_time(now_millis),
            deadline: Some(self.definition.options.cadence.query_timeout),
        };
        Ok(self.executor.execute(query).await?)
    }

    async fn source_mark(&self, checkpoint: &Watermarks) -> Result<Option<u64>, TableError> {
        match self.followed_source() {
            Some((_, source)) => source.mark(checkpoint).await,
            None => Ok(None),
        }
    }

    /// The source that the checkpoint is of.
    pub(crate) fn followed_source(&self) -> Option<&(TableReference, std::sync::Arc<dyn SourceTable>)> {
        match (&self.definition.window, self.tables.sources.as_slice()) {
            (Some(window), sources) => sources.iter().find(|(name, _)| name == window.source()),
            (None, [source]) => Some(source),
            (None, _) => None,
        }
    }
}

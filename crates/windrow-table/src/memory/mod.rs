//! Tables in memory.

mod history;
mod scan;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;
use async_trait::async_trait;
use datafusion::catalog::TableProvider;
use futures::TryStreamExt;
use windrow_state::{Sequence, SequenceRange, Watermarks};
use windrow_time::InstantRange;

use self::history::History;
use self::scan::MemoryScan;
use crate::{
    Changes, Commit, Committed, CommittedProgress, InOneWindow, ReadBounds, SinkTable, SourceTable,
    TableError, TableSpec, overlapping_rows, rows,
};

/// The one region of a table in memory.
const REGION: u64 = 0;

/// A table in memory: one region, every commit a sequence. Older states can be read until
/// [`MemoryTable::RETAINED_COMMITS`] later ones were made.
///
/// ```
/// use std::sync::Arc;
/// use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
/// use windrow_table::{MemoryTable, SourceTable, TableSpec};
///
/// let schema = Arc::new(Schema::new(vec![
///     Field::new("ts", DataType::Timestamp(TimeUnit::Millisecond, None), false),
///     Field::new("host", DataType::Utf8, true),
/// ]));
/// let spec = TableSpec::new(schema)?.with_time_index("ts")?.with_primary_key(&["host"])?;
/// assert_eq!(MemoryTable::new(spec).spec().row_key(), Some(vec![1, 0]));
/// # Ok::<(), windrow_table::SpecError>(())
/// ```
#[derive(Debug)]
pub struct MemoryTable {
    spec: TableSpec,
    // Held only to take or to swap a value, never while rows are produced.
    history: Mutex<Arc<History>>,
    // One commit at a time: from looking at the history to swapping it.
    writing: tokio::sync::Mutex<()>,
}

impl MemoryTable {
    /// How many commits back an older state can be read.
    pub const RETAINED_COMMITS: u64 = 1_000;

    /// An empty table.
    #[must_use]
    pub fn new(spec: TableSpec) -> Self {
        Self { spec, history: Mutex::default(), writing: tokio::sync::Mutex::default() }
    }

    fn history(&self) -> Arc<History> {
        Arc::clone(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Arc<History>> {
        // The lock protects a swap of one pointer, which no panic can leave half done.
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn watermarks(sequence: Sequence) -> Watermarks {
    Watermarks::of(REGION, sequence)
}

#[async_trait]
impl SourceTable for MemoryTable {
    fn spec(&self) -> &TableSpec {
        &self.spec
    }

    async fn watermarks(&self) -> Result<Watermarks, TableError> {
        Ok(watermarks(self.history().newest()))
    }

    // What a segment has is at hand: its ends say no more than it.
    async fn changes(&self, range: &SequenceRange, _: InOneWindow<'_>) -> Result<Changes, TableError> {
        let (after, upto) = range.of_region(REGION);
        self.history().changes(&self.spec, after, upto)
    }

    async fn scan(&self, bounds: &ReadBounds) -> Result<Arc<dyn TableProvider>, TableError> {
        let history = self.history();
        let segments = match bounds {
            ReadBounds::Latest => history.snapshot(history.newest())?,
            ReadBounds::Snapshot(at) => history.snapshot(at.get(REGION))?,
            ReadBounds::Appended(range) => {
                let (after, upto) = range.of_region(REGION);
                history.appended(after, upto)?
            }
        };
        Ok(Arc::new(MemoryScan::new(self.spec.clone(), segments)))
    }

    async fn estimate_rows(&self, ranges: &[InstantRange]) -> Result<u64, TableError> {
        let history = self.history();
        let segments = history.snapshot(history.newest())?;
        Ok(overlapping_rows(segments.iter().map(|s| (s.span(), s.batch().num_rows() as u64)), ranges))
    }
}

#[async_trait]
impl SinkTable for MemoryTable {
    async fn progress(&self, flow: &str) -> Result<Option<CommittedProgress>, TableError> {
        Ok(self.history().progress(flow).map(|(progress, sequence)| CommittedProgress {
            progress: progress.clone(),
            at: watermarks(*sequence),
        }))
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, TableError> {
        let Commit { write, rows, progress, expected } = commit;
        let batches: Vec<RecordBatch> = rows.try_collect().await?;
        let new_rows = rows::concat(self.spec.schema(), &batches)?;
        drop(batches);

        let _writing = self.writing.lock().await;
        let before = self.history();
        let found = watermarks(before.newest());
        if let Some(expected) = expected.filter(|expected| *expected != found) {
            return Err(TableError::Conflict { expected, found });
        }
        let (after, changed) = before.apply(&self.spec, &write, new_rows, progress)?;
        let at = watermarks(after.newest());
        *self.lock() = Arc::new(after);
        Ok(Committed { at, rows_added: changed.added, rows_removed: changed.removed })
    }
}

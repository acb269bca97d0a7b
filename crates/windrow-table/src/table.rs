//! The traits of source and sink tables.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::ArrayRef;
use async_trait::async_trait;
use datafusion::catalog::TableProvider;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_expr::PhysicalExpr;
use windrow_state::{Progress, SequenceRange, Watermarks};
use windrow_time::InstantRange;

use crate::{TableError, TableSpec};

/// Rows with the schema of the table that they are for.
pub type RowStream = SendableRecordBatchStream;

/// Which rows a scan gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadBounds {
    /// All rows, as of the commit that is the newest when the scan opens.
    Latest,
    /// All rows, as of exactly these sequences.
    Snapshot(Watermarks),
    /// The rows that the commits in the range added. All of these commits must be pure appends.
    Appended(SequenceRange),
}

impl ReadBounds {
    /// Up to where is read, where the bounds say so.
    #[must_use]
    pub fn upto(&self) -> Option<&Watermarks> {
        match self {
            Self::Latest => None,
            Self::Snapshot(upto) => Some(upto),
            Self::Appended(range) => Some(&range.upto),
        }
    }
}

/// Whether all instants of a range are in one window. For a segment of rows whose earliest and latest instant are known,
/// these two then say as much as all of its rows.
pub type InOneWindow<'a> = &'a (dyn Fn(InstantRange) -> bool + Send + Sync);

/// What the commits of a range changed, as the time index of the rows concerned.
///
/// Arrays may repeat an instant and may name more instants than changed, never fewer windows.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Rows of commits that only added rows.
    pub appended: Vec<ArrayRef>,
    /// How many these are.
    pub appended_rows: u64,
    /// Rows that other commits removed, and rows that they added.
    pub rewritten: Vec<ArrayRef>,
}

impl Changes {
    /// Whether nothing but appends happened.
    #[must_use]
    pub fn are_appends(&self) -> bool {
        self.rewritten.iter().all(|array| array.is_empty())
    }

    /// Whether no row is concerned. A table without time index cannot tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.appended.iter().chain(&self.rewritten).all(|array| array.is_empty())
    }
}

/// A table that flows read.
#[async_trait]
pub trait SourceTable: Debug + Send + Sync {
    /// What the table is declared to be.
    fn spec(&self) -> &TableSpec;

    /// The newest commit of every region, as of now.
    async fn watermarks(&self) -> Result<Watermarks, TableError>;

    /// What the commits of the range changed. A range from nothing names every row that is there at its end,
    /// as appended. Of segments that are in one window, no more than one of the window's instants has to be named.
    ///
    /// # Errors
    /// [`TableError::Stale`] when the table no longer knows.
    async fn changes(
        &self,
        range: &SequenceRange,
        in_one_window: InOneWindow<'_>,
    ) -> Result<Changes, TableError>;

    /// A provider of the rows within the bounds. Filters on the time index reach the storage: segments or files
    /// that have no row to pass are not read.
    ///
    /// # Errors
    /// [`TableError::Stale`] when these rows can no longer be read exactly, [`TableError::NotAppends`] when
    /// the range asked for did more than append.
    async fn scan(&self, bounds: &ReadBounds) -> Result<Arc<dyn TableProvider>, TableError>;

    /// Something that the commit at these watermarks has, and no other one would have in its place: it tells a table from
    /// one that was put back from a backup and has gone on otherwise since. `None` where that cannot be told.
    async fn mark(&self, at: &Watermarks) -> Result<Option<u64>, TableError> {
        let _ = at;
        Ok(None)
    }

    /// Says that `reader` is going to ask for what comes after these watermarks, so that this is not cleaned up; with
    /// `None`, that it will not ask for anything older than the newest commit. Holds are as lasting as the handle.
    fn hold(&self, reader: &str, after: Option<&Watermarks>) {
        let _ = (reader, after);
    }

    /// At most how many of the newest commit's rows have their time index in `ranges`, by statistics alone.
    async fn estimate_rows(&self, ranges: &[InstantRange]) -> Result<u64, TableError>;
}

/// What a commit does to the rows that a table has, before its own rows are added.
#[derive(Debug, Clone)]
pub enum Write {
    /// Nothing.
    Append,
    /// Rows that agree with a new row in these columns go; of new rows that agree, the last stays.
    /// NULL agrees with NULL.
    Upsert {
        /// The positions of the columns.
        key: Vec<usize>,
    },
    /// Rows whose time index is in these ranges go. The ranges are sorted and disjoint.
    Replace {
        /// In the time index's unit.
        ranges: Vec<InstantRange>,
    },
    /// All rows go.
    ReplaceAll,
    /// No row goes or comes: segments or files that are small become fewer and larger. Changes nothing for readers.
    Compact,
    /// Rows for which the predicate is true go.
    Delete {
        /// A boolean expression over the table's columns.
        predicate: Arc<dyn PhysicalExpr>,
    },
}

/// One atomic change of a table.
pub struct Commit {
    /// What happens to the rows that are there.
    pub write: Write,
    /// The rows to be added.
    pub rows: RowStream,
    /// The progress of the named flow that becomes true with the rows.
    pub progress: Option<(String, Progress)>,
    /// Where the table must still be; `None` to commit on whatever is there.
    pub expected: Option<Watermarks>,
}

/// What a commit did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The table's watermarks with this commit as the newest.
    pub at: Watermarks,
    /// Rows added.
    pub rows_added: u64,
    /// Rows removed.
    pub rows_removed: u64,
}

/// A flow's progress, with the commit that it came with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommittedProgress {
    /// The progress.
    pub progress: Progress,
    /// The commit.
    pub at: Watermarks,
}

/// A table that flows write.
#[async_trait]
pub trait SinkTable: SourceTable {
    /// The last committed progress of `flow`.
    async fn progress(&self, flow: &str) -> Result<Option<CommittedProgress>, TableError>;

    /// Makes the change, all of it or nothing.
    ///
    /// # Errors
    /// [`TableError::Conflict`] when the table is not where the commit expects it.
    async fn commit(&self, commit: Commit) -> Result<Committed, TableError>;

    /// Deletes what is kept for older commits only, if it is old enough and nobody [holds](SourceTable::hold) it. The
    /// answer is the number of files.
    ///
    /// # Errors
    /// When the storage fails.
    async fn clean_up(&self) -> Result<u64, TableError> {
        Ok(0)
    }
}

//! What can go wrong with a table.

use datafusion::error::DataFusionError;
use windrow_state::{RegionId, Sequence, Watermarks};

/// Why a table could not do what was asked. Each variant is something a caller can act on.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The rows or changes asked for can no longer be read exactly.
    #[error("region {region} can no longer be read at sequence {asked}; the oldest readable is {oldest}")]
    Stale {
        /// The region.
        region: RegionId,
        /// The bound asked for.
        asked: Sequence,
        /// The oldest one that is readable.
        oldest: Sequence,
    },
    /// Someone else committed first; nothing was written.
    #[error("the table is at ({found}), not at ({expected}) as the commit expects")]
    Conflict {
        /// What the commit was based on.
        expected: Watermarks,
        /// Where the table is.
        found: Watermarks,
    },
    /// The commits asked for did more than append rows.
    #[error("sequences after {after} up to {upto} are not pure appends")]
    NotAppends {
        /// The exclusive lower bound.
        after: Sequence,
        /// The inclusive upper bound.
        upto: Sequence,
    },
    /// A row has no time index.
    #[error("column {column} is the time index and cannot be NULL")]
    NullTimeIndex {
        /// The time index.
        column: String,
    },
    /// Rows do not have the table's schema.
    #[error("the rows do not fit the table: {0}")]
    Schema(String),
    /// The rows could not be produced or read.
    #[error(transparent)]
    Query(#[from] DataFusionError),
    /// The storage failed.
    #[error("{context}: {source}")]
    Storage {
        /// What was being done.
        context: String,
        /// What the storage said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl TableError {
    /// A failure of the storage while doing what `context` says.
    pub fn storage(
        context: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Storage { context: context.into(), source: source.into() }
    }
}

impl From<arrow::error::ArrowError> for TableError {
    fn from(error: arrow::error::ArrowError) -> Self {
        Self::Query(error.into())
    }
}

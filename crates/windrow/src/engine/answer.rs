//! What a statement answers.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

/// What a statement answers.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Rows.
    Rows {
        /// Their columns, also where there are no rows.
        schema: SchemaRef,
        /// The rows.
        batches: Vec<RecordBatch>,
    },
    /// Something was done.
    Done {
        /// What, in a few words.
        message: String,
    },
    /// Rows of a table changed.
    Changed {
        /// What happened to them: `inserted`, `deleted`.
        verb: &'static str,
        /// How many.
        rows: u64,
    },
}

impl Answer {
    pub(super) fn done(message: impl Into<String>) -> Self {
        Self::Done { message: message.into() }
    }

    /// The rows, of an answer that has rows.
    #[must_use]
    pub fn rows(&self) -> Option<&[RecordBatch]> {
        match self {
            Self::Rows { batches, .. } => Some(batches),
            _ => None,
        }
    }

    /// Whether rows of a table changed, so that flows may have something to do.
    #[must_use]
    pub fn changed_rows(&self) -> bool {
        matches!(self, Self::Changed { .. })
    }
}

//! What can be wrong with a Delta table that is made or opened.

use arrow::datatypes::DataType;
use windrow_table::{SpecError, TableError};

/// Why a Delta table cannot be made, opened or used as declared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeltaError {
    /// The text names no place that a table could be at.
    #[error("{location} is not the location of a table: {reason}")]
    Location {
        /// The location.
        location: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The location does not exist.
    #[error("there is nothing at {location}")]
    Missing {
        /// The location.
        location: String,
    },
    /// The location has no Delta log.
    #[error("{location} is not a Delta table")]
    NotATable {
        /// The location.
        location: String,
    },
    /// The location has a Delta log already.
    #[error("there is already a Delta table at {location}")]
    Exists {
        /// The location.
        location: String,
    },
    /// The table cannot be made there.
    #[error("{location} cannot be written: {source}")]
    NotWritable {
        /// The location.
        location: String,
        /// What the storage said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A declared type has no counterpart that keeps every value.
    #[error("column {column} of type {data_type} cannot be stored in a Delta table: {reason}")]
    Type {
        /// The column.
        column: String,
        /// The type, or the part of it that is in the way.
        data_type: DataType,
        /// Why.
        reason: &'static str,
    },
    /// The columns of the log are not those of the declaration, or cannot be a table's columns at all.
    #[error("the columns do not fit the Delta table: {0}")]
    Columns(String),
    /// The table uses something of the Delta protocol that would have to be honoured to read it rightly.
    #[error("the Delta table cannot be read: it uses {0}")]
    Unreadable(String),
    /// The table uses something of the Delta protocol that would have to be honoured to write it rightly.
    #[error("the Delta table cannot be written: {0}")]
    Unwritable(String),
    /// The declaration does not hold together.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The storage, or the log in it, failed.
    #[error("{context}: {source}")]
    Storage {
        /// What was being done.
        context: String,
        /// What the storage said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl DeltaError {
    pub(crate) fn storage(
        context: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::Storage { context: context.into(), source: source.into() }
    }
}

impl From<DeltaError> for TableError {
    fn from(error: DeltaError) -> Self {
        match error {
            DeltaError::Type { .. } | DeltaError::Columns(_) | DeltaError::Spec(_) => {
                Self::Schema(error.to_string())
            }
            DeltaError::Storage { context, source } => Self::Storage { context, source },
            other => Self::storage("the table cannot be used", other),
        }
    }
}

//! Why a refresh failed.

use datafusion::error::DataFusionError;
use windrow_plan::{PlanError, StateMissing};
use windrow_state::{ProgressError, Reason};
use windrow_table::TableError;
use windrow_time::{MarkError, WindowError};
use windrow_transport::ExecuteError;

/// Why a refresh failed. Nothing was written and nothing was lost; the next refresh starts from the committed
/// progress.
#[derive(Debug, thiserror::Error)]
pub enum RefreshError {
    /// A source or the sink could not be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The query could not be run.
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    /// The plan of the refresh could not be built.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A changed row has no window.
    #[error(transparent)]
    Mark(#[from] MarkError),
    /// The executor has committed what it has not read.
    #[error("what was committed is not proved: {0}")]
    Unproved(Reason),
    /// The move would not have been true.
    #[error(transparent)]
    Progress(#[from] ProgressError),
}

impl From<WindowError> for RefreshError {
    fn from(error: WindowError) -> Self {
        Self::Mark(error.into())
    }
}

impl From<DataFusionError> for RefreshError {
    fn from(error: DataFusionError) -> Self {
        Self::Plan(error.into())
    }
}

impl RefreshError {
    /// Whether a source can no longer be read as it was to be: the next try reads a newer snapshot.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        matches!(
            self,
            Self::Table(TableError::Stale { .. })
                | Self::Execute(ExecuteError::Table(TableError::Stale { .. }))
        )
    }

    /// Whether the refresh only has to be tried again: someone else wrote to the sink meanwhile.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(
            self,
            Self::Table(TableError::Conflict { .. })
                | Self::Execute(ExecuteError::Table(TableError::Conflict { .. }))
        )
    }

    /// Whether a row to be merged into has no aggregate state: the flow has to be repaired instead.
    #[must_use]
    pub fn is_state_missing(&self) -> bool {
        let mut error: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(current) = error {
            if current.is::<StateMissing>() {
                return true;
            }
            error = match current.downcast_ref::<DataFusionError>() {
                // An error shared by several readers gives its own source as the next, which skips it.
                Some(DataFusionError::Shared(shared)) => Some(shared.as_ref()),
                Some(DataFusionError::External(inner)) => Some(inner.as_ref()),
                _ => current.source(),
            };
        }
        false
    }
}

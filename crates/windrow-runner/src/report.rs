//! What a refresh did, and where a flow is.

use std::fmt;
use std::time::Duration;

use windrow_state::{Coverage, Decision, Mode, Progress, Reason};
use windrow_transport::FlowOutcome;

use crate::Flow;

/// The kind of move that a refresh made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MoveKind {
    /// There was nothing to do.
    Idle,
    /// Only the checkpoint moved.
    Observe,
    /// Windows were recomputed.
    Repair,
    /// New rows were merged.
    Merge,
    /// The whole query ran.
    Full,
}

impl MoveKind {
    /// The label in logs and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Observe => "observe",
            Self::Repair => "repair",
            Self::Merge => "merge",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for MoveKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What one refresh did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefreshReport {
    /// The flow's name.
    pub flow: String,
    /// The move.
    pub kind: MoveKind,
    /// What the query read; `None` where none ran.
    pub coverage: Option<Coverage>,
    /// What it led to.
    pub decision: Decision,
    /// Why.
    pub reason: Reason,
    /// Windows recomputed or merged into.
    pub windows: u64,
    /// Rows that came out of the query's scans.
    pub rows_read: u64,
    /// Rows added to the sink.
    pub rows_written: u64,
    /// How long the refresh took.
    pub elapsed: Duration,
    /// Whether more is known to be waiting.
    pub more: bool,
}

/// Where a flow is, as of its last refresh.
#[derive(Debug, Clone, Default)]
pub struct FlowStatus {
    /// The committed progress, once it was looked at.
    pub progress: Option<Progress>,
    /// What the last refresh that did something did.
    pub last: Option<RefreshReport>,
    /// The error of the last refresh, if it failed.
    pub error: Option<String>,
    /// How many refreshes did something.
    pub refreshes: u64,
    /// How many refreshes failed.
    pub failures: u64,
    /// Rows written by all of them.
    pub rows_written: u64,
}

impl FlowStatus {
    /// Whether something is to be repaired.
    #[must_use]
    pub fn mode(&self) -> Mode {
        match &self.progress {
            Some(progress) if progress.dirty().is_empty() && !progress.checkpoint().is_none() => {
                Mode::Incremental
            }
            _ => Mode::FullSnapshot,
        }
    }
}

impl Flow {
    pub(crate) fn scheduled_time(&self, now_millis: i64) -> Option<i64> {
        self.definition.options.schedule.and_then(|schedule| schedule.newest_due(now_millis))
    }

    pub(crate) fn report(&self, kind: MoveKind, decision: Decision, reason: Reason) -> RefreshReport {
        RefreshReport {
            flow: self.definition.name.clone(),
            kind,
            coverage: None,
            decision,
            reason,
            windows: 0,
            rows_read: 0,
            rows_written: 0,
            elapsed: Duration::ZERO,
            more: false,
        }
    }
}

impl RefreshReport {
    pub(crate) fn with(mut self, outcome: &FlowOutcome) -> Self {
        self.rows_read = outcome.rows_read;
        self.rows_written = outcome.rows_written;
        self
    }
}

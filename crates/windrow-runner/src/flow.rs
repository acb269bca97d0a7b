//! One flow and its refreshes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use datafusion::common::TableReference;
use tokio::sync::Notify;
use windrow_state::{FlowState, Progress, Watermarks, WindowBudget};
use windrow_table::{SinkTable, SourceTable};
use windrow_transport::Executor;

use crate::{FlowDefinition, FlowStatus, MoveKind, RefreshError, RefreshReport, full, windowed};

/// The tables of a flow.
#[derive(Debug, Clone)]
pub struct FlowTables {
    /// The tables that the query reads, fully qualified. A table that is none of Windrow's is not among them.
    pub sources: Vec<(TableReference, Arc<dyn SourceTable>)>,
    /// The table that it keeps.
    pub sink: Arc<dyn SinkTable>,
}

/// A flow.
#[derive(Debug)]
pub struct Flow {
    pub(crate) definition: FlowDefinition,
    pub(crate) tables: FlowTables,
    pub(crate) executor: Arc<dyn Executor>,
    /// One refresh at a time: the loop and a manual flush wait for each other here. The progress in it is that of the last
    /// refresh; each begins with the one that the sink has.
    pub(crate) execution: tokio::sync::Mutex<Memory>,
    status: Mutex<FlowStatus>,
    pub(crate) wake: Notify,
    /// What its sources know it by.
    reader: String,
}

/// What a flow remembers from one refresh to the next.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) state: FlowState,
    pub(crate) budget: WindowBudget,
}

/// How often a refresh is tried again when someone else writes to the sink at the same time, or the source forgets what was
/// to be read.
const RETRIES: usize = 5;

impl Flow {
    /// A flow that `executor` runs the queries of.
    #[must_use]
    pub fn new(definition: FlowDefinition, tables: FlowTables, executor: Arc<dyn Executor>) -> Self {
        let state = FlowState::new(Progress::start(), definition.merge.is_ok());
        let memory = Memory { state, budget: WindowBudget::default() };
        static FLOWS: AtomicU64 = AtomicU64::new(0);
        // One that is made anew may be there before the one that it replaces has gone.
        let reader = format!("{}#{}", definition.id, FLOWS.fetch_add(1, Ordering::Relaxed));
        let flow = Self {
            reader,
            definition,
            tables,
            executor,
            execution: tokio::sync::Mutex::new(memory),
            status: Mutex::default(),
            wake: Notify::new(),
        };
        // Up to where it has read is not known before the first refresh.
        flow.hold_source(Some(&Watermarks::none()));
        flow
    }

    /// Has the source keep what the flow is going to ask for: what comes after `checkpoint`.
    fn hold_source(&self, checkpoint: Option<&Watermarks>) {
        if let Some((_, source)) = self.followed_source() {
            source.hold(&self.reader, checkpoint);
        }
    }

    /// What the flow is.
    #[must_use]
    pub fn definition(&self) -> &FlowDefinition {
        &self.definition
    }

    /// The tables of the flow.
    #[must_use]
    pub fn tables(&self) -> &FlowTables {
        &self.tables
    }

    /// Where the flow is.
    #[must_use]
    pub fn status(&self) -> FlowStatus {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says that a source may have changed. The log of the source is what counts; this only wakes the flow's task up.
    pub fn notify(&self) {
        self.wake.notify_one();
    }

    /// Makes one move.
    ///
    /// # Errors
    /// When the query fails or a table cannot be read. Nothing is lost: the committed progress stands.
    pub async fn refresh(&self) -> Result<RefreshReport, RefreshError> {
        let mut memory = self.execution.lock().await;
        let started = Instant::now();
        let mut tries = 0;
        let result = loop {
            let result = match &self.definition.window {
                Some(window) => windowed::refresh(self, window, &mut memory, now_millis()).await,
                None => full::refresh(self, now_millis()).await,
            };
            match result {
                Err(error) if (error.is_conflict() || error.is_stale()) && tries < RETRIES => tries += 1,
                other => break other,
            }
        };
        match &result {
            Ok(_) => memory.budget.succeeded(),
            Err(_) => memory.budget.failed(),
        }
        self.record(result, started)
    }

    /// Refreshes until everything that was in the sources when it was called is in the sink. The answer is the
    /// number of rows written.
    ///
    /// # Errors
    /// As [`Flow::refresh`].
    pub async fn flush(&self) -> Result<u64, RefreshError> {
        let mut rows = 0;
        loop {
            let report = self.refresh().await?;
            rows += report.rows_written;
            // After a move that left nothing waiting, the sink is at a snapshot that is no older than the call.
            if !report.more {
                return Ok(rows);
            }
        }
    }

    /// How long the window of now is.
    pub(crate) fn window_length(&self) -> Option<Duration> {
        let window = self.definition.window.as_ref()?;
        let unit = window.unit();
        let now = i128::from(now_millis()) * 1_000_000 / i128::from(unit.nanos());
        let width = window.window().range_of(i64::try_from(now).ok()?).width()?;
        Some(Duration::from_nanos(u64::try_from(i128::from(width) * i128::from(unit.nanos())).ok()?))
    }

    fn record(
        &self,
        result: Result<windowed::Refreshed, RefreshError>,
        started: Instant,
    ) -> Result<RefreshReport, RefreshError> {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(refreshed) => {
                let report = RefreshReport { elapsed: started.elapsed(), ..refreshed.report };
                status.error = None;
                self.hold_source(Some(refreshed.progress.checkpoint()));
                status.progress = Some(refreshed.progress);
                if report.kind != MoveKind::Idle {
                    status.refreshes += 1;
                    status.rows_written += report.rows_written;
                    status.last = Some(report.clone());
                    tracing::info!(
                        flow = report.flow,
                        r#move = report.kind.as_str(),
                        coverage = report.coverage.map_or("none", |coverage| coverage.as_str()),
                        decision = report.decision.as_str(),
                        reason = report.reason.as_str(),
                        windows = report.windows,
                        rows_read = report.rows_read,
                        rows_written = report.rows_written,
                        elapsed_ms = report.elapsed.as_millis() as u64,
                        "refreshed"
                    );
                }
                Ok(report)
            }
            Err(error) => {
                status.failures += 1;
                status.error = Some(error.to_string());
                tracing::warn!(flow = self.definition.name, %error, "refresh failed");
                Err(error)
            }
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.hold_source(None);
    }
}

/// The wall clock, in milliseconds since 1970.
#[must_use]
pub fn now_millis() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |millis| -millis),
    }
}

//! Continuous aggregates on Apache DataFusion.
//!
//! A *flow* is a query that Windrow keeps the result of: while rows arrive in the source table, late ones and deleted
//! ones too, the sink table holds what the query itself would give. Only the time windows that changed are recomputed,
//! or just the new rows are aggregated and merged.
//!
//! ```
//! use windrow::prelude::*;
//!
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime").block_on(async {
//! let engine = Engine::in_memory();
//! engine
//!     .sql(
//!         "CREATE TABLE cpu (ts TIMESTAMP(3) TIME INDEX, host STRING, usage DOUBLE) WITH ('append_mode' = 'true');
//!          CREATE FLOW cpu_hourly SINK TO cpu_by_hour AS
//!            SELECT date_bin(INTERVAL '1 hour', ts) AS hour, host, max(usage) AS highest
//!            FROM cpu GROUP BY hour, host;
//!          INSERT INTO cpu VALUES ('2024-03-01 10:20:00', 'a', 0.5), ('2024-03-01 10:50:00', 'a', 0.75);",
//!     )
//!     .await?;
//! let reports = engine.refresh_until_idle().await?;
//! assert_eq!(reports.iter().map(|report| report.rows_written).sum::<u64>(), 1);
//! let answers = engine.sql("SELECT highest FROM cpu_by_hour").await?;
//! assert_eq!(answers[0].rows().map(|rows| rows[0].num_rows()), Some(1));
//! # Ok::<(), windrow::ScriptError>(())
//! # }).expect("the example works");
//! ```
//!
//! | layer | crate |
//! |---|---|
//! | window math | `windrow-time`, here as [`time`] |
//! | dirty windows, progress, moves | `windrow-state`, here as [`state`] |
//! | tables | `windrow-table`, here as [`table`] |
//! | plans | `windrow-plan`, here as [`plan`] |
//! | queries and executors | `windrow-transport`, here as [`transport`] |
//! | refreshes | `windrow-runner`, here as [`runner`] |

mod engine;
pub mod sql;

pub use engine::{Answer, CheckReport, Engine, EngineBuilder, EngineError, RowsLoadedListener, ScriptError};
pub use windrow_plan as plan;
pub use windrow_runner as runner;
pub use windrow_runner::RefreshReport;
pub use windrow_state as state;
pub use windrow_table as table;
pub use windrow_time as time;
pub use windrow_transport as transport;

/// What most programs need.
pub mod prelude {
    pub use crate::runner::{MoveKind, RefreshReport};
    pub use crate::table::{MemoryTable, SinkTable, SourceTable, TableSpec};
    pub use crate::{Answer, Engine, EngineError, ScriptError};
}

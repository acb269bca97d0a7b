//! Delta Lake tables as sources and sinks.
//!
//! A [`DeltaTable`] is a [`SourceTable`](windrow_table::SourceTable) and a [`SinkTable`](windrow_table::SinkTable):
//! every version of the table is a sequence, rows and a flow's progress are committed in one entry of the log, and
//! what a commit changed is read from the log. Tables that other programs write can be sources and sinks too, as far
//! as what they use of the Delta protocol is honoured; anything else is refused when the table is opened, or when a
//! later version begins to use it, rather than read wrongly.
//!
//! - **Read**: tables of any writer and of any version that the log still has, also partitioned ones, and such with
//!   deletion vectors, column mapping (by name; by id where no column is nested), constraints, generated or identity
//!   columns, or a change data feed. Not read are files outside of the table's location, and reader features that are
//!   not known.
//! - **Changes**: a commit that only adds files is an append. Of others, the change data feed says which rows they
//!   changed, if the commit has one; of a file that gets another deletion vector, it is the rows in which the two
//!   vectors differ; of rewrites by Windrow, the rows that are not in the new files; of rewrites by others, all rows of
//!   the files removed and added. Files whose statistics say that they are in one window are not read for this.
//! - **Written**: tables that are not partitioned, whose columns are all declared, and that have no constraints,
//!   invariants, generated or identity columns, column mapping, row tracking, or writer features that are not known. Where
//!   `delta.appendOnly` or `delta.enableChangeDataFeed` is set, rows are added but not removed.
//! - **Types**: [`check_types`] has the table of what is stored for a declared type.
//!
//! Others see a table of Windrow as any Delta table. A flow's progress is named by a `txn` action and kept in the
//! folder `_windrow`, which tools that clean up Delta tables leave alone.
//!
//! ```
//! use std::sync::Arc;
//!
//! use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
//! use datafusion::prelude::SessionContext;
//! use windrow_delta::DeltaTable;
//! use windrow_table::{LatestRows, SourceTable, TableSpec};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("metrics");
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! let schema = Arc::new(Schema::new(vec![
//!     Field::new("ts", DataType::Timestamp(TimeUnit::Millisecond, None), false),
//!     Field::new("host", DataType::Utf8, true),
//! ]));
//! let spec = TableSpec::new(schema)?.with_time_index("ts")?.with_primary_key(&["host"])?;
//! let table = DeltaTable::create(path.as_path(), spec).await?;
//! assert_eq!(table.watermarks().await?.get(table.region()), 1, "the version that made it");
//!
//! let context = SessionContext::new();
//! context.register_table("metrics", Arc::new(LatestRows::of(Arc::new(table))))?;
//! let rows = context.sql("SELECT host FROM metrics WHERE ts > now() - INTERVAL '1 hour'").await?;
//! assert_eq!(rows.count().await?, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod adapter;
mod change;
mod changes;
mod cleanup;
mod commit;
mod convert;
mod crash;
mod deletions;
mod error;
mod file;
mod location;
mod log;
mod progress;
mod protocol;
mod reader;
mod scan;
mod snapshot;
mod stats;
mod table;
mod types;
mod writer;

pub use error::DeltaError;
pub use location::Location;
pub use table::DeltaTable;
pub use types::check_types;

//! What a source and a sink table must do for Windrow, and the in-memory tables.
//!
//! A [`SourceTable`] says which commits it has ([`SourceTable::watermarks`]), what they changed
//! ([`SourceTable::changes`]) and gives their rows ([`SourceTable::scan`]). A [`SinkTable`] also takes rows and a
//! flow's progress in one atomic commit. A table knows nothing of flows and their queries; to it, progress is a
//! value under a name.
//!
//! [`MemoryTable`] keeps everything in memory. Other kinds (an embedder's own, too) show with
//! [`conformance::check`] that they do what the others do.

pub mod conformance;
mod error;
mod latest;
mod memory;
mod prune;
mod rewrite;
mod rows;
mod selected;
mod spec;
mod table;

pub use error::TableError;
pub use latest::LatestRows;
pub use memory::MemoryTable;
pub use prune::{TimeSpan, TimeSpans, overlapping_rows};
pub use rewrite::{Removal, Survivors};
pub use rows::{concat, fit, instants_of, sorted_by_time, time_span};
pub use selected::SelectedColumns;
pub use spec::{MergeMode, SpecError, TableSpec};
pub use table::{
    Changes, Commit, Committed, CommittedProgress, InOneWindow, ReadBounds, RowStream, SinkTable,
    SourceTable, Write,
};

//! What Windrow does to DataFusion's plans.
//!
//! Everything here is a function from a `LogicalPlan` (and schemas) to a value or a plan, or to a typed error:
//!
//! | module | question |
//! |---|---|
//! | `normalise` | which form do queries have from here on? |
//! | `shape` | which nodes does the query have, and where do its columns come from? |
//! | `window`, `label`, `lower`, `probe` | which group key is the time window, and which instants does a window hold? |
//! | `filter` | how is a query limited to some windows? |
//! | `sink`, `types` | which columns does the sink get, and which output goes into which column? |
//! | `analyse` | can the aggregate of new rows be merged with what the sink has, and why not? |
//! | `merge` | how, as a plan? |
//! | `keep` | what do new rows leave of the values that are there? |
//! | `state` | what does an aggregate know before it gives its value, and how is that merged and stored? |
//!
//! Names of columns are data: they may hold dots, quotes and capitals, so columns are always named structurally.

mod analyse;
mod error;
mod filter;
mod keep;
mod label;
mod literal;
mod lower;
mod merge;
mod normalise;
mod probe;
mod shape;
mod sink;
mod state;
mod types;
mod window;

pub use analyse::NotMergeable;
pub use error::PlanError;
pub use filter::{in_ranges, limit_to_ranges};
pub use keep::keep_values;
pub use merge::{Groups, Kept, Merge, MergedCall};
pub use normalise::normalise;
pub use shape::{ambiguous_outputs, scanned_tables, unstable_function};
pub use sink::{
    PLACEHOLDER_TIME_INDEX, STATE_PREFIX, SinkColumns, SinkMatch, UPDATE_TIME, derive_sink, is_hidden,
};
pub use state::StateMissing;
pub use window::{NoTimeWindow, TimeWindow, find_time_window};

//! Keeping one flow fresh.
//!
//! A [`Flow`] is a planned query with its sources and its sink. [`Flow::refresh`] makes one move (see
//! `windrow_state::Move`): it looks at what the source and the sink say, chooses, builds the plan, and has an executor
//! run it and commit rows and progress in one step. [`Flow::flush`] goes on until what was there is in the sink;
//! [`FlowTask`] does so in the background, on a cadence.

mod definition;
mod error;
mod explain;
mod flow;
mod full;
mod live;
mod report;
mod rows;
mod sources;
mod task;
mod windowed;
mod write;

pub use definition::{DEFAULT_MAX_STATE_BYTES, FlowDefinition, FlowOptions};
pub use error::RefreshError;
pub use explain::FlowExplanation;
pub use flow::{Flow, FlowTables, now_millis};
pub use report::{FlowStatus, MoveKind, RefreshReport};
pub use task::{FlowTask, RefreshListener};

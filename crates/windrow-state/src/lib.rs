//! The state of a flow, as pure values: no clock, no I/O, no engine.
//!
//! [`Progress`] is the one idea of Windrow: a pair of a checkpoint `C` and a set `D` of dirty windows, which means
//! that *for every window that is not expired and not in `D`, the sink holds exactly the query's result over the
//! source rows with sequence ≤ `C`*. The three moves (observe, repair, merge) keep it true; [`decide`] chooses
//! between them.

mod cadence;
mod dirty;
mod labels;
mod moves;
mod progress;
mod watermarks;

pub use cadence::{Backoff, Cadence, EvalSchedule};
pub use dirty::{ChunkLimits, DirtyMarks, DirtySet};
pub use labels::{Coverage, Decision, Mode, Reason};
pub use moves::{Approach, Move, Outlook, decide};
pub use progress::{Progress, ProgressError};
pub use watermarks::{RegionId, Sequence, SequenceRange, Watermarks};

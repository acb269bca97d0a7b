//! The state of a flow, as pure values: no clock, no I/O, no engine.
//!
//! [`Progress`] is the one idea of Windrow: a pair of a checkpoint `C` and a set `D` of dirty windows, which means
//! that *for every window that is not expired and not in `D`, the sink holds exactly the query's result over the
//! source rows with sequence ≤ `C`*. The three moves (observe, repair, merge) keep it true; a [`FlowState`]
//! chooses between them ([`FlowState::next_move`]), and judges what came of a try ([`FlowState::judge`]).

mod cadence;
mod dirty;
mod flow;
mod labels;
#[cfg(test)]
mod model;
mod moves;
mod notifications;
mod progress;
mod schedule;
mod watermarks;

pub use cadence::{Backoff, Cadence, Finished, WindowBudget};
pub use dirty::{ChunkLimits, DirtyMarks, DirtySet};
pub use flow::{Answer, Attempt, FlowState, Proof, SinkCommits, Verdict};
pub use labels::{Coverage, Decision, Mode, Reason};
pub use moves::{Approach, Move, News, Outlook};
pub use notifications::Notifications;
pub use progress::{Progress, ProgressError};
pub use schedule::{DueTicks, EvalSchedule, MissedTicks};
pub use watermarks::{RegionId, Sequence, SequenceRange, Watermarks};

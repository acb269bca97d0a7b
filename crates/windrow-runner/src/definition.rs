//! What a flow is.

use std::time::Duration;

use datafusion::common::TableReference;
use datafusion::logical_expr::LogicalPlan;
use windrow_plan::{Merge, NotMergeable, SinkMatch, TimeWindow};
use windrow_state::{Approach, Cadence, ChunkLimits, EvalSchedule};

/// A flow's query and how it is kept.
#[derive(Debug, Clone)]
pub struct FlowDefinition {
    /// The name that users give it.
    pub name: String,
    /// The name that its progress is stored under: another one for each creation, so that a flow never takes over the
    /// progress of an earlier one of the same name.
    pub id: String,
    /// The query, planned but not optimised.
    pub query: LogicalPlan,
    /// The sink, fully qualified.
    pub sink: TableReference,
    /// Which output goes into which column of the sink.
    pub matched: SinkMatch,
    /// The query's time window; without one, the whole query runs each time, unless new rows can be appended.
    pub window: Option<TimeWindow>,
    /// How the query is merged, or why it is not.
    pub merge: Result<Merge, Vec<NotMergeable>>,
    /// How it is kept.
    pub options: FlowOptions,
}

/// How a flow is kept.
#[derive(Debug, Clone)]
pub struct FlowOptions {
    /// Which moves are allowed.
    pub approach: Approach,
    /// How much one repair takes on.
    pub limits: ChunkLimits,
    /// When it runs, without a schedule.
    pub cadence: Cadence,
    /// When it runs, with one.
    pub schedule: Option<EvalSchedule>,
    /// Windows that end so long ago are not updated any more.
    pub expire_after: Option<Duration>,
    /// An aggregate state that takes more bytes is not stored: the flow is repaired instead of merged, once new rows meet
    /// such a group.
    pub max_state_bytes: usize,
}

/// [`FlowOptions::max_state_bytes`], unless it is given.
pub const DEFAULT_MAX_STATE_BYTES: usize = 1 << 20;

impl Default for FlowOptions {
    fn default() -> Self {
        Self {
            approach: Approach::default(),
            limits: ChunkLimits::default(),
            cadence: Cadence::default(),
            schedule: None,
            expire_after: None,
            max_state_bytes: DEFAULT_MAX_STATE_BYTES,
        }
    }
}

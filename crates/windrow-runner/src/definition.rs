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
    /// The query's time window; without one, the whole query runs each time.
    pub window: Option<TimeWindow>,
    /// How the query is merged, or why it is not.
    pub merge: Result<Merge, Vec<NotMergeable>>,
    /// How it is kept.
    pub options: FlowOptions,
}

/// How a flow is kept.
#[derive(Debug, Clone, Default)]
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
}

//! What the next refresh of a flow would do, and why.

use datafusion::logical_expr::LogicalPlan;
use windrow_state::{Approach, Coverage, FlowState, Move, Outlook, Progress, Reason};

use crate::flow::now_millis;
use crate::full;
use crate::windowed::{Refresh, SINK_COMMITS, Situation};
use crate::{Flow, MoveKind, RefreshError};

/// What is known of a flow's next refresh.
#[derive(Debug, Clone)]
pub struct FlowExplanation {
    /// The move that it would make.
    pub next: MoveKind,
    /// Why.
    pub why: &'static str,
    /// The windows that it would write, counted up to ten million.
    pub windows: u64,
    /// Rows that a merge and a repair would handle, where there is a choice.
    pub costs: Option<(u64, u64)>,
    /// What is committed.
    pub progress: Option<Progress>,
    /// The queries of the moves, as they are before optimising: of a repair and, where the query can be merged, of a merge;
    /// or the whole query of a flow without time windows.
    pub queries: Vec<(MoveKind, LogicalPlan)>,
}

impl Flow {
    /// Looks at the tables as a refresh does, and says what it would do. Nothing is written.
    ///
    /// # Errors
    /// When a table cannot be read, or a plan cannot be built.
    pub async fn explain(&self) -> Result<FlowExplanation, RefreshError> {
        let definition = &self.definition;
        let Some(window) = &definition.window else {
            let (next, why) = full::next_move(self).await?;
            return Ok(FlowExplanation {
                next,
                why,
                windows: 0,
                costs: None,
                progress: None,
                queries: vec![(MoveKind::Full, definition.query.clone())],
            });
        };
        let memory = self.execution.lock().await;
        let limits = memory.budget.limit(definition.options.limits);
        let refresh = Refresh::new(self, window, now_millis(), limits)?;
        let situation = refresh.look().await?;
        let outlook = refresh.outlook(&situation).await?;
        let state = memory.state.with_progress(situation.progress.clone());
        let next = state.next_move(&outlook)?;
        let observed = match &next {
            Move::Repair { observed, .. } => observed.clone(),
            _ => situation.observed()?,
        };
        let chunk = observed.dirty().choose_chunk(window.window(), limits)?;
        let repair = state.repair(&observed, Coverage::ScopedBaseRepair, chunk, SINK_COMMITS);
        let mut queries = vec![(MoveKind::Repair, refresh.repair_query(&repair)?)];
        let merge = state.merge(observed.clone(), &outlook.news, SINK_COMMITS);
        if let Ok(how) = &definition.merge {
            queries.push((MoveKind::Merge, refresh.merge_query(how, &merge)?.plan));
        }
        let why = why(&next, &state, &situation, &outlook);
        let (next, written) = match next {
            Move::Idle => (MoveKind::Idle, None),
            Move::Observe { .. } => (MoveKind::Observe, None),
            Move::Repair { .. } => (MoveKind::Repair, Some(&repair.windows)),
            Move::Merge { .. } => (MoveKind::Merge, Some(&merge.windows)),
        };
        let counted = written.map(|windows| windows.windows(window.window(), crate::windowed::COUNT_LIMIT));
        let has_choice =
            definition.merge.is_ok() && outlook.news.appends_only && !outlook.news.touched.is_empty();
        Ok(FlowExplanation {
            next,
            why,
            windows: counted.transpose()?.unwrap_or(0),
            costs: has_choice.then_some((outlook.merge_cost, outlook.repair_cost)),
            progress: Some(situation.progress),
            queries,
        })
    }
}

fn why(next: &Move, state: &FlowState, situation: &Situation, outlook: &Outlook) -> &'static str {
    match (next, outlook.approach) {
        (Move::Idle, _) => "there is nothing new",
        (Move::Observe { .. }, _) => "no window that is kept up to date has changed",
        (Move::Merge { .. }, Approach::Merge) => "'refresh' is 'merge'",
        (Move::Merge { .. }, _) => {
            "the source has only grown, and a merge handles no more rows than a repair"
        }
        (Move::Repair { coverage: Coverage::FencedRepairChunk, .. }, _) => {
            "windows are left from the repair before"
        }
        (Move::Repair { .. }, _) if situation.reason() == Reason::SinkChanged => {
            "someone else changed the sink"
        }
        (Move::Repair { .. }, _) if situation.reason() == Reason::StaleCursor => {
            "what changed since the last refresh is not known any more"
        }
        (Move::Repair { .. }, _) if state.progress().checkpoint().is_none() => "nothing is consumed yet",
        (Move::Repair { .. }, Approach::Recompute) => "'refresh' is 'recompute'",
        (Move::Repair { .. }, _) if !state.merges() => "the query cannot be merged",
        (Move::Repair { .. }, _) if !outlook.news.appends_only => {
            "rows of the source were deleted or replaced"
        }
        (Move::Repair { .. }, _) => "a repair handles fewer rows than a merge",
    }
}

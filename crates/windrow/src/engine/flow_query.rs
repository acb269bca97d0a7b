//! The query of a flow: what it reads, its window, and whether it merges.

use std::sync::Arc;

use datafusion::common::TableReference;
use datafusion::logical_expr::LogicalPlan;
use windrow_plan::{Merge, NotMergeable, SinkMatch, TimeWindow, find_time_window, normalise, scanned_tables};
use windrow_table::SourceTable;
use windrow_time::InstantRange;

use super::registry::{Registry, local_reference};
use super::{EngineError, Inner};
use crate::sql::CreateFlow;

/// A query with what was found out about it.
pub(super) struct PlannedQuery {
    pub(super) plan: LogicalPlan,
    pub(super) window: Option<TimeWindow>,
    pub(super) sources: Vec<(TableReference, Arc<dyn SourceTable>)>,
    /// The names of all tables that it reads.
    pub(super) reads: Vec<String>,
}

impl Inner {
    /// What DataFusion cannot compute is an error when the flow is created, and not at the first refresh. A flow that was
    /// created is not asked again: that another version cannot compute it is no reason not to open a data directory.
    pub(super) async fn refuse_uncomputable(&self, create: &CreateFlow) -> Result<(), EngineError> {
        let state = self.session.state();
        let plan = normalise(self.plan_query(&create.query).await?, &state)?;
        state.create_physical_plan(&plan).await?;
        Ok(())
    }

    pub(super) async fn plan_flow_query(&self, create: &CreateFlow) -> Result<PlannedQuery, EngineError> {
        let state = self.session.state();
        let plan = normalise(self.plan_query(&create.query).await?, &state)?;
        let mut reads = Vec::new();
        let mut sources = Vec::new();
        for reference in scanned_tables(&plan)? {
            if let Some(source) = self.registry.source_at(&reference) {
                sources.push((reference.clone(), source));
            }
            reads.extend(local_reference(&reference).map(str::to_owned));
        }
        let time_index = |reference: &TableReference| {
            let source = self.registry.source_at(reference)?;
            source.spec().time_index_name().map(str::to_owned)
        };
        let window = match find_time_window(&plan, &state, time_index)? {
            Ok(window) => Some(window),
            Err(_) if create.eval_interval.is_some() => None,
            // What only selects needs no window: new rows are appended.
            Err(_) if matches!(Merge::analyse(&plan, &state)?, Ok(Merge::Append)) && !sources.is_empty() => {
                None
            }
            Err(reason) => return Err(EngineError::NoTimeWindow { reason: reason.to_string() }),
        };
        Ok(PlannedQuery { plan, window, sources, reads })
    }

    pub(super) async fn how_to_merge(
        &self,
        query: &PlannedQuery,
    ) -> Result<Result<Merge, Vec<NotMergeable>>, EngineError> {
        let state = self.session.state();
        Ok(match (&query.window, Merge::analyse(&query.plan, &state)?) {
            (None, Ok(Merge::Groups(_))) => Err(vec![NotMergeable::Shape("no time window".into())]),
            (Some(window), Ok(Merge::Groups(groups))) => {
                let one_window =
                    groups.repaired(window.time_index(), &[InstantRange::new(0, 1)], usize::MAX)?;
                match state.create_physical_plan(&one_window).await {
                    Ok(_) => Ok(Merge::Groups(groups)),
                    Err(error) => Err(vec![NotMergeable::NoPlan(error.to_string())]),
                }
            }
            (_, merge) => merge,
        })
    }
}

impl Registry {
    fn source_at(&self, reference: &TableReference) -> Option<Arc<dyn SourceTable>> {
        self.table_at(reference)?.source()
    }
}

/// Whether the sink holds all that merging reads back. One that was just made does; one of the user's may round, cut off,
/// or have no columns for states.
pub(super) fn fits(
    merge: Merge,
    query: &PlannedQuery,
    matched: &SinkMatch,
) -> Result<Merge, Vec<NotMergeable>> {
    let mut reasons = Vec::new();
    let output = query.plan.schema().as_arrow();
    if let Some(lossy) = matched.lossy_output(output, &merge.outputs_read_back(), query.window.as_ref()) {
        reasons.push(NotMergeable::Lossy(lossy));
    }
    if merge.states() > matched.states() {
        reasons.push(NotMergeable::NoStateColumns(merge.states()));
    }
    if reasons.is_empty() { Ok(merge) } else { Err(reasons) }
}

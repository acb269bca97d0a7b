//! The refresh of a flow without time windows: the whole query, into an emptied sink, in one commit.

use windrow_state::{Coverage, Decision, Progress, Reason, Watermarks};
use windrow_table::{ReadBounds, Write};
use windrow_transport::{FlowQuery, Statement};

use crate::windowed::Refreshed;
use crate::{Flow, MoveKind, RefreshError, RefreshReport};

/// One refresh: all sources as of now.
pub(crate) async fn refresh(flow: &Flow, now_millis: i64) -> Result<Refreshed, RefreshError> {
    let definition = &flow.definition;
    let mut bounds = Vec::with_capacity(flow.tables.sources.len());
    let mut checkpoint = Watermarks::none();
    for (name, source) in &flow.tables.sources {
        let now = source.watermarks().await?;
        // With several sources, whose regions are numbered each for itself, no checkpoint can be told.
        checkpoint = if flow.tables.sources.len() == 1 { now.clone() } else { Watermarks::none() };
        bounds.push((name.clone(), ReadBounds::Snapshot(now)));
    }
    let progress = Progress::start().observe(&checkpoint, &windrow_state::DirtySet::default())?;
    let plan = Box::new(definition.matched.align(definition.query.clone())?);
    let query = FlowQuery {
        statement: Statement::InsertInto { table: definition.sink.clone(), plan },
        write: Write::ReplaceAll,
        progress: Some((definition.id.clone(), progress.clone())),
        expected_sink: None,
        bounds,
        scheduled_time_millis: flow.scheduled_time(now_millis),
        deadline: Some(definition.options.cadence.query_timeout),
    };
    let outcome = flow.executor.execute(query).await?;
    let report = RefreshReport {
        coverage: Some(Coverage::UnfilteredFull),
        ..flow.report(MoveKind::Full, Decision::Advance, Reason::None).with(&outcome)
    };
    Ok(Refreshed { report, progress })
}

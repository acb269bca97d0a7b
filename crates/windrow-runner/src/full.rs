//! The refresh of a flow without time windows: the whole query, into an emptied sink, in one commit; or where the query
//! only selects, and its source only grows, what the new rows give.

use windrow_plan::Merge;
use windrow_state::{Coverage, Decision, DirtySet, Progress, Reason, SequenceRange, Watermarks};
use windrow_table::{ReadBounds, TableError, Write};
use windrow_transport::{ExecuteError, FlowOutcome, FlowQuery, Statement};

use crate::windowed::Refreshed;
use crate::{Flow, MoveKind, RefreshError, RefreshReport};

/// One refresh: all sources as of now.
pub(crate) async fn refresh(flow: &Flow, now_millis: i64) -> Result<Refreshed, RefreshError> {
    let definition = &flow.definition;
    if let (Ok(Merge::Append), [(name, source)]) = (&definition.merge, flow.tables.sources.as_slice())
        && let Some((after, sink_at)) = appended_to(flow).await?
    {
        let upto = source.watermarks().await?;
        if upto == after {
            let report = flow.report(MoveKind::Idle, Decision::Advance, Reason::None);
            return Ok(Refreshed { report, progress: all_of(&after)? });
        }
        if upto.covers(&after) {
            let bounds = ReadBounds::Appended(SequenceRange { after, upto: upto.clone() });
            let bounds = vec![(name.clone(), bounds)];
            let progress = all_of(&upto)?;
            let run = run(flow, now_millis, bounds, Write::Append, &progress, Some(sink_at));
            match run.await {
                Err(RefreshError::Execute(ExecuteError::Table(
                    TableError::NotAppends { .. } | TableError::Stale { .. },
                ))) => {}
                outcome => {
                    let report = RefreshReport {
                        coverage: Some(Coverage::IncrementalDelta),
                        ..flow.report(MoveKind::Merge, Decision::Advance, Reason::None).with(&outcome?)
                    };
                    return Ok(Refreshed { report, progress });
                }
            }
        }
    }
    let mut bounds = Vec::with_capacity(flow.tables.sources.len());
    let mut checkpoint = Watermarks::none();
    for (name, source) in &flow.tables.sources {
        let now = source.watermarks().await?;
        // With several sources, whose regions are numbered each for itself, no checkpoint can be told.
        checkpoint = if flow.tables.sources.len() == 1 { now.clone() } else { Watermarks::none() };
        bounds.push((name.clone(), ReadBounds::Snapshot(now)));
    }
    let progress = all_of(&checkpoint)?;
    // What is kept has to be what is there when it is written again.
    let sink_at = match flow.kept_columns().is_empty() {
        true => None,
        false => Some(flow.tables.sink.watermarks().await?),
    };
    let outcome = run(flow, now_millis, bounds, Write::ReplaceAll, &progress, sink_at).await?;
    let report = RefreshReport {
        coverage: Some(Coverage::UnfilteredFull),
        ..flow.report(MoveKind::Full, Decision::Advance, Reason::None).with(&outcome)
    };
    Ok(Refreshed { report, progress })
}

/// What the next refresh would do, and why.
pub(crate) async fn next_move(flow: &Flow) -> Result<(MoveKind, &'static str), RefreshError> {
    if !matches!(flow.definition.merge, Ok(Merge::Append)) {
        return Ok((MoveKind::Full, "the query has no time window"));
    }
    let [(_, source)] = flow.tables.sources.as_slice() else {
        return Ok((MoveKind::Full, "the source does not say what changed"));
    };
    let Some((after, _)) = appended_to(flow).await? else {
        return Ok((MoveKind::Full, "the sink does not hold just what the flow has written"));
    };
    let upto = source.watermarks().await?;
    if upto == after {
        return Ok((MoveKind::Idle, "there is nothing new"));
    }
    match source.scan(&ReadBounds::Appended(SequenceRange { after, upto })).await {
        Ok(_) => Ok((MoveKind::Merge, "the source has only grown")),
        Err(TableError::NotAppends { .. }) => {
            Ok((MoveKind::Full, "rows of the source were deleted or replaced"))
        }
        Err(TableError::Stale { .. }) => {
            Ok((MoveKind::Full, "what changed in the source is not known any more"))
        }
        Err(error) => Err(error.into()),
    }
}

/// The progress of a sink that holds what the query gives for the source up to there.
fn all_of(checkpoint: &Watermarks) -> Result<Progress, RefreshError> {
    Ok(Progress::start().observe(checkpoint, &DirtySet::default())?)
}

/// Up to where the source is in the sink, and where the sink is, if it holds just what this flow has written.
async fn appended_to(flow: &Flow) -> Result<Option<(Watermarks, Watermarks)>, RefreshError> {
    let sink = flow.tables.sink.as_ref();
    let Some(committed) = sink.progress(&flow.definition.id).await? else { return Ok(None) };
    let now = sink.watermarks().await?;
    if now != committed.at {
        if sink.spec().time_index().is_none() {
            // It cannot say what others changed.
            return Ok(None);
        }
        let others = SequenceRange { after: committed.at, upto: now.clone() };
        let changes = match sink.changes(&others).await {
            Ok(changes) => changes,
            Err(TableError::Stale { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if !changes.is_empty() {
            return Ok(None);
        }
    }
    Ok(Some((committed.progress.checkpoint().clone(), now)))
}

async fn run(
    flow: &Flow,
    now_millis: i64,
    bounds: Vec<(datafusion::common::TableReference, ReadBounds)>,
    write: Write,
    progress: &Progress,
    expected_sink: Option<Watermarks>,
) -> Result<FlowOutcome, RefreshError> {
    let definition = &flow.definition;
    let plan = Box::new(flow.rows_of(definition.query.clone(), || flow.sink_scan())?);
    let query = FlowQuery {
        statement: Statement::InsertInto { table: definition.sink.clone(), plan },
        write,
        progress: Some((definition.id.clone(), progress.clone())),
        expected_sink,
        bounds,
        scheduled_time_millis: flow.scheduled_time(now_millis),
        deadline: Some(definition.options.cadence.query_timeout),
    };
    Ok(flow.executor.execute(query).await?)
}

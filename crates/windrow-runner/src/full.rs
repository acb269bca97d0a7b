//! The refresh of a flow without time windows: the whole query, into an emptied sink, in one commit; or where the query
//! only selects, and its source only grows, what the new rows give.

use datafusion::common::TableReference;
use windrow_plan::Merge;
use windrow_state::{Coverage, Decision, DirtySet, Progress, Reason, SequenceRange, Watermarks};
use windrow_table::{ReadBounds, SourceTable, TableError, Write};
use windrow_transport::{ExecuteError, FlowOutcome};

use crate::windowed::Refreshed;
use crate::write::FlowWrite;
use crate::{Flow, MoveKind, RefreshError, RefreshReport};

/// What a refresh has to do, as far as the watermarks tell.
enum Work<'a> {
    /// The sink holds the source up to there, and there is no more.
    Nothing(Watermarks),
    /// What the new rows of `source` give is to be appended to the sink as it is at `sink_at`, if they are appends.
    Rows { name: &'a TableReference, source: &'a dyn SourceTable, range: SequenceRange, sink_at: Watermarks },
    /// The whole query is to run, for this reason.
    All(&'static str),
}

const UNKNOWN_CHANGES: &str = "what changed in the source is not known any more";

async fn work(flow: &Flow) -> Result<Work<'_>, RefreshError> {
    if !matches!(flow.definition.merge, Ok(Merge::Append)) {
        return Ok(Work::All("the query has no time window"));
    }
    let [(name, source)] = flow.tables.sources.as_slice() else {
        return Ok(Work::All("the source does not say what changed"));
    };
    let Some((after, sink_at)) = appended_to(flow).await? else {
        return Ok(Work::All("the sink does not hold just what the flow has written"));
    };
    let upto = source.watermarks().await?;
    if upto == after {
        return Ok(Work::Nothing(after));
    }
    if !upto.covers(&after) {
        return Ok(Work::All(UNKNOWN_CHANGES));
    }
    Ok(Work::Rows { name, source: source.as_ref(), range: SequenceRange { after, upto }, sink_at })
}

/// One refresh: all sources as of now.
pub(crate) async fn refresh(flow: &Flow, now_millis: i64) -> Result<Refreshed, RefreshError> {
    match work(flow).await? {
        Work::Nothing(upto) => {
            let report = flow.report(MoveKind::Idle, Decision::Advance, Reason::None);
            return Ok(Refreshed { report, progress: all_of(&upto)? });
        }
        Work::Rows { name, range, sink_at, .. } => {
            let progress = all_of(&range.upto)?;
            let bounds = vec![(name.clone(), ReadBounds::Appended(range))];
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
        Work::All(_) => {}
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
    let (source, range) = match work(flow).await? {
        Work::Nothing(_) => return Ok((MoveKind::Idle, "there is nothing new")),
        Work::All(why) => return Ok((MoveKind::Full, why)),
        Work::Rows { source, range, .. } => (source, range),
    };
    match source.scan(&ReadBounds::Appended(range)).await {
        Ok(_) => Ok((MoveKind::Merge, "the source has only grown")),
        Err(TableError::NotAppends { .. }) => {
            Ok((MoveKind::Full, "rows of the source were deleted or replaced"))
        }
        Err(TableError::Stale { .. }) => Ok((MoveKind::Full, UNKNOWN_CHANGES)),
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
    let Some(committed) = flow.committed().await? else { return Ok(None) };
    let now = sink.watermarks().await?;
    if now != committed.at {
        if sink.spec().time_index().is_none() {
            // It cannot say what others changed.
            return Ok(None);
        }
        let others = SequenceRange { after: committed.at, upto: now.clone() };
        let changes = match sink.changes(&others, &|_| true).await {
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
    bounds: Vec<(TableReference, ReadBounds)>,
    write: Write,
    progress: &Progress,
    expected_sink: Option<Watermarks>,
) -> Result<FlowOutcome, RefreshError> {
    let (query, progress) = (flow.definition.query.clone(), progress.clone());
    let write = FlowWrite { query, write, bounds, progress, expected_sink, now_millis };
    flow.write(write, |_| flow.sink_scan()).await
}

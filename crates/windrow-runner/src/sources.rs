//! What the source and the sink of a flow say about what changed.

use windrow_plan::{SinkMatch, TimeWindow};
use windrow_state::{DirtyMarks, DirtySet, News, SequenceRange, Watermarks};
use windrow_table::{Changes, SinkTable, SourceTable, TableError};
use windrow_time::{InstantRange, TimeUnit, Window};

use crate::RefreshError;

/// What the source says about the commits after the checkpoint.
pub(crate) struct SourceNews {
    pub(crate) news: News,
    pub(crate) appended_rows: u64,
}

/// The news since `checkpoint`; `None` where the source no longer knows what changed since then.
pub(crate) async fn source_news(
    source: &dyn SourceTable,
    window: &Window,
    checkpoint: &Watermarks,
) -> Result<Option<SourceNews>, RefreshError> {
    let now = source.watermarks().await?;
    if !now.covers(checkpoint) {
        return Ok(None);
    }
    let range = SequenceRange { after: checkpoint.clone(), upto: now.clone() };
    let changes = if range.is_empty() {
        Changes::default()
    } else {
        let in_one_window = |range: InstantRange| {
            window.try_range_of(range.start()).is_ok_and(|window| window.end() >= range.end())
        };
        match source.changes(&range, &in_one_window).await {
            Ok(changes) => changes,
            Err(TableError::Stale { .. }) if !checkpoint.is_none() => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    };
    let mut marks = DirtyMarks::default();
    for instants in changes.appended.iter().chain(&changes.rewritten) {
        marks.extend(window.mark(instants.as_ref())?.into_ranges());
    }
    let appended_rows = changes.appended_rows;
    let news = News { now, touched: marks.into_set(), appends_only: changes.are_appends() };
    Ok(Some(SourceNews { news, appended_rows }))
}

/// What the sink says about the commits that are not the flow's own.
pub(crate) struct SinkNews {
    pub(crate) now: Watermarks,
    /// The windows whose rows someone else changed since the flow's own commit at `at`.
    pub(crate) changed: DirtySet,
}

/// The news since the flow's own commit at `at`; `None` where the sink no longer knows what changed since then.
pub(crate) async fn sink_news(
    sink: &dyn SinkTable,
    window: &TimeWindow,
    matched: &SinkMatch,
    at: &Watermarks,
    label_unit: TimeUnit,
) -> Result<Option<SinkNews>, RefreshError> {
    let now = sink.watermarks().await?;
    if now == *at {
        return Ok(Some(SinkNews { now, changed: DirtySet::default() }));
    }
    let range = SequenceRange { after: at.clone(), upto: now.clone() };
    // Windows of labels are single instants.
    let changes = match sink.changes(&range, &|range| range.width() == Some(1)).await {
        Ok(changes) => changes,
        Err(TableError::Stale { .. }) if !at.is_none() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    // Every label is an instant of the sink's time index: a grid of single instants finds the distinct ones.
    let mut labels = Vec::new();
    let each = Window::fixed(0, 1)?;
    for instants in changes.appended.iter().chain(&changes.rewritten) {
        labels.extend(each.mark(instants.as_ref())?.into_ranges());
    }
    InstantRange::coalesce(&mut labels);
    let mut changed = Vec::new();
    for label in labels.iter().flat_map(|&range| each.windows_in(range)) {
        changed.push(window.window_labelled(matched.in_output_unit(label?.start(), label_unit))?);
    }
    Ok(Some(SinkNews { now, changed: DirtySet::from(changed) }))
}

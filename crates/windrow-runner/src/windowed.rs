//! The refresh of a flow with time windows.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use windrow_plan::{Merge, TimeWindow, in_ranges, limit_to_ranges};
use windrow_state::{
    Answer, Attempt, ChunkLimits, Coverage, Decision, DirtySet, FlowState, Move, News, Outlook, Progress,
    Proof, Reason, SequenceRange, SinkCommits, Verdict, Watermarks,
};
use windrow_table::{ReadBounds, SourceTable, TableError, Write};
use windrow_time::{InstantRange, TimeUnit};
use windrow_transport::FlowOutcome;

use crate::flow::Memory;
use crate::sources::{SinkNews, SourceNews, sink_news, source_news};
use crate::write::FlowWrite;
use crate::{Flow, FlowDefinition, MoveKind, RefreshError, RefreshReport};

/// A merge reads the sink under at most so many range conditions; clean windows between them are rewritten unchanged.
const MERGE_RANGES: usize = 32;

/// Both kinds of table do.
pub(crate) const SINK_COMMITS: SinkCommits = SinkCommits::RowsWithProgress;

/// Windows are counted for reports up to here.
pub(crate) const COUNT_LIMIT: u64 = 10_000_000;

/// What a refresh did, and the progress that is committed now.
pub(crate) struct Refreshed {
    pub(crate) report: RefreshReport,
    pub(crate) progress: Progress,
}

/// One refresh, from looking at the tables to the commit.
pub(crate) async fn refresh(
    flow: &Flow,
    window: &TimeWindow,
    memory: &mut Memory,
    now_millis: i64,
) -> Result<Refreshed, RefreshError> {
    let limits = memory.budget.limit(flow.definition.options.limits);
    let state = &mut memory.state;
    let refresh = Refresh::new(flow, window, now_millis, limits)?;
    let situation = refresh.look().await?;
    let outlook = refresh.outlook(&situation).await?;
    *state = state.with_progress(situation.progress.clone());
    match state.next_move(&outlook)? {
        Move::Idle => Ok(Refreshed {
            report: flow.report(MoveKind::Idle, Decision::Advance, Reason::None),
            progress: situation.progress,
        }),
        Move::Observe { next } => refresh.observe(&situation, next).await,
        Move::Repair { observed, coverage } => {
            let fence = observed.checkpoint().clone();
            match refresh.repair(&situation, state, observed, coverage).await {
                // What the query fails over may be gone from the source since.
                Err(error) if fence != situation.news.now && !error.is_conflict() => {
                    tracing::info!(flow = flow.definition.name, %error, "trying again at a newer snapshot");
                    let newest = situation.observed()?;
                    refresh.repair(&situation, state, newest, Coverage::ScopedBaseRepair).await
                }
                result => result,
            }
        }
        Move::Merge { next } => {
            if let Ok(merge) = &flow.definition.merge {
                let attempt = state.merge(next, &outlook.news, SINK_COMMITS);
                match refresh.merge(&situation, state, merge, attempt).await {
                    Err(error) if error.is_state_missing() => {
                        tracing::warn!(flow = flow.definition.name, %error, "the flow is repaired from now on");
                    }
                    result => return result,
                }
            }
            *state = state.with_progress(situation.progress.clone()).without_merges();
            refresh.repair(&situation, state, situation.observed()?, Coverage::ScopedBaseRepair).await
        }
    }
}

/// The query of a merge.
pub(crate) struct MergeQuery {
    pub(crate) plan: LogicalPlan,
    write: Write,
    reads_sink: bool,
}

/// One refresh in the making.
pub(crate) struct Refresh<'a> {
    flow: &'a Flow,
    window: &'a TimeWindow,
    source: &'a Arc<dyn SourceTable>,
    /// What is kept up to date; the rest has expired, or is in no window.
    live: InstantRange,
    now_millis: i64,
    /// How much a repair takes on.
    limits: ChunkLimits,
}

/// What is known before a move is chosen.
pub(crate) struct Situation {
    /// The committed progress, less what expired, and with the windows that someone else changed as dirty.
    pub(crate) progress: Progress,
    news: News,
    appended_rows: u64,
    sink_at: Watermarks,
    reason: Reason,
}

impl Situation {
    /// What is out of the ordinary.
    pub(crate) fn reason(&self) -> Reason {
        self.reason
    }

    pub(crate) fn observed(&self) -> Result<Progress, RefreshError> {
        Ok(self.progress.observe(&self.news.now, &self.news.touched)?)
    }
}

pub(crate) fn source_of<'a>(
    flow: &'a Flow,
    window: &TimeWindow,
) -> Result<&'a Arc<dyn SourceTable>, RefreshError> {
    flow.followed_source().map(|(_, source)| source).ok_or_else(|| {
        TableError::Schema(format!("the source {} is no table that reports changes", window.source())).into()
    })
}

impl<'a> Refresh<'a> {
    pub(crate) fn new(
        flow: &'a Flow,
        window: &'a TimeWindow,
        now_millis: i64,
        limits: ChunkLimits,
    ) -> Result<Self, RefreshError> {
        let source = source_of(flow, window)?;
        Ok(Self { flow, window, source, live: flow.live_range_at(window, now_millis)?, now_millis, limits })
    }

    /// Looks at the committed progress, the sink and the source.
    pub(crate) async fn look(&self) -> Result<Situation, RefreshError> {
        let (progress, at) = match self.flow.committed().await? {
            Some(committed) => (committed.progress, committed.at),
            None => (Progress::start(), Watermarks::none()),
        };
        let sink_news = self.sink_news(&at).await?;
        let source_news =
            source_news(self.source.as_ref(), self.window.window(), progress.checkpoint()).await?;
        let (progress, sink_news, news, reason) = match (sink_news, source_news) {
            (Some(sink), Some(source)) if sink.changed.is_empty() => (progress, sink, source, Reason::None),
            (Some(sink), Some(source)) => (progress, sink, source, Reason::SinkChanged),
            // What changed is not known any more: start over, and trust no row that the sink has.
            _ => {
                let start = Progress::start();
                let sink = self.sink_news(&Watermarks::none()).await?;
                let source = source_news_of_all(self.source.as_ref(), self.window).await?;
                let sink = sink.ok_or_else(|| TableError::Schema("the sink cannot be read".into()))?;
                (start, sink, source, Reason::StaleCursor)
            }
        };
        let SourceNews { mut news, appended_rows } = news;
        news.touched.keep(self.live);
        let progress = progress.distrust(&sink_news.changed).keep(self.live);
        Ok(Situation { progress, news, appended_rows, sink_at: sink_news.now, reason })
    }

    async fn sink_news(&self, at: &Watermarks) -> Result<Option<SinkNews>, RefreshError> {
        let sink = self.flow.tables.sink.as_ref();
        sink_news(sink, self.window, &self.flow.definition.matched, at, self.label_unit()).await
    }

    pub(crate) async fn outlook(&self, situation: &Situation) -> Result<Outlook, RefreshError> {
        let news = &situation.news;
        let mergeable = self.flow.definition.merge.is_ok();
        let (mut merge_cost, mut repair_cost) = (0, 0);
        if mergeable && news.appends_only && !news.touched.is_empty() {
            let sink = &self.flow.tables.sink;
            let rewritten = match self.flow.definition.merge {
                Ok(Merge::Append) => 0,
                _ => sink.estimate_rows(&self.labels(&news.touched.cover(MERGE_RANGES))?).await?,
            };
            merge_cost = situation.appended_rows.saturating_add(rewritten);
            let replaced = sink.estimate_rows(&self.labels(&news.touched)?).await?;
            let source = self.source.estimate_rows(news.touched.ranges()).await?;
            // An estimate spreads rows evenly, but the new rows are in the touched windows for certain.
            repair_cost = source.max(situation.appended_rows).saturating_add(replaced);
        }
        Ok(Outlook {
            news: news.clone(),
            approach: self.flow.definition.options.approach,
            merge_cost,
            repair_cost,
        })
    }

    /// Only the progress is new.
    async fn observe(&self, situation: &Situation, next: Progress) -> Result<Refreshed, RefreshError> {
        let nothing = limit_to_ranges(&self.flow.definition.query, self.window.time_index(), &[])?;
        let bounds = vec![self.snapshot(next.checkpoint())];
        self.commit(situation, nothing, Write::Append, bounds, next.clone()).await?;
        Ok(Refreshed {
            report: self.flow.report(MoveKind::Observe, Decision::Advance, situation.reason),
            progress: next,
        })
    }

    /// Recomputes a chunk of the dirty windows as of exactly the checkpoint, and replaces them in the sink.
    async fn repair(
        &self,
        situation: &Situation,
        state: &mut FlowState,
        observed: Progress,
        coverage: Coverage,
    ) -> Result<Refreshed, RefreshError> {
        let chunk = observed.dirty().choose_chunk(self.window.window(), self.limits)?;
        let attempt = state.repair(&observed, coverage, chunk, SINK_COMMITS);
        let query = self.repair_query(&attempt)?;
        let write = Write::Replace { ranges: self.labels(&attempt.windows)? };
        let bounds = vec![self.snapshot(&attempt.fence)];
        let result = self.commit(situation, query, write, bounds, attempt.next.clone()).await;
        self.judge(situation, state, &attempt, MoveKind::Repair, result)
    }

    /// Aggregates only the new rows, and merges them with what the sink has for the windows they touch.
    async fn merge(
        &self,
        situation: &Situation,
        state: &mut FlowState,
        merge: &Merge,
        attempt: Attempt,
    ) -> Result<Refreshed, RefreshError> {
        let MergeQuery { plan, write, reads_sink } = self.merge_query(merge, &attempt)?;
        let appended =
            SequenceRange { after: situation.progress.checkpoint().clone(), upto: attempt.fence.clone() };
        let mut bounds = vec![(self.window.source().clone(), ReadBounds::Appended(appended))];
        if reads_sink {
            let sink = self.flow.definition.sink.clone();
            bounds.push((sink, ReadBounds::Snapshot(situation.sink_at.clone())));
        }
        let result = self.commit(situation, plan, write, bounds, attempt.next.clone()).await;
        self.judge(situation, state, &attempt, MoveKind::Merge, result)
    }

    /// The query, limited to the windows of a repair, with the states that later merges need.
    pub(crate) fn repair_query(&self, attempt: &Attempt) -> Result<LogicalPlan, RefreshError> {
        let FlowDefinition { query, merge, options, .. } = &self.flow.definition;
        let (time_index, ranges) = (self.window.time_index(), attempt.windows.ranges());
        Ok(match merge {
            Ok(how @ Merge::Groups(groups)) if how.states() > 0 => {
                groups.repaired(time_index, ranges, options.max_state_bytes)?
            }
            _ => limit_to_ranges(query, time_index, ranges)?,
        })
    }

    /// The new rows, or their aggregate together with the sink's rows of the windows they touch.
    pub(crate) fn merge_query(&self, merge: &Merge, attempt: &Attempt) -> Result<MergeQuery, RefreshError> {
        let FlowDefinition { query, matched, options, .. } = &self.flow.definition;
        // No condition on the dirty windows: only rows that have expired, or are in no window, are left out.
        let (time_index, live) = (self.window.time_index(), [self.live]);
        Ok(match merge {
            Merge::Append => MergeQuery {
                plan: limit_to_ranges(query, time_index, &live)?,
                write: Write::Append,
                reads_sink: false,
            },
            Merge::Groups(groups) => {
                let ranges = self.labels(&attempt.windows.cover(MERGE_RANGES))?;
                let sink = self.sink_rows(&ranges)?;
                let limit = options.max_state_bytes;
                let plan = groups.merged(time_index, &live, sink, matched, limit)?;
                MergeQuery { plan, write: Write::Replace { ranges }, reads_sink: true }
            }
        })
    }

    /// What came of an attempt.
    fn judge(
        &self,
        situation: &Situation,
        state: &mut FlowState,
        attempt: &Attempt,
        kind: MoveKind,
        result: Result<FlowOutcome, RefreshError>,
    ) -> Result<Refreshed, RefreshError> {
        let answer = match &result {
            Ok(outcome) => Answer::Written(self.proof(attempt, outcome)),
            Err(error) if error.is_stale() => Answer::Stale,
            Err(_) => Answer::Failed,
        };
        // The executor reads exactly what it is asked to, or fails: there is nothing in between to ask about.
        let Verdict { state: judged, decision, reason } = state.judge(attempt, &answer, |_| None);
        *state = judged;
        let outcome = result?;
        if *state.progress() != attempt.next {
            return Err(RefreshError::Unproved(reason));
        }
        // What arrived meanwhile is in the source's log, and comes next.
        let more = !attempt.next.dirty().is_empty() || *attempt.next.checkpoint() != situation.news.now;
        let reason = if situation.reason == Reason::None { reason } else { situation.reason };
        let report = RefreshReport {
            coverage: Some(attempt.coverage),
            windows: attempt.windows.windows(self.window.window(), COUNT_LIMIT)?,
            more,
            ..self.flow.report(kind, decision, reason).with(&outcome)
        };
        Ok(Refreshed { report, progress: attempt.next.clone() })
    }

    fn proof(&self, attempt: &Attempt, outcome: &FlowOutcome) -> Proof {
        let read = outcome.read.iter().find(|(table, _)| table == self.window.source());
        Proof { regions: attempt.fence.regions(), watermarks: read.map(|(_, upto)| upto.clone()) }
    }

    /// A scan of the sink, limited to these values of its time index.
    fn sink_rows(&self, ranges: &[InstantRange]) -> Result<LogicalPlan, RefreshError> {
        let sink = &self.flow.tables.sink;
        let spec = sink.spec();
        let name = &self.flow.definition.sink;
        let index =
            spec.time_index().ok_or_else(|| TableError::Schema("the sink has no time index".into()))?;
        let field = spec.schema().field(index);
        let column = Column::new(Some(name.clone()), field.name());
        let predicate = in_ranges(column, field.data_type(), ranges)?;
        Ok(LogicalPlanBuilder::from(self.flow.sink_scan()?).filter(predicate)?.build()?)
    }

    /// The source as of exactly there.
    fn snapshot(&self, at: &Watermarks) -> (datafusion::common::TableReference, ReadBounds) {
        (self.window.source().clone(), ReadBounds::Snapshot(at.clone()))
    }

    async fn commit(
        &self,
        situation: &Situation,
        query: LogicalPlan,
        write: Write,
        bounds: Vec<(datafusion::common::TableReference, ReadBounds)>,
        progress: Progress,
    ) -> Result<FlowOutcome, RefreshError> {
        let expected_sink = Some(situation.sink_at.clone());
        let write = FlowWrite { query, write, bounds, progress, expected_sink, now_millis: self.now_millis };
        let known = |write: &Write| match write {
            Write::Replace { ranges } => self.sink_rows(ranges),
            _ => self.flow.sink_scan(),
        };
        self.flow.write(write, known).await
    }

    /// The values of the sink's time index for these windows.
    fn labels(&self, windows: &DirtySet) -> Result<Vec<InstantRange>, RefreshError> {
        let unit = self.label_unit();
        let mut labels = Vec::with_capacity(windows.ranges().len());
        for &range in windows.ranges() {
            let range = self.window.labels_of(range)?;
            labels.push(self.flow.definition.matched.in_sink_unit(range, unit));
        }
        Ok(labels)
    }

    fn label_unit(&self) -> TimeUnit {
        use datafusion::arrow::datatypes::DataType;
        match self.flow.definition.query.schema().field(self.window.output()).data_type() {
            DataType::Timestamp(unit, _) => (*unit).into(),
            _ => TimeUnit::Nanosecond,
        }
    }
}

async fn source_news_of_all(
    source: &dyn SourceTable,
    window: &TimeWindow,
) -> Result<SourceNews, RefreshError> {
    let all = source_news(source, window.window(), &Watermarks::none()).await?;
    all.ok_or_else(|| TableError::Schema("the source cannot be read".into()).into())
}

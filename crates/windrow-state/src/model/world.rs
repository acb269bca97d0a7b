//! A source, a sink, an executor and a flow, and what can happen to them.

use std::fmt;

use windrow_time::{InstantRange, Window};

use super::event::{Event, Execution, Step};
use crate::flow::Fault;
use crate::{
    Answer, Approach, Attempt, ChunkLimits, Coverage, DirtySet, FlowState, Move, News, Notifications,
    Outlook, Progress, Proof, RegionId, SinkCommits, Watermarks,
};

const REGIONS: [RegionId; 2] = [0, 1];
const WINDOWS: usize = 3;
/// More commits than any script has.
const COMMITS: usize = 5;
/// Until a world comes to rest, at most so many events may be needed.
const EVENTS_TO_REST: usize = 80;

/// How a flow learns what changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Source {
    TellsChanges,
    Notifies,
}

/// What a search is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Setup {
    pub(super) source: Source,
    pub(super) sink: SinkCommits,
    pub(super) merges: bool,
    /// What is committed to the source, in this order, whenever.
    pub(super) script: &'static [Step],
    pub(super) fault: Option<Fault>,
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match self.source {
            Source::TellsChanges => "a source that tells what changed",
            Source::Notifies => "a source that only notifies",
        };
        let sink = match self.sink {
            SinkCommits::RowsWithProgress => "rows with progress",
            SinkCommits::RowsAndProgressApart => "rows and progress apart",
        };
        let query = if self.merges { "that merges" } else { "that does not merge" };
        write!(f, "{source}, a sink that commits {sink}, a query {query}, {} commits", self.script.len())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SourceCommit {
    region: RegionId,
    sequence: u64,
    appends: bool,
    windows: u8,
}

/// A flow in memory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Running {
    state: FlowState,
    heard: Notifications,
    under_way: Option<UnderWay>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum UnderWay {
    /// The executor has it.
    Asked(Attempt),
    /// The executor is done with it, and the flow does not know yet.
    Answered(Attempt, Answer),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct World {
    setup: Setup,
    commits: Vec<SourceCommit>,
    /// Of each commit whether its notification is still on its way, as bits.
    undelivered: u8,
    /// Snapshots before these cannot be read, nor what changed up to them.
    forgotten: Watermarks,
    /// How often each commit is in what the sink has for each window.
    content: [[u8; COMMITS]; WINDOWS],
    committed: Progress,
    flow: Option<Running>,
    /// A query whose flow has given it up, and that may still commit.
    late: Option<Attempt>,
    /// Whether the first window has expired.
    expired: bool,
    /// What must be in the sink for a flush to be done.
    flush: Option<Watermarks>,
    broken: Option<String>,
}

fn window(number: usize) -> InstantRange {
    InstantRange::new(number as i64, number as i64 + 1)
}

fn windows_of(mask: u8) -> DirtySet {
    (0..WINDOWS).filter(|number| mask & 1 << number != 0).map(window).collect()
}

fn all_windows() -> DirtySet {
    windows_of(0b111)
}

impl World {
    pub(super) fn new(setup: Setup) -> Self {
        let mut world = Self {
            setup,
            commits: Vec::new(),
            undelivered: 0,
            forgotten: Watermarks::none(),
            content: [[0; COMMITS]; WINDOWS],
            committed: Progress::start(),
            flow: None,
            late: None,
            expired: false,
            flush: None,
            broken: None,
        };
        world.restart();
        world
    }

    /// What is wrong.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        for number in self.live_windows() {
            let is_dirty = self.committed.dirty().ranges().iter().any(|range| range.contains(number as i64));
            if !is_dirty {
                self.check_window(number, self.committed.checkpoint())?;
            }
        }
        Ok(())
    }

    fn check_window(&self, number: usize, upto: &Watermarks) -> Result<(), String> {
        for (index, commit) in self.commits.iter().enumerate() {
            let expected = u8::from(is_in(commit, number, upto));
            let found = self.content[number][index];
            if found != expected {
                return Err(format!(
                    "window {number} has commit {} {found} times instead of {expected}, with checkpoint ({}) and dirty windows ({})",
                    index + 1,
                    self.committed.checkpoint(),
                    self.committed.dirty()
                ));
            }
        }
        Ok(())
    }

    /// How many refreshes it takes until there is nothing to do, if nothing more happens; or what is then wrong.
    pub(super) fn rest(&self) -> Result<usize, String> {
        let mut world = self.clone();
        // What was given up does not commit any more.
        world.late = None;
        let mut refreshes = 0;
        for _ in 0..EVENTS_TO_REST {
            let event = match &world.flow {
                None => Event::Restart,
                Some(_) if world.undelivered != 0 => {
                    Event::Deliver(world.undelivered.trailing_zeros() as usize)
                }
                Some(Running { under_way: Some(UnderWay::Answered(..)), .. }) => Event::HearAnswer,
                Some(Running { under_way: Some(UnderWay::Asked(attempt)), .. })
                    if world.can_read(attempt) =>
                {
                    Event::Execute(Execution::Right)
                }
                Some(Running { under_way: Some(UnderWay::Asked(_)), .. }) => {
                    Event::Execute(Execution::IsStale)
                }
                Some(_) => Event::Refresh,
            };
            let (next, label) = world.after(&event);
            let idle = label.as_deref() == Some("idle");
            refreshes += usize::from(event == Event::Refresh && !idle);
            world = next;
            if idle {
                return world.check_rest().map(|()| refreshes);
            }
        }
        Err(format!("nothing is at rest after {refreshes} refreshes"))
    }

    fn check_rest(&self) -> Result<(), String> {
        self.check()?;
        self.live_windows().try_for_each(|number| self.check_window(number, &self.now()))?;
        if self.flush.is_some() {
            return Err("a flush is not done".into());
        }
        if self.committed.dirty().ranges().iter().any(|range| range.overlaps(self.live())) {
            return Err("windows are dirty".into());
        }
        Ok(())
    }

    /// What can happen.
    pub(super) fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        events.extend(self.setup.script.get(self.commits.len()).copied().map(Event::Commit));
        let is_on_its_way = |index: &usize| self.undelivered & 1 << index != 0;
        events.extend((0..self.commits.len()).filter(is_on_its_way).map(Event::Deliver));
        match &self.flow {
            None => events.push(Event::Restart),
            Some(running) => {
                events.push(Event::Crash);
                match &running.under_way {
                    None => events.push(Event::Refresh),
                    Some(UnderWay::Asked(attempt)) => {
                        events.extend(self.executions(attempt).into_iter().map(Event::Execute));
                        events.push(Event::GiveUp);
                    }
                    Some(UnderWay::Answered(..)) => events.extend([Event::HearAnswer, Event::LoseAnswer]),
                }
            }
        }
        if self.late.as_ref().is_some_and(|attempt| self.can_read(attempt)) {
            events.push(Event::WriteLate);
        }
        let now = self.now();
        events.extend(REGIONS.into_iter().filter(|&r| self.forgotten.get(r) < now.get(r)).map(Event::Forget));
        if !self.expired {
            events.push(Event::Expire);
        }
        if self.flush.is_none() {
            events.push(Event::Flush);
        }
        events
    }

    fn executions(&self, attempt: &Attempt) -> Vec<Execution> {
        if !self.can_read(attempt) {
            return vec![Execution::IsStale, Execution::Fails];
        }
        let mut executions = vec![Execution::Right, Execution::Fails];
        if self.setup.sink == SinkCommits::RowsWithProgress {
            // It binds its reads exactly, and commits nothing otherwise.
            return executions;
        }
        executions.extend([Execution::WritesOneWindowAndFails, Execution::ProvesNothing]);
        let is_repair = attempt.coverage != Coverage::IncrementalDelta;
        if is_repair && self.now() != attempt.fence {
            executions.push(Execution::ReadsWhatIsThereNow);
        }
        if self.below(attempt) != attempt.fence {
            executions.push(Execution::ReadsBelow);
        }
        if attempt.fence.regions().len() == REGIONS.len() {
            executions.push(Execution::LeavesARegionOut);
        }
        executions
    }

    /// The world after an event that can happen, and what a refresh led to.
    pub(super) fn after(&self, event: &Event) -> (Self, Option<String>) {
        let mut world = self.clone();
        let mut label = None;
        match event {
            Event::Commit((region, appends, windows)) => {
                let sequence = world.now().get(*region) + 1;
                let commit = SourceCommit { region: *region, sequence, appends: *appends, windows: *windows };
                if world.setup.source == Source::Notifies {
                    world.undelivered |= 1 << world.commits.len();
                }
                world.commits.push(commit);
            }
            Event::Deliver(index) => {
                world.undelivered &= !(1 << index);
                let SourceCommit { region, sequence, appends, windows } = world.commits[*index].clone();
                if let Some(running) = &mut world.flow {
                    running.heard.hear(region, sequence, &windows_of(windows), appends);
                }
            }
            Event::Refresh => label = Some(world.refresh()),
            Event::Execute(execution) => world.execute(*execution),
            Event::HearAnswer => label = world.hear_answer(),
            Event::LoseAnswer => {
                if let Some(running) = &mut world.flow {
                    running.under_way = None;
                }
            }
            Event::GiveUp => world.give_up(),
            Event::WriteLate => world.write_late(),
            Event::Crash => {
                world.give_up();
                world.flow = None;
            }
            Event::Restart => world.restart(),
            Event::Forget(region) => {
                world.forgotten = world.forgotten.advanced(&world.now(), &[*region].into())
            }
            Event::Expire => world.expired = true,
            Event::Flush => world.flush = Some(world.now()),
        }
        (world, label)
    }

    fn restart(&mut self) {
        let mut state = FlowState::new(self.committed.clone(), self.setup.merges);
        state.fault = self.setup.fault;
        self.flow = Some(Running { state, heard: self.listen(), under_way: None });
    }

    /// What happened before is not notified again.
    fn listen(&self) -> Notifications {
        let mut heard = Notifications::since(self.now());
        heard.fault = self.setup.fault;
        heard
    }

    fn refresh(&mut self) -> String {
        let Some(mut running) = self.flow.take() else { return String::new() };
        let mut state = running.state.with_progress(self.committed.keep(self.live()));
        let mut news = self.live_news(&running.heard, state.progress().checkpoint(), None);
        if news.as_ref().is_none_or(|news| !news.now.covers(state.progress().checkpoint())) {
            // What changed is not known any more: start over.
            state = state.with_progress(Progress::start());
            running.heard = self.listen();
            news = Some(News { now: self.now(), touched: all_windows(), appends_only: false });
        }
        let Some(mut news) = news else { return String::new() };
        news.touched.keep(self.live());
        let outlook = Outlook { news, approach: Approach::Auto, merge_cost: 1, repair_cost: 1 };
        let sink = self.setup.sink;
        let (attempt, label) = match state.next_move(&outlook) {
            Ok(Move::Idle) => {
                self.finish_flush(&outlook.news.now);
                (None, "idle".to_owned())
            }
            Ok(Move::Observe { next }) => {
                self.committed = next;
                self.late = None;
                (None, "observe".to_owned())
            }
            Ok(Move::Repair { observed, coverage }) => {
                let limits = ChunkLimits { windows_per_query: 1, ..ChunkLimits::default() };
                let grid = Window::fixed(0, 1).expect("a width");
                let chunk = observed.dirty().choose_chunk(&grid, limits).expect("a fixed grid");
                (Some(state.repair(&observed, coverage, chunk, sink)), coverage.to_string())
            }
            Ok(Move::Merge { next }) => {
                (Some(state.merge(next, &outlook.news, sink)), Coverage::IncrementalDelta.to_string())
            }
            Err(error) => {
                self.broken = Some(error.to_string());
                (None, "broken".to_owned())
            }
        };
        if let (Some(attempt), SinkCommits::RowsAndProgressApart) = (&attempt, sink) {
            self.committed = attempt.intent.clone();
        }
        running.state = state;
        running.under_way = attempt.map(UnderWay::Asked);
        self.flow = Some(running);
        label
    }

    /// Nothing is left to do, as far as is known: a flush for what was known is done, and must be.
    fn finish_flush(&mut self, known: &Watermarks) {
        let Some(target) = &self.flush else { return };
        if known.covers(target) {
            let wrong = self.live_windows().find_map(|number| self.check_window(number, known).err());
            self.broken = wrong.map(|wrong| format!("a flush is done, but {wrong}"));
            self.flush = None;
        }
    }

    fn execute(&mut self, execution: Execution) {
        let Some(running) = &mut self.flow else { return };
        let Some(UnderWay::Asked(attempt)) = running.under_way.take() else { return };
        let read = match execution {
            Execution::ReadsWhatIsThereNow => self.now(),
            Execution::ReadsBelow => self.below(&attempt),
            Execution::LeavesARegionOut => Watermarks::of(0, attempt.fence.get(0)),
            _ => attempt.fence.clone(),
        };
        let proof = |watermarks| Answer::Written(Proof { regions: attempt.fence.regions(), watermarks });
        let answer = match execution {
            Execution::Fails => Answer::Failed,
            Execution::IsStale => Answer::Stale,
            Execution::WritesOneWindowAndFails => {
                let one = attempt
                    .windows
                    .ranges()
                    .first()
                    .map(|first| InstantRange::new(first.start(), first.start() + 1));
                self.write(&Attempt { windows: one.into_iter().collect(), ..attempt.clone() }, &read);
                Answer::Failed
            }
            _ => {
                self.write(&attempt, &read);
                if self.setup.sink == SinkCommits::RowsWithProgress {
                    self.commit(attempt.next.clone());
                }
                proof((execution != Execution::ProvesNothing).then_some(read))
            }
        };
        if let Some(running) = &mut self.flow {
            running.under_way = Some(UnderWay::Answered(attempt, answer));
        }
    }

    /// Writes what an attempt is to write, as of `read`.
    fn write(&mut self, attempt: &Attempt, read: &Watermarks) {
        let merges = attempt.coverage == Coverage::IncrementalDelta;
        let after = self.committed.checkpoint().clone();
        for number in 0..WINDOWS {
            if !attempt.windows.ranges().iter().any(|range| range.contains(number as i64)) {
                continue;
            }
            for (index, commit) in self.commits.iter().enumerate() {
                let is_in = is_in(commit, number, read);
                let cell = &mut self.content[number][index];
                if !merges {
                    *cell = u8::from(is_in);
                } else if is_in && commit.sequence > after.get(commit.region) {
                    *cell = (*cell + 1).min(2);
                }
            }
        }
    }

    /// The sink commits rows with this progress, and what was made for another state of it can commit no more.
    fn commit(&mut self, progress: Progress) {
        self.committed = progress;
        self.late = None;
    }

    fn hear_answer(&mut self) -> Option<String> {
        let mut running = self.flow.take()?;
        if let Some(UnderWay::Answered(attempt, answer)) = running.under_way.take() {
            let checkpoint = running.state.progress().checkpoint();
            let verdict = running
                .state
                .judge(&attempt, &answer, |upto| self.news(&running.heard, checkpoint, Some(upto)));
            let label = format!("{} {} {}", verdict.state.mode(), verdict.decision, verdict.reason);
            if self.setup.sink == SinkCommits::RowsAndProgressApart {
                self.committed = verdict.state.progress().clone();
            } else if matches!(answer, Answer::Written(_))
                && self.committed.keep(self.live()) != verdict.state.progress().keep(self.live())
            {
                self.broken = Some("the verdict is not what was committed".into());
            }
            running.state = verdict.state;
            running.heard.forget(self.committed.checkpoint());
            self.flow = Some(running);
            return Some(label);
        }
        self.flow = Some(running);
        None
    }

    /// The flow does not wait for what is under way any more.
    fn give_up(&mut self) {
        let Some(running) = &mut self.flow else { return };
        if let Some(UnderWay::Asked(attempt)) = running.under_way.take()
            && self.setup.sink == SinkCommits::RowsWithProgress
        {
            self.late = Some(attempt);
        }
    }

    fn write_late(&mut self) {
        let Some(attempt) = self.late.take() else { return };
        let fence = attempt.fence.clone();
        self.write(&attempt, &fence);
        self.commit(attempt.next);
        // What was made for the sink as it was is refused.
        if let Some(running) = &mut self.flow
            && let Some(UnderWay::Asked(attempt)) = running.under_way.clone()
        {
            running.under_way = Some(UnderWay::Answered(attempt, Answer::Failed));
        }
    }

    fn now(&self) -> Watermarks {
        let of = |region| self.commits.iter().rev().find(|commit| commit.region == region);
        REGIONS.into_iter().filter_map(|region| of(region).map(|commit| (region, commit.sequence))).collect()
    }

    fn live(&self) -> InstantRange {
        InstantRange::new(i64::from(self.expired), WINDOWS as i64)
    }

    fn live_windows(&self) -> std::ops::Range<usize> {
        usize::from(self.expired)..WINDOWS
    }

    /// Whether the snapshot of a repair, or the changes for a merge, can be read.
    fn can_read(&self, attempt: &Attempt) -> bool {
        let from = match attempt.coverage {
            Coverage::IncrementalDelta => self.committed.checkpoint(),
            _ => &attempt.fence,
        };
        REGIONS.into_iter().all(|region| from.get(region) >= self.forgotten.get(region))
    }

    /// An older snapshot than the one asked for, of one region.
    fn below(&self, attempt: &Attempt) -> Watermarks {
        let lower = |(region, sequence): (RegionId, u64)| {
            (region, if region == 0 { sequence.max(2) - 1 } else { sequence })
        };
        attempt.fence.iter().map(lower).collect()
    }

    /// The news, less what expired.
    fn live_news(
        &self,
        heard: &Notifications,
        checkpoint: &Watermarks,
        upto: Option<&Watermarks>,
    ) -> Option<News> {
        let mut news = self.news(heard, checkpoint, upto)?;
        news.touched.keep(self.live());
        Some(news)
    }

    /// What the flow can know of the changes after `checkpoint` up to `upto`, or up to where it knows of.
    fn news(
        &self,
        heard: &Notifications,
        checkpoint: &Watermarks,
        upto: Option<&Watermarks>,
    ) -> Option<News> {
        let known = match self.setup.source {
            Source::TellsChanges => self.now(),
            Source::Notifies => heard.arrived(),
        };
        let upto = upto.cloned().unwrap_or(known.clone());
        if !known.covers(&upto) {
            return None;
        }
        if checkpoint.is_none() {
            // From nothing: every row that is there, and every row that the sink has.
            let touched = if upto.is_none() { DirtySet::default() } else { all_windows() };
            return Some(News { now: upto, touched, appends_only: false });
        }
        if self.setup.source == Source::Notifies {
            return heard.news_upto(checkpoint, &upto);
        }
        if REGIONS.into_iter().any(|region| checkpoint.get(region) < self.forgotten.get(region)) {
            return None;
        }
        let mut news = News { now: upto, touched: DirtySet::default(), appends_only: true };
        for commit in &self.commits {
            let is_new = commit.sequence > checkpoint.get(commit.region)
                && commit.sequence <= news.now.get(commit.region);
            if is_new {
                news.touched.join(&windows_of(commit.windows));
                news.appends_only &= commit.appends;
            }
        }
        Some(news)
    }
}

/// Whether a commit is in what the query gives for a window as of these watermarks.
fn is_in(commit: &SourceCommit, number: usize, upto: &Watermarks) -> bool {
    commit.windows & 1 << number != 0 && commit.sequence <= upto.get(commit.region)
}

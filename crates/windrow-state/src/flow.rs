//! A flow between its refreshes, and what an answer makes of it.
//!
//! A refresh is an [`Attempt`]: it names what is to be read, the progress that stays true whatever becomes of it
//! ([`Attempt::intent`]), and the one that is true once all its rows are written ([`Attempt::next`]). A sink that commits
//! rows and progress in one step gets the latter with the rows. Any other stores the intent first, then the rows, and in
//! the end the progress of the [`Verdict`]; so a crash in between leads to a repair, never to a second merge.

use std::collections::BTreeSet;

use crate::{
    Coverage, Decision, DirtySet, Mode, News, Progress, ProgressError, Reason, RegionId, Watermarks,
};

/// The committed progress of a flow, and what else its next move depends on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FlowState {
    progress: Progress,
    merges: bool,
    fence: Fence,
    #[cfg(test)]
    pub(crate) fault: Option<Fault>,
}

/// Whether a repair goes on as of the checkpoint, and a merge from there on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Fence {
    /// As far as is known.
    Stands,
    /// The source does not know that state any more, or the query fails over it: the next move is a repair at a new
    /// snapshot. What made a query fail may be gone from there, and stays in the old state for ever.
    Fallen,
}

/// Faults that the model checker is to find.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    AdvanceBeforeProof,
    TakeChunkBeforeCommit,
    TrustChunkBelowFence,
    IgnoreSequenceOfNotification,
}

/// How a sink stores progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SinkCommits {
    /// In the same step as the rows it speaks of.
    RowsWithProgress,
    /// Apart from rows.
    RowsAndProgressApart,
}

/// One try of a move that writes rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Attempt {
    /// What the query reads.
    pub coverage: Coverage,
    /// What the query is to read exactly: everything up to here, or of a merge what is after the checkpoint and up to here.
    pub fence: Watermarks,
    /// The windows that are written: the chunk of a repair, or those that the rows of a merge fall into.
    pub windows: DirtySet,
    /// True from now on, whatever becomes of the write.
    pub intent: Progress,
    /// True once all rows are written.
    pub next: Progress,
}

/// What was read, as the scans have reported it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Proof {
    /// The regions that took part.
    pub regions: BTreeSet<RegionId>,
    /// Up to which sequence each was read; `None` where the scans do not say.
    pub watermarks: Option<Watermarks>,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Answer {
    /// All rows are written.
    Written(Proof),
    /// The snapshot, or the range of sequences, can no longer be read.
    Stale,
    /// The query failed; rows may have been written where the sink does not commit them in one step.
    Failed,
}

/// Where an answer leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The state after it. Its progress is true, and to be stored where it is not committed yet.
    pub state: FlowState,
    /// What the refresh led to.
    pub decision: Decision,
    /// Why.
    pub reason: Reason,
}

impl FlowState {
    /// A flow with this committed progress; `merges` where its query can be merged.
    #[must_use]
    pub fn new(progress: Progress, merges: bool) -> Self {
        Self {
            progress,
            merges,
            fence: Fence::Stands,
            #[cfg(test)]
            fault: None,
        }
    }

    /// What is committed.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Whether new rows may be merged.
    #[must_use]
    pub fn merges(&self) -> bool {
        self.merges
    }

    /// Whether a repair can go on at the checkpoint, and a merge from there on.
    pub(crate) fn can_go_on(&self) -> bool {
        self.fence == Fence::Stands && !self.progress.checkpoint().is_none()
    }

    /// Where the flow is.
    #[must_use]
    pub fn mode(&self) -> Mode {
        if self.merges && self.progress.dirty().is_empty() && !self.progress.checkpoint().is_none() {
            Mode::Incremental
        } else {
            Mode::FullSnapshot
        }
    }

    /// Merges are off from now on: the query turned out not to be one that can be merged.
    #[must_use]
    pub fn without_merges(mut self) -> Self {
        self.merges = false;
        self
    }

    /// The same flow with another progress: one that was read from the sink, or is less what expired.
    #[must_use]
    pub fn with_progress(&self, progress: Progress) -> Self {
        Self { progress, ..self.clone() }
    }

    /// The repair of `chunk`, a part of the dirty windows of `observed`.
    #[must_use]
    pub fn repair(
        &self,
        observed: &Progress,
        coverage: Coverage,
        chunk: DirtySet,
        sink: SinkCommits,
    ) -> Attempt {
        let next = observed.repair(&chunk);
        let intent = match sink {
            SinkCommits::RowsWithProgress => self.progress.clone(),
            // What the changes touched is not true any more once their rows are there, though the checkpoint stands.
            SinkCommits::RowsAndProgressApart => self.progress.distrust(observed.dirty()),
        };
        #[cfg(test)]
        let intent = match self.fault {
            Some(Fault::AdvanceBeforeProof) => next.clone(),
            Some(Fault::TakeChunkBeforeCommit) => intent.repair(&chunk),
            _ => intent,
        };
        Attempt { coverage, fence: observed.checkpoint().clone(), windows: chunk, intent, next }
    }

    /// The merge of the changes that `news` tells of, after which `next` is true.
    #[must_use]
    pub fn merge(&self, next: Progress, news: &News, sink: SinkCommits) -> Attempt {
        let intent = match sink {
            SinkCommits::RowsWithProgress => self.progress.clone(),
            SinkCommits::RowsAndProgressApart => self.progress.distrust(&news.touched),
        };
        #[cfg(test)]
        let intent = if self.fault == Some(Fault::AdvanceBeforeProof) { next.clone() } else { intent };
        Attempt {
            coverage: Coverage::IncrementalDelta,
            fence: news.now.clone(),
            windows: news.touched.clone(),
            intent,
            next,
        }
    }

    /// Judges an answer. `since` tells what happened in the source from the checkpoint up to some watermarks, or that it is
    /// not known any more; it is asked about what was read, before anything is believed.
    #[must_use]
    pub fn judge(
        &self,
        attempt: &Attempt,
        answer: &Answer,
        since: impl FnOnce(&Watermarks) -> Option<News>,
    ) -> Verdict {
        match answer {
            Answer::Written(proof) => self.written(attempt, proof, since),
            Answer::Stale => {
                let reason = match attempt.coverage {
                    Coverage::FencedRepairChunk => Reason::SnapshotFenceExpired,
                    _ => Reason::StaleCursor,
                };
                let verdict = self.fall_back(attempt, reason);
                Verdict { state: Self { fence: Fence::Fallen, ..verdict.state }, ..verdict }
            }
            Answer::Failed if attempt.coverage == Coverage::IncrementalDelta => {
                self.fall_back(attempt, Reason::IncrementalQueryFailure)
            }
            Answer::Failed => {
                let verdict = self.fall_back(attempt, Reason::QueryFailure);
                Verdict { state: Self { fence: Fence::Fallen, ..verdict.state }, ..verdict }
            }
        }
    }

    fn written(
        &self,
        attempt: &Attempt,
        proof: &Proof,
        since: impl FnOnce(&Watermarks) -> Option<News>,
    ) -> Verdict {
        let Some(read) = &proof.watermarks else {
            return self.fall_back(attempt, Reason::MissingRegionWatermark);
        };
        let complete = !proof.regions.is_empty() && proof.regions == read.regions();
        if complete && *read == attempt.fence {
            return self.advance(attempt.next.clone());
        }
        match attempt.coverage {
            Coverage::FencedRepairChunk => {
                // What was read above the fence is right as of there, if what happened in between is known.
                let above = complete && read.covers(&attempt.fence);
                #[cfg(test)]
                let above = above || self.fault == Some(Fault::TrustChunkBelowFence);
                let progress = if above { self.repaired_at(attempt, read, since) } else { None };
                let verdict = self.fall_back(attempt, Reason::IncompleteRegionWatermark);
                match progress {
                    Some(progress) => Verdict { state: verdict.state.with_progress(progress), ..verdict },
                    None => verdict,
                }
            }
            Coverage::ScopedBaseRepair if complete => match self.repaired_at(attempt, read, since) {
                Some(progress) => self.advance(progress),
                None => self.fall_back(attempt, Reason::StaleCursor),
            },
            Coverage::UnfilteredFull if complete => self.advance(attempt.next.clone()),
            Coverage::IncrementalDelta => match self.merged_at(proof, read, since) {
                Ok(progress) => self.advance(progress),
                Err(reason) => self.fall_back(attempt, reason),
            },
            Coverage::ScopedBaseRepair | Coverage::UnfilteredFull => {
                self.fall_back(attempt, Reason::IncompleteRegionWatermark)
            }
        }
    }

    /// The progress after the windows of a repair were written as of `read`; `None` where it is not known what happened up
    /// to there.
    fn repaired_at(
        &self,
        attempt: &Attempt,
        read: &Watermarks,
        since: impl FnOnce(&Watermarks) -> Option<News>,
    ) -> Option<Progress> {
        #[cfg(test)]
        let is_fenced = attempt.coverage == Coverage::FencedRepairChunk;
        #[cfg(test)]
        if is_fenced && self.fault == Some(Fault::TrustChunkBelowFence) && !read.covers(&attempt.fence) {
            return Some(self.progress.repair(&attempt.windows));
        }
        let news = since(read)?;
        Some(self.progress.observe(read, &news.touched).ok()?.repair(&attempt.windows))
    }

    /// The progress after the rows of the regions that took part were merged, up to `read`.
    fn merged_at(
        &self,
        proof: &Proof,
        read: &Watermarks,
        since: impl FnOnce(&Watermarks) -> Option<News>,
    ) -> Result<Progress, Reason> {
        let checkpoint = self.progress.checkpoint();
        let known = checkpoint.regions();
        let covered = proof.regions.iter().all(|&region| {
            known.contains(&region)
                && read.regions().contains(&region)
                && read.get(region) >= checkpoint.get(region)
        });
        if !covered || proof.regions.is_empty() {
            return Err(Reason::IncompleteRegionWatermark);
        }
        let upto = checkpoint.advanced(read, &proof.regions);
        let news = since(&upto).ok_or(Reason::StaleCursor)?;
        if !news.appends_only {
            return Err(Reason::IncompleteRegionWatermark);
        }
        self.progress
            .merge(&upto, &news.touched)
            .map_err(|_: ProgressError| Reason::IncompleteRegionWatermark)
    }

    /// The attempt has led to `progress`.
    fn advance(&self, progress: Progress) -> Verdict {
        let state = Self { fence: Fence::Stands, ..self.with_progress(progress) };
        let (decision, reason) = if !state.progress.dirty().is_empty() {
            (Decision::ContinueRepair, Reason::DirtyBacklogPending)
        } else if state.merges {
            (Decision::Advance, Reason::None)
        } else {
            (Decision::Fallback, Reason::IncrementalDisabled)
        };
        Verdict { state, decision, reason }
    }

    /// Nothing is proved: what was meant before stands.
    fn fall_back(&self, attempt: &Attempt, reason: Reason) -> Verdict {
        Verdict { state: self.with_progress(attempt.intent.clone()), decision: Decision::Fallback, reason }
    }
}

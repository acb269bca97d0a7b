//! Choosing the next move.

use crate::{Coverage, DirtySet, FlowState, Progress, ProgressError, Watermarks};

/// Which moves a flow's author allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Approach {
    /// Merge where it reads less than a repair would.
    #[default]
    Auto,
    /// Merge wherever it is possible.
    Merge,
    /// Never merge.
    Recompute,
}

/// What is known of the changes of a source after a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// Where the source is now.
    pub now: Watermarks,
    /// The windows that the changes fall into.
    pub touched: DirtySet,
    /// Whether all of these changes only appended rows.
    pub appends_only: bool,
}

/// What the next move is chosen by.
#[derive(Debug, Clone)]
pub struct Outlook {
    /// What happened in the source since the checkpoint.
    pub news: News,
    /// What the author allows.
    pub approach: Approach,
    /// Rows that a merge would handle: the new rows, and the sink's rows in the windows that it rewrites.
    pub merge_cost: u64,
    /// Rows that a repair would handle: all source rows of the touched windows, and the sink's rows in them.
    pub repair_cost: u64,
}

/// The next move, with the progress to be committed with its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// Nothing is new and nothing is dirty.
    Idle,
    /// What is new touches no window that is kept up to date: only the progress changes.
    Observe {
        /// The progress after it.
        next: Progress,
    },
    /// Repair a chunk of [`Progress::dirty`] of `observed`, as of exactly its checkpoint.
    Repair {
        /// The progress that the repair starts from.
        observed: Progress,
        /// [`Coverage::ScopedBaseRepair`] where the snapshot is new, else [`Coverage::FencedRepairChunk`].
        coverage: Coverage,
    },
    /// Merge the rows since the checkpoint.
    Merge {
        /// The progress after it.
        next: Progress,
    },
}

impl FlowState {
    /// The move that the state and the outlook ask for.
    ///
    /// While windows are dirty, they are repaired at the checkpoint that they are dirty under, a chunk at a time; what
    /// arrives meanwhile waits in the source's log, so that it can neither be forgotten nor keep a repair from its end.
    /// A merge needs pure appends to regions that were read before, a query that can be merged, clean windows to merge into;
    /// with [`Approach::Auto`] it must also read no more than a repair.
    ///
    /// # Errors
    /// When the source is behind the checkpoint.
    pub fn next_move(&self, outlook: &Outlook) -> Result<Move, ProgressError> {
        let (progress, news) = (self.progress(), &outlook.news);
        let fresh = news.now == *progress.checkpoint();
        // A source in which there never was a row leaves nothing to prove: the first rows make the first move.
        let untouched = progress.checkpoint().is_none() && news.touched.is_empty();
        if progress.dirty().is_empty() {
            if fresh || untouched {
                return Ok(Move::Idle);
            }
            if self.merge_pays(outlook) && !news.touched.is_empty() {
                return Ok(Move::Merge { next: progress.merge(&news.now, &news.touched)? });
            }
        } else if fresh || (self.can_go_on() && news.now.covers(progress.checkpoint())) {
            return Ok(Move::Repair { observed: progress.clone(), coverage: Coverage::FencedRepairChunk });
        }
        let observed = progress.observe(&news.now, &news.touched)?;
        if observed.dirty().is_empty() {
            return Ok(Move::Observe { next: observed });
        }
        Ok(Move::Repair { observed, coverage: Coverage::ScopedBaseRepair })
    }

    fn merge_pays(&self, outlook: &Outlook) -> bool {
        let checkpoint = self.progress().checkpoint();
        let known_regions = checkpoint.regions() == outlook.news.now.regions();
        let possible = self.merges() && self.can_go_on() && outlook.news.appends_only && known_regions;
        possible
            && match outlook.approach {
                Approach::Auto => outlook.merge_cost <= outlook.repair_cost,
                Approach::Merge => true,
                Approach::Recompute => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use windrow_time::InstantRange;

    use super::*;

    fn windows(start: i64, end: i64) -> DirtySet {
        DirtySet::from(vec![InstantRange::new(start, end)])
    }

    fn outlook(now: Watermarks, touched: DirtySet) -> Outlook {
        let news = News { now, touched, appends_only: true };
        Outlook { news, approach: Approach::Auto, merge_cost: 1, repair_cost: 10 }
    }

    fn at(sequence: u64, dirty: DirtySet) -> Progress {
        Progress::start().observe(&Watermarks::of(0, sequence), &dirty).unwrap()
    }

    fn state(progress: Progress) -> FlowState {
        FlowState::new(progress, true)
    }

    #[test]
    fn a_flow_begins_with_a_repair_then_merges_then_rests() {
        let first =
            state(Progress::start()).next_move(&outlook(Watermarks::of(0, 1), windows(0, 10))).unwrap();
        let Move::Repair { observed, coverage: Coverage::ScopedBaseRepair } = first else {
            panic!("{first:?}");
        };
        let repaired = state(observed.repair(&windows(0, 10)));
        assert_eq!(
            repaired.next_move(&outlook(Watermarks::of(0, 2), windows(0, 10))).unwrap(),
            Move::Merge { next: at(2, DirtySet::default()) }
        );
        assert_eq!(
            repaired.next_move(&outlook(Watermarks::of(0, 1), DirtySet::default())).unwrap(),
            Move::Idle
        );
    }

    #[test]
    fn what_cannot_be_merged_is_repaired() {
        let clean = state(at(1, DirtySet::default()));
        type Change = fn(&mut Outlook);
        let cases: [(&str, Change); 4] = [
            ("deletes", |o| o.news.appends_only = false),
            ("author", |o| o.approach = Approach::Recompute),
            ("cost", |o| o.merge_cost = 11),
            ("a region that was never read", |o| o.news.now = [(0, 2), (1, 1)].into_iter().collect()),
        ];
        for (name, change) in cases {
            let mut outlook = outlook(Watermarks::of(0, 2), windows(0, 10));
            change(&mut outlook);
            let chosen = clean.next_move(&outlook).unwrap();
            assert!(matches!(chosen, Move::Repair { .. }), "{name}: {chosen:?}");
        }
        let query = FlowState::new(at(1, DirtySet::default()), false);
        let chosen = query.next_move(&outlook(Watermarks::of(0, 2), windows(0, 10))).unwrap();
        assert!(matches!(chosen, Move::Repair { .. }), "query: {chosen:?}");
    }

    #[test]
    fn a_repair_goes_on_at_its_fence_while_rows_arrive() {
        let dirty = state(at(1, windows(50, 60)));
        let chosen = dirty.next_move(&outlook(Watermarks::of(0, 2), windows(0, 10))).unwrap();
        assert_eq!(
            chosen,
            Move::Repair { observed: at(1, windows(50, 60)), coverage: Coverage::FencedRepairChunk }
        );
    }

    #[test]
    fn a_source_that_went_backwards_or_lost_a_region_is_an_error() {
        for (now, dirty) in [
            (Watermarks::of(0, 1), DirtySet::default()),
            (Watermarks::of(1, 9), DirtySet::default()),
            (Watermarks::of(1, 9), windows(0, 10)),
        ] {
            let result = state(at(2, dirty)).next_move(&outlook(now, windows(0, 10)));
            assert!(matches!(result, Err(ProgressError::Backwards { .. })), "{result:?}");
        }
    }

    #[test]
    fn a_commit_that_changes_no_window_is_only_observed() {
        let clean = state(at(1, DirtySet::default()));
        assert_eq!(
            clean.next_move(&outlook(Watermarks::of(0, 2), DirtySet::default())).unwrap(),
            Move::Observe { next: at(2, DirtySet::default()) }
        );
    }

    #[test]
    fn an_empty_source_asks_for_nothing() {
        let start = state(Progress::start());
        assert_eq!(start.next_move(&outlook(Watermarks::of(0, 0), DirtySet::default())).unwrap(), Move::Idle);
    }
}

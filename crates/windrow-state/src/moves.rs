//! Choosing the next move.

use crate::{Coverage, DirtySet, Progress, ProgressError, Watermarks};

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

/// What is known about the source and the query when the next move is chosen.
#[derive(Debug, Clone)]
pub struct Outlook {
    /// Where the source is now.
    pub source: Watermarks,
    /// The windows that the changes since the checkpoint fall into.
    pub touched: DirtySet,
    /// Whether all of these changes only appended rows.
    pub appends_only: bool,
    /// Whether the query's results can be merged.
    pub mergeable: bool,
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
    /// What is new was made dirty; repair a chunk of [`Progress::dirty`] of `observed`.
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

/// The move that `progress` and `outlook` ask for.
///
/// A merge needs pure appends, a query that can be merged, clean windows to merge into, and a sink that something
/// was proved of; with [`Approach::Auto`] it must also read no more than a repair.
///
/// # Errors
/// When the source is behind the checkpoint.
pub fn decide(progress: &Progress, outlook: &Outlook) -> Result<Move, ProgressError> {
    let fresh = outlook.source == *progress.checkpoint();
    // A source in which there never was a row leaves nothing to prove: the first rows make the first move.
    let untouched = progress.checkpoint().is_none() && outlook.touched.is_empty();
    if (fresh || untouched) && progress.dirty().is_empty() {
        return Ok(Move::Idle);
    }
    if fresh {
        return Ok(Move::Repair { observed: progress.clone(), coverage: Coverage::FencedRepairChunk });
    }
    if merge_pays(progress, outlook) && !outlook.touched.is_empty() {
        return Ok(Move::Merge { next: progress.merge(&outlook.source, &outlook.touched)? });
    }
    let observed = progress.observe(&outlook.source, &outlook.touched)?;
    if observed.dirty().is_empty() {
        return Ok(Move::Observe { next: observed });
    }
    Ok(Move::Repair { observed, coverage: Coverage::ScopedBaseRepair })
}

fn merge_pays(progress: &Progress, outlook: &Outlook) -> bool {
    let possible = outlook.mergeable
        && outlook.appends_only
        && !progress.checkpoint().is_none()
        && progress.dirty().is_empty();
    possible
        && match outlook.approach {
            Approach::Auto => outlook.merge_cost <= outlook.repair_cost,
            Approach::Merge => true,
            Approach::Recompute => false,
        }
}

#[cfg(test)]
mod tests {
    use windrow_time::InstantRange;

    use super::*;

    fn windows(start: i64, end: i64) -> DirtySet {
        DirtySet::from(vec![InstantRange::new(start, end)])
    }

    fn outlook(sequence: u64, touched: DirtySet) -> Outlook {
        Outlook {
            source: Watermarks::of(0, sequence),
            touched,
            appends_only: true,
            mergeable: true,
            approach: Approach::Auto,
            merge_cost: 1,
            repair_cost: 10,
        }
    }

    fn at(sequence: u64, dirty: DirtySet) -> Progress {
        Progress::start().observe(&Watermarks::of(0, sequence), &dirty).unwrap()
    }

    #[test]
    fn a_flow_begins_with_a_repair_then_merges_then_rests() {
        let first = decide(&Progress::start(), &outlook(1, windows(0, 10))).unwrap();
        let Move::Repair { observed, coverage: Coverage::ScopedBaseRepair } = first else {
            panic!("{first:?}");
        };
        let repaired = observed.repair(&windows(0, 10));
        assert_eq!(
            decide(&repaired, &outlook(2, windows(0, 10))).unwrap(),
            Move::Merge { next: at(2, DirtySet::default()) }
        );
        assert_eq!(decide(&repaired, &outlook(1, DirtySet::default())).unwrap(), Move::Idle);
    }

    #[test]
    fn what_cannot_be_merged_is_repaired() {
        let clean = at(1, DirtySet::default());
        type Change = fn(&mut Outlook);
        let cases: [(&str, Change); 4] = [
            ("deletes", |o| o.appends_only = false),
            ("query", |o| o.mergeable = false),
            ("author", |o| o.approach = Approach::Recompute),
            ("cost", |o| o.merge_cost = 11),
        ];
        for (name, change) in cases {
            let mut outlook = outlook(2, windows(0, 10));
            change(&mut outlook);
            let chosen = decide(&clean, &outlook).unwrap();
            assert!(matches!(chosen, Move::Repair { .. }), "{name}: {chosen:?}");
        }
        let dirty = at(1, windows(50, 60));
        assert!(matches!(decide(&dirty, &outlook(2, windows(0, 10))).unwrap(), Move::Repair { .. }));
    }

    #[test]
    fn a_commit_that_changes_no_window_is_only_observed() {
        let clean = at(1, DirtySet::default());
        assert_eq!(
            decide(&clean, &outlook(2, DirtySet::default())).unwrap(),
            Move::Observe { next: at(2, DirtySet::default()) }
        );
    }

    #[test]
    fn an_empty_source_asks_for_nothing() {
        assert_eq!(decide(&Progress::start(), &outlook(0, DirtySet::default())).unwrap(), Move::Idle);
    }

    #[test]
    fn an_in_between_repair_is_fenced_at_the_checkpoint() {
        let dirty = at(4, windows(0, 10));
        assert!(matches!(
            decide(&dirty, &outlook(4, DirtySet::default())).unwrap(),
            Move::Repair { coverage: Coverage::FencedRepairChunk, .. }
        ));
    }
}

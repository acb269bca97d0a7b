//! The pair that a flow's progress is.

use serde::{Deserialize, Serialize};
use windrow_time::InstantRange;

use crate::{DirtySet, Watermarks};

/// A checkpoint and the dirty windows under it.
///
/// **Invariant.** For every window that is not expired and not in [`Progress::dirty`], the sink holds exactly the
/// query's result over the source rows with sequence ≤ [`Progress::checkpoint`]. Windows in the dirty set may hold
/// anything.
///
/// A `Progress` is a proposal until it is committed together with the rows it speaks of; every move makes a new
/// value, so that nothing has to be given back when a refresh fails.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
pub struct Progress {
    checkpoint: Watermarks,
    dirty: DirtySet,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_mark: Option<u64>,
}

/// A move that would make a [`Progress`] untrue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProgressError {
    /// The source went backwards, or lost a region.
    #[error("the source is at ({found}), behind the checkpoint ({checkpoint})")]
    Backwards {
        /// What was committed.
        checkpoint: Watermarks,
        /// What the source says now.
        found: Watermarks,
    },
    /// A merge touches windows whose content is not known.
    #[error("rows cannot be merged into dirty windows: {overlap}")]
    MergeIntoDirty {
        /// The dirty windows.
        overlap: DirtySet,
    },
}

impl Progress {
    /// The progress of a flow that has read nothing.
    #[must_use]
    pub fn start() -> Self {
        Self::default()
    }

    /// The last sequence consumed, per region of the source.
    #[must_use]
    pub fn checkpoint(&self) -> &Watermarks {
        &self.checkpoint
    }

    /// The windows that may hold anything.
    #[must_use]
    pub fn dirty(&self) -> &DirtySet {
        &self.dirty
    }

    /// What the source's commit at the checkpoint was known by, when this was written. No move keeps it.
    #[must_use]
    pub fn source_mark(&self) -> Option<u64> {
        self.source_mark
    }

    /// This, about to be written.
    #[must_use]
    pub fn with_source_mark(self, source_mark: Option<u64>) -> Self {
        Self { source_mark, ..self }
    }

    /// Nothing is queried: what the changes up to `upto` touched becomes dirty.
    ///
    /// # Errors
    /// When `upto` is behind the checkpoint.
    pub fn observe(&self, upto: &Watermarks, touched: &DirtySet) -> Result<Self, ProgressError> {
        self.check_forward(upto)?;
        let mut dirty = self.dirty.clone();
        dirty.join(touched);
        Ok(Self::of(upto, dirty))
    }

    /// `chunk` was recomputed as of exactly the checkpoint, and replaced in the sink.
    #[must_use]
    pub fn repair(&self, chunk: &DirtySet) -> Self {
        let mut dirty = self.dirty.clone();
        dirty.subtract(chunk);
        Self::of(&self.checkpoint, dirty)
    }

    /// The rows up to `upto`, all of them appended and in the windows `touched`, were merged into the sink.
    ///
    /// # Errors
    /// When `upto` is behind the checkpoint, or a touched window is dirty.
    pub fn merge(&self, upto: &Watermarks, touched: &DirtySet) -> Result<Self, ProgressError> {
        self.check_forward(upto)?;
        if self.dirty.overlaps(touched) {
            return Err(ProgressError::MergeIntoDirty { overlap: self.dirty.clone() });
        }
        Ok(Self::of(upto, self.dirty.clone()))
    }

    /// Marks windows whose content is no longer known, though the source did not change.
    #[must_use]
    pub fn distrust(&self, windows: &DirtySet) -> Self {
        let mut dirty = self.dirty.clone();
        dirty.join(windows);
        Self::of(&self.checkpoint, dirty)
    }

    /// Forgets the dirty windows outside of `live`, which begins and ends with a window.
    #[must_use]
    pub fn keep(&self, live: InstantRange) -> Self {
        let mut dirty = self.dirty.clone();
        dirty.keep(live);
        Self::of(&self.checkpoint, dirty)
    }

    fn of(checkpoint: &Watermarks, dirty: DirtySet) -> Self {
        Self { checkpoint: checkpoint.clone(), dirty, source_mark: None }
    }

    fn check_forward(&self, upto: &Watermarks) -> Result<(), ProgressError> {
        if upto.covers(&self.checkpoint) {
            return Ok(());
        }
        Err(ProgressError::Backwards { checkpoint: self.checkpoint.clone(), found: upto.clone() })
    }
}

#[cfg(test)]
mod tests {
    use windrow_time::InstantRange;

    use super::*;

    fn windows(start: i64, end: i64) -> DirtySet {
        DirtySet::from(vec![InstantRange::new(start, end)])
    }

    #[test]
    fn a_window_leaves_the_dirty_set_only_by_a_repair() {
        let observed = Progress::start().observe(&Watermarks::of(0, 3), &windows(0, 30)).unwrap();
        assert_eq!(observed.merge(&Watermarks::of(0, 4), &windows(40, 50)).unwrap().dirty(), &windows(0, 30));
        assert_eq!(observed.repair(&windows(0, 10)).dirty(), &windows(10, 30));
        assert_eq!(observed.repair(&windows(0, 10)).checkpoint(), &Watermarks::of(0, 3));
    }

    #[test]
    fn nothing_merges_into_a_dirty_window() {
        let observed = Progress::start().observe(&Watermarks::of(0, 3), &windows(0, 30)).unwrap();
        assert!(matches!(
            observed.merge(&Watermarks::of(0, 4), &windows(20, 50)),
            Err(ProgressError::MergeIntoDirty { .. })
        ));
    }

    #[test]
    fn the_checkpoint_never_goes_backwards() {
        let at_three = Progress::start().observe(&Watermarks::of(0, 3), &DirtySet::default()).unwrap();
        for upto in [Watermarks::of(0, 2), Watermarks::none(), Watermarks::of(1, 9)] {
            assert!(matches!(
                at_three.observe(&upto, &DirtySet::default()),
                Err(ProgressError::Backwards { .. })
            ));
        }
    }

    #[test]
    fn progress_survives_serialisation() {
        let progress =
            Progress::start().observe(&Watermarks::of(7, u64::MAX), &windows(-5, i64::MAX)).unwrap();
        let text = serde_json::to_string(&progress).unwrap();
        assert_eq!(serde_json::from_str::<Progress>(&text).unwrap(), progress);
    }
}

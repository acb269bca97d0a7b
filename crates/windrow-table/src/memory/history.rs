//! The commits of a table in memory, as an immutable value.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use windrow_state::{Progress, Sequence};

use super::{MemoryTable, REGION};
use crate::{Changes, Removal, Survivors, TableError, TableSpec, TimeSpan, Write, rows};

/// Rows that were added by one commit and are never changed.
#[derive(Debug)]
pub(super) struct Segment {
    batch: RecordBatch,
    span: Option<TimeSpan>,
}

/// A batch of more rows is cut up, so that a scan of a few windows passes most of it over.
const SEGMENT_ROWS: usize = 16_384;

impl Segment {
    fn split(spec: &TableSpec, batch: &RecordBatch) -> Result<Vec<Self>, TableError> {
        let rows = batch.num_rows();
        let sorted;
        let batch = if rows > SEGMENT_ROWS {
            sorted = rows::sorted_by_time(spec, batch)?;
            &sorted
        } else {
            batch
        };
        (0..rows)
            .step_by(SEGMENT_ROWS)
            .map(|start| {
                let batch = batch.slice(start, SEGMENT_ROWS.min(rows - start));
                let span = rows::time_span(spec, &batch)?;
                Ok(Self { batch, span })
            })
            .collect()
    }

    pub(super) fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    pub(super) fn span(&self) -> Option<TimeSpan> {
        self.span
    }
}

/// A segment and the commits that it is visible in: `added <= sequence`, and `sequence < removed` if it was.
#[derive(Debug, Clone)]
struct Entry {
    segment: Arc<Segment>,
    added: Sequence,
    removed: Option<Sequence>,
}

impl Entry {
    fn visible_at(&self, sequence: Sequence) -> bool {
        self.added <= sequence && self.removed.is_none_or(|removed| sequence < removed)
    }
}

/// A commit that did more than append: the time index of the rows it removed and added.
type Rewritten = Vec<ArrayRef>;

/// All that a table in memory knows.
#[derive(Debug, Default, Clone)]
pub(super) struct History {
    newest: Sequence,
    /// The oldest sequence that can still be read.
    oldest: Sequence,
    entries: Vec<Entry>,
    rewrites: BTreeMap<Sequence, Rewritten>,
    /// Commits whose segments hold rows of earlier ones.
    compactions: BTreeSet<Sequence>,
    progress: BTreeMap<String, (Progress, Sequence)>,
}

/// How many rows a commit added and removed.
pub(super) struct Changed {
    pub(super) added: u64,
    pub(super) removed: u64,
}

impl History {
    pub(super) fn newest(&self) -> Sequence {
        self.newest
    }

    pub(super) fn progress(&self, flow: &str) -> Option<&(Progress, Sequence)> {
        self.progress.get(flow)
    }

    pub(super) fn snapshot(&self, at: Sequence) -> Result<Vec<Arc<Segment>>, TableError> {
        self.check_readable(at)?;
        Ok(self.segments(|entry| entry.visible_at(at)))
    }

    pub(super) fn appended(&self, after: Sequence, upto: Sequence) -> Result<Vec<Arc<Segment>>, TableError> {
        if after == 0 {
            return self.snapshot(upto);
        }
        self.check_readable(after)?;
        self.check_readable(upto)?;
        if self.rewrites_in(after, upto).next().is_some() {
            return Err(TableError::NotAppends { after, upto });
        }
        Ok(self.segments(|entry| {
            after < entry.added && entry.added <= upto && !self.compactions.contains(&entry.added)
        }))
    }

    pub(super) fn changes(
        &self,
        spec: &TableSpec,
        after: Sequence,
        upto: Sequence,
    ) -> Result<Changes, TableError> {
        let instants = |segments: Vec<Arc<Segment>>| {
            segments.iter().filter_map(|segment| rows::instants_of(spec, &segment.batch)).collect()
        };
        let count =
            |segments: &[Arc<Segment>]| segments.iter().map(|segment| segment.batch.num_rows() as u64).sum();
        if after == 0 {
            let segments = self.snapshot(upto)?;
            let appended_rows = count(&segments);
            return Ok(Changes { appended: instants(segments), appended_rows, rewritten: Vec::new() });
        }
        self.check_readable(after)?;
        self.check_readable(upto)?;
        let appended = self.segments(|entry| {
            after < entry.added
                && entry.added <= upto
                && !self.rewrites.contains_key(&entry.added)
                && !self.compactions.contains(&entry.added)
        });
        let rewritten = self.rewrites_in(after, upto).flatten().cloned().collect();
        let appended_rows = count(&appended);
        Ok(Changes { appended: instants(appended), appended_rows, rewritten })
    }

    fn rewrites_in(&self, after: Sequence, upto: Sequence) -> impl Iterator<Item = &Rewritten> {
        self.rewrites.range((Excluded(after), Included(upto.max(after)))).map(|(_, rewritten)| rewritten)
    }

    fn segments(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<Arc<Segment>> {
        self.entries.iter().filter(|e| wanted(e)).map(|e| Arc::clone(&e.segment)).collect()
    }

    fn check_readable(&self, at: Sequence) -> Result<(), TableError> {
        if at < self.oldest || at > self.newest {
            return Err(TableError::Stale { region: REGION, asked: at, oldest: self.oldest });
        }
        Ok(())
    }

    /// The history with one more commit.
    pub(super) fn apply(
        &self,
        spec: &TableSpec,
        write: &Write,
        new_rows: RecordBatch,
        progress: Option<(String, Progress)>,
    ) -> Result<(Self, Changed), TableError> {
        let (removal, new_rows) = Removal::new(spec, write, new_rows)?;
        let sequence = self.newest + 1;
        let mut after = self.clone();
        after.newest = sequence;
        let mut changed = Changed { added: new_rows.num_rows() as u64, removed: 0 };

        if matches!(write, Write::Compact) {
            after.compact(spec, sequence)?;
        }
        let mut rewritten = Rewritten::new();
        let mut kept_rows = Vec::new();
        for entry in after.entries.iter_mut().filter(|entry| entry.removed.is_none()) {
            if !removal.may_touch(entry.segment.span) {
                continue;
            }
            if let Survivors::Some { kept, removed } = removal.survivors(&entry.segment.batch)? {
                entry.removed = Some(sequence);
                changed.removed += removed.num_rows() as u64;
                rewritten.extend(rows::instants_of(spec, &removed));
                kept_rows.push(kept);
            }
        }
        if changed.removed > 0 {
            rewritten.extend(rows::instants_of(spec, &new_rows));
            after.rewrites.insert(sequence, rewritten);
        }
        for batch in kept_rows.into_iter().chain([new_rows]) {
            for segment in Segment::split(spec, &batch)? {
                after.entries.push(Entry { segment: Arc::new(segment), added: sequence, removed: None });
            }
        }
        if let Some((flow, progress)) = progress {
            after.progress.insert(flow, (progress, sequence));
        }
        after.forget();
        Ok((after, changed))
    }

    /// Puts the rows of all segments into new ones, as many as are needed.
    fn compact(&mut self, spec: &TableSpec, sequence: Sequence) -> Result<(), TableError> {
        let mut batches = Vec::new();
        for entry in self.entries.iter_mut().filter(|entry| entry.removed.is_none()) {
            entry.removed = Some(sequence);
            batches.push(entry.segment.batch.clone());
        }
        for segment in Segment::split(spec, &rows::concat(spec.schema(), &batches)?)? {
            self.entries.push(Entry { segment: Arc::new(segment), added: sequence, removed: None });
        }
        self.compactions.insert(sequence);
        Ok(())
    }

    /// Lets go of what only states beyond the retention needed.
    fn forget(&mut self) {
        let oldest = self.newest.saturating_sub(MemoryTable::RETAINED_COMMITS);
        if oldest == self.oldest {
            return;
        }
        self.oldest = oldest;
        self.entries.retain(|entry| entry.removed.is_none_or(|removed| removed > oldest));
        self.rewrites = self.rewrites.split_off(&(oldest + 1));
        self.compactions = self.compactions.split_off(&(oldest + 1));
    }
}

//! The set of dirty windows.
//!
//! # Representation
//!
//! A sorted vector of ranges. Marks are collected beside it ([`DirtyMarks`]) and sorted once; two sets are joined by merging
//! their vectors. The vector is shared by clones, and a chunk that is taken from the front only moves an index, so that a
//! [`Progress`](crate::Progress) which is the last one less a chunk costs no copy.
//!
//! Measured against other representations of the same operations (`cargo bench -p windrow-state`): single-window marks in
//! random order, one of ten windows, made into ranges and taken in chunks of 20 until nothing is left.
//!
//! - *A sorted vector with insertion in place* moves half of the vector for each mark: 20 000 marks alone take 16 ms, and 0.5 ms
//!   with all chunks the other way; it is quadratic beyond. [`DirtySet::mark`] does this, for a few marks.
//! - *A B-tree of ranges* (`BTreeMap<start, end>`), cloned by every refresh that works on a copy: 38 ms for the same, 80 times
//!   as long.
//! - *A bitmap of window numbers*: 10 ms for a million, a third of the 29 ms here. It is the wrong shape all the same: ten years of
//!   one-second windows are 40 MB, windows of a calendar or of an opaque function have no numbers, and a set would have to know
//!   for which windows it was marked.

mod chunk;
mod encoding;
mod marks;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windrow_time::{InstantRange, Window, WindowError};

pub use chunk::ChunkLimits;
use encoding::Encoded;
pub use marks::DirtyMarks;
use marks::append;

/// A set of instants, as sorted, disjoint, non-touching half-open ranges aligned to windows.
///
/// Ten years of one-second windows are one range, not 3.2 × 10⁸ entries. Serialised, a set is versioned and takes a few
/// bytes a range; what a later version has written is refused, not misread.
///
/// ```
/// use windrow_state::DirtySet;
/// use windrow_time::InstantRange;
///
/// let mut dirty = DirtySet::default();
/// dirty.mark(InstantRange::new(60, 120));
/// dirty.mark(InstantRange::new(0, 60));
/// assert_eq!(dirty.ranges(), [InstantRange::new(0, 120)]);
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(try_from = "Encoded", into = "Encoded")]
pub struct DirtySet {
    /// Sorted, disjoint, non-touching; those before `head` were taken.
    runs: Arc<Vec<InstantRange>>,
    head: usize,
}

impl DirtySet {
    /// Adds a range. This moves what lies behind it: many marks are better collected as [`DirtyMarks`], or added by
    /// [`DirtySet::mark_all`].
    pub fn mark(&mut self, range: InstantRange) {
        if range.is_empty() {
            return;
        }
        // Ranges `first..last` touch or overlap the new one and become part of it.
        let ranges = self.ranges();
        let first = ranges.partition_point(|known| known.end() < range.start());
        let last = first + ranges[first..].partition_point(|known| known.start() <= range.end());
        let joined = match ranges[first..last] {
            [] => range,
            [left, ..] => {
                let right = ranges[last - 1];
                InstantRange::new(left.start().min(range.start()), right.end().max(range.end()))
            }
        };
        let head = self.head;
        Arc::make_mut(&mut self.runs).splice(head + first..head + last, [joined]);
    }

    /// Adds many ranges, in any order.
    pub fn mark_all(&mut self, ranges: impl IntoIterator<Item = InstantRange>) {
        let mut marks = DirtyMarks::default();
        marks.extend(ranges);
        self.join(&marks.into_set());
    }

    /// Adds every range of another set.
    pub fn join(&mut self, other: &Self) {
        if self.is_empty() {
            *self = other.clone();
        } else if !other.is_empty() {
            let joined = merge(self.ranges(), other.ranges());
            *self = Self::of_runs(joined);
        }
    }

    /// Takes every range of `repaired` out.
    pub fn subtract(&mut self, repaired: &Self) {
        let cuts = repaired.ranges();
        let Some(last) = cuts.last() else { return };
        // A chunk is taken from the front, and nearly always whole ranges.
        self.head += leading_within(self.ranges(), cuts);
        if self.ranges().first().is_none_or(|first| !first.overlaps(*last) && first.start() >= last.end()) {
            return;
        }
        let touched =
            self.ranges().partition_point(|range| range.start() < last.end() || range.overlaps(*last));
        let left = without(&self.ranges()[..touched], cuts);
        if left.len() <= touched {
            // What is left takes the place of the last of what was there; what is after it stays where it is.
            self.head += touched - left.len();
            if self.ranges()[..left.len()] != left {
                let head = self.head;
                Arc::make_mut(&mut self.runs)[head..head + left.len()].copy_from_slice(&left);
            }
        } else {
            let rest = &self.ranges()[touched..];
            *self = Self::of_runs([left.as_slice(), rest].concat());
        }
    }

    /// The ranges, sorted, disjoint and with gaps between them.
    #[must_use]
    pub fn ranges(&self) -> &[InstantRange] {
        &self.runs[self.head..]
    }

    /// Whether nothing is dirty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head == self.runs.len()
    }

    /// From the first dirty instant to the last.
    #[must_use]
    pub fn span(&self) -> Option<InstantRange> {
        let (first, last) = (self.ranges().first()?, self.ranges().last()?);
        Some(InstantRange::new(first.start(), last.end()))
    }

    /// Whether both sets have an instant in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let (own, other) = (self.ranges(), other.ranges());
        let (few, many) = if own.len() < other.len() { (own, other) } else { (other, own) };
        few.iter().any(|range| {
            let at = many.partition_point(|known| known.end() <= range.start());
            many.get(at).is_some_and(|known| known.overlaps(*range))
                || many.last().is_some_and(|known| known.overlaps(*range))
        })
    }

    /// How many windows are dirty, counted up to `limit`.
    ///
    /// # Errors
    /// When the function of an opaque window is not monotone.
    pub fn windows(&self, window: &Window, limit: u64) -> Result<u64, WindowError> {
        let mut count = 0_u64;
        for &range in self.ranges() {
            count = count.saturating_add(window.count_in(range, limit.saturating_sub(count))?);
            if count >= limit {
                return Ok(limit);
            }
        }
        Ok(count)
    }

    /// Drops what lies outside of `live`, which begins and ends with a window: those windows are not kept up to date.
    pub fn keep(&mut self, live: InstantRange) {
        let clip = |range: &InstantRange| {
            InstantRange::new(range.start().max(live.start()), range.end().min(live.end()))
        };
        let dropped = self.ranges().iter().any(|range| !range.overlaps(live) || clip(range) != *range);
        if dropped {
            let kept = self.ranges().iter().filter(|range| range.overlaps(live)).map(clip).collect();
            *self = Self::of_runs(kept);
        }
    }

    fn of_runs(runs: Vec<InstantRange>) -> Self {
        Self { runs: Arc::new(runs), head: 0 }
    }
}

/// Both of two sorted lists of disjoint ranges as one.
fn merge(left: &[InstantRange], right: &[InstantRange]) -> Vec<InstantRange> {
    let mut joined: Vec<InstantRange> = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some(l), Some(r)) if l.start() <= r.start() => left.next(),
            (_, Some(_)) => right.next(),
            (_, None) => left.next(),
        };
        let Some(&next) = next else { return joined };
        append(&mut joined, next);
    }
}

/// How many of the first of the sorted `ranges` lie within the sorted `cuts`.
fn leading_within(ranges: &[InstantRange], cuts: &[InstantRange]) -> usize {
    let mut cuts = cuts.iter().peekable();
    let mut is_within = |range: &&InstantRange| {
        while cuts.next_if(|cut| cut.end() < range.end()).is_some() {}
        cuts.peek().is_some_and(|cut| cut.start() <= range.start())
    };
    ranges.iter().take_while(|range| is_within(range)).count()
}

/// The sorted, disjoint `ranges` without the instants of the sorted, disjoint `cuts`.
fn without(ranges: &[InstantRange], cuts: &[InstantRange]) -> Vec<InstantRange> {
    let mut left = Vec::new();
    let mut cuts = cuts.iter().peekable();
    for &range in ranges {
        while cuts.next_if(|cut| !cut.overlaps(range) && cut.start() < range.start()).is_some() {}
        let mut rest = Some(range);
        while let (Some(of), Some(&&cut)) = (rest, cuts.peek())
            && cut.overlaps(of)
        {
            if cut.start() > of.start() {
                left.push(InstantRange::new(of.start(), cut.start()));
            }
            // A cut that reaches further may reach into the next range, so it stays.
            rest = (cut.end() < of.end()).then(|| InstantRange::new(cut.end(), of.end()));
            if rest.is_some() {
                cuts.next();
            }
        }
        left.extend(rest);
    }
    left
}

impl PartialEq for DirtySet {
    fn eq(&self, other: &Self) -> bool {
        self.ranges() == other.ranges()
    }
}

impl Eq for DirtySet {}

impl std::hash::Hash for DirtySet {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.ranges().hash(state);
    }
}

impl From<Vec<InstantRange>> for DirtySet {
    fn from(mut ranges: Vec<InstantRange>) -> Self {
        InstantRange::coalesce(&mut ranges);
        Self::of_runs(ranges)
    }
}

impl FromIterator<InstantRange> for DirtySet {
    fn from_iter<T: IntoIterator<Item = InstantRange>>(iter: T) -> Self {
        Self::from(iter.into_iter().collect::<Vec<_>>())
    }
}

impl fmt::Display for DirtySet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for range in self.ranges() {
            write!(f, "{separator}{range}")?;
            separator = ", ";
        }
        Ok(())
    }
}

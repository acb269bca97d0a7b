//! Marks on their way into a dirty set.

use windrow_time::InstantRange;

use super::DirtySet;

/// Marks in any order, which become a [`DirtySet`] together: sorted once, not inserted one by one.
///
/// ```
/// use windrow_state::DirtyMarks;
/// use windrow_time::InstantRange;
///
/// let mut marks = DirtyMarks::default();
/// marks.push(InstantRange::new(60, 120));
/// marks.push(InstantRange::new(0, 60));
/// assert_eq!(marks.into_set().ranges(), [InstantRange::new(0, 120)]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct DirtyMarks {
    /// The width of the first mark, and the starts of all that have it: most are single windows of one width, and numbers
    /// are sorted twice as fast as pairs of them.
    width: i64,
    starts: Vec<i64>,
    others: Vec<InstantRange>,
    /// The last mark, which the next ones may be joined to.
    last: Option<InstantRange>,
}

impl DirtyMarks {
    /// Adds a range.
    pub fn push(&mut self, range: InstantRange) {
        if range.is_empty() {
            return;
        }
        match &mut self.last {
            // In order, marks are joined as they come.
            Some(last) if last.start() <= range.start() && range.start() <= last.end() => {
                *last = InstantRange::new(last.start(), last.end().max(range.end()));
            }
            last => {
                if let Some(before) = last.replace(range) {
                    self.put(before);
                }
            }
        }
    }

    fn put(&mut self, range: InstantRange) {
        if self.starts.is_empty() {
            self.width = range.width().unwrap_or(0);
        }
        if range.width() == Some(self.width) && self.width > 0 {
            self.starts.push(range.start());
        } else {
            self.others.push(range);
        }
    }

    /// The set of all that was marked.
    #[must_use]
    pub fn into_set(self) -> DirtySet {
        let Self { width, mut starts, mut others, last } = self;
        others.extend(last);
        InstantRange::coalesce(&mut others);
        starts.sort_unstable();
        let mut ranges = Vec::with_capacity(starts.len() + others.len());
        let mut others = others.into_iter().peekable();
        for start in starts {
            while let Some(other) = others.next_if(|other| other.start() <= start) {
                append(&mut ranges, other);
            }
            append(&mut ranges, InstantRange::new(start, start + width));
        }
        others.for_each(|other| append(&mut ranges, other));
        DirtySet::of_runs(ranges)
    }
}

impl Extend<InstantRange> for DirtyMarks {
    fn extend<T: IntoIterator<Item = InstantRange>>(&mut self, ranges: T) {
        ranges.into_iter().for_each(|range| self.push(range));
    }
}

/// Adds a range that starts no earlier than the last, joined to it where they overlap or touch.
pub(super) fn append(ranges: &mut Vec<InstantRange>, next: InstantRange) {
    match ranges.last_mut() {
        Some(last) if next.start() <= last.end() => {
            *last = InstantRange::new(last.start(), last.end().max(next.end()));
        }
        _ => ranges.push(next),
    }
}

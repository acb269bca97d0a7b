//! The set of dirty windows.

use std::fmt;

use serde::{Deserialize, Serialize};
use windrow_time::{InstantRange, Window, WindowError};

/// A set of instants, as sorted, disjoint, non-touching half-open ranges aligned to windows.
///
/// Ten years of one-second windows are one range, not 3.2 × 10⁸ entries.
///
/// ```
/// use windrow_state::DirtySet;
/// use windrow_time::InstantRange;
///
/// let mut dirty = DirtySet::default();
/// dirty.mark(InstantRange::new(0, 60));
/// dirty.mark(InstantRange::new(60, 120));
/// assert_eq!(dirty.ranges(), [InstantRange::new(0, 120)]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Vec<InstantRange>", into = "Vec<InstantRange>")]
pub struct DirtySet {
    ranges: Vec<InstantRange>,
}

/// How much one repair may take on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkLimits {
    /// At most so many ranges, each of which becomes a condition of the query.
    pub max_filters_per_query: usize,
    /// At most so many windows in all.
    pub windows_per_query: u64,
    /// Clean gaps of up to so many windows may be recomputed to join two ranges.
    pub merge_gap_windows: u64,
}

impl Default for ChunkLimits {
    fn default() -> Self {
        Self { max_filters_per_query: 20, windows_per_query: 100_000, merge_gap_windows: 3 }
    }
}

impl DirtySet {
    /// Adds a range.
    pub fn mark(&mut self, range: InstantRange) {
        if range.is_empty() {
            return;
        }
        // Ranges `first..last` touch or overlap the new one and become part of it.
        let first = self.ranges.partition_point(|known| known.end() < range.start());
        let last = first + self.ranges[first..].partition_point(|known| known.start() <= range.end());
        let joined = match self.ranges[first..last] {
            [] => range,
            [only] => InstantRange::new(only.start().min(range.start()), only.end().max(range.end())),
            [left, .., right] => {
                InstantRange::new(left.start().min(range.start()), right.end().max(range.end()))
            }
        };
        self.ranges.splice(first..last, [joined]);
    }

    /// Adds every range of another set.
    pub fn join(&mut self, other: &Self) {
        if self.ranges.is_empty() {
            self.ranges.clone_from(&other.ranges);
        } else if other.ranges.len() > 8 {
            let mut all = std::mem::take(&mut self.ranges);
            all.extend_from_slice(&other.ranges);
            *self = Self::from(all);
        } else {
            other.ranges.iter().for_each(|&range| self.mark(range));
        }
    }

    /// Takes every range of `repaired` out.
    pub fn subtract(&mut self, repaired: &Self) {
        let mut left = Vec::with_capacity(self.ranges.len());
        let mut cuts = repaired.ranges.iter().peekable();
        for &range in &self.ranges {
            while cuts.next_if(|cut| !cut.overlaps(range) && cut.start() < range.start()).is_some() {}
            let mut rest = range;
            while let Some(&&cut) = cuts.peek() {
                if !cut.overlaps(rest) {
                    break;
                }
                let before = InstantRange::new(rest.start(), cut.start());
                if cut.start() > rest.start() {
                    left.push(before);
                }
                if cut.end() >= rest.end() {
                    // The cut may reach into the next range, so it stays.
                    rest = InstantRange::new(rest.start(), rest.start());
                    break;
                }
                rest = InstantRange::new(cut.end(), rest.end());
                cuts.next();
            }
            if rest.end() > rest.start() {
                left.push(rest);
            }
        }
        self.ranges = left;
    }

    /// The ranges, sorted, disjoint and with gaps between them.
    #[must_use]
    pub fn ranges(&self) -> &[InstantRange] {
        &self.ranges
    }

    /// Whether nothing is dirty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// From the first dirty instant to the last.
    #[must_use]
    pub fn span(&self) -> Option<InstantRange> {
        let (first, last) = (self.ranges.first()?, self.ranges.last()?);
        Some(InstantRange::new(first.start(), last.end()))
    }

    /// Whether both sets have an instant in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let (few, many) = if self.ranges.len() < other.ranges.len() { (self, other) } else { (other, self) };
        few.ranges.iter().any(|range| {
            let at = many.ranges.partition_point(|known| known.end() <= range.start());
            many.ranges.get(at).is_some_and(|known| known.overlaps(*range))
                || many.ranges.last().is_some_and(|known| known.overlaps(*range))
        })
    }

    /// How many windows are dirty, counted up to `limit`.
    ///
    /// # Errors
    /// When an opaque window's function fails.
    pub fn windows(&self, window: &Window, limit: u64) -> Result<u64, WindowError> {
        let mut count = 0_u64;
        for &range in &self.ranges {
            count = count.saturating_add(window.count_in(range, limit.saturating_sub(count))?);
            if count >= limit {
                return Ok(limit);
            }
        }
        Ok(count)
    }

    /// Drops what lies outside of `live`, which begins and ends with a window: those windows are not kept up to date.
    pub fn keep(&mut self, live: InstantRange) {
        self.ranges.retain(|range| range.overlaps(live));
        for range in &mut self.ranges {
            *range = InstantRange::new(range.start().max(live.start()), range.end().min(live.end()));
        }
    }

    /// Chooses (without taking it out) what one repair should recompute: the earliest ranges under both limits.
    /// A range that is too long is cut at the end of a window. Where there are more ranges than the filter limit
    /// allows, neighbours are joined over clean gaps, smallest gap first and only as many as needed.
    ///
    /// # Errors
    /// When an opaque window's function fails.
    pub fn choose_chunk(&self, window: &Window, limits: ChunkLimits) -> Result<Self, WindowError> {
        let mut left = limits.windows_per_query.max(1);
        let mut chunk = Vec::new();
        for range in self.close_gaps(window, limits)? {
            if chunk.len() >= limits.max_filters_per_query.max(1) || left == 0 {
                break;
            }
            let windows = window.count_in(range, left.saturating_add(1))?;
            if windows <= left {
                chunk.push(range);
                left -= windows;
            } else {
                chunk.push(InstantRange::new(range.start(), window.end_after(range.start(), left)?));
                left = 0;
            }
        }
        Ok(Self { ranges: chunk })
    }

    /// At most `max_ranges` ranges that hold all of this set: neighbours are joined over their gaps, shortest gap
    /// first. What the answer holds beyond the set is clean.
    #[must_use]
    pub fn cover(&self, max_ranges: usize) -> Self {
        let excess = self.ranges.len().saturating_sub(max_ranges.max(1));
        let length = |pair: &[InstantRange]| i128::from(pair[1].start()) - i128::from(pair[0].end());
        let mut gaps: Vec<_> =
            self.ranges.windows(2).enumerate().map(|(index, pair)| (length(pair), index)).collect();
        gaps.sort_unstable();
        gaps.truncate(excess);
        Self { ranges: self.join_over(gaps.into_iter().map(|(_, index)| index)) }
    }

    fn close_gaps(&self, window: &Window, limits: ChunkLimits) -> Result<Vec<InstantRange>, WindowError> {
        let excess = self.ranges.len().saturating_sub(limits.max_filters_per_query);
        if excess == 0 || limits.merge_gap_windows == 0 {
            return Ok(self.ranges.clone());
        }
        let mut gaps = Vec::new();
        for (index, pair) in self.ranges.windows(2).enumerate() {
            let gap = InstantRange::new(pair[0].end(), pair[1].start());
            let size = window.count_in(gap, limits.merge_gap_windows.saturating_add(1))?;
            if size <= limits.merge_gap_windows {
                gaps.push((size, index));
            }
        }
        gaps.sort_unstable();
        gaps.truncate(excess);
        Ok(self.join_over(gaps.into_iter().map(|(_, index)| index)))
    }

    /// The ranges, joined over the gaps that follow the ranges at `gaps`.
    fn join_over(&self, gaps: impl Iterator<Item = usize>) -> Vec<InstantRange> {
        let mut closed = vec![false; self.ranges.len()];
        gaps.for_each(|index| closed[index] = true);
        let mut joined: Vec<InstantRange> = Vec::with_capacity(self.ranges.len());
        for (index, &range) in self.ranges.iter().enumerate() {
            match joined.last_mut() {
                Some(last) if closed[index - 1] => *last = InstantRange::new(last.start(), range.end()),
                _ => joined.push(range),
            }
        }
        joined
    }
}

impl From<Vec<InstantRange>> for DirtySet {
    fn from(mut ranges: Vec<InstantRange>) -> Self {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable();
        let mut joined: Vec<InstantRange> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match joined.last_mut() {
                Some(last) if range.start() <= last.end() => {
                    *last = InstantRange::new(last.start(), last.end().max(range.end()));
                }
                _ => joined.push(range),
            }
        }
        Self { ranges: joined }
    }
}

impl From<DirtySet> for Vec<InstantRange> {
    fn from(set: DirtySet) -> Self {
        set.ranges
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
        for range in &self.ranges {
            write!(f, "{separator}{range}")?;
            separator = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set(ranges: &[(i64, i64)]) -> DirtySet {
        ranges.iter().map(|&(start, end)| InstantRange::new(start, end)).collect()
    }

    #[test]
    fn the_last_instant_can_be_marked_and_subtracted() {
        let mut dirty = DirtySet::default();
        let last = InstantRange::new(i64::MAX - 10, i64::MAX);
        dirty.mark(last);
        assert_eq!(dirty.ranges(), [last]);
        dirty.subtract(&DirtySet::from(vec![last]));
        assert!(dirty.is_empty());
    }

    #[test]
    fn too_many_ranges_are_joined_smallest_gap_first_and_only_as_needed() {
        let window = Window::fixed(0, 1).unwrap();
        let dirty = set(&[(0, 1), (3, 4), (5, 6), (20, 21)]);
        let limits = ChunkLimits { max_filters_per_query: 3, windows_per_query: 100, merge_gap_windows: 3 };
        assert_eq!(dirty.choose_chunk(&window, limits).unwrap(), set(&[(0, 1), (3, 6), (20, 21)]));
        let narrow = ChunkLimits { max_filters_per_query: 1, ..limits };
        assert_eq!(dirty.choose_chunk(&window, narrow).unwrap(), set(&[(0, 6)]));
    }

    #[test]
    fn ten_years_of_seconds_are_one_range_and_are_handed_out_in_chunks() {
        let window = Window::fixed(0, 1).unwrap();
        let mut dirty = set(&[(0, 315_360_000)]);
        let limits = ChunkLimits { windows_per_query: 10_000_000, ..ChunkLimits::default() };
        let mut chunks = 0;
        while !dirty.is_empty() {
            let chunk = dirty.choose_chunk(&window, limits).unwrap();
            dirty.subtract(&chunk);
            chunks += 1;
        }
        assert_eq!(chunks, 32);
    }

    proptest! {
        /// Every operation does to the set of window numbers what its name says.
        #[test]
        fn the_set_equals_a_naive_set_of_window_numbers(
            operations in proptest::collection::vec((0..5_u8, 0..200_i64, 1..20_i64), 1..300),
        ) {
            const WIDTH: i64 = 10;
            let window = Window::fixed(0, WIDTH).unwrap();
            let mut dirty = DirtySet::default();
            let mut naive = BTreeSet::new();
            for (operation, start, length) in operations {
                let range = InstantRange::new(start * WIDTH, (start + length) * WIDTH);
                let numbers = start..start + length;
                match operation {
                    0 | 1 => { dirty.mark(range); naive.extend(numbers); }
                    2 => {
                        dirty.subtract(&DirtySet::from(vec![range]));
                        naive.retain(|n| !numbers.contains(n));
                    }
                    3 => {
                        let limits = ChunkLimits {
                            max_filters_per_query: 2,
                            windows_per_query: length as u64,
                            merge_gap_windows: 1,
                        };
                        let chunk = dirty.choose_chunk(&window, limits).unwrap();
                        prop_assert!(chunk.ranges().len() <= 2);
                        prop_assert!(chunk.windows(&window, u64::MAX).unwrap() <= length as u64);
                        prop_assert_eq!(chunk.is_empty(), naive.is_empty());
                        dirty.subtract(&chunk);
                        naive.retain(|n| !chunk.ranges().iter().any(|r| r.contains(n * WIDTH)));
                    }
                    _ => { dirty.keep(InstantRange::new(start * WIDTH, i64::MAX)); naive.retain(|&n| n >= start); }
                }
                let numbers: BTreeSet<i64> = dirty.ranges().iter()
                    .flat_map(|r| (r.start() / WIDTH)..(r.end() / WIDTH)).collect();
                prop_assert_eq!(&numbers, &naive);
                prop_assert!(dirty.ranges().windows(2).all(|p| p[0].end() < p[1].start()));
                let other = DirtySet::from(vec![range]);
                prop_assert_eq!(dirty.overlaps(&other), naive.iter().any(|n| range.contains(n * WIDTH)));
            }
        }
    }
}

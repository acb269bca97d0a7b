//! What one repair takes on, and covers by few ranges.

use windrow_time::{InstantRange, Window, WindowError};

use super::DirtySet;

/// Which gaps to close is weighed among so many times the filter limit; where there are more ranges, all gaps that may be
/// closed are.
const WEIGHED: usize = 8;

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
    /// Chooses (without taking it out) what one repair should recompute: the earliest ranges under both limits.
    ///
    /// A range that is too long is cut at the end of a window. Where there are more ranges than the filter limit allows,
    /// neighbours are joined over clean gaps, smallest gap first and only as many as needed.
    ///
    /// # Errors
    /// When the function of an opaque window is not monotone.
    pub fn choose_chunk(&self, window: &Window, limits: ChunkLimits) -> Result<Self, WindowError> {
        let filters = limits.max_filters_per_query.max(1);
        let ranges = self.ranges();
        let measure = Measure(window);
        if ranges.len() > filters.saturating_mul(WEIGHED) {
            let widest = measure.of_windows(limits.merge_gap_windows);
            let closes = |pair| measure.of_gap(pair, widest).map(|size| size <= widest);
            return cut_chunk(ranges, measure, limits, closes);
        }
        let closed = gaps_to_close(ranges, measure, limits)?;
        let mut index = 0;
        cut_chunk(ranges, measure, limits, |_| {
            index += 1;
            Ok(closed[index - 1])
        })
    }

    /// At most `max_ranges` ranges that hold all of this set: neighbours are joined over their gaps, shortest gap
    /// first. What the answer holds beyond the set is clean.
    #[must_use]
    pub fn cover(&self, max_ranges: usize) -> Self {
        let ranges = self.ranges();
        let excess = ranges.len().saturating_sub(max_ranges.max(1));
        let length = |pair: &[InstantRange]| i128::from(pair[1].start()) - i128::from(pair[0].end());
        let gaps = ranges.windows(2).enumerate().map(|(index, pair)| (length(pair), index)).collect();
        let closed = smallest(gaps, excess, ranges.len());
        let mut joined: Vec<InstantRange> = Vec::with_capacity(ranges.len() - excess);
        for (index, &range) in ranges.iter().enumerate() {
            match joined.last_mut() {
                Some(last) if closed[index - 1] => *last = InstantRange::new(last.start(), range.end()),
                _ => joined.push(range),
            }
        }
        Self::of_runs(joined)
    }
}

/// The first ranges under the limits, where `closes` says of each pair of neighbours, in order, whether they are joined.
fn cut_chunk(
    ranges: &[InstantRange],
    measure: Measure<'_>,
    limits: ChunkLimits,
    mut closes: impl FnMut([InstantRange; 2]) -> Result<bool, WindowError>,
) -> Result<DirtySet, WindowError> {
    let filters = limits.max_filters_per_query.max(1);
    let mut left = measure.of_windows(limits.windows_per_query.max(1));
    let mut chunk: Vec<InstantRange> = Vec::with_capacity(filters.min(ranges.len()));
    let mut previous: Option<InstantRange> = None;
    for &range in ranges {
        let joins = match previous {
            Some(previous) => closes([previous, range])?,
            None => false,
        };
        previous = Some(range);
        // With a closed gap, the clean windows in it are recomputed too.
        let from = match chunk.last() {
            Some(last) if joins => last.end(),
            _ if chunk.len() == filters => break,
            _ => range.start(),
        };
        let size = measure.of_range(InstantRange::new(from, range.end()), left)?;
        let end = if size <= left { range.end() } else { measure.end_after(from, left)? };
        match chunk.last_mut() {
            Some(last) if joins => *last = InstantRange::new(last.start(), end),
            _ => chunk.push(InstantRange::new(from, end)),
        }
        left = left.saturating_sub(size);
        if left == 0 {
            break;
        }
    }
    Ok(DirtySet::of_runs(chunk))
}

/// Of each gap between neighbours whether it is closed: the smallest first, and as many as ranges are too many.
fn gaps_to_close(
    ranges: &[InstantRange],
    measure: Measure<'_>,
    limits: ChunkLimits,
) -> Result<Vec<bool>, WindowError> {
    let excess = ranges.len().saturating_sub(limits.max_filters_per_query);
    let widest = measure.of_windows(limits.merge_gap_windows);
    let mut gaps = Vec::new();
    if excess > 0 && widest > 0 {
        for (index, pair) in ranges.windows(2).enumerate() {
            let size = measure.of_gap([pair[0], pair[1]], widest)?;
            if size <= widest {
                gaps.push((size, index));
            }
        }
    }
    Ok(smallest(gaps, excess, ranges.len()))
}

/// How large ranges of whole windows are: in instants for a fixed grid, where nothing has to be divided, else in windows.
#[derive(Clone, Copy)]
struct Measure<'a>(&'a Window);

impl Measure<'_> {
    fn of_windows(self, windows: u64) -> u64 {
        match self.0 {
            Window::Fixed(grid) => windows.saturating_mul(grid.width().unsigned_abs()),
            _ => windows,
        }
    }

    /// The size of a range, exact up to `limit`.
    fn of_range(self, range: InstantRange, limit: u64) -> Result<u64, WindowError> {
        match self.0 {
            Window::Fixed(_) => Ok(range.end().abs_diff(range.start())),
            window => window.count_in(range, limit.saturating_add(1)),
        }
    }

    fn of_gap(self, [left, right]: [InstantRange; 2], limit: u64) -> Result<u64, WindowError> {
        self.of_range(InstantRange::new(left.end(), right.start()), limit)
    }

    /// Where a range from `start` on of that size ends.
    fn end_after(self, start: i64, size: u64) -> Result<i64, WindowError> {
        match self.0 {
            Window::Fixed(_) => Ok(start.saturating_add_unsigned(size)),
            window => window.end_after(start, size),
        }
    }
}

/// The indices of the `count` smallest gaps, as flags.
fn smallest<T: Ord>(mut gaps: Vec<(T, usize)>, count: usize, len: usize) -> Vec<bool> {
    if count < gaps.len() {
        gaps.select_nth_unstable(count);
        gaps.truncate(count);
    }
    let mut flags = vec![false; len];
    gaps.iter().for_each(|(_, index)| flags[*index] = true);
    flags
}

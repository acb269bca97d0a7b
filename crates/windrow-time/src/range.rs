//! Half-open ranges of instants.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The instants `start <= t < end`.
///
/// The range that ends at `i64::MAX` also holds the instant `i64::MAX` itself: it is the range of everything from
/// `start` on, so that no instant is outside every range. [`InstantRange::upper`] tells the two apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InstantRange {
    start: i64,
    end: i64,
}

impl InstantRange {
    /// All instants.
    pub const ALL: Self = Self { start: i64::MIN, end: i64::MAX };

    /// The range from `start` to before `end`; a range that would end before it starts is empty at `start`.
    #[must_use]
    pub const fn new(start: i64, end: i64) -> Self {
        Self { start, end: if end < start { start } else { end } }
    }

    /// The range between two numbers that may be outside of what an instant can hold; it saturates.
    #[must_use]
    pub fn saturating(start: i128, end: i128) -> Self {
        let clamp = |t: i128| t.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        Self::new(clamp(start), clamp(end))
    }

    /// The first instant.
    #[must_use]
    pub const fn start(self) -> i64 {
        self.start
    }

    /// The instant at which the range ends; not in it, except `i64::MAX`.
    #[must_use]
    pub const fn end(self) -> i64 {
        self.end
    }

    /// The last instant in the range; of an empty range, the one before its start.
    #[must_use]
    pub const fn last(self) -> i64 {
        if self.end == i64::MAX { i64::MAX } else { self.end.saturating_sub(1) }
    }

    /// The lower bound as a condition: `None` where every instant is above it.
    #[must_use]
    pub const fn lower(self) -> Option<i64> {
        if self.start == i64::MIN { None } else { Some(self.start) }
    }

    /// The exclusive upper bound as a condition: `None` where the range has no end.
    #[must_use]
    pub const fn upper(self) -> Option<i64> {
        if self.end == i64::MAX { None } else { Some(self.end) }
    }

    /// Whether no instant is in the range.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.start == self.end && self.end != i64::MAX
    }

    /// Whether the range was cut at an end of what an instant can hold.
    #[must_use]
    pub const fn is_saturated(self) -> bool {
        self.start == i64::MIN || self.end == i64::MAX
    }

    /// Whether `instant` is in the range.
    #[must_use]
    pub const fn contains(self, instant: i64) -> bool {
        self.start <= instant && (instant < self.end || self.end == i64::MAX)
    }

    /// Whether both ranges have an instant in common.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        !self.is_empty()
            && !other.is_empty()
            && (self.start < other.end || other.end == i64::MAX)
            && (other.start < self.end || self.end == i64::MAX)
    }

    /// Joins the ranges that overlap or touch, and sorts what is left: the fewest ranges with the same instants.
    ///
    /// ```
    /// use windrow_time::InstantRange;
    ///
    /// let mut ranges = [(60, 120), (0, 60), (200, 300), (250, 260)].map(|(a, b)| InstantRange::new(a, b)).to_vec();
    /// InstantRange::coalesce(&mut ranges);
    /// assert_eq!(ranges, [InstantRange::new(0, 120), InstantRange::new(200, 300)]);
    /// ```
    pub fn coalesce(ranges: &mut Vec<Self>) {
        ranges.retain(|range| !range.is_empty());
        if !ranges.is_sorted_by_key(|range| range.start) {
            ranges.sort_unstable_by_key(|range| range.start);
        }
        ranges.dedup_by(|next, joined| {
            let touches = next.start <= joined.end;
            if touches {
                joined.end = joined.end.max(next.end);
            }
            touches
        });
    }

    /// `end - start`, or `None` where that does not fit an `i64`.
    #[must_use]
    pub const fn width(self) -> Option<i64> {
        self.end.checked_sub(self.start)
    }
}

impl fmt::Display for InstantRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}, {})", self.start, self.end)
    }
}

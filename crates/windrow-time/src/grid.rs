//! Windows of one width.

use crate::InstantRange;

/// Windows `[origin + k * width, origin + (k + 1) * width)` for every integer `k`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedGrid {
    origin: i64,
    width: i64,
}

impl FixedGrid {
    pub(crate) const fn new(origin: i64, width: i64) -> Self {
        Self { origin, width }
    }

    /// The begin of one window, in units.
    #[must_use]
    pub const fn origin(self) -> i64 {
        self.origin
    }

    /// The width of a window, in units.
    #[must_use]
    pub const fn width(self) -> i64 {
        self.width
    }

    /// Which window after the one that begins at the origin an instant is in.
    pub(crate) fn index_of(self, instant: i128) -> i128 {
        (instant - i128::from(self.origin)).div_euclid(self.width.into())
    }

    /// How many windows the range touches, counted up to `limit`.
    #[inline]
    pub(crate) fn count_in(self, range: InstantRange, limit: u64) -> u64 {
        // Most questions are whether it is more than a few, and are answered without a division.
        if range.end().abs_diff(range.start()) >= limit.saturating_mul(self.width.unsigned_abs()) {
            return limit;
        }
        let last = range.last();
        let index = |instant: i64| instant.checked_sub(self.origin).map(|since| since.div_euclid(self.width));
        let count = match (index(range.start()), index(last)) {
            (Some(first), Some(last)) => last.abs_diff(first).checked_add(1),
            _ => u64::try_from(self.index_of(last.into()) - self.index_of(range.start().into()) + 1).ok(),
        };
        count.unwrap_or(u64::MAX).min(limit)
    }

    pub(crate) fn range_of(self, instant: i64) -> InstantRange {
        self.range_within_i64(instant).unwrap_or_else(|| {
            let start = i128::from(self.origin) + self.index_of(instant.into()) * i128::from(self.width);
            InstantRange::saturating(start, start + i128::from(self.width))
        })
    }

    /// The window where none of its bounds leaves an `i64`, which is nearly always: 128 bits are slow to divide.
    fn range_within_i64(self, instant: i64) -> Option<InstantRange> {
        let into = instant.checked_sub(self.origin)?.rem_euclid(self.width);
        let start = instant.checked_sub(into)?;
        Some(InstantRange::new(start, start.checked_add(self.width)?))
    }

    /// The numbering of the windows from that of `low` to that of `high`.
    pub(crate) fn numbering(self, low: i64, high: i64) -> Option<GridNumbering> {
        let into = (i128::from(low) - i128::from(self.origin)).rem_euclid(self.width.into());
        let furthest = i128::from(high) - i128::from(low) + into;
        Some(GridNumbering {
            low,
            into: u64::try_from(into).ok()?,
            divisor: Divisor::new(self.width.unsigned_abs()),
            // Every instant between the two is then within 64 bits of the first window's start.
            last: u64::try_from(furthest).ok()? / self.width.unsigned_abs(),
        })
    }
}

/// Numbers of the windows between two instants, from 0 on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GridNumbering {
    low: i64,
    /// How far `low` is into its window.
    into: u64,
    divisor: Divisor,
    last: u64,
}

impl GridNumbering {
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// The number of the window of `instant`, which is not outside of the two.
    #[inline]
    pub(crate) fn number_of(&self, instant: i64) -> u64 {
        self.divisor.divide(instant.wrapping_sub(self.low).cast_unsigned() + self.into)
    }

    /// The range from the window `first` to the window `last`, both in it.
    pub(crate) fn range(&self, first: u64, last: u64) -> InstantRange {
        let origin = i128::from(self.low) - i128::from(self.into);
        let at = |number: u64| origin + i128::from(number) * i128::from(self.divisor.by);
        InstantRange::saturating(at(first), at(last) + i128::from(self.divisor.by))
    }
}

/// Division by a number that is known beforehand, as a multiplication by its reciprocal.
///
/// With `m = ⌊(2⁶⁴ - 1) / d⌋`, `n/d - n·m/2⁶⁴` is less than 1, so that the upper half of `n·m` is the quotient or one
/// less, and the remainder tells which (T. Granlund, P. Montgomery: "Division by invariant integers using
/// multiplication", 1994).
#[derive(Debug, Clone, Copy)]
struct Divisor {
    by: u64,
    reciprocal: u64,
}

impl Divisor {
    fn new(by: u64) -> Self {
        Self { by, reciprocal: u64::MAX / by }
    }

    #[inline]
    fn divide(self, number: u64) -> u64 {
        let quotient = ((u128::from(number) * u128::from(self.reciprocal)) >> 64) as u64;
        let remainder = number - quotient * self.by;
        quotient + u64::from(remainder >= self.by)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_reciprocal_divides(number: u64, by in 1..=u64::MAX, small in 1..1_000_u64) {
            for by in [by, small, by >> 20 | 1, 1, u64::MAX] {
                for number in [number, number >> 30, u64::MAX, by, by - 1, 0] {
                    prop_assert_eq!(Divisor::new(by).divide(number), number / by);
                }
            }
        }

        #[test]
        fn numbers_are_those_of_the_windows(a: i64, b: i64, origin: i64, width in 1..i64::MAX, narrow in 1..100_000_i64) {
            let (low, high) = (a.min(b), a.max(b));
            for width in [width, narrow] {
                let grid = FixedGrid::new(origin, width);
                if let Some(numbering) = grid.numbering(low, high) {
                    prop_assert_eq!(numbering.number_of(low), 0);
                    prop_assert_eq!(numbering.number_of(high), numbering.last());
                    for instant in [low, high, low.midpoint(high)] {
                        let number = numbering.number_of(instant);
                        prop_assert_eq!(numbering.range(number, number), grid.range_of(instant));
                    }
                }
            }
        }
    }
}

//! The kinds of window.

use crate::civil::{first_day_of_month, month_of_day};
use crate::{InstantRange, OpaqueWindow, TimeUnit};

/// Why a window could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// A fixed grid needs a width of at least one unit.
    #[error("a window must be at least one unit wide, not {0}")]
    WidthNotPositive(i64),
    /// A month grid needs at least one month.
    #[error("a calendar window must be at least one month wide, not {0}")]
    MonthsNotPositive(i64),
    /// The function behind an opaque window failed.
    #[error("the window expression cannot be evaluated at instant {instant}: {message}")]
    Evaluation {
        /// Where it failed.
        instant: i64,
        /// What the function said.
        message: String,
    },
    /// The function behind an opaque window decreases somewhere.
    #[error("the window expression is not monotone: it decreases between instants {before} and {after}")]
    NotMonotone {
        /// The earlier instant, with the greater value.
        before: i64,
        /// The later instant, with the lesser value.
        after: i64,
    },
}

/// How instants fall into windows.
#[derive(Debug, Clone)]
pub enum Window {
    /// Windows of one width.
    Fixed(FixedGrid),
    /// Windows of whole calendar months in UTC.
    Months(MonthGrid),
    /// Windows of any monotone function.
    Opaque(OpaqueWindow),
}

/// Windows `[origin + k * width, origin + (k + 1) * width)` for every integer `k`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedGrid {
    origin: i64,
    width: i64,
}

/// Windows of `months` calendar months in UTC, of which one begins in January 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonthGrid {
    months: i64,
    unit: TimeUnit,
}

impl Window {
    /// A grid of windows that are `width` units wide and of which one begins at `origin`.
    ///
    /// # Errors
    /// When `width` is not positive.
    pub fn fixed(origin: i64, width: i64) -> Result<Self, WindowError> {
        if width <= 0 {
            return Err(WindowError::WidthNotPositive(width));
        }
        Ok(Self::Fixed(FixedGrid { origin, width }))
    }

    /// Windows of `months` calendar months in UTC: 1 for months, 3 for quarters, 12 for years.
    ///
    /// # Errors
    /// When `months` is not positive.
    pub fn months(months: i64, unit: TimeUnit) -> Result<Self, WindowError> {
        if months <= 0 {
            return Err(WindowError::MonthsNotPositive(months));
        }
        Ok(Self::Months(MonthGrid { months, unit }))
    }

    /// The window of `instant`.
    ///
    /// # Errors
    /// Only for an opaque window, when its function fails or turns out not to be monotone.
    pub fn try_range_of(&self, instant: i64) -> Result<InstantRange, WindowError> {
        match self {
            Self::Fixed(grid) => Ok(grid.range_of(instant)),
            Self::Months(grid) => Ok(grid.range_of(instant)),
            Self::Opaque(window) => window.range_of(instant),
        }
    }

    /// The window of `instant`, for windows that cannot fail; an opaque window whose function fails answers with
    /// all instants, which is never less than the window.
    #[must_use]
    pub fn range_of(&self, instant: i64) -> InstantRange {
        self.try_range_of(instant).unwrap_or(InstantRange::ALL)
    }

    /// The smallest range of whole windows that covers `range`.
    ///
    /// # Errors
    /// As [`Window::try_range_of`].
    pub fn align_outwards(&self, range: InstantRange) -> Result<InstantRange, WindowError> {
        if range.is_empty() {
            return Ok(range);
        }
        let first = self.try_range_of(range.start())?;
        let last_instant = range.upper().map_or(i64::MAX, |end| end - 1);
        let last = self.try_range_of(last_instant)?;
        Ok(InstantRange::new(first.start(), last.end()))
    }

    /// The end of the `count`-th window from `start` on, where `start` begins a window.
    ///
    /// # Errors
    /// As [`Window::try_range_of`].
    pub fn end_after(&self, start: i64, count: u64) -> Result<i64, WindowError> {
        match self {
            Self::Fixed(grid) => {
                let end = i128::from(start) + i128::from(grid.width) * i128::from(count);
                Ok(InstantRange::saturating(start.into(), end).end())
            }
            _ => {
                let mut end = start;
                for _ in 0..count {
                    end = self.try_range_of(end)?.end();
                    if end == i64::MAX {
                        break;
                    }
                }
                Ok(end)
            }
        }
    }

    /// How many windows `range` touches, counted up to `limit`.
    ///
    /// # Errors
    /// As [`Window::try_range_of`].
    pub fn count_in(&self, range: InstantRange, limit: u64) -> Result<u64, WindowError> {
        if range.is_empty() {
            return Ok(0);
        }
        if let Self::Fixed(grid) = self {
            let last = range.upper().map_or(i128::from(i64::MAX), |end| i128::from(end) - 1);
            let count = grid.index_of(last) - grid.index_of(range.start().into()) + 1;
            return Ok(u64::try_from(count).unwrap_or(u64::MAX).min(limit));
        }
        let (mut count, mut at) = (0, range.start());
        while count < limit {
            count += 1;
            at = self.try_range_of(at)?.end();
            if at == i64::MAX || at >= range.end() {
                break;
            }
        }
        Ok(count)
    }
}

impl FixedGrid {
    /// The width of a window, in units.
    #[must_use]
    pub const fn width(self) -> i64 {
        self.width
    }

    fn index_of(self, instant: i128) -> i128 {
        (instant - i128::from(self.origin)).div_euclid(self.width.into())
    }

    pub(crate) fn range_of(self, instant: i64) -> InstantRange {
        let start = i128::from(self.origin) + self.index_of(instant.into()) * i128::from(self.width);
        InstantRange::saturating(start, start + i128::from(self.width))
    }
}

impl MonthGrid {
    pub(crate) fn range_of(self, instant: i64) -> InstantRange {
        let per_day = i128::from(self.unit.per_day());
        let months = i128::from(self.months);
        let month = month_of_day(i128::from(instant).div_euclid(per_day));
        let first = month.div_euclid(months) * months;
        InstantRange::saturating(
            first_day_of_month(first) * per_day,
            first_day_of_month(first + months) * per_day,
        )
    }
}

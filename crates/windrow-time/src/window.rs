//! How instants fall into windows.

use crate::calendar::{Calendar, CalendarStep};
use crate::grid::FixedGrid;
use crate::{InstantRange, OpaqueWindow, TimeUnit, Zone};

/// Why a window could not be made, or found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// A fixed grid needs a width of at least one unit.
    #[error("a window must be at least one unit wide, not {0}")]
    WidthNotPositive(i64),
    /// A calendar needs steps of at least one month, day or hour.
    #[error("the step of a calendar must be at least one, not {0}")]
    StepNotPositive(i64),
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
///
/// Every instant is in exactly one window, and a window is a range of instants without a hole.
#[derive(Debug, Clone)]
pub enum Window {
    /// Windows of one width.
    Fixed(FixedGrid),
    /// Windows of whole months, or of local time in a time zone.
    Calendar(Calendar),
    /// Windows of any monotone function.
    Opaque(OpaqueWindow),
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
        Ok(Self::Fixed(FixedGrid::new(origin, width)))
    }

    /// Windows of `count` calendar months in UTC, of which one begins with January 1970: 1 for months, 3 for quarters,
    /// 12 for years.
    ///
    /// # Errors
    /// When `count` is not positive.
    pub fn months(count: i64, unit: TimeUnit) -> Result<Self, WindowError> {
        Self::months_from(count, 0, unit)
    }

    /// Windows of `count` calendar months in UTC, of which one begins at `origin`, and the others on the same day of
    /// their month at the same time of day; on the month's last day where it is too short.
    ///
    /// # Errors
    /// When `count` is not positive.
    ///
    /// ```
    /// use windrow_time::{TimeUnit, Window};
    ///
    /// // From 31 January 1970 on: the next window begins on 28 February, the one after on 31 March.
    /// let window = Window::months_from(1, 30 * 86_400, TimeUnit::Second)?;
    /// let range = window.try_range_of(60 * 86_400)?;
    /// assert_eq!((range.start() / 86_400, range.end() / 86_400), (58, 89));
    /// # Ok::<(), windrow_time::WindowError>(())
    /// ```
    pub fn months_from(count: i64, origin: i64, unit: TimeUnit) -> Result<Self, WindowError> {
        if count <= 0 {
            return Err(WindowError::StepNotPositive(count));
        }
        Ok(Self::Calendar(Calendar::months_from(count, origin, unit)))
    }

    /// Windows of local time in `zone`.
    ///
    /// # Errors
    /// When the step is of none.
    ///
    /// ```
    /// use windrow_time::{CalendarStep, TimeUnit, Window};
    ///
    /// let day = Window::calendar(CalendarStep::Days(1), "America/New_York".parse()?, TimeUnit::Second)?;
    /// // Clocks were put forward on 2013-03-10: that day had 23 hours.
    /// assert_eq!(day.try_range_of(1_362_916_800)?.width(), Some(23 * 3_600));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn calendar(step: CalendarStep, zone: Zone, unit: TimeUnit) -> Result<Self, WindowError> {
        let (CalendarStep::Hours(n)
        | CalendarStep::Days(n)
        | CalendarStep::Weeks(n)
        | CalendarStep::Months(n)) = step;
        if n == 0 {
            return Err(WindowError::StepNotPositive(0));
        }
        Ok(Self::Calendar(Calendar::in_zone(step, zone, unit)))
    }

    /// The windows in which the instants `by` units later are: the window of `t` here is that of `t + by` in `self`,
    /// brought back by `by`. `None` for an opaque window, and where the sum of shifts overflows.
    #[must_use]
    pub fn shifted(self, by: i64) -> Option<Self> {
        match self {
            Self::Fixed(grid) => {
                let origin = i128::from(grid.origin()) - i128::from(by);
                let origin = origin.rem_euclid(grid.width().into());
                Some(Self::Fixed(FixedGrid::new(i64::try_from(origin).ok()?, grid.width())))
            }
            Self::Calendar(calendar) => calendar.shifted(by).map(Self::Calendar),
            Self::Opaque(_) => None,
        }
    }

    /// The window of `instant`; a window that begins before or ends after what an instant can hold saturates
    /// ([`InstantRange::is_saturated`]). The instant `i64::MAX`, after which no range can end, is in the window of the
    /// one before it.
    ///
    /// # Errors
    /// Only for an opaque window, when its function turns out not to be monotone.
    pub fn try_range_of(&self, instant: i64) -> Result<InstantRange, WindowError> {
        let instant = instant.min(i64::MAX - 1);
        match self {
            Self::Fixed(grid) => Ok(grid.range_of(instant)),
            Self::Calendar(calendar) => Ok(calendar.range_of(instant)),
            Self::Opaque(window) => window.range_of(instant),
        }
    }

    /// The window of `instant`; all instants, which is never less than the window, where an opaque window cannot tell.
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
        let last = self.try_range_of(range.last())?;
        Ok(InstantRange::new(first.start(), last.end()))
    }

    /// The windows that `range` touches, in order.
    ///
    /// An item is an error only for an opaque window, as of [`Window::try_range_of`]; it is the last.
    ///
    /// ```
    /// use windrow_time::{InstantRange, Window};
    ///
    /// let minute = Window::fixed(0, 60)?;
    /// let windows: Result<Vec<_>, _> = minute.windows_in(InstantRange::new(30, 121)).collect();
    /// let bounds: Vec<_> = windows?.iter().map(|w| (w.start(), w.end())).collect();
    /// assert_eq!(bounds, [(0, 60), (60, 120), (120, 180)]);
    /// # Ok::<(), windrow_time::WindowError>(())
    /// ```
    pub fn windows_in(&self, range: InstantRange) -> impl Iterator<Item = Result<InstantRange, WindowError>> {
        let mut next = (!range.is_empty()).then_some(range.start());
        std::iter::from_fn(move || {
            let found = self.try_range_of(next.take()?);
            if let Ok(window) = &found {
                next = window.upper().filter(|&end| range.contains(end));
            }
            Some(found)
        })
    }

    /// The end of the `count`-th window from `start` on, where `start` begins a window.
    ///
    /// # Errors
    /// As [`Window::try_range_of`].
    pub fn end_after(&self, start: i64, count: u64) -> Result<i64, WindowError> {
        if let Self::Fixed(grid) = self {
            let end = i128::from(start) + i128::from(grid.width()) * i128::from(count);
            return Ok(InstantRange::saturating(start.into(), end).end());
        }
        let mut end = start;
        for window in
            self.windows_in(InstantRange::new(start, i64::MAX)).take(count.try_into().unwrap_or(usize::MAX))
        {
            end = window?.end();
        }
        Ok(end)
    }

    /// How many windows `range` touches, counted up to `limit`.
    ///
    /// # Errors
    /// As [`Window::try_range_of`].
    #[inline]
    pub fn count_in(&self, range: InstantRange, limit: u64) -> Result<u64, WindowError> {
        if range.is_empty() {
            return Ok(0);
        }
        if let Self::Fixed(grid) = self {
            return Ok(grid.count_in(range, limit));
        }
        self.count_one_by_one(range, limit)
    }

    fn count_one_by_one(&self, range: InstantRange, limit: u64) -> Result<u64, WindowError> {
        let mut count = 0;
        for window in self.windows_in(range).take(limit.try_into().unwrap_or(usize::MAX)) {
            window?;
            count += 1;
        }
        Ok(count)
    }
}

//! Windows of the calendar: whole months, and hours, days, weeks and months of local time.

use crate::civil::{day_in_month, month_of_day, start_of_month};
use crate::zone::{LONGEST_SHIFT, LocalOffsets};
use crate::{InstantRange, TimeUnit, Zone};

/// How local time is cut into windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CalendarStep {
    /// Whole hours of local time, counted from midnight of 1970-01-01.
    Hours(u32),
    /// Whole days, counted from 1970-01-01.
    Days(u32),
    /// Whole weeks from Monday to Sunday, counted from Monday, 1969-12-29.
    Weeks(u32),
    /// Whole months, counted from January 1970: 3 for quarters, 12 for years.
    Months(u32),
}

/// Windows of local time in a zone, or in UTC.
///
/// A window begins where local time, cut down to the step, becomes another instant, for good, as `date_trunc` of SQL
/// engines cuts it. So a day on which clocks change has 23 or 25 hours (or 23½, or does not happen); where clocks are put
/// forward over the begin of a window, it begins with the first instant after the change; where a local time at which a
/// window begins occurs twice, there is a window from each (an hour, or a day in a zone that changes at midnight), unless
/// clocks are put back into the window before: then both are one with it, as the instants of the earlier would lie on
/// both sides of the later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Calendar {
    step: LocalStep,
    zone: Option<Zone>,
    unit: TimeUnit,
    /// Added to an instant before it is looked up.
    shift: i64,
}

/// The steps in units of local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LocalStep {
    Fixed { origin: i128, width: i128 },
    Months { origin: i128, count: i128 },
}

impl Calendar {
    /// Windows of `count` months in UTC, of which one begins at `origin`; the others begin on the same day of their
    /// month at the same time, or on its last day where it is too short.
    pub(crate) fn months_from(count: i64, origin: i64, unit: TimeUnit) -> Self {
        let step = LocalStep::Months { origin: origin.into(), count: count.into() };
        Self { step, zone: None, unit, shift: 0 }
    }

    pub(crate) fn in_zone(step: CalendarStep, zone: Zone, unit: TimeUnit) -> Self {
        let day = i128::from(unit.per_day());
        let step = match step {
            CalendarStep::Hours(n) => LocalStep::Fixed { origin: 0, width: day / 24 * i128::from(n) },
            CalendarStep::Days(n) => LocalStep::Fixed { origin: 0, width: day * i128::from(n) },
            CalendarStep::Weeks(n) => LocalStep::Fixed { origin: -3 * day, width: 7 * day * i128::from(n) },
            CalendarStep::Months(n) => LocalStep::Months { origin: 0, count: n.into() },
        };
        Self { step, zone: Some(zone), unit, shift: 0 }
    }

    /// The unit of its instants.
    #[must_use]
    pub fn unit(&self) -> TimeUnit {
        self.unit
    }

    /// The zone whose local time it cuts; `None` is UTC.
    #[must_use]
    pub fn zone(&self) -> Option<&Zone> {
        self.zone.as_ref()
    }

    pub(crate) fn shifted(self, shift: i64) -> Option<Self> {
        Some(Self { shift: self.shift.checked_add(shift)?, ..self })
    }

    pub(crate) fn range_of(&self, instant: i64) -> InstantRange {
        let at = i128::from(instant) + i128::from(self.shift);
        let (start, end) = match &self.zone {
            None => {
                let start = self.step.floor(at, self.unit);
                (start, self.step.next(start, self.unit))
            }
            Some(zone) => Local { step: self.step, zone, unit: self.unit }.window_of(at),
        };
        InstantRange::saturating(start - i128::from(self.shift), end - i128::from(self.shift))
    }

    /// About how wide a window is, in units; at least 1.
    pub(crate) fn usual_width(&self) -> i128 {
        match self.step {
            LocalStep::Fixed { width, .. } => width,
            LocalStep::Months { count, .. } => count * 30 * i128::from(self.unit.per_day()),
        }
        .max(1)
    }
}

impl LocalStep {
    /// The last begin of a step that is not after `local`.
    fn floor(self, local: i128, unit: TimeUnit) -> i128 {
        match self {
            Self::Fixed { origin, width } => local - (local - origin).rem_euclid(width),
            Self::Months { origin, count } => {
                let day = i128::from(unit.per_day());
                let from = month_of_day(origin.div_euclid(day));
                let month = month_of_day(local.div_euclid(day));
                let aligned = from + (month - from).div_euclid(count) * count;
                let start = month_from(origin, aligned, unit);
                // In the month of a begin, what is before it belongs to the step before.
                if start <= local { start } else { month_from(origin, aligned - count, unit) }
            }
        }
    }

    /// The begin of the step after the one that begins at `start`.
    fn next(self, start: i128, unit: TimeUnit) -> i128 {
        match self {
            Self::Fixed { width, .. } => start + width,
            Self::Months { origin, count } => {
                month_from(origin, month_of_day(start.div_euclid(unit.per_day().into())) + count, unit)
            }
        }
    }
}

/// The instant in `month` with the day of the month and time of `origin`.
fn month_from(origin: i128, month: i128, unit: TimeUnit) -> i128 {
    let day = i128::from(unit.per_day());
    let first = start_of_month(month);
    let last = start_of_month(month + 1) - 1;
    let date = (first + day_in_month(origin.div_euclid(day))).min(last);
    date * day + origin.rem_euclid(day)
}

/// The windows of local time.
struct Local<'a> {
    step: LocalStep,
    zone: &'a Zone,
    unit: TimeUnit,
}

impl Local<'_> {
    fn window_of(&self, instant: i128) -> (i128, i128) {
        (self.begin_before(instant), self.begin_after(instant))
    }

    /// The first begin of a window after `instant`.
    fn begin_after(&self, instant: i128) -> i128 {
        let change = self.change_after(instant);
        let first = change.filter(|&change| self.is_begin(change));
        // After a change, local times come that need not be those that came next before it.
        let from_change = change.map(|change| self.first_begin(self.floor(change), instant, first));
        self.first_begin(self.floor(instant), instant, from_change.or(first))
    }

    /// The last begin of a window that is not after `instant`.
    fn begin_before(&self, instant: i128) -> i128 {
        let change = self.change_before(instant);
        let last = change.filter(|&change| self.is_begin(change));
        let from_change = change.map(|change| self.last_begin(self.floor(change - 1), instant, last));
        self.last_begin(self.floor(instant), instant, from_change.or(last))
    }

    /// The first begin after `instant` at the local time `local`, a later one, or `known`.
    fn first_begin(&self, mut local: i128, instant: i128, known: Option<i128>) -> i128 {
        let mut first = known;
        loop {
            let occurrences = self.occurrences(local);
            // The second occurrence of one step may be after the first of the next.
            if let (Some(found), [Some(occurrence), _]) = (first, occurrences)
                && found <= occurrence
            {
                return found;
            }
            let begins =
                occurrences.into_iter().flatten().filter(|&begin| begin > instant && self.is_begin(begin));
            first = first.into_iter().chain(begins).min();
            local = self.step.next(local, self.unit);
        }
    }

    /// The last begin that is not after `instant` at the local time `local`, an earlier one, or `known`.
    fn last_begin(&self, mut local: i128, instant: i128, known: Option<i128>) -> i128 {
        let mut last = known;
        loop {
            let occurrences = self.occurrences(local);
            if let (Some(found), Some(occurrence)) = (last, occurrences.into_iter().flatten().max())
                && found >= occurrence
            {
                return found;
            }
            let begins =
                occurrences.into_iter().flatten().filter(|&begin| begin <= instant && self.is_begin(begin));
            last = last.into_iter().chain(begins).max();
            local = self.step.floor(local - 1, self.unit);
        }
    }

    /// Local time at `instant`, cut down to the step.
    fn floor(&self, instant: i128) -> i128 {
        self.step.floor(instant + self.offset_at(instant), self.unit)
    }

    /// The instant at which local time was what it is at `instant` cut down to the step; if clocks were put forward
    /// over that, the instant at which it would have been, had they not been. This is what `date_trunc` computes.
    fn cut(&self, instant: i128) -> i128 {
        let offset = self.offset_at(instant);
        let local = self.step.floor(instant + offset, self.unit);
        match self.occurrences(local) {
            [Some(before), Some(after)] => {
                if local - before == offset {
                    before
                } else {
                    after
                }
            }
            [Some(only), None] if only + self.offset_at(only) == local => only,
            [Some(change), None] => local - self.offset_at(change - 1),
            [None, _] => instant,
        }
    }

    /// The instants of a local time, in order; the change, where clocks were put forward over it.
    fn occurrences(&self, local: i128) -> [Option<i128>; 2] {
        let per_second = i128::from(self.unit.per_second());
        let local_second = second(local.div_euclid(per_second));
        let at = |offset: i64| Some(local - i128::from(offset) * per_second);
        match self.zone.offsets_of_local(local_second) {
            LocalOffsets::One(offset) => [at(offset), None],
            LocalOffsets::Two(before, after) => [at(before), at(after)],
            LocalOffsets::None => {
                let around = |shift: i64| local_second.saturating_add(shift);
                let change = self.zone.next_change(around(-LONGEST_SHIFT), around(LONGEST_SHIFT));
                [change.map(|second| i128::from(second) * per_second), None]
            }
        }
    }

    /// Whether a window begins at `instant`: it is cut down to a later one than all before it, and to none that is later
    /// than that of one after it.
    ///
    /// What instants are cut down to only grows but for a change of clocks, when they are put back, and for the step
    /// after one, when they are put forward over the begin of a step by more than is left of it.
    fn is_begin(&self, instant: i128) -> bool {
        let value = self.cut(instant);
        if value < instant || self.is_revised(instant) {
            return false;
        }
        let is_before = |instant: i128| self.cut(instant) < value;
        if !is_before(instant - 1) {
            return false;
        }
        if let Some(change) = self.change_before(instant - 1)
            && !(is_before(change - 1) && is_before(change))
        {
            return false;
        }
        let Some(change) = self.change_after(instant - 1) else { return true };
        let next_step = self.occurrences(self.step.next(self.floor(change), self.unit));
        let next_step = next_step.into_iter().flatten().filter(|&next| next > change).min();
        !is_before(change) && !next_step.is_some_and(is_before)
    }

    /// Whether `instant` is the second occurrence of a local time, and instants of the step from there on are cut down to
    /// the first, because clocks go by its offset again: as in Phoenix in 1944, when they were put back at one minute
    /// past new year, forward in April and back again in October.
    fn is_revised(&self, instant: i128) -> bool {
        let local = self.floor(instant);
        let [Some(first), Some(second_time)] = self.occurrences(local) else { return false };
        let end = self.step.next(local, self.unit) - self.offset_at(instant);
        let per_second = i128::from(self.unit.per_second());
        let mut at = second(instant.div_euclid(per_second));
        let until = second(end.div_euclid(per_second));
        while let Some(change) = self.zone.next_change(at, until).filter(|_| second_time == instant) {
            if i128::from(self.zone.offset_at(change)) * per_second == local - first {
                return true;
            }
            at = change;
        }
        false
    }

    /// The change of clocks after `instant`, if it is a soon one.
    fn change_after(&self, instant: i128) -> Option<i128> {
        let per_second = i128::from(self.unit.per_second());
        // The second that `instant` is in has begun, so a change at its begin is none after it.
        let from = second(instant.div_euclid(per_second));
        let change = self.zone.next_change(from, from.saturating_add(LONGEST_SHIFT))?;
        Some(i128::from(change) * per_second)
    }

    /// The change of clocks at or before `instant`, if it was lately.
    fn change_before(&self, instant: i128) -> Option<i128> {
        let per_second = i128::from(self.unit.per_second());
        let to = second(instant.div_euclid(per_second));
        let change = self.zone.next_change(to.saturating_sub(LONGEST_SHIFT), to)?;
        Some(i128::from(change) * per_second)
    }

    /// In units.
    fn offset_at(&self, instant: i128) -> i128 {
        let per_second = i128::from(self.unit.per_second());
        i128::from(self.zone.offset_at(second(instant.div_euclid(per_second)))) * per_second
    }
}

fn second(value: i128) -> i64 {
    value.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

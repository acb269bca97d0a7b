//! Flows with an eval interval: anchored times, and what becomes of those that were missed.

/// Anchored times `start + k × interval`, in milliseconds.
///
/// ```
/// use windrow_state::EvalSchedule;
///
/// let schedule = EvalSchedule::new(1_000, 60_000).expect("a positive interval");
/// assert_eq!(schedule.newest_due(130_000), Some(121_000));
/// assert_eq!(schedule.next_after(121_000), 181_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvalSchedule {
    start: i64,
    interval: i64,
}

/// Which of several due times are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissedTicks {
    /// The newest.
    #[default]
    Skip,
    /// The newest `max_runs` of those that are not older than `max_lag` milliseconds, oldest first.
    BoundedCatchUp {
        /// At most so many.
        max_runs: u64,
        /// At most so old.
        max_lag: u64,
    },
}

/// The times that are to be run now, oldest first, and how many are not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DueTicks {
    first: i64,
    interval: i64,
    runs: u64,
    /// How many due times are not run.
    pub skipped: u64,
}

impl DueTicks {
    /// The times, oldest first. None of them is stored: a flow that slept for ten years on an interval of a second has
    /// 3.2 × 10⁸.
    pub fn times(&self) -> impl Iterator<Item = i64> + use<> {
        let Self { first, interval, runs, .. } = *self;
        // The last of them is a time, so none before it overflows.
        (0..runs).map(move |run| (i128::from(first) + i128::from(run) * i128::from(interval)) as i64)
    }

    /// How many times are run.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.runs
    }
}

impl EvalSchedule {
    /// The times from `start` on, `interval` apart; `None` where the interval is not positive.
    #[must_use]
    pub const fn new(start: i64, interval: i64) -> Option<Self> {
        if interval > 0 { Some(Self { start, interval }) } else { None }
    }

    /// The latest time that is not after `now`; `None` before the first.
    #[must_use]
    pub fn newest_due(&self, now: i64) -> Option<i64> {
        let since = i128::from(now) - i128::from(self.start);
        if since < 0 {
            return None;
        }
        let ticks = since / i128::from(self.interval);
        i64::try_from(i128::from(self.start) + ticks * i128::from(self.interval)).ok()
    }

    /// The first time after `now`, in constant time however long ago the last one was.
    #[must_use]
    pub fn next_after(&self, now: i64) -> i64 {
        match self.newest_due(now) {
            Some(due) => due.saturating_add(self.interval),
            None => self.start,
        }
    }

    /// The times after `last`, the last one that was run or skipped, up to `now`; in constant time. Whatever becomes of the
    /// runs, the newest of them is the next `last`. A clock that was put back makes nothing due until it is past `last`.
    ///
    /// ```
    /// use windrow_state::{EvalSchedule, MissedTicks};
    ///
    /// let minutely = EvalSchedule::new(0, 60_000).expect("a positive interval");
    /// let due = minutely.due(Some(60_000), 310_000, MissedTicks::Skip).expect("four times");
    /// assert_eq!((due.times().collect::<Vec<_>>(), due.skipped), (vec![300_000], 3));
    /// let catch_up = MissedTicks::BoundedCatchUp { max_runs: 10, max_lag: 130_000 };
    /// let due = minutely.due(Some(60_000), 310_000, catch_up).expect("four times");
    /// assert_eq!((due.times().collect::<Vec<_>>(), due.skipped), (vec![180_000, 240_000, 300_000], 1));
    /// ```
    #[must_use]
    pub fn due(&self, last: Option<i64>, now: i64, missed: MissedTicks) -> Option<DueTicks> {
        let newest = self.newest_due(now)?;
        let interval = i128::from(self.interval);
        let total = match last {
            Some(last) if last >= newest => return None,
            // A time that is none of this schedule's counts from the last of its own.
            Some(last) => match self.newest_due(last) {
                Some(last) => (i128::from(newest) - i128::from(last)) / interval,
                None => (i128::from(newest) - i128::from(self.start)) / interval + 1,
            },
            None => (i128::from(newest) - i128::from(self.start)) / interval + 1,
        };
        let runs = match missed {
            MissedTicks::Skip => 1,
            MissedTicks::BoundedCatchUp { max_runs, max_lag } => {
                let slack = i128::from(max_lag) - (i128::from(now) - i128::from(newest));
                let recent = if slack < 0 { 0 } else { slack / interval + 1 };
                recent.min(max_runs.into()).min(total)
            }
        };
        let first = i128::from(newest) - (runs - 1).max(0) * interval;
        let count = |ticks: i128| u64::try_from(ticks).unwrap_or(u64::MAX);
        Some(DueTicks {
            first: i64::try_from(first).ok()?,
            interval: self.interval,
            runs: count(runs),
            skipped: count(total - runs),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn missed_ticks_cost_nothing_and_extremes_do_not_overflow() {
        let schedule = EvalSchedule::new(i64::MIN, 1).unwrap();
        assert_eq!(schedule.newest_due(i64::MAX), Some(i64::MAX));
        assert_eq!(schedule.next_after(i64::MAX), i64::MAX);
        assert_eq!(EvalSchedule::new(10, 5).unwrap().newest_due(9), None);
        assert_eq!(EvalSchedule::new(0, 0), None);
        let ten_years = 315_360_000_000;
        let due = EvalSchedule::new(0, 1_000).unwrap().due(Some(0), ten_years, MissedTicks::Skip).unwrap();
        assert_eq!((due.runs(), due.skipped), (1, 315_359_999));
        let all = MissedTicks::BoundedCatchUp { max_runs: u64::MAX, max_lag: u64::MAX };
        let due = schedule.due(None, i64::MAX, all).unwrap();
        assert_eq!((due.runs(), due.skipped, due.times().next()), (u64::MAX, 1, Some(i64::MIN + 1)));
    }

    #[test]
    fn ticks_that_are_all_too_old_are_skipped() {
        let schedule = EvalSchedule::new(0, 1_000).unwrap();
        let strict = MissedTicks::BoundedCatchUp { max_runs: 5, max_lag: 100 };
        let due = schedule.due(None, 2_500, strict).unwrap();
        assert_eq!((due.runs(), due.skipped, due.times().count()), (0, 3, 0));
    }

    proptest! {
        #[test]
        fn due_ticks_are_those_of_a_list(
            start in -500..500_i64, interval in 1..50_i64, last in proptest::option::of(-600..600_i64), now in -600..1_500_i64,
            max_runs in 0..8_u64, max_lag in 0..300_u64, skip: bool,
        ) {
            let schedule = EvalSchedule::new(start, interval).unwrap();
            let all: Vec<i64> = (0..).map(|k| start + k * interval).take_while(|&t| t <= now)
                .filter(|&t| last.is_none_or(|last| t > last)).collect();
            let expected: Vec<i64> = if skip {
                all.last().copied().into_iter().collect()
            } else {
                let recent: Vec<i64> = all.iter().copied().filter(|t| (now - t) as u64 <= max_lag).collect();
                recent[recent.len().saturating_sub(max_runs as usize)..].to_vec()
            };
            let missed = if skip { MissedTicks::Skip } else { MissedTicks::BoundedCatchUp { max_runs, max_lag } };
            match schedule.due(last, now, missed) {
                None => prop_assert!(all.is_empty()),
                Some(due) => {
                    prop_assert_eq!(due.times().collect::<Vec<_>>(), expected.clone());
                    prop_assert_eq!(due.skipped as usize, all.len() - expected.len());
                }
            }
        }
    }
}

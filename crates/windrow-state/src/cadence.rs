//! When a flow runs next.

use std::time::Duration;

/// The pauses of a flow without an eval interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cadence {
    /// The shortest pause between two refreshes that found something to do.
    pub min_refresh: Duration,
    /// The longest pause, and the longest that a query may take.
    pub query_timeout: Duration,
}

impl Default for Cadence {
    fn default() -> Self {
        Self { min_refresh: Duration::from_secs(5), query_timeout: Duration::from_secs(600) }
    }
}

impl Cadence {
    /// The pause after a refresh that took `elapsed`: as long again, within the bounds. A slow flow so never takes
    /// more than about half of the machine.
    #[must_use]
    pub fn pause(&self, elapsed: Duration) -> Duration {
        elapsed.max(self.min_refresh).min(self.query_timeout.max(self.min_refresh))
    }

    /// The backoff of a flow that fails.
    #[must_use]
    pub fn backoff(&self) -> Backoff {
        Backoff { failures: 0, first: self.min_refresh, cap: self.query_timeout.max(self.min_refresh) }
    }
}

/// Exponential pauses after failures, and how much to take on after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    failures: u32,
    first: Duration,
    cap: Duration,
}

impl Backoff {
    /// A refresh failed: the pause before the next try.
    pub fn failed(&mut self) -> Duration {
        let factor = 2_u32.saturating_pow(self.failures.min(31));
        self.failures = self.failures.saturating_add(1);
        self.first.saturating_mul(factor).min(self.cap)
    }

    /// A refresh succeeded.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }
}

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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_double_the_pause_up_to_the_cap_and_a_success_resets_it() {
        let cadence = Cadence { min_refresh: Duration::from_secs(5), query_timeout: Duration::from_secs(30) };
        let mut backoff = cadence.backoff();
        let pauses: Vec<u64> = (0..5).map(|_| backoff.failed().as_secs()).collect();
        assert_eq!(pauses, [5, 10, 20, 30, 30]);
        backoff.succeeded();
        assert_eq!(backoff.failed().as_secs(), 5);
        (0..100).for_each(|_| assert!(backoff.failed() <= cadence.query_timeout));
    }

    #[test]
    fn missed_ticks_cost_nothing_and_extremes_do_not_overflow() {
        let schedule = EvalSchedule::new(i64::MIN, 1).unwrap();
        assert_eq!(schedule.newest_due(i64::MAX), Some(i64::MAX));
        assert_eq!(schedule.next_after(i64::MAX), i64::MAX);
        assert_eq!(EvalSchedule::new(10, 5).unwrap().newest_due(9), None);
        assert_eq!(EvalSchedule::new(0, 0), None);
    }
}

//! When a flow without an eval interval runs next, and how much it then takes on.

use std::time::Duration;

use crate::{ChunkLimits, Mode};

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

/// A refresh that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Where the flow is after it.
    pub mode: Mode,
    /// How long it took.
    pub elapsed: Duration,
    /// Whether there was anything to do.
    pub idle: bool,
    /// Whether it left something that can be done at once.
    pub more: bool,
    /// How long a window is, where that can be said.
    pub window: Option<Duration>,
}

impl Cadence {
    /// The pause after a refresh: as long as it took, so that a slow flow takes no more than about half of the machine; at
    /// least a window, or [`Cadence::min_refresh`] where only new rows are read and where there is no window; at most
    /// [`Cadence::query_timeout`]. Nothing, while there is more to do.
    ///
    /// ```
    /// use std::time::Duration;
    /// use windrow_state::{Cadence, Finished, Mode};
    ///
    /// let minute = Duration::from_secs(60);
    /// let merged = Finished {
    ///     mode: Mode::Incremental,
    ///     elapsed: Duration::from_secs(7),
    ///     idle: false,
    ///     more: false,
    ///     window: Some(minute),
    /// };
    /// assert_eq!(Cadence::default().pause(&merged), Duration::from_secs(7));
    /// let repaired = Finished { mode: Mode::FullSnapshot, ..merged };
    /// assert_eq!(Cadence::default().pause(&repaired), minute);
    /// ```
    #[must_use]
    pub fn pause(&self, after: &Finished) -> Duration {
        if after.more {
            return Duration::ZERO;
        }
        if after.idle {
            return self.min_refresh;
        }
        let least = match (after.mode, after.window) {
            (Mode::FullSnapshot, Some(window)) => window,
            _ => self.min_refresh,
        };
        after.elapsed.max(least).min(self.query_timeout.max(self.min_refresh))
    }

    /// The backoff of a flow that fails.
    #[must_use]
    pub fn backoff(&self) -> Backoff {
        Backoff { failures: 0, first: self.min_refresh, cap: self.query_timeout.max(self.min_refresh) }
    }
}

/// Exponential pauses after failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    failures: u32,
    first: Duration,
    cap: Duration,
}

impl Backoff {
    /// A refresh failed: the pause before the next try, twice as long each time up to a cap. `jitter`, a random number from 0
    /// to 1, takes away up to half of it, so that flows that failed together do not try again together.
    pub fn failed(&mut self, jitter: f64) -> Duration {
        let factor = 2_u32.saturating_pow(self.failures.min(31));
        self.failures = self.failures.saturating_add(1);
        let pause = self.first.saturating_mul(factor).min(self.cap);
        let jitter = if jitter.is_nan() { 0.0 } else { jitter.clamp(0.0, 1.0) };
        pause.mul_f64(1.0 - jitter / 2.0)
    }

    /// A refresh succeeded.
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }
}

/// How many windows a repair takes on: one after a failure, and one more after each success, up to the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WindowBudget {
    /// `None` is the limit.
    allowed: Option<u64>,
}

impl WindowBudget {
    /// A refresh failed.
    pub fn failed(&mut self) {
        self.allowed = Some(1);
    }

    /// A refresh succeeded.
    pub fn succeeded(&mut self) {
        self.allowed = self.allowed.and_then(|windows| windows.checked_add(1));
    }

    /// The limits, with no more windows than are allowed now.
    #[must_use]
    pub fn limit(&self, limits: ChunkLimits) -> ChunkLimits {
        let windows =
            self.allowed.map_or(limits.windows_per_query, |allowed| allowed.min(limits.windows_per_query));
        ChunkLimits { windows_per_query: windows, ..limits }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_double_the_pause_up_to_the_cap_and_a_success_resets_it() {
        let cadence = Cadence { min_refresh: Duration::from_secs(5), query_timeout: Duration::from_secs(30) };
        let mut backoff = cadence.backoff();
        let pauses: Vec<u64> = (0..5).map(|_| backoff.failed(0.0).as_secs()).collect();
        assert_eq!(pauses, [5, 10, 20, 30, 30]);
        backoff.succeeded();
        assert_eq!(backoff.failed(0.0).as_secs(), 5);
        assert_eq!(backoff.failed(1.0).as_secs(), 5, "half of the second pause");
        (0..100).for_each(|_| assert!(backoff.failed(f64::NAN) <= cadence.query_timeout));
    }

    #[test]
    fn a_pause_is_as_long_as_the_query_within_its_bounds() {
        let cadence =
            Cadence { min_refresh: Duration::from_secs(5), query_timeout: Duration::from_secs(600) };
        let seconds = Duration::from_secs;
        let merged =
            Finished { mode: Mode::Incremental, elapsed: seconds(1), idle: false, more: false, window: None };
        for (finished, pause) in [
            (merged, 5),
            (Finished { elapsed: seconds(40), ..merged }, 40),
            (Finished { elapsed: seconds(4_000), ..merged }, 600),
            (Finished { window: Some(seconds(60)), ..merged }, 5),
            (Finished { mode: Mode::FullSnapshot, window: Some(seconds(60)), ..merged }, 60),
            (Finished { mode: Mode::FullSnapshot, window: Some(seconds(86_400)), ..merged }, 600),
            (Finished { mode: Mode::FullSnapshot, ..merged }, 5),
            (Finished { more: true, elapsed: seconds(40), ..merged }, 0),
            (Finished { idle: true, elapsed: seconds(40), ..merged }, 5),
        ] {
            assert_eq!(cadence.pause(&finished), seconds(pause), "{finished:?}");
        }
    }

    #[test]
    fn a_failure_leaves_one_window_and_each_success_allows_one_more() {
        let limits = ChunkLimits { windows_per_query: 4, ..ChunkLimits::default() };
        let mut budget = WindowBudget::default();
        budget.succeeded();
        assert_eq!(budget.limit(limits).windows_per_query, 4);
        budget.failed();
        let allowed: Vec<u64> = (0..6)
            .map(|_| {
                let windows = budget.limit(limits).windows_per_query;
                budget.succeeded();
                windows
            })
            .collect();
        assert_eq!(allowed, [1, 2, 3, 4, 4, 4]);
    }
}

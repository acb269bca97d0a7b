//! Windows of a function that is only known by its values.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{InstantRange, WindowError};

/// How many of the windows found last are remembered.
const REMEMBERED: usize = 16;

/// A monotone function from an instant to the value that names its window.
type Function = dyn Fn(i64) -> Option<i64> + Send + Sync;

/// Windows of any monotone non-decreasing function.
///
/// The bounds of a window are found by an exponential search outwards from an instant, then a binary search: a
/// window of `n` units costs about `2 log2(n)` evaluations on each side (J. Bentley, A. Yao: "An almost optimal
/// algorithm for unbounded searching", 1976). The windows found last are remembered, so that instants of few windows
/// cost few searches. Instants for which the function has no value are together, as far as they are neighbours.
#[derive(Clone)]
pub struct OpaqueWindow {
    function: Arc<Function>,
    /// Newest first.
    recent: Arc<Mutex<VecDeque<InstantRange>>>,
}

impl fmt::Debug for OpaqueWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpaqueWindow")
    }
}

impl OpaqueWindow {
    /// The windows of `function`, which the caller knows to be monotone non-decreasing where it has a value.
    pub fn new(function: impl Fn(i64) -> Option<i64> + Send + Sync + 'static) -> Self {
        Self { function: Arc::new(function), recent: Arc::default() }
    }

    pub(crate) fn range_of(&self, instant: i64) -> Result<InstantRange, WindowError> {
        let recent = || self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&range) = recent().iter().find(|range| range.contains(instant)) {
            return Ok(range);
        }
        let range = self.search(instant)?;
        let mut recent = recent();
        recent.truncate(REMEMBERED - 1);
        recent.push_front(range);
        Ok(range)
    }

    fn search(&self, instant: i64) -> Result<InstantRange, WindowError> {
        let value = (self.function)(instant);
        let last = self.furthest(instant, value, 1)?;
        let first = self.furthest(instant, value, -1)?;
        Ok(InstantRange::new(first, last.saturating_add(1)))
    }

    /// The instant furthest from `from` in the direction of `sign` up to which all have `value`.
    fn furthest(&self, from: i64, value: Option<i64>, sign: i64) -> Result<i64, WindowError> {
        let limit = if sign > 0 { i64::MAX } else { i64::MIN };
        let at = |distance: u64| {
            if sign > 0 {
                from.saturating_add_unsigned(distance)
            } else {
                from.saturating_sub_unsigned(distance)
            }
        };
        // Invariant: the function has `value` at distance `inside`, and not at distance `outside`.
        let mut inside = 0;
        let mut step = 1_u64;
        let mut outside = loop {
            let probe = at(step);
            if !self.has_value(probe, value, from, sign)? {
                break step;
            }
            if probe == limit {
                return Ok(limit);
            }
            inside = step;
            step = step.saturating_mul(2);
        };
        while outside - inside > 1 {
            let middle = inside.midpoint(outside);
            if self.has_value(at(middle), value, from, sign)? {
                inside = middle;
            } else {
                outside = middle;
            }
        }
        Ok(at(inside))
    }

    fn has_value(&self, probe: i64, value: Option<i64>, from: i64, sign: i64) -> Result<bool, WindowError> {
        let found = (self.function)(probe);
        match (found, value) {
            (Some(found), Some(value)) if found != value && (found > value) != (sign > 0) => {
                Err(WindowError::NotMonotone { before: probe.min(from), after: probe.max(from) })
            }
            _ => Ok(found == value),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::Window;

    #[test]
    fn the_bounds_are_those_of_the_grid_that_is_computed() {
        let grid = Window::fixed(0, 3_600).unwrap();
        for instant in [i64::MIN, -3_601, -3_600, -1, 0, 1, 3_599, 3_600, 1 << 40, i64::MAX] {
            let window = OpaqueWindow::new(|t| Some(t.div_euclid(3_600)));
            let expected = grid.try_range_of(instant).unwrap();
            assert_eq!(window.range_of(instant).unwrap(), expected, "{instant}");
        }
    }

    #[test]
    fn a_window_ends_where_the_function_has_no_value_and_so_do_the_instants_without_one() {
        let window = OpaqueWindow::new(|t| (0..100).contains(&t).then_some(7));
        assert_eq!(window.range_of(50).unwrap(), InstantRange::new(0, 100));
        assert_eq!(window.range_of(100).unwrap(), InstantRange::new(100, i64::MAX));
        assert_eq!(window.range_of(-1).unwrap(), InstantRange::new(i64::MIN, 0));
    }

    #[test]
    fn a_decreasing_function_is_found_out() {
        let window = OpaqueWindow::new(|t| Some(-t));
        assert!(matches!(window.range_of(0), Err(WindowError::NotMonotone { .. })));
    }

    #[test]
    fn windows_found_lately_are_not_searched_again() {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let window = OpaqueWindow::new(move |t| {
            counted.fetch_add(1, Ordering::Relaxed);
            Some(t.div_euclid(1_000))
        });
        for instant in [10, 5_010, 990, 5_999, 0, 5_000] {
            window.range_of(instant).unwrap();
        }
        assert!(calls.load(Ordering::Relaxed) < 100, "two searches, not six");
        assert_eq!(window.range_of(1_000).unwrap(), InstantRange::new(1_000, 2_000));
    }
}

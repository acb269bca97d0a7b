//! Windows of a function that is only known by its values.

use std::fmt;
use std::sync::Arc;

use crate::{InstantRange, WindowError};

/// A monotone function from an instant to the value that names its window.
type Function = dyn Fn(i64) -> Result<i64, String> + Send + Sync;

/// Windows of any monotone non-decreasing function.
///
/// The bounds of a window are found by an exponential search outwards from an instant, then a binary search: a
/// window of `n` units costs about `2 log2(n)` evaluations on each side. Where the function fails (beyond what it
/// can represent, say), the window ends.
#[derive(Clone)]
pub struct OpaqueWindow {
    function: Arc<Function>,
}

impl fmt::Debug for OpaqueWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpaqueWindow")
    }
}

impl OpaqueWindow {
    /// The windows of `function`, which the caller knows to be monotone non-decreasing.
    pub fn new(function: impl Fn(i64) -> Result<i64, String> + Send + Sync + 'static) -> Self {
        Self { function: Arc::new(function) }
    }

    fn value(&self, instant: i64) -> Result<i64, WindowError> {
        (self.function)(instant).map_err(|message| WindowError::Evaluation { instant, message })
    }

    pub(crate) fn range_of(&self, instant: i64) -> Result<InstantRange, WindowError> {
        let value = self.value(instant)?;
        let last = self.furthest(instant, value, 1)?;
        let first = self.furthest(instant, value, -1)?;
        Ok(InstantRange::new(first, last.saturating_add(1)))
    }

    /// The instant furthest from `from` in the direction of `sign` that has `value`.
    fn furthest(&self, from: i64, value: i64, sign: i64) -> Result<i64, WindowError> {
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
            let middle = inside + (outside - inside) / 2;
            if self.has_value(at(middle), value, from, sign)? {
                inside = middle;
            } else {
                outside = middle;
            }
        }
        Ok(at(inside))
    }

    fn has_value(&self, probe: i64, value: i64, from: i64, sign: i64) -> Result<bool, WindowError> {
        match self.value(probe) {
            Ok(found) if found == value => Ok(true),
            Ok(found) if (found > value) == (sign > 0) => Ok(false),
            Ok(_) => Err(WindowError::NotMonotone { before: probe.min(from), after: probe.max(from) }),
            // Outside of the function's domain no instant has a window, so this one ends there.
            Err(_) => Ok(false),
        }
    }
}

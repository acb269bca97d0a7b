//! From an Arrow timestamp array to the windows of its values.

use arrow::array::{Array, AsArray, PrimitiveArray};
use arrow::datatypes::{
    ArrowTimestampType, DataType, TimeUnit as ArrowUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};

use crate::{InstantRange, Window, WindowError};

/// Why an array could not be marked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MarkError {
    /// The array does not hold timestamps.
    #[error("a column of type {0} has no instants; a timestamp column is needed")]
    NotTimestamps(DataType),
    /// A window could not be found.
    #[error(transparent)]
    Window(#[from] WindowError),
}

/// What [`Window::mark`] saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MarkSummary {
    /// How many values were instants.
    pub instants: usize,
    /// How many values were null, and so in no window.
    pub nulls: usize,
}

impl Window {
    /// Calls `found` with the window of every value of `array`, once for each run of values in one window.
    ///
    /// The instants are taken in the array's own unit; a time zone changes nothing about an instant. A window can
    /// be reported again when the values come back to it.
    ///
    /// # Errors
    /// When `array` holds no timestamps, or an opaque window fails.
    ///
    /// ```
    /// use arrow::array::TimestampSecondArray;
    /// use windrow_time::{InstantRange, Window};
    ///
    /// let minute = Window::fixed(0, 60)?;
    /// let times = TimestampSecondArray::from(vec![Some(1), Some(59), None, Some(60)]);
    /// let mut windows = Vec::new();
    /// let summary = minute.mark(&times, |window| windows.push(window))?;
    /// assert_eq!(windows, [InstantRange::new(0, 60), InstantRange::new(60, 120)]);
    /// assert_eq!(summary.nulls, 1);
    /// # Ok::<(), windrow_time::MarkError>(())
    /// ```
    pub fn mark(&self, array: &dyn Array, found: impl FnMut(InstantRange)) -> Result<MarkSummary, MarkError> {
        match array.data_type() {
            DataType::Timestamp(ArrowUnit::Second, _) => {
                self.mark_values::<TimestampSecondType>(array.as_primitive(), found)
            }
            DataType::Timestamp(ArrowUnit::Millisecond, _) => {
                self.mark_values::<TimestampMillisecondType>(array.as_primitive(), found)
            }
            DataType::Timestamp(ArrowUnit::Microsecond, _) => {
                self.mark_values::<TimestampMicrosecondType>(array.as_primitive(), found)
            }
            DataType::Timestamp(ArrowUnit::Nanosecond, _) => {
                self.mark_values::<TimestampNanosecondType>(array.as_primitive(), found)
            }
            other => Err(MarkError::NotTimestamps(other.clone())),
        }
    }

    fn mark_values<T: ArrowTimestampType>(
        &self,
        array: &PrimitiveArray<T>,
        mut found: impl FnMut(InstantRange),
    ) -> Result<MarkSummary, MarkError> {
        let mut current = InstantRange::new(0, 0);
        let mut visit = |instant: i64| -> Result<(), WindowError> {
            if !current.contains(instant) {
                current = self.try_range_of(instant)?;
                found(current);
            }
            Ok(())
        };
        if array.null_count() == 0 {
            array.values().iter().try_for_each(|&instant| visit(instant))?;
        } else {
            array.iter().flatten().try_for_each(&mut visit)?;
        }
        Ok(MarkSummary { instants: array.len() - array.null_count(), nulls: array.null_count() })
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, TimestampMillisecondArray};
    use proptest::prelude::*;

    use super::*;
    use crate::{OpaqueWindow, TimeUnit};

    fn opaque_hours() -> Window {
        Window::Opaque(OpaqueWindow::new(|t| Ok(t.div_euclid(3_600))))
    }

    #[test]
    fn an_opaque_window_has_the_bounds_of_the_grid_it_computes() {
        let grid = Window::fixed(0, 3_600).unwrap();
        for instant in [-3_601, -3_600, -1, 0, 1, 3_599, 3_600, 1 << 40] {
            assert_eq!(opaque_hours().range_of(instant), grid.range_of(instant), "{instant}");
        }
    }

    #[test]
    fn an_opaque_window_ends_where_its_function_fails() {
        let window = Window::Opaque(OpaqueWindow::new(|t| {
            if (0..100).contains(&t) { Ok(7) } else { Err("out of range".into()) }
        }));
        assert_eq!(window.range_of(50), InstantRange::new(0, 100));
        assert!(matches!(window.try_range_of(100), Err(WindowError::Evaluation { instant: 100, .. })));
    }

    #[test]
    fn a_decreasing_function_is_found_out() {
        let window = Window::Opaque(OpaqueWindow::new(|t| Ok(-t)));
        assert!(matches!(window.try_range_of(0), Err(WindowError::NotMonotone { .. })));
    }

    #[test]
    fn the_ends_of_the_range_saturate() {
        let grid = Window::fixed(0, 1_000).unwrap();
        assert_eq!(grid.range_of(i64::MAX).end(), i64::MAX);
        assert!(grid.range_of(i64::MAX).contains(i64::MAX));
        assert_eq!(grid.range_of(i64::MIN).start(), i64::MIN);
        let months = Window::months(1, TimeUnit::Nanosecond).unwrap();
        assert!(months.range_of(i64::MAX).contains(i64::MAX));
        assert!(months.range_of(i64::MIN).contains(i64::MIN));
    }

    #[test]
    fn numbers_are_no_instants() {
        let window = Window::fixed(0, 10).unwrap();
        let error = window.mark(&Int64Array::from(vec![1]), |_| ()).unwrap_err();
        assert_eq!(error, MarkError::NotTimestamps(DataType::Int64));
    }

    proptest! {
        #[test]
        fn every_instant_is_in_its_window_and_neighbours_are_in_others(
            instant: i64, origin: i64, width in 1..i64::MAX, months in 1..100_i64,
        ) {
            for window in [
                Window::fixed(origin, width).unwrap(),
                Window::months(months, TimeUnit::Second).unwrap(),
                Window::months(months, TimeUnit::Nanosecond).unwrap(),
            ] {
                let range = window.range_of(instant);
                prop_assert!(range.contains(instant));
                prop_assert_eq!(window.range_of(range.start()), range);
                if let Some(end) = range.upper() {
                    prop_assert_eq!(window.range_of(end - 1), range);
                    prop_assert_eq!(window.range_of(end).start(), end);
                }
                if let Some(start) = range.lower() {
                    prop_assert_eq!(window.range_of(start - 1).end(), start);
                }
            }
        }

        #[test]
        fn marking_finds_exactly_the_windows_of_the_values(
            values in proptest::collection::vec(proptest::option::of(-10_000..10_000_i64), 0..50),
            width in 1..500_i64,
        ) {
            let window = Window::fixed(3, width).unwrap();
            let mut marked = std::collections::BTreeSet::new();
            let array = TimestampMillisecondArray::from(values.clone());
            let summary = window.mark(&array, |range| { marked.insert(range); }).unwrap();
            let expected = values.iter().flatten().map(|&t| window.range_of(t)).collect();
            prop_assert_eq!(marked, expected);
            prop_assert_eq!(summary.nulls, values.iter().filter(|v| v.is_none()).count());
        }
    }
}

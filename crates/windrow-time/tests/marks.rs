//! Marking finds exactly the windows of the values, whatever their order, unit and nulls.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, Int64Array, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, TimestampSecondArray,
};
use arrow_schema::DataType;
use proptest::prelude::*;
use windrow_time::{CalendarStep, InstantRange, MarkError, OpaqueWindow, TimeUnit, Window, WindowError};

fn arrays_of(values: Vec<Option<i64>>) -> Vec<(TimeUnit, ArrayRef)> {
    let zone = Some("Asia/Kathmandu");
    vec![
        (
            TimeUnit::Second,
            Arc::new(TimestampSecondArray::from(values.clone()).with_timezone_opt(zone)) as ArrayRef,
        ),
        (TimeUnit::Millisecond, Arc::new(TimestampMillisecondArray::from(values.clone()))),
        (TimeUnit::Microsecond, Arc::new(TimestampMicrosecondArray::from(values.clone()))),
        (TimeUnit::Nanosecond, Arc::new(TimestampNanosecondArray::from(values).with_timezone_opt(zone))),
    ]
}

/// The distinct windows, one value at a time.
fn distinct(window: &Window, values: &[Option<i64>]) -> BTreeSet<InstantRange> {
    values.iter().flatten().map(|&instant| window.range_of(instant)).collect()
}

fn check(window: &Window, array: &dyn Array, values: &[Option<i64>]) {
    let marks = window.mark(array).expect("timestamps");
    let listed: Vec<_> = marks
        .ranges()
        .iter()
        .flat_map(|&range| window.windows_in(range))
        .map(|found| found.expect("a window"))
        .collect();
    let expected: Vec<_> = distinct(window, values).into_iter().collect();
    assert_eq!(listed, expected, "{window:?}");
    assert!(
        marks.ranges().windows(2).all(|pair| pair[0].end() < pair[1].start()),
        "sorted, disjoint and joined"
    );
    assert_eq!(marks.nulls(), values.iter().filter(|value| value.is_none()).count());
    assert_eq!(marks.instants() + marks.nulls(), values.len());
}

/// Windows of every kind, for values between 0 and some thousands of `width`.
fn windows(unit: TimeUnit, width: i64) -> Vec<Window> {
    let calendar =
        |step, zone: &str| Window::calendar(step, zone.parse().expect("a zone"), unit).expect("a step");
    vec![
        Window::fixed(width / 3, width).expect("a width"),
        Window::months(1, unit).expect("a step"),
        calendar(CalendarStep::Hours(1), "Australia/Lord_Howe"),
        calendar(CalendarStep::Days(1), "America/St_Johns"),
        Window::Opaque(OpaqueWindow::new(move |t| Some(t.div_euclid(width)))),
    ]
}

#[test]
fn numbers_are_no_instants() {
    let error = Window::fixed(0, 10).unwrap().mark(&Int64Array::from(vec![1])).unwrap_err();
    assert_eq!(error, MarkError::NotTimestamps(DataType::Int64));
}

#[test]
fn nothing_and_nulls_alone_are_in_no_window() {
    let window = Window::fixed(0, 10).unwrap();
    for values in [vec![], vec![None], vec![None; 3_000]] {
        for (_, array) in arrays_of(values.clone()) {
            check(&window, &array, &values);
        }
    }
}

#[test]
fn the_value_under_a_null_is_not_looked_at() {
    let values = TimestampSecondArray::new(vec![5, 77, 15].into(), Some(vec![true, false, true].into()));
    assert_eq!(Window::fixed(0, 10).unwrap().mark(&values).unwrap().ranges(), [InstantRange::new(0, 20)]);
}

#[test]
fn the_ends_of_what_a_unit_can_hold_are_marked() {
    let values: Vec<_> = [i64::MAX, i64::MIN, 0, i64::MAX - 1, i64::MIN + 1].map(Some).repeat(700);
    for (unit, array) in arrays_of(values.clone()) {
        for window in windows(unit, 1 << 61) {
            check(&window, &array, &values);
        }
        check(&Window::fixed(i64::MIN, i64::MAX).unwrap(), &array, &values);
        check(&Window::fixed(0, 1).unwrap(), &array, &values);
    }
}

#[test]
fn a_function_that_is_not_monotone_is_an_error() {
    let window = Window::Opaque(OpaqueWindow::new(|t| Some(t.rem_euclid(7))));
    let values = TimestampSecondArray::from_iter_values(0..100);
    assert!(matches!(window.mark(&values), Err(MarkError::Window(WindowError::NotMonotone { .. }))));
}

#[derive(Debug, Clone, Copy)]
enum Order {
    Ascending,
    Descending,
    Shuffled,
    AlmostSorted,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn marking_finds_exactly_the_windows_of_the_values(
        seed in prop::collection::vec((any::<u32>(), prop::bool::weighted(0.9)), 0..3_000),
        // From all values in a few windows to each value in one of its own, and most windows empty.
        spread in prop::sample::select(vec![1_i64, 100, 3_600, 40_000, 900_000]),
        order in prop::sample::select(vec![Order::Ascending, Order::Descending, Order::Shuffled, Order::AlmostSorted]),
        with_nulls: bool, negative: bool, cut in 0.0..1.0_f64,
    ) {
        let mut numbers: Vec<i64> = seed.iter().map(|(number, _)| i64::from(*number >> 20)).collect();
        match order {
            Order::Ascending => numbers.sort_unstable(),
            Order::Descending => numbers.sort_unstable_by(|a, b| b.cmp(a)),
            Order::AlmostSorted => { numbers.sort_unstable(); numbers.chunks_exact_mut(50).for_each(|c| c.swap(0, 49)); }
            Order::Shuffled => {}
        }
        for (unit, _) in arrays_of(vec![]) {
            // In seconds, so that calendars have some windows too.
            let scale = spread * unit.per_second() * if negative { -1 } else { 1 };
            let values: Vec<Option<i64>> = numbers.iter().zip(&seed)
                .map(|(&number, &(_, valid))| (valid || !with_nulls).then_some(number * scale + 3)).collect();
            let array = arrays_of(values.clone()).into_iter().find(|(of, _)| *of == unit).expect("each unit").1;
            let at = (cut * values.len() as f64) as usize;
            for window in windows(unit, 3_600 * unit.per_second()) {
                check(&window, &array, &values);
                // A slice begins and ends in the middle of the buffers.
                let rest = values.len() - at;
                check(&window, &array.slice(at, rest / 2), &values[at..at + rest / 2]);
            }
        }
    }
}

//! Windows of all kinds: every instant is in one, and the neighbours of a window are others.

use proptest::prelude::*;
use windrow_time::{CalendarStep, InstantRange, OpaqueWindow, TimeUnit, Window, WindowError};

const UNITS: [TimeUnit; 4] =
    [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond];

fn days_in(zone: &str, unit: TimeUnit) -> Window {
    Window::calendar(CalendarStep::Days(1), zone.parse().expect("a zone"), unit).expect("a step")
}

#[test]
fn the_ends_of_the_range_saturate() {
    for unit in UNITS {
        for window in [
            Window::fixed(7, 1_000).unwrap(),
            Window::fixed(-3, i64::MAX).unwrap(),
            Window::months(1, unit).unwrap(),
            Window::months_from(5, i64::MIN + 1, unit).unwrap(),
            Window::months(i64::MAX, unit).unwrap(),
            days_in("America/New_York", unit),
            days_in("-03:30", unit),
            Window::calendar(CalendarStep::Weeks(u32::MAX), "Asia/Kathmandu".parse().unwrap(), unit).unwrap(),
        ] {
            let (first, last) = (window.range_of(i64::MIN), window.range_of(i64::MAX));
            assert!(
                first.contains(i64::MIN) && first.is_saturated() && first.lower().is_none(),
                "{window:?}"
            );
            assert!(last.contains(i64::MAX) && last.is_saturated() && last.upper().is_none(), "{window:?}");
            assert_eq!(window.align_outwards(InstantRange::ALL).unwrap(), InstantRange::ALL);
        }
    }
}

#[test]
fn the_last_instant_is_in_the_window_of_the_one_before_it() {
    for window in [Window::fixed(i64::MAX - 10, 10).unwrap(), Window::fixed(0, 1).unwrap()] {
        let range = window.range_of(i64::MAX);
        assert!(range.contains(i64::MAX) && range.contains(i64::MAX - 1));
        assert_eq!(range, window.range_of(i64::MAX - 1));
    }
}

#[test]
fn a_width_or_step_of_none_is_refused() {
    assert_eq!(Window::fixed(0, 0).unwrap_err(), WindowError::WidthNotPositive(0));
    assert_eq!(Window::months(-1, TimeUnit::Second).unwrap_err(), WindowError::StepNotPositive(-1));
    let none = Window::calendar(CalendarStep::Days(0), "UTC".parse().unwrap(), TimeUnit::Second);
    assert_eq!(none.unwrap_err(), WindowError::StepNotPositive(0));
}

#[test]
fn windows_are_counted_and_listed() {
    let range = InstantRange::new(-86_400, 40 * 86_400);
    for (window, count) in [
        (Window::fixed(0, 86_400).unwrap(), 41),
        (Window::months(1, TimeUnit::Second).unwrap(), 3),
        (days_in("Europe/Paris", TimeUnit::Second), 42),
        (Window::Opaque(OpaqueWindow::new(|t| Some(t.div_euclid(86_400)))), 41),
    ] {
        assert_eq!(window.count_in(range, u64::MAX).unwrap(), count, "{window:?}");
        assert_eq!(window.count_in(range, 2).unwrap(), 2);
        assert_eq!(window.count_in(InstantRange::new(5, 5), 9).unwrap(), 0);
        let listed: Vec<_> = window.windows_in(range).map(Result::unwrap).collect();
        assert_eq!(listed.len() as u64, count);
        assert!(listed.windows(2).all(|pair| pair[0].end() == pair[1].start()));
        assert_eq!(
            window.align_outwards(range).unwrap(),
            InstantRange::new(listed[0].start(), listed[listed.len() - 1].end())
        );
        assert_eq!(window.end_after(listed[0].start(), count).unwrap(), listed[listed.len() - 1].end());
        assert_eq!(window.end_after(listed[0].start(), 0).unwrap(), listed[0].start());
    }
    // A range of windows is not walked through where it need not be.
    let second = Window::fixed(0, 1).unwrap();
    assert_eq!(second.count_in(InstantRange::ALL, u64::MAX).unwrap(), u64::MAX);
    assert_eq!(second.end_after(0, 320_000_000).unwrap(), 320_000_000);
}

fn windows() -> impl Strategy<Value = Window> {
    let unit = || prop::sample::select(UNITS.to_vec());
    let zone = prop::sample::select(vec![
        "UTC",
        "+05:45",
        "America/New_York",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Asia/Kathmandu",
        "America/St_Johns",
        "America/Sao_Paulo",
        "America/Havana",
        "America/Sitka",
        "Pacific/Kwajalein",
        "Europe/Paris",
    ]);
    let step = prop_oneof![
        (1..30_u32).prop_map(CalendarStep::Hours),
        (1..30_u32).prop_map(CalendarStep::Days),
        (1..9_u32).prop_map(CalendarStep::Weeks),
        (1..30_u32).prop_map(CalendarStep::Months),
    ];
    prop_oneof![
        (any::<i64>(), prop_oneof![1..i64::MAX, 1..1_000_000_i64])
            .prop_map(|(origin, width)| Window::fixed(origin, width).expect("a width")),
        (1..40_i64, any::<i64>(), unit())
            .prop_map(|(count, origin, unit)| Window::months_from(count, origin, unit).expect("a count")),
        (step, zone, unit(), prop_oneof![Just(0), -90_000..90_000_i64]).prop_map(
            |(step, zone, unit, shift)| {
                Window::calendar(step, zone.parse().expect("a zone"), unit)
                    .expect("a step")
                    .shifted(shift)
                    .expect("a small shift")
            }
        ),
        (1..1_000_000_i64)
            .prop_map(|width| Window::Opaque(OpaqueWindow::new(move |t| Some(t.div_euclid(width))))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn every_instant_is_in_its_window_and_neighbours_are_in_others(
        window in windows(), anywhere: i64, seconds in -9_000_000_000..8_000_000_000_i64, scale in 0..4_usize,
    ) {
        // Anywhere at all, and in the years 1684 to 2223 of one of the units.
        for instant in [anywhere, seconds.saturating_mul(UNITS[scale].per_second())] {
            let range = window.range_of(instant);
            prop_assert!(range.contains(instant));
            prop_assert_eq!(window.range_of(range.start()), range);
            prop_assert_eq!(window.range_of(range.last()), range);
            prop_assert_eq!(window.range_of(range.start().midpoint(range.last())), range);
            if let Some(end) = range.upper() {
                prop_assert_eq!(window.range_of(end).start(), end);
            }
            if let Some(start) = range.lower() {
                prop_assert_eq!(window.range_of(start - 1).end(), start);
            }
        }
    }

    #[test]
    fn shifted_windows_are_those_of_later_instants(
        origin: i64, width in 1..1_000_000_i64, by in -10_000_000..10_000_000_i64, instant in -1_i64 << 40..1 << 40,
    ) {
        for window in [
            Window::fixed(origin, width).unwrap(),
            Window::months(1, TimeUnit::Second).unwrap(),
            days_in("Europe/Paris", TimeUnit::Second),
        ] {
            let range = window.range_of(instant + by);
            let expected = InstantRange::saturating(i128::from(range.start()) - i128::from(by), i128::from(range.end()) - i128::from(by));
            prop_assert_eq!(window.shifted(by).unwrap().range_of(instant), expected);
        }
    }

    #[test]
    fn joined_ranges_have_the_same_instants(ranges in prop::collection::vec((-50..50_i64, 0..9_i64), 0..20)) {
        let ranges: Vec<_> = ranges.iter().map(|&(start, width)| InstantRange::new(start, start + width)).collect();
        let mut joined = ranges.clone();
        InstantRange::coalesce(&mut joined);
        for instant in -60..60 {
            prop_assert_eq!(
                joined.iter().filter(|range| range.contains(instant)).count(),
                usize::from(ranges.iter().any(|range| range.contains(instant)))
            );
        }
        prop_assert!(joined.windows(2).all(|pair| pair[0].end() < pair[1].start()));
    }
}

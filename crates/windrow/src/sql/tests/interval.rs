//! Lengths of time.

use std::time::Duration;

use expect_test::expect;
use proptest::prelude::*;

use crate::sql::{Interval, IntervalError};

const SECOND: i128 = 1_000_000_000;

#[test]
fn numbers_and_units_are_added_up() {
    let cases = [
        ("1 hour", 3600 * SECOND),
        ("30 s", 30 * SECOND),
        ("30s", 30 * SECOND),
        ("1h30m", 5400 * SECOND),
        ("1h 30m", 5400 * SECOND),
        ("  2 DAYS   3 Hours ", 51 * 3600 * SECOND),
        ("1.5 hours", 5400 * SECOND),
        (".5 s", SECOND / 2),
        ("1. s", SECOND),
        ("0.000000001 s", 1),
        ("1 week", 7 * 86_400 * SECOND),
        ("1 ms 2 us 3 ns", 1_002_003),
        ("5 µs", 5000),
        ("5 μs", 5000),
        ("-1 hour", -3600 * SECOND),
        ("1 day -1 hour", 23 * 3600 * SECOND),
        ("+1 min", 60 * SECOND),
        ("0 s", 0),
        ("10000000000 weeks", 10_000_000_000 * 7 * 86_400 * SECOND),
    ];
    for (text, nanos) in cases {
        assert_eq!(text.parse(), Ok(Interval::new(0, nanos)), "{text}");
    }
}

#[test]
fn months_and_years_are_months_and_never_days() {
    let cases = [
        ("1 month", 1),
        ("2mon", 2),
        ("3 MONTHS", 3),
        ("1 year", 12),
        ("1.5 years", 18),
        ("-2 y 1 mons", -23),
    ];
    for (text, months) in cases {
        assert_eq!(text.parse(), Ok(Interval::new(months, 0)), "{text}");
    }
    assert_eq!("1 month 1 day".parse(), Ok(Interval::new(1, 86_400 * SECOND)));
}

#[test]
fn nonsense_is_refused() {
    let texts = [
        "",
        "   ",
        "hour",
        "1",
        "1 hour 2",
        "one hour",
        "1 fortnight",
        "1M",
        "1 M",
        "1 month 1M",
        "1 hour, 2 min",
        "1-2 days",
        "--1 s",
        "1.2.3 s",
        ". s",
        "- s",
        "1e3 s",
        "0x10 s",
        "١ s",
        "02:00:00",
        "P1D",
        "1 hour ago",
        "0.5 months",
        "1.0000000001 s",
        "0.5 ns",
        "99999999999 months",
        "2000000000 months 2000000000 months",
        "99999999999999999999999999999999999999999 s",
        "170141183460469231731687303715884105727 days",
        "1.00000000000000000000000000000000000000001 s",
    ];
    let table: String =
        texts.iter().map(|text| format!("{text:?}: {}\n", text.parse::<Interval>().unwrap_err())).collect();
    expect![[r#"
        "": expected a number and a unit, `1 hour` say, found nothing
        "   ": expected a number and a unit, `1 hour` say, found nothing
        "hour": expected a number and a unit, `1 hour 30 minutes` say, found `hour`
        "1": `1` has no unit; write `1 s` or another one
        "1 hour 2": `2` has no unit; write `2 s` or another one
        "one hour": expected a number and a unit, `1 hour 30 minutes` say, found `one hour`
        "1 fortnight": `fortnight` is no unit of time; the units are ns, us, ms, s, min, hours, days, weeks, months and years
        "1M": `M` could be minutes or months; write `m` or `minutes`, or `months`
        "1 M": `M` could be minutes or months; write `m` or `minutes`, or `months`
        "1 month 1M": `M` could be minutes or months; write `m` or `minutes`, or `months`
        "1 hour, 2 min": expected a number and a unit, `1 hour 30 minutes` say, found `, 2 min`
        "1-2 days": expected a number and a unit, `1 hour 30 minutes` say, found `1-2`
        "--1 s": expected a number and a unit, `1 hour 30 minutes` say, found `--1`
        "1.2.3 s": expected a number and a unit, `1 hour 30 minutes` say, found `1.2.3`
        ". s": expected a number and a unit, `1 hour 30 minutes` say, found `.`
        "- s": expected a number and a unit, `1 hour 30 minutes` say, found `-`
        "1e3 s": `e` is no unit of time; the units are ns, us, ms, s, min, hours, days, weeks, months and years
        "0x10 s": `x` is no unit of time; the units are ns, us, ms, s, min, hours, days, weeks, months and years
        "١ s": expected a number and a unit, `1 hour 30 minutes` say, found `١ s`
        "02:00:00": `02` has no unit; write `02 s` or another one
        "P1D": expected a number and a unit, `1 hour 30 minutes` say, found `P1D`
        "1 hour ago": expected a number and a unit, `1 hour 30 minutes` say, found `ago`
        "0.5 months": `0.5` is too fine for its unit: a nanosecond and a month have no parts
        "1.0000000001 s": `1.0000000001` is too fine for its unit: a nanosecond and a month have no parts
        "0.5 ns": `0.5` is too fine for its unit: a nanosecond and a month have no parts
        "99999999999 months": the interval is too long
        "2000000000 months 2000000000 months": the interval is too long
        "99999999999999999999999999999999999999999 s": the interval is too long
        "170141183460469231731687303715884105727 days": the interval is too long
        "1.00000000000000000000000000000000000000001 s": the interval is too long
    "#]].assert_eq(&table);
}

#[test]
fn only_a_fixed_length_of_more_than_nothing_is_a_duration() {
    let cases = [
        ("1.5 s", Ok(Duration::new(1, 500_000_000))),
        ("36 hours", Ok(Duration::from_secs(129_600))),
        ("0 s", Err(IntervalError::NotPositive)),
        ("-1 s", Err(IntervalError::NotPositive)),
        ("1 month", Err(IntervalError::Calendar)),
        ("1 month -30 days", Err(IntervalError::Calendar)),
        ("99999999999999999999 s", Err(IntervalError::Overflow)),
    ];
    for (text, expected) in cases {
        assert_eq!(text.parse::<Interval>().unwrap().to_duration(), expected, "{text}");
    }
}

#[test]
fn an_interval_is_shown_in_whole_units() {
    let cases = [
        ("90 min", "1 hour 30 minutes"),
        ("0 s", "0 seconds"),
        ("25 h", "1 day 1 hour"),
        ("1.5 s", "1 second 500 milliseconds"),
        ("14 months", "1 year 2 months"),
        ("-90 s", "-1 minute -30 seconds"),
        ("1 month -1 day", "1 month -1 day"),
        ("1 us 1 ns", "1 microsecond 1 nanosecond"),
    ];
    for (text, shown) in cases {
        assert_eq!(text.parse::<Interval>().unwrap().to_string(), shown, "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_shown_is_read_back(months: i32, nanos: i128, small in -100_000_000_000_i128..100_000_000_000) {
        for nanos in [nanos, small, i128::MIN, i128::MAX] {
            for months in [months, 0, i32::MIN, i32::MAX] {
                let interval = Interval::new(months, nanos);
                prop_assert_eq!(interval.to_string().parse(), Ok(interval));
            }
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,20}|[0-9. +-]{0,50}[a-zµ]{0,3}") {
        let _ = text.parse::<Interval>();
    }
}

//! Calendar windows of local time, against what each single instant is cut down to: around every change of clocks of
//! the zones with the oddest rules, and the days of 2013 in New York.

use std::fmt::Debug;

use arrow_array::timezone::Tz;
use chrono::{
    DateTime, Datelike, MappedLocalTime, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone, Timelike,
};
use windrow_time::{CalendarStep, TimeUnit, Window, Zone};

const STEPS: [CalendarStep; 6] = [
    CalendarStep::Hours(1),
    CalendarStep::Days(1),
    CalendarStep::Weeks(1),
    CalendarStep::Months(1),
    CalendarStep::Months(3),
    CalendarStep::Months(12),
];

const FROM: i64 = -8_520_336_000; // 1700-01-01
const TO: i64 = 7_258_118_400; // 2200-01-01

/// The local time that an instant is cut down to, and the instant at which it was that time.
fn cut(second: i64, zone: Tz, step: CalendarStep) -> (NaiveDateTime, i64) {
    let at = DateTime::from_timestamp(second, 0).expect("a date");
    let offset = zone.offset_from_utc_datetime(&at.naive_utc());
    let local = at.naive_utc() + offset.fix();
    let date = local.date();
    let first_of = |month: u32| date.with_day(1).and_then(|date| date.with_month(month)).expect("a month");
    let floor = match step {
        CalendarStep::Hours(1) => date.and_hms_opt(local.hour(), 0, 0).expect("an hour"),
        CalendarStep::Days(1) => date.and_time(NaiveTime::MIN),
        CalendarStep::Weeks(1) => {
            (date - TimeDelta::days(date.weekday().num_days_from_monday().into())).and_time(NaiveTime::MIN)
        }
        CalendarStep::Months(1) => first_of(date.month()).and_time(NaiveTime::MIN),
        CalendarStep::Months(3) => first_of((date.month() - 1) / 3 * 3 + 1).and_time(NaiveTime::MIN),
        CalendarStep::Months(12) => first_of(1).and_time(NaiveTime::MIN),
        other => panic!("{other:?} is not tested"),
    };
    let value = match zone.offset_from_local_datetime(&floor) {
        MappedLocalTime::Single(offset) => floor - offset.fix(),
        MappedLocalTime::Ambiguous(before, _) if before.fix() == offset.fix() => floor - before.fix(),
        MappedLocalTime::Ambiguous(_, after) => floor - after.fix(),
        // As if clocks had not been put forward yet.
        MappedLocalTime::None => {
            let earlier = floor - TimeDelta::hours(30);
            let offset =
                zone.offset_from_local_datetime(&earlier).earliest().expect("one change in 30 hours");
            floor - offset.fix()
        }
    };
    (floor, value.and_utc().timestamp())
}

/// Every instant from `FROM` to `TO` at which clocks change.
fn changes(zone: &Zone) -> Vec<i64> {
    let mut changes = Vec::new();
    let mut at = FROM;
    while let Some(change) = zone.next_change(at, TO) {
        changes.push(change);
        at = change;
    }
    changes
}

struct Found {
    windows: usize,
    /// Windows with instants of more than one value, as clocks were put back over their end.
    mixed: usize,
    /// Windows that do not begin at their value, as clocks were put forward over it.
    begun_later: usize,
}

/// Checks the windows around `instants`.
fn check(name: &str, step: CalendarStep, instants: impl Iterator<Item = i64>) -> Found {
    let rules: Tz = name.parse().expect("a zone");
    let window = Window::calendar(step, name.parse().expect("a zone"), TimeUnit::Second).expect("a step");
    let mut found = Found { windows: 0, mixed: 0, begun_later: 0 };
    for instant in instants {
        let range = window.range_of(instant);
        let value = |second| cut(second, rules, step).1;
        let context = |what: &str| format!("{what}: {instant} in {range} of {step:?} in {name}");
        let (start, last) = (value(range.start()), value(range.last()));
        assert!(range.contains(instant), "{}", context("contains"));
        assert!(value(range.start() - 1) < start, "{}", context("begins where the value changes"));
        assert!(value(range.end()) > last, "{}", context("ends where the value changes"));
        let changes_inside = {
            let zone: Zone = name.parse().expect("a zone");
            let mut changes = vec![];
            let mut at = range.start();
            while let Some(change) = zone.next_change(at, range.end()) {
                changes.push(change);
                at = change;
            }
            changes
        };
        // All is proved where values change: at clock changes inside, and where the local begin of a step is.
        let inside: Vec<i64> = changes_inside
            .iter()
            .flat_map(|&change| [change - 1, change])
            .chain([range.start(), instant, range.start().midpoint(range.last()), range.last()])
            .filter(|&second| range.contains(second))
            .collect();
        let values: std::collections::BTreeSet<_> = inside.iter().map(|&second| value(second)).collect();
        let values_of_window = start..value(range.end());
        assert!(
            values.iter().all(|value| values_of_window.contains(value)),
            "{}: {values:?}",
            context("apart")
        );
        found.windows += 1;
        if values.len() > 1 {
            found.mixed += 1;
            let returns = changes_inside.iter().any(|&change| value(change) < value(change - 1));
            // Or clocks were put forward by more than a step, and cut down to what they show later again.
            let leaps = changes_inside.iter().any(|&change| value(change) > change);
            assert!(returns || leaps, "{}: {values:?}", context("one value where clocks only go forward"));
        }
        if start != range.start() {
            found.begun_later += 1;
            let gap = rules.offset_from_local_datetime(&cut(range.start(), rules, step).0);
            assert!(matches!(gap, MappedLocalTime::None), "{}", context("begins at its value"));
        }
    }
    found
}

fn around_changes(name: &str, step: CalendarStep) -> Found {
    let around = changes(&name.parse().expect("a zone"))
        .into_iter()
        .flat_map(|change| [-86_400, -3_601, -1, 0, 60, 1_799, 3_600, 90_000].map(|offset| change + offset));
    check(name, step, around.chain((FROM..TO).step_by(200 * 86_400 + 4_321)))
}

#[test]
fn windows_around_every_change_of_clocks_are_what_the_instants_are_cut_down_to() {
    for (name, mixed) in [
        ("UTC", false),
        ("+05:45", false),
        ("-09:30", false),
        ("America/New_York", false),
        ("Europe/Paris", false),
        ("Europe/Amsterdam", false),
        ("Asia/Kathmandu", false),
        ("Australia/Lord_Howe", false),
        ("Africa/Monrovia", false),
        ("Pacific/Apia", false),
        ("Pacific/Kiritimati", false),
        ("Asia/Manila", false),
        ("America/Havana", false),
        ("America/Sao_Paulo", false),
        ("Africa/Casablanca", false),
        ("Asia/Gaza", false),
        ("Antarctica/Troll", false),
        ("Pacific/Kwajalein", false),
        // Clocks were put back one minute after midnight, and by a day that began at half past three.
        ("America/St_Johns", true),
        ("America/Sitka", true),
    ] {
        let mut mixes = 0;
        for step in STEPS {
            let found = around_changes(name, step);
            assert!(found.windows > 100);
            mixes += found.mixed;
        }
        assert_eq!(mixes > 0, mixed, "{name}: {mixes} windows with instants of several values");
    }
}

fn assert_all<T: PartialEq + Debug>(found: &[T], expected: &T) {
    assert!(found.iter().all(|value| value == expected), "{found:?} are not all {expected:?}");
}

#[test]
fn the_days_of_2013_in_new_york_have_24_hours_but_for_two() {
    let second = |text: &str| DateTime::parse_from_rfc3339(text).expect("an instant").timestamp();
    let (start, end) = (second("2013-01-01T00:00:00-05:00"), second("2014-01-01T00:00:00-05:00"));
    for unit in [TimeUnit::Second, TimeUnit::Nanosecond] {
        let scale = unit.per_second();
        let zone = || "America/New_York".parse().unwrap();
        let year = windrow_time::InstantRange::new(start * scale, end * scale);
        let windows = |step| -> Vec<_> {
            let window = Window::calendar(step, zone(), unit).unwrap();
            window.windows_in(year).map(Result::unwrap).collect()
        };
        let days = windows(CalendarStep::Days(1));
        assert_eq!(days.len(), 365);
        assert_eq!(days[68].start(), second("2013-03-10T00:00:00-05:00") * scale);
        assert_eq!(days[68].end(), second("2013-03-11T00:00:00-04:00") * scale);
        assert_eq!(days[306].start(), second("2013-11-03T00:00:00-04:00") * scale);
        assert_eq!(days[306].end(), second("2013-11-04T00:00:00-05:00") * scale);
        let hours: Vec<_> = days.iter().map(|day| day.width().unwrap() / 3_600 / scale).collect();
        assert_eq!((hours[68], hours[306]), (23, 25));
        assert_all(&[&hours[..68], &hours[69..306], &hours[307..]].concat(), &24);

        // The hour from one to two happened twice on 3 November, and the one from two to three not on 10 March.
        assert_eq!(windows(CalendarStep::Hours(1)).len(), 365 * 24);
        let months = windows(CalendarStep::Months(1));
        assert_eq!(months.len(), 12);
        assert_eq!(months[2].width(), Some((31 * 24 - 1) * 3_600 * scale));
        assert_eq!(months[10].width(), Some((30 * 24 + 1) * 3_600 * scale));
        assert_eq!(months[3].start(), second("2013-04-01T00:00:00-04:00") * scale);
        let weeks = windows(CalendarStep::Weeks(1));
        assert_eq!(weeks.len(), 53);
        assert_eq!(weeks[0].start(), second("2012-12-31T00:00:00-05:00") * scale);
        let whole = windows(CalendarStep::Months(12));
        assert_eq!(whole, [year]);
    }
}

#[test]
fn a_day_that_did_not_happen_is_in_no_window() {
    // Samoa went from 29 to 31 December 2011.
    let window =
        Window::calendar(CalendarStep::Days(1), "Pacific/Apia".parse().unwrap(), TimeUnit::Second).unwrap();
    let second = |text: &str| DateTime::parse_from_rfc3339(text).expect("an instant").timestamp();
    let change = second("2011-12-30T10:00:00Z");
    assert_eq!(window.range_of(change - 1), windrow_time::InstantRange::new(change - 86_400, change));
    assert_eq!(window.range_of(change), windrow_time::InstantRange::new(change, change + 86_400));
}

/// All zones: minutes of work even for an optimised build, so not part of every run.
///
/// `cargo test --release -p windrow-time --test calendars -- --ignored --nocapture`
#[test]
#[ignore = "all zones of the database; minutes even in a release build"]
fn windows_of_all_zones() {
    for zone in chrono_tz::TZ_VARIANTS {
        let name = zone.name();
        for step in STEPS {
            let found = around_changes(name, step);
            if found.mixed + found.begun_later > 0 {
                println!(
                    "{name} {step:?}: {} windows, {} mixed, {} begun later",
                    found.windows, found.mixed, found.begun_later
                );
            }
        }
    }
}

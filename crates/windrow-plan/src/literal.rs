//! Literals of time, in nanoseconds.

use arrow::datatypes::IntervalMonthDayNano;
use datafusion::common::ScalarValue;
use windrow_time::TimeUnit;

pub(crate) const NANOS_PER_HOUR: i128 = 3_600_000_000_000;
pub(crate) const NANOS_PER_DAY: i128 = 24 * NANOS_PER_HOUR;

/// Whole months, and nanoseconds.
pub(crate) fn interval(value: &ScalarValue) -> Option<(i32, i128)> {
    match value {
        ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano { months, days, nanoseconds })) => {
            Some((*months, i128::from(*days) * NANOS_PER_DAY + i128::from(*nanoseconds)))
        }
        ScalarValue::IntervalDayTime(Some(value)) => {
            Some((0, i128::from(value.days) * NANOS_PER_DAY + i128::from(value.milliseconds) * 1_000_000))
        }
        ScalarValue::IntervalYearMonth(Some(months)) => Some((*months, 0)),
        _ => None,
    }
}

pub(crate) fn has_days(value: &ScalarValue) -> bool {
    match value {
        ScalarValue::IntervalMonthDayNano(Some(value)) => value.days != 0,
        ScalarValue::IntervalDayTime(Some(value)) => value.days != 0,
        _ => false,
    }
}

pub(crate) fn instant_nanos(value: &ScalarValue) -> Option<i128> {
    let (instant, unit) = match value {
        ScalarValue::TimestampSecond(Some(t), _) => (*t, TimeUnit::Second),
        ScalarValue::TimestampMillisecond(Some(t), _) => (*t, TimeUnit::Millisecond),
        ScalarValue::TimestampMicrosecond(Some(t), _) => (*t, TimeUnit::Microsecond),
        ScalarValue::TimestampNanosecond(Some(t), _) => (*t, TimeUnit::Nanosecond),
        _ => return None,
    };
    Some(i128::from(instant) * nanos(unit))
}

pub(crate) fn nanos(unit: TimeUnit) -> i128 {
    unit.nanos().into()
}

/// `nanos` as a whole number of `unit`.
pub(crate) fn exact(nanos: i128, unit: TimeUnit) -> Option<i64> {
    let per = i128::from(unit.nanos());
    (nanos % per == 0).then(|| i64::try_from(nanos / per).ok())?
}

pub(crate) fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

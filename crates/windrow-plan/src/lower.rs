//! From a window expression to the windows that it makes.

use arrow::datatypes::{DataType, IntervalMonthDayNano};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Cast, Expr};
use windrow_time::{TimeUnit, Window};

use crate::monotone::is_utc;

const NANOS_PER_DAY: i128 = 86_400_000_000_000;

/// The grid that `expr` computes of a column in `unit`, where it has one of the known shapes. The answer is a
/// proposal: whoever uses it compares it with what the expression evaluates to.
pub(crate) fn propose_grid(expr: &Expr, unit: TimeUnit, column_type: &DataType) -> Option<Window> {
    let in_utc = match column_type {
        DataType::Timestamp(_, zone) => zone.as_deref().is_none_or(is_utc),
        _ => false,
    };
    match expr {
        Expr::Column(_) => Window::fixed(0, 1).ok(),
        Expr::Alias(alias) => propose_grid(&alias.expr, unit, column_type),
        Expr::Cast(Cast { expr, .. }) => propose_grid(expr, unit, column_type),
        Expr::ScalarFunction(call) => match (call.name(), call.args.as_slice()) {
            ("date_bin", [width, source]) if is_column(source) => date_bin(width, None, unit),
            ("date_bin", [width, source, origin]) if is_column(source) => date_bin(width, Some(origin), unit),
            ("date_trunc", [_, source]) if is_column(source) && in_utc => date_trunc(call, unit),
            _ => None,
        },
        _ => None,
    }
}

fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Cast(Cast { expr, .. }) => is_column(expr),
        _ => false,
    }
}

fn date_bin(width: &Expr, origin: Option<&Expr>, unit: TimeUnit) -> Option<Window> {
    let Expr::Literal(width, _) = width else { return None };
    let (months, nanos) = interval(width)?;
    if months != 0 {
        return (nanos == 0 && origin.is_none()).then(|| Window::months(months.into(), unit).ok())?;
    }
    let origin = match origin {
        None => 0,
        Some(Expr::Literal(origin, _)) => instant_nanos(origin)?,
        Some(_) => return None,
    };
    Window::fixed(exact(origin, unit)?, exact(nanos, unit)?).ok()
}

fn date_trunc(call: &ScalarFunction, unit: TimeUnit) -> Option<Window> {
    let Expr::Literal(granularity, _) = &call.args[0] else { return None };
    let fixed = |origin: i128, width: i128| Window::fixed(exact(origin, unit)?, exact(width, unit)?).ok();
    match granularity.try_as_str().flatten()?.to_ascii_lowercase().as_str() {
        "microsecond" => fixed(0, 1_000),
        "millisecond" => fixed(0, 1_000_000),
        "second" => fixed(0, 1_000_000_000),
        "minute" => fixed(0, 60_000_000_000),
        "hour" => fixed(0, 3_600_000_000_000),
        "day" => fixed(0, NANOS_PER_DAY),
        // Weeks begin on a Monday, such as 1969-12-29.
        "week" => fixed(-3 * NANOS_PER_DAY, 7 * NANOS_PER_DAY),
        "month" => Window::months(1, unit).ok(),
        "quarter" => Window::months(3, unit).ok(),
        "year" => Window::months(12, unit).ok(),
        _ => None,
    }
}

/// Whole months, and nanoseconds.
fn interval(value: &ScalarValue) -> Option<(i32, i128)> {
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

fn instant_nanos(value: &ScalarValue) -> Option<i128> {
    let (instant, unit) = match value {
        ScalarValue::TimestampSecond(Some(t), _) => (*t, TimeUnit::Second),
        ScalarValue::TimestampMillisecond(Some(t), _) => (*t, TimeUnit::Millisecond),
        ScalarValue::TimestampMicrosecond(Some(t), _) => (*t, TimeUnit::Microsecond),
        ScalarValue::TimestampNanosecond(Some(t), _) => (*t, TimeUnit::Nanosecond),
        _ => return None,
    };
    Some(i128::from(instant) * i128::from(unit.nanos()))
}

/// `nanos` as a whole number of `unit`.
fn exact(nanos: i128, unit: TimeUnit) -> Option<i64> {
    let per = i128::from(unit.nanos());
    (nanos % per == 0).then(|| i64::try_from(nanos / per).ok())?
}

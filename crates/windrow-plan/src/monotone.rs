//! Whether an expression of the time index never decreases while time goes on.

use arrow::datatypes::DataType;
use datafusion::logical_expr::expr::{BinaryExpr, Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::{Expr, Operator};

/// What is known of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Monotonicity {
    /// It never decreases.
    Monotone,
    /// It does, by what this part of it means.
    Decreasing(String),
    /// Nothing is known of this part; only its values can tell.
    Unknown(String),
}

use Monotonicity::{Decreasing, Monotone, Unknown};

/// What is known of `expr`, an expression of one timestamp column of type `column` and literals.
pub(crate) fn monotonicity(expr: &Expr, column: &DataType) -> Monotonicity {
    match expr {
        Expr::Column(_) => Monotone,
        Expr::Alias(alias) => monotonicity(&alias.expr, column),
        Expr::Cast(Cast { expr: inner, field }) | Expr::TryCast(TryCast { expr: inner, field }) => {
            cast(inner, field.data_type(), column)
        }
        Expr::ScalarFunction(call) => function(call, column),
        Expr::Negative(inner) => Decreasing(format!("-({inner})")),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::Plus if is_constant(right) => interval_shift(left, expr, column),
            Operator::Plus if is_constant(left) => interval_shift(right, expr, column),
            Operator::Minus if is_constant(right) => interval_shift(left, expr, column),
            Operator::Minus if is_constant(left) => Decreasing(expr.to_string()),
            Operator::Modulo => Decreasing(expr.to_string()),
            _ => Unknown(expr.to_string()),
        },
        other => Unknown(other.to_string()),
    }
}

fn interval_shift(inner: &Expr, whole: &Expr, column: &DataType) -> Monotonicity {
    match monotonicity(inner, column) {
        Unknown(_) => Unknown(whole.to_string()),
        known => known,
    }
}

fn cast(inner: &Expr, to: &DataType, column: &DataType) -> Monotonicity {
    let in_zone =
        |data_type: &DataType| matches!(data_type, DataType::Timestamp(_, Some(zone)) if !is_utc(zone));
    match to {
        DataType::Int64 => monotonicity(inner, column),
        // Local time repeats itself where clocks are put back, so a change between local and absolute time is not
        // monotone. A change of zone, or of unit, leaves the instant as it is.
        DataType::Timestamp(..) if in_zone(to) == in_zone(column) => monotonicity(inner, column),
        DataType::Timestamp(..) => Decreasing(format!("the change of time zone CAST({inner} AS {to})")),
        _ => Unknown(format!("CAST({inner} AS {to})")),
    }
}

fn function(call: &ScalarFunction, column: &DataType) -> Monotonicity {
    let [first, rest @ ..] = call.args.as_slice() else { return Unknown(format!("{}()", call.name())) };
    match (call.name(), rest) {
        ("date_bin", [source, origin @ ..]) if is_constant(first) && origin.iter().all(is_constant) => {
            monotonicity(source, column)
        }
        ("date_trunc", [source]) if is_constant(first) => monotonicity(source, column),
        ("date_part", [_]) => Decreasing(Expr::ScalarFunction(call.clone()).to_string()),
        _ => Unknown(Expr::ScalarFunction(call.clone()).to_string()),
    }
}

pub(crate) fn is_constant(expr: &Expr) -> bool {
    expr.column_refs().is_empty() && !expr.is_volatile()
}

pub(crate) fn is_utc(zone: &str) -> bool {
    matches!(zone, "UTC" | "utc" | "Z" | "+00:00" | "+0000" | "+00" | "Etc/UTC")
}

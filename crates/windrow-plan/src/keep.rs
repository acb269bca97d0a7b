//! What new rows have no value for, from the rows that are there.

use std::sync::Arc;

use datafusion::common::{Column, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

/// The name of the new rows in a plan.
const NEW: &str = "windrow new";
/// The name of the rows that are there.
const OLD: &str = "windrow old";

/// `new` with the values of `old` in the columns `kept` where a new row has NULL and an old one has the same `key`, NULLs
/// being equal. Both have the columns of one table, and `old` at most one row of each key.
///
/// # Errors
/// When the columns do not agree.
pub fn keep_values(new: LogicalPlan, old: LogicalPlan, key: &[usize], kept: &[usize]) -> Result<LogicalPlan> {
    let schema = Arc::clone(new.schema());
    let new = LogicalPlanBuilder::from(new).alias(NEW)?.build()?;
    let old = LogicalPlanBuilder::from(old).alias(OLD)?.build()?;
    let column = |side: &str, index: usize| Column::new(Some(side), schema.field(index).name());
    let on = |side: &str| key.iter().map(|&index| column(side, index)).collect::<Vec<_>>();
    let columns = schema.fields().iter().enumerate().map(|(index, field)| {
        let value = Expr::Column(column(NEW, index));
        let value = match kept.contains(&index) {
            true => coalesce(vec![value, Expr::Column(column(OLD, index))]),
            false => value,
        };
        value.alias(field.name())
    });
    LogicalPlanBuilder::from(new)
        .join_detailed(old, JoinType::Left, (on(NEW), on(OLD)), None, NullEquality::NullEqualsNull)?
        .project(columns.collect::<Vec<_>>())?
        .build()
}

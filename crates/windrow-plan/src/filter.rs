//! Limiting a query to some windows.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, ExprSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use windrow_time::InstantRange;

/// `column` lies in one of `ranges`: an OR of `lower <= column AND column < upper`, with literals of the column's own
/// type, unit and time zone.
///
/// # Errors
/// When `data_type` is not a timestamp.
pub fn in_ranges(column: Column, data_type: &DataType, ranges: &[InstantRange]) -> Result<Expr> {
    let column = Expr::Column(column);
    let literal =
        |instant: i64| -> Result<Expr> { Ok(lit(ScalarValue::Int64(Some(instant)).cast_to(data_type)?)) };
    let mut any: Option<Expr> = None;
    for range in ranges.iter().filter(|range| !range.is_empty()) {
        let lower = range.lower().map(literal).transpose()?.map(|bound| column.clone().gt_eq(bound));
        let upper = range.upper().map(literal).transpose()?.map(|bound| column.clone().lt(bound));
        let within = match (lower, upper) {
            (Some(lower), Some(upper)) => lower.and(upper),
            (Some(bound), None) | (None, Some(bound)) => bound,
            (None, None) => column.clone().is_not_null(),
        };
        any = Some(match any {
            Some(others) => others.or(within),
            None => within,
        });
    }
    Ok(any.unwrap_or_else(|| lit(false)))
}

/// `plan` with the time index of its one scan limited to `ranges`. The filter lies directly over the scan, from where
/// DataFusion pushes it into the scan.
///
/// # Errors
/// When the scan has no column of that name.
pub fn limit_to_ranges(plan: &LogicalPlan, time_index: &str, ranges: &[InstantRange]) -> Result<LogicalPlan> {
    let limited = plan.clone().transform_up(|node| {
        let LogicalPlan::TableScan(scan) = &node else { return Ok(Transformed::no(node)) };
        let column = Column::new(Some(scan.table_name.clone()), time_index);
        let data_type = scan.projected_schema.field_from_column(&column)?.data_type().clone();
        let predicate = in_ranges(column, &data_type, ranges)?;
        Ok(Transformed::yes(LogicalPlanBuilder::from(node).filter(predicate)?.build()?))
    })?;
    Ok(limited.data)
}

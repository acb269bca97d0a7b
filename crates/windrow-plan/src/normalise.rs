//! One form for queries that say the same.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, ResolvedTableReference, TableReference};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, LogicalPlan, LogicalPlanBuilder, TableScan, TableScanBuilder,
};

/// `plan` with every table under its full name (`catalog.schema.table`), in subqueries too; `SELECT DISTINCT` as the
/// `GROUP BY` of all columns that it is; and the casts in place that DataFusion finds missing, without which the type of a
/// column can be another one than that of the values. Names of columns do not change: a scan keeps the name that the query
/// gave it as an alias.
///
/// # Errors
/// When the plan does not hold together.
pub fn normalise(plan: LogicalPlan, state: &SessionState) -> Result<LogicalPlan> {
    let catalog = &state.config_options().catalog;
    let normal = with_full_names(plan, &catalog.default_catalog, &catalog.default_schema)?;
    state.analyzer().execute_and_check(normal, state.config_options(), |_, _| {})
}

fn with_full_names(plan: LogicalPlan, default_catalog: &str, default_schema: &str) -> Result<LogicalPlan> {
    let normal = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let schema = Arc::clone(input.schema());
            let columns = schema.iter().map(|field| Expr::Column(Column::from(field)));
            let groups = Aggregate::try_new(input, columns.collect(), Vec::new())?;
            Ok(Transformed::yes(LogicalPlan::Aggregate(groups)))
        }
        LogicalPlan::TableScan(scan) => {
            let full = full_name(&scan.table_name, default_catalog, default_schema);
            if full == scan.table_name {
                return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
            }
            let TableScan { table_name, source, projection, filters, fetch, .. } = scan;
            let scan = TableScanBuilder::new(full, source)
                .with_projection(projection)
                .with_filters(filters)
                .with_fetch(fetch)
                .build()?;
            let named = LogicalPlanBuilder::from(LogicalPlan::TableScan(scan)).alias(table_name)?;
            Ok(Transformed::yes(named.build()?))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(normal.data)
}

fn full_name(name: &TableReference, default_catalog: &str, default_schema: &str) -> TableReference {
    let ResolvedTableReference { catalog, schema, table } =
        name.clone().resolve(default_catalog, default_schema);
    TableReference::Full { catalog, schema, table }
}

//! Which nodes a query has, and where its columns come from.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, TableReference};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, Exists, InSubquery};
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, TableScan, Volatility};

/// The one chain of nodes that a flow with time windows consists of.
#[derive(Debug)]
pub(crate) struct Chain<'a> {
    pub(crate) scan: &'a TableScan,
    pub(crate) aggregate: Option<&'a Aggregate>,
    /// Whether a filter lies above the aggregate.
    pub(crate) having: bool,
}

/// The chain of `plan`, or the name of the first node that keeps it from being one.
pub(crate) fn chain(plan: &LogicalPlan) -> Result<Result<Chain<'_>, String>> {
    if has_subquery(plan)? {
        return Ok(Err("a subquery in an expression".into()));
    }
    let (mut aggregate, mut having, mut filtered) = (None, false, false);
    let mut node = plan;
    loop {
        node = match node {
            LogicalPlan::Projection(projection) => &projection.input,
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            LogicalPlan::Filter(filter) => {
                filtered = true;
                &filter.input
            }
            LogicalPlan::Aggregate(found) if aggregate.is_none() => {
                aggregate = Some(found);
                having = std::mem::take(&mut filtered);
                &found.input
            }
            LogicalPlan::TableScan(scan) => return Ok(Ok(Chain { scan, aggregate, having })),
            other => return Ok(Err(describe(other))),
        };
    }
}

fn describe(node: &LogicalPlan) -> String {
    match node {
        LogicalPlan::Aggregate(_) => "an aggregate over an aggregate",
        LogicalPlan::Join(_) => "a join",
        LogicalPlan::Window(_) => "a window function",
        LogicalPlan::Union(_) => "a union",
        LogicalPlan::Distinct(_) => "DISTINCT",
        LogicalPlan::Limit(_) => "a limit",
        LogicalPlan::Sort(_) => "a sort",
        LogicalPlan::Unnest(_) => "UNNEST",
        LogicalPlan::RecursiveQuery(_) => "a recursive query",
        LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => "no table",
        LogicalPlan::Subquery(_) => "a subquery",
        other => return other.display().to_string(),
    }
    .into()
}

fn has_subquery(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            found |= expr.exists(|e| {
                Ok(matches!(
                    e,
                    Expr::ScalarSubquery(_)
                        | Expr::InSubquery(InSubquery { .. })
                        | Expr::Exists(Exists { .. })
                ))
            })?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(found)
}

/// Every table that the plan reads, subqueries included.
///
/// # Errors
/// When the plan cannot be walked.
pub fn scanned_tables(plan: &LogicalPlan) -> Result<Vec<TableReference>> {
    let mut tables = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && !tables.contains(&scan.table_name)
        {
            tables.push(scan.table_name.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(tables)
}

/// The name of a function in the plan whose value depends on when, or how often, it is called: `now`, `random`.
///
/// # Errors
/// When the plan cannot be walked.
pub fn unstable_function(plan: &LogicalPlan) -> Result<Option<String>> {
    let mut found = None;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|e| {
                let (name, signature) = match e {
                    Expr::ScalarFunction(call) => (call.name(), call.func.signature()),
                    Expr::AggregateFunction(AggregateFunction { func, .. }) => {
                        (func.name(), func.signature())
                    }
                    _ => return Ok(TreeNodeRecursion::Continue),
                };
                if signature.volatility == Volatility::Immutable {
                    return Ok(TreeNodeRecursion::Continue);
                }
                found = Some(name.to_owned());
                Ok(TreeNodeRecursion::Stop)
            })
        })
    })?;
    Ok(found)
}

/// `expr`, an expression over the output of `input`, as an expression over the columns of the scan below it. `None`
/// where an aggregate lies between.
pub(crate) fn over_scan(expr: Expr, input: &LogicalPlan) -> Result<Option<Expr>> {
    over(expr, input, |node| matches!(node, LogicalPlan::TableScan(_)))
}

/// `expr`, an expression over the output of `input`, as an expression over the columns of the aggregate below it.
/// `None` where there is none.
pub(crate) fn over_aggregate(expr: Expr, input: &LogicalPlan) -> Result<Option<Expr>> {
    over(expr, input, |node| matches!(node, LogicalPlan::Aggregate(_)))
}

fn over(expr: Expr, input: &LogicalPlan, is_there: fn(&LogicalPlan) -> bool) -> Result<Option<Expr>> {
    match input {
        node if is_there(node) => Ok(Some(expr)),
        LogicalPlan::Filter(filter) => over(expr, &filter.input, is_there),
        LogicalPlan::SubqueryAlias(alias) => {
            let expr = replace_columns(expr, &alias.schema, |index| {
                let (qualifier, field) = alias.input.schema().qualified_field(index);
                Expr::Column(Column::from((qualifier, field.as_ref())))
            })?;
            over(expr, &alias.input, is_there)
        }
        LogicalPlan::Projection(projection) => {
            let expr =
                replace_columns(expr, &projection.schema, |index| projection.expr[index].clone().unalias())?;
            over(expr, &projection.input, is_there)
        }
        _ => Ok(None),
    }
}

/// `expr` with the columns of `schema` replaced, by their positions.
pub(crate) fn replace_columns(expr: Expr, schema: &DFSchema, with: impl Fn(usize) -> Expr) -> Result<Expr> {
    map_columns(expr, |column| schema.maybe_index_of_column(column).map(&with))
}

/// `expr` with the columns replaced that `with` has something for.
pub(crate) fn map_columns(expr: Expr, with: impl Fn(&Column) -> Option<Expr>) -> Result<Expr> {
    let mapped = expr.transform_up(|e| {
        let replaced = match &e {
            Expr::Column(column) => with(column),
            _ => None,
        };
        Ok(replaced.map_or_else(|| Transformed::no(e), Transformed::yes))
    })?;
    Ok(mapped.data)
}

/// For each output column of `plan`, the column of its aggregate that it gives unchanged, if it does.
pub(crate) fn outputs_over_aggregate(plan: &LogicalPlan) -> Vec<Option<usize>> {
    match plan {
        LogicalPlan::Aggregate(aggregate) => (0..aggregate.schema.fields().len()).map(Some).collect(),
        LogicalPlan::Filter(filter) => outputs_over_aggregate(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => outputs_over_aggregate(&alias.input),
        LogicalPlan::Projection(projection) => {
            let below = outputs_over_aggregate(&projection.input);
            let schema = projection.input.schema();
            projection
                .expr
                .iter()
                .map(|expr| match expr.clone().unalias_nested().data {
                    Expr::Column(column) => schema
                        .maybe_index_of_column(&column)
                        .and_then(|index| below.get(index).copied().flatten()),
                    _ => None,
                })
                .collect()
        }
        other => vec![None; other.schema().fields().len()],
    }
}

/// The outputs for which a query may give one of several values, so that two computations over the same rows may differ:
/// approximate percentiles, which depend a little on how rows were divided among states; any value of a group; and what
/// depends on the order of rows where no `ORDER BY` says which.
///
/// # Errors
/// When the plan cannot be walked.
pub fn ambiguous_outputs(plan: &LogicalPlan) -> Result<Vec<usize>> {
    const AMBIGUOUS: &[&str] =
        &["any_value", "approx_median", "approx_percentile_cont", "approx_percentile_cont_with_weight"];
    const UNLESS_ORDERED: &[&str] = &["array_agg", "first_value", "last_value", "nth_value", "string_agg"];
    let Ok(Chain { aggregate: Some(aggregate), .. }) = chain(plan)? else { return Ok(Vec::new()) };
    let is_ambiguous = |column: &Column| {
        let index = aggregate.schema.maybe_index_of_column(column);
        let call =
            index.and_then(|index| aggregate.aggr_expr.get(index.checked_sub(aggregate.group_expr.len())?));
        match call.map(|call| call.clone().unalias()) {
            Some(Expr::AggregateFunction(AggregateFunction { func, params })) => {
                AMBIGUOUS.contains(&func.name())
                    || (UNLESS_ORDERED.contains(&func.name()) && params.order_by.is_empty())
            }
            _ => false,
        }
    };
    let mut ambiguous = Vec::new();
    for index in 0..plan.schema().fields().len() {
        let output = Expr::Column(Column::from(plan.schema().qualified_field(index)));
        if over_aggregate(output, plan)?.is_some_and(|expr| expr.column_refs().into_iter().any(is_ambiguous))
        {
            ambiguous.push(index);
        }
    }
    Ok(ambiguous)
}

//! Merging the aggregate of new rows with what the sink has.
//!
//! A sum of sums is a sum, a minimum of minima a minimum: the rows that the sink has for the touched windows and the
//! rows that the query gives for the new source rows are put together and aggregated once more, by the same group
//! keys and with the same functions (counts are summed). The result is the whole content of these windows, so a merge
//! *replaces* windows just as a repair does. Because the query's own accumulators do the merging, order (NaN, −0),
//! NULLs, equal keys and overflow are theirs.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::error::Result;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, AggregateFunctionParams};
use datafusion::logical_expr::{AggregateUDF, Expr, LogicalPlan, LogicalPlanBuilder, cast};

use crate::shape::{chain, outputs_over_aggregate};
use crate::sink::as_stored;
use crate::{PlanError, SinkMatch};

/// How each output of a query is merged.
#[derive(Debug, Clone)]
pub struct Merge {
    outputs: Vec<MergedOutput>,
}

#[derive(Debug, Clone)]
enum MergedOutput {
    Key,
    Aggregate(Arc<AggregateUDF>),
}

/// Why a query cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotMergeable {
    /// The query has a part that a merged query must not have.
    Shape(String),
    /// There are no group keys.
    NoGroups,
    /// Groups that a HAVING left out are not in the sink, so they cannot be merged into.
    Having,
    /// A group key is no column of the result, so groups cannot be told apart in the sink.
    KeyNotInOutput(String),
    /// An output is computed from aggregates instead of being one.
    NotAnAggregate(String),
    /// The value of an aggregate does not say enough to merge it.
    Aggregate(String),
    /// What the sink stores of an output is not all of it.
    Lossy(String),
    /// Two outputs have one name.
    DuplicateName(String),
}

impl fmt::Display for NotMergeable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(node) => write!(f, "the query has {node}"),
            Self::NoGroups => f.write_str("the query has no GROUP BY"),
            Self::Having => {
                f.write_str("groups that HAVING leaves out are not in the sink to be merged into")
            }
            Self::KeyNotInOutput(key) => write!(f, "the group key {key} is not in the SELECT list"),
            Self::NotAnAggregate(name) => write!(f, "the column {name} is computed from aggregates"),
            Self::Aggregate(call) => write!(f, "{call} cannot be merged from its values alone"),
            Self::Lossy(message) => f.write_str(message),
            Self::DuplicateName(name) => write!(f, "two columns are named {name}"),
        }
    }
}

impl Merge {
    /// How `plan` is merged, or all reasons why it cannot be.
    ///
    /// # Errors
    /// When the plan cannot be walked.
    pub fn analyse(plan: &LogicalPlan) -> Result<Result<Self, Vec<NotMergeable>>> {
        let chain = match chain(plan)? {
            Ok(chain) => chain,
            Err(node) => return Ok(Err(vec![NotMergeable::Shape(node)])),
        };
        let Some(aggregate) = chain.aggregate.filter(|aggregate| !aggregate.group_expr.is_empty()) else {
            return Ok(Err(vec![NotMergeable::NoGroups]));
        };
        if let [Expr::GroupingSet(_)] = aggregate.group_expr.as_slice() {
            return Ok(Err(vec![NotMergeable::Shape("grouping sets".into())]));
        }
        let mut reasons = Vec::new();
        if chain.having {
            reasons.push(NotMergeable::Having);
        }
        let keys = aggregate.group_expr.len();
        let sources = outputs_over_aggregate(plan);
        for (index, key) in aggregate.group_expr.iter().enumerate() {
            if !sources.contains(&Some(index)) {
                reasons.push(NotMergeable::KeyNotInOutput(key.to_string()));
            }
        }
        let fields = plan.schema().fields();
        let mut outputs = Vec::with_capacity(sources.len());
        for (index, source) in sources.into_iter().enumerate() {
            let name = fields[index].name();
            if fields.iter().take(index).any(|earlier| earlier.name() == name) {
                reasons.push(NotMergeable::DuplicateName(name.clone()));
            }
            match source {
                None => reasons.push(NotMergeable::NotAnAggregate(name.clone())),
                Some(column) if column < keys => outputs.push(MergedOutput::Key),
                Some(column) => match merge_function(&aggregate.aggr_expr[column - keys]) {
                    Ok(function) => outputs.push(MergedOutput::Aggregate(function)),
                    Err(reason) => reasons.push(reason),
                },
            }
        }
        Ok(if reasons.is_empty() { Ok(Self { outputs }) } else { Err(reasons) })
    }

    /// The plan of the merged rows: `delta` (the query over the new source rows) together with `sink` (a scan of the
    /// sink's rows in the touched windows), aggregated once more. It has the output columns of `delta`.
    ///
    /// # Errors
    /// When the sink does not have the columns that `matched` speaks of.
    pub fn plan(
        &self,
        delta: LogicalPlan,
        sink: LogicalPlan,
        matched: &SinkMatch,
    ) -> Result<LogicalPlan, PlanError> {
        let output = Arc::clone(delta.schema());
        let sink_schema = Arc::clone(sink.schema());
        let known = (0..self.outputs.len())
            .map(|index| {
                let column = matched.column_of(index).map(|column| sink_schema.qualified_field(column));
                let column = column.ok_or_else(|| {
                    datafusion::common::plan_datafusion_err!("output {index} has no column in the sink")
                })?;
                let value = Expr::Column(Column::from(column));
                Ok(as_stored(value, column.1.data_type(), output.field(index).data_type())
                    .alias(merged_name(index)))
            })
            .collect::<Result<Vec<_>>>()?;
        let fresh = (0..self.outputs.len())
            .map(|index| Expr::Column(Column::from(output.qualified_field(index))).alias(merged_name(index)));
        let fresh = LogicalPlanBuilder::from(delta).project(fresh.collect::<Vec<_>>())?.build()?;
        let known = LogicalPlanBuilder::from(sink).project(known)?.build()?;
        let both = LogicalPlanBuilder::from(known).union(fresh)?.build()?;

        let column = |index: usize| Expr::Column(Column::new_unqualified(merged_name(index)));
        let (mut keys, mut aggregates) = (Vec::new(), Vec::new());
        for (index, merged) in self.outputs.iter().enumerate() {
            match merged {
                MergedOutput::Key => keys.push(column(index)),
                MergedOutput::Aggregate(function) => {
                    let call = AggregateFunction::new_udf(
                        Arc::clone(function),
                        vec![column(index)],
                        false,
                        None,
                        vec![],
                        None,
                    );
                    aggregates.push(Expr::AggregateFunction(call).alias(merged_name(index)));
                }
            }
        }
        let outputs = output.fields().iter().enumerate().map(|(index, field)| {
            // The sum of a decimal has more digits than what was summed.
            cast(column(index), field.data_type().clone()).alias(field.name())
        });
        let outputs = outputs.collect::<Vec<_>>();
        Ok(LogicalPlanBuilder::from(both).aggregate(keys, aggregates)?.project(outputs)?.build()?)
    }
}

fn merged_name(index: usize) -> String {
    format!("merged_{index}")
}

/// The aggregate that merges values of `call`.
fn merge_function(call: &Expr) -> Result<Arc<AggregateUDF>, NotMergeable> {
    let refused = || NotMergeable::Aggregate(call.to_string());
    let Expr::AggregateFunction(AggregateFunction { func, params }) = call.clone().unalias() else {
        return Err(refused());
    };
    let AggregateFunctionParams { distinct, order_by, null_treatment, .. } = params;
    if !order_by.is_empty() || null_treatment.is_some() {
        return Err(refused());
    }
    match func.name() {
        "min" | "max" | "bool_and" | "bool_or" | "bit_and" | "bit_or" => Ok(func),
        "sum" | "bit_xor" if !distinct => Ok(func),
        "count" if !distinct => Ok(sum_udaf()),
        _ => Err(refused()),
    }
}

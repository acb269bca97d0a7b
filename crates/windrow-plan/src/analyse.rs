//! Can the result of a query be kept by adding the aggregate of new rows, and if not, why?

use std::fmt;
use std::sync::Arc;

use datafusion::common::{Column, DFSchema};
use datafusion::execution::SessionState;
use datafusion::functions_aggregate as aggregates;
use datafusion::logical_expr::{AggregateUDF, Expr, LogicalPlan};

use crate::PlanError;
use crate::merge::{Call, Groups, Merge};
use crate::shape::{chain, outputs_over_aggregate, over_aggregate, replace_columns, unstable_function};
use crate::state::AggregateState;
use crate::window::simplified;

/// Why a query cannot be merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotMergeable {
    /// The query has a part that a merged query must not have.
    Shape(String),
    /// The query calls a function whose value depends on when, or how often, it is called.
    Unstable(String),
    /// There are no group keys.
    NoGroups,
    /// Groups that a HAVING left out are not in the sink, so they cannot be merged into.
    Having,
    /// A group key is no column of the result, so groups cannot be told apart in the sink.
    KeyNotInOutput(String),
    /// An aggregate has no state that can be stored.
    NoState {
        /// The aggregate.
        call: String,
        /// What is wrong with its states.
        why: String,
    },
    /// DataFusion has no plan for the states of the query.
    NoPlan(String),
    /// What the sink stores of an output is not all of it.
    Lossy(String),
    /// The sink has no columns for aggregate states.
    NoStateColumns(usize),
    /// Two outputs have one name.
    DuplicateName(String),
}

impl fmt::Display for NotMergeable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(node) => write!(f, "the query has {node}"),
            Self::Unstable(name) => write!(f, "the value of {name}() depends on when it is called"),
            Self::NoGroups => f.write_str("the query has no GROUP BY"),
            Self::Having => f.write_str(
                "groups that HAVING leaves out are not in the sink to be merged into (a flow without it, and \
                 one that selects from its sink, are merged)",
            ),
            Self::KeyNotInOutput(key) => write!(f, "the group key {key} is not in the SELECT list"),
            Self::NoState { call, why } => {
                write!(f, "{call} has no partial state that can be stored: {why}")
            }
            Self::NoPlan(error) => write!(f, "the states of its aggregates cannot be planned: {error}"),
            Self::Lossy(message) => f.write_str(message),
            Self::NoStateColumns(states) => write!(
                f,
                "the sink has no columns for {states} aggregate states; a sink that CREATE FLOW makes has them"
            ),
            Self::DuplicateName(name) => write!(f, "two columns are named {name}"),
        }
    }
}

impl Merge {
    /// How `plan`, which is [`normalise`](crate::normalise)d, is merged, or all reasons why it cannot be.
    ///
    /// # Errors
    /// When the plan cannot be walked.
    pub fn analyse(
        plan: &LogicalPlan,
        state: &SessionState,
    ) -> Result<Result<Self, Vec<NotMergeable>>, PlanError> {
        let chain = match chain(plan)? {
            Ok(chain) => chain,
            Err(node) => return Ok(Err(vec![NotMergeable::Shape(node)])),
        };
        if let Some(name) = unstable_function(plan)? {
            return Ok(Err(vec![NotMergeable::Unstable(name)]));
        }
        let Some(aggregate) = chain.aggregate else { return Ok(Ok(Self::Append)) };
        match aggregate.group_expr.as_slice() {
            [] => return Ok(Err(vec![NotMergeable::NoGroups])),
            [Expr::GroupingSet(_)] => {
                return Ok(Err(vec![NotMergeable::Shape("grouping sets".into())]));
            }
            _ => {}
        }
        let mut reasons = Vec::new();
        if chain.having {
            reasons.push(NotMergeable::Having);
        }
        let sources = outputs_over_aggregate(plan);
        let output_of = |column: usize| sources.iter().position(|source| *source == Some(column));
        let mut key_outputs = Vec::with_capacity(aggregate.group_expr.len());
        for (index, key) in aggregate.group_expr.iter().enumerate() {
            match output_of(index) {
                Some(output) => key_outputs.push(output),
                None => reasons.push(NotMergeable::KeyNotInOutput(key.to_string())),
            }
        }
        let mut calls = Vec::with_capacity(aggregate.aggr_expr.len());
        for (index, expr) in aggregate.aggr_expr.iter().enumerate() {
            let output = output_of(aggregate.group_expr.len() + index);
            match analyse_call(expr, output, aggregate.input.schema(), state)? {
                Ok(call) => calls.push(call),
                Err(reason) => reasons.push(reason),
            }
        }
        let fields = plan.schema().fields();
        for (index, field) in fields.iter().enumerate() {
            if fields.iter().take(index).any(|earlier| earlier.name() == field.name()) {
                reasons.push(NotMergeable::DuplicateName(field.name().clone()));
            }
        }
        if !reasons.is_empty() {
            return Ok(Err(reasons));
        }
        let columns = Groups::columns(key_outputs.len(), calls.len());
        let mut outputs = Vec::with_capacity(fields.len());
        for index in 0..fields.len() {
            let output = Expr::Column(Column::from(plan.schema().qualified_field(index)));
            let Some(expr) = over_aggregate(output, plan)? else {
                return Ok(Err(vec![NotMergeable::NoGroups]));
            };
            let expr = replace_columns(expr, &aggregate.schema, |column| columns[column].clone())?;
            outputs.push(expr.alias(fields[index].name()));
        }
        Ok(Ok(Self::Groups(Groups {
            input: Arc::clone(&aggregate.input),
            keys: aggregate.group_expr.clone(),
            key_outputs,
            calls,
            outputs,
        })))
    }
}

/// How one call of an aggregate, which is the column `output` of the result where it is one as it stands, is merged.
fn analyse_call(
    expr: &Expr,
    output: Option<usize>,
    input: &DFSchema,
    state: &SessionState,
) -> Result<Result<Call, NotMergeable>, PlanError> {
    let no_state = |why: String| NotMergeable::NoState { call: expr.to_string(), why };
    let Expr::AggregateFunction(mut call) = expr.clone().unalias() else {
        return Ok(Err(no_state("it is no aggregate function".into())));
    };
    let args = call.params.args.into_iter();
    // Constant arguments have to be literals: accumulators look at them.
    call.params.args = args.map(|arg| simplified(arg, input, state)).collect::<Result<_, _>>()?;
    let of = match AggregateState::of(&call, input) {
        Ok(of) => of,
        Err(error) => return Ok(Err(no_state(error.to_string()))),
    };
    // The value is in the sink already, so that it need not be there twice.
    if let Some(output) = output.filter(|_| is_direct(&call.func) && of.is_its_value()) {
        return Ok(Ok(Call { call, of, direct: Some(output) }));
    }
    if !of.can_be_stored() {
        return Ok(Err(no_state(format!("{} has no form of bytes", of.data_type()))));
    }
    Ok(Ok(Call { call, of, direct: None }))
}

/// Whether values of the function are merged as what they are; the others by their states.
fn is_direct(function: &AggregateUDF) -> bool {
    [
        aggregates::sum::sum_udaf(),
        aggregates::count::count_udaf(),
        aggregates::min_max::min_udaf(),
        aggregates::min_max::max_udaf(),
        aggregates::bool_and_or::bool_and_udaf(),
        aggregates::bool_and_or::bool_or_udaf(),
        aggregates::bit_and_or_xor::bit_and_udaf(),
        aggregates::bit_and_or_xor::bit_or_udaf(),
        aggregates::bit_and_or_xor::bit_xor_udaf(),
    ]
    .iter()
    .any(|direct| **direct == *function)
}

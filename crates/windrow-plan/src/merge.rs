//! Merging the aggregate of new rows with what the sink has.
//!
//! A sum of sums is a sum, a minimum of minima a minimum, and the states of an average add up to its state: the rows
//! that the sink has for the touched windows and the groups of the new source rows are put together and aggregated once
//! more, by the same group keys, by what [`state`](crate::state) makes of the query's own functions. The result is the
//! whole content of these windows, so a merge *replaces* windows just as a repair does. Because the query's own
//! accumulators do the merging, order (NaN, −0), NULLs, equal keys and overflow are theirs.
//!
//! ```text
//!  repair:   source ─▶ grouped ─────────────────────────▶ finished
//!  merge:    new rows ─▶ grouped ─┐
//!                                 ├─▶ grouped once more ─▶ finished
//!            sink ─▶ known ───────┘
//! ```
//!
//! Between the arrows go the columns `key_0 …` and `call_0 …`: the group keys, and of each call of an aggregate its
//! value, where that says all, or its state.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Column, plan_datafusion_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{AggregateUDF, Expr, LogicalPlan, LogicalPlanBuilder};
use windrow_time::InstantRange;

use crate::filter::limit_to_ranges;
use crate::shape::map_columns;
use crate::sink::state_column;
use crate::state::AggregateState;
use crate::types::as_stored;
use crate::{PlanError, SinkMatch};

/// How the result of a query is kept by adding what new rows give.
#[derive(Debug, Clone)]
pub enum Merge {
    /// The query has no groups: what new rows give is appended.
    Append,
    /// Groups are merged with those of the sink.
    Groups(Groups),
}

/// How each group of a query is merged.
#[derive(Debug, Clone)]
pub struct Groups {
    /// What is aggregated.
    pub(crate) input: Arc<LogicalPlan>,
    pub(crate) keys: Vec<Expr>,
    /// For each key, the output that it is.
    pub(crate) key_outputs: Vec<usize>,
    pub(crate) calls: Vec<Call>,
    /// The query's outputs over [`Groups::columns`], with each call's value.
    pub(crate) outputs: Vec<Expr>,
}

/// An aggregate of a query that is merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedCall {
    /// The aggregate, as the query calls it.
    pub call: String,
    /// What the sink keeps of it.
    pub kept: Kept,
}

/// What a sink keeps of an aggregate to merge it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// Its value, which is an output of the query and says all.
    Value {
        /// The position of the output.
        output: usize,
    },
    /// Its state, in a hidden column.
    State {
        /// The column.
        column: String,
        /// What the state consists of.
        types: Vec<DataType>,
    },
}

/// A call of an aggregate.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) call: AggregateFunction,
    pub(crate) of: AggregateState,
    /// The output that is the call's value and says all that merging needs; else a state is stored.
    pub(crate) direct: Option<usize>,
}

impl Merge {
    /// How many columns for aggregate states the sink has to have.
    #[must_use]
    pub fn states(&self) -> usize {
        match self {
            Self::Append => 0,
            Self::Groups(groups) => groups.stored_states().count(),
        }
    }

    /// What the states in the sink are of: only such of equal formats can be merged. `None` where there are none.
    #[must_use]
    pub fn state_format(&self) -> Option<String> {
        let Self::Groups(groups) = self else { return None };
        let layouts: Vec<String> = groups.stored_states().map(AggregateState::layout).collect();
        (!layouts.is_empty()).then(|| {
            format!(
                "{} DataFusion {}: {}",
                crate::state::ENCODING_VERSION,
                datafusion::DATAFUSION_VERSION,
                layouts.join("; ")
            )
        })
    }

    /// The aggregates of the query, and what is kept of each.
    #[must_use]
    pub fn calls(&self) -> Vec<MergedCall> {
        let Self::Groups(groups) = self else { return Vec::new() };
        let mut states = 0..;
        let describe = |call: &Call| MergedCall {
            call: call.of.name().to_owned(),
            kept: match call.direct {
                Some(output) => Kept::Value { output },
                None => Kept::State {
                    column: state_column(states.next().unwrap_or_default()),
                    types: call.of.types(),
                },
            },
        };
        groups.calls.iter().map(describe).collect()
    }

    /// The outputs that are read back from the sink to be merged.
    #[must_use]
    pub fn outputs_read_back(&self) -> Vec<usize> {
        let Self::Groups(groups) = self else { return Vec::new() };
        let direct = groups.calls.iter().filter_map(|call| call.direct);
        groups.key_outputs.iter().copied().chain(direct).collect()
    }
}

impl Groups {
    /// The query limited to `ranges` of its source's time index, with its outputs and, after them, the states as they are
    /// stored. A state of more than `max_state_bytes` becomes NULL.
    ///
    /// # Errors
    /// When the plan cannot be built.
    pub fn repaired(
        &self,
        time_index: &str,
        ranges: &[InstantRange],
        max_state_bytes: usize,
    ) -> Result<LogicalPlan, PlanError> {
        Ok(self.finished(self.grouped(time_index, ranges)?, max_state_bytes)?)
    }

    /// The rows of the touched windows: the groups of the new rows in `ranges` of the source's time index, together with
    /// `sink` (a scan of the sink's rows in the touched windows). It has the columns of [`Groups::repaired`].
    ///
    /// # Errors
    /// When the sink does not have the columns that `matched` speaks of.
    pub fn merged(
        &self,
        time_index: &str,
        ranges: &[InstantRange],
        sink: LogicalPlan,
        matched: &SinkMatch,
        max_state_bytes: usize,
    ) -> Result<LogicalPlan, PlanError> {
        let fresh = self.grouped(time_index, ranges)?;
        let known = self.known(sink, matched, &fresh)?;
        let both = LogicalPlanBuilder::from(known).union(fresh)?.build()?;
        let columns = Self::columns(self.keys.len(), self.calls.len());
        let (keys, calls) = columns.split_at(self.keys.len());
        let merged = self.calls.iter().zip(calls).map(|(call, column)| {
            let function = Arc::new(call.of.merge_function(call.direct.is_some()));
            aggregate(function, vec![column.clone()])
        });
        let both = self.aggregated(both, keys.to_vec(), merged.collect())?;
        Ok(self.finished(both, max_state_bytes)?)
    }

    /// The columns between the steps.
    pub(crate) fn columns(keys: usize, calls: usize) -> Vec<Expr> {
        let column = |name: String| Expr::Column(Column::new_unqualified(name));
        let keys = (0..keys).map(|index| column(format!("key_{index}")));
        keys.chain((0..calls).map(|index| column(call_name(index)))).collect()
    }

    fn stored_states(&self) -> impl Iterator<Item = &AggregateState> {
        self.calls.iter().filter(|call| call.direct.is_none()).map(|call| &call.of)
    }

    /// The groups of the source rows in `ranges`.
    fn grouped(&self, time_index: &str, ranges: &[InstantRange]) -> Result<LogicalPlan> {
        let input = limit_to_ranges(&self.input, time_index, ranges)?;
        let calls = self.calls.iter().map(|Call { call, of, direct }| {
            if direct.is_some() {
                return Expr::AggregateFunction(call.clone());
            }
            let mut call = call.clone();
            call.func = Arc::new(of.state_function());
            // These are the business of the accumulator inside.
            (call.params.distinct, call.params.null_treatment) = (false, None);
            Expr::AggregateFunction(call)
        });
        self.aggregated(input, self.keys.clone(), calls.collect())
    }

    /// `input` aggregated, with [`Groups::columns`].
    fn aggregated(&self, input: LogicalPlan, keys: Vec<Expr>, calls: Vec<Expr>) -> Result<LogicalPlan> {
        let columns = Self::columns(self.keys.len(), self.calls.len());
        // Calls that differ in nothing but what the wrapped function is have one name.
        let calls = calls.into_iter().enumerate().map(|(index, call)| call.alias(call_name(index)));
        let groups = LogicalPlanBuilder::from(input).aggregate(keys, calls.collect::<Vec<_>>())?.build()?;
        let schema = Arc::clone(groups.schema());
        let named = columns.iter().enumerate().map(|(index, column)| {
            Expr::Column(Column::from(schema.qualified_field(index))).alias(column.schema_name().to_string())
        });
        LogicalPlanBuilder::from(groups).project(named.collect::<Vec<_>>())?.build()
    }

    /// The groups that the sink has, with the columns and types of `like`.
    fn known(&self, sink: LogicalPlan, matched: &SinkMatch, like: &LogicalPlan) -> Result<LogicalPlan> {
        let stored = Arc::clone(sink.schema());
        let types = Arc::clone(like.schema());
        let value = |index: Option<usize>| {
            let column = index.map(|index| stored.qualified_field(index));
            let column = column.ok_or_else(|| plan_datafusion_err!("an output has no column in the sink"))?;
            Ok::<_, datafusion::error::DataFusionError>((
                Expr::Column(Column::from(column)),
                column.1.data_type(),
            ))
        };
        let mut known = Vec::with_capacity(self.keys.len() + self.calls.len());
        let outputs = self.key_outputs.iter().map(|&output| Some(output));
        let mut states = 0;
        for (index, output) in outputs.chain(self.calls.iter().map(|call| call.direct)).enumerate() {
            let expr = match output {
                Some(output) => {
                    let (value, from) = value(matched.column_of(output))?;
                    as_stored(value, from, types.field(index).data_type())
                }
                None => {
                    let (bytes, _) = value(matched.column_of_state(states))?;
                    states += 1;
                    self.calls[index - self.keys.len()].of.decode_function().call(vec![bytes])
                }
            };
            known.push(expr.alias(types.field(index).name()));
        }
        LogicalPlanBuilder::from(sink).project(known)?.build()
    }

    /// The query's outputs, and the states as they are stored.
    fn finished(&self, groups: LogicalPlan, max_state_bytes: usize) -> Result<LogicalPlan> {
        let columns = Self::columns(self.keys.len(), self.calls.len());
        let calls = || self.calls.iter().zip(&columns[self.keys.len()..]);
        let value = |column: &Column| {
            let (call, _) =
                calls().find(|(_, known)| matches!(known, Expr::Column(known) if known == column))?;
            let state = Expr::Column(column.clone());
            call.direct.is_none().then(|| call.of.finish_function().call(vec![state]))
        };
        let mut finished = Vec::with_capacity(self.outputs.len() + self.calls.len());
        for output in &self.outputs {
            finished.push(map_columns(output.clone(), value)?);
        }
        let states = calls().filter(|(call, _)| call.direct.is_none());
        for (index, (call, state)) in states.enumerate() {
            let bytes = call.of.encode_function(max_state_bytes).call(vec![state.clone()]);
            finished.push(bytes.alias(state_column(index)));
        }
        LogicalPlanBuilder::from(groups).project(finished)?.build()
    }
}

fn call_name(index: usize) -> String {
    format!("call_{index}")
}

fn aggregate(function: Arc<AggregateUDF>, args: Vec<Expr>) -> Expr {
    Expr::AggregateFunction(AggregateFunction::new_udf(function, args, false, None, vec![], None))
}

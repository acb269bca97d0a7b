//! Aggregate states: what an aggregate knows before it gives its value.
//!
//! DataFusion computes an aggregate in two phases; between them goes its *partial state* (of `avg`, a count and a sum).
//! Three functions around any aggregate `f` make that state a value like others:
//!
//! | function | from | to |
//! |---|---|---|
//! | `state(f)`, an aggregate ([`functions`]) | the rows that `f` takes | the state |
//! | `merge(f)`, an aggregate ([`functions`]) | states | the state of all their rows |
//! | `finish(f)` ([`values`]) | a state | the value of `f` |
//!
//! ClickHouse has the first two as the combinators `-State` and `-Merge`. A state is a struct while it is computed with,
//! and bytes in a table ([`values`]).

mod functions;
mod values;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StructArray, new_empty_array};
use arrow::datatypes::{DataType, Field, Fields, Schema};
use datafusion::common::{DFSchema, ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{AggregateUDF, EmitTo, Expr, ScalarUDF};
use datafusion::physical_expr::aggregate::{AggregateFunctionExpr, LoweredAggregateBuilder};

pub use self::values::StateMissing;
pub(crate) use self::values::VERSION as ENCODING_VERSION;

/// The states that one call of an aggregate in a query has.
#[derive(Debug, Clone)]
pub(crate) struct AggregateState {
    /// The call; makes the accumulators.
    call: Arc<AggregateFunctionExpr>,
    /// What tells it from other calls.
    name: String,
    fields: Fields,
    /// Whether all groups can be in one accumulator.
    in_groups: bool,
}

/// Calls of one query are equal when they are written alike.
impl PartialEq for AggregateState {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.fields == other.fields
    }
}

impl Eq for AggregateState {}

impl Hash for AggregateState {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl AggregateState {
    /// The states of `call` over rows of `input`.
    ///
    /// # Errors
    /// When the call does not fit its input.
    pub(crate) fn of(call: &AggregateFunction, input: &DFSchema) -> Result<Self> {
        // Which rows are filtered out, and that they are sorted, is seen to before rows reach an accumulator.
        let mut unfiltered = call.clone();
        unfiltered.params.filter = None;
        let expr = Expr::AggregateFunction(unfiltered);
        let schema: &Schema = input.as_arrow();
        let (props, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
        let lowered = LoweredAggregateBuilder::new(&expr, input, schema, &props, &context).build()?.aggregate;
        let types = lowered.state_fields()?;
        if types.is_empty() {
            return plan_err!("{} has no state", call.func.name());
        }
        let field = |(index, field): (usize, &Arc<Field>)| {
            Field::new(format!("s{index}"), field.data_type().clone(), true)
        };
        let fields: Fields = types.iter().enumerate().map(field).collect();
        let in_groups = lowered.groups_accumulator_supported() && {
            // Of some DISTINCT aggregates, the accumulator for all groups has the states without DISTINCT.
            let states = states_of_an_empty_group(&lowered, schema)?;
            fields.iter().map(|field| field.data_type()).eq(states.iter().map(|state| state.data_type()))
        };
        let of = Self {
            call: lowered,
            name: Expr::AggregateFunction(call.clone()).schema_name().to_string(),
            fields,
            in_groups,
        };
        // A function that has other states than it says is found out here, and not when a flow runs.
        let mut empty = of.call.create_accumulator()?;
        let states = empty.state()?.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>>>()?;
        if states.len() != of.fields.len() {
            return plan_err!("{} has other states than it says", call.func.name());
        }
        of.of_columns(states)?;
        Ok(of)
    }

    /// The type of a state.
    pub(crate) fn data_type(&self) -> DataType {
        DataType::Struct(self.fields.clone())
    }

    /// The call, as the query has it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What a state consists of.
    pub(crate) fn types(&self) -> Vec<DataType> {
        self.fields.iter().map(|field| field.data_type().clone()).collect()
    }

    /// Whether the value says as much as the state.
    pub(crate) fn is_its_value(&self) -> bool {
        matches!(self.fields.as_ref(), [only] if only.data_type() == self.call.field().data_type())
    }

    /// What a stored state is of: states of equal layouts, and only such, can be merged.
    pub(crate) fn layout(&self) -> String {
        let types: Vec<String> = self.types().iter().map(ToString::to_string).collect();
        format!("{} = ({})", self.name, types.join(", "))
    }

    /// The state of the rows that the call is about.
    pub(crate) fn state_function(&self) -> AggregateUDF {
        functions::state_of(self.clone())
    }

    /// The state, or where `direct` the value, of all rows that the states, or values, are of.
    pub(crate) fn merge_function(&self, direct: bool) -> AggregateUDF {
        functions::merge_of(self.clone(), direct)
    }

    /// The value of a state.
    pub(crate) fn finish_function(&self) -> ScalarUDF {
        values::finish(self.clone())
    }

    /// The bytes of a state; NULL where they are more than `limit`.
    pub(crate) fn encode_function(&self, limit: usize) -> ScalarUDF {
        values::encode(self.clone(), limit)
    }

    /// The state in such bytes.
    pub(crate) fn decode_function(&self) -> ScalarUDF {
        values::decode(self.clone())
    }

    /// Whether states can be stored.
    pub(crate) fn can_be_stored(&self) -> bool {
        values::can_be_encoded(&self.fields)
    }

    fn columns_of(state: &ArrayRef) -> Result<Vec<ArrayRef>> {
        match state.as_struct_opt() {
            Some(columns) => Ok(columns.columns().to_vec()),
            None => plan_err!("a state cannot be {}", state.data_type()),
        }
    }

    fn of_columns(&self, columns: Vec<ArrayRef>) -> Result<ArrayRef> {
        // Accumulators may name and nest their fields otherwise than they declare.
        let columns = columns.into_iter().zip(&self.fields).map(|(column, field)| {
            if column.data_type() == field.data_type() {
                return Ok(column);
            }
            arrow::compute::cast(&column, field.data_type())
        });
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        Ok(Arc::new(StructArray::try_new(self.fields.clone(), columns, None)?))
    }
}

fn states_of_an_empty_group(call: &AggregateFunctionExpr, input: &Schema) -> Result<Vec<ArrayRef>> {
    let order = call.order_bys().iter().map(|by| &by.expr);
    let arguments = call.expressions();
    let values = arguments.iter().chain(order).map(|expr| Ok(new_empty_array(&expr.data_type(input)?)));
    let values = values.collect::<Result<Vec<_>>>()?;
    let mut groups = call.create_groups_accumulator()?;
    groups.update_batch(&values, &[], None, 1)?;
    groups.state(EmitTo::All)
}

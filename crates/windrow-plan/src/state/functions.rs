//! `state(f)` and `merge(f)`: an aggregate function whose value is the state of another one.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
    TypeSignature, Volatility,
};

use super::AggregateState;

/// What goes in and comes out of a function around an aggregate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    /// Rows to a state.
    State,
    /// States to a state.
    Merge,
    /// Values to a value, of an aggregate whose value is its state.
    MergeValues,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct StateFunction {
    of: AggregateState,
    phase: Phase,
    name: String,
    signature: Signature,
}

pub(super) fn state_of(of: AggregateState) -> AggregateUDF {
    StateFunction::udaf(of, Phase::State)
}

pub(super) fn merge_of(of: AggregateState, direct: bool) -> AggregateUDF {
    StateFunction::udaf(of, if direct { Phase::MergeValues } else { Phase::Merge })
}

impl StateFunction {
    fn udaf(of: AggregateState, phase: Phase) -> AggregateUDF {
        let prefix = if phase == Phase::State { "state" } else { "merge" };
        let name = format!("{prefix}({})", of.call.fun().name());
        // The arguments have the types that the aggregate takes: the query was analysed.
        let signature = Signature::new(TypeSignature::VariadicAny, Volatility::Immutable);
        AggregateUDF::from(Self { of, phase, name, signature })
    }
}

impl AggregateUDFImpl for StateFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.phase {
            Phase::State | Phase::Merge => self.of.data_type(),
            Phase::MergeValues => self.of.call.field().data_type().clone(),
        })
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let inner = self.of.call.create_accumulator()?;
        Ok(Box::new(OneGroup { inner, of: self.of.clone(), phase: self.phase }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        // Named after the call of this function, as names have to be unique in a plan.
        let rename = |field: &FieldRef| {
            Arc::new(field.as_ref().clone().with_name(format_state_name(args.name, field.name())))
        };
        Ok(self.of.call.state_fields()?.iter().map(rename).collect())
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        self.of.in_groups
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let inner = self.of.call.create_groups_accumulator()?;
        Ok(Box::new(ManyGroups { inner, of: self.of.clone(), phase: self.phase }))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        match self.phase {
            Phase::State => self.of.call.fun().order_sensitivity(),
            Phase::Merge | Phase::MergeValues => AggregateOrderSensitivity::Insensitive,
        }
    }

    fn with_beneficial_ordering(
        self: Arc<Self>,
        _beneficial_ordering: bool,
    ) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        // The aggregate inside sorts for itself, whether or not its rows come sorted.
        Ok(Some(self))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        // It cannot be reversed. But of a function without a reverse, DataFusion does not look at the order it needs.
        ReversedUDAF::Identical
    }
}

/// One group.
#[derive(Debug)]
struct OneGroup {
    inner: Box<dyn Accumulator>,
    of: AggregateState,
    phase: Phase,
}

impl Accumulator for OneGroup {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        match self.phase {
            Phase::State => self.inner.update_batch(values),
            Phase::Merge => self.inner.merge_batch(&AggregateState::columns_of(&values[0])?),
            Phase::MergeValues => self.inner.merge_batch(&values[..1]),
        }
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.phase == Phase::MergeValues {
            return self.inner.evaluate();
        }
        let columns = self.inner.state()?.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>>>()?;
        ScalarValue::try_from_array(&self.of.of_columns(columns)?, 0)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.inner.size()
    }
}

/// All groups of a query at once.
struct ManyGroups {
    inner: Box<dyn GroupsAccumulator>,
    of: AggregateState,
    phase: Phase,
}

impl GroupsAccumulator for ManyGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        let states = match self.phase {
            Phase::State => return self.inner.update_batch(values, group_indices, filter, groups),
            Phase::Merge => AggregateState::columns_of(&values[0])?,
            Phase::MergeValues => vec![Arc::clone(&values[0])],
        };
        self.inner.merge_batch(&states, group_indices, groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        match self.phase {
            Phase::State | Phase::Merge => self.of.of_columns(self.inner.state(emit_to)?),
            Phase::MergeValues => self.inner.evaluate(emit_to),
        }
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        self.inner.state(emit_to)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], group_indices: &[usize], groups: usize) -> Result<()> {
        self.inner.merge_batch(states, group_indices, groups)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        match self.phase {
            Phase::State => self.inner.convert_to_state(values, filter),
            Phase::Merge => AggregateState::columns_of(&values[0]),
            Phase::MergeValues => Ok(vec![Arc::clone(&values[0])]),
        }
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.inner.size()
    }
}

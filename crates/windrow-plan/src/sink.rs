//! The sink's columns, and which output goes into which of them.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit as ArrowUnit};
use datafusion::common::{Column, ScalarValue};
use datafusion::functions::datetime::expr_fn::now;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit};
use windrow_time::{InstantRange, TimeUnit};

use crate::shape::outputs_over_aggregate;
use crate::types::{Family, as_stored, holds, plain};
use crate::{PlanError, TimeWindow};

/// The time index of a sink whose query has no timestamp to be one; always 0.
pub const PLACEHOLDER_TIME_INDEX: &str = "__ts_placeholder";

/// The column of an auto-created sink that says when a row was written.
pub const UPDATE_TIME: &str = "update_at";

/// What the names of columns with aggregate states begin with. They are Windrow's own: a query does not see them.
pub const STATE_PREFIX: &str = "__state_";

/// The name of a column with aggregate states.
pub(crate) fn state_column(index: usize) -> String {
    format!("{STATE_PREFIX}{index}")
}

/// Whether a column is one that queries do not see.
#[must_use]
pub fn is_hidden(column: &str) -> bool {
    column.starts_with(STATE_PREFIX)
}

/// The columns of a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkColumns {
    /// All columns.
    pub schema: SchemaRef,
    /// The position of the time index.
    pub time_index: Option<usize>,
    /// The positions of the key.
    pub primary_key: Vec<usize>,
}

/// The columns that a sink for `plan` is created with: the output columns, an update time, where no group key is a
/// timestamp a placeholder for the time index, and at last the hidden columns of `states` aggregate states.
///
/// The time index is in the unit of the source where that can hold what names the windows: `AT TIME ZONE` makes
/// nanoseconds of any timestamp, which most tables cannot store.
#[must_use]
pub fn derive_sink(plan: &LogicalPlan, window: Option<&TimeWindow>, states: usize) -> SinkColumns {
    let output = plan.schema().as_arrow();
    let keys = group_key_outputs(plan);
    let is_timestamp = |index: &usize| matches!(output.field(*index).data_type(), DataType::Timestamp(..));
    let mut time_index = window.map(TimeWindow::output).or_else(|| keys.iter().copied().find(is_timestamp));
    let primary_key = keys.into_iter().filter(|key| Some(*key) != time_index).collect();

    let mut fields: Vec<Field> = output
        .fields()
        .iter()
        .enumerate()
        .map(|(index, field)| {
            let data_type = match window {
                Some(window) if Some(index) == time_index => in_unit_of_source(field.data_type(), window),
                _ => plain(field.data_type()),
            };
            Field::new(field.name(), data_type, Some(index) != time_index)
        })
        .collect();
    fields.push(Field::new(UPDATE_TIME, DataType::Timestamp(ArrowUnit::Millisecond, None), true));
    if time_index.is_none() {
        time_index = Some(fields.len());
        let placeholder = DataType::Timestamp(ArrowUnit::Millisecond, None);
        fields.push(Field::new(PLACEHOLDER_TIME_INDEX, placeholder, false));
    }
    fields.extend((0..states).map(|index| Field::new(state_column(index), DataType::Binary, true)));
    SinkColumns { schema: Arc::new(Schema::new(fields)), time_index, primary_key }
}

fn in_unit_of_source(data_type: &DataType, window: &TimeWindow) -> DataType {
    match data_type {
        DataType::Timestamp(unit, zone)
            if TimeUnit::from(*unit) > window.unit() && window.names_fit(window.unit()) =>
        {
            DataType::Timestamp(window.unit().into(), zone.clone())
        }
        other => other.clone(),
    }
}

/// The outputs that are group keys, in the order of the output; of a `DISTINCT`, all of them.
fn group_key_outputs(plan: &LogicalPlan) -> Vec<usize> {
    let mut node = plan;
    let keys = loop {
        node = match node {
            LogicalPlan::Projection(projection) => &projection.input,
            LogicalPlan::SubqueryAlias(alias) => &alias.input,
            LogicalPlan::Filter(filter) => &filter.input,
            LogicalPlan::Sort(sort) => &sort.input,
            LogicalPlan::Limit(limit) => &limit.input,
            LogicalPlan::Aggregate(aggregate) => break aggregate.group_expr.len(),
            LogicalPlan::Distinct(_) => return (0..plan.schema().fields().len()).collect(),
            _ => return Vec::new(),
        };
    };
    let outputs = outputs_over_aggregate(plan);
    (0..outputs.len()).filter(|&index| outputs[index].is_some_and(|column| column < keys)).collect()
}

/// Which output of a query goes into which column of a sink.
#[derive(Debug, Clone)]
pub struct SinkMatch {
    sink: SinkColumns,
    contents: Vec<Content>,
    outputs: usize,
}

/// What a sink column is filled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Output(usize),
    /// An aggregate state; it comes after the outputs, where the plan has it.
    State(usize),
    UpdateTime,
    Placeholder,
    Null,
}

impl SinkMatch {
    /// Matches outputs to columns by name, in any order, and where names differ by position, if the column there is
    /// the one missing and the types are of one family. With `fill_nulls` (the merge mode `last_non_null`), nullable
    /// columns may be left out.
    ///
    /// # Errors
    /// [`PlanError::SinkMismatch`] with what is extra, missing, doubled or of another type.
    pub fn new(
        output: &Schema,
        window: Option<&TimeWindow>,
        sink: &SinkColumns,
        fill_nulls: bool,
    ) -> Result<Self, PlanError> {
        let contents =
            contents(output, window, sink, fill_nulls).map_err(|problem| PlanError::SinkMismatch {
                problem,
                output: Arc::new(output.clone()),
                sink: Arc::clone(&sink.schema),
            })?;
        Ok(Self { sink: sink.clone(), contents, outputs: output.fields().len() })
    }

    /// `plan` with exactly the sink's columns: in their order, with their names and types, and the columns that the
    /// query does not give filled in. Columns of the plan beyond the outputs are aggregate states.
    ///
    /// # Errors
    /// When a cast cannot be planned.
    pub fn align(&self, plan: LogicalPlan) -> Result<LogicalPlan, PlanError> {
        let output = Arc::clone(plan.schema());
        let columns = self.contents.iter().zip(self.sink.schema.fields()).map(|(content, field)| {
            let value = match content {
                Content::Output(index) => {
                    let column = Expr::Column(Column::from(output.qualified_field(*index)));
                    let from = output.field(*index).data_type();
                    return as_stored(column, from, field.data_type()).alias(field.name());
                }
                Content::State(index) if self.outputs + index < output.fields().len() => {
                    Expr::Column(Column::from(output.qualified_field(self.outputs + index)))
                }
                Content::UpdateTime => now(),
                Content::Placeholder => lit(0_i64),
                Content::State(_) | Content::Null => lit(ScalarValue::Null),
            };
            cast(value, field.data_type().clone()).alias(field.name())
        });
        Ok(LogicalPlanBuilder::from(plan).project(columns.collect::<Vec<_>>())?.build()?)
    }

    /// The first of `outputs` whose column cannot hold all of its values, as a message: what is read back from there is
    /// not what was written.
    #[must_use]
    pub fn lossy_output(
        &self,
        output: &Schema,
        outputs: &[usize],
        window: Option<&TimeWindow>,
    ) -> Option<String> {
        let stored = self.contents.iter().zip(self.sink.schema.fields());
        let lossy = stored.filter_map(|(content, column)| match content {
            // That of the time window was checked when outputs were matched.
            Content::Output(index)
                if outputs.contains(index) && window.map(TimeWindow::output) != Some(*index) =>
            {
                let field = output.field(*index);
                (!holds(column.data_type(), field.data_type())).then_some((field, column))
            }
            _ => None,
        });
        let (field, column) = lossy.into_iter().next()?;
        Some(format!(
            "the sink's column {} of type {} does not hold all values of {} of type {}",
            column.name(),
            column.data_type(),
            field.name(),
            field.data_type()
        ))
    }

    /// The sink column that an output goes into.
    #[must_use]
    pub fn column_of(&self, output: usize) -> Option<usize> {
        self.contents.iter().position(|content| *content == Content::Output(output))
    }

    /// The sink column with the aggregate states of this number.
    #[must_use]
    pub fn column_of_state(&self, state: usize) -> Option<usize> {
        self.contents.iter().position(|content| *content == Content::State(state))
    }

    /// The sink columns that the query gives nothing for, and that keep what they have.
    #[must_use]
    pub fn kept_columns(&self) -> Vec<usize> {
        let contents = self.contents.iter().enumerate();
        contents.filter(|(_, content)| **content == Content::Null).map(|(column, _)| column).collect()
    }

    /// How many columns for aggregate states the sink has.
    #[must_use]
    pub fn states(&self) -> usize {
        self.contents.iter().filter(|content| matches!(content, Content::State(_))).count()
    }

    /// A range of window labels in the unit `from` as a range of the sink's time index.
    #[must_use]
    pub fn in_sink_unit(&self, labels: InstantRange, from: TimeUnit) -> InstantRange {
        scale(labels, from, self.time_unit().unwrap_or(from))
    }

    /// A value of the sink's time index as a window label in the unit `to`.
    #[must_use]
    pub fn in_output_unit(&self, instant: i64, to: TimeUnit) -> i64 {
        let from = self.time_unit().unwrap_or(to);
        let labels = scale(InstantRange::new(instant, instant), from, to);
        labels.start()
    }

    fn time_unit(&self) -> Option<TimeUnit> {
        match self.sink.schema.field(self.sink.time_index?).data_type() {
            DataType::Timestamp(unit, _) => Some((*unit).into()),
            _ => None,
        }
    }
}

fn scale(range: InstantRange, from: TimeUnit, to: TimeUnit) -> InstantRange {
    let bound = |bound: Option<i64>, unbounded: i64| {
        let nanos = |bound: i64| i128::from(bound) * i128::from(from.nanos());
        // What is not a whole number of a coarser unit is in none of the sink's rows; of a row, in the last before it.
        bound.map_or(i128::from(unbounded), |bound| nanos(bound).div_euclid(to.nanos().into()))
    };
    InstantRange::saturating(bound(range.lower(), i64::MIN), bound(range.upper(), i64::MAX))
}

fn contents(
    output: &Schema,
    window: Option<&TimeWindow>,
    sink: &SinkColumns,
    fill_nulls: bool,
) -> Result<Vec<Content>, String> {
    let columns = sink.schema.fields();
    let mut contents: Vec<Option<Content>> = vec![None; columns.len()];
    let mut unmatched = Vec::new();
    for (index, field) in output.fields().iter().enumerate() {
        let Some((column, _)) = sink.schema.column_with_name(field.name()) else {
            unmatched.push(index);
            continue;
        };
        if contents[column].is_some() {
            return Err(format!("two output columns are named {}", field.name()));
        }
        contents[column] = Some(Content::Output(index));
    }
    let mut extra = Vec::new();
    for index in unmatched {
        match contents.get_mut(index) {
            Some(content @ None) if may_stand_for(output.field(index), sink, index) => {
                *content = Some(Content::Output(index));
            }
            _ => extra.push(output.field(index).name().as_str()),
        }
    }
    fill_own_columns(&mut contents, sink);
    let mut missing = Vec::new();
    for (column, content) in contents.iter_mut().enumerate().filter(|(_, content)| content.is_none()) {
        let needed = sink.time_index == Some(column) || sink.primary_key.contains(&column);
        if fill_nulls && !needed && columns[column].is_nullable() {
            *content = Some(Content::Null);
        } else {
            missing.push(columns[column].name().as_str());
        }
    }
    match (extra.is_empty(), missing.is_empty()) {
        (true, true) => {}
        (false, true) => return Err(format!("the sink has no column for {}", extra.join(", "))),
        (true, false) => return Err(format!("the query gives nothing for {}", missing.join(", "))),
        (false, false) => {
            return Err(format!(
                "the sink has no column for {}, and the query gives nothing for {}",
                extra.join(", "),
                missing.join(", ")
            ));
        }
    }
    let contents: Vec<Content> = contents.into_iter().flatten().collect();
    for (column, content) in contents.iter().enumerate() {
        if let Content::Output(index) = content {
            check_families(output.field(*index), columns[column].as_ref())?;
            if sink.time_index == Some(column) {
                check_time_index(output.field(*index), columns[column].as_ref(), window)?;
            }
        }
    }
    Ok(contents)
}

/// The update time (one extra timestamp at the end), the placeholder and the states are filled by Windrow.
fn fill_own_columns(contents: &mut [Option<Content>], sink: &SinkColumns) {
    let columns = sink.schema.fields();
    let mut states = 0;
    for (content, column) in contents.iter_mut().zip(columns) {
        if is_hidden(column.name()) {
            *content = Some(Content::State(states));
            states += 1;
        }
    }
    if let Some((column, _)) = sink.schema.column_with_name(PLACEHOLDER_TIME_INDEX) {
        contents[column].get_or_insert(Content::Placeholder);
    }
    let is_own = |name: &str| name == PLACEHOLDER_TIME_INDEX || is_hidden(name);
    let last = (0..columns.len()).rev().find(|&column| !is_own(columns[column].name()));
    if let Some(last) = last
        && sink.time_index != Some(last)
        && matches!(columns[last].data_type(), DataType::Timestamp(..))
    {
        contents[last].get_or_insert(Content::UpdateTime);
    }
}

fn may_stand_for(field: &Field, sink: &SinkColumns, column: usize) -> bool {
    let target = sink.schema.field(column);
    target.name() != PLACEHOLDER_TIME_INDEX
        && !is_hidden(target.name())
        && Family::of(field.data_type()).fits(Family::of(target.data_type()))
}

fn check_families(output: &Field, column: &Field) -> Result<(), String> {
    let (from, to) = (output.data_type(), column.data_type());
    if !Family::of(from).fits(Family::of(to)) {
        return Err(format!("{} is {from}, and the sink's {} is {to}", output.name(), column.name()));
    }
    Ok(())
}

fn check_time_index(output: &Field, column: &Field, window: Option<&TimeWindow>) -> Result<(), String> {
    let (from, to) = (output.data_type(), column.data_type());
    if let (DataType::Timestamp(from_unit, _), DataType::Timestamp(to_unit, _)) = (from, to)
        && from_unit > to_unit
        && !window.is_some_and(|window| window.names_fit((*to_unit).into()))
    {
        return Err(format!(
            "the sink's time index {} is in a coarser unit ({to}) than {} ({from}), so windows would fall together",
            column.name(),
            output.name()
        ));
    }
    Ok(())
}

//! The value of a window expression at an instant, which names the window.

use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::physical_expr::PhysicalExpr;
use windrow_time::{InstantRange, TimeUnit};

use crate::PlanError;

/// The value of the window expression at an instant.
#[derive(Debug, Clone)]
pub(crate) struct Label {
    expr: Arc<dyn PhysicalExpr>,
    schema: Arc<Schema>,
    /// The instants at which it is evaluated.
    evaluable: InstantRange,
}

impl Label {
    pub(crate) fn new(
        expr: &Expr,
        time_index: &str,
        column_type: &DataType,
        state: &SessionState,
    ) -> Result<Self, PlanError> {
        let schema = Arc::new(Schema::new(vec![Field::new(time_index, column_type.clone(), true)]));
        let unqualified = over_column(expr.clone(), &Column::new_unqualified(time_index))?;
        let df_schema = DFSchema::try_from(Arc::clone(&schema))?;
        let evaluable = evaluable(&unqualified, column_type, &df_schema)?;
        Ok(Self { expr: state.create_physical_expr(unqualified, &df_schema)?, schema, evaluable })
    }

    pub(crate) fn data_type(&self) -> Result<DataType, PlanError> {
        Ok(self.expr.data_type(&self.schema)?)
    }

    pub(crate) fn unit(&self) -> TimeUnit {
        match self.schema.field(0).data_type() {
            DataType::Timestamp(unit, _) => (*unit).into(),
            _ => TimeUnit::Nanosecond,
        }
    }

    pub(crate) fn at(&self, instant: i64) -> Option<i64> {
        self.at_all(&[instant]).first().copied().flatten()
    }

    /// The values at all of these instants; none where the expression fails or is not evaluated.
    pub(crate) fn at_all(&self, instants: &[i64]) -> Vec<Option<i64>> {
        let evaluable = self.evaluable;
        let asked: Vec<i64> =
            instants.iter().copied().filter(|&instant| evaluable.contains(instant)).collect();
        let mut values = self.evaluate_parts(&asked).into_iter();
        let value = |&instant: &i64| if evaluable.contains(instant) { values.next().flatten() } else { None };
        instants.iter().map(value).collect()
    }

    fn evaluate_parts(&self, instants: &[i64]) -> Vec<Option<i64>> {
        // One instant beyond what a function can represent fails the whole batch; a half of it may do.
        self.evaluate(instants).unwrap_or_else(|_| match instants {
            [] | [_] => vec![None; instants.len()],
            _ => {
                let (left, right) = instants.split_at(instants.len() / 2);
                [self.evaluate_parts(left), self.evaluate_parts(right)].concat()
            }
        })
    }

    /// From the first instant at which the expression has a value to the last.
    pub(crate) fn domain(&self) -> InstantRange {
        let evaluable = self.evaluable;
        let Some(somewhere) =
            [0, evaluable.start(), evaluable.last()].into_iter().find(|&t| self.at(t).is_some())
        else {
            return evaluable;
        };
        // Expressions fail only beyond both ends of what they can represent.
        let edge = |mut inside: i64, mut outside: i64| {
            if self.at(outside).is_some() {
                return outside;
            }
            while inside.abs_diff(outside) > 1 {
                let middle = inside.midpoint(outside);
                if self.at(middle).is_some() { inside = middle } else { outside = middle }
            }
            inside
        };
        let (first, last) = (edge(somewhere, evaluable.start()), edge(somewhere, evaluable.last()));
        InstantRange::new(first, last + 1)
    }

    fn evaluate(&self, instants: &[i64]) -> Result<Vec<Option<i64>>, PlanError> {
        let instants = cast(&Int64Array::from(instants.to_vec()), self.schema.field(0).data_type())?;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), vec![instants])?;
        let labels = self.expr.evaluate(&batch)?.into_array(batch.num_rows())?;
        Ok(cast(&labels, &DataType::Int64)?.as_primitive::<Int64Type>().iter().collect())
    }
}

/// The years 1 to 9999, as far as all timestamps in the expression can hold them, and two days from the ends of what
/// those can: some functions overflow there.
fn evaluable(expr: &Expr, column_type: &DataType, schema: &DFSchema) -> Result<InstantRange, PlanError> {
    const YEARS: (i64, i64) = (-62_135_596_800, 253_402_300_800);
    let unit_of = |data_type: &DataType| match data_type {
        DataType::Timestamp(unit, _) => Some(TimeUnit::from(*unit)),
        _ => None,
    };
    let unit = unit_of(column_type).unwrap_or(TimeUnit::Nanosecond);
    let mut finest = unit;
    expr.apply(|part| {
        finest = finest.max(unit_of(&part.get_type(schema)?).unwrap_or(finest));
        Ok(TreeNodeRecursion::Continue)
    })?;
    let ratio = unit.nanos() / finest.nanos();
    let (first, last) = (i64::MIN / ratio + 2 * unit.per_day(), i64::MAX / ratio - 2 * unit.per_day());
    let year = |second: i64| second.saturating_mul(unit.per_second()).clamp(first, last);
    Ok(InstantRange::new(year(YEARS.0), year(YEARS.1)))
}

/// The expression with `column` in place of every column.
fn over_column(expr: Expr, column: &Column) -> Result<Expr, PlanError> {
    let replaced = expr.transform_up(|part| {
        Ok(match part {
            Expr::Column(_) => Transformed::yes(Expr::Column(column.clone())),
            other => Transformed::no(other),
        })
    })?;
    Ok(replaced.data)
}

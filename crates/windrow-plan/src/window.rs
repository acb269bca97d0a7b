//! The time window of a query.

use std::fmt;
use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::common::{Column, DFSchema, ExprSchema, TableReference};
use datafusion::execution::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use windrow_time::{InstantRange, OpaqueWindow, TimeUnit, Window};

use crate::PlanError;
use crate::lower::propose_grid;
use crate::monotone::{Monotonicity, is_constant, monotonicity};
use crate::shape::{chain, outputs_over_aggregate, over_scan, unstable_function};

/// The time window of a query: which instants of the source fall together, and which value names them.
#[derive(Debug, Clone)]
pub struct TimeWindow {
    window: Window,
    label: Label,
    source: TableReference,
    time_index: String,
    output: usize,
}

/// The value of the window expression at an instant.
#[derive(Debug, Clone)]
struct Label {
    expr: Arc<dyn PhysicalExpr>,
    schema: Arc<Schema>,
}

/// Why a query has no time window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoTimeWindow {
    /// The query has a part that a query with time windows must not have.
    Shape(String),
    /// The query calls a function whose value depends on when it runs.
    Unstable(String),
    /// The query has no GROUP BY.
    NoGroups,
    /// The source has no time index.
    NoTimeIndex(TableReference),
    /// No group key is an expression of the time index alone.
    NoKey {
        /// The time index.
        time_index: String,
        /// The group keys.
        keys: Vec<String>,
    },
    /// A group key is an expression of the time index, but decreases somewhere.
    NotMonotone {
        /// The key.
        key: String,
        /// The part of it that decreases.
        part: String,
    },
    /// The window is no column of the result.
    NotInOutput(String),
}

impl fmt::Display for NoTimeWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shape(node) => write!(f, "it has {node}"),
            Self::Unstable(name) => write!(f, "the value of its {name}() depends on when it runs"),
            Self::NoGroups => f.write_str("it has no GROUP BY"),
            Self::NoTimeIndex(table) => write!(f, "its source {table} has no time index"),
            Self::NoKey { time_index, keys } => write!(
                f,
                "none of its group keys ({}) is a timestamp computed from the time index {time_index} alone",
                keys.join(", ")
            ),
            Self::NotMonotone { key, part } if key == part => {
                write!(f, "its group key {key} does not grow with time")
            }
            Self::NotMonotone { key, part } => {
                write!(f, "its group key {key} does not grow with time, because of {part}")
            }
            Self::NotInOutput(key) => write!(f, "its time window {key} is not in the SELECT list"),
        }
    }
}

/// The time window of `plan`, a query whose source's time index `time_index_of` tells; where several group keys are
/// windows, the finest.
///
/// # Errors
/// When the plan cannot be walked or a key cannot be evaluated; that a query has no time window is no error.
pub fn find_time_window(
    plan: &LogicalPlan,
    state: &SessionState,
    time_index_of: impl Fn(&TableReference) -> Option<String>,
) -> Result<Result<TimeWindow, NoTimeWindow>, PlanError> {
    let chain = match chain(plan)? {
        Ok(chain) => chain,
        Err(node) => return Ok(Err(NoTimeWindow::Shape(node))),
    };
    if let Some(name) = unstable_function(plan)? {
        return Ok(Err(NoTimeWindow::Unstable(name)));
    }
    let Some(aggregate) = chain.aggregate else { return Ok(Err(NoTimeWindow::NoGroups)) };
    let Some(time_index) = time_index_of(&chain.scan.table_name) else {
        return Ok(Err(NoTimeWindow::NoTimeIndex(chain.scan.table_name.clone())));
    };
    match aggregate.group_expr.as_slice() {
        [] => return Ok(Err(NoTimeWindow::NoGroups)),
        [Expr::GroupingSet(_)] => return Ok(Err(NoTimeWindow::Shape("grouping sets".into()))),
        _ => {}
    }
    let column = Column::new(Some(chain.scan.table_name.clone()), &time_index);
    let column_type = chain.scan.projected_schema.field_from_column(&column)?.data_type().clone();
    let outputs = outputs_over_aggregate(plan);

    let mut refusal = None;
    let mut finest: Option<TimeWindow> = None;
    for (index, key) in aggregate.group_expr.iter().enumerate() {
        let Some(expr) = over_scan(key.clone(), &aggregate.input)? else { continue };
        let only_time = expr.column_refs().iter().all(|found| **found == column) && !is_constant(&expr);
        if !only_time || expr.is_volatile() {
            continue;
        }
        let expr = simplified(expr, &chain.scan.projected_schema, state)?;
        let label = Label::new(&expr, &time_index, &column_type, state)?;
        if let Some(part) = decreasing_part(&expr, &label, &column_type)? {
            refusal.get_or_insert(NoTimeWindow::NotMonotone { key: key.to_string(), part });
            continue;
        }
        if !matches!(label.data_type()?, DataType::Timestamp(..)) {
            continue;
        }
        let Some(output) = outputs.iter().position(|&column| column == Some(index)) else {
            refusal.get_or_insert(NoTimeWindow::NotInOutput(key.to_string()));
            continue;
        };
        let window = windows_of(&expr, &label, &column_type);
        let candidate = TimeWindow {
            window,
            label,
            source: chain.scan.table_name.clone(),
            time_index: time_index.clone(),
            output,
        };
        if finest.as_ref().is_none_or(|finest| candidate.is_finer_than(finest)) {
            finest = Some(candidate);
        }
    }
    Ok(finest.ok_or_else(|| {
        refusal.unwrap_or_else(|| NoTimeWindow::NoKey {
            time_index,
            keys: aggregate.group_expr.iter().map(ToString::to_string).collect(),
        })
    }))
}

fn simplified(expr: Expr, schema: &DFSchema, state: &SessionState) -> Result<Expr, PlanError> {
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(schema.clone()))
        .with_config_options(Arc::clone(state.config_options()))
        .build();
    let simplifier = ExprSimplifier::new(context);
    Ok(simplifier.simplify(simplifier.coerce(expr, schema)?)?)
}

/// The part of `expr` that decreases: by analysis where its functions are known, else by its values at many instants.
fn decreasing_part(expr: &Expr, label: &Label, column_type: &DataType) -> Result<Option<String>, PlanError> {
    match monotonicity(expr, column_type) {
        Monotonicity::Monotone => Ok(None),
        Monotonicity::Decreasing(part) => Ok(Some(part)),
        Monotonicity::Unknown(part) => {
            let labels: Vec<i64> = label.at_all(&probes(label.unit()))?.into_iter().flatten().collect();
            let grows = labels.windows(2).all(|pair| pair[0] <= pair[1]);
            Ok((!grows || labels.is_empty()).then_some(part))
        }
    }
}

/// Instants from 1700 to 2200, sorted: every 15 minutes of 2024, in which every change of a clock falls between two of
/// them; every 30 days otherwise.
fn probes(unit: TimeUnit) -> Vec<i64> {
    let mut seconds: Vec<i64> = Vec::new();
    let new_year_2024 = 1_704_067_200;
    seconds.extend((0..366 * 96).map(|k| new_year_2024 + k * 900));
    seconds.extend((-3_287..2_800).map(|k| k * 2_592_001));
    seconds.extend([-1, 0, 1, 2, 59, 60, 61]);
    seconds.sort_unstable();
    seconds.dedup();
    seconds.into_iter().filter_map(|second| second.checked_mul(unit.per_second())).collect()
}

/// The windows of the expression: a grid where one is known and agrees with the expression's own values, else those
/// that its values show.
fn windows_of(expr: &Expr, label: &Label, column_type: &DataType) -> Window {
    let grid = propose_grid(expr, label.unit(), column_type).filter(|grid| agrees(grid, label));
    grid.unwrap_or_else(|| {
        let label = label.clone();
        Window::Opaque(OpaqueWindow::new(move |instant| match label.at(instant) {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err("it is NULL".into()),
            Err(error) => Err(error.to_string()),
        }))
    })
}

fn agrees(grid: &Window, label: &Label) -> bool {
    let value = |instant: i64| label.at(instant).ok().flatten();
    probes(label.unit()).into_iter().step_by(137).all(|instant| {
        let range = grid.range_of(instant);
        let Some(here) = value(instant) else { return true };
        let same = |t: i64| value(t).is_none_or(|there| there == here);
        let other = |t: i64| value(t).is_none_or(|there| there != here);
        same(range.start())
            && range.upper().is_none_or(|end| same(end - 1) && other(end))
            && range.lower().is_none_or(|start| other(start - 1))
    })
}

impl Label {
    fn new(
        expr: &Expr,
        time_index: &str,
        column_type: &DataType,
        state: &SessionState,
    ) -> Result<Self, PlanError> {
        let schema = Arc::new(Schema::new(vec![Field::new(time_index, column_type.clone(), true)]));
        let unqualified = expr.clone().transform_columns(Column::new_unqualified(time_index))?;
        let df_schema = DFSchema::try_from(Arc::clone(&schema))?;
        Ok(Self { expr: state.create_physical_expr(unqualified, &df_schema)?, schema })
    }

    fn data_type(&self) -> Result<DataType, PlanError> {
        Ok(self.expr.data_type(&self.schema)?)
    }

    fn unit(&self) -> TimeUnit {
        match self.schema.field(0).data_type() {
            DataType::Timestamp(unit, _) => (*unit).into(),
            _ => TimeUnit::Nanosecond,
        }
    }

    fn at(&self, instant: i64) -> Result<Option<i64>, PlanError> {
        Ok(self.evaluate(&[instant])?.first().copied().flatten())
    }

    /// The values at all of these instants; none where the expression fails.
    fn at_all(&self, instants: &[i64]) -> Result<Vec<Option<i64>>, PlanError> {
        // One instant beyond what a function can represent fails the whole batch; then each is asked alone.
        self.evaluate(instants).or_else(|_| Ok(instants.iter().map(|&t| self.at(t).ok().flatten()).collect()))
    }

    fn evaluate(&self, instants: &[i64]) -> Result<Vec<Option<i64>>, PlanError> {
        let instants = cast(&Int64Array::from(instants.to_vec()), self.schema.field(0).data_type())?;
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), vec![instants])?;
        let labels = self.expr.evaluate(&batch)?.into_array(batch.num_rows())?;
        Ok(cast(&labels, &DataType::Int64)?.as_primitive::<Int64Type>().iter().collect())
    }
}

trait TransformColumns: Sized {
    fn transform_columns(self, with: Column) -> Result<Self, PlanError>;
}

impl TransformColumns for Expr {
    fn transform_columns(self, with: Column) -> Result<Self, PlanError> {
        use datafusion::common::tree_node::{Transformed, TreeNode};
        let transformed = self.transform_up(|e| {
            Ok(match e {
                Self::Column(_) => Transformed::yes(Self::Column(with.clone())),
                other => Transformed::no(other),
            })
        })?;
        Ok(transformed.data)
    }
}

impl TimeWindow {
    /// Which instants of the source's time index fall together.
    #[must_use]
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// The one table that the query reads.
    #[must_use]
    pub fn source(&self) -> &TableReference {
        &self.source
    }

    /// The source's time index.
    #[must_use]
    pub fn time_index(&self) -> &str {
        &self.time_index
    }

    /// The position in the query's output of the value that names the window.
    #[must_use]
    pub fn output(&self) -> usize {
        self.output
    }

    /// The values that name the windows in `range`, which begins and ends with a window, as a range of values in
    /// the output column's own unit.
    ///
    /// # Errors
    /// When the expression cannot be evaluated at a bound.
    pub fn labels_of(&self, range: InstantRange) -> Result<InstantRange, PlanError> {
        let start = match range.lower() {
            Some(start) => self.label.at(start)?.unwrap_or(i64::MIN),
            None => i64::MIN,
        };
        let end = match range.upper() {
            Some(end) => self.label.at(end)?.unwrap_or(i64::MAX),
            None => i64::MAX,
        };
        Ok(InstantRange::new(start, end))
    }

    /// The window whose value is `label`, or in whose place it would be: the window of the last instant whose value
    /// is not above `label`.
    ///
    /// # Errors
    /// When the window of that instant cannot be found.
    pub fn window_labelled(&self, label: i64) -> Result<InstantRange, PlanError> {
        // Most expressions name a window by its first instant.
        let names = |instant: i64| self.label.at(instant).ok().flatten();
        if names(label) == Some(label) {
            return Ok(self.window.try_range_of(label)?);
        }
        // Expressions fail only beyond both ends of what they can represent, so a failure is on the instant's side.
        let not_above = |instant: i64| names(instant).map_or(instant < 0, |value| value <= label);
        let (mut low, mut high) = (i64::MIN, i64::MAX);
        while low < high {
            let middle = ((i128::from(low) + i128::from(high) + 1).div_euclid(2)) as i64;
            if not_above(middle) { low = middle } else { high = middle - 1 }
        }
        Ok(self.window.try_range_of(low)?)
    }

    fn is_finer_than(&self, other: &Self) -> bool {
        let width = |window: &Window| window.range_of(0).width().unwrap_or(i64::MAX);
        width(&self.window) < width(&other.window)
    }
}

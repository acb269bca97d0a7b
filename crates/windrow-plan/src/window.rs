//! The time window of a query.

use std::fmt;
use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, TableReference};
use datafusion::execution::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::PhysicalExpr;
use windrow_time::{InstantRange, OpaqueWindow, TimeUnit, Window};

use crate::PlanError;
use crate::lower::{Known, instants_in, is_constant, lower, zones_in};
use crate::probe::{Shown, agrees, probes, shown};
use crate::shape::{chain, outputs_over_aggregate, over_scan, unstable_function};

/// The time window of a query: which instants of the source fall together, and which value names them.
#[derive(Debug, Clone)]
pub struct TimeWindow {
    window: Window,
    label: Label,
    /// What all values are whole numbers of, in nanoseconds, where that is known.
    step: Option<i128>,
    domain: InstantRange,
    source: TableReference,
    time_index: String,
    output: usize,
}

/// The value of the window expression at an instant.
#[derive(Debug, Clone)]
pub(crate) struct Label {
    expr: Arc<dyn PhysicalExpr>,
    schema: Arc<Schema>,
    /// The instants at which it is evaluated.
    evaluable: InstantRange,
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
    /// A group key is an expression of the time index, but has no value at instants between others.
    Undefined {
        /// The key.
        key: String,
        /// The part of it that is to blame.
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
            Self::Undefined { key, part } => write!(
                f,
                "its group key {key} has no value at some instants between others that have one, because of {part}"
            ),
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
        let known = lower(&expr, &chain.scan.projected_schema, label.unit())?;
        let is_timestamp = matches!(label.data_type()?, DataType::Timestamp(..));
        let window = match known {
            Known::Decreasing(part) => Err(Refusal::Decreasing(part)),
            _ if !is_timestamp => continue,
            known => windows_of(known, &expr, &label, &column_type)?,
        };
        let (window, step) = match window {
            Ok(found) => found,
            Err(reason) => {
                refusal.get_or_insert(reason.of_key(key));
                continue;
            }
        };
        let Some(output) = outputs.iter().position(|&column| column == Some(index)) else {
            refusal.get_or_insert(NoTimeWindow::NotInOutput(key.to_string()));
            continue;
        };
        let candidate = TimeWindow {
            window,
            step,
            domain: label.domain(),
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

/// What keeps an expression from being a window, and which part of it.
enum Refusal {
    Decreasing(String),
    Undefined(String),
}

impl Refusal {
    fn of_key(self, key: &Expr) -> NoTimeWindow {
        let key = key.to_string();
        match self {
            Self::Decreasing(part) => NoTimeWindow::NotMonotone { key, part },
            Self::Undefined(part) => NoTimeWindow::Undefined { key, part },
        }
    }
}

/// The windows of the expression: by analysis where its functions are known and its values agree, else those that its
/// values show.
fn windows_of(
    known: Known,
    expr: &Expr,
    label: &Label,
    column_type: &DataType,
) -> Result<Result<(Window, Option<i128>), Refusal>, PlanError> {
    let zones = zones_in(expr, column_type)?;
    let probes = probes(label.unit(), &zones, &instants_in(expr, label.unit())?);
    let part = match known {
        Known::Windows { window, step } if agrees(&window, label, &probes, &zones) => {
            return Ok(Ok((window, Some(step))));
        }
        Known::Windows { .. } => expr.to_string(),
        Known::Decreasing(part) | Known::Unknown(part) => part,
    };
    Ok(match shown(label, &probes) {
        Shown::Monotone => {
            let label = label.clone();
            Ok((Window::Opaque(OpaqueWindow::new(move |instant| label.at(instant))), None))
        }
        Shown::Decreasing => Err(Refusal::Decreasing(part)),
        Shown::Hole | Shown::Nothing => Err(Refusal::Undefined(part)),
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
        let evaluable = evaluable(&unqualified, column_type, &df_schema)?;
        Ok(Self { expr: state.create_physical_expr(unqualified, &df_schema)?, schema, evaluable })
    }

    fn data_type(&self) -> Result<DataType, PlanError> {
        Ok(self.expr.data_type(&self.schema)?)
    }

    pub(crate) fn unit(&self) -> TimeUnit {
        match self.schema.field(0).data_type() {
            DataType::Timestamp(unit, _) => (*unit).into(),
            _ => TimeUnit::Nanosecond,
        }
    }

    fn at(&self, instant: i64) -> Option<i64> {
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
    fn domain(&self) -> InstantRange {
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

    /// The unit of the instants: that of the source's time index.
    #[must_use]
    pub fn unit(&self) -> TimeUnit {
        self.label.unit()
    }

    /// Whether all values that name windows are known to be whole numbers of `unit`.
    #[must_use]
    pub fn names_fit(&self, unit: TimeUnit) -> bool {
        self.step.is_some_and(|step| step % i128::from(unit.nanos()) == 0)
    }

    /// The instants whose window has a value: beyond, the expression is NULL or fails, and rows are in no window.
    #[must_use]
    pub fn domain(&self) -> InstantRange {
        self.domain
    }

    /// The values that name the windows in `range`, which begins and ends with a window, as a range of values in
    /// the output column's own unit.
    ///
    /// # Errors
    /// When the expression cannot be evaluated at a bound.
    pub fn labels_of(&self, range: InstantRange) -> Result<InstantRange, PlanError> {
        let start = range.lower().map_or(i64::MIN, |start| self.least_label_from(start));
        let end = range.upper().map_or(i64::MAX, |end| self.least_label_from(end));
        Ok(InstantRange::new(start, end))
    }

    /// The value at `instant`, or at the first one after it that has one; `i64::MIN` and `i64::MAX` stand for the value
    /// before all and after all.
    fn least_label_from(&self, instant: i64) -> i64 {
        let value = |instant: i64| self.label.at(instant);
        if instant <= self.domain.start() {
            return i64::MIN;
        }
        if !self.domain.contains(instant) {
            return i64::MAX;
        }
        if let Some(value) = value(instant) {
            return value;
        }
        // A local time that does not occur, or twice: the next that occurs once is not as far away as double the time.
        let mut distance = 1;
        while self.domain.contains(instant.saturating_add(distance)) {
            if value(instant + distance).is_some() {
                let (mut without, mut with) = (instant, instant + distance);
                while with - without > 1 {
                    let middle = without.midpoint(with);
                    if value(middle).is_some() { with = middle } else { without = middle }
                }
                return value(with).unwrap_or(i64::MAX);
            }
            distance = distance.saturating_mul(2);
        }
        i64::MAX
    }

    /// The window whose value is `label`, or in whose place it would be: the window of the last instant whose value
    /// is not above `label`.
    ///
    /// # Errors
    /// When the window of that instant cannot be found.
    pub fn window_labelled(&self, label: i64) -> Result<InstantRange, PlanError> {
        // Most expressions name a window by its first instant.
        let names = |instant: i64| self.label.at(instant);
        if names(label) == Some(label) {
            return Ok(self.window.try_range_of(label)?);
        }
        let (mut low, mut high) = (self.domain.start(), self.domain.last());
        while low < high {
            let middle = ((i128::from(low) + i128::from(high) + 1).div_euclid(2)) as i64;
            if self.least_label_from(middle) <= label { low = middle } else { high = middle - 1 }
        }
        Ok(self.window.try_range_of(low)?)
    }

    fn is_finer_than(&self, other: &Self) -> bool {
        let width = |window: &Window| window.range_of(0).width().unwrap_or(i64::MAX);
        width(&self.window) < width(&other.window)
    }
}

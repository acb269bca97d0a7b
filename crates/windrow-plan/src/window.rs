//! The time window of a query.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Column, DFSchema, ExprSchema, TableReference};
use datafusion::execution::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use windrow_time::{InstantRange, OpaqueWindow, TimeUnit, Window};

use crate::PlanError;
use crate::label::Label;
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
    expression: String,
    output: usize,
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
            Self::NoTimeIndex(table) => write!(f, "its source {} has no time index", table.table()),
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
    let Some(time_index) = time_index_of(&chain.scan.table_name) else {
        return Ok(Err(NoTimeWindow::NoTimeIndex(chain.scan.table_name.clone())));
    };
    let column = Column::new(Some(chain.scan.table_name.clone()), &time_index);
    let column_field = chain.scan.projected_schema.field_from_column(&column)?;
    let column_type = column_field.data_type().clone();
    let candidates = match chain.aggregate.map(|aggregate| aggregate.group_expr.as_slice()) {
        // A row without instant is in no window, but it is in the result of a query that only selects.
        None if column_field.is_nullable() => return Ok(Err(NoTimeWindow::NoGroups)),
        Some([]) => return Ok(Err(NoTimeWindow::NoGroups)),
        Some([Expr::GroupingSet(_)]) => return Ok(Err(NoTimeWindow::Shape("grouping sets".into()))),
        None | Some(_) => candidates(plan, chain.aggregate)?,
    };

    let mut refusal = None;
    let mut finest: Option<TimeWindow> = None;
    for Candidate { key, expr, output } in &candidates {
        let only_time = expr.column_refs().iter().all(|found| **found == column) && !is_constant(expr);
        if !only_time || expr.is_volatile() {
            continue;
        }
        let expr = simplified(expr.clone(), &chain.scan.projected_schema, state)?;
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
                refusal.get_or_insert(reason.of_key(key, &chain.scan.table_name));
                continue;
            }
        };
        let Some(output) = *output else {
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
            expression: key.to_string(),
            output,
        };
        if finest.as_ref().is_none_or(|finest| candidate.is_finer_than(finest)) {
            finest = Some(candidate);
        }
    }
    Ok(finest.ok_or_else(|| {
        refusal.unwrap_or_else(|| NoTimeWindow::NoKey {
            time_index,
            keys: candidates.iter().map(|candidate| candidate.key.to_string()).collect(),
        })
    }))
}

/// What may be a time window: a group key, or of a query without groups, an output.
struct Candidate {
    key: Expr,
    /// The key over the columns of the scan.
    expr: Expr,
    output: Option<usize>,
}

fn candidates(plan: &LogicalPlan, aggregate: Option<&Aggregate>) -> Result<Vec<Candidate>, PlanError> {
    let mut candidates = Vec::new();
    match aggregate {
        Some(aggregate) => {
            let outputs = outputs_over_aggregate(plan);
            for (index, key) in aggregate.group_expr.iter().enumerate() {
                let output = outputs.iter().position(|&column| column == Some(index));
                if let Some(expr) = over_scan(key.clone(), &aggregate.input)? {
                    candidates.push(Candidate { key: key.clone(), expr, output });
                }
            }
        }
        None => {
            for index in 0..plan.schema().fields().len() {
                let key = Expr::Column(Column::from(plan.schema().qualified_field(index)));
                if let Some(expr) = over_scan(key.clone(), plan)? {
                    candidates.push(Candidate { key, expr, output: Some(index) });
                }
            }
        }
    }
    Ok(candidates)
}

/// `expr` with casts where they are needed, and constants computed.
pub(crate) fn simplified(expr: Expr, schema: &DFSchema, state: &SessionState) -> Result<Expr, PlanError> {
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
    /// As a message, in which the source has the short name that people call it by.
    fn of_key(self, key: &Expr, source: &TableReference) -> NoTimeWindow {
        let key = key.to_string();
        let short = |part: String| part.replace(&source.to_string(), source.table());
        match self {
            Self::Decreasing(part) => NoTimeWindow::NotMonotone { key, part: short(part) },
            Self::Undefined(part) => NoTimeWindow::Undefined { key, part: short(part) },
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

    /// The expression of the time index whose values name the windows, as the query has it.
    #[must_use]
    pub fn expression(&self) -> &str {
        &self.expression
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

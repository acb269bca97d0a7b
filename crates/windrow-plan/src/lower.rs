//! From a window expression to the windows that it makes, as far as its functions are known.

use std::str::FromStr;

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{BinaryExpr, Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::{Expr, ExprSchemable, Operator};
use windrow_time::{CalendarStep, TimeUnit, Window, Zone};

use crate::PlanError;
use crate::literal::{NANOS_PER_DAY, NANOS_PER_HOUR, exact, gcd, has_days, instant_nanos, interval, nanos};

/// What is known of an expression of the time index from the functions in it.
#[derive(Debug)]
pub(crate) enum Known {
    /// The windows of its values, which are whole numbers of `step` nanoseconds.
    Windows { window: Window, step: i128 },
    /// It decreases somewhere, because of this part.
    Decreasing(String),
    /// Nothing is known of this part: only values can tell.
    Unknown(String),
}

/// What is known of `expr`, an expression of the one column of `schema` that it refers to, a timestamp in `unit`.
pub(crate) fn lower(expr: &Expr, schema: &DFSchema, unit: TimeUnit) -> Result<Known, PlanError> {
    let lowering = Lowering { schema, unit };
    Ok(match lowering.image(expr)? {
        Image::Instant { .. } => match Window::fixed(0, 1) {
            Ok(window) => Known::Windows { window, step: nanos(unit) },
            Err(_) => unknown(expr),
        },
        Image::Windows { window, step, .. } => Known::Windows { window, step },
        Image::Local { .. } | Image::Absolute { .. } => unknown(expr),
        Image::Decreasing(part) => Known::Decreasing(part),
        Image::Unknown(part) => Known::Unknown(part),
    })
}

fn unknown(expr: &Expr) -> Known {
    Known::Unknown(expr.to_string())
}

/// The zones whose rules an expression can depend on: those of its types.
pub(crate) fn zones_in(expr: &Expr, column_type: &DataType) -> Result<Vec<Zone>, PlanError> {
    use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
    let mut zones: Vec<Zone> = zone_of(column_type).into_iter().collect();
    expr.apply(|part| {
        if let Expr::Cast(Cast { field, .. }) | Expr::TryCast(TryCast { field, .. }) = part {
            zones.extend(zone_of(field.data_type()).filter(|zone| !zones.contains(zone)));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    zones.retain(|zone| !zone.is_utc() && zone.fixed_offset().is_none());
    Ok(zones)
}

/// The instants that an expression names, in `unit`: where it may change its mind.
pub(crate) fn instants_in(expr: &Expr, unit: TimeUnit) -> Result<Vec<i64>, PlanError> {
    use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
    let mut instants = Vec::new();
    expr.apply(|part| {
        if let Expr::Literal(value, _) = part {
            let number = match value {
                ScalarValue::Int64(number) => *number,
                value => instant_nanos(value).and_then(|instant| i64::try_from(instant / nanos(unit)).ok()),
            };
            instants.extend(number);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(instants)
}

fn zone_of(data_type: &DataType) -> Option<Zone> {
    match data_type {
        DataType::Timestamp(_, Some(zone)) => Zone::from_str(zone).ok(),
        _ => None,
    }
}

/// What a part of the expression is of the instant of a row.
enum Image {
    /// The instant so many units of the column later, in whatever unit.
    Instant {
        shift: i64,
    },
    /// The local time of that instant in the zone.
    Local {
        shift: i64,
        zone: Zone,
    },
    /// The instant at which that, taken as local time, occurs in the zone; there is none where clocks change.
    Absolute {
        shift: i64,
    },
    /// A name of the window that it is in, a whole number of `step` nanoseconds, another for each.
    Windows {
        window: Window,
        step: i128,
        is_start: bool,
    },
    Decreasing(String),
    Unknown(String),
}

struct Lowering<'a> {
    schema: &'a DFSchema,
    /// The unit of the column.
    unit: TimeUnit,
}

impl Lowering<'_> {
    fn image(&self, expr: &Expr) -> Result<Image, PlanError> {
        Ok(match expr {
            Expr::Column(_) => Image::Instant { shift: 0 },
            Expr::Alias(alias) => self.image(&alias.expr)?,
            Expr::Cast(Cast { expr: inner, field }) | Expr::TryCast(TryCast { expr: inner, field }) => {
                let image = self.image(inner)?;
                self.cast(image, &inner.get_type(self.schema)?, field.data_type())
                    .unwrap_or_else(|| Image::Unknown(expr.to_string()))
            }
            Expr::ScalarFunction(call) => self.function(call, expr)?,
            Expr::Negative(_) => Image::Decreasing(expr.to_string()),
            Expr::BinaryExpr(binary) => self.binary(binary, expr)?,
            _ => Image::Unknown(expr.to_string()),
        })
    }

    /// A change of unit, of zone, or between local time and instants.
    fn cast(&self, image: Image, from: &DataType, to: &DataType) -> Option<Image> {
        if let decreasing @ Image::Decreasing(_) = image {
            return Some(decreasing);
        }
        let (DataType::Timestamp(from_unit, from_zone), DataType::Timestamp(to_unit, to_zone)) = (from, to)
        else {
            return None;
        };
        let image = match (from_zone, to_zone) {
            // Only here the value changes: the instant at which local time is what it was.
            (None, Some(_)) => self.local_to_instant(image, zone_of(to)?)?,
            _ => image,
        };
        let (from, to) = (nanos(TimeUnit::from(*from_unit)), nanos(TimeUnit::from(*to_unit)));
        if to <= from {
            return Some(image);
        }
        // Arrow divides towards zero, which joins the units around it, unless nothing is lost.
        match &image {
            Image::Instant { .. } => (nanos(self.unit) % to == 0).then_some(image),
            Image::Windows { step, .. } => (step % to == 0).then_some(image),
            _ => None,
        }
    }

    fn local_to_instant(&self, image: Image, zone: Zone) -> Option<Image> {
        let fixed = if zone.is_utc() { Some(0) } else { zone.fixed_offset() };
        match (image, fixed) {
            (image, Some(0)) => Some(image),
            (Image::Instant { shift }, Some(offset)) => {
                let shift = shift.checked_sub(offset.checked_mul(self.unit.per_second())?)?;
                Some(Image::Instant { shift })
            }
            (Image::Windows { window, step, .. }, Some(_)) => {
                // An offset is a whole number of seconds, and of as many as the steps may be.
                Some(Image::Windows { window, step: gcd(step, 1_000_000_000), is_start: false })
            }
            (Image::Instant { shift }, None) => Some(Image::Absolute { shift }),
            _ => None,
        }
    }

    fn function(&self, call: &ScalarFunction, expr: &Expr) -> Result<Image, PlanError> {
        let windows = match (call.name(), call.args.as_slice()) {
            ("date_bin", [Expr::Literal(width, _), source]) => self.date_bin(width, Some(0), source)?,
            ("date_bin", [Expr::Literal(width, _), source, Expr::Literal(origin, _)]) => {
                self.date_bin(width, instant_nanos(origin), source)?
            }
            ("date_trunc", [Expr::Literal(granularity, _), source]) => {
                self.date_trunc(granularity, source)?
            }
            ("to_local_time", [source]) => self.to_local_time(source)?,
            ("date_part", [Expr::Literal(part, _), _]) if !grows(part) => {
                return Ok(Image::Decreasing(expr.to_string()));
            }
            _ => None,
        };
        Ok(windows.unwrap_or_else(|| Image::Unknown(expr.to_string())))
    }

    fn date_bin(
        &self,
        width: &ScalarValue,
        origin: Option<i128>,
        source: &Expr,
    ) -> Result<Option<Image>, PlanError> {
        let (Some((months, nanos)), Some(origin)) = (interval(width), origin) else { return Ok(None) };
        let step = match (months, nanos) {
            (0, 1..) => Step::Fixed { origin, width: nanos },
            (1.., 0) => Step::Months { origin, count: months },
            _ => return Ok(None),
        };
        // The bins are those of UTC, whatever the zone of the type.
        Ok(match self.image(source)? {
            Image::Instant { shift } => self.windows(&step, None, shift),
            Image::Local { shift, zone } => self.windows(&step, Some(zone), shift),
            inner @ Image::Windows { .. } => self.coarser(&inner, self.windows(&step, None, 0)),
            decreasing @ Image::Decreasing(_) => Some(decreasing),
            Image::Absolute { .. } | Image::Unknown(_) => None,
        })
    }

    fn date_trunc(&self, granularity: &ScalarValue, source: &Expr) -> Result<Option<Image>, PlanError> {
        let fixed = |origin: i128, width: i128| Step::Fixed { origin, width };
        let months = |count: i32| Step::Months { origin: 0, count };
        let Some(granularity) = granularity.try_as_str().flatten() else { return Ok(None) };
        // Weeks begin on a Monday, such as 1969-12-29.
        let (step, in_local_time) = match granularity.to_ascii_lowercase().as_str() {
            "microsecond" => (fixed(0, 1_000), false),
            "millisecond" => (fixed(0, 1_000_000), false),
            "second" => (fixed(0, 1_000_000_000), false),
            "minute" => (fixed(0, 60_000_000_000), false),
            "hour" => (fixed(0, NANOS_PER_HOUR), true),
            "day" => (fixed(0, NANOS_PER_DAY), true),
            "week" => (fixed(-3 * NANOS_PER_DAY, 7 * NANOS_PER_DAY), true),
            "month" => (months(1), true),
            "quarter" => (months(3), true),
            "year" => (months(12), true),
            _ => return Ok(None),
        };
        let zone = zone_of(&source.get_type(self.schema)?).filter(|_| in_local_time);
        Ok(match self.image(source)? {
            Image::Instant { shift } => self.windows(&step, zone, shift),
            Image::Local { shift, zone } => self.windows(&step, Some(zone), shift),
            // Back in local time, these are its own windows.
            Image::Absolute { shift, .. } if in_local_time => self.windows(&step, None, shift),
            inner @ Image::Windows { .. } if zone.is_none() => {
                self.coarser(&inner, self.windows(&step, None, 0))
            }
            decreasing @ Image::Decreasing(_) => Some(decreasing),
            _ => None,
        })
    }

    fn to_local_time(&self, source: &Expr) -> Result<Option<Image>, PlanError> {
        let image = self.image(source)?;
        Ok(match (zone_of(&source.get_type(self.schema)?), image) {
            (None, image) => Some(image),
            (Some(zone), image) if zone.is_utc() => Some(image),
            (Some(zone), Image::Instant { shift }) => Some(Image::Local { shift, zone }),
            (_, decreasing @ Image::Decreasing(_)) => Some(decreasing),
            _ => None,
        })
    }

    /// Windows of the instants `shift` later, in local time of the zone.
    fn windows(&self, step: &Step, zone: Option<Zone>, shift: i64) -> Option<Image> {
        let zone = zone.filter(|zone| !zone.is_utc());
        let offset = zone.as_ref().map_or(Some(0), Zone::fixed_offset);
        let (window, names) = match (step, offset) {
            (Step::Fixed { origin, width }, Some(offset)) => {
                let window = Window::fixed(exact(*origin, self.unit)?, exact(*width, self.unit)?).ok()?;
                (window.shifted(offset.checked_mul(self.unit.per_second())?)?, gcd(*origin, *width))
            }
            (Step::Months { origin, count }, Some(offset)) => {
                let window =
                    Window::months_from((*count).into(), exact(*origin, self.unit)?, self.unit).ok()?;
                (window.shifted(offset.checked_mul(self.unit.per_second())?)?, gcd(*origin, NANOS_PER_DAY))
            }
            (step, None) => {
                let window = Window::calendar(step.in_local_time()?, zone?, self.unit).ok()?;
                (window, 1_000_000_000)
            }
        };
        // Names are instants again, so an offset is in them.
        let step = if offset == Some(0) { names } else { gcd(names, 1_000_000_000) };
        Some(Image::Windows { window: window.shifted(shift)?, step, is_start: shift == 0 })
    }

    /// `outer`, the windows of instants, as those of the begins of the windows `inner`: where these fit into them.
    fn coarser(&self, inner: &Image, outer: Option<Image>) -> Option<Image> {
        let Image::Windows { window: Window::Fixed(inner), is_start: true, .. } = inner else { return None };
        let outer = outer?;
        let Image::Windows { window, .. } = &outer else { return None };
        let begins_with_inner =
            |begin: i64| (i128::from(begin) - i128::from(inner.origin())) % i128::from(inner.width()) == 0;
        let fits = match window {
            Window::Fixed(grid) => grid.width() % inner.width() == 0 && begins_with_inner(grid.origin()),
            // Months that begin at midnight.
            Window::Calendar(calendar) if calendar.zone().is_none() => {
                self.unit.per_day() % inner.width() == 0
                    && begins_with_inner(0)
                    && begins_with_inner(window.range_of(0).start())
            }
            _ => false,
        };
        fits.then_some(outer)
    }

    fn binary(&self, binary: &BinaryExpr, expr: &Expr) -> Result<Image, PlanError> {
        let BinaryExpr { left, op, right } = binary;
        let (inner, by, sign) = match op {
            Operator::Plus if is_constant(right) => (left, right, 1),
            Operator::Plus if is_constant(left) => (right, left, 1),
            Operator::Minus if is_constant(right) => (left, right, -1),
            Operator::Minus if is_constant(left) => return Ok(Image::Decreasing(expr.to_string())),
            Operator::Modulo if is_constant(right) => return Ok(Image::Decreasing(expr.to_string())),
            _ => return Ok(Image::Unknown(expr.to_string())),
        };
        let image = self.image(inner)?;
        let inner_type = inner.get_type(self.schema)?;
        let shifted = match by.as_ref() {
            Expr::Literal(by, _) => self.plus(image, &inner_type, by, sign),
            _ => None,
        };
        Ok(shifted.unwrap_or_else(|| Image::Unknown(expr.to_string())))
    }

    /// The image an interval later, where that is the same time for all instants.
    fn plus(&self, image: Image, data_type: &DataType, by: &ScalarValue, sign: i128) -> Option<Image> {
        if let decreasing @ Image::Decreasing(_) = image {
            return Some(decreasing);
        }
        let DataType::Timestamp(..) = data_type else { return None };
        let (months, nanos) = interval(by)?;
        // A day of local time is not always as long, nor is a month.
        let zone = zone_of(data_type).filter(|zone| !zone.is_utc() && zone.fixed_offset().is_none());
        if months != 0 || (has_days(by) && zone.is_some()) {
            return None;
        }
        match image {
            Image::Instant { shift } => {
                let by = exact(sign * nanos, self.unit)?;
                Some(Image::Instant { shift: shift.checked_add(by)? })
            }
            Image::Windows { window, step, .. } => {
                Some(Image::Windows { window, step: gcd(step, nanos), is_start: nanos == 0 })
            }
            _ => None,
        }
    }
}

/// How time is cut, in nanoseconds.
enum Step {
    Fixed { origin: i128, width: i128 },
    Months { origin: i128, count: i32 },
}

impl Step {
    fn in_local_time(&self) -> Option<CalendarStep> {
        match *self {
            Self::Fixed { origin: 0, width } if width % NANOS_PER_DAY == 0 => {
                Some(CalendarStep::Days((width / NANOS_PER_DAY).try_into().ok()?))
            }
            Self::Fixed { origin: 0, width } if width % NANOS_PER_HOUR == 0 => {
                Some(CalendarStep::Hours((width / NANOS_PER_HOUR).try_into().ok()?))
            }
            Self::Fixed { origin, width }
                if origin == -3 * NANOS_PER_DAY && width % (7 * NANOS_PER_DAY) == 0 =>
            {
                Some(CalendarStep::Weeks((width / (7 * NANOS_PER_DAY)).try_into().ok()?))
            }
            Self::Months { origin: 0, count } => Some(CalendarStep::Months(count.try_into().ok()?)),
            _ => None,
        }
    }
}

/// Whether a part of a date only grows.
fn grows(part: &ScalarValue) -> bool {
    let part = part.try_as_str().flatten().unwrap_or_default().to_ascii_lowercase();
    matches!(part.as_str(), "year" | "isoyear" | "epoch")
}

pub(crate) fn is_constant(expr: &Expr) -> bool {
    expr.column_refs().is_empty() && !expr.is_volatile()
}

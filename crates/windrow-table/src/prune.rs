//! Which segments of a table can hold a row that passes some filters, by the time index alone.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, UInt64Array};
use arrow::compute::cast;
use datafusion::catalog::Session;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::conjunction;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use windrow_time::InstantRange;

use crate::TableSpec;

/// The time index of a segment's rows: both ends are in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeSpan {
    /// The earliest instant.
    pub first: i64,
    /// The latest instant.
    pub last: i64,
    /// Rows without an instant.
    pub nulls: u64,
    /// All rows.
    pub rows: u64,
}

impl TimeSpan {
    /// Whether an instant of `range` may be in the segment.
    #[must_use]
    pub fn overlaps(&self, range: InstantRange) -> bool {
        self.first < range.end() && self.last >= range.start() || range.contains(self.last)
    }

    /// How many of the rows fall into `ranges` (sorted and disjoint), taking them to be spread evenly, rounded up.
    fn share_in(&self, ranges: &[InstantRange]) -> u64 {
        let length = (i128::from(self.last) - i128::from(self.first) + 1) as f64;
        let covered: i128 = ranges
            .iter()
            .map(|range| {
                let start = range.start().max(self.first);
                let end = i128::from(range.end()).min(i128::from(self.last) + 1);
                (end - i128::from(start)).max(0)
            })
            .sum();
        ((self.rows as f64) * (covered as f64 / length)).ceil() as u64
    }
}

/// About how many rows of the segments have their time index in `ranges` (sorted and disjoint). Segments whose span
/// is not known count in full.
#[must_use]
pub fn overlapping_rows(
    spans: impl IntoIterator<Item = (Option<TimeSpan>, u64)>,
    ranges: &[InstantRange],
) -> u64 {
    spans
        .into_iter()
        .map(|(span, rows)| match span {
            Some(span) => span.share_in(ranges),
            None => rows,
        })
        .sum()
}

/// The spans of all segments of a table.
#[derive(Debug)]
pub struct TimeSpans<'a> {
    spec: &'a TableSpec,
    spans: Vec<Option<TimeSpan>>,
}

impl<'a> TimeSpans<'a> {
    /// The spans, by segment; `None` for a segment of which nothing is known.
    pub fn new(spec: &'a TableSpec, spans: impl IntoIterator<Item = Option<TimeSpan>>) -> Self {
        Self { spec, spans: spans.into_iter().collect() }
    }

    /// For each segment, whether a row of it may pass all of `filters`.
    ///
    /// # Errors
    /// When a filter cannot be planned.
    pub fn may_pass(&self, state: &dyn Session, filters: &[Expr]) -> DataFusionResult<Vec<bool>> {
        let all = vec![true; self.spans.len()];
        let (Some(_), Some(filter)) = (self.spec.time_index(), conjunction(filters.iter().cloned())) else {
            return Ok(all);
        };
        let schema = DFSchema::try_from(Arc::clone(self.spec.schema()))?;
        let predicate = state.create_physical_expr(filter, &schema)?;
        // A filter that statistics cannot speak about keeps every segment.
        match PruningPredicateBuilder::new()
            .with_file_schema(Arc::clone(self.spec.schema()))
            .try_build(predicate)
        {
            Ok(predicate) => predicate.prune(self),
            Err(_) => Ok(all),
        }
    }

    fn is_time_index(&self, column: &Column) -> bool {
        self.spec.time_index_name() == Some(column.name.as_str())
    }

    fn instants(&self, column: &Column, of: impl Fn(&TimeSpan) -> i64) -> Option<ArrayRef> {
        if !self.is_time_index(column) {
            return None;
        }
        let values: Int64Array = self.spans.iter().map(|span| span.as_ref().map(&of)).collect();
        let data_type = self.spec.schema().field(self.spec.time_index()?).data_type();
        cast(&values, data_type).ok()
    }
}

impl PruningStatistics for TimeSpans<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.instants(column, |span| span.first)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.instants(column, |span| span.last)
    }

    fn num_containers(&self) -> usize {
        self.spans.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        if !self.is_time_index(column) {
            return None;
        }
        let counts: UInt64Array = self.spans.iter().map(|span| span.map(|span| span.nulls)).collect();
        Some(Arc::new(counts))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let counts: UInt64Array = self.spans.iter().map(|span| span.map(|span| span.rows)).collect();
        Some(Arc::new(counts))
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}

//! Copy on write: which rows of a segment a write removes.
//!
//! A segment (a batch in memory, a file) is never changed. A commit that removes some of its rows puts a new
//! segment with the others in its place; a segment that loses nothing stays as it is.

use std::collections::HashSet;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::compute::{cast, filter_record_batch, not, prep_null_mask_filter};
use arrow::datatypes::{DataType, Int64Type};
use arrow::row::{OwnedRow, RowConverter, SortField};
use windrow_time::InstantRange;

use crate::{TableError, TableSpec, TimeSpan, Write, rows};

/// The rows that a write removes from the segments of a table.
#[derive(Debug)]
pub struct Removal<'a> {
    spec: &'a TableSpec,
    write: &'a Write,
    replaced: Option<ReplacedKeys>,
}

/// What a write leaves of a segment.
#[derive(Debug)]
pub enum Survivors {
    /// Nothing is removed.
    All,
    /// Some rows are: what stays, and what goes.
    Some {
        /// The rows that stay; there may be none.
        kept: RecordBatch,
        /// The rows that go.
        removed: RecordBatch,
    },
}

#[derive(Debug)]
struct ReplacedKeys {
    columns: Vec<usize>,
    converter: RowConverter,
    keys: HashSet<OwnedRow>,
    span: Option<TimeSpan>,
}

impl<'a> Removal<'a> {
    /// The removal of `write`. An upsert has to know its own rows; the answer has those that are to be added, which
    /// are fewer where the new rows repeat a key.
    ///
    /// # Errors
    /// When the rows do not fit the table.
    pub fn new(
        spec: &'a TableSpec,
        write: &'a Write,
        new_rows: RecordBatch,
    ) -> Result<(Self, RecordBatch), TableError> {
        let Write::Upsert { key } = write else {
            return Ok((Self { spec, write, replaced: None }, new_rows));
        };
        let (replaced, last_rows) = ReplacedKeys::of(spec, key, new_rows)?;
        Ok((Self { spec, write, replaced: Some(replaced) }, last_rows))
    }

    /// Whether a segment with this span of time can lose a row; a segment of unknown span always can.
    #[must_use]
    pub fn may_touch(&self, segment: Option<TimeSpan>) -> bool {
        match (self.write, &self.replaced) {
            (Write::Append | Write::Compact, _) => false,
            (Write::ReplaceAll | Write::Delete { .. }, _) => true,
            (Write::Replace { ranges }, _) => {
                segment.is_none_or(|span| ranges.iter().any(|&range| span.overlaps(range)))
            }
            (Write::Upsert { .. }, None) => true,
            (Write::Upsert { .. }, Some(replaced)) => {
                !replaced.keys.is_empty()
                    && match (segment, replaced.span) {
                        (Some(segment), Some(new)) => segment.first <= new.last && new.first <= segment.last,
                        _ => true,
                    }
            }
        }
    }

    /// What stays of `segment`.
    ///
    /// # Errors
    /// When a predicate cannot be evaluated.
    pub fn survivors(&self, segment: &RecordBatch) -> Result<Survivors, TableError> {
        let goes = self.goes(segment)?;
        if goes.true_count() == 0 {
            return Ok(Survivors::All);
        }
        let kept = filter_record_batch(segment, &not(&goes)?)?;
        let removed = filter_record_batch(segment, &goes)?;
        Ok(Survivors::Some { kept, removed })
    }

    /// For each row whether it is removed; never null.
    fn goes(&self, segment: &RecordBatch) -> Result<BooleanArray, TableError> {
        let rows = segment.num_rows();
        match self.write {
            Write::Append | Write::Compact => Ok(BooleanArray::from(vec![false; rows])),
            Write::ReplaceAll => Ok(BooleanArray::from(vec![true; rows])),
            Write::Replace { ranges } => self.in_ranges(segment, ranges),
            Write::Delete { predicate } => {
                let value = predicate.evaluate(segment)?.into_array(rows)?;
                let Some(mask) = value.as_boolean_opt() else {
                    return Err(TableError::Schema(format!("a condition cannot be {}", value.data_type())));
                };
                Ok(if mask.null_count() == 0 { mask.clone() } else { prep_null_mask_filter(mask) })
            }
            Write::Upsert { .. } => match &self.replaced {
                Some(replaced) => replaced.contains(segment),
                None => Ok(BooleanArray::from(vec![false; rows])),
            },
        }
    }

    fn in_ranges(&self, segment: &RecordBatch, ranges: &[InstantRange]) -> Result<BooleanArray, TableError> {
        let Some(instants) = rows::instants_of(self.spec, segment) else {
            return Err(TableError::Schema("a table without time index has no windows to replace".into()));
        };
        let instants = cast(&instants, &DataType::Int64)?;
        Ok(instants
            .as_primitive::<Int64Type>()
            .iter()
            .map(|instant| {
                Some(instant.is_some_and(|instant| {
                    let after = ranges.partition_point(|range| range.start() <= instant);
                    after > 0 && ranges[after - 1].contains(instant)
                }))
            })
            .collect())
    }
}

impl ReplacedKeys {
    fn of(spec: &TableSpec, key: &[usize], new_rows: RecordBatch) -> Result<(Self, RecordBatch), TableError> {
        let fields =
            key.iter().map(|&index| SortField::new(spec.schema().field(index).data_type().clone())).collect();
        let mut replaced = Self {
            columns: key.to_vec(),
            converter: RowConverter::new(fields)?,
            keys: HashSet::with_capacity(new_rows.num_rows()),
            span: None,
        };
        let keys = replaced.convert(&new_rows)?;
        // From the last row to the first, so that the last of equal keys is the one that is new.
        let mut stays = vec![false; new_rows.num_rows()];
        for (index, key) in keys.iter().enumerate().rev() {
            stays[index] = replaced.keys.insert(key.owned());
        }
        let last_rows = filter_record_batch(&new_rows, &BooleanArray::from(stays))?;
        if spec.time_index().is_some_and(|index| key.contains(&index)) {
            // Without nulls in the time index, only segments of this span can hold an equal key.
            replaced.span = rows::time_span(spec, &last_rows)?.filter(|span| span.nulls == 0);
        }
        Ok((replaced, last_rows))
    }

    fn convert(&self, batch: &RecordBatch) -> Result<arrow::row::Rows, TableError> {
        let columns: Vec<_> = self.columns.iter().map(|&index| batch.column(index).clone()).collect();
        Ok(self.converter.convert_columns(&columns)?)
    }

    fn contains(&self, segment: &RecordBatch) -> Result<BooleanArray, TableError> {
        let rows = self.convert(segment)?;
        Ok(rows.iter().map(|row| Some(self.keys.contains(&row.owned()))).collect())
    }
}

//! From an Arrow timestamp array to the windows of its values.
//!
//! The values are read in blocks. A sorted block is left window by window; a block of values that are all in one window
//! costs the search for its least and greatest. What is left, blocks of unsorted values from several windows, is marked
//! in a table with a byte for each window between the least and the greatest of those values, where that is small, and sorted
//! otherwise.

use arrow_array::types::{
    ArrowTimestampType, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType,
};
use arrow_array::{Array, PrimitiveArray, cast::AsArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit as ArrowUnit};

use crate::grid::GridNumbering;
use crate::{InstantRange, Window, WindowError};

/// Values that are looked at together: few enough to stay in the first-level cache.
const BLOCK: usize = 1_024;

/// Why an array could not be marked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MarkError {
    /// The array does not hold timestamps.
    #[error("a column of type {0} has no instants; a timestamp column is needed")]
    NotTimestamps(DataType),
    /// A window could not be found.
    #[error(transparent)]
    Window(#[from] WindowError),
}

/// The windows of an array's values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Marks {
    ranges: Vec<InstantRange>,
    instants: usize,
    nulls: usize,
}

impl Marks {
    /// The windows as ranges, sorted and disjoint; windows next to each other are one range. Each window in them has at
    /// least one of the values: [`Window::windows_in`] lists them.
    #[must_use]
    pub fn ranges(&self) -> &[InstantRange] {
        &self.ranges
    }

    /// The ranges of [`Marks::ranges`].
    #[must_use]
    pub fn into_ranges(self) -> Vec<InstantRange> {
        self.ranges
    }

    /// How many values were instants.
    #[must_use]
    pub fn instants(&self) -> usize {
        self.instants
    }

    /// How many values were null, and so in no window.
    #[must_use]
    pub fn nulls(&self) -> usize {
        self.nulls
    }
}

impl Window {
    /// The windows of the values of `array`.
    ///
    /// The instants are taken in the array's own unit; a time zone changes nothing about an instant. Nulls are in no
    /// window, and counted.
    ///
    /// # Errors
    /// When `array` holds no timestamps, or the function of an opaque window is not monotone.
    ///
    /// ```
    /// use arrow_array::TimestampSecondArray;
    /// use windrow_time::{InstantRange, Window};
    ///
    /// let minute = Window::fixed(0, 60)?;
    /// let times = TimestampSecondArray::from(vec![Some(301), Some(59), None, Some(60), Some(1)]);
    /// let marks = minute.mark(&times)?;
    /// assert_eq!(marks.ranges(), [InstantRange::new(0, 120), InstantRange::new(300, 360)]);
    /// assert_eq!((marks.instants(), marks.nulls()), (4, 1));
    /// # Ok::<(), windrow_time::MarkError>(())
    /// ```
    pub fn mark(&self, array: &dyn Array) -> Result<Marks, MarkError> {
        match array.data_type() {
            DataType::Timestamp(ArrowUnit::Second, _) => {
                self.mark_values::<TimestampSecondType>(array.as_primitive())
            }
            DataType::Timestamp(ArrowUnit::Millisecond, _) => {
                self.mark_values::<TimestampMillisecondType>(array.as_primitive())
            }
            DataType::Timestamp(ArrowUnit::Microsecond, _) => {
                self.mark_values::<TimestampMicrosecondType>(array.as_primitive())
            }
            DataType::Timestamp(ArrowUnit::Nanosecond, _) => {
                self.mark_values::<TimestampNanosecondType>(array.as_primitive())
            }
            other => Err(MarkError::NotTimestamps(other.clone())),
        }
    }

    fn mark_values<T: ArrowTimestampType>(&self, array: &PrimitiveArray<T>) -> Result<Marks, MarkError> {
        let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
        let mut marker = Marker::new(self);
        marker.mark_runs(array.values(), nulls)?;
        marker.mark_rest(array.values(), nulls)?;
        InstantRange::coalesce(&mut marker.found);
        let nulls = nulls.map_or(0, NullBuffer::null_count);
        Ok(Marks { ranges: marker.found, instants: array.len() - nulls, nulls })
    }
}

/// The blocks of an array: the number of each and its values that are not null.
fn blocks(
    values: &[i64],
    nulls: Option<&NullBuffer>,
    numbers: impl Iterator<Item = usize>,
    mut visit: impl FnMut(usize, &[i64]) -> Result<(), WindowError>,
) -> Result<(), WindowError> {
    let mut valid = [0; BLOCK];
    for number in numbers {
        let start = number * BLOCK;
        let block = &values[start..values.len().min(start + BLOCK)];
        let Some(nulls) = nulls else {
            visit(number, block)?;
            continue;
        };
        let mut count = 0;
        for (offset, &value) in block.iter().enumerate() {
            valid[count] = value;
            count += usize::from(nulls.is_valid(start + offset));
        }
        if count > 0 {
            visit(number, &valid[..count])?;
        }
    }
    Ok(())
}

struct Marker<'a> {
    window: &'a Window,
    current: InstantRange,
    found: Vec<InstantRange>,
    /// The numbers of the blocks that are left, how many values they have, and the least and greatest of those.
    rest: Vec<usize>,
    rest_len: usize,
    low: i64,
    high: i64,
}

impl<'a> Marker<'a> {
    fn new(window: &'a Window) -> Self {
        Self {
            window,
            current: InstantRange::new(0, 0),
            found: Vec::new(),
            rest: Vec::new(),
            rest_len: 0,
            low: i64::MAX,
            high: i64::MIN,
        }
    }

    /// Marks the blocks that are sorted or in one window, and notes the others.
    fn mark_runs(&mut self, values: &[i64], nulls: Option<&NullBuffer>) -> Result<(), WindowError> {
        blocks(values, nulls, 0..values.len().div_ceil(BLOCK), |number, block| {
            if block.is_sorted() {
                return self.mark_sorted(block);
            }
            let (low, high) = bounds(block);
            self.enter_window_of(low)?;
            if !self.current.contains(high) {
                self.rest.push(number);
                self.rest_len += block.len();
                self.low = self.low.min(low);
                self.high = self.high.max(high);
            }
            Ok(())
        })
    }

    fn mark_sorted(&mut self, mut values: &[i64]) -> Result<(), WindowError> {
        while let [first, .., last] | [first @ last] = values {
            self.enter_window_of(*first)?;
            if self.current.contains(*last) {
                return Ok(());
            }
            values = &values[leading(values, self.current.end())..];
        }
        Ok(())
    }

    fn enter_window_of(&mut self, instant: i64) -> Result<(), WindowError> {
        if !self.current.contains(instant) {
            self.current = self.window.try_range_of(instant)?;
            push(&mut self.found, self.current);
        }
        Ok(())
    }

    /// Marks the blocks that [`Marker::mark_runs`] has left.
    fn mark_rest(&mut self, values: &[i64], nulls: Option<&NullBuffer>) -> Result<(), WindowError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        let rest = std::mem::take(&mut self.rest);
        // The table takes half the memory of the values at most.
        let limit = (4 * self.rest_len as u64).max(BLOCK as u64);
        let mark = |numbering: &dyn Fn(&[i64], &mut [u8]), windows: u64| {
            let mut marked = vec![0_u8; windows as usize];
            blocks(values, nulls, rest.iter().copied(), |_, block| {
                numbering(block, &mut marked);
                Ok(())
            })?;
            Ok::<_, WindowError>(marked)
        };
        if let Window::Fixed(grid) = self.window
            && self.high < i64::MAX
            && let Some(grid) = grid.numbering(self.low, self.high).filter(|grid| grid.last() < limit)
        {
            let marked = mark(&|block, marked| mark_numbers(&grid, block, marked), grid.last() + 1)?;
            runs(&marked, |first, last| push(&mut self.found, grid.range(first as u64, last as u64)));
            return Ok(());
        }
        if let Some(table) = WindowTable::new(self.window, self.low, self.high, limit)? {
            let marked = mark(&|block, marked| table.mark_numbers(block, marked), table.len() as u64)?;
            runs(&marked, |first, last| push(&mut self.found, table.range(first, last)));
            return Ok(());
        }
        let mut sorted = Vec::with_capacity(self.rest_len);
        blocks(values, nulls, rest.iter().copied(), |_, block| {
            sorted.extend_from_slice(block);
            Ok(())
        })?;
        sorted.sort_unstable();
        self.mark_sorted(&sorted)
    }
}

fn push(found: &mut Vec<InstantRange>, range: InstantRange) {
    match found.last_mut() {
        // In order, the windows of a run are joined as they come.
        Some(last) if last.end() == range.start() && last.start() <= range.start() => {
            *last = InstantRange::new(last.start(), range.end());
        }
        _ => found.push(range),
    }
}

/// How many values at the begin of the sorted `values` are before `end`: found in about twice the logarithm of it, as runs
/// may be short.
fn leading(values: &[i64], end: i64) -> usize {
    let mut bound = 1;
    while values.get(bound).is_some_and(|&value| value < end) {
        bound *= 2;
    }
    let (from, to) = (bound / 2, values.len().min(bound + 1));
    from + values[from..to].partition_point(|&value| value < end)
}

/// The least and the greatest value, with eight comparisons under way at a time.
fn bounds(values: &[i64]) -> (i64, i64) {
    let (chunks, rest) = values.as_chunks::<8>();
    let mut low = [i64::MAX; 8];
    let mut high = [i64::MIN; 8];
    for chunk in chunks {
        for lane in 0..8 {
            low[lane] = low[lane].min(chunk[lane]);
            high[lane] = high[lane].max(chunk[lane]);
        }
    }
    let ends = |fold: fn(i64, i64) -> i64, lanes: [i64; 8]| {
        lanes.into_iter().chain(rest.iter().copied()).reduce(fold)
    };
    (ends(i64::min, low).unwrap_or(i64::MAX), ends(i64::max, high).unwrap_or(i64::MIN))
}

fn mark_numbers(grid: &GridNumbering, block: &[i64], marked: &mut [u8]) {
    for &value in block {
        marked[grid.number_of(value) as usize] = 1;
    }
}

/// The runs of marked numbers, each with its first and its last.
fn runs(marked: &[u8], mut visit: impl FnMut(usize, usize)) {
    let mut at = 0;
    while let Some(skipped) = marked[at..].iter().position(|&mark| mark != 0) {
        let first = at + skipped;
        let length = marked[first..].iter().position(|&mark| mark == 0).unwrap_or(marked.len() - first);
        visit(first, first + length - 1);
        at = first + length;
    }
}

/// The windows between two instants, and where to look for that of one of them: instants are cut into slots of one
/// width, fewer than there can be windows, and each slot knows the window of its first instant.
struct WindowTable {
    low: i64,
    /// The begins of the windows, and the end of the last.
    bounds: Vec<i64>,
    /// The logarithm of the width of a slot.
    shift: u32,
    slots: Vec<u32>,
}

impl WindowTable {
    /// The table of the windows of a calendar; `None` for other windows, and where there are more than `limit`.
    fn new(window: &Window, low: i64, high: i64, limit: u64) -> Result<Option<Self>, WindowError> {
        let Window::Calendar(calendar) = window else { return Ok(None) };
        let span = i128::from(high) - i128::from(low);
        // The number of windows is about this; if it turns out to be more, the work so far is not much.
        if span / calendar.usual_width() >= limit.into() {
            return Ok(None);
        }
        let mut bounds = Vec::new();
        let mut end = low;
        for found in window.windows_in(InstantRange::new(low, high.saturating_add(1))) {
            let found = found?;
            if bounds.len() as u64 == limit {
                return Ok(None);
            }
            bounds.push(found.start());
            end = found.end();
        }
        bounds.push(end);
        let span = u64::try_from(span).unwrap_or(u64::MAX);
        // Four slots a window, so that most have no bound in them.
        let slot = (span / (4 * bounds.len() as u64)).max(1);
        let shift = slot.ilog2();
        let mut slots = Vec::new();
        let mut number = 0;
        for slot in 0..=(span >> shift) {
            let first = i128::from(low) + (i128::from(slot) << shift);
            while number + 2 < bounds.len() && i128::from(bounds[number + 1]) <= first {
                number += 1;
            }
            slots.push(number as u32);
        }
        Ok(Some(Self { low, bounds, shift, slots }))
    }

    fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    fn range(&self, first: usize, last: usize) -> InstantRange {
        InstantRange::new(self.bounds[first], self.bounds[last + 1])
    }

    fn mark_numbers(&self, block: &[i64], marked: &mut [u8]) {
        let last = self.len() - 1;
        for &value in block {
            let slot = (value.wrapping_sub(self.low).cast_unsigned() >> self.shift) as usize;
            let mut number = self.slots[slot] as usize;
            // Once without a branch, as whether a slot's first bound is before a value is anyone's guess.
            number += usize::from(number < last && self.bounds[number + 1] <= value);
            while number < last && self.bounds[number + 1] <= value {
                number += 1;
            }
            marked[number] = 1;
        }
    }
}

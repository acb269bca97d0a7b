//! The statistics of a data file, as the `stats` of an `add` action have them.
//!
//! Delta cuts timestamps in statistics to milliseconds, the greatest one too: a reader has to take it as anything
//! up to the next millisecond. Statistics that say nothing, or something that is not understood, are unknown;
//! a file of which nothing is known is read.

use arrow::datatypes::{DataType, TimeUnit as ArrowUnit};
use chrono::{DateTime, Datelike, NaiveDateTime};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windrow_table::TimeSpan;

use crate::snapshot::Declared;

/// What a greatest timestamp may have lost to the cut, in microseconds.
const CUT: i64 = 999;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Stats {
    num_records: Option<u64>,
    min_values: Map<String, Value>,
    max_values: Map<String, Value>,
    null_count: Map<String, Value>,
}

/// What the statistics of a file say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FileFacts {
    pub(crate) rows: Option<u64>,
    pub(crate) span: Option<TimeSpan>,
}

/// Reads the statistics of an `add` action.
pub(crate) fn parse(stats: Option<&str>, declared: &Declared) -> FileFacts {
    let Some(stats) = stats.and_then(|text| serde_json::from_str::<Stats>(text).ok()) else {
        return FileFacts::default();
    };
    FileFacts { rows: stats.num_records, span: span(&stats, declared) }
}

fn span(stats: &Stats, declared: &Declared) -> Option<TimeSpan> {
    let (name, field) = declared.time_index()?;
    let DataType::Timestamp(unit, zone) = field.data_type() else { return None };
    let rows = stats.num_records?;
    let nulls = match stats.null_count.get(name) {
        Some(count) => count.as_u64()?,
        None if !field.is_nullable() => 0,
        None => return None,
    };
    let instant = |values: &Map<String, Value>| micros(values.get(name)?.as_str()?, zone.is_some());
    let (first, last) = (instant(&stats.min_values)?, instant(&stats.max_values)?);
    let scale = micros_per(*unit);
    let last = last.saturating_add(CUT).div_euclid(scale);
    let first = first.div_euclid(scale);
    (first <= last).then_some(TimeSpan { first, last, nulls, rows })
}

const fn micros_per(unit: ArrowUnit) -> i64 {
    match unit {
        ArrowUnit::Second => 1_000_000,
        ArrowUnit::Millisecond => 1_000,
        ArrowUnit::Microsecond | ArrowUnit::Nanosecond => 1,
    }
}

/// The instant in a statistic. Where the column has a time zone, the text must have an offset: without, it would be
/// the writer's local time.
fn micros(text: &str, zoned: bool) -> Option<i64> {
    if zoned {
        return DateTime::parse_from_rfc3339(&text.replacen(' ', "T", 1)).ok().map(|t| t.timestamp_micros());
    }
    let text = text.trim_end_matches('Z');
    ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())
        .map(|t| t.and_utc().timestamp_micros())
}

/// The statistics of a file that is being written.
#[derive(Debug, Default)]
pub(crate) struct NewFile {
    pub(crate) rows: u64,
    /// By column.
    pub(crate) nulls: Vec<(String, u64)>,
    pub(crate) times: Option<TimeBounds>,
}

/// The earliest and the latest time index of a file that is being written.
#[derive(Debug)]
pub(crate) struct TimeBounds {
    pub(crate) column: String,
    pub(crate) zoned: bool,
    /// In microseconds.
    pub(crate) first: i64,
    pub(crate) last: i64,
}

impl NewFile {
    /// The text for the `add` action.
    pub(crate) fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut stats = Stats { num_records: Some(self.rows), ..Stats::default() };
        for (column, count) in &self.nulls {
            stats.null_count.insert(column.clone(), (*count).into());
        }
        if let Some(times) = &self.times
            && let (Some(first), Some(last)) = (text(times.first, times.zoned), text(times.last, times.zoned))
        {
            stats.min_values.insert(times.column.clone(), first.into());
            stats.max_values.insert(times.column.clone(), last.into());
        }
        serde_json::to_string(&stats)
    }
}

/// Years of other than four digits are left out: not every reader understands them.
fn text(micros: i64, zoned: bool) -> Option<String> {
    let instant = DateTime::from_timestamp_micros(micros)?;
    let format = if zoned { "%Y-%m-%dT%H:%M:%S%.3fZ" } else { "%Y-%m-%dT%H:%M:%S%.3f" };
    (1..=9999).contains(&instant.year()).then(|| instant.format(format).to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{Field, Schema};
    use windrow_table::TableSpec;

    use super::*;

    fn declared(unit: ArrowUnit, zone: Option<&str>, nullable: bool) -> Declared {
        let data_type = DataType::Timestamp(unit, zone.map(Into::into));
        let schema = Arc::new(Schema::new(vec![Field::new("t.s", data_type, nullable)]));
        let in_files = schema.fields().to_vec();
        let spec = TableSpec::new(schema).unwrap().with_time_index("t.s").unwrap();
        Declared { spec, partition_columns: Vec::new(), in_files }
    }

    fn stats(first: &str, last: &str) -> String {
        format!(
            r#"{{"numRecords":3,"minValues":{{"t.s":"{first}"}},"maxValues":{{"t.s":"{last}"}},"nullCount":{{"t.s":1}}}}"#
        )
    }

    #[test]
    fn a_span_holds_every_instant_that_the_cut_may_have_hidden() {
        let text = stats("1969-12-31T23:59:59.999", "1970-01-01T00:00:00.001");
        let span = |unit| parse(Some(&text), &declared(unit, None, true)).span.unwrap();
        let micros = span(ArrowUnit::Microsecond);
        assert_eq!((micros.first, micros.last, micros.nulls, micros.rows), (-1_000, 1_999, 1, 3));
        let millis = span(ArrowUnit::Millisecond);
        assert_eq!((millis.first, millis.last), (-1, 1));
        let seconds = span(ArrowUnit::Second);
        assert_eq!((seconds.first, seconds.last), (-1, 0));
    }

    #[test]
    fn what_is_written_is_read_as_a_span_around_it() {
        for zone in [None, Some("UTC")] {
            for (first, last) in [(-1, 1), (-62_135_596_800_000_000, 253_402_300_799_999_999), (1_500, 1_500)]
            {
                let times = TimeBounds { column: "t.s".into(), zoned: zone.is_some(), first, last };
                let new = NewFile { rows: 2, nulls: vec![("t.s".into(), 0)], times: Some(times) };
                let text = new.to_json().unwrap();
                let facts = parse(Some(&text), &declared(ArrowUnit::Microsecond, zone, false));
                let span = facts.span.unwrap();
                assert!(span.first <= first && first - span.first < 1_000, "{text}");
                assert!(span.last >= last && span.last - last < 1_000, "{text}");
            }
        }
        let far = TimeBounds { column: "t.s".into(), zoned: false, first: i64::MIN, last: 0 };
        let text = NewFile { rows: 1, nulls: vec![], times: Some(far) }.to_json().unwrap();
        assert_eq!(
            parse(Some(&text), &declared(ArrowUnit::Second, None, false)),
            FileFacts { rows: Some(1), span: None }
        );
    }

    #[test]
    fn what_is_not_known_for_sure_is_unknown() {
        let zoned = declared(ArrowUnit::Microsecond, Some("UTC"), true);
        let local = stats("2024-01-01T00:00:00.000", "2024-01-01T00:00:00.000");
        assert_eq!(parse(Some(&local), &zoned).span, None, "a local time of an unknown zone");
        let offset = stats("2024-01-01 00:00:00.000-08:00", "2024-01-01T09:00:00.123456Z");
        let span = parse(Some(&offset), &zoned).span.unwrap();
        assert_eq!(span.first, 1_704_096_000_000_000);
        assert_eq!(span.last, 1_704_099_600_123_456 + CUT);
        for text in ["", "{", "{}", r#"{"numRecords":-1}"#, r#"{"numRecords":"many"}"#] {
            assert_eq!(parse(Some(text), &zoned), FileFacts::default(), "{text}");
        }
        assert_eq!(parse(Some(r#"{"numRecords":5}"#), &zoned), FileFacts { rows: Some(5), span: None });
        let unclear = stats("yesterday", "2024-01-01T00:00:00Z");
        assert_eq!(parse(Some(&unclear), &zoned).span, None);
    }
}

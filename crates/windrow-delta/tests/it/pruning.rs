//! What cannot match is not read: files, row groups, pages.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::logical_expr::{Expr, col, lit};
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use datafusion::scalar::ScalarValue;
use windrow_delta::DeltaTable;
use windrow_state::{DirtyMarks, SequenceRange, Watermarks};
use windrow_table::{ReadBounds, SinkTable, SourceTable, TableSpec, Write};
use windrow_time::{InstantRange, Window};

use crate::fixture::{Table, at, commit_of, instants, put_into_log};

const GROUP: i64 = 128 << 10;

/// What a scan read, and what it left out.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    rows: usize,
    files: usize,
    row_groups_left_out: usize,
    rows_left_out_by_pages: usize,
}

async fn read(frame: DataFrame) -> Read {
    let state = frame.task_ctx();
    let plan = frame.create_physical_plan().await.unwrap();
    let batches = collect(Arc::clone(&plan), Arc::new(state)).await.unwrap();
    let mut read = Read { rows: batches.iter().map(RecordBatch::num_rows).sum(), ..Read::default() };
    add_scans(&plan, &mut read);
    read
}

fn add_scans(plan: &Arc<dyn ExecutionPlan>, read: &mut Read) {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        let config = scan.data_source().downcast_ref::<FileScanConfig>().unwrap();
        read.files += config.file_groups.iter().map(|group| group.len()).sum::<usize>();
        let pruned = |name: &str| match scan.metrics().unwrap().sum_by_name(name) {
            Some(MetricValue::PruningMetrics { pruning_metrics, .. }) => pruning_metrics.pruned(),
            _ => 0,
        };
        read.row_groups_left_out += pruned("row_groups_pruned_statistics");
        read.rows_left_out_by_pages += pruned("page_index_rows_pruned");
    }
    for child in plan.children() {
        add_scans(child, read);
    }
}

/// A context that splits no file, so that what is counted is counted once.
fn context() -> SessionContext {
    SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1))
}

async fn rows_of(table: &DeltaTable, filter: Expr) -> Read {
    let provider = table.scan(&ReadBounds::Latest).await.unwrap();
    read(context().read_table(provider).unwrap().filter(filter).unwrap()).await
}

/// A table of one column of instants that count from 0, and one of the same numbers.
async fn table_of(time_type: &DataType, per_file: i64, files: i64) -> Table {
    let schema = Arc::new(Schema::new(vec![
        Field::new("ts", time_type.clone(), false),
        Field::new("n", DataType::UInt64, true),
    ]));
    let spec = TableSpec::new(Arc::clone(&schema)).unwrap().with_time_index("ts").unwrap();
    let table = Table::of(spec).await;
    for file in 0..files {
        let numbers: ArrayRef = Arc::new(UInt64Array::from_iter_values(
            (file * per_file..(file + 1) * per_file).map(|n| n as u64),
        ));
        let times = cast(&cast(&numbers, &DataType::Int64).unwrap(), time_type).unwrap();
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![times, numbers]).unwrap();
        table.delta.commit(commit_of(Write::Append, batch)).await.unwrap();
    }
    table
}

fn instant(time_type: &DataType, instant: i64) -> Expr {
    lit(ScalarValue::Int64(Some(instant)).cast_to(time_type).unwrap())
}

fn time_types() -> Vec<DataType> {
    let units = [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond];
    let zones = [None, Some("UTC"), Some("America/New_York")];
    units
        .into_iter()
        .flat_map(|unit| zones.map(|zone| DataType::Timestamp(unit, zone.map(Into::into))))
        .collect()
}

#[tokio::test]
async fn files_of_other_times_are_not_read() {
    for time_type in time_types() {
        let table = table_of(&time_type, 10_000, 5).await;
        let between = |start, end| {
            col("ts").gt_eq(instant(&time_type, start)).and(col("ts").lt(instant(&time_type, end)))
        };
        // Once with what was written at hand, once with what the log says.
        for delta in [&table.delta, &table.open_again().await] {
            let found = rows_of(delta, between(20_000, 30_000)).await;
            assert_eq!((found.rows, found.files), (10_000, 1), "{time_type}");
            let found = rows_of(delta, between(29_999, 30_001)).await;
            assert_eq!((found.rows, found.files), (2, 2), "{time_type}");
            let found = rows_of(delta, between(60_000, 70_000)).await;
            assert_eq!((found.rows, found.files), (0, 0), "{time_type}");
            let estimate = delta.estimate_rows(&[InstantRange::new(12_000, 14_000)]).await.unwrap();
            assert!((1_900..=2_100).contains(&estimate), "{time_type}: {estimate}");
        }
    }
}

#[tokio::test]
async fn row_groups_and_pages_of_other_times_are_not_read() {
    for time_type in [&time_types()[0], &time_types()[4], &time_types()[6]] {
        let table = table_of(time_type, GROUP * 2 + 40_000, 1).await;
        let start = GROUP + 50_000;
        for filter in [
            col("ts").gt_eq(instant(time_type, start)).and(col("ts").lt(instant(time_type, start + 10))),
            instant(time_type, start).lt_eq(col("ts")).and(instant(time_type, start + 10).gt(col("ts"))),
            col("n").gt_eq(lit(start as u64)).and(col("n").lt(lit(start as u64 + 10))),
        ] {
            let found = rows_of(&table.delta, filter.clone()).await;
            assert_eq!(
                (found.rows, found.files, found.row_groups_left_out),
                (10, 1, 2),
                "{time_type} {filter}"
            );
            assert!(found.rows_left_out_by_pages > 80_000, "{time_type} {filter}: {found:?}");
        }
    }
}

#[tokio::test]
async fn files_in_one_window_need_not_be_read_to_know_which() {
    let table = Table::new().await;
    for hour in 0..3_i64 {
        let hours: Vec<_> = (0..10).map(|row| (hour * 3_600_000 + row, "h")).collect();
        table.append(&hours).await;
    }
    for name in table.data_files() {
        std::fs::write(table.folder.path().join(name), b"nothing to read").unwrap();
    }
    let delta = table.open_again().await;
    let upto = delta.watermarks().await.unwrap();
    let hour = Window::fixed(0, 3_600_000).unwrap();
    let in_one = |range: InstantRange| hour.range_of(range.start()).end() >= range.end();
    for (after, hours) in [(0, vec![0, 1, 2]), (1, vec![0, 1, 2]), (3, vec![2])] {
        let range = SequenceRange { after: at(&delta, after), upto: upto.clone() };
        let changes = delta.changes(&range, &in_one).await.unwrap();
        assert_eq!((changes.appended_rows, changes.are_appends()), (hours.len() as u64 * 10, true));
        let mut marks = DirtyMarks::default();
        for array in &changes.appended {
            marks.extend(hour.mark(array.as_ref()).unwrap().into_ranges());
        }
        let expected = InstantRange::new(hours[0] * 3_600_000, 3 * 3_600_000);
        assert_eq!(marks.into_set().ranges(), [expected]);
        let minute = |range: InstantRange| range.width().is_some_and(|width| width < 5);
        assert!(delta.changes(&range, &minute).await.is_err(), "they would have to be read");
    }
}

#[tokio::test]
async fn a_time_index_that_partitions_the_table_is_known_without_reading() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("_delta_log")).unwrap();
    let schema = serde_json::json!({"type": "struct", "fields": [
        {"name": "day", "type": "timestamp", "nullable": true, "metadata": {}},
        {"name": "v", "type": "integer", "nullable": true, "metadata": {}}]});
    let add = |name: &str, day: Option<&str>, rows: u64| {
        std::fs::write(folder.path().join(name), b"nothing to read").unwrap();
        serde_json::json!({"add": {"path": name, "partitionValues": {"day": day}, "size": 15, "dataChange": true,
            "modificationTime": 0, "stats": format!("{{\"numRecords\":{rows}}}")}})
    };
    put_into_log(
        &folder,
        0,
        &[
            serde_json::json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}),
            serde_json::json!({"metaData": {"id": "x", "format": {"provider": "parquet", "options": {}}, "createdTime": 0,
            "schemaString": schema.to_string(), "partitionColumns": ["day"], "configuration": {}}}),
            add("a.parquet", Some("1970-01-02 00:00:00"), 3),
            add("b.parquet", Some("1969-12-31T00:00:00Z"), 4),
            add("c.parquet", Some("1970-01-05 00:00:00"), 0),
        ],
    );
    let delta = DeltaTable::discover(folder.path(), Some("day"), &[]).await.unwrap();
    let range = SequenceRange { after: Watermarks::none(), upto: delta.watermarks().await.unwrap() };
    assert!(delta.changes(&range, &|_| false).await.is_err(), "an empty file is looked into");
    put_into_log(
        &folder,
        1,
        &[serde_json::json!({"remove": {"path": "c.parquet", "dataChange": true, "deletionTimestamp": 0}})],
    );
    let range = SequenceRange { after: Watermarks::none(), upto: delta.watermarks().await.unwrap() };
    let changes = delta.changes(&range, &|_| false).await.unwrap();
    let mut found: Vec<i64> = changes.appended.iter().flat_map(|array| instants(array.as_ref())).collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!((found, changes.appended_rows), (vec![-86_400_000_000, 86_400_000_000], 7));
}

#[tokio::test]
async fn a_filter_that_statistics_cannot_answer_is_answered_all_the_same() {
    let time_type = &time_types()[1];
    let table = table_of(time_type, 1_000, 3).await;
    let odd = (col("n") % lit(2_u64)).eq(lit(1_u64));
    for (filter, rows) in [
        (odd.clone(), 1_500),
        (odd.clone().or(col("ts").lt(instant(time_type, 10))), 1_505),
        (col("ts").eq(instant(time_type, 5)).or(col("n").eq(lit(2_999_u64))), 2),
        (col("ts").in_list(vec![instant(time_type, 5), instant(time_type, 2_500)], false), 2),
        (col("ts").not_eq(instant(time_type, 5)), 2_999),
        (col("n").gt(lit(u64::MAX)), 0),
        (col("n").lt_eq(lit(u64::MAX)), 3_000),
        (col("ts").lt(instant(time_type, i64::MAX)), 3_000),
        (col("ts").gt(instant(time_type, i64::MIN)), 3_000),
        (col("ts").is_null().or(col("n").is_null()), 0),
    ] {
        assert_eq!(rows_of(&table.delta, filter.clone()).await.rows, rows, "{filter}");
    }
}

#[tokio::test]
async fn a_limit_does_not_count_rows_that_a_filter_takes_out() {
    let table = table_of(&time_types()[1], 1_000, 1).await;
    let provider = table.delta.scan(&ReadBounds::Latest).await.unwrap();
    let context = context();
    let odd = (col("n") % lit(2_u64)).eq(lit(1_u64));
    for (filters, rows) in [(vec![], 1), (vec![odd], 1_000)] {
        let plan = provider.scan(&context.state(), None, &filters, Some(1)).await.unwrap();
        let batches = collect(plan, context.task_ctx()).await.unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), rows, "{filters:?}");
    }
}

#[tokio::test]
async fn rows_are_counted_without_reading_any() {
    let table = table_of(&time_types()[1], 1_000, 3).await;
    let context = context();
    let provider = table.delta.scan(&ReadBounds::Latest).await.unwrap();
    context.register_table("t", provider).unwrap();
    let frame = context.sql("SELECT count(*) FROM t").await.unwrap();
    assert_eq!(read(frame.clone()).await, Read { rows: 1, ..Read::default() }, "no file is opened");
    let count = frame.collect().await.unwrap();
    assert_eq!(ScalarValue::try_from_array(count[0].column(0), 0).unwrap(), ScalarValue::from(3_000_i64));
    // With a filter no column is wanted, but rows are.
    let frame = context.sql("SELECT count(*) FROM t WHERE n >= 2990").await.unwrap();
    let count = frame.collect().await.unwrap();
    assert_eq!(ScalarValue::try_from_array(count[0].column(0), 0).unwrap(), ScalarValue::from(10_i64));
    let frame = context.sql("SELECT 1 FROM t").await.unwrap();
    assert_eq!(read(frame).await.rows, 3_000);
    let frame = context.sql("SELECT n, ts, n FROM t LIMIT 7").await;
    assert!(frame.is_err() || read(frame.unwrap()).await.rows == 7);
    let frame =
        context.sql("SELECT n FROM t WHERE ts >= TIMESTAMP '1970-01-01 00:41:40' LIMIT 700").await.unwrap();
    assert_eq!(read(frame).await.rows, 500);
    let frame =
        context.sql("SELECT n FROM t ORDER BY ts DESC LIMIT 3").await.unwrap().collect().await.unwrap();
    let top = frame[0].column(0);
    assert_eq!(ScalarValue::try_from_array(top, 0).unwrap(), ScalarValue::UInt64(Some(2_999)));
}

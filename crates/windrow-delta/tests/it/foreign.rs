//! Tables that others write, and what others see of ours.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray,
    TimestampMillisecondArray,
};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, TimeUnit};
use datafusion::prelude::SessionContext;
use deltalake_core::kernel::engine::arrow_conversion::TryIntoKernel;
use deltalake_core::kernel::transaction::{CommitBuilder, TableReference};
use deltalake_core::kernel::{Action, Add, AddCDCFile, EagerSnapshot, Remove, StructField, StructType};
use deltalake_core::operations::create::CreateBuilder;
use deltalake_core::protocol::{DeltaOperation, SaveMode};
use deltalake_core::writer::{DeltaWriter, RecordBatchWriter};
use futures::TryStreamExt;
use parquet::arrow::ArrowWriter;
use tempfile::TempDir;
use windrow_delta::{DeltaError, DeltaTable};
use windrow_state::SequenceRange;
use windrow_table::{ReadBounds, SinkTable, SourceTable, TableError, TableSpec, Write};
use windrow_time::InstantRange;

use crate::fixture::{Table, at, commit_of, owned, read, read_latest, rows, touched};

type Theirs = deltalake_core::DeltaTable;

pub(crate) async fn theirs(folder: &TempDir) -> Theirs {
    let url = url::Url::from_directory_path(folder.path()).unwrap();
    deltalake_core::open_table(url).await.unwrap()
}

/// A commit of another writer.
async fn commit_theirs(folder: &TempDir, actions: Vec<Action>) {
    let table = theirs(folder).await;
    let snapshot: &EagerSnapshot = table.snapshot().unwrap().snapshot();
    let operation = DeltaOperation::Write { mode: SaveMode::Append, partition_by: None, predicate: None };
    CommitBuilder::default()
        .with_actions(actions)
        .build(Some(snapshot as &dyn TableReference), table.log_store(), operation)
        .await
        .unwrap();
}

/// Writes a Parquet file as another writer would, with statistics or without.
fn file_of(folder: &TempDir, name: &str, batch: &RecordBatch) -> Add {
    let path = folder.path().join(name);
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(&path).unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    let size = std::fs::metadata(&path).unwrap().len() as i64;
    Add { path: name.into(), size, data_change: true, ..Add::default() }
}

fn remove_of(add: &Add, data_change: bool) -> Remove {
    Remove { path: add.path.clone(), data_change, deletion_timestamp: Some(0), ..Remove::default() }
}

pub(crate) async fn adds(folder: &TempDir) -> Vec<Add> {
    let table = theirs(folder).await;
    let snapshot = table.snapshot().unwrap().snapshot();
    let views = snapshot.file_views(table.log_store().as_ref(), None);
    let views: Vec<_> = views.try_collect().await.unwrap();
    let add = |view: &deltalake_core::kernel::LogicalFileView| Add {
        path: view.path().into_owned(),
        size: view.size(),
        stats: view.stats(),
        ..Add::default()
    };
    views.iter().map(add).collect()
}

fn micros(instants: &[i64]) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from(instants.to_vec()))
}

fn hosts(names: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(names.to_vec()))
}

#[tokio::test]
async fn a_compaction_touches_nothing() {
    let table = Table::new().await;
    table.append(&[(1, "a")]).await;
    table.append(&[(2, "b")]).await;
    let before = table.delta.watermarks().await.unwrap();
    let compacted =
        RecordBatch::try_from_iter([("ts", micros(&[1_000, 2_000])), ("host", hosts(&["a", "b"]))]);
    let compacted = Add { data_change: false, ..file_of(&table.folder, "all.parquet", &compacted.unwrap()) };
    let mut actions: Vec<Action> =
        adds(&table.folder).await.iter().map(|add| Action::Remove(remove_of(add, false))).collect();
    actions.push(Action::Add(compacted));
    commit_theirs(&table.folder, actions).await;
    for handle in [&table.delta, &table.open_again().await] {
        assert_eq!(handle.watermarks().await.unwrap(), at(handle, 4));
        assert_eq!(touched(handle, &before).await, (vec![], vec![]));
        assert_eq!(read_latest(handle).await, owned(&[(1, "a"), (2, "b")]));
        let range = SequenceRange { after: at(handle, 2), upto: at(handle, 4) };
        assert_eq!(read(handle, ReadBounds::Appended(range)).await, owned(&[(2, "b")]));
        assert_eq!(touched(handle, &at(handle, 1)).await, (vec![1, 2], vec![]));
        // Of that file nothing is known without reading it.
        assert_eq!(
            handle.scan(&ReadBounds::Latest).await.unwrap().statistics().unwrap().num_rows.get_value(),
            None
        );
    }
    let replace = Write::Replace { ranges: vec![InstantRange::new(2, 3)] };
    let done = table.delta.commit(commit_of(replace, rows(&[]))).await.unwrap();
    assert_eq!(done.rows_removed, 1);
    assert_eq!(read_latest(&table.delta).await, owned(&[(1, "a")]));
    let done = table.delta.commit(commit_of(Write::ReplaceAll, rows(&[]))).await.unwrap();
    assert_eq!(done.rows_removed, 1);
}

#[tokio::test]
async fn what_another_writer_removes_is_a_rewrite() {
    let table = Table::new().await;
    table.append(&[(1, "a"), (2, "b")]).await;
    let before = table.append(&[(3, "c")]).await.at;
    let files = adds(&table.folder).await;
    let gone = files.iter().find(|add| add.stats.as_ref().unwrap().contains("\"numRecords\":1")).unwrap();
    commit_theirs(&table.folder, vec![Action::Remove(remove_of(gone, true))]).await;
    assert_eq!(touched(&table.delta, &before).await, (vec![], vec![3]));
    assert_eq!(read_latest(&table.delta).await, owned(&[(1, "a"), (2, "b")]));
    // To put back what was removed is to add it.
    let before = table.delta.watermarks().await.unwrap();
    let back = Add { data_change: true, ..gone.clone() };
    commit_theirs(&table.folder, vec![Action::Add(back)]).await;
    assert_eq!(touched(&table.delta, &before).await, (vec![3], vec![]));
    assert_eq!(read_latest(&table.delta).await, owned(&[(1, "a"), (2, "b"), (3, "c")]));
}

#[tokio::test]
async fn a_restore_touches_rows_that_are_others_at_the_same_instant() {
    let table = Table::new().await;
    table.append(&[(1, "a"), (2, "b"), (3, "c")]).await;
    let replace = async |instant: i64, host| {
        let write = Write::Replace { ranges: vec![InstantRange::new(instant, instant + 1)] };
        table.delta.commit(commit_of(write, rows(&[(instant, host)]))).await.unwrap().at
    };
    replace(1, "A").await;
    let before = replace(2, "B").await;
    // The file that has what the first replacement left of the rows is put in place of the one of the second.
    let (_, metrics) = theirs(&table.folder).await.restore().with_version_to_restore(2).await.unwrap();
    assert_eq!((metrics.num_restored_file, metrics.num_removed_file), (1, 2));
    for handle in [&table.delta, &table.open_again().await] {
        let (appended, rewritten) = touched(handle, &before).await;
        assert!(appended.is_empty() && rewritten.contains(&2), "{rewritten:?}");
        assert_eq!(read_latest(handle).await, owned(&[(1, "A"), (2, "b"), (3, "c")]));
    }
}

#[tokio::test]
async fn a_change_data_feed_says_what_changed() {
    let table = Table::new().await;
    table.append(&[(1, "a"), (2, "b"), (3, "c")]).await;
    let before = table.append(&[(4, "d")]).await.at;
    let old = adds(&table.folder).await;
    let batch = |instants: &[i64], names: &[&str]| {
        RecordBatch::try_from_iter([("ts", micros(instants)), ("host", hosts(names))]).unwrap()
    };
    // An update of one row rewrites the whole file, and says so.
    let new = file_of(&table.folder, "new.parquet", &batch(&[1_000, 2_000, 3_000], &["a", "B", "c"]));
    let feed = batch(&[2_000, 2_000], &["b", "B"]);
    let kinds = hosts(&["update_preimage", "update_postimage"]);
    let feed = RecordBatch::try_from_iter([
        ("ts", Arc::clone(feed.column(0))),
        ("host", Arc::clone(feed.column(1))),
        ("_change_type", kinds),
    ]);
    let feed = file_of(&table.folder, "feed.parquet", &feed.unwrap());
    let gone = old.iter().find(|add| add.stats.as_ref().unwrap().contains("\"numRecords\":3")).unwrap();
    let cdc = AddCDCFile {
        path: feed.path,
        size: feed.size,
        partition_values: feed.partition_values,
        data_change: false,
        tags: None,
    };
    let actions = vec![Action::Remove(remove_of(gone, true)), Action::Add(new), Action::Cdc(cdc)];
    commit_theirs(&table.folder, actions).await;
    for handle in [&table.delta, &table.open_again().await] {
        assert_eq!(touched(handle, &before).await, (vec![], vec![2, 2]));
        assert_eq!(read_latest(handle).await, owned(&[(1, "a"), (2, "B"), (3, "c"), (4, "d")]));
    }
    std::fs::remove_file(table.folder.path().join("feed.parquet")).unwrap();
    let range = SequenceRange { after: before, upto: table.delta.watermarks().await.unwrap() };
    let changes = table.delta.changes(&range, &|_| false).await;
    assert!(matches!(changes, Err(TableError::Stale { .. })), "{changes:?}");
}

#[tokio::test]
async fn others_see_a_valid_table() {
    let table = Table::new().await;
    table.append(&[(-1, "a"), (1_704_067_200_123, "b")]).await;
    table
        .delta
        .commit(commit_of(Write::Upsert { key: vec![0, 1] }, rows(&[(-1, "a"), (7, "c")])))
        .await
        .unwrap();
    let theirs = theirs(&table.folder).await;
    let snapshot = theirs.snapshot().unwrap().snapshot();
    assert_eq!(snapshot.version(), 2);
    let columns: StructType = snapshot.schema().as_ref().clone();
    let expected = Schema::new(vec![
        Field::new("ts", DataType::Timestamp(TimeUnit::Microsecond, None), false),
        Field::new("host", DataType::Utf8, true),
    ]);
    assert_eq!(columns, (&expected).try_into_kernel().unwrap());
    let protocol = serde_json::to_value(snapshot.protocol()).unwrap();
    assert_eq!((&protocol["minReaderVersion"], &protocol["minWriterVersion"]), (&3.into(), &7.into()));
    let views: Vec<_> = snapshot.file_views(theirs.log_store().as_ref(), None).try_collect().await.unwrap();
    let mut found = Vec::new();
    for view in &views {
        let (least, greatest) =
            (view.min_values().unwrap().to_string(), view.max_values().unwrap().to_string());
        found.push((view.num_records().unwrap(), view.null_counts().unwrap().to_string(), least, greatest));
        let path = table.folder.path().join(view.path().as_ref());
        assert_eq!(std::fs::metadata(path).unwrap().len() as i64, view.size());
    }
    found.sort();
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!((found[0].0, found[1].0), (1, 2));
    assert!(found.iter().all(|file| file.1.contains('0')), "{found:?}");
    assert!(found[1].2.contains("-1000"), "{found:?}");
    // Theirs takes a greatest timestamp as what it may have been before it was cut.
    assert!(found[0].2.contains("1704067200123000") && found[0].3.contains("1704067200124000"), "{found:?}");
}

#[tokio::test]
async fn a_table_without_local_timestamps_asks_nothing_of_readers() {
    let zoned = DataType::Timestamp(TimeUnit::Second, Some("Europe/Rome".into()));
    let schema = Arc::new(Schema::new(vec![Field::new("ts", zoned, false)]));
    let table = Table::of(TableSpec::new(schema).unwrap()).await;
    let theirs = theirs(&table.folder).await;
    let protocol = serde_json::to_value(theirs.snapshot().unwrap().snapshot().protocol()).unwrap();
    assert_eq!((&protocol["minReaderVersion"], &protocol["minWriterVersion"]), (&1.into(), &2.into()));
}

/// A table that another writer makes, partitioned by `partitions`.
async fn foreign_table(columns: Vec<StructField>, partitions: &[&str], batch: RecordBatch) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut table = CreateBuilder::new()
        .with_location(folder.path().to_str().unwrap())
        .with_columns(columns)
        .with_partition_columns(partitions.iter().copied())
        .await
        .unwrap();
    let mut writer = RecordBatchWriter::for_table(&table).unwrap();
    writer.write(batch).await.unwrap();
    writer.flush_and_commit(&mut table).await.unwrap();
    folder
}

#[tokio::test]
async fn a_partitioned_table_is_read_and_not_written() {
    let column = |name: &str, data_type: DataType| -> StructField {
        (&Field::new(name, data_type, true)).try_into_kernel().unwrap()
    };
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let columns = vec![
        column("day", DataType::Date32),
        column("ts", utc),
        column("host name", DataType::Utf8),
        column("n", DataType::Int32),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable([
        (
            "day",
            Arc::new(arrow::array::Date32Array::from(vec![Some(0), Some(1), Some(1), None])) as ArrayRef,
            true,
        ),
        (
            "ts",
            Arc::new(
                TimestampMicrosecondArray::from(vec![1, 86_400_000_000, 86_400_000_001, 3])
                    .with_timezone("UTC"),
            ),
            true,
        ),
        (
            "host name",
            Arc::new(StringArray::from(vec![Some("a b/ü%"), Some("b"), None, Some("a b/ü%")])),
            true,
        ),
        ("n", Arc::new(Int32Array::from(vec![1, 2, 3, 4])), true),
    ]);
    let folder = foreign_table(columns, &["day", "host name"], batch.unwrap()).await;
    let table = Arc::new(DeltaTable::discover(folder.path(), Some("ts"), &[]).await.unwrap());
    let context = SessionContext::new();
    context.register_table("t", table.scan(&ReadBounds::Latest).await.unwrap()).unwrap();
    for (query, expected) in [
        ("SELECT n FROM t ORDER BY n", vec![1, 2, 3, 4]),
        ("SELECT n FROM t WHERE day = DATE '1970-01-02' ORDER BY n", vec![2, 3]),
        ("SELECT n FROM t WHERE day IS NULL", vec![4]),
        ("SELECT n FROM t WHERE \"host name\" = 'a b/ü%' ORDER BY n", vec![1, 4]),
        ("SELECT n FROM t WHERE \"host name\" IS NULL", vec![3]),
        ("SELECT n FROM t WHERE ts >= TIMESTAMP '1970-01-02T00:00:00.000001Z'", vec![3]),
        ("SELECT n FROM t WHERE \"host name\" = 'b' AND n < 2", vec![]),
        ("SELECT CAST(count(*) AS INT) FROM t", vec![4]),
        ("SELECT CAST(count(day) AS INT) FROM t WHERE n > 1", vec![2]),
    ] {
        let batches = context.sql(query).await.unwrap().collect().await.unwrap();
        let found: Vec<i32> = batches
            .iter()
            .flat_map(|batch| batch.column(0).as_primitive::<Int32Type>().values().to_vec())
            .collect();
        assert_eq!(found, expected, "{query}");
    }
    let all = context.sql("SELECT * FROM t").await.unwrap();
    let names: Vec<_> = all.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["day", "ts", "host name", "n"]);
    assert_eq!(touched(&table, &at(&table, 1)).await.0, vec![1, 3, 86_400_000_000, 86_400_000_001]);
    let none = RecordBatch::new_empty(table.spec().schema().clone());
    let error = table.commit(commit_of(Write::Append, none)).await.unwrap_err();
    assert!(format!("{error:?}").contains("partitioned"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path().join("_delta_log")).unwrap().count(), 2);
}

#[tokio::test]
async fn files_that_others_wrote_with_other_types_are_read() {
    let table = Table::new().await;
    let millis: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![1]));
    let wide = arrow::compute::cast(&hosts(&["b"]), &DataType::LargeUtf8).unwrap();
    let view = arrow::compute::cast(&hosts(&["a"]), &DataType::Utf8View).unwrap();
    let batches = [
        RecordBatch::try_from_iter([("host", view), ("ts", millis)]),
        RecordBatch::try_from_iter([("extra", hosts(&["?"])), ("ts", micros(&[2_000])), ("host", wide)]),
        RecordBatch::try_from_iter([("ts", micros(&[3_000]))]),
    ];
    let files = batches.into_iter().enumerate().map(|(index, batch)| {
        Action::Add(file_of(&table.folder, &format!("{index}.parquet"), &batch.unwrap()))
    });
    commit_theirs(&table.folder, files.collect()).await;
    assert_eq!(read_latest(&table.delta).await, owned(&[(1, "a"), (2, "b"), (3, "NULL")]));
    let context = SessionContext::new();
    context.register_table("t", table.delta.scan(&ReadBounds::Latest).await.unwrap()).unwrap();
    for (query, rows) in [
        ("SELECT 1 FROM t WHERE host = 'b'", 1),
        ("SELECT host FROM t WHERE ts = TIMESTAMP '1970-01-01 00:00:00.001'", 1),
        ("SELECT ts FROM t WHERE ts > TIMESTAMP '1970-01-01 00:00:00.001'", 2),
        ("SELECT ts FROM t WHERE host IS NULL", 1),
    ] {
        assert_eq!(context.sql(query).await.unwrap().count().await.unwrap(), rows, "{query}");
    }
}

#[tokio::test]
async fn the_columns_of_a_table_are_discovered() {
    let table = Table::new().await;
    table.append(&[(1, "a")]).await;
    let found = DeltaTable::discover(table.folder.path(), Some("ts"), &["host"]).await.unwrap();
    let expected = TableSpec::new(Arc::new(Schema::new(vec![
        Field::new("ts", DataType::Timestamp(TimeUnit::Microsecond, None), false),
        Field::new("host", DataType::Utf8, true),
    ])));
    let expected = expected.unwrap().with_time_index("ts").unwrap().with_primary_key(&["host"]).unwrap();
    assert_eq!(found.spec(), &expected);
    assert_eq!(touched(&found, &at(&found, 1)).await, (vec![1_000], vec![]));
    for (time_index, key) in [(Some("host"), "host"), (Some("nothing"), "host"), (None, "nothing")] {
        let error = DeltaTable::discover(table.folder.path(), time_index, &[key]).await.unwrap_err();
        assert!(matches!(error, DeltaError::Spec(_)), "{error}");
    }
}

//! Tables with column mapping: files have other names for the columns than the table.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Int32Array, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use arrow::util::display::array_value_to_string;
use datafusion::prelude::SessionContext;
use parquet::arrow::{ArrowWriter, PARQUET_FIELD_ID_META_KEY};
use serde_json::{Value, json};
use tempfile::TempDir;
use windrow_delta::DeltaTable;
use windrow_table::{ReadBounds, SinkTable, SourceTable, Write};
use windrow_time::InstantRange;

use crate::fixture::{at, commit_of, put_into_log, touched};

/// A column of a table: its name, its type, its id, and the name that files have it by.
type Column = (&'static str, Value, i64, &'static str);

fn column(&(name, ref data_type, id, in_files): &Column) -> Value {
    json!({"name": name, "type": data_type, "nullable": true, "metadata":
        {"delta.columnMapping.id": id, "delta.columnMapping.physicalName": in_files}})
}

fn metadata(mode: &str, columns: &[Column]) -> Value {
    let schema = json!({"type": "struct", "fields": columns.iter().map(column).collect::<Vec<_>>()});
    json!({"metaData": {"id": "x", "name": null, "description": null, "createdTime": 0,
        "format": {"provider": "parquet", "options": {}}, "schemaString": schema.to_string(),
        "partitionColumns": ["part"],
        "configuration": {"delta.columnMapping.mode": mode, "delta.columnMapping.maxColumnId": "9"}}})
}

fn columns() -> Vec<Column> {
    vec![
        // The name of one column is what files call another one.
        ("host", json!("string"), 2, "n"),
        ("ts", json!("timestamp"), 1, "host"),
        ("n", json!("integer"), 3, "col-3"),
        ("part", json!("string"), 4, "col-4"),
    ]
}

fn table(mode: &str, columns: &[Column]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("_delta_log")).unwrap();
    let protocol = json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
        "readerFeatures": ["columnMapping"], "writerFeatures": ["columnMapping"]}});
    put_into_log(&folder, 0, &[protocol, metadata(mode, columns)]);
    folder
}

/// Commits a file of the partition `p` with these columns, each with the id that it has in the file.
fn put_file(
    folder: &TempDir,
    version: u64,
    first_and_last: Option<(i64, i64)>,
    columns: Vec<(&str, i64, ArrayRef)>,
) {
    let fields = columns.iter().map(|(name, id, values)| {
        let id = HashMap::from([(PARQUET_FIELD_ID_META_KEY.to_owned(), id.to_string())]);
        Field::new(*name, values.data_type().clone(), true).with_metadata(id)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let batch =
        RecordBatch::try_new(schema, columns.into_iter().map(|(_, _, values)| values).collect()).unwrap();
    let name = format!("{version}.parquet");
    let path = folder.path().join(&name);
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let mut add = json!({"path": name, "partitionValues": {"col-4": "p"}, "dataChange": true,
        "size": std::fs::metadata(&path).unwrap().len(), "modificationTime": 0});
    if let Some((first, last)) = first_and_last {
        let instant = |second| format!("1970-01-01T00:00:{second:02}.000Z");
        let stats = json!({"numRecords": batch.num_rows(), "nullCount": {"host": 0, "n": 0},
            "minValues": {"host": instant(first)}, "maxValues": {"host": instant(last)}});
        add["stats"] = stats.to_string().into();
    }
    put_into_log(folder, version, &[json!({"add": add})]);
}

fn seconds(seconds: &[i64]) -> ArrayRef {
    let micros = seconds.iter().map(|second| second * 1_000_000);
    Arc::new(TimestampMicrosecondArray::from_iter_values(micros).with_timezone("UTC"))
}

fn texts(texts: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(texts.to_vec()))
}

fn numbers(numbers: &[i32]) -> ArrayRef {
    Arc::new(Int32Array::from(numbers.to_vec()))
}

async fn query(table: &DeltaTable, sql: &str) -> Vec<String> {
    let context = SessionContext::new();
    context.register_table("t", table.scan(&ReadBounds::Latest).await.unwrap()).unwrap();
    let batches = context.sql(sql).await.unwrap().collect().await.unwrap();
    let rows = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)));
    let line = |(batch, row): (&RecordBatch, usize)| {
        let cells = batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap());
        cells.collect::<Vec<_>>().join(" ")
    };
    rows.map(line).collect()
}

async fn discover(folder: &TempDir) -> DeltaTable {
    DeltaTable::discover(folder.path(), Some("ts"), &[]).await.unwrap()
}

#[tokio::test]
async fn columns_are_found_by_the_names_or_the_ids_that_files_have_them_by() {
    for mode in ["name", "id"] {
        let folder = table(mode, &columns());
        put_file(
            &folder,
            1,
            Some((1, 2)),
            vec![
                ("col-3", 3, numbers(&[10, 20])),
                ("host", 1, seconds(&[1, 2])),
                ("n", 2, texts(&["a", "b"])),
            ],
        );
        // Without statistics, and without a column.
        put_file(&folder, 2, None, vec![("n", 2, texts(&["c"])), ("host", 1, seconds(&[3]))]);
        let table = discover(&folder).await;
        for handle in [&table, &discover(&folder).await] {
            let all = query(handle, "SELECT host, n, part, date_part('second', ts) FROM t ORDER BY ts").await;
            assert_eq!(all, ["a 10 p 1", "b 20 p 2", "c  p 3"], "{mode}");
            for (condition, expected) in [
                ("host = 'b'", vec!["b"]),
                ("ts >= TIMESTAMP '1970-01-01T00:00:02Z'", vec!["b", "c"]),
                ("n < 15", vec!["a"]),
                ("n IS NULL AND part = 'p'", vec!["c"]),
                ("part = 'q'", vec![]),
            ] {
                let sql = format!("SELECT host FROM t WHERE {condition} ORDER BY ts");
                assert_eq!(query(handle, &sql).await, expected, "{mode}: {condition}");
            }
            assert_eq!(touched(handle, &at(handle, 2)).await, (vec![3_000_000], vec![]));
        }
        // The statistics are found, too: a file that has no such row counts nothing.
        let before = InstantRange::new(0, 1_000_000);
        let unknown = table.estimate_rows(&[InstantRange::new(9_000_000, 9_000_001)]).await.unwrap();
        assert_eq!(table.estimate_rows(&[before]).await.unwrap(), unknown, "{mode}");
        assert_eq!(
            table.estimate_rows(&[InstantRange::new(1_000_000, 2_000_001)]).await.unwrap(),
            unknown + 2
        );
        let none = RecordBatch::new_empty(table.spec().schema().clone());
        let error = table.commit(commit_of(Write::Append, none)).await.unwrap_err();
        assert!(format!("{error:?}").contains("column mapping"), "{error:?}");
    }
}

#[tokio::test]
async fn a_file_that_names_its_columns_otherwise_is_read_by_ids() {
    let folder = table("id", &columns());
    put_file(
        &folder,
        1,
        None,
        vec![
            ("col-3", 2, texts(&["a"])),
            ("time", 1, seconds(&[1])),
            // Not the column that the table has under this name.
            ("n", 77, texts(&["?"])),
        ],
    );
    put_file(&folder, 2, None, vec![("time", 1, seconds(&[2])), ("n", 77, texts(&["?"]))]);
    let table = discover(&folder).await;
    let all = query(&table, "SELECT host, n, date_part('second', ts) FROM t ORDER BY ts").await;
    assert_eq!(all, ["a  1", "  2"]);
}

#[tokio::test]
async fn nested_columns_have_other_names_too() {
    let inner = json!({"type": "struct", "fields": [
        column(&("x", json!("integer"), 6, "col-6")), column(&("y", json!("string"), 7, "x"))]});
    let mut columns = columns();
    columns.push(("s", inner, 5, "col-5"));
    let fields =
        Fields::from(vec![Field::new("col-6", DataType::Int32, true), Field::new("x", DataType::Utf8, true)]);
    let values: ArrayRef =
        Arc::new(StructArray::new(fields, vec![numbers(&[7, 8]), texts(&["u", "v"])], None));
    let folder = table("name", &columns);
    put_file(
        &folder,
        1,
        None,
        vec![("host", 1, seconds(&[1, 2])), ("n", 2, texts(&["a", "b"])), ("col-5", 5, values)],
    );
    let handle = discover(&folder).await;
    assert_eq!(query(&handle, "SELECT s['y'], s['x'] FROM t ORDER BY ts").await, ["u 7", "v 8"]);
    assert_eq!(query(&handle, "SELECT host FROM t WHERE s['x'] = 8").await, ["b"]);
    let by_id = DeltaTable::discover(table("id", &columns).path(), Some("ts"), &[]).await.unwrap_err();
    assert!(by_id.to_string().contains("nested column s"), "{by_id}");
}

#[tokio::test]
async fn columns_that_are_renamed_dropped_or_made_again() {
    let folder = table("name", &columns());
    put_file(
        &folder,
        1,
        None,
        vec![("host", 1, seconds(&[1])), ("n", 2, texts(&["a"])), ("col-3", 3, numbers(&[1]))],
    );
    let spec = discover(&folder).await.spec().clone();
    let narrow = Arc::new(spec.schema().project(&[0, 1]).unwrap());
    let narrow = windrow_table::TableSpec::new(narrow).unwrap().with_time_index("ts").unwrap();
    let (all, some) = (discover(&folder).await, DeltaTable::open(folder.path(), narrow).await.unwrap());
    assert_eq!(query(&all, "SELECT n FROM t").await, ["1"]);
    let mut changed = columns();
    changed[2] = ("m", json!("integer"), 3, "col-3");
    put_into_log(&folder, 2, &[metadata("name", &changed)]);
    let error = all.watermarks().await.unwrap_err();
    assert!(error.to_string().contains("no column n"), "{error}");
    // Who does not declare the column does not mind.
    assert_eq!(query(&some, "SELECT host FROM t").await, ["a"]);
    assert_eq!(query(&discover(&folder).await, "SELECT m FROM t").await, ["1"]);
    changed[2] = ("n", json!("integer"), 5, "col-5");
    put_into_log(&folder, 3, &[metadata("name", &changed)]);
    let error = all.watermarks().await.unwrap_err();
    assert!(
        error.to_string().contains("was dropped") || error.to_string().contains("no column n"),
        "{error}"
    );
    assert_eq!(query(&some, "SELECT host FROM t").await, ["a"]);
    assert_eq!(query(&discover(&folder).await, "SELECT n FROM t").await, [""]);
    let time_zone = Some("UTC".into());
    assert_eq!(spec.schema().field(1).data_type(), &DataType::Timestamp(TimeUnit::Microsecond, time_zone));
}

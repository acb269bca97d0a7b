//! Tables that use more of the Delta protocol than is honoured.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use datafusion::prelude::SessionContext;
use tempfile::TempDir;
use windrow_delta::DeltaTable;
use windrow_state::SequenceRange;
use windrow_table::{ReadBounds, SinkTable, SourceTable, TableError, Write};

use crate::fixture::{Table, at, commit_of, owned, put_into_log, read, read_latest, rows};

/// What a commit puts into the log of the table in a folder.
type ToLog<'a> = &'a dyn Fn(&TempDir) -> Vec<serde_json::Value>;

fn metadata_line(folder: &TempDir, change: impl Fn(&mut serde_json::Value)) -> serde_json::Value {
    let first = std::fs::read_to_string(folder.path().join(format!("_delta_log/{:020}.json", 0))).unwrap();
    let mut metadata = first
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .find(|line| line.get("metaData").is_some())
        .unwrap();
    change(&mut metadata["metaData"]);
    metadata
}

#[tokio::test]
async fn a_table_that_begins_to_use_what_is_not_honoured_is_no_longer_read() {
    let mapped = |folder: &TempDir| {
        vec![metadata_line(folder, |metadata| {
            metadata["configuration"] = serde_json::json!({"delta.columnMapping.mode": "name"});
        })]
    };
    let unknown = |_: &TempDir| {
        vec![serde_json::json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["timestampNtz", "typeWidening"], "writerFeatures": ["timestampNtz", "typeWidening"]}})]
    };
    let deleted = |_: &TempDir| {
        vec![
            serde_json::json!({"add": {"path": "x.parquet", "partitionValues": {}, "size": 1, "modificationTime": 0,
            "dataChange": true, "deletionVector": {"storageType": "p", "pathOrInlineDv": "file:///tmp/x.bin",
            "offset": 4, "sizeInBytes": 40, "cardinality": 6}}}),
        ]
    };
    let elsewhere = |_: &TempDir| {
        vec![serde_json::json!({"add": {"path": "file:///tmp/x.parquet", "partitionValues": {}, "size": 1,
            "modificationTime": 0, "dataChange": true}})]
    };
    let renamed = |folder: &TempDir| {
        vec![metadata_line(folder, |metadata| {
            let text = metadata["schemaString"].as_str().unwrap().replace("\"host\"", "\"server\"");
            metadata["schemaString"] = text.into();
        })]
    };
    let changes: [(&str, ToLog<'_>); 5] = [
        ("column mapping", &mapped),
        ("typeWidening", &unknown),
        ("deletion vector", &deleted),
        ("not below", &elsewhere),
        ("no column host", &renamed),
    ];
    for (word, change) in changes {
        let table = Table::new().await;
        table.append(&[(1, "a")]).await;
        put_into_log(&table.folder, 2, &change(&table.folder));
        let error = table.delta.watermarks().await.unwrap_err();
        assert!(format!("{error:?} {error}").contains(word), "{word}: {error:?}");
        assert!(table.delta.scan(&ReadBounds::Latest).await.is_err(), "{word}");
        let error = table.delta.commit(commit_of(Write::Append, rows(&[(2, "b")]))).await;
        assert!(error.is_err(), "{word}");
        let opened = DeltaTable::open(table.folder.path(), table.delta.spec().clone()).await;
        assert!(opened.is_err(), "{word}");
        // What was committed before is what it was.
        let range = SequenceRange { after: at(&table.delta, 1), upto: at(&table.delta, 2) };
        assert_eq!(read(&table.delta, ReadBounds::Appended(range)).await, owned(&[(1, "a")]), "{word}");
    }
}

#[tokio::test]
async fn a_table_that_got_a_column_is_read_and_not_written() {
    let table = Table::new().await;
    table.append(&[(1, "a")]).await;
    let more = metadata_line(&table.folder, |metadata| {
        let mut columns: serde_json::Value =
            serde_json::from_str(metadata["schemaString"].as_str().unwrap()).unwrap();
        let new = serde_json::json!({"name": "n", "type": "integer", "nullable": true, "metadata": {}});
        columns["fields"].as_array_mut().unwrap().push(new);
        metadata["schemaString"] = columns.to_string().into();
    });
    put_into_log(&table.folder, 2, &[more]);
    assert_eq!(read_latest(&table.delta).await, owned(&[(1, "a")]));
    let error = table.delta.commit(commit_of(Write::Append, rows(&[(2, "b")]))).await.unwrap_err();
    assert!(matches!(error, TableError::Storage { .. }) && format!("{error:?}").contains('n'), "{error}");
    let opened = DeltaTable::discover(table.folder.path(), Some("ts"), &["host"]).await.unwrap();
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("ts", Arc::new(TimestampMicrosecondArray::from(vec![2_000])) as ArrayRef, false),
        ("host", Arc::new(StringArray::from(vec!["b"])), true),
        ("n", Arc::new(Int32Array::from(vec![5])), true),
    ]);
    opened.commit(commit_of(Write::Append, batch.unwrap())).await.unwrap();
    let sum = SessionContext::new().read_table(opened.scan(&ReadBounds::Latest).await.unwrap()).unwrap();
    assert_eq!(sum.count().await.unwrap(), 2);
    assert_eq!(read_latest(&table.delta).await, owned(&[(1, "a"), (2, "b")]));
}

#[tokio::test]
async fn a_feature_that_nothing_makes_use_of_is_no_obstacle() {
    let table = Table::new().await;
    let protocol = serde_json::json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
        "readerFeatures": ["timestampNtz", "deletionVectors"],
        "writerFeatures": ["timestampNtz", "deletionVectors", "appendOnly", "invariants", "checkConstraints"]}});
    put_into_log(&table.folder, 1, &[protocol]);
    table.append(&[(1, "a")]).await;
    assert_eq!(read_latest(&table.open_again().await).await, owned(&[(1, "a")]));
    let append_only = metadata_line(&table.folder, |metadata| {
        metadata["configuration"] = serde_json::json!({"delta.appendOnly": "true"});
    });
    put_into_log(&table.folder, 3, &[append_only]);
    table.append(&[(2, "b")]).await;
    let error = table.delta.commit(commit_of(Write::ReplaceAll, rows(&[]))).await.unwrap_err();
    assert!(format!("{error:?}").contains("appendOnly"), "{error}");
    assert_eq!(read_latest(&table.delta).await, owned(&[(1, "a"), (2, "b")]));
}

//! Tables with deletion vectors.

use std::collections::BTreeSet;

use arrow::array::RecordBatch;
use crc::{CRC_32_ISO_HDLC, Crc};
use datafusion::prelude::{SessionConfig, SessionContext};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use roaring::RoaringTreemap;
use serde_json::{Value, json};
use windrow_state::Watermarks;
use windrow_table::{ReadBounds, SinkTable, SourceTable, TableError, Write};
use windrow_time::InstantRange;

use crate::fixture::{Table, at, commit_of, put_into_log, read, read_latest, rows, touched};

const MAGIC: u32 = 1_681_511_377;

/// A table that may have deletion vectors, with a file of the instants `0..count` in row groups of 16 rows.
struct Marked {
    table: Table,
    count: u64,
    version: u64,
    /// What the log has of the file.
    file: Value,
    vector: Option<Value>,
}

impl Marked {
    async fn new(count: u64) -> Self {
        Self::of(Table::new().await, count)
    }

    fn of(table: Table, count: u64) -> Self {
        let protocol = json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["timestampNtz", "deletionVectors"],
            "writerFeatures": ["timestampNtz", "deletionVectors"]}});
        let path = table.folder.path().join("part.parquet");
        let hosts: Vec<_> = (0..count as i64).map(|instant| (instant, "h")).collect();
        let batch: RecordBatch = rows(&hosts);
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(16)).build();
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let stats = json!({"numRecords": count, "tightBounds": true, "nullCount": {"ts": 0},
            "minValues": {"ts": "1970-01-01T00:00:00.000"}, "maxValues": {"ts": "1970-01-01T00:00:01.000"}});
        let file = json!({"path": "part.parquet", "partitionValues": {}, "dataChange": true,
            "size": std::fs::metadata(&path).unwrap().len(), "modificationTime": 0, "stats": stats.to_string()});
        put_into_log(&table.folder, 1, &[protocol, json!({"add": file})]);
        Self { table, count, version: 1, file, vector: None }
    }

    /// A commit that has the file with another vector.
    fn mark(&mut self, vector: Option<Value>) {
        let mut added = self.file.clone();
        if let Some(vector) = &vector {
            added["deletionVector"] = vector.clone();
        }
        self.version += 1;
        put_into_log(&self.table.folder, self.version, &[self.removal(), json!({"add": added})]);
        self.vector = vector;
    }

    fn removal(&self) -> Value {
        let mut removed = json!({"path": "part.parquet", "dataChange": true, "deletionTimestamp": 0});
        if let Some(vector) = &self.vector {
            removed["deletionVector"] = vector.clone();
        }
        json!({"remove": removed})
    }

    /// A vector in a file, at an offset; the answer has the path of the file.
    fn on_disk(&self, deleted: &RoaringTreemap) -> (Value, std::path::PathBuf) {
        let mut bitmap = MAGIC.to_le_bytes().to_vec();
        deleted.serialize_into(&mut bitmap).unwrap();
        let mut bytes = vec![1, b'?', b'?'];
        bytes.extend((bitmap.len() as u32).to_be_bytes());
        bytes.extend(&bitmap);
        bytes.extend(Crc::<u32>::new(&CRC_32_ISO_HDLC).checksum(&bitmap).to_be_bytes());
        let name = uuid::Uuid::new_v4();
        let folder = self.table.folder.path().join("ab");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("deletion_vector_{name}.bin"));
        std::fs::write(&path, bytes).unwrap();
        let encoded = format!("ab{}", z85::encode(name.as_bytes()));
        let vector = json!({"storageType": "u", "pathOrInlineDv": encoded, "offset": 3,
            "sizeInBytes": bitmap.len(), "cardinality": deleted.len()});
        (vector, path)
    }

    fn left(&self, deleted: &[i64]) -> Vec<(i64, String)> {
        let left = (0..self.count as i64).filter(|instant| !deleted.contains(instant));
        left.map(|instant| (instant, "h".to_owned())).collect()
    }

    fn at(&self) -> Watermarks {
        at(&self.table.delta, self.version + 1)
    }
}

/// The rows 3, 4, 7, 11, 18 and 29: the example of the Delta protocol.
fn example() -> (Value, [i64; 6]) {
    let text = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L";
    (
        json!({"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": 44, "cardinality": 6}),
        [3, 4, 7, 11, 18, 29],
    )
}

#[tokio::test]
async fn rows_that_are_marked_are_not_read() {
    let mut marked = Marked::new(50).await;
    let before = marked.at();
    assert_eq!(read_latest(&marked.table.delta).await, marked.left(&[]));
    let (vector, deleted) = example();
    marked.mark(Some(vector));
    for handle in [&marked.table.delta, &marked.table.open_again().await] {
        assert_eq!(read_latest(handle).await, marked.left(&deleted));
        assert_eq!(read(handle, ReadBounds::Snapshot(before.clone())).await, marked.left(&[]));
        assert_eq!(touched(handle, &before).await, (vec![], deleted.to_vec()));
        assert_eq!(touched(handle, &Watermarks::none()).await.0.len(), 44);
        let provider = handle.scan(&ReadBounds::Latest).await.unwrap();
        assert_eq!(provider.statistics().unwrap().num_rows.get_value(), Some(&44));
        // However the file is cut for several readers.
        let mut config = SessionConfig::new().with_target_partitions(3);
        config.options_mut().optimizer.repartition_file_min_size = 0;
        let context = SessionContext::new_with_config(config);
        context.register_table("t", provider).unwrap();
        for (condition, expected) in [
            ("ts < TIMESTAMP '1970-01-01 00:00:00.008'", 5),
            ("ts >= TIMESTAMP '1970-01-01 00:00:00.029'", 20),
            ("ts = TIMESTAMP '1970-01-01 00:00:00.018'", 0),
            ("ts = TIMESTAMP '1970-01-01 00:00:00.019' AND host = 'h'", 1),
        ] {
            let query = format!("SELECT ts FROM t WHERE {condition}");
            assert_eq!(context.sql(&query).await.unwrap().count().await.unwrap(), expected, "{condition}");
        }
        let count = context.sql("SELECT 1 FROM t LIMIT 46").await.unwrap().count().await.unwrap();
        assert_eq!(count, 44);
    }
}

#[tokio::test]
async fn only_rows_whose_mark_changed_are_touched() {
    let mut marked = Marked::new(100).await;
    let mut before = BTreeSet::new();
    let idle = marked.table.open_again().await;
    for step in 0..12_u64 {
        // Rows go, and rows come back (as a restore puts them back).
        let deleted: BTreeSet<i64> = (0..100)
            .filter(|row| (row * 7 + step * step) % (3 + step % 5) == 0)
            .map(|row| row as i64)
            .collect();
        let at = marked.at();
        let vector = match step {
            5 | 9 => None,
            _ => Some(marked.on_disk(&deleted.iter().map(|row| *row as u64).collect()).0),
        };
        let deleted = if vector.is_none() { BTreeSet::new() } else { deleted };
        marked.mark(vector);
        let changed: Vec<i64> = before.symmetric_difference(&deleted).copied().collect();
        for handle in [&marked.table.delta, &marked.table.open_again().await] {
            assert_eq!(touched(handle, &at).await, (vec![], changed.clone()), "step {step}");
            let deleted: Vec<i64> = deleted.iter().copied().collect();
            assert_eq!(read_latest(handle).await, marked.left(&deleted), "step {step}");
        }
        before = deleted;
    }
    // Over several commits, whatever changed in between is touched.
    let (appended, rewritten) = touched(&idle, &at(&idle, 2)).await;
    assert!(appended.is_empty() && rewritten.len() > 100);
    // The file goes: what was marked was not there any more.
    let at = marked.at();
    marked.version += 1;
    put_into_log(&marked.table.folder, marked.version, &[marked.removal()]);
    let left: Vec<i64> = (0..100).filter(|row| !before.contains(row)).collect();
    assert_eq!(touched(&idle, &at).await, (vec![], left));
    assert_eq!(read_latest(&marked.table.open_again().await).await, vec![]);
}

#[tokio::test]
async fn a_table_with_marked_rows_is_written() {
    let (vector, deleted) = example();
    let kept = |range: std::ops::Range<i64>| range.filter(|row| !deleted.contains(row)).count() as u64;
    for (write, removed, left) in [
        (
            Write::Replace { ranges: vec![InstantRange::new(10, 20)] },
            kept(10..20),
            kept(0..50) - kept(10..20) + 1,
        ),
        (Write::Replace { ranges: vec![InstantRange::new(0, 5_000)] }, kept(0..50), 1),
        (Write::ReplaceAll, kept(0..50), 1),
        (Write::Upsert { key: vec![0, 1] }, 0, kept(0..50) + 1),
        (Write::Compact, 0, kept(0..50) + 2),
    ] {
        let mut marked = Marked::new(50).await;
        marked.mark(Some(vector.clone()));
        if matches!(write, Write::Compact) {
            marked.table.append(&[(60, "x")]).await;
        }
        // A row that was deleted is no row that is replaced.
        let done = marked.table.delta.commit(commit_of(write.clone(), rows(&[(3, "h")]))).await.unwrap();
        assert_eq!(done.rows_removed, removed, "{write:?}");
        let compacted = matches!(write, Write::Compact);
        for handle in [&marked.table.delta, &marked.table.open_again().await] {
            let found = read_latest(handle).await;
            assert_eq!(found.len() as u64, left, "{write:?}");
            assert!(found.iter().any(|row| row.0 == 3), "{write:?}");
            assert!(!found.iter().any(|row| row.0 == 4), "{write:?}");
        }
        if compacted {
            assert_eq!(done.rows_added, 1);
        }
    }
}

#[tokio::test]
async fn a_vector_that_cannot_be_read_is_an_error_and_never_nothing() {
    let mut marked = Marked::new(50).await;
    let before = marked.at();
    let (vector, path) = marked.on_disk(&[1, 2].into_iter().collect());
    marked.mark(Some(vector.clone()));
    let whole = std::fs::read(&path).unwrap();
    let mut torn = whole.clone();
    *torn.last_mut().unwrap() ^= 1;
    let mut wrong = vector.clone();
    wrong["cardinality"] = 3.into();
    let (beyond, _) = marked.on_disk(&[1, 50].into_iter().collect());
    for (bytes, vector, word) in [
        (Some(torn), &vector, "CRC32"),
        (Some(whole[..whole.len() - 6].to_vec()), &vector, "bytes"),
        (None, &vector, "deletion_vector"),
        (Some(whole.clone()), &wrong, "2 rows"),
        (Some(whole.clone()), &beyond, "row 51"),
    ] {
        match bytes {
            Some(bytes) => std::fs::write(&path, bytes).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        marked.mark(None);
        marked.mark(Some(vector.clone()));
        let handle = marked.table.open_again().await;
        let provider = handle.scan(&ReadBounds::Latest).await.unwrap();
        let error = SessionContext::new().read_table(provider).unwrap().collect().await.unwrap_err();
        assert!(format!("{error:?} {error}").contains(word), "{word}: {error:?}");
        let replace = Write::Replace { ranges: vec![InstantRange::new(0, 10)] };
        let commit = handle.commit(commit_of(replace, rows(&[]))).await;
        assert!(commit.is_err(), "{word}");
    }
    // A vector of an older version that is gone makes that version stale.
    std::fs::write(&path, whole).unwrap();
    marked.mark(None);
    marked.mark(Some(vector));
    let at = marked.at();
    marked.mark(None);
    std::fs::remove_file(&path).unwrap();
    let handle = marked.table.open_again().await;
    assert_eq!(read_latest(&handle).await, marked.left(&[]));
    assert_eq!(read(&handle, ReadBounds::Snapshot(before)).await, marked.left(&[]));
    let scan = handle.scan(&ReadBounds::Snapshot(at)).await;
    assert!(matches!(scan, Err(TableError::Stale { .. })), "{scan:?}");
}

#[tokio::test]
async fn a_checkpoint_has_the_marks() {
    check_checkpoint(Marked::new(50).await).await;
}

#[tokio::test]
async fn a_folder_may_have_any_name() {
    for name in ["a b", "50 ü", "x=+;?#&"] {
        let folder = tempfile::Builder::new().prefix(name).tempdir().unwrap();
        let delta = windrow_delta::DeltaTable::create(folder.path(), crate::fixture::spec()).await.unwrap();
        check_checkpoint(Marked::of(Table { delta, folder }, 50)).await;
    }
    let folder = tempfile::Builder::new().prefix("50%").tempdir().unwrap();
    let error = windrow_delta::DeltaTable::create(folder.path(), crate::fixture::spec()).await.unwrap_err();
    assert!(error.to_string().contains("percent sign"), "{error}");
}

async fn check_checkpoint(mut marked: Marked) {
    let (vector, deleted) = example();
    marked.mark(Some(vector));
    let (vector, _) = marked.on_disk(&[0, 49].into_iter().collect());
    marked.mark(Some(vector));
    let theirs = crate::foreign::theirs(&marked.table.folder).await;
    deltalake_core::checkpoints::create_checkpoint(&theirs, None).await.unwrap();
    for version in 0..marked.version {
        let name = format!("_delta_log/{version:020}.json");
        std::fs::remove_file(marked.table.folder.path().join(name)).unwrap();
    }
    let opened = marked.table.open_again().await;
    assert_eq!(read_latest(&opened).await, marked.left(&[0, 49]));
    let before = marked.at();
    let (vector, _) = example();
    marked.mark(Some(vector));
    let mut changed = deleted.to_vec();
    changed.extend([0, 49]);
    changed.sort_unstable();
    assert_eq!(touched(&opened, &before).await, (vec![], changed));
}

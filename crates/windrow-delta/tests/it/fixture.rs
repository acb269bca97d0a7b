//! Tables in folders of their own, and short ways to fill and read them.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, StringArray, TimestampMillisecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, TimeUnit};
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::prelude::SessionContext;
use tempfile::TempDir;
use windrow_delta::DeltaTable;
use windrow_state::{SequenceRange, Watermarks};
use windrow_table::{Commit, Committed, ReadBounds, RowStream, SinkTable, SourceTable, TableSpec, Write};

/// An instant and a host.
pub(crate) type Row = (i64, &'static str);

pub(crate) fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("ts", DataType::Timestamp(TimeUnit::Millisecond, None), false),
        Field::new("host", DataType::Utf8, true),
    ]))
}

pub(crate) fn spec() -> TableSpec {
    TableSpec::new(schema()).unwrap().with_time_index("ts").unwrap().with_primary_key(&["host"]).unwrap()
}

pub(crate) fn rows(rows: &[Row]) -> RecordBatch {
    let times = TimestampMillisecondArray::from_iter_values(rows.iter().map(|row| row.0));
    let hosts = StringArray::from_iter_values(rows.iter().map(|row| row.1));
    RecordBatch::try_new(schema(), vec![Arc::new(times), Arc::new(hosts)]).unwrap()
}

pub(crate) fn stream(batches: Vec<RecordBatch>) -> RowStream {
    let schema = batches[0].schema();
    Box::pin(MemoryStream::try_new(batches, schema, None).unwrap())
}

pub(crate) fn commit_of(write: Write, batch: RecordBatch) -> Commit {
    Commit { write, rows: stream(vec![batch]), progress: None, expected: None }
}

/// A table in a folder that lives as long as it.
pub(crate) struct Table {
    pub(crate) delta: DeltaTable,
    pub(crate) folder: TempDir,
}

impl Table {
    pub(crate) async fn new() -> Self {
        Self::of(spec()).await
    }

    pub(crate) async fn of(spec: TableSpec) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let delta = DeltaTable::create(folder.path(), spec).await.unwrap();
        Self { delta, folder }
    }

    /// Another handle on the same table.
    pub(crate) async fn open_again(&self) -> DeltaTable {
        DeltaTable::open(self.folder.path(), self.delta.spec().clone()).await.unwrap()
    }

    pub(crate) async fn append(&self, new: &[Row]) -> Committed {
        self.delta.commit(commit_of(Write::Append, rows(new))).await.unwrap()
    }

    /// The names of the data files that are in the folder.
    pub(crate) fn data_files(&self) -> Vec<String> {
        data_files(self.folder.path())
    }
}

/// The names of the data files that are in a folder.
pub(crate) fn data_files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".parquet")).collect()
}

/// A sequence of a table.
pub(crate) fn at(table: &DeltaTable, sequence: u64) -> Watermarks {
    Watermarks::of(table.region(), sequence)
}

pub(crate) async fn read(table: &DeltaTable, bounds: ReadBounds) -> Vec<(i64, String)> {
    let provider = table.scan(&bounds).await.unwrap();
    let batches = SessionContext::new().read_table(provider).unwrap().collect().await.unwrap();
    let mut found: Vec<(i64, String)> = batches
        .iter()
        .flat_map(|batch| {
            let times = instants(batch.column(0).as_ref());
            let hosts = batch.column(1).as_string::<i32>();
            times
                .into_iter()
                .zip(hosts.iter().map(|host| host.unwrap_or("NULL").to_owned()))
                .collect::<Vec<_>>()
        })
        .collect();
    found.sort();
    found
}

pub(crate) async fn read_latest(table: &DeltaTable) -> Vec<(i64, String)> {
    read(table, ReadBounds::Latest).await
}

pub(crate) fn owned(rows: &[Row]) -> Vec<(i64, String)> {
    let mut rows: Vec<_> = rows.iter().map(|&(t, host)| (t, host.to_owned())).collect();
    rows.sort();
    rows
}

pub(crate) fn instants(array: &dyn Array) -> Vec<i64> {
    cast(array, &DataType::Int64).unwrap().as_primitive::<Int64Type>().values().to_vec()
}

/// The instants that the commits after `after` touched: of appends, and of others.
pub(crate) async fn touched(table: &DeltaTable, after: &Watermarks) -> (Vec<i64>, Vec<i64>) {
    let range = SequenceRange { after: after.clone(), upto: table.watermarks().await.unwrap() };
    let changes = table.changes(&range, &|_| false).await.unwrap();
    let sorted = |arrays: &[Arc<dyn Array>]| {
        let mut found: Vec<i64> = arrays.iter().flat_map(|array| instants(array.as_ref())).collect();
        found.sort_unstable();
        found
    };
    (sorted(&changes.appended), sorted(&changes.rewritten))
}

/// A commit that another writer, who knows more of the protocol, puts into the log.
pub(crate) fn put_into_log(folder: &TempDir, version: u64, lines: &[serde_json::Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(folder.path().join(format!("_delta_log/{version:020}.json")), text).unwrap();
}

//! A Delta table does what every table must.

use std::sync::{Arc, Mutex};

use windrow_delta::DeltaTable;
use windrow_table::{SinkTable, conformance};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delta_table_is_a_table() {
    let folders = Mutex::new(Vec::new());
    conformance::check(async |spec| {
        let folder = tempfile::tempdir().unwrap();
        let table = DeltaTable::create(folder.path().join("deep/er").as_path(), spec).await.unwrap();
        folders.lock().unwrap().push(folder);
        Arc::new(table) as Arc<dyn SinkTable>
    })
    .await;
}

#[tokio::test]
async fn a_delta_table_that_was_opened_is_a_table() {
    let folders = Mutex::new(Vec::new());
    conformance::check(async |spec| {
        let folder = tempfile::tempdir().unwrap();
        DeltaTable::create(folder.path(), spec.clone()).await.unwrap();
        let table = DeltaTable::open(folder.path(), spec).await.unwrap();
        folders.lock().unwrap().push(folder);
        Arc::new(table) as Arc<dyn SinkTable>
    })
    .await;
}

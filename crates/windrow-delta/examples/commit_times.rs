//! How long small commits take as the log grows.
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::physical_plan::memory::MemoryStream;
use windrow_delta::DeltaTable;
use windrow_state::{Progress, SequenceRange, Watermarks};
use windrow_table::{Commit, SinkTable, SourceTable, TableSpec, Write};
use windrow_time::InstantRange;

#[tokio::main]
async fn main() {
    let commits: usize = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(300);
    let schema = Arc::new(Schema::new(vec![
        Field::new("ts", DataType::Timestamp(TimeUnit::Microsecond, None), false),
        Field::new("host", DataType::Utf8, true),
        Field::new("v", DataType::Float64, true),
    ]));
    let spec = TableSpec::new(schema.clone()).unwrap().with_time_index("ts").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let keep = std::env::args().nth(2);
    let table = DeltaTable::create(dir.path(), spec).await.unwrap();
    let hour = 3_600_000_000_i64;
    let batch = |start: i64, n: i64| {
        let t = TimestampMicrosecondArray::from_iter_values((0..n).map(|i| start + i * hour / n));
        let h = StringArray::from_iter_values((0..n).map(|i| format!("host-{}", i % 100)));
        let v = Float64Array::from_iter_values((0..n).map(|i| (i as f64).sin()));
        RecordBatch::try_new(schema.clone(), vec![Arc::new(t), Arc::new(h), Arc::new(v)]).unwrap()
    };
    let stream = |b: RecordBatch| Box::pin(MemoryStream::try_new(vec![b], schema.clone(), None).unwrap());
    let (mut appends, mut replaces, mut seen) = (vec![], vec![], vec![]);
    for k in 0..commits as i64 {
        let b = batch(k * hour, 10_000);
        let t = Instant::now();
        let done = table
            .commit(Commit { write: Write::Append, rows: stream(b), progress: None, expected: None })
            .await
            .unwrap();
        appends.push(t.elapsed());
        let t = Instant::now();
        let after = Watermarks::of(0, done.at.get(0) - 1);
        let c = table.changes(&SequenceRange { after, upto: done.at.clone() }).await.unwrap();
        assert_eq!(c.appended_rows(), 10_000);
        seen.push(t.elapsed());
        let w = (k / 2) * hour;
        let b = batch(w, 1_000);
        let t = Instant::now();
        table
            .commit(Commit {
                write: Write::Replace { ranges: vec![InstantRange::new(w, w + hour)] },
                rows: stream(b),
                progress: Some(("f".into(), Progress::start())),
                expected: Some(table.watermarks().await.unwrap()),
            })
            .await
            .unwrap();
        replaces.push(t.elapsed());
    }
    let med = |v: &[std::time::Duration]| {
        let mut v = v.to_vec();
        v.sort();
        v[v.len() / 2]
    };
    let n = commits;
    for (name, v) in [("append", &appends), ("changes", &seen), ("replace", &replaces)] {
        println!(
            "{name}: first 20 {:?}, last 20 {:?}, max {:?}",
            med(&v[..20]),
            med(&v[n - 20..]),
            v.iter().max().unwrap()
        );
    }
    let t = Instant::now();
    DeltaTable::open(dir.path(), table.spec().clone()).await.unwrap();
    println!("open: {:?}", t.elapsed());
    if keep.is_some() {
        println!("{}", dir.keep().display());
    }
}

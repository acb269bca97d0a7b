//! Commits: what they leave behind, and what becomes of those that get in each other's way.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{Array, Int32Array, RecordBatch, StringArray, TimestampMillisecondArray};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::error::DataFusionError;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::SessionContext;
use futures::{StreamExt, stream};
use windrow_delta::{DeltaError, DeltaTable};
use windrow_state::{DirtySet, Progress, SequenceRange, Watermarks};
use windrow_table::{Commit, ReadBounds, RowStream, SinkTable, SourceTable, TableError, TableSpec, Write};
use windrow_time::InstantRange;

use crate::fixture::{
    Table, at, commit_of, data_files, instants, owned, read, read_latest, rows, schema, spec,
    stream as one_stream, touched,
};

fn progress(upto: u64) -> Progress {
    let dirty = DirtySet::from(vec![InstantRange::new(-10, upto as i64)]);
    Progress::start().observe(&Watermarks::of(0, upto), &dirty).unwrap()
}

fn replace(start: i64, end: i64) -> Write {
    Write::Replace { ranges: vec![InstantRange::new(start, end)] }
}

/// Rows that come after something was done.
fn after(doing: impl Future<Output = ()> + Send + 'static, batch: RecordBatch) -> RowStream {
    let rows = stream::once(async move {
        doing.await;
        Ok(batch)
    });
    Box::pin(RecordBatchStreamAdapter::new(schema(), rows))
}

#[tokio::test]
async fn rows_and_progress_are_there_when_the_table_is_opened_again() {
    let table = Table::new().await;
    let mut commits = Vec::new();
    for (flow, upto) in [("one", 1), ("Two \"ü\"", 2), ("one", 3)] {
        let mut commit = commit_of(Write::Append, rows(&[(upto as i64, flow)]));
        commit.progress = Some((flow.into(), progress(upto)));
        commits.push(table.delta.commit(commit).await.unwrap().at);
    }
    for _ in 0..2 {
        let opened = table.open_again().await;
        assert_eq!(read_latest(&opened).await, owned(&[(1, "one"), (2, "Two \"ü\""), (3, "one")]));
        let one = opened.progress("one").await.unwrap().unwrap();
        assert_eq!((one.progress, one.at), (progress(3), commits[2].clone()));
        let two = opened.progress("Two \"ü\"").await.unwrap().unwrap();
        assert_eq!((two.progress, two.at), (progress(2), commits[1].clone()));
        assert_eq!(opened.progress("TWO").await.unwrap(), None);
        assert_eq!(opened.watermarks().await.unwrap(), at(&opened, 4));
    }
}

#[tokio::test]
async fn one_handle_sees_what_another_commits() {
    let table = Table::new().await;
    let other = table.open_again().await;
    assert_eq!(other.progress("f").await.unwrap(), None);
    let mut commit = commit_of(Write::Append, rows(&[(1, "a")]));
    commit.progress = Some(("f".into(), progress(7)));
    let done = table.delta.commit(commit).await.unwrap();
    assert_eq!(other.watermarks().await.unwrap(), done.at);
    assert_eq!(read_latest(&other).await, owned(&[(1, "a")]));
    assert_eq!(touched(&other, &at(&other, 1)).await, (vec![1], vec![]));
    assert_eq!(other.progress("f").await.unwrap().unwrap().progress, progress(7));
    other.commit(commit_of(Write::Append, rows(&[(2, "b")]))).await.unwrap();
    assert_eq!(read_latest(&table.delta).await, owned(&[(1, "a"), (2, "b")]));
}

#[tokio::test]
async fn of_two_commits_on_one_state_only_one_lands() {
    let table = Table::new().await;
    let other = table.open_again().await;
    let base = table.append(&[(1, "a")]).await.at;
    let commit = |host: &'static str| Commit {
        expected: Some(base.clone()),
        progress: Some(("f".into(), progress(host.len() as u64))),
        ..commit_of(replace(0, 10), rows(&[(2, host)]))
    };
    let (mine, theirs) = tokio::join!(table.delta.commit(commit("mine")), other.commit(commit("theirs")));
    let (winner, host) = match (mine, theirs) {
        (Ok(done), Err(TableError::Conflict { .. })) => (done, "mine"),
        (Err(TableError::Conflict { .. }), Ok(done)) => (done, "theirs"),
        others => panic!("{others:?}"),
    };
    for handle in [&table.delta, &other] {
        assert_eq!(read_latest(handle).await, owned(&[(2, host)]));
        let found = handle.progress("f").await.unwrap().unwrap();
        assert_eq!((found.progress, found.at), (progress(host.len() as u64), winner.at.clone()));
    }
    assert_eq!(table.data_files().len(), 2, "the file of before and that of the winner");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_of_many_handles_all_land() {
    let table = Table::new().await;
    let mut tasks = Vec::new();
    for handle in 0..4 {
        let delta = table.open_again().await;
        tasks.push(tokio::spawn(async move {
            for index in 0..8 {
                let mut commit = commit_of(Write::Append, rows(&[(handle * 8 + index, "x")]));
                commit.progress = Some((format!("flow {handle}"), progress(index as u64)));
                delta.commit(commit).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let expected: Vec<_> = (0..32).map(|instant| (instant, "x")).collect();
    assert_eq!(read_latest(&table.delta).await, owned(&expected));
    assert_eq!(table.delta.watermarks().await.unwrap(), at(&table.delta, 33));
    let mut sequences = Vec::new();
    for handle in 0..4 {
        let found = table.delta.progress(&format!("flow {handle}")).await.unwrap().unwrap();
        assert_eq!(found.progress, progress(7));
        sequences.push(found.at.get(table.delta.region()));
    }
    assert!(sequences.contains(&33), "the last commit was one of theirs: {sequences:?}");
}

#[tokio::test]
async fn a_rewrite_is_planned_anew_on_what_got_in_between() {
    for write in [replace(0, 10), Write::ReplaceAll, Write::Upsert { key: vec![1, 0] }] {
        let table = Table::new().await;
        table.append(&[(1, "a"), (50, "old")]).await;
        let other = Arc::new(table.open_again().await);
        let between = {
            let other = Arc::clone(&other);
            async move {
                other.commit(commit_of(Write::Append, rows(&[(2, "new"), (60, "late")]))).await.unwrap();
            }
        };
        let rows = after(between, rows(&[(2, "new"), (1, "a")]));
        let commit = Commit { write: write.clone(), rows, progress: None, expected: None };
        let done = table.delta.commit(commit).await.unwrap();
        assert_eq!(done.rows_added, 2);
        let (removed, left) = match write {
            Write::Replace { .. } => (2, owned(&[(1, "a"), (2, "new"), (50, "old"), (60, "late")])),
            Write::Upsert { .. } => (2, owned(&[(1, "a"), (2, "new"), (50, "old"), (60, "late")])),
            _ => (4, owned(&[(1, "a"), (2, "new")])),
        };
        assert_eq!(done.rows_removed, removed, "{write:?}");
        assert_eq!(read_latest(&other).await, left, "{write:?}");
    }
}

#[tokio::test]
async fn a_commit_that_expects_what_is_no_more_leaves_no_file() {
    for by_the_same_handle in [false, true] {
        let Table { delta, folder } = Table::new().await;
        let other = Arc::new(DeltaTable::open(folder.path(), spec()).await.unwrap());
        let delta = Arc::new(delta);
        let base = other.commit(commit_of(Write::Append, rows(&[(1, "a")]))).await.unwrap().at;
        let between = {
            let faster = if by_the_same_handle { Arc::clone(&delta) } else { Arc::clone(&other) };
            async move {
                faster.commit(commit_of(Write::Append, rows(&[(2, "b")]))).await.unwrap();
            }
        };
        let commit = Commit {
            write: replace(0, 10),
            rows: after(between, rows(&[(3, "c")])),
            progress: Some(("f".into(), progress(1))),
            expected: Some(base.clone()),
        };
        let result = delta.commit(commit).await;
        let Err(TableError::Conflict { expected, found }) = result else { panic!("{result:?}") };
        assert_eq!((expected, found), (base, at(&delta, 3)));
        assert_eq!(read_latest(&delta).await, owned(&[(1, "a"), (2, "b")]));
        assert_eq!(delta.progress("f").await.unwrap(), None);
        assert_eq!(data_files(folder.path()).len(), 2);
    }
}

#[tokio::test]
async fn a_stream_that_fails_leaves_no_file() {
    let table = Table::new().await;
    let many: Vec<_> = (0..1_100).map(|index| Ok(rows(&vec![(index, "x"); 1_000]))).collect();
    let failing = stream::iter(many).chain(stream::iter([Err(DataFusionError::Execution("lost".into()))]));
    let seen = Arc::new(AtomicBool::new(false));
    let folder = table.folder.path().to_owned();
    let witness = Arc::clone(&seen);
    let failing = failing.inspect(move |_| {
        let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        if names.into_iter().any(|name| name.to_string_lossy().ends_with(".parquet")) {
            witness.store(true, Ordering::Relaxed);
        }
    });
    let rows = Box::pin(RecordBatchStreamAdapter::new(schema(), failing));
    let commit = Commit { write: Write::Append, rows, progress: None, expected: None };
    let result = table.delta.commit(commit).await;
    assert!(matches!(result, Err(TableError::Query(_))), "{result:?}");
    assert!(seen.load(Ordering::Relaxed), "a full file was written before the stream failed");
    assert_eq!(table.data_files(), Vec::<String>::new());
    assert_eq!(table.delta.watermarks().await.unwrap(), at(&table.delta, 1));
}

#[tokio::test]
async fn rows_that_do_not_fit_are_refused() {
    let schema = Arc::new(Schema::new(vec![
        Field::new("ts", schema().field(0).data_type().clone(), true),
        Field::new("n", DataType::Int32, false),
    ]));
    let table = Table::of(TableSpec::new(schema).unwrap().with_time_index("ts").unwrap()).await;
    let batch = |numbers: Arc<dyn Array>| {
        let fields = vec![
            Field::new("ts", crate::fixture::schema().field(0).data_type().clone(), true),
            Field::new("n", numbers.data_type().clone(), true),
        ];
        let times = TimestampMillisecondArray::from(vec![None, Some(5)]);
        RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![Arc::new(times), numbers]).unwrap()
    };
    for (numbers, word) in [
        (Arc::new(Int32Array::from(vec![Some(1), None])) as Arc<dyn Array>, "NULL"),
        (Arc::new(StringArray::from(vec!["a", "b"])), "Utf8"),
    ] {
        for write in [Write::Append, Write::Upsert { key: vec![1] }] {
            let result = table.delta.commit(commit_of(write, batch(Arc::clone(&numbers)))).await;
            assert!(matches!(&result, Err(TableError::Schema(text)) if text.contains(word)), "{result:?}");
        }
    }
    let narrow = batch(Arc::new(Int32Array::from(vec![1, 2]))).project(&[0]).unwrap();
    assert!(matches!(table.delta.commit(commit_of(Write::Append, narrow)).await, Err(TableError::Schema(_))));
    assert_eq!(
        (table.data_files().len(), table.delta.watermarks().await.unwrap().get(table.delta.region())),
        (0, 1)
    );
    let fits = batch(Arc::new(Int32Array::from(vec![1, 2])));
    assert_eq!(table.delta.commit(commit_of(Write::Append, fits)).await.unwrap().rows_added, 2);
    // A time index may be NULL where the column may: no range of time has such a row.
    let none = RecordBatch::new_empty(table.delta.spec().schema().clone());
    let done = table.delta.commit(commit_of(replace(i64::MIN, i64::MAX), none)).await.unwrap();
    assert_eq!(done.rows_removed, 1);
}

#[tokio::test]
async fn a_file_that_a_replace_covers_is_not_read() {
    let table = Table::new().await;
    table.append(&[(10, "a"), (19, "b")]).await;
    for name in table.data_files() {
        std::fs::write(table.folder.path().join(name), b"nothing to read").unwrap();
    }
    table.append(&[(5, "c"), (12, "d"), (25, "e")]).await;
    let done = table.delta.commit(commit_of(replace(10, 20), rows(&[(11, "f")]))).await.unwrap();
    assert_eq!((done.rows_added, done.rows_removed), (1, 3));
    assert_eq!(read_latest(&table.delta).await, owned(&[(5, "c"), (11, "f"), (25, "e")]));
    // A file that has a row of another time has to be read, and cannot be.
    let table = Table::new().await;
    table.append(&[(10, "a"), (20, "b")]).await;
    std::fs::write(table.folder.path().join(&table.data_files()[0]), b"nothing to read").unwrap();
    let result = table.delta.commit(commit_of(replace(10, 20), rows(&[(11, "f")]))).await;
    assert!(result.is_err(), "{result:?}");
    assert_eq!(table.data_files().len(), 1, "what was written for it is gone");
}

#[tokio::test]
async fn what_stays_of_several_files_goes_into_one() {
    let table = Table::new().await;
    for hour in 0..5 {
        table.append(&[(0, "keep"), (hour + 1, "drop"), (100 - hour, "keep")]).await;
    }
    let done = table.delta.commit(commit_of(replace(1, 6), rows(&[]))).await.unwrap();
    assert_eq!((done.rows_added, done.rows_removed), (0, 5));
    let mut expected = vec![(0, "keep"); 5];
    expected.extend((0..5).map(|hour| (100 - hour, "keep")));
    assert_eq!(read_latest(&table.delta).await, owned(&expected));
    assert_eq!(table.data_files().len(), 6, "five files of before, and one");
    // Rows in a file are in the order of time.
    let provider = table.delta.scan(&ReadBounds::Latest).await.unwrap();
    let batches = SessionContext::new().read_table(provider).unwrap().collect().await.unwrap();
    let found: Vec<i64> = batches.iter().flat_map(|batch| instants(batch.column(0).as_ref())).collect();
    assert_eq!(found, [0, 0, 0, 0, 0, 96, 97, 98, 99, 100]);
    // What stays is not touched, though it is in another file now.
    assert_eq!(touched(&table.delta, &at(&table.delta, 6)).await, (vec![], vec![1, 2, 3, 4, 5]));
}

#[tokio::test]
async fn rewrites_touch_what_they_change() {
    let table = Table::new().await;
    let mut random = 7_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((random >> 33) % below) as i64
    };
    let mut before = Vec::new();
    for step in 0..60 {
        let at = table.delta.watermarks().await.unwrap();
        let new: Vec<_> = (0..next(6)).map(|_| (next(40), ["a", "b"][next(2) as usize])).collect();
        let start = next(40);
        let write = match next(4) {
            0 => Write::Append,
            1 => replace(start, start + next(12)),
            2 => Write::Upsert { key: vec![0, 1] },
            _ => replace(start, start + 1),
        };
        let is_replace = matches!(write, Write::Replace { .. });
        table.delta.commit(commit_of(write, rows(&new))).await.unwrap();
        let after = read_latest(&table.delta).await;
        let (appended, rewritten) = touched(&table.delta, &at).await;
        let named: BTreeSet<i64> = appended.into_iter().chain(rewritten).collect();
        // By instant: what is there in another number, or otherwise.
        let of = |rows: &[(i64, String)], instant| -> Vec<String> {
            rows.iter().filter(|row| row.0 == instant).map(|row| row.1.clone()).collect()
        };
        for instant in 0..60 {
            if of(&before, instant) != of(&after, instant) {
                assert!(named.contains(&instant), "step {step}: {instant} was changed");
            } else if named.contains(&instant) {
                // A row that gave way to an equal one is one that was written.
                let written = new.iter().any(|row| row.0 == instant);
                let replaced = is_replace && !of(&before, instant).is_empty();
                assert!(written || replaced, "step {step}: {instant} was not changed");
            }
        }
        before = after;
    }
}

#[tokio::test]
async fn many_rows_become_several_files_of_neighbouring_times() {
    let table = Table::new().await;
    let batches = (0..150).map(|batch| {
        let instants =
            TimestampMillisecondArray::from_iter_values((0..10_000).map(|row| batch * 10_000 + row));
        let hosts = StringArray::from_iter_values(std::iter::repeat_n("x", 10_000));
        RecordBatch::try_new(schema(), vec![Arc::new(instants), Arc::new(hosts)]).unwrap()
    });
    let commit =
        Commit { write: Write::Append, rows: one_stream(batches.collect()), progress: None, expected: None };
    let done = table.delta.commit(commit).await.unwrap();
    assert_eq!((done.rows_added, table.data_files().len()), (1_500_000, 2));
    let first_file = InstantRange::new(0, 1 << 20);
    assert_eq!(table.delta.estimate_rows(&[first_file]).await.unwrap(), 1 << 20);
    // Only the file with the window is rewritten, into smaller ones.
    let done = table.delta.commit(commit_of(replace(1_200_000, 1_200_010), rows(&[]))).await.unwrap();
    assert_eq!(done.rows_removed, 10);
    let (_, rewritten) = touched(&table.delta, &at(&table.delta, 2)).await;
    assert!(!rewritten.contains(&5) && rewritten.contains(&1_200_005));
    assert_eq!(table.data_files().len(), 2 + 4);
}

#[tokio::test]
async fn old_progress_does_not_pile_up() {
    let table = Table::new().await;
    for upto in 1..=40 {
        // Two flows that take turns.
        for flow in ["Flow", "other"] {
            let mut commit = commit_of(Write::Append, rows(&[]));
            commit.progress = Some((flow.into(), progress(upto)));
            table.delta.commit(commit).await.unwrap();
        }
    }
    for folder in ["=46low", "other"] {
        let folder = table.folder.path().join("_windrow/progress").join(folder);
        let files = std::fs::read_dir(folder).unwrap().count();
        assert!((1..=8).contains(&files), "{files} files");
    }
    assert_eq!(table.open_again().await.progress("Flow").await.unwrap().unwrap().progress, progress(40));
    assert_eq!(read(&table.delta, ReadBounds::Latest).await, vec![]);
    assert!(table.data_files().is_empty(), "a commit without rows has no file");
}

#[tokio::test]
async fn a_table_is_made_once_and_opened_only_where_one_is() {
    let table = Table::new().await;
    let path = table.folder.path();
    let again = DeltaTable::create(path, spec()).await.unwrap_err();
    assert!(matches!(again, DeltaError::Exists { .. }), "{again}");
    let missing = DeltaTable::open(path.join("nowhere").as_path(), spec()).await.unwrap_err();
    assert!(matches!(missing, DeltaError::Missing { .. }), "{missing}");
    let folder = tempfile::tempdir().unwrap();
    let no_table = DeltaTable::open(folder.path(), spec()).await.unwrap_err();
    assert!(matches!(no_table, DeltaError::NotATable { .. }), "{no_table}");
    let file = folder.path().join("file");
    std::fs::write(&file, b"x").unwrap();
    let error = DeltaTable::create(file.join("t").as_path(), spec()).await.unwrap_err();
    assert!(matches!(error, DeltaError::NotWritable { .. }), "{error}");
    let error = DeltaTable::open("nonsense://host/path", spec()).await.unwrap_err();
    assert!(matches!(error, DeltaError::Location { .. }), "{error}");
    let url = url::Url::from_directory_path(path).unwrap();
    let opened = DeltaTable::open(url.as_str(), spec()).await.unwrap();
    assert_eq!(opened.url(), table.delta.url());
    let other = TableSpec::new(Arc::new(Schema::new(vec![Field::new("x", DataType::Int8, true)]))).unwrap();
    let error = DeltaTable::open(path, other).await.unwrap_err();
    assert!(matches!(error, DeltaError::Columns(_)), "{error}");
}

#[tokio::test]
async fn many_small_files_are_put_together_by_the_commits_themselves() {
    let table = Table::new().await;
    let mut all = Vec::new();
    let mut before = None;
    for index in 0..150_i64 {
        // In an order that is not that of time.
        let row = ((index * 37) % 150, "h");
        let done = table.append(&[row]).await;
        if index == 40 {
            before = Some(done.at);
        }
        all.push(row);
    }
    let newest = table.delta.watermarks().await.expect("watermarks").get(table.delta.region());
    assert!(newest > 150, "some commits were compactions: {newest}");
    let active = crate::foreign::adds(&table.folder).await.len();
    assert!(active < 70, "{active} files");
    let mut sorted = owned(&all);
    sorted.sort();
    assert_eq!(read_latest(&table.delta).await, sorted);
    // Nothing was touched by them, and what came since then is read exactly.
    let before = before.expect("a commit");
    let (appended, rewritten) = touched(&table.delta, &before).await;
    assert_eq!((appended.len(), rewritten.len()), (109, 0));
    let range = SequenceRange { after: before, upto: table.delta.watermarks().await.expect("watermarks") };
    assert_eq!(read(&table.delta, ReadBounds::Appended(range)).await.len(), 109);
}

//! Older versions, and logs that no longer have them.

use std::path::Path;

use windrow_delta::DeltaTable;
use windrow_state::{SequenceRange, Watermarks};
use windrow_table::{ReadBounds, SinkTable, SourceTable, TableError, Write};
use windrow_time::InstantRange;

use crate::fixture::{Table, commit_of, owned, read, read_latest, rows, touched};

fn at(sequence: u64) -> Watermarks {
    Watermarks::of(0, sequence)
}

fn range(after: u64, upto: u64) -> SequenceRange {
    SequenceRange { after: at(after), upto: at(upto) }
}

fn log_file(folder: &Path, version: u64) -> std::path::PathBuf {
    folder.join("_delta_log").join(format!("{version:020}.json"))
}

/// A table whose commit of each sequence after the first appends its number.
async fn counted(commits: i64) -> Table {
    let table = Table::new().await;
    for sequence in 2..commits + 2 {
        table.append(&[(sequence, "x")]).await;
    }
    table
}

#[tokio::test]
async fn every_version_is_read_as_it_was() {
    let table = counted(40).await;
    let replace = Write::Replace { ranges: vec![InstantRange::new(2, 12)] };
    table.delta.commit(commit_of(replace, rows(&[(7, "new")]))).await.unwrap();
    // From what the handle has seen, and from the log alone.
    for handle in [&table.delta, &table.open_again().await] {
        for upto in [0, 1, 2, 17, 41] {
            let expected: Vec<_> = (2..=upto as i64).map(|sequence| (sequence, "x")).collect();
            assert_eq!(read(handle, ReadBounds::Snapshot(at(upto))).await, owned(&expected), "{upto}");
            let changes = handle.changes(&range(0, upto), &|_| false).await.unwrap();
            assert_eq!((changes.appended_rows, changes.are_appends()), (expected.len() as u64, true));
        }
        assert_eq!(read(handle, ReadBounds::Snapshot(Watermarks::none())).await, vec![]);
        assert_eq!(read(handle, ReadBounds::Appended(range(3, 5))).await, owned(&[(4, "x"), (5, "x")]));
        assert_eq!(read(handle, ReadBounds::Appended(range(5, 5))).await, vec![]);
        assert_eq!(read(handle, ReadBounds::Appended(range(0, 3))).await, owned(&[(2, "x"), (3, "x")]));
        let appends = handle.scan(&ReadBounds::Appended(range(30, 42))).await;
        assert!(matches!(appends, Err(TableError::NotAppends { after: 30, upto: 42 })), "{appends:?}");
        let (appended, rewritten) = touched(handle, &at(39)).await;
        assert_eq!(appended, vec![40, 41]);
        for instant in 2..12 {
            assert!(rewritten.contains(&instant), "{instant}");
        }
        // From nothing, what was there in between does not matter.
        let (appended, rewritten) = touched(handle, &Watermarks::none()).await;
        let left: Vec<i64> = [7].into_iter().chain(12..=41).collect();
        assert_eq!((appended, rewritten), (left, vec![]));
        for bounds in [ReadBounds::Snapshot(at(43)), ReadBounds::Appended(range(40, 43))] {
            let scan = handle.scan(&bounds).await;
            assert!(matches!(scan, Err(TableError::Stale { asked: 43, oldest: 1, .. })), "{scan:?}");
        }
        let changes = handle.changes(&range(40, 43), &|_| false).await;
        assert!(matches!(changes, Err(TableError::Stale { asked: 43, .. })), "{changes:?}");
    }
}

#[tokio::test]
async fn a_log_that_was_cut_is_read_from_its_checkpoint_on() {
    let table = Table::new().await;
    let idle = table.open_again().await;
    let mut commit = commit_of(Write::Append, rows(&[(2, "x")]));
    commit.progress = Some(("f".into(), windrow_state::Progress::start()));
    table.delta.commit(commit).await.unwrap();
    for sequence in 3..=103 {
        table.append(&[(sequence, "x")]).await;
    }
    let folder = table.folder.path();
    assert!(folder.join("_delta_log/_last_checkpoint").exists(), "the version 100 has a checkpoint");
    for version in 0..100 {
        std::fs::remove_file(log_file(folder, version)).unwrap();
    }
    let all: Vec<_> = (2..=103).map(|sequence| (sequence, "x")).collect();
    let opened = table.open_again().await;
    for handle in [&idle, &opened] {
        // One of the commits put small files together.
        assert_eq!(handle.watermarks().await.unwrap(), at(104));
        assert_eq!(read_latest(handle).await, owned(&all));
        assert_eq!(read(handle, ReadBounds::Snapshot(at(101))).await.len(), 99);
        assert_eq!(handle.changes(&range(100, 104), &|_| false).await.unwrap().appended_rows, 4);
        let changes = handle.changes(&range(99, 104), &|_| false).await;
        assert!(matches!(changes, Err(TableError::Stale { asked: 99, oldest: 101, .. })), "{changes:?}");
        let scan = handle.scan(&ReadBounds::Snapshot(at(100))).await;
        assert!(matches!(scan, Err(TableError::Stale { asked: 100, oldest: 101, .. })), "{scan:?}");
        assert_eq!(handle.progress("f").await.unwrap().unwrap().at, at(2));
        assert_eq!(handle.progress("g").await.unwrap(), None);
    }
    // The table goes on.
    idle.commit(commit_of(Write::Append, rows(&[(104, "y")]))).await.unwrap();
    assert_eq!(read_latest(&opened).await.len(), 103);
}

#[tokio::test]
async fn files_that_were_deleted_for_good_make_their_versions_stale() {
    let table = Table::new().await;
    table.append(&[(1, "a")]).await;
    let first = table.data_files();
    table.append(&[(2, "b")]).await;
    table.delta.commit(commit_of(Write::ReplaceAll, rows(&[(3, "c")]))).await.unwrap();
    assert_eq!(touched(&table.delta, &at(3)).await, (vec![], vec![1, 2, 3]));
    std::fs::remove_file(table.folder.path().join(&first[0])).unwrap();
    for bounds in
        [ReadBounds::Snapshot(at(2)), ReadBounds::Snapshot(at(3)), ReadBounds::Appended(range(1, 2))]
    {
        let scan = table.delta.scan(&bounds).await;
        assert!(matches!(scan, Err(TableError::Stale { .. })), "{bounds:?}: {scan:?}");
    }
    let changes = table.delta.changes(&range(3, 4), &|_| false).await;
    assert!(matches!(changes, Err(TableError::Stale { asked: 3, .. })), "{changes:?}");
    assert_eq!(read(&table.delta, ReadBounds::Appended(range(2, 3))).await, owned(&[(2, "b")]));
    assert_eq!(read_latest(&table.delta).await, owned(&[(3, "c")]));
}

#[tokio::test]
async fn a_table_that_was_made_anew_is_another_one() {
    let table = counted(3).await;
    let folder = table.folder.path();
    std::fs::remove_dir_all(folder.join("_delta_log")).unwrap();
    let new = DeltaTable::create(folder, table.delta.spec().clone()).await.unwrap();
    new.commit(commit_of(Write::Append, rows(&[(9, "z")]))).await.unwrap();
    let error = table.delta.watermarks().await.unwrap_err();
    assert!(error.to_string().contains("replaced"), "{error}");
    let commit = table.delta.commit(commit_of(Write::Append, rows(&[(1, "x")]))).await;
    assert!(commit.is_err());
    assert!(!log_file(folder, 4).exists(), "no commit was put after a gap");
    assert_eq!(read_latest(&new).await, owned(&[(9, "z")]));
}

#[tokio::test]
async fn an_older_version_that_cannot_be_read_is_not_taken_for_one_that_is_gone() {
    let table = counted(30).await;
    let whole = std::fs::read(log_file(table.folder.path(), 5)).unwrap();
    std::fs::write(log_file(table.folder.path(), 5), &whole[..whole.len() / 2]).unwrap();
    assert_eq!(read(&table.delta, ReadBounds::Snapshot(at(5))).await.len(), 4);
    let scan = table.delta.scan(&ReadBounds::Snapshot(at(7))).await;
    assert!(matches!(scan, Err(TableError::Storage { .. })), "{scan:?}");
    let opened = DeltaTable::open(table.folder.path(), table.delta.spec().clone()).await;
    assert!(opened.is_err());
}

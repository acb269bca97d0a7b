//! Older versions, and logs that no longer have them.

use std::path::Path;

use windrow_delta::DeltaTable;
use windrow_state::{SequenceRange, Watermarks};
use windrow_table::{Commit, ReadBounds, SinkTable, SourceTable, TableError, Write};
use windrow_time::InstantRange;

use crate::fixture::{Table, at, commit_of, owned, read, read_latest, rows, touched};

fn range(table: &DeltaTable, after: u64, upto: u64) -> SequenceRange {
    SequenceRange { after: at(table, after), upto: at(table, upto) }
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
            assert_eq!(
                read(handle, ReadBounds::Snapshot(at(handle, upto))).await,
                owned(&expected),
                "{upto}"
            );
            let changes = handle.changes(&range(handle, 0, upto), &|_| false).await.unwrap();
            assert_eq!((changes.appended_rows, changes.are_appends()), (expected.len() as u64, true));
        }
        assert_eq!(read(handle, ReadBounds::Snapshot(Watermarks::none())).await, vec![]);
        assert_eq!(
            read(handle, ReadBounds::Appended(range(handle, 3, 5))).await,
            owned(&[(4, "x"), (5, "x")])
        );
        assert_eq!(read(handle, ReadBounds::Appended(range(handle, 5, 5))).await, vec![]);
        assert_eq!(
            read(handle, ReadBounds::Appended(range(handle, 0, 3))).await,
            owned(&[(2, "x"), (3, "x")])
        );
        let appends = handle.scan(&ReadBounds::Appended(range(handle, 30, 42))).await;
        assert!(matches!(appends, Err(TableError::NotAppends { after: 30, upto: 42 })), "{appends:?}");
        let (appended, rewritten) = touched(handle, &at(handle, 39)).await;
        assert_eq!(appended, vec![40, 41]);
        for instant in 2..12 {
            assert!(rewritten.contains(&instant), "{instant}");
        }
        // From nothing, what was there in between does not matter.
        let (appended, rewritten) = touched(handle, &Watermarks::none()).await;
        let left: Vec<i64> = [7].into_iter().chain(12..=41).collect();
        assert_eq!((appended, rewritten), (left, vec![]));
        for bounds in [ReadBounds::Snapshot(at(handle, 43)), ReadBounds::Appended(range(handle, 40, 43))] {
            let scan = handle.scan(&bounds).await;
            assert!(matches!(scan, Err(TableError::Stale { asked: 43, oldest: 1, .. })), "{scan:?}");
        }
        let changes = handle.changes(&range(handle, 40, 43), &|_| false).await;
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
        assert_eq!(handle.watermarks().await.unwrap(), at(handle, 104));
        assert_eq!(read_latest(handle).await, owned(&all));
        assert_eq!(read(handle, ReadBounds::Snapshot(at(handle, 101))).await.len(), 99);
        assert_eq!(handle.changes(&range(handle, 100, 104), &|_| false).await.unwrap().appended_rows, 4);
        let changes = handle.changes(&range(handle, 99, 104), &|_| false).await;
        assert!(matches!(changes, Err(TableError::Stale { asked: 99, oldest: 101, .. })), "{changes:?}");
        let scan = handle.scan(&ReadBounds::Snapshot(at(handle, 100))).await;
        assert!(matches!(scan, Err(TableError::Stale { asked: 100, oldest: 101, .. })), "{scan:?}");
        assert_eq!(handle.progress("f").await.unwrap().unwrap().at, at(handle, 2));
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
    assert_eq!(touched(&table.delta, &at(&table.delta, 3)).await, (vec![], vec![1, 2, 3]));
    std::fs::remove_file(table.folder.path().join(&first[0])).unwrap();
    for bounds in [
        ReadBounds::Snapshot(at(&table.delta, 2)),
        ReadBounds::Snapshot(at(&table.delta, 3)),
        ReadBounds::Appended(range(&table.delta, 1, 2)),
    ] {
        let scan = table.delta.scan(&bounds).await;
        assert!(matches!(scan, Err(TableError::Stale { .. })), "{bounds:?}: {scan:?}");
    }
    let changes = table.delta.changes(&range(&table.delta, 3, 4), &|_| false).await;
    assert!(matches!(changes, Err(TableError::Stale { asked: 3, .. })), "{changes:?}");
    assert_eq!(read(&table.delta, ReadBounds::Appended(range(&table.delta, 2, 3))).await, owned(&[(2, "b")]));
    assert_eq!(read_latest(&table.delta).await, owned(&[(3, "c")]));
}

/// A handle on a table whose place another one took, and that table.
async fn check_replaced(old: &DeltaTable, before: &Watermarks, new: &DeltaTable) {
    let now = old.watermarks().await.unwrap();
    assert!(!now.covers(before), "{now} is none of {before}");
    assert_eq!(read_latest(old).await, read_latest(new).await);
    for bounds in [
        ReadBounds::Snapshot(before.clone()),
        ReadBounds::Appended(SequenceRange { after: before.clone(), upto: now.clone() }),
    ] {
        let scan = old.scan(&bounds).await;
        assert!(matches!(scan, Err(TableError::Stale { .. })), "{scan:?}");
    }
    let range = SequenceRange { after: before.clone(), upto: now.clone() };
    assert!(matches!(old.changes(&range, &|_| false).await, Err(TableError::Stale { .. })));
    let commit = Commit { expected: Some(before.clone()), ..commit_of(Write::Append, rows(&[(1, "no")])) };
    let commit = old.commit(commit).await;
    assert!(matches!(commit, Err(TableError::Conflict { .. })), "{commit:?}");
    let done = old.commit(commit_of(Write::Append, rows(&[(50, "goes on")]))).await.unwrap();
    assert!(done.at.covers(&now));
    assert_eq!(read_latest(old).await, read_latest(new).await);
}

#[tokio::test]
async fn a_table_that_was_made_anew_is_another_one() {
    // With fewer versions than the one before, with as many, and with more.
    for commits in [1, 3, 6] {
        let table = counted(3).await;
        let before = table.delta.watermarks().await.unwrap();
        let folder = table.folder.path();
        std::fs::remove_dir_all(folder.join("_delta_log")).unwrap();
        let new = DeltaTable::create(folder, table.delta.spec().clone()).await.unwrap();
        for instant in 0..commits {
            new.commit(commit_of(Write::Append, rows(&[(instant, "z")]))).await.unwrap();
        }
        check_replaced(&table.delta, &before, &new).await;
        // Also for who opens it only now.
        let now = table.open_again().await.watermarks().await.unwrap();
        assert!(!now.covers(&before), "{now} is none of {before}");
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            std::fs::copy(&path, &to).unwrap();
        }
    }
}

#[tokio::test]
async fn a_table_that_was_put_back_from_a_backup_is_another_one() {
    // And has had fewer commits since then than the one that it replaces, as many, and more.
    for commits in [0, 2, 4] {
        let table = counted(3).await;
        let folder = table.folder.path();
        let backup = tempfile::tempdir().unwrap();
        copy(folder, backup.path());
        table.append(&[(20, "lost")]).await;
        let before = table.append(&[(21, "lost")]).await.at;
        std::fs::remove_dir_all(folder).unwrap();
        copy(backup.path(), folder);
        let new = table.open_again().await;
        for instant in 0..commits {
            new.commit(commit_of(Write::Append, rows(&[(30 + instant, "z")]))).await.unwrap();
        }
        check_replaced(&table.delta, &before, &new).await;
    }
}

#[tokio::test]
async fn a_table_that_was_copied_is_the_same() {
    let table = counted(3).await;
    let before = table.delta.watermarks().await.unwrap();
    let folder = table.folder.path();
    let backup = tempfile::tempdir().unwrap();
    copy(folder, backup.path());
    std::fs::remove_dir_all(folder).unwrap();
    copy(backup.path(), folder);
    table.open_again().await.commit(commit_of(Write::Append, rows(&[(9, "z")]))).await.unwrap();
    assert!(table.delta.watermarks().await.unwrap().covers(&before));
    assert_eq!(touched(&table.delta, &before).await, (vec![9], vec![]));
}

#[tokio::test]
async fn an_older_version_that_cannot_be_read_is_not_taken_for_one_that_is_gone() {
    let table = counted(30).await;
    let whole = std::fs::read(log_file(table.folder.path(), 5)).unwrap();
    std::fs::write(log_file(table.folder.path(), 5), &whole[..whole.len() / 2]).unwrap();
    assert_eq!(read(&table.delta, ReadBounds::Snapshot(at(&table.delta, 5))).await.len(), 4);
    let scan = table.delta.scan(&ReadBounds::Snapshot(at(&table.delta, 7))).await;
    assert!(matches!(scan, Err(TableError::Storage { .. })), "{scan:?}");
    let opened = DeltaTable::open(table.folder.path(), table.delta.spec().clone()).await;
    assert!(opened.is_err());
}

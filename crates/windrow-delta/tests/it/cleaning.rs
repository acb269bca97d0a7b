//! Files that nobody needs any more.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use windrow_delta::DeltaTable;
use windrow_state::{SequenceRange, Watermarks};
use windrow_table::{ReadBounds, SinkTable, SourceTable, TableError, Write};
use windrow_time::InstantRange;

use crate::fixture::{Table, at, commit_of, data_files, owned, read, read_latest, rows, spec, touched};

/// A table that keeps nothing for long.
async fn forgetful() -> Table {
    let folder: TempDir = tempfile::tempdir().unwrap();
    let delta =
        DeltaTable::create_with_retention(folder.path(), spec(), Duration::from_millis(1)).await.unwrap();
    Table { delta, folder }
}

/// Writes the instant `0` anew, as often.
async fn rewrite(table: &DeltaTable, times: u64) {
    for _ in 0..times {
        let replace = Write::Replace { ranges: vec![InstantRange::new(0, 1)] };
        table.commit(commit_of(replace, rows(&[(0, "again")]))).await.unwrap();
    }
}

fn log_entries(folder: &Path) -> usize {
    let names = fs::read_dir(folder.join("_delta_log")).unwrap();
    names.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|e| e == "json")).count()
}

#[tokio::test]
async fn old_files_go_when_there_is_a_checkpoint() {
    let table = forgetful().await;
    table.append(&[(5, "stays")]).await;
    rewrite(&table.delta, 210).await;
    let folder = table.folder.path();
    assert!(data_files(folder).len() < 30, "{} files", data_files(folder).len());
    assert!(log_entries(folder) < 130, "{} entries", log_entries(folder));
    let expected = owned(&[(0, "again"), (5, "stays")]);
    for handle in [&table.delta, &table.open_again().await] {
        assert_eq!(read_latest(handle).await, expected);
        for sequence in [3, 100] {
            let scan = handle.scan(&ReadBounds::Snapshot(at(handle, sequence))).await;
            assert!(matches!(scan, Err(TableError::Stale { .. })), "{scan:?}");
            let upto = handle.watermarks().await.unwrap();
            let range = SequenceRange { after: at(handle, sequence), upto };
            let changes = handle.changes(&range, &|_| false).await;
            assert!(matches!(changes, Err(TableError::Stale { .. })), "{changes:?}");
        }
    }
    // Others find all that the log names.
    for add in crate::foreign::adds(&table.folder).await {
        assert!(folder.join(&add.path).exists(), "{}", add.path);
    }
}

#[tokio::test]
async fn what_a_reader_has_not_got_to_yet_stays() {
    let table = forgetful().await;
    table.append(&[(0, "first"), (5, "stays")]).await;
    let slow = table.delta.watermarks().await.unwrap();
    table.delta.hold("slow", Some(&slow));
    table.delta.hold("elsewhere", Some(&Watermarks::of(77, 1)));
    rewrite(&table.delta, 120).await;
    let before = data_files(table.folder.path()).len();
    assert!(before > 100, "{before} files");
    assert_eq!(
        read(&table.delta, ReadBounds::Snapshot(slow.clone())).await,
        owned(&[(0, "first"), (5, "stays")])
    );
    let (appended, rewritten) = touched(&table.delta, &slow).await;
    assert!(appended.is_empty() && rewritten.iter().all(|instant| *instant == 0), "{rewritten:?}");
    // It goes on, and what it has read is no longer held. The log has forgotten by now when that was removed: it goes as
    // files do that no version has.
    let middle = at(&table.delta, 100);
    table.delta.hold("slow", Some(&middle));
    for name in data_files(table.folder.path()) {
        let file = File::options().write(true).open(table.folder.path().join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(2 * 86_400)).unwrap();
    }
    assert!(table.delta.clean_up().await.unwrap() > 90);
    touched(&table.delta, &middle).await;
    assert_eq!(read(&table.delta, ReadBounds::Snapshot(middle)).await, owned(&[(0, "again"), (5, "stays")]));
    table.delta.hold("slow", None);
    assert!(table.delta.clean_up().await.unwrap() > 10);
    assert_eq!(data_files(table.folder.path()).len(), 2);
    assert_eq!(read_latest(&table.delta).await, owned(&[(0, "again"), (5, "stays")]));
    // A reader that wants everything gets everything from then on.
    table.delta.hold("new", Some(&Watermarks::none()));
    rewrite(&table.delta, 3).await;
    assert_eq!(table.delta.clean_up().await.unwrap(), 0);
}

#[tokio::test]
async fn only_old_files_of_tables_are_taken_for_abandoned() {
    let table = Table::new().await;
    table.append(&[(1, "a")]).await;
    rewrite(&table.delta, 3).await;
    let folder = table.folder.path();
    let put = |name: &str, days: u64| {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = File::create(&path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(days * 86_400)).unwrap();
        path
    };
    let old = put("part-old.parquet", 3);
    let others = [
        put("part-young.parquet", 0),
        put("notes.txt", 900),
        put("_windrow/progress/f/5.json", 900),
        put("_other/x.parquet", 900),
    ];
    let progress = windrow_state::Progress::start();
    let commit = windrow_table::Commit {
        progress: Some(("f".into(), progress)),
        ..commit_of(Write::Append, rows(&[]))
    };
    table.delta.commit(commit).await.unwrap();
    let before = data_files(folder).len();
    assert_eq!(table.delta.clean_up().await.unwrap(), 1);
    assert!(!old.exists());
    assert_eq!(data_files(folder).len(), before - 1, "what was removed today stays");
    for file in others {
        assert!(file.exists(), "{}", file.display());
    }
    assert!(table.delta.progress("f").await.unwrap().is_some());
    assert_eq!(read(&table.delta, ReadBounds::Snapshot(at(&table.delta, 2))).await, owned(&[(1, "a")]));
}

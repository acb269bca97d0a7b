//! How long older versions of tables are kept, and what flows still need of them.
#![cfg(feature = "delta")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{assert_exact, fails, number, run, table};
use windrow::{Answer, Engine};

fn folder(dir: &Path, table: &str) -> PathBuf {
    let mut tables =
        fs::read_dir(dir.join("tables")).expect("the tables").map(|e| e.expect("an entry").path());
    let is = |path: &PathBuf| {
        path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(&format!("{table}-")))
    };
    tables.find(is).expect("the table")
}

fn data_files(folder: &Path) -> usize {
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "parquet")).count()
}

fn message(answers: &[Answer]) -> &str {
    match answers {
        [Answer::Done { message }] => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_retention_is_said_at_creation_and_in_the_table() {
    let dir = tempfile::tempdir().expect("a directory");
    let engine = Engine::open(dir.path()).await.expect("an engine");
    run(&engine, "CREATE TABLE src (ts TIMESTAMP(3) TIME INDEX, v BIGINT) WITH ('retention' = '2 hours')")
        .await;
    assert!(table(&engine, "SELECT 1").await.contains('1'));
    let shown = format!("{:?}", run(&engine, "SHOW CREATE TABLE src").await);
    assert!(shown.contains("'retention' = '2 hours'"), "{shown}");
    run(
        &engine,
        "CREATE FLOW f SINK TO sink WITH ('sink_retention' = '1 day') AS
           SELECT date_trunc('day', ts) AS day, sum(v) AS v FROM src GROUP BY 1;
         CREATE FLOW g SINK TO other AS SELECT date_trunc('day', ts) AS day, sum(v) AS v FROM src GROUP BY 1",
    )
    .await;
    for (name, millis) in [("src", 7_200_000), ("sink", 86_400_000), ("other", 86_400_000)] {
        let log = fs::read_to_string(folder(dir.path(), name).join(format!("_delta_log/{:020}.json", 0)));
        let property = format!("\"delta.deletedFileRetentionDuration\":\"interval {millis} milliseconds\"");
        assert!(log.expect("the log").contains(&property), "{name}");
    }
    for (sql, word) in [
        ("CREATE TABLE t (v BIGINT) WITH ('retention' = 'soon')", "retention = soon"),
        ("CREATE TABLE t (v BIGINT) WITH ('retention' = '-1 day')", "retention = -1 day"),
        ("CREATE TABLE t (v BIGINT) WITH ('retention' = '1 month')", "retention = 1 month"),
        (
            "CREATE FLOW h SINK TO t WITH ('sink_retention' = 'x') AS SELECT ts, v FROM src",
            "sink_retention = x",
        ),
        ("ADMIN VACUUM_TABLE('nothing')", "nothing"),
    ] {
        let error = fails(&engine, sql).await;
        assert!(error.contains(word), "{sql}: {error}");
    }
    // Nothing is old enough.
    run(&engine, "INSERT INTO src VALUES (0, 1); DELETE FROM src").await;
    assert_eq!(
        message(&run(&engine, "ADMIN VACUUM_TABLE('src')").await),
        "deleted 0 files of older versions of table src"
    );
}

#[tokio::test]
async fn what_a_flow_has_not_read_yet_is_not_deleted() {
    let dir = tempfile::tempdir().expect("a directory");
    let engine = Engine::open(dir.path()).await.expect("an engine");
    run(
        &engine,
        "CREATE TABLE src (ts TIMESTAMP(3) TIME INDEX, v BIGINT) WITH ('append_mode' = 'true', 'retention' = '1 ms');
         CREATE FLOW f SINK TO sink WITH ('sink_retention' = '1 ms') AS
           SELECT date_bin(INTERVAL '1 second', ts) AS second, sum(v) AS v, avg(v) AS mean FROM src GROUP BY 1;
         INSERT INTO src VALUES (0, 1), (1000, 2), (2000, 3)",
    )
    .await;
    engine.refresh_until_idle().await.expect("refreshes");
    let source = folder(dir.path(), "src");
    // Many commits that the flow does not see, and each takes the file of the one before away; also a checkpoint of the log.
    for v in 0..110 {
        run(
            &engine,
            &format!("DELETE FROM src WHERE v = {}; INSERT INTO src VALUES (0, {})", 100 + v, 101 + v),
        )
        .await;
    }
    run(&engine, "ADMIN VACUUM_TABLE('src')").await;
    let held = data_files(&source);
    assert!(held > 100, "{held} files");
    let reports = engine.refresh_until_idle().await.expect("refreshes");
    let windows: u64 = reports.iter().map(|report| report.windows).max().expect("a refresh");
    assert_eq!(windows, 1, "it did not have to start over: {reports:?}");
    assert_exact(&engine, "f", "after many commits").await;
    // Now it has read them. (What the log has forgotten by now goes a day later.)
    let deleted = message(&run(&engine, "ADMIN VACUUM_TABLE('src')").await).to_owned();
    assert!(!deleted.starts_with("deleted 0 "), "{deleted}");
    assert!(data_files(&source) < held);
    run(&engine, "DELETE FROM src WHERE v = 2; INSERT INTO src VALUES (2500, 9)").await;
    engine.refresh_until_idle().await.expect("refreshes");
    assert_exact(&engine, "f", "at the end").await;
    run(&engine, "DROP FLOW f; DELETE FROM src; ADMIN VACUUM_TABLE('src')").await;
    assert_eq!(number(&engine, "SELECT count(*) FROM src").await, 0);
}

//! Two engines that by mistake keep the same tables: a copy of a data directory whose tables are elsewhere.
#![cfg(feature = "delta")]

mod common;

use std::fs;
use std::path::Path;

use common::{assert_exact, number, run};
use windrow::{Answer, Engine, EngineError};

const PIPELINE: &str = "
    CREATE TABLE src (ts TIMESTAMP(3) TIME INDEX, host STRING, v BIGINT) WITH ('append_mode' = 'true');
    CREATE FLOW hourly SINK TO hourly AS SELECT date_bin(INTERVAL '1 hour', ts) AS hour, host, count(*) AS n,
      avg(v) AS mean FROM src GROUP BY 1, 2;
    CREATE FLOW daily SINK TO daily AS SELECT date_trunc('day', hour) AS day, sum(n) AS n FROM hourly GROUP BY 1;
    CREATE FLOW chosen SINK TO chosen AS SELECT ts, v FROM src WHERE v % 2 = 0";

async fn open(dir: &Path, tables: Option<&Path>) -> Result<Engine, EngineError> {
    let builder = Engine::builder();
    match tables {
        Some(tables) => builder.tables_at(tables.to_string_lossy()).open(dir).await,
        None => builder.open(dir).await,
    }
}

/// Inserts and refreshes; what loses a race against the other engine is told, and done again.
async fn work(engine: Engine, which: i64) -> i64 {
    let mut rows = 0;
    for step in 0..25 {
        let ts = (step * 7 + which * 3) % 40 * 1_200_000;
        let sql = format!(
            "INSERT INTO src VALUES ({ts}, 'h{}', {}), ({ts}, NULL, {which})",
            step % 3,
            step * 2 + which
        );
        rows += changed(&engine, &sql).await;
        if step % 5 == 4 {
            rows -= changed(&engine, &format!("DELETE FROM src WHERE v = {}", step * 2 + which - 8)).await;
        }
        if step % 7 == 6 {
            run(&engine, "ADMIN COMPACT_TABLE('hourly')").await;
        }
        if let Err(error) = engine.refresh_until_idle().await {
            let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            let text = format!("{error}: {source}");
            assert!(text.contains("not at (") || text.contains("can no longer be read"), "{text}");
        }
    }
    rows
}

/// How many rows a statement inserts or deletes.
async fn changed(engine: &Engine, sql: &str) -> i64 {
    match run(engine, sql).await.pop() {
        Some(Answer::Changed { rows, .. }) => i64::try_from(rows).expect("a few rows"),
        other => panic!("{sql}: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_engines_on_the_same_tables_stay_exact() {
    let dir = tempfile::tempdir().expect("a directory");
    let (one, two, tables) = (dir.path().join("one"), dir.path().join("two"), dir.path().join("tables"));
    fs::create_dir(&tables).expect("a directory");
    let first = open(&one, Some(&tables)).await.expect("an engine");
    run(&first, PIPELINE).await;
    assert_eq!(fs::read_dir(one.join("tables")).expect("a folder").count(), 0, "tables are elsewhere");
    assert_eq!(fs::read_dir(&tables).expect("a folder").count(), 4);
    // The directory itself is held.
    let held = open(&one, None).await.expect_err("it is in use");
    assert!(format!("{held} {:?}", std::error::Error::source(&held)).contains("another process"), "{held}");
    fs::create_dir(&two).expect("a directory");
    fs::copy(one.join("catalog.json"), two.join("catalog.json")).expect("the catalog");
    let second = open(&two, None).await.expect("an engine");
    let workers = [tokio::spawn(work(first.clone(), 0)), tokio::spawn(work(second.clone(), 1))];
    let mut written = 0;
    for worker in workers {
        written += worker.await.expect("no panic");
    }
    for engine in [&first, &second, &first] {
        engine.refresh_until_idle().await.expect("refreshes");
        for flow in ["hourly", "daily", "chosen"] {
            assert_exact(engine, flow, "at the end").await;
        }
    }
    let rows = number(&first, "SELECT count(*) FROM src").await;
    assert_eq!(number(&second, "SELECT sum(n) FROM daily").await, rows);
    assert_eq!(rows, written, "what either engine said");
    drop(first);
    let again = open(&one, None).await.expect("the directory remembers where its tables are");
    assert_exact(&again, "daily", "after a restart").await;
    run(&again, "DROP FLOW chosen; DROP TABLE chosen").await;
    assert_eq!(fs::read_dir(&tables).expect("a folder").count(), 3, "a dropped table is gone");
}

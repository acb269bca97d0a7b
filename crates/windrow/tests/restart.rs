//! A data directory that is opened again.
#![cfg(feature = "delta")]

mod common;

use std::path::Path;

use common::{assert_exact, number, run};
use windrow::Engine;
use windrow::runner::MoveKind;

async fn open(dir: &Path) -> Engine {
    Engine::open(dir).await.unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test]
async fn what_was_done_is_not_done_again_and_new_rows_are_merged() {
    let dir = tempfile::tempdir().expect("a directory");
    let engine = open(dir.path()).await;
    run(
        &engine,
        "CREATE TABLE \"Cpu.Load\" (ts TIMESTAMP(3) TIME INDEX, host STRING DEFAULT 'h', usage DOUBLE)
           WITH ('append_mode' = 'true');
         CREATE FLOW hourly SINK TO hourly AS
           SELECT date_bin(INTERVAL '1 hour', ts) AS hour, host, count(*) AS n, max(usage) AS highest
           FROM \"Cpu.Load\" GROUP BY hour, host;
         CREATE FLOW daily SINK TO daily AS
           SELECT date_trunc('day', ts) AS day, avg(usage) AS mean FROM \"Cpu.Load\" GROUP BY day;
         INSERT INTO \"Cpu.Load\" SELECT to_timestamp_seconds(1704067200 + value * 60), 'h', value / 7.0
           FROM generate_series(0, 4999)",
    )
    .await;
    engine.refresh_until_idle().await.expect("a refresh");
    let before = number(&engine, "SELECT sum(n) FROM hourly").await;
    assert_eq!(before, 5_000);
    drop(engine);

    let engine = open(dir.path()).await;
    let reports = engine.refresh_until_idle().await.expect("a refresh");
    assert!(reports.is_empty(), "nothing is done again: {reports:?}");
    run(&engine, "INSERT INTO \"Cpu.Load\" (ts, usage) VALUES ('2024-01-02 00:30:30', 1000.0)").await;
    let reports = engine.refresh_until_idle().await.expect("a refresh");
    let of = |flow: &str| reports.iter().find(|report| report.flow == flow).expect("a report");
    assert_eq!((of("hourly").kind, of("hourly").windows), (MoveKind::Merge, 1));
    assert_eq!((of("daily").kind, of("daily").windows), (MoveKind::Merge, 1), "by its stored state");
    assert!(of("hourly").rows_read < 100, "{:?}", of("hourly"));
    assert_eq!(number(&engine, "SELECT highest FROM hourly WHERE hour = '2024-01-02 00:00:00'").await, 1000);
    for flow in ["hourly", "daily"] {
        assert_exact(&engine, flow, "after the restart").await;
    }
}

#[tokio::test]
async fn states_of_another_version_are_computed_anew() {
    let dir = tempfile::tempdir().expect("a directory");
    let engine = open(dir.path()).await;
    run(
        &engine,
        "CREATE TABLE t (ts TIMESTAMP TIME INDEX, v BIGINT) WITH ('append_mode' = 'true');
         CREATE FLOW f SINK TO s WITH ('refresh' = 'merge') AS
           SELECT date_trunc('day', ts) AS day, avg(v) AS mean FROM t GROUP BY day;
         CREATE FLOW plain SINK TO p AS SELECT date_trunc('day', ts) AS day, sum(v) AS v FROM t GROUP BY day;
         INSERT INTO t VALUES ('2024-01-01', 1), ('2024-01-02', 2)",
    )
    .await;
    engine.refresh_until_idle().await.expect("a refresh");
    drop(engine);

    // As a version of DataFusion whose average has another state would find it.
    let catalog = dir.path().join("catalog.json");
    let text = std::fs::read_to_string(&catalog).expect("the catalog");
    let earlier = text.replace("(UInt64, Float64)", "(Float64, UInt64)");
    assert_ne!(earlier, text, "the catalog says what the states are of: {text}");
    std::fs::write(&catalog, earlier).expect("the catalog");
    let engine = open(dir.path()).await;
    run(&engine, "INSERT INTO t VALUES ('2024-01-02', 5)").await;
    let reports = engine.refresh_until_idle().await.expect("a refresh");
    let moves: Vec<_> = reports.iter().map(|r| (r.flow.as_str(), r.kind, r.windows)).collect();
    assert_eq!(moves, [("f", MoveKind::Repair, 2), ("plain", MoveKind::Merge, 1)]);
    assert_exact(&engine, "f", "after another version").await;
    drop(engine);

    let engine = open(dir.path()).await;
    run(&engine, "INSERT INTO t VALUES ('2024-01-02', 6)").await;
    let reports = engine.refresh_until_idle().await.expect("a refresh");
    assert!(reports.iter().all(|report| report.kind == MoveKind::Merge), "once only: {reports:?}");
    assert_exact(&engine, "f", "after that").await;
}

#[tokio::test]
async fn rows_that_arrived_before_the_end_but_were_not_refreshed_are_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let engine = open(dir.path()).await;
    run(
        &engine,
        "CREATE TABLE t (ts TIMESTAMP TIME INDEX, v BIGINT) WITH ('append_mode' = 'true');
         CREATE FLOW f SINK TO s AS SELECT date_trunc('month', ts) AS month, sum(v) AS v FROM t GROUP BY month;
         INSERT INTO t VALUES ('1900-02-28 23:59:59.999999', 1), ('1969-12-31', 2)",
    )
    .await;
    engine.refresh_until_idle().await.expect("a refresh");
    run(&engine, "INSERT INTO t VALUES ('1900-02-01', 10), ('2200-01-01', 20); DELETE FROM t WHERE v = 2")
        .await;
    drop(engine);

    let engine = open(dir.path()).await;
    let reports = engine.refresh_until_idle().await.expect("a refresh");
    assert_eq!(reports.iter().map(|report| report.windows).sum::<u64>(), 3, "{reports:?}");
    assert_exact(&engine, "f", "after the restart").await;
    assert_eq!(number(&engine, "SELECT sum(v) FROM s").await, 31);
}

#[tokio::test]
async fn declarations_come_back_as_they_were() {
    let dir = tempfile::tempdir().expect("a directory");
    let parquet = common::data("weather.parquet");
    let script = format!(
        "CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION '{}';
         CREATE TABLE t (ts TIMESTAMP(0), k INT, v DECIMAL(12, 3) NOT NULL DEFAULT 1.5, TIME INDEX (ts), PRIMARY KEY (k));
         CREATE FLOW f SINK TO s EXPIRE AFTER '30 days' COMMENT 'c' WITH ('refresh' = 'recompute') AS
           SELECT date_bin(INTERVAL '1 day', ts) AS d, sum(v) AS v FROM t GROUP BY d;
         CREATE TABLE dropped (ts TIMESTAMP TIME INDEX);
         DROP TABLE dropped",
        parquet.display()
    );
    let shown = async |engine: &Engine| {
        let mut all = String::new();
        for statement in [
            "SHOW CREATE TABLE e",
            "SHOW CREATE TABLE t",
            "SHOW CREATE TABLE s",
            "SHOW CREATE FLOW f",
            "SHOW TABLES",
        ] {
            all.push_str(&common::table(engine, statement).await);
        }
        all + &common::table(engine, "SELECT * FROM information_schema.flows").await
    };
    let engine = open(dir.path()).await;
    run(&engine, &script).await;
    let before = shown(&engine).await;
    drop(engine);
    let engine = open(dir.path()).await;
    assert_eq!(shown(&engine).await, before);
    assert_eq!(number(&engine, "SELECT count(*) FROM e").await, 26_115);
}

#[tokio::test]
async fn a_directory_that_cannot_be_used_is_refused_with_its_name() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("file");
    std::fs::write(&file, "not a directory").expect("a file");
    let error = Engine::open(file.join("data")).await.expect_err("a file is no directory").to_string();
    assert!(error.contains("file"), "{error}");

    let held = open(&dir.path().join("held")).await;
    let error = Engine::open(dir.path().join("held")).await.expect_err("it is held").to_string();
    assert!(error.contains("another process is using it"), "{error}");
    drop(held);
    open(&dir.path().join("held")).await;
}

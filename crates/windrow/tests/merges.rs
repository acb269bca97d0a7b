//! What merges, merges exactly: through aggregate states, output expressions, and hidden columns.

mod common;

use common::{Fixture, KINDS, assert_exact, engine, fails, number, rows, run, table};
use windrow::Engine;

async fn source(engine: &Engine) {
    run(
        engine,
        "CREATE TABLE src (ts TIMESTAMP(3) TIME INDEX, host STRING, v BIGINT, x DOUBLE, d DECIMAL(10, 2), b BOOLEAN)
           WITH ('append_mode' = 'true')",
    )
    .await;
}

/// The move that the last refresh of each flow has made.
async fn last_moves(engine: &Engine) -> Vec<String> {
    let reports = engine.refresh_until_idle().await.expect("a refresh");
    reports.iter().map(|report| report.kind.to_string()).collect()
}

#[tokio::test]
async fn states_make_averages_and_expressions_merge() {
    for &kind in KINDS {
        let Fixture { engine, dir } = engine(kind).await;
        source(&engine).await;
        run(
            &engine,
            "CREATE FLOW f SINK TO t WITH (refresh = merge) AS
               SELECT date_bin(INTERVAL '1 hour', ts) AS w, host, avg(x) AS mean, count(DISTINCT v) AS kinds,
                 round(sum(x) / count(*), 2) AS ratio, count(*) AS n, count(*) + 1 AS n1, stddev(x) AS spread,
                 CASE WHEN max(v) > 5 THEN 'high' ELSE 'low' END AS level, sum(x) FILTER (WHERE b) AS sum_b,
                 median(v) AS med, approx_distinct(v) AS about, array_agg(v ORDER BY v, x) AS vs, avg(d) AS mean_d
               FROM src GROUP BY 1, host",
        )
        .await;
        run(
            &engine,
            "INSERT INTO src VALUES ('2024-01-01T00:10:00', 'a', 1, 1.5, 1.25, true),
               ('2024-01-01T00:20:00', 'a', 2, 2.5, 2.25, false), ('2024-01-01T01:10:00', NULL, NULL, NULL, NULL, NULL)",
        )
        .await;
        assert_eq!(last_moves(&engine).await, ["repair"], "{kind:?}");
        assert_exact(&engine, "f", "after the first rows").await;
        run(
            &engine,
            "INSERT INTO src VALUES ('2024-01-01T00:30:00', 'a', 2, 7.0, 9.99, true),
               ('2024-01-01T00:30:00', 'b', 9, -7.0, NULL, true), ('2024-01-01T01:50:00', NULL, 3, NULL, 0.01, NULL)",
        )
        .await;
        assert_eq!(last_moves(&engine).await, ["merge"], "{kind:?}");
        assert_exact(&engine, "f", "after a merge").await;
        run(&engine, "DELETE FROM src WHERE v = 1").await;
        let moves = last_moves(&engine).await;
        assert_eq!(moves.last().map(String::as_str), Some("repair"), "{kind:?}");
        assert_exact(&engine, "f", "after a delete").await;
        run(&engine, "INSERT INTO src VALUES ('2024-01-01T00:31:00', 'a', 4, 8.0, 1, false)").await;
        assert_eq!(last_moves(&engine).await, ["merge"], "{kind:?}");
        assert_exact(&engine, "f", "after a merge into repaired windows").await;

        // No query sees the states.
        let columns = rows(&engine, "SELECT * FROM t").await[0].num_columns();
        assert_eq!(columns, 15, "14 outputs and update_at");
        assert!(fails(&engine, "SELECT __state_0 FROM t").await.contains("__state_0"));
        assert!(fails(&engine, "INSERT INTO t (__state_0) VALUES (NULL)").await.contains("no column"));
        let shown = table(&engine, "SHOW CREATE TABLE t").await;
        assert!(!shown.contains("__state"), "{shown}");
        assert!(fails(&engine, "CREATE TABLE u (__state_0 INT)").await.contains("states of aggregates"));
        assert_eq!(number(&engine, "SELECT count(*) FROM t").await, 3);
        drop(dir);
    }
}

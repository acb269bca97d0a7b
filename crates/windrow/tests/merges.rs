//! What merges, merges exactly: through aggregate states, output expressions, and hidden columns.

mod common;

use common::{Fixture, KINDS, assert_exact, engine, engine as engine_of, fails, number, rows, run, table};
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

#[tokio::test]
async fn a_query_without_groups_appends_and_follows_what_is_deleted() {
    for &kind in KINDS {
        let Fixture { engine, dir } = engine(kind).await;
        source(&engine).await;
        run(
            &engine,
            "CREATE FLOW f SINK TO t AS SELECT ts, upper(host) AS host, v * 2 AS twice FROM src WHERE v > 0;
             CREATE FLOW g SINK TO u AS SELECT host, v FROM src WHERE v > 0;
             INSERT INTO src (ts, host, v) VALUES (0, 'a', 1), (0, 'a', 1), (1, NULL, 2), (2, 'b', -1)",
        )
        .await;
        engine.refresh_until_idle().await.expect("refreshes");
        for flow in ["f", "g"] {
            assert_exact(&engine, flow, "at first").await;
        }
        let moves = async |sql: &str| -> Vec<(String, String)> {
            run(&engine, sql).await;
            let reports = engine.refresh_until_idle().await.expect("refreshes");
            for flow in ["f", "g"] {
                assert_exact(&engine, flow, sql).await;
            }
            reports.iter().map(|report| (report.flow.clone(), report.kind.to_string())).collect()
        };
        let pairs = |of_f: &str, of_g: &str| {
            let pair = |flow: &str, kind: &str| (flow.to_owned(), kind.to_owned());
            vec![pair("f", of_f), pair("g", of_g)]
        };
        let appended = "INSERT INTO src (ts, host, v) VALUES (0, 'a', 1), (3, 'c', 3)";
        assert_eq!(moves(appended).await, pairs("merge", "merge"), "{kind:?}");
        let deleted = "DELETE FROM src WHERE host = 'a'";
        assert_eq!(moves(deleted).await, pairs("repair", "full"), "{kind:?}");
        assert_eq!(moves(appended).await, pairs("merge", "merge"), "{kind:?}");
        // What someone else does to a sink is taken back.
        let tampered = "DELETE FROM t; INSERT INTO u (host, v, __ts_placeholder) VALUES ('x', 1, 0)";
        assert_eq!(moves(tampered).await, pairs("repair", "full"), "{kind:?}");
        assert_eq!(moves("ADMIN COMPACT_TABLE('u')").await, vec![], "a compaction changes nothing");
        assert_eq!(moves(appended).await, pairs("merge", "merge"), "{kind:?}");
        let refused = "CREATE TABLE k (ts TIMESTAMP(3) TIME INDEX, host STRING, PRIMARY KEY (host));
                       CREATE FLOW h SINK TO k AS SELECT ts, host FROM src";
        assert!(fails(&engine, refused).await.contains("one row of each key"));
        drop(dir);
    }
}

#[tokio::test]
async fn distinct_rows_are_groups() {
    for &kind in KINDS {
        let Fixture { engine, dir } = engine(kind).await;
        source(&engine).await;
        run(
            &engine,
            "CREATE FLOW f SINK TO t WITH ('refresh' = 'merge') AS SELECT DISTINCT date_trunc('day', ts) AS day, host FROM src;
             INSERT INTO src (ts, host) VALUES (0, 'a'), (1, 'a'), (2, NULL)",
        )
        .await;
        assert_eq!(last_moves(&engine).await, ["repair"]);
        run(&engine, "INSERT INTO src (ts, host) VALUES ('1970-01-01', 'a'), ('1970-01-01', 'b'), ('1970-01-01', NULL), ('1970-01-02', 'a')").await;
        assert_eq!(last_moves(&engine).await, ["merge"]);
        assert_exact(&engine, "f", "after a merge").await;
        assert_eq!(number(&engine, "SELECT count(*) FROM t").await, 4);
        run(&engine, "DELETE FROM src WHERE host = 'b'").await;
        engine.refresh_until_idle().await.expect("a refresh");
        assert_eq!(number(&engine, "SELECT count(*) FROM t").await, 3);
        drop(dir);
    }
}

#[tokio::test]
async fn having_is_exact_in_both_directions_and_a_second_flow_makes_it_incremental() {
    for &kind in KINDS {
        let Fixture { engine, dir } = engine(kind).await;
        source(&engine).await;
        run(
            &engine,
            "CREATE FLOW direct SINK TO d AS
               SELECT date_trunc('day', ts) AS day, host, sum(v) AS v FROM src GROUP BY 1, 2 HAVING sum(v) > 5;
             CREATE FLOW groups SINK TO groups WITH ('refresh' = 'merge') AS
               SELECT date_trunc('day', ts) AS day, host, sum(v) AS v FROM src GROUP BY 1, 2;
             CREATE FLOW large SINK TO large AS SELECT day, host, v FROM groups WHERE v > 5",
        )
        .await;
        // Up over the bound, down again, up again, and away.
        for step in [
            "INSERT INTO src (ts, host, v) VALUES (0, 'a', 4), (0, 'b', 9)",
            "INSERT INTO src (ts, host, v) VALUES (0, 'a', 4)",
            "INSERT INTO src (ts, host, v) VALUES (0, 'a', -7), (1, 'b', NULL)",
            "INSERT INTO src (ts, host, v) VALUES (0, 'a', 70)",
            "DELETE FROM src WHERE v = 70",
        ] {
            run(&engine, step).await;
            engine.refresh_until_idle().await.expect("refreshes");
            for flow in ["direct", "groups", "large"] {
                assert_exact(&engine, flow, step).await;
            }
            let same = "SELECT count(*) FROM d JOIN large ON d.day = large.day AND d.host = large.host AND d.v = large.v";
            let (both, direct) =
                (number(&engine, same).await, number(&engine, "SELECT count(*) FROM d").await);
            assert_eq!(
                (both, direct),
                (direct, number(&engine, "SELECT count(*) FROM large").await),
                "{step}"
            );
        }
        let why = table(&engine, "EXPLAIN FLOW direct").await;
        assert!(why.contains("groups that HAVING leaves out"), "{why}");
        drop(dir);
    }
}

#[tokio::test]
async fn a_state_that_grows_too_long_sends_its_flow_back_to_repairs() {
    for &kind in KINDS {
        let Fixture { engine, dir } = engine(kind).await;
        source(&engine).await;
        run(
            &engine,
            "CREATE FLOW f SINK TO t WITH ('refresh' = 'merge', 'max_state_bytes' = '100') AS
               SELECT date_trunc('day', ts) AS day, count(DISTINCT v) AS n FROM src GROUP BY 1;
             INSERT INTO src (ts, v) VALUES (0, 1)",
        )
        .await;
        let next = async |values: &str| {
            run(&engine, &format!("INSERT INTO src (ts, v) VALUES {values}")).await;
            let moves = last_moves(&engine).await;
            assert_exact(&engine, "f", values).await;
            moves
        };
        engine.refresh_until_idle().await.expect("a refresh");
        assert_eq!(next("(0, 2)").await, ["merge"], "{kind:?}");
        let many: Vec<String> = (0..40).map(|v| format!("(0, {v})")).collect();
        assert_eq!(next(&many.join(", ")).await, ["merge"], "the state that is too long is not stored");
        assert_eq!(next("(0, 50)").await, ["repair"], "so that nothing can be merged into its row");
        assert_eq!(next("(0, 51)").await, ["repair"], "and is not tried again");
        assert_eq!(number(&engine, "SELECT n FROM t").await, 42);
        drop(dir);
    }
}

#[tokio::test]
async fn a_sink_that_was_there_says_what_it_lacks_for_merges() {
    for &kind in KINDS {
        let Fixture { engine, dir } = engine(kind).await;
        source(&engine).await;
        run(
            &engine,
            "CREATE TABLE t (day TIMESTAMP(3) TIME INDEX, mean DOUBLE);
             CREATE FLOW f SINK TO t AS SELECT date_trunc('day', ts) AS day, avg(v) AS mean FROM src GROUP BY 1;
             CREATE TABLE u (day TIMESTAMP(3) TIME INDEX, total INT);
             CREATE FLOW g SINK TO u AS SELECT date_trunc('day', ts) AS day, sum(v) AS total FROM src GROUP BY 1",
        )
        .await;
        let why = table(&engine, "EXPLAIN FLOW f").await;
        assert!(why.contains("no columns for 1 aggregate states"), "{why}");
        let why = table(&engine, "EXPLAIN FLOW g").await;
        assert!(why.contains("does not hold all values"), "{why}");
        let insisted = "DROP FLOW f; CREATE FLOW f SINK TO t WITH ('refresh' = 'merge') AS
                        SELECT date_trunc('day', ts) AS day, avg(v) AS mean FROM src GROUP BY 1";
        assert!(fails(&engine, insisted).await.contains("no columns for 1 aggregate states"));
        run(&engine, "INSERT INTO src (ts, v) VALUES (0, 1), (0, 2)").await;
        engine.refresh_until_idle().await.expect("refreshes");
        run(&engine, "INSERT INTO src (ts, v) VALUES (0, 3)").await;
        engine.refresh_until_idle().await.expect("refreshes");
        assert_exact(&engine, "g", "recomputed").await;
        drop(dir);
    }
}

#[tokio::test]
async fn a_sink_that_keeps_values_takes_queries_that_leave_columns_out() {
    for &kind in KINDS {
        let Fixture { engine, dir } = engine(kind).await;
        source(&engine).await;
        run(
            &engine,
            "CREATE TABLE t (day TIMESTAMP(3) TIME INDEX, host STRING, n BIGINT, note STRING, PRIMARY KEY (host))
               WITH ('merge_mode' = 'last_non_null');
             CREATE FLOW f SINK TO t AS SELECT date_trunc('day', ts) AS day, host, count(*) AS n FROM src GROUP BY 1, 2;
             INSERT INTO src (ts, host) VALUES (0, 'a'), (0, NULL)",
        )
        .await;
        engine.refresh_until_idle().await.expect("a refresh");
        // The last of two rows, and NULL is equal to NULL.
        let noted = "(0, 'a', 'x'), (0, 'a', 'seen'), (0, 'a', NULL), (0, NULL, 'none')";
        run(&engine, &format!("INSERT INTO t (day, host, note) VALUES {noted}")).await;
        assert_eq!(number(&engine, "SELECT sum(n) FROM t").await, 2, "what was not given stays");
        let notes = async |when: &str| {
            engine.refresh_until_idle().await.expect("a refresh");
            assert_exact(&engine, "f", when).await;
            let found = table(&engine, "SELECT host, n, note FROM t ORDER BY host").await;
            assert!(found.contains("seen") && found.contains("none"), "{when}: {found}");
        };
        notes("after a repair").await;
        run(&engine, "INSERT INTO src (ts, host) VALUES (0, 'a'), (0, 'c')").await;
        notes("after a merge").await;
        assert_eq!(number(&engine, "SELECT n FROM t WHERE host = 'a'").await, 2);
        // A group that goes takes its row with it.
        run(&engine, "DELETE FROM src WHERE host = 'a'").await;
        engine.refresh_until_idle().await.expect("a refresh");
        assert_exact(&engine, "f", "after a delete").await;
        assert_eq!(number(&engine, "SELECT count(*) FROM t").await, 2);

        let another = "CREATE TABLE t2 (day TIMESTAMP(3) TIME INDEX, host STRING, n BIGINT, note STRING, PRIMARY KEY (host))
                       WITH ('merge_mode' = 'last_non_null')";
        run(&engine, another).await;
        let without_key = "CREATE FLOW g SINK TO t2 AS SELECT date_trunc('day', ts) AS day, count(*) AS n FROM src GROUP BY 1";
        let error = fails(&engine, without_key).await;
        assert!(error.contains("gives nothing for host") && error.contains("query: day"), "{error}");
        let extra = "CREATE FLOW g SINK TO t2 AS SELECT date_trunc('day', ts) AS day, host, count(*) AS n, sum(x) AS more
                     FROM src GROUP BY 1, 2";
        let error = fails(&engine, extra).await;
        assert!(error.contains("more"), "{error}");
        let mode =
            "CREATE TABLE t3 (day TIMESTAMP(3) TIME INDEX, n BIGINT) WITH ('merge_mode' = 'last_non_null')";
        assert!(fails(&engine, mode).await.contains("needs a PRIMARY KEY"));
        let shown = table(&engine, "SHOW CREATE TABLE t2").await;
        assert!(shown.contains("'merge_mode' = 'last_non_null'"), "{shown}");
        drop(dir);
    }
}

#[tokio::test]
async fn intervals_durations_structs_and_dictionaries_are_values_like_others() {
    // Delta Lake has no such columns, and says so.
    let Fixture { engine, .. } = engine(KINDS[0]).await;
    source(&engine).await;
    let interval = "CASE WHEN v > 1 THEN INTERVAL '3 days' ELSE INTERVAL '1 minute' END";
    run(
        &engine,
        &format!(
            "CREATE FLOW f SINK TO t WITH ('refresh' = 'merge') AS
               SELECT date_trunc('day', ts) AS day, {interval} AS k, named_struct('h', host, 'b', b) AS s,
                 arrow_cast(host, 'Dictionary(Int32, Utf8)') AS h, max({interval}) AS longest, max(ts) - min(ts) AS span,
                 count(DISTINCT {interval}) AS kinds, array_agg(arrow_cast(v, 'Duration(Second)') ORDER BY v) AS all_v,
                 min(arrow_cast(host, 'Utf8View')) AS first, first_value(named_struct('v', v) ORDER BY v) AS least
               FROM src GROUP BY 1, 2, 3, 4"
        ),
    )
    .await;
    for batch in 0..3 {
        run(
            &engine,
            &format!(
                "INSERT INTO src (ts, host, v, b) VALUES ({batch}, 'a', {batch}, true), (5, NULL, 2, NULL), (7, 'b', NULL, false)"
            ),
        )
        .await;
        let expected = if batch == 0 { "repair" } else { "merge" };
        assert_eq!(last_moves(&engine).await, [expected]);
        assert_exact(&engine, "f", &format!("after batch {batch}")).await;
    }
    #[cfg(feature = "delta")]
    {
        let Fixture { engine, dir } = engine_of(common::Kind::Delta).await;
        source(&engine).await;
        let refused =
            format!("CREATE FLOW f SINK TO t AS SELECT ts, max({interval}) AS longest FROM src GROUP BY ts");
        let error = fails(&engine, &refused).await;
        assert!(error.contains("longest"), "{error}");
        drop(dir);
    }
}

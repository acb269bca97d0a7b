//! What statements do, and what they say when they cannot.

mod common;

use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, RecordBatch, StringArray, TimestampSecondArray};
use common::{KINDS, assert_exact, engine, fails, number, run, table};
use expect_test::expect;

const SOURCE: &str = "CREATE TABLE cpu (ts TIMESTAMP(3) TIME INDEX, host STRING, usage DOUBLE);
    CREATE FLOW f SINK TO f_sink AS
      SELECT date_bin(INTERVAL '1 hour', ts) AS hour, host, count(*) AS n FROM cpu GROUP BY hour, host;
    INSERT INTO cpu VALUES ('2024-03-01 10:20:00', 'a', 0.5);";

#[tokio::test]
async fn each_mistake_is_told_with_its_statement_and_leaves_the_earlier_ones_in_force() {
    let cases = [
        (
            "no window",
            "CREATE FLOW g SINK TO s AS SELECT host, count(*) FROM cpu GROUP BY host",
            "EVAL INTERVAL",
        ),
        (
            "a join",
            "CREATE FLOW g SINK TO s AS SELECT a.host FROM cpu a JOIN cpu b ON a.host = b.host",
            "it has a join",
        ),
        (
            "not monotone",
            "CREATE FLOW g SINK TO s AS SELECT date_part('hour', ts) AS h, count(*) FROM cpu GROUP BY h",
            "date_part",
        ),
        ("unknown table", "SELECT * FROM nowhere", "nowhere"),
        ("unknown column", "SELECT nothing FROM cpu", "nothing"),
        (
            "unknown table in a flow",
            "CREATE FLOW g SINK TO s AS SELECT ts, count(*) FROM nowhere GROUP BY ts",
            "nowhere",
        ),
        ("unknown table to insert into", "INSERT INTO nowhere VALUES (1)", "there is no table nowhere"),
        (
            "a sink that does not fit",
            "CREATE FLOW g SINK TO cpu AS SELECT date_bin(INTERVAL '1 hour', ts) AS ts, host, 'x' AS usage, \
             count(*) AS n FROM cpu GROUP BY 1, 2",
            "would read its own sink",
        ),
        (
            "a second flow of the name",
            "CREATE FLOW f SINK TO s AS SELECT ts, count(*) AS n FROM cpu GROUP BY ts",
            "flow f",
        ),
        (
            "a second flow into the sink",
            "CREATE FLOW g SINK TO f_sink AS SELECT ts, count(*) FROM cpu GROUP BY ts",
            "f_sink",
        ),
        ("a syntax error", "SELEC 1", "SELEC"),
        (
            "no such file",
            "CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION 'no/such/file.parquet'",
            "no/such/file",
        ),
        ("NULL as time", "INSERT INTO cpu VALUES (NULL, 'a', 1.0)", "null"),
        ("too few values", "INSERT INTO cpu VALUES ('2024-03-01', 'a')", "2 values are given for 3 columns"),
        ("no time", "INSERT INTO cpu (host) VALUES ('a')", "column ts needs a value"),
        ("a table in use", "DROP TABLE cpu", "used by the flow f"),
        ("an unknown option", "CREATE TABLE t (ts TIMESTAMP TIME INDEX) WITH ('speed' = 'high')", "speed"),
        (
            "an unknown flow option",
            "CREATE FLOW g SINK TO s WITH ('a' = 'b') AS SELECT ts, count(*) FROM cpu GROUP BY ts",
            "option a",
        ),
        (
            "a month to expire after",
            "CREATE FLOW g SINK TO s EXPIRE AFTER '1 month' AS SELECT ts, count(*) FROM cpu GROUP BY ts",
            "month",
        ),
    ];
    for (name, statement, said) in cases {
        let fixture = engine(KINDS[0]).await;
        let script = format!("{SOURCE}\n\n{statement};\nDROP FLOW f;");
        let message = fails(&fixture.engine, &script).await;
        assert!(message.starts_with("line 6: "), "{name}: {message}");
        assert!(message.to_lowercase().contains(&said.to_lowercase()), "{name}: {message}");
        assert_eq!(number(&fixture.engine, "SELECT count(*) FROM cpu").await, 1, "{name}");
        assert!(fixture.engine.flow("f").is_some(), "{name}: what follows is not run");
        assert_eq!(
            number(&fixture.engine, "SELECT count(*) FROM information_schema.flows").await,
            1,
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_sink_that_does_not_fit_is_told_with_both_sides() {
    let fixture = engine(KINDS[0]).await;
    run(&fixture.engine, SOURCE).await;
    let message = fails(
        &fixture.engine,
        "CREATE TABLE s (hour TIMESTAMP(3) TIME INDEX, host BOOLEAN, total BIGINT, more STRING);
         CREATE FLOW g SINK TO s AS SELECT date_bin(INTERVAL '1 hour', ts) AS hour, host, count(*) AS n FROM cpu GROUP BY 1, 2",
    )
    .await;
    expect![[r#"
        line 2: the query does not fit the sink: the query gives nothing for more
          query: hour Timestamp(ms), host Utf8, n Int64
          sink:  hour Timestamp(ms), host Boolean, total Int64, more Utf8
          in: CREATE FLOW g SINK TO s AS SELECT date_bin(INTERVAL '1 hour', ts) AS hour, host, count(*) AS n FROM …"#]]
    .assert_eq(&message);
    assert!(fixture.engine.flow("g").is_none());
}

#[tokio::test]
async fn a_keyed_table_keeps_the_last_row_of_each_key_and_flows_follow() {
    for &kind in KINDS {
        let fixture = engine(kind).await;
        let engine = &fixture.engine;
        run(
            engine,
            "CREATE TABLE meter (ts TIMESTAMP(3), id STRING, kwh DOUBLE, PRIMARY KEY (id), TIME INDEX (ts));
             CREATE FLOW total SINK TO total AS
               SELECT date_trunc('day', ts) AS day, sum(kwh) AS kwh, count(*) AS n FROM meter GROUP BY day;
             INSERT INTO meter VALUES ('2024-01-01 01:00:00', 'a', 1.0), ('2024-01-01 01:00:00', 'b', 2.0),
               ('2024-01-02 01:00:00', 'a', 4.0), ('2024-01-02 01:00:00', 'a', 8.0)",
        )
        .await;
        engine.refresh_until_idle().await.expect("a refresh");
        run(engine, "INSERT INTO meter VALUES ('2024-01-01 01:00:00', 'a', 16.0)").await;
        engine.refresh_until_idle().await.expect("a refresh");
        expect![[r#"
            +---------------------+------+---+
            | day                 | kwh  | n |
            +---------------------+------+---+
            | 2024-01-01T00:00:00 | 18.0 | 2 |
            | 2024-01-02T00:00:00 | 8.0  | 1 |
            +---------------------+------+---+"#]]
        .assert_eq(&table(engine, "SELECT day, kwh, n FROM total ORDER BY day").await);
        assert_exact(engine, "total", "after an update").await;
    }
}

#[tokio::test]
async fn a_group_whose_rows_are_deleted_leaves_the_sink() {
    for &kind in KINDS {
        let fixture = engine(kind).await;
        let engine = &fixture.engine;
        run(engine, SOURCE).await;
        run(engine, "INSERT INTO cpu VALUES ('2024-03-01 10:30:00', 'b', 1.0)").await;
        engine.refresh_until_idle().await.expect("a refresh");
        assert_eq!(number(engine, "SELECT count(*) FROM f_sink").await, 2);
        run(engine, "DELETE FROM cpu WHERE host = 'b'").await;
        engine.refresh_until_idle().await.expect("a refresh");
        assert_eq!(number(engine, "SELECT count(*) FROM f_sink").await, 1);
        assert_exact(engine, "f", "after the delete").await;
    }
}

#[tokio::test]
async fn a_check_finds_what_was_changed_in_the_sink_and_the_next_refresh_repairs_it() {
    let fixture = engine(KINDS[0]).await;
    let engine = &fixture.engine;
    run(engine, SOURCE).await;
    engine.refresh_until_idle().await.expect("a refresh");
    run(
        engine,
        "DELETE FROM f_sink; INSERT INTO f_sink (hour, host, n) VALUES ('2024-03-01 10:00:00', 'a', 7)",
    )
    .await;
    let report = engine.check_flow("f").await.expect("a check");
    assert_eq!((report.missing, report.extra, report.is_equal()), (1, 1, false));
    engine.refresh_until_idle().await.expect("a refresh");
    assert_exact(engine, "f", "after the repair").await;
}

#[tokio::test]
async fn defaults_and_column_lists_fill_in_what_an_insert_leaves_out() {
    let fixture = engine(KINDS[0]).await;
    let engine = &fixture.engine;
    run(
        engine,
        "CREATE TABLE t (ts TIMESTAMP(3) TIME INDEX, a INT DEFAULT 40 + 2, b STRING NOT NULL DEFAULT 'x''y', c DOUBLE);
         INSERT INTO t (c, ts) VALUES (1.5, '2024-01-01');
         INSERT INTO t VALUES ('2024-01-02', DEFAULT, DEFAULT, DEFAULT), ('2024-01-03', 1, 'z', NULL)",
    )
    .await;
    expect![[r#"
        +---------------------+----+-----+-----+
        | ts                  | a  | b   | c   |
        +---------------------+----+-----+-----+
        | 2024-01-01T00:00:00 | 42 | x'y | 1.5 |
        | 2024-01-02T00:00:00 | 42 | x'y |     |
        | 2024-01-03T00:00:00 | 1  | z   |     |
        +---------------------+----+-----+-----+"#]]
    .assert_eq(&table(engine, "SELECT * FROM t ORDER BY ts").await);
}

#[tokio::test]
async fn what_was_created_can_be_shown() {
    let fixture = engine(KINDS[0]).await;
    let engine = &fixture.engine;
    run(engine, SOURCE).await;
    run(engine, "CREATE TABLE \"Odd.Name\" (\"T\" TIMESTAMP TIME INDEX, k INT, PRIMARY KEY (k)) WITH ('append_mode' = 'true')").await;
    expect![[r#"
        +------------+-------+
        | table_name | kind  |
        +------------+-------+
        | Odd.Name   | table |
        | cpu        | table |
        | f_sink     | sink  |
        +------------+-------+"#]]
    .assert_eq(&table(engine, "SHOW TABLES").await);
    expect![[r#"
        +-----------+---------------+------------+---------+---------------+
        | flow_name | source_tables | sink_table | refresh | mode          |
        +-----------+---------------+------------+---------+---------------+
        | f         | cpu           | f_sink     | merge   | full_snapshot |
        +-----------+---------------+------------+---------+---------------+"#]]
    .assert_eq(&table(engine, "SHOW FLOWS LIKE 'f%'").await);
    expect![[r#"
        +-------------+--------------+----------+------------+---------+
        | column_name | data_type    | nullable | key        | default |
        +-------------+--------------+----------+------------+---------+
        | ts          | TIMESTAMP(3) | NO       | TIME INDEX |         |
        | host        | STRING       | YES      |            |         |
        | usage       | DOUBLE       | YES      |            |         |
        +-------------+--------------+----------+------------+---------+"#]]
    .assert_eq(&table(engine, "DESCRIBE cpu").await);
    let create = |answer: &str| answer.to_owned();
    let shown = common::rows(engine, "SHOW CREATE TABLE \"Odd.Name\"").await;
    let sql = arrow::array::AsArray::as_string::<i32>(shown[0].column(1)).value(0).to_owned();
    run(engine, "DROP TABLE \"Odd.Name\"").await;
    run(engine, &create(&sql)).await;
    assert_eq!(
        table(engine, "SHOW CREATE TABLE \"Odd.Name\"").await,
        arrow::util::pretty::pretty_format_batches(&shown).expect("a table").to_string()
    );
}

#[tokio::test]
async fn a_flow_on_a_flow_follows_and_cannot_form_a_ring() {
    for &kind in KINDS {
        let fixture = engine(kind).await;
        let engine = &fixture.engine;
        run(engine, SOURCE).await;
        run(
            engine,
            "CREATE FLOW g SINK TO g_sink AS
               SELECT date_trunc('day', hour) AS day, sum(n) AS n FROM f_sink GROUP BY day",
        )
        .await;
        run(engine, "INSERT INTO cpu VALUES ('2024-03-01 11:00:00', 'a', 1.0), ('2024-03-02', 'b', 2.0)")
            .await;
        assert_eq!(number(engine, "ADMIN FLUSH_FLOW('g')").await, 2, "flows below are flushed first");
        assert_exact(engine, "g", "after the flush").await;
        assert_eq!(number(engine, "SELECT sum(n) FROM g_sink").await, 3);
        let ring = "CREATE OR REPLACE FLOW f SINK TO f_sink AS SELECT day AS hour, count(*) AS n FROM g_sink GROUP BY day";
        assert!(fails(engine, ring).await.contains("own sink"));
        assert_exact(engine, "f", "after the refused replace").await;
    }
}

#[tokio::test]
async fn a_replaced_flow_starts_over_and_what_the_old_one_wrote_goes() {
    let fixture = engine(KINDS[0]).await;
    let engine = &fixture.engine;
    run(engine, SOURCE).await;
    engine.refresh_until_idle().await.expect("a refresh");
    run(
        engine,
        "CREATE FLOW IF NOT EXISTS f SINK TO f_sink AS SELECT ts, count(*) AS n FROM cpu GROUP BY ts",
    )
    .await;
    run(
        engine,
        "CREATE OR REPLACE FLOW f SINK TO f_sink AS
           SELECT date_bin(INTERVAL '5 minutes', ts) AS hour, host, count(*) AS n FROM cpu GROUP BY hour, host",
    )
    .await;
    engine.refresh_until_idle().await.expect("a refresh");
    expect![[r#"
        +---------------------+------+---+
        | hour                | host | n |
        +---------------------+------+---+
        | 2024-03-01T10:20:00 | a    | 1 |
        +---------------------+------+---+"#]]
    .assert_eq(&table(engine, "SELECT hour, host, n FROM f_sink").await);
}

#[tokio::test]
async fn a_query_without_window_runs_on_its_schedule() {
    for &kind in KINDS {
        let fixture = engine(kind).await;
        let engine = &fixture.engine;
        run(engine, SOURCE).await;
        run(
            engine,
            "CREATE FLOW per_host SINK TO per_host EVAL INTERVAL '1 hour' COMMENT 'it''s whole' AS
               SELECT c.host, count(*) AS n FROM cpu c JOIN cpu d ON c.host = d.host GROUP BY c.host",
        )
        .await;
        engine.refresh_until_idle().await.expect("a refresh");
        assert_eq!(number(engine, "SELECT n FROM per_host").await, 1);
        run(engine, "INSERT INTO cpu VALUES ('2024-03-01 12:00:00', 'a', 1.0)").await;
        engine.refresh_until_idle().await.expect("a refresh");
        assert_eq!(number(engine, "SELECT n FROM per_host").await, 1, "the next time has not come");
        assert_eq!(number(engine, "ADMIN FLUSH_FLOW('per_host')").await, 1);
        assert_eq!(number(engine, "SELECT n FROM per_host").await, 4);
        assert_exact(engine, "per_host", "after the flush").await;
    }
}

#[tokio::test]
async fn expired_windows_keep_their_rows_and_are_not_updated() {
    let fixture = engine(KINDS[0]).await;
    let engine = &fixture.engine;
    run(
        engine,
        "CREATE TABLE cpu (ts TIMESTAMP(3) TIME INDEX, host STRING) WITH ('append_mode' = 'true');
         CREATE FLOW f SINK TO f_sink EXPIRE AFTER '2 days' AS
           SELECT date_bin(INTERVAL '1 hour', ts) AS hour, count(*) AS n FROM cpu GROUP BY hour;
         INSERT INTO cpu SELECT now()::timestamp(3) - INTERVAL '1 hour', 'a';
         INSERT INTO cpu SELECT now()::timestamp(3) - INTERVAL '5 days', 'a'",
    )
    .await;
    engine.refresh_until_idle().await.expect("a refresh");
    assert_eq!(number(engine, "SELECT count(*) FROM f_sink").await, 1, "the old row's window has expired");
    run(engine, "INSERT INTO cpu SELECT now()::timestamp(3) - INTERVAL '5 days', 'a'").await;
    engine.refresh_until_idle().await.expect("a refresh");
    assert_eq!(number(engine, "SELECT count(*) FROM f_sink").await, 1);
    assert_exact(engine, "f", "of what has not expired").await;
}

#[tokio::test]
async fn a_refresh_that_fails_loses_nothing() {
    for &kind in KINDS {
        let fixture = engine(kind).await;
        let engine = &fixture.engine;
        run(
            engine,
            "CREATE TABLE t (ts TIMESTAMP(3) TIME INDEX, v BIGINT) WITH ('append_mode' = 'true');
             CREATE TABLE s (hour TIMESTAMP(6), v INT, TIME INDEX (hour));
             CREATE FLOW f SINK TO s AS SELECT date_bin(INTERVAL '1 hour', ts) AS hour, sum(v) AS v FROM t GROUP BY hour;
             INSERT INTO t VALUES ('2024-01-01 10:00:00', 1)",
        )
        .await;
        engine.refresh_until_idle().await.expect("a refresh");
        // The sum of the first hour does not fit the sink's column; the other hour is new.
        run(engine, "INSERT INTO t VALUES ('2024-01-01 10:30:00', 5000000000), ('2024-01-01 12:00:00', 7)")
            .await;
        let error = engine.refresh_until_idle().await.expect_err("it does not fit").to_string();
        assert!(error.starts_with("flow f: "), "{error}");
        assert_eq!(number(engine, "SELECT sum(v) FROM s").await, 1, "nothing of the refresh is in the sink");
        assert_eq!(number(engine, "SELECT failures FROM information_schema.flows").await, 1);
        run(engine, "DELETE FROM t WHERE v = 5000000000").await;
        engine.refresh_until_idle().await.expect("a refresh");
        assert_exact(engine, "f", "after the failure").await;
        assert_eq!(number(engine, "SELECT sum(v) FROM s").await, 8);
    }
}

#[tokio::test]
async fn rows_are_deleted_by_any_condition_on_a_row() {
    for &kind in KINDS {
        let fixture = engine(kind).await;
        let engine = &fixture.engine;
        run(engine, "CREATE TABLE t (ts TIMESTAMP(3) TIME INDEX, v BIGINT, \"A b\" STRING)").await;
        for (condition, left) in [
            ("ts < now() - INTERVAL '1 day'", vec![2, 3]),
            ("ts <= current_date() AND v < 2", vec![2, 3]),
            ("date_trunc('day', ts) < to_timestamp('2024-01-02')", vec![2, 3]),
            ("ts = arrow_cast('2300-01-01', 'Timestamp(Millisecond, None)')", vec![1, 3]),
            ("v % 2 = 1 AND v + 1 IN (2, 7)", vec![2, 3]),
            ("\"A b\" LIKE '%''' OR t.\"A b\" = 'x'", vec![1, 2]),
            ("\"A b\" IS NULL", vec![1, 3]),
            ("v IN (1, NULL)", vec![2, 3]),
            ("v NOT IN (1, NULL)", vec![1, 2, 3]),
            ("NULL", vec![1, 2, 3]),
            ("random() < 2 AND v BETWEEN 2 AND 3", vec![1]),
            ("CASE WHEN v > 2 THEN false ELSE v = 1 END", vec![2, 3]),
            ("1 = 1", vec![]),
        ] {
            run(engine, "DELETE FROM t").await;
            run(engine, "INSERT INTO t VALUES ('1900-01-01', 1, 'it''s'), ('2300-01-01', 2, NULL), ('2299-01-01', 3, 'x''')")
                .await;
            run(engine, "DELETE FROM t WHERE v = 1 AND \"A b\" = 'nothing'").await;
            run(engine, &format!("DELETE FROM t WHERE {condition}")).await;
            let found = table(engine, "SELECT array_agg(v ORDER BY v) AS v FROM t").await;
            let expected = match left.as_slice() {
                [] => String::new(),
                some => format!("{some:?}"),
            };
            assert!(found.contains(&expected), "{condition}: {found}");
            assert_eq!(number(engine, "SELECT count(*) FROM t").await, left.len() as i64, "{condition}");
        }
        for (condition, said) in [
            ("v IN (SELECT v FROM t)", "a subquery"),
            ("v = (SELECT max(v) FROM t)", "a subquery"),
            ("NOT EXISTS (SELECT 1 FROM t)", "a subquery"),
            ("count(*) > 1", "AggregateFunction"),
            ("row_number() OVER () = 1", "a window function"),
            ("v", "Int64"),
            ("w = 1", "w"),
        ] {
            let error = fails(engine, &format!("DELETE FROM t WHERE {condition}")).await;
            assert!(error.contains(said), "{condition}: {error}");
        }
    }
}

#[tokio::test]
async fn flows_in_the_background_are_woken_by_an_insert_and_wake_the_flows_on_them() {
    let fixture = engine(KINDS[0]).await;
    let engine = &fixture.engine;
    run(engine, SOURCE).await;
    run(
        engine,
        "CREATE FLOW g SINK TO g_sink WITH ('min_refresh' = '1 ms') AS
           SELECT date_trunc('day', hour) AS day, sum(n) AS n FROM f_sink GROUP BY day",
    )
    .await;
    let tasks = engine.spawn_flows();
    let arrives = async |total: i64| {
        for _ in 0..2_000 {
            if number(engine, "SELECT coalesce(sum(n), 0) FROM g_sink").await == total {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("the flow on the flow never had {total} rows");
    };
    arrives(1).await;
    run(engine, "INSERT INTO cpu VALUES ('2024-03-01 11:20:00', 'b', 0.5)").await;
    arrives(2).await;
    for task in tasks {
        task.stop(std::time::Duration::from_secs(5)).await;
    }
}

#[tokio::test]
async fn rows_are_inserted_from_arrow_by_the_names_of_their_columns() {
    for &kind in KINDS {
        let fixture = engine(kind).await;
        let engine = &fixture.engine;
        run(
            engine,
            "CREATE TABLE t (ts TIMESTAMP(3) TIME INDEX, host STRING, n BIGINT DEFAULT 7, PRIMARY KEY (host));
             CREATE FLOW f SINK TO s AS SELECT date_trunc('day', ts) AS day, sum(n) AS n FROM t GROUP BY day",
        )
        .await;
        let rows = |columns: &[(&str, ArrayRef)]| RecordBatch::try_from_iter(columns.to_vec()).expect("rows");
        let hosts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
        let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![60, 120]));
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
        let first = rows(&[("host", Arc::clone(&hosts)), ("ts", Arc::clone(&seconds))]);
        assert_eq!(engine.insert("t", [first]).await.expect("rows"), 2);
        // The same keys again: these rows take the place of the first.
        let second = rows(&[("n", numbers), ("ts", Arc::clone(&seconds)), ("host", Arc::clone(&hosts))]);
        assert_eq!(engine.insert("t", [second]).await.expect("rows"), 2);
        engine.refresh_until_idle().await.expect("a refresh");
        assert_exact(engine, "f", "after the inserts").await;
        assert_eq!(number(engine, "SELECT sum(n) FROM s").await, 3, "{kind:?}");

        assert_eq!(engine.insert("t", []).await.expect("nothing"), 0);
        for (table, columns, said) in [
            ("t", vec![("host", hosts.clone()), ("more", hosts.clone())], "no column more"),
            ("t", vec![("host", hosts.clone())], "column ts needs a value"),
            ("u", vec![("ts", seconds.clone())], "there is no table u"),
        ] {
            let error =
                engine.insert(table, [rows(&columns)]).await.expect_err("they do not fit").to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}

#[tokio::test]
async fn a_flow_explains_what_its_next_refresh_would_do() {
    let fixture = engine(KINDS[0]).await;
    let engine = &fixture.engine;
    run(
        engine,
        "CREATE TABLE t (ts TIMESTAMP(3) TIME INDEX, host STRING, v BIGINT) WITH ('append_mode' = 'true');
         CREATE FLOW f SINK TO s AS
           SELECT date_bin(INTERVAL '15 minutes', ts) AS w, host, sum(v) AS v FROM t WHERE v > 0 GROUP BY w, host;
         CREATE FLOW g SINK TO days WITH ('refresh' = 'recompute') AS
           SELECT date_trunc('day', ts AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Paris') AS day, count(*) AS n FROM t
           GROUP BY day;
         CREATE FLOW h SINK TO h EVAL INTERVAL '1 hour' AS SELECT a.host FROM t a JOIN t b ON a.host = b.host",
    )
    .await;
    let values = (0..100).map(|k| format!("('2024-01-01 {:02}:00:00', 'a', {k})", k / 5));
    run(engine, &format!("INSERT INTO t VALUES {}", values.collect::<Vec<_>>().join(", "))).await;
    let before = table(engine, "EXPLAIN FLOW f").await;
    assert!(before.contains("nothing is consumed") && before.contains("a repair of 20 windows"), "{before}");
    engine.refresh_until_idle().await.expect("a refresh");
    let idle = table(engine, "EXPLAIN FLOW f").await;
    assert!(idle.contains("nothing: there is nothing new"), "{idle}");
    run(engine, "INSERT INTO t VALUES ('2024-01-01 10:01:00', 'b', 5)").await;
    expect![[r#"
        +------------------+---------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------+
        | what             | is                                                                                                                                                                                                                                                      |
        +------------------+---------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------+
        | sink             | s                                                                                                                                                                                                                                                       |
        | window           | w = date_bin(IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 900000000000 }"), t.ts), of ts: a grid of 900s                                                                                                               |
        | merges           | yes                                                                                                                                                                                                                                                     |
        | kept of sum(t.v) | its value, the output v                                                                                                                                                                                                                                 |
        | progress         | consumed up to 0:1, no window is dirty                                                                                                                                                                                                                  |
        | next refresh     | a merge of 1 windows: the source has only grown, and a merge handles no more rows than a repair (a merge handles about 2 rows, a repair 4)                                                                                                              |
        | plan of a repair | Projection: date_bin(IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 900000000000 }"),t.ts) AS w, t.host, sum(t.v) AS v                                                                                                   |
        |                  |   Aggregate: groupBy=[[date_bin(IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 900000000000 }"), t.ts), t.host]], aggr=[[sum(t.v)]]                                                                                      |
        |                  |     SubqueryAlias: t                                                                                                                                                                                                                                    |
        |                  |       Filter: windrow.public.t.ts >= TimestampMillisecond(1704103200000, None) AND windrow.public.t.ts < TimestampMillisecond(1704104100000, None) AND windrow.public.t.v > Int64(0)                                                                    |
        |                  |         TableScan: windrow.public.t projection=[ts, host, v], partial_filters=[windrow.public.t.ts >= TimestampMillisecond(1704103200000, None), windrow.public.t.ts < TimestampMillisecond(1704104100000, None), windrow.public.t.v > Int64(0)]        |
        | plan of a merge  | Projection: key_0 AS w, key_1 AS host, call_0 AS v                                                                                                                                                                                                      |
        |                  |   Aggregate: groupBy=[[key_0, key_1]], aggr=[[merge(sum)(call_0) AS call_0]]                                                                                                                                                                            |
        |                  |     Union                                                                                                                                                                                                                                               |
        |                  |       Projection: windrow.public.s.w AS key_0, windrow.public.s.host AS key_1, windrow.public.s.v AS call_0                                                                                                                                             |
        |                  |         Filter: windrow.public.s.w >= TimestampMillisecond(1704103200000, None) AND windrow.public.s.w < TimestampMillisecond(1704104100000, None)                                                                                                      |
        |                  |           TableScan: windrow.public.s projection=[w, host, v], partial_filters=[windrow.public.s.w >= TimestampMillisecond(1704103200000, None), windrow.public.s.w < TimestampMillisecond(1704104100000, None)]                                        |
        |                  |       Projection: date_bin(IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 900000000000 }"),t.ts) AS key_0, t.host AS key_1, call_0 AS call_0                                                                             |
        |                  |         Aggregate: groupBy=[[date_bin(IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 900000000000 }"), t.ts), t.host]], aggr=[[sum(t.v) AS call_0]]                                                                      |
        |                  |           SubqueryAlias: t                                                                                                                                                                                                                              |
        |                  |             Filter: windrow.public.t.ts >= TimestampMillisecond(-9223371900000, None) AND windrow.public.t.ts < TimestampMillisecond(9223372036855, None) AND windrow.public.t.v > Int64(0)                                                             |
        |                  |               TableScan: windrow.public.t projection=[ts, host, v], partial_filters=[windrow.public.t.ts >= TimestampMillisecond(-9223371900000, None), windrow.public.t.ts < TimestampMillisecond(9223372036855, None), windrow.public.t.v > Int64(0)] |
        +------------------+---------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------------+"#]].assert_eq(&table(engine, "EXPLAIN FLOW f").await);
    let days = table(engine, "EXPLAIN FLOW g").await;
    assert!(days.contains(", of ts: a calendar of local time in Europe/Paris"), "{days}");
    assert!(
        days.contains("no: 'refresh' is 'recompute'") && days.contains("a repair of 1 windows"),
        "{days}"
    );
    let whole = table(engine, "EXPLAIN FLOW h").await;
    assert!(whole.contains("none: the whole query runs each time"), "{whole}");
    assert!(fails(engine, "EXPLAIN FLOW nowhere").await.contains("nowhere"));
}

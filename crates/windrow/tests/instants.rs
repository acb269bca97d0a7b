//! Instants of every sort through the whole engine: all units, both sides of 1970, days of 23 and 25 hours, and instants
//! that no window has.

mod common;

use common::{KINDS, Kind, assert_exact, engine, number, run, table};
use expect_test::expect;
use windrow::Engine;

/// Inserts each row alone, refreshing after each, and checks the flow every time.
async fn insert_one_by_one(engine: &Engine, flow: &str, rows: &[&str]) {
    for row in rows {
        run(engine, &format!("INSERT INTO t VALUES {row}")).await;
        engine.refresh_until_idle().await.unwrap_or_else(|error| panic!("after {row}: {error}"));
        assert_exact(engine, flow, row).await;
    }
}

#[tokio::test]
async fn every_unit_has_its_windows_on_both_sides_of_1970() {
    for &kind in KINDS {
        for precision in [0, 3, 6, 9] {
            if precision == 9 && !matches!(kind, Kind::Memory) {
                continue; // Delta tables count microseconds.
            }
            let fixture = engine(kind).await;
            let engine = &fixture.engine;
            run(
                engine,
                &format!(
                    "CREATE TABLE t (ts TIMESTAMP({precision}) TIME INDEX, v BIGINT) WITH ('append_mode' = 'true');
                     CREATE FLOW f SINK TO s AS
                       SELECT date_bin(INTERVAL '1 hour', ts) AS w, count(*) AS n, sum(v) AS v FROM t GROUP BY w;
                     CREATE FLOW g SINK TO m AS
                       SELECT date_trunc('month', ts) AS w, avg(v) AS v FROM t GROUP BY w"
                ),
            )
            .await;
            let rows = [
                "('1700-02-28 23:59:59', 1), ('1700-03-01 00:00:00', 2)",
                "('1969-12-31 23:59:59', 3), ('1970-01-01 00:00:00', 4)",
                "('2200-12-31 23:59:59', 5), ('1900-02-28 12:00:00', 6), ('2000-02-29 12:00:00', 7)",
                "('1969-12-31 23:00:00', 8), ('1969-12-31 22:59:59', 9)",
                "('1700-02-28 23:00:00', 10)",
            ];
            insert_one_by_one(engine, "f", &rows).await;
            assert_exact(engine, "g", "months").await;
            assert_eq!(number(engine, "SELECT count(*) FROM s").await, 8, "{kind:?} {precision}");
            assert_eq!(number(engine, "SELECT sum(v) FROM s").await, 55);
            assert_eq!(number(engine, "SELECT count(*) FROM m").await, 7);
            run(engine, "DELETE FROM t WHERE v IN (1, 10, 4)").await;
            engine.refresh_until_idle().await.expect("a refresh");
            assert_exact(engine, "f", "after a deletion").await;
            assert_eq!(number(engine, "SELECT sum(v) FROM s").await, 40);
        }
    }
}

#[tokio::test]
async fn instants_without_a_window_are_left_out_and_leave_the_others_alone() {
    for &kind in KINDS {
        for (precision, key) in [
            (0, "date_bin(INTERVAL '1 hour', ts)"),
            (3, "date_bin(INTERVAL '1 hour', ts)"),
            (6, "date_bin(INTERVAL '1 day', ts, TIMESTAMP '2100-01-01')"),
            // An opaque window.
            (0, "date_bin(INTERVAL '1500 milliseconds', ts)"),
        ] {
            let fixture = engine(kind).await;
            let engine = &fixture.engine;
            run(
                engine,
                &format!(
                    "CREATE TABLE t (ts TIMESTAMP({precision}) TIME INDEX, v BIGINT) WITH ('append_mode' = 'true');
                     CREATE FLOW f SINK TO s AS SELECT {key} AS w, count(*) AS n, sum(v) AS v FROM t GROUP BY w"
                ),
            )
            .await;
            // 64 bits of nanoseconds end in 1677 and 2262, and DataFusion bins in nanoseconds: the value is NULL.
            let rows = [
                "('2024-01-01 00:00:00', 1)",
                "('3000-01-01 00:00:00', 2)",
                "('1000-01-01 00:00:00', 4), ('2024-01-01 00:30:00', 8)",
                "('9999-12-31 23:59:59', 16)",
                "('0001-01-01 00:00:00', 32), ('2030-01-01 00:30:00', 64)",
            ];
            insert_one_by_one(engine, "f", &rows).await;
            assert_eq!(number(engine, "SELECT sum(v) FROM s").await, 73, "{kind:?} {precision} {key}");
            run(engine, "DELETE FROM t WHERE v IN (2, 16)").await;
            engine.refresh_until_idle().await.expect("a refresh");
            assert_exact(engine, "f", "after a deletion").await;
            assert_eq!(number(engine, "SELECT sum(v) FROM s").await, 73);
        }
    }
}

#[tokio::test]
async fn a_day_is_as_long_as_it_is_where_the_user_lives() {
    for &kind in KINDS {
        let fixture = engine(kind).await;
        let engine = &fixture.engine;
        run(
            engine,
            "CREATE TABLE t (ts TIMESTAMP(3) TIME INDEX, v BIGINT) WITH ('append_mode' = 'true');
             CREATE FLOW f SINK TO s AS
               SELECT date_trunc('day', ts AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York') AS day, count(*) AS n
               FROM t GROUP BY day",
        )
        .await;
        // Every hour of the days around both changes of clocks of 2013, from the last to the first.
        let mut rows: Vec<String> = Vec::new();
        for day in ["03-09", "03-10", "03-11", "03-12", "11-02", "11-03", "11-04", "11-05"] {
            let hours: Vec<String> = (0..24).map(|h| format!("('2013-{day} {h:02}:15:00', 1)")).collect();
            rows.insert(0, hours.join(", "));
        }
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        insert_one_by_one(engine, "f", &rows).await;
        expect![[r#"
            +---------------------------+----+
            | day                       | n  |
            +---------------------------+----+
            | 2013-03-08T00:00:00-05:00 | 5  |
            | 2013-03-09T00:00:00-05:00 | 24 |
            | 2013-03-10T00:00:00-05:00 | 23 |
            | 2013-03-11T00:00:00-04:00 | 24 |
            | 2013-03-12T00:00:00-04:00 | 20 |
            | 2013-11-01T00:00:00-04:00 | 4  |
            | 2013-11-02T00:00:00-04:00 | 24 |
            | 2013-11-03T00:00:00-04:00 | 25 |
            | 2013-11-04T00:00:00-05:00 | 24 |
            | 2013-11-05T00:00:00-05:00 | 19 |
            +---------------------------+----+"#]]
        .assert_eq(&table(engine, "SELECT day, n FROM s ORDER BY day").await);
        // The query gives nanoseconds; the sink is in the unit of the source.
        let data_type = table(engine, "SELECT arrow_typeof(day) AS type FROM s LIMIT 1").await;
        assert!(data_type.contains("Timestamp(ms, \"America/New_York\")"), "{data_type}");
        run(engine, "DELETE FROM t WHERE ts >= '2013-11-04 04:00:00' AND ts < '2013-11-04 05:00:00'").await;
        engine.refresh_until_idle().await.expect("a refresh");
        assert_exact(engine, "f", "after a deletion in the twenty-fifth hour").await;
        assert_eq!(number(engine, "SELECT min(n) FROM s WHERE n > 20 AND n < 25").await, 23);
    }
}

#[tokio::test]
async fn a_sink_of_the_users_keeps_the_instants_whatever_its_unit_and_zone() {
    let day = "date_trunc('day', ts AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Kathmandu')";
    let naive_day = "date_trunc('day', ts)";
    for &kind in KINDS {
        for (key, column) in [
            (day, "TIMESTAMP(0)"),
            (day, "TIMESTAMP(6)"),
            (naive_day, "TIMESTAMP(6) WITH TIME ZONE"),
            (day, "TIMESTAMP(3) WITH TIME ZONE"),
        ] {
            let fixture = engine(kind).await;
            let engine = &fixture.engine;
            run(
                engine,
                &format!(
                    "CREATE TABLE t (ts TIMESTAMP(6) TIME INDEX, v BIGINT) WITH ('append_mode' = 'true');
                     CREATE TABLE s (w {column}, n BIGINT, v BIGINT, at TIMESTAMP(6) , TIME INDEX (w));
                     CREATE FLOW f SINK TO s AS
                       SELECT {key} AS w, count(*) AS n, sum(v) AS v, max(ts) AS at FROM t GROUP BY w"
                ),
            )
            .await;
            let rows = [
                "('1969-12-31 18:14:59', 1), ('1969-12-31 18:15:00', 2), ('1969-12-30 18:14:59.999999', 3)",
                "('1969-12-31 18:14:58', 1), ('2024-02-29 18:15:00', 2), ('2024-03-30 18:14:59.999999', 3)",
                "('2024-02-29 18:14:59', 5)",
                "('2024-03-01 00:00:00', 5)",
            ];
            insert_one_by_one(engine, "f", &rows).await;
            run(engine, "DELETE FROM s WHERE n = 2").await;
            engine.refresh_until_idle().await.expect("a refresh");
            assert_exact(engine, "f", "after someone deleted from the sink").await;
            run(engine, "INSERT INTO t VALUES ('2024-03-01 00:00:01', 5)").await;
            engine.refresh_until_idle().await.expect("a refresh");
            assert_exact(engine, "f", &format!("{kind:?} {key} into {column}")).await;
            assert_eq!(number(engine, "SELECT sum(v) FROM s").await, 27);
        }
    }
}

#[tokio::test]
async fn what_a_sink_rounds_is_not_merged() {
    for &kind in KINDS {
        let fixture = engine(kind).await;
        let engine = &fixture.engine;
        run(
            engine,
            "CREATE TABLE t (ts TIMESTAMP(3) TIME INDEX, d DOUBLE) WITH ('append_mode' = 'true');
             CREATE TABLE s (w TIMESTAMP(3) TIME INDEX, d FLOAT);
             CREATE FLOW f SINK TO s AS SELECT date_trunc('day', ts) AS w, sum(d) AS d FROM t GROUP BY w",
        )
        .await;
        let rows: Vec<String> = (0..12).map(|k| format!("('2024-01-01 0{}:00:00', 0.1)", k % 10)).collect();
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        insert_one_by_one(engine, "f", &rows).await;
        let why = table(engine, "SELECT not_mergeable FROM information_schema.flows").await;
        assert!(
            why.contains("column d of type Float32 does not hold all values of d of type Float64"),
            "{why}"
        );
    }
}

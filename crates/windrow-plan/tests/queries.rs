//! What is found out about queries: their window, how they merge, and which columns their sink gets.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::datasource::empty::EmptyTable;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use expect_test::{Expect, expect};
use windrow_plan::{
    Merge, SinkColumns, SinkMatch, TimeWindow, derive_sink, find_time_window, limit_to_ranges, normalise,
    scanned_tables,
};
use windrow_time::{InstantRange, Window};

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("ts", DataType::Timestamp(TimeUnit::Millisecond, None), false),
        Field::new(
            "zoned",
            DataType::Timestamp(TimeUnit::Millisecond, Some("America/New_York".into())),
            true,
        ),
        Field::new("host", DataType::Utf8, true),
        Field::new("v", DataType::Int64, true),
        Field::new("Odd \"Name\".x", DataType::Float64, true),
    ]))
}

async fn plan(query: &str) -> (SessionContext, LogicalPlan) {
    let session = SessionContext::new();
    for table in ["t", "u"] {
        session.register_table(table, Arc::new(EmptyTable::new(schema()))).expect("a new name");
    }
    let state = session.state();
    let plan = state.create_logical_plan(query).await.expect("a query");
    let plan = normalise(plan, &state).expect("a plan in order");
    (session, plan)
}

async fn window(query: &str, time_index: &str) -> Result<TimeWindow, String> {
    let (session, plan) = plan(query).await;
    let time_index = |_: &_| Some(time_index.to_owned());
    find_time_window(&plan, &session.state(), time_index)
        .expect("a plan that can be walked")
        .map_err(|reason| reason.to_string())
}

/// Each query with the kind of its windows and the one at 2024-02-29T12:00:00Z, or why it has none.
async fn check_windows(time_index: &str, queries: &[&str], expected: Expect) {
    let mut found = String::new();
    for query in queries {
        let line = match window(query, time_index).await {
            Ok(window) => {
                let range = window.window().range_of(1_709_208_000_000);
                let kind = match window.window() {
                    Window::Fixed(_) => "fixed",
                    Window::Calendar(_) => "calendar",
                    Window::Opaque(_) => "opaque",
                };
                let labels = window.labels_of(range).expect("labels");
                format!("{kind} {range}, labels {labels}, output {}", window.output())
            }
            Err(reason) => format!("none: {reason}"),
        };
        found.push_str(&format!("{query}\n    {line}\n"));
    }
    expected.assert_eq(&found);
}

#[tokio::test]
async fn windows_are_found_under_aliases_casts_subqueries_and_shifts() {
    check_windows(
        "ts",
        &[
            "SELECT date_bin(INTERVAL '1 hour', ts) AS w, count(*) FROM t GROUP BY w",
            "SELECT count(*), date_bin(INTERVAL '90 minutes', ts, TIMESTAMP '2001-01-01T00:10:00') FROM t GROUP BY 2",
            "SELECT date_bin(INTERVAL '2 months', ts) AS w FROM t GROUP BY w",
            "SELECT date_trunc('month', ts) AS w, host FROM t GROUP BY host, w",
            "SELECT date_trunc('week', ts) AS w FROM t GROUP BY w",
            "SELECT ts FROM t GROUP BY ts",
            "SELECT date_bin(INTERVAL '1 hour', ts)::timestamp(9) AS w FROM t GROUP BY w",
            "SELECT date_bin(INTERVAL '1 hour', ts::timestamp(9)) AS w FROM t GROUP BY w",
            "SELECT date_bin(INTERVAL '1 hour', ts) + INTERVAL '1 hour' AS w FROM t GROUP BY w",
            "SELECT date_bin(INTERVAL '1 hour', ts + INTERVAL '10 minutes') AS w FROM t GROUP BY w",
            "SELECT q.w FROM (SELECT date_trunc('day', x) AS w FROM (SELECT ts AS x FROM t a WHERE v > 1) b) q GROUP BY q.w",
            "WITH c AS (SELECT ts AS moment FROM t) SELECT date_trunc('day', moment) AS d FROM c GROUP BY d",
            "SELECT date_trunc('day', ts) AS d, date_trunc('hour', ts) AS h FROM t GROUP BY d, h",
            "SELECT to_timestamp_millis(CAST(ts AS BIGINT) / 1000 * 1000) AS w FROM t GROUP BY w",
            "SELECT to_timestamp_millis(CAST(ts AS BIGINT) - CAST(ts AS BIGINT) % 1000) AS w FROM t GROUP BY w",
            "SELECT date_trunc('hour', ts AT TIME ZONE 'America/New_York') AS w FROM t GROUP BY w",
            "SELECT date_trunc('day', ts AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York') AS w FROM t GROUP BY w",
            "SELECT date_trunc('day', to_local_time(ts AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Kathmandu')) AS w FROM t GROUP BY w",
            "SELECT date_trunc('month', ts + INTERVAL '6 hours') AS w FROM t GROUP BY w",
            "SELECT date_trunc('month', date_bin(INTERVAL '1 hour', ts)) AS w FROM t GROUP BY w",
            "SELECT date_bin(INTERVAL '7 minutes', date_trunc('hour', ts)) AS w FROM t GROUP BY w",
            "SELECT date_bin(INTERVAL '1 month', ts, TIMESTAMP '2023-10-31T10:00:00') AS w FROM t GROUP BY w",
            "SELECT date_trunc('day', ts::timestamp(0)) AS w FROM t GROUP BY w",
        ],
        expect![[r#"
            SELECT date_bin(INTERVAL '1 hour', ts) AS w, count(*) FROM t GROUP BY w
                fixed [1709208000000, 1709211600000), labels [1709208000000, 1709211600000), output 0
            SELECT count(*), date_bin(INTERVAL '90 minutes', ts, TIMESTAMP '2001-01-01T00:10:00') FROM t GROUP BY 2
                fixed [1709203200000, 1709208600000), labels [1709203200000, 1709208600000), output 1
            SELECT date_bin(INTERVAL '2 months', ts) AS w FROM t GROUP BY w
                calendar [1704067200000, 1709251200000), labels [1704067200000, 1709251200000), output 0
            SELECT date_trunc('month', ts) AS w, host FROM t GROUP BY host, w
                calendar [1706745600000, 1709251200000), labels [1706745600000, 1709251200000), output 0
            SELECT date_trunc('week', ts) AS w FROM t GROUP BY w
                fixed [1708905600000, 1709510400000), labels [1708905600000, 1709510400000), output 0
            SELECT ts FROM t GROUP BY ts
                fixed [1709208000000, 1709208000001), labels [1709208000000, 1709208000001), output 0
            SELECT date_bin(INTERVAL '1 hour', ts)::timestamp(9) AS w FROM t GROUP BY w
                fixed [1709208000000, 1709211600000), labels [1709208000000000000, 1709211600000000000), output 0
            SELECT date_bin(INTERVAL '1 hour', ts::timestamp(9)) AS w FROM t GROUP BY w
                fixed [1709208000000, 1709211600000), labels [1709208000000000000, 1709211600000000000), output 0
            SELECT date_bin(INTERVAL '1 hour', ts) + INTERVAL '1 hour' AS w FROM t GROUP BY w
                fixed [1709208000000, 1709211600000), labels [1709211600000, 1709215200000), output 0
            SELECT date_bin(INTERVAL '1 hour', ts + INTERVAL '10 minutes') AS w FROM t GROUP BY w
                fixed [1709207400000, 1709211000000), labels [1709208000000, 1709211600000), output 0
            SELECT q.w FROM (SELECT date_trunc('day', x) AS w FROM (SELECT ts AS x FROM t a WHERE v > 1) b) q GROUP BY q.w
                fixed [1709164800000, 1709251200000), labels [1709164800000, 1709251200000), output 0
            WITH c AS (SELECT ts AS moment FROM t) SELECT date_trunc('day', moment) AS d FROM c GROUP BY d
                fixed [1709164800000, 1709251200000), labels [1709164800000, 1709251200000), output 0
            SELECT date_trunc('day', ts) AS d, date_trunc('hour', ts) AS h FROM t GROUP BY d, h
                fixed [1709208000000, 1709211600000), labels [1709208000000, 1709211600000), output 1
            SELECT to_timestamp_millis(CAST(ts AS BIGINT) / 1000 * 1000) AS w FROM t GROUP BY w
                opaque [1709208000000, 1709208001000), labels [1709208000000, 1709208001000), output 0
            SELECT to_timestamp_millis(CAST(ts AS BIGINT) - CAST(ts AS BIGINT) % 1000) AS w FROM t GROUP BY w
                opaque [1709208000000, 1709208001000), labels [1709208000000, 1709208001000), output 0
            SELECT date_trunc('hour', ts AT TIME ZONE 'America/New_York') AS w FROM t GROUP BY w
                fixed [1709208000000, 1709211600000), labels [1709226000000000000, 1709229600000000000), output 0
            SELECT date_trunc('day', ts AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York') AS w FROM t GROUP BY w
                calendar [1709182800000, 1709269200000), labels [1709182800000000000, 1709269200000000000), output 0
            SELECT date_trunc('day', to_local_time(ts AT TIME ZONE 'UTC' AT TIME ZONE 'Asia/Kathmandu')) AS w FROM t GROUP BY w
                calendar [1709144100000, 1709230500000), labels [1709164800000000000, 1709251200000000000), output 0
            SELECT date_trunc('month', ts + INTERVAL '6 hours') AS w FROM t GROUP BY w
                calendar [1706724000000, 1709229600000), labels [1706745600000, 1709251200000), output 0
            SELECT date_trunc('month', date_bin(INTERVAL '1 hour', ts)) AS w FROM t GROUP BY w
                calendar [1706745600000, 1709251200000), labels [1706745600000, 1709251200000), output 0
            SELECT date_bin(INTERVAL '7 minutes', date_trunc('hour', ts)) AS w FROM t GROUP BY w
                opaque [1709208000000, 1709211600000), labels [1709207640000, 1709211420000), output 0
            SELECT date_bin(INTERVAL '1 month', ts, TIMESTAMP '2023-10-31T10:00:00') AS w FROM t GROUP BY w
                calendar [1709200800000, 1711879200000), labels [1709200800000, 1711879200000), output 0
            SELECT date_trunc('day', ts::timestamp(0)) AS w FROM t GROUP BY w
                opaque [1709164800000, 1709251200000), labels [1709164800, 1709251200), output 0
        "#]],
    )
    .await;
}

#[tokio::test]
async fn days_in_a_time_zone_are_as_long_as_they_are() {
    let query = "SELECT date_trunc('day', zoned) AS d FROM t GROUP BY d";
    let window = window(query, "zoned").await.unwrap();
    let hours = |instant: i64| window.window().range_of(instant * 1_000).width().unwrap() / 3_600_000;
    // The changes of 2013 in New York: 10 March and 3 November.
    assert_eq!(hours(1_362_927_600), 23);
    assert_eq!(hours(1_383_491_000), 25);
    assert_eq!(hours(1_370_000_000), 24);
}

#[tokio::test]
async fn queries_without_window_say_why() {
    check_windows(
        "ts",
        &[
            "SELECT host, count(*) FROM t GROUP BY host",
            "SELECT count(*) FROM t",
            "SELECT ts, v FROM t",
            "SELECT date_part('hour', ts) AS h FROM t GROUP BY h",
            "SELECT count(*) FROM t GROUP BY date_trunc('day', ts)",
            "SELECT date_trunc('day', ts) AS d FROM t GROUP BY d ORDER BY d",
            "SELECT date_trunc('day', ts) AS d FROM t GROUP BY d LIMIT 3",
            "SELECT DISTINCT date_trunc('day', ts) AS d FROM t",
            "SELECT date_trunc('day', t.ts) AS d FROM t JOIN u ON t.host = u.host GROUP BY d",
            "SELECT date_trunc('day', ts) AS d FROM t WHERE v IN (SELECT v FROM u) GROUP BY d",
            "SELECT date_trunc('day', ts) AS d FROM t WHERE ts > now() GROUP BY d",
            "SELECT date_trunc('day', ts) AS d, max(v + random()) FROM t GROUP BY d",
            "SELECT date_trunc('day', ts) AS d, host FROM t GROUP BY ROLLUP (d, host)",
            "SELECT to_timestamp_millis(-CAST(ts AS BIGINT)) AS w FROM t GROUP BY w",
            "SELECT to_timestamp_millis(CAST(ts AS BIGINT) % 7000) AS w FROM t GROUP BY w",
            "SELECT d, count(*) FROM (SELECT date_trunc('day', ts) AS d, v FROM t GROUP BY 1, 2) GROUP BY d",
            "SELECT date_trunc('day', ts) AS d FROM t GROUP BY d UNION ALL SELECT date_trunc('day', ts) FROM u GROUP BY 1",
        ],
        expect![[r#"
            SELECT host, count(*) FROM t GROUP BY host
                none: none of its group keys (t.host) is a timestamp computed from the time index ts alone
            SELECT count(*) FROM t
                none: it has no GROUP BY
            SELECT ts, v FROM t
                fixed [1709208000000, 1709208000001), labels [1709208000000, 1709208000001), output 0
            SELECT date_part('hour', ts) AS h FROM t GROUP BY h
                none: its group key date_part(Utf8("hour"), t.ts) does not grow with time
            SELECT count(*) FROM t GROUP BY date_trunc('day', ts)
                none: its time window date_trunc(Utf8("day"), t.ts) is not in the SELECT list
            SELECT date_trunc('day', ts) AS d FROM t GROUP BY d ORDER BY d
                none: it has a sort
            SELECT date_trunc('day', ts) AS d FROM t GROUP BY d LIMIT 3
                none: it has a limit
            SELECT DISTINCT date_trunc('day', ts) AS d FROM t
                fixed [1709164800000, 1709251200000), labels [1709164800000, 1709251200000), output 0
            SELECT date_trunc('day', t.ts) AS d FROM t JOIN u ON t.host = u.host GROUP BY d
                none: it has a join
            SELECT date_trunc('day', ts) AS d FROM t WHERE v IN (SELECT v FROM u) GROUP BY d
                none: it has a subquery in an expression
            SELECT date_trunc('day', ts) AS d FROM t WHERE ts > now() GROUP BY d
                none: the value of its now() depends on when it runs
            SELECT date_trunc('day', ts) AS d, max(v + random()) FROM t GROUP BY d
                none: the value of its random() depends on when it runs
            SELECT date_trunc('day', ts) AS d, host FROM t GROUP BY ROLLUP (d, host)
                none: it has grouping sets
            SELECT to_timestamp_millis(-CAST(ts AS BIGINT)) AS w FROM t GROUP BY w
                none: its group key to_timestamp_millis((- CAST(t.ts AS Int64))) does not grow with time
            SELECT to_timestamp_millis(CAST(ts AS BIGINT) % 7000) AS w FROM t GROUP BY w
                none: its group key to_timestamp_millis(CAST(t.ts AS Int64) % Int64(7000)) does not grow with time
            SELECT d, count(*) FROM (SELECT date_trunc('day', ts) AS d, v FROM t GROUP BY 1, 2) GROUP BY d
                none: it has an aggregate over an aggregate
            SELECT date_trunc('day', ts) AS d FROM t GROUP BY d UNION ALL SELECT date_trunc('day', ts) FROM u GROUP BY 1
                none: it has a union
        "#]],
    )
    .await;
}

#[tokio::test]
async fn local_time_is_no_window_because_clocks_are_put_back() {
    for query in [
        "SELECT to_local_time(zoned) AS w FROM t GROUP BY w",
        "SELECT date_bin(INTERVAL '1 minute', to_local_time(zoned)) AS w FROM t GROUP BY w",
        // One minute after midnight, into the day before.
        "SELECT date_trunc('day', to_local_time(zoned AT TIME ZONE 'America/St_Johns')) AS w FROM t GROUP BY w",
        // The last days of January are all the last of February a month later, at the same times of day.
        "SELECT date_trunc('hour', zoned::timestamp(3) + INTERVAL '1 month') AS w FROM t GROUP BY w",
    ] {
        let reason = window(query, "zoned").await.unwrap_err();
        assert!(reason.contains("does not grow with time"), "{reason}");
    }
}

#[tokio::test]
async fn an_expression_with_holes_is_no_window() {
    for key in [
        "date_trunc('minute', ts AT TIME ZONE 'Europe/Paris')",
        "nullif(ts, TIMESTAMP '2023-04-05T06:07:08.9')",
    ] {
        let reason = window(&format!("SELECT {key} AS w FROM t GROUP BY w"), "ts").await.unwrap_err();
        assert!(reason.contains("has no value at some instants between others"), "{reason}");
    }
}

#[tokio::test]
async fn a_label_leads_back_to_its_window() {
    for query in [
        "SELECT date_trunc('month', ts) AS w FROM t GROUP BY w",
        "SELECT date_bin(INTERVAL '1 hour', ts) + INTERVAL '1 hour' AS w FROM t GROUP BY w",
        "SELECT date_bin(INTERVAL '1 hour', ts)::timestamp(9) AS w FROM t GROUP BY w",
    ] {
        let window = window(query, "ts").await.unwrap();
        for instant in [-1, 0, 1_709_208_000_000, -2_208_988_800_001] {
            let range = window.window().range_of(instant);
            let labels = window.labels_of(range).unwrap();
            assert_eq!(window.window_labelled(labels.start()).unwrap(), range, "{query} at {instant}");
            assert_eq!(window.window_labelled(labels.end() - 1).unwrap(), range, "{query} at {instant}");
        }
    }
}

#[tokio::test]
async fn a_query_merges_or_says_every_reason_why_not() {
    let queries = [
        "SELECT ts, host, count(*), sum(v), min(v), max(host), bool_and(v > 1), bit_xor(v) FROM t GROUP BY ts, host",
        "SELECT ts, sum(v) FILTER (WHERE host = 'a') AS s FROM t GROUP BY ts",
        "SELECT ts, host FROM t GROUP BY ts, host",
        "SELECT ts, avg(v) AS a, count(DISTINCT v) AS d, sum(v) + 1 AS s FROM t GROUP BY ts",
        "SELECT ts, sum(DISTINCT v) AS d, min(DISTINCT v) AS m FROM t GROUP BY ts",
        "SELECT ts, count(*) AS n FROM t GROUP BY ts, host",
        "SELECT ts, count(*) AS n FROM t GROUP BY ts HAVING count(*) > 1",
        "SELECT count(*) AS n FROM t",
        "SELECT ts, array_agg(v ORDER BY v) AS a FROM t GROUP BY ts",
    ];
    let mut found = String::new();
    for query in queries {
        let (session, plan) = plan(query).await;
        let line = match Merge::analyse(&plan, &session.state()).unwrap() {
            Ok(_) => "merges".to_owned(),
            Err(reasons) => reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        };
        found.push_str(&format!("{query}\n    {line}\n"));
    }
    expect![[r#"
        SELECT ts, host, count(*), sum(v), min(v), max(host), bool_and(v > 1), bit_xor(v) FROM t GROUP BY ts, host
            merges
        SELECT ts, sum(v) FILTER (WHERE host = 'a') AS s FROM t GROUP BY ts
            merges
        SELECT ts, host FROM t GROUP BY ts, host
            merges
        SELECT ts, avg(v) AS a, count(DISTINCT v) AS d, sum(v) + 1 AS s FROM t GROUP BY ts
            merges
        SELECT ts, sum(DISTINCT v) AS d, min(DISTINCT v) AS m FROM t GROUP BY ts
            merges
        SELECT ts, count(*) AS n FROM t GROUP BY ts, host
            the group key t.host is not in the SELECT list
        SELECT ts, count(*) AS n FROM t GROUP BY ts HAVING count(*) > 1
            groups that HAVING leaves out are not in the sink to be merged into (a flow without it, and one that selects from its sink, are merged)
        SELECT count(*) AS n FROM t
            the query has no GROUP BY
        SELECT ts, array_agg(v ORDER BY v) AS a FROM t GROUP BY ts
            merges
    "#]].assert_eq(&found);
}

#[tokio::test]
async fn a_limit_on_windows_lies_directly_over_the_scan() {
    let (_, plan) =
        plan("SELECT date_trunc('day', ts) AS d FROM (SELECT * FROM t WHERE v > 1) q GROUP BY d").await;
    let ranges = [InstantRange::new(0, 60_000), InstantRange::new(120_000, i64::MAX)];
    let limited = limit_to_ranges(&plan, "ts", &ranges).unwrap();
    expect![[r#"
        Projection: date_trunc(Utf8("day"),q.ts) AS d
          Aggregate: groupBy=[[date_trunc(Utf8("day"), q.ts)]], aggr=[[]]
            SubqueryAlias: q
              Projection: t.ts, t.zoned, t.host, t.v, t.Odd "Name".x
                Filter: t.v > Int64(1)
                  SubqueryAlias: t
                    Filter: datafusion.public.t.ts >= TimestampMillisecond(0, None) AND datafusion.public.t.ts < TimestampMillisecond(60000, None) OR datafusion.public.t.ts >= TimestampMillisecond(120000, None)
                      TableScan: datafusion.public.t"#]].assert_eq(&limited.display_indent().to_string());
    let nothing = limit_to_ranges(&plan, "ts", &[]).unwrap();
    assert!(nothing.display_indent().to_string().contains("Filter: Boolean(false)"));
    assert_eq!(scanned_tables(&plan).unwrap().len(), 1);
}

#[tokio::test]
async fn a_derived_sink_has_the_window_as_time_index_and_the_other_keys_as_key() {
    let query =
        "SELECT count(*) AS n, host, date_trunc('day', ts) AS d, max(zoned) AS last FROM t GROUP BY d, host";
    let (session, planned) = plan(query).await;
    let time_index = |_: &_| Some("ts".to_owned());
    let window = find_time_window(&planned, &session.state(), time_index).unwrap().unwrap();
    let sink = derive_sink(&planned, Some(&window), 0);
    let names: Vec<&str> = sink.schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["n", "host", "d", "last", "update_at"]);
    assert_eq!((sink.time_index, sink.primary_key.as_slice()), (Some(2), [1].as_slice()));

    let (_, whole) = plan("SELECT host, max(ts) AS last FROM t GROUP BY host").await;
    let sink = derive_sink(&whole, None, 0);
    let names: Vec<&str> = sink.schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["host", "last", "update_at", "__ts_placeholder"], "a maximum is no time index");
    assert_eq!((sink.time_index, sink.primary_key.as_slice()), (Some(3), [0].as_slice()));
}

#[tokio::test]
async fn outputs_are_matched_by_name_then_by_position() {
    let time = |name: &str, unit| Field::new(name, DataType::Timestamp(unit, None), false);
    let field = |name: &str, data_type: DataType| Field::new(name, data_type, true);
    let output = Schema::new(vec![
        time("w", TimeUnit::Millisecond),
        field("host", DataType::Utf8),
        field("n", DataType::Int64),
    ]);
    let (ms, us, s) = (TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Second);
    let cases: Vec<(&str, Vec<Field>)> = vec![
        ("any order", vec![field("n", DataType::Int64), field("host", DataType::Utf8), time("w", ms)]),
        (
            "another name, by position",
            vec![time("hour", us), field("host", DataType::Utf8), field("n", DataType::Int32)],
        ),
        (
            "update time",
            vec![time("w", ms), field("host", DataType::Utf8), field("n", DataType::Int64), time("at", ms)],
        ),
        ("missing", vec![time("w", ms), field("host", DataType::Utf8)]),
        (
            "extra",
            vec![
                time("w", ms),
                field("host", DataType::Utf8),
                field("n", DataType::Int64),
                field("more", DataType::Utf8),
            ],
        ),
        ("another type", vec![time("w", ms), field("host", DataType::Boolean), field("n", DataType::Int64)]),
        ("coarser time", vec![time("w", s), field("host", DataType::Utf8), field("n", DataType::Int64)]),
        (
            "another name and place",
            vec![time("w", ms), field("n", DataType::Int64), field("place", DataType::Utf8)],
        ),
    ];
    let mut found = String::new();
    for (name, fields) in cases {
        let time_index = fields.iter().position(|field| matches!(field.data_type(), DataType::Timestamp(..)));
        let sink = SinkColumns { schema: Arc::new(Schema::new(fields)), time_index, primary_key: vec![] };
        let line = match SinkMatch::new(&output, None, &sink, false) {
            Ok(matched) => {
                let columns: Vec<_> = (0..3).map(|output| matched.column_of(output)).collect();
                format!("columns {columns:?}")
            }
            Err(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
        };
        found.push_str(&format!("{name}: {line}\n"));
    }
    expect![[r#"
        any order: columns [Some(2), Some(1), Some(0)]
        another name, by position: columns [Some(0), Some(1), Some(2)]
        update time: columns [Some(0), Some(1), Some(2)]
        missing: the query does not fit the sink: the sink has no column for n
        extra: the query does not fit the sink: the query gives nothing for more
        another type: the query does not fit the sink: host is Utf8, and the sink's host is Boolean
        coarser time: the query does not fit the sink: the sink's time index w is in a coarser unit (Timestamp(s)) than w (Timestamp(ms)), so windows would fall together
        another name and place: the query does not fit the sink: the sink has no column for host, and the query gives nothing for place
    "#]].assert_eq(&found);
}

//! Random batches through random flows: whatever happens to the source, every sink equals its query.
//!
//! The oracle is the plain query, run over all rows by DataFusion. Batches are late, repeat instants, hold nulls and
//! NaN, or nothing; rows are deleted and replaced; rows of the sink are changed behind the flow's back.

mod common;

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray, TimestampMillisecondArray, TimestampSecondArray,
};
use arrow::datatypes::TimeUnit;
use common::{Fixture, Kind, assert_exact, engine, run};
use datafusion::physical_plan::memory::MemoryStream;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use windrow::Engine;
use windrow::table::{Commit, Write};

const WINDOWS: &[&str] = &[
    "date_bin(INTERVAL '1 hour', ts)",
    "date_bin(INTERVAL '7 seconds', ts)",
    "date_bin(INTERVAL '90 minutes', ts, TIMESTAMP '2001-02-03T04:05:06')",
    "date_bin(INTERVAL '1 month', ts)",
    "date_trunc('day', ts)",
    "date_trunc('week', ts)",
    "date_trunc('month', ts)",
    "date_trunc('quarter', ts)",
    "date_trunc('year', ts)",
    "date_bin(INTERVAL '1 day', ts) + INTERVAL '1 day'",
    "date_bin(INTERVAL '15 minutes', ts + INTERVAL '5 minutes')",
    "ts",
    "date_bin(INTERVAL '1 month', ts, TIMESTAMP '2000-01-31T10:00:00')",
    "date_trunc('day', ts AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York')",
    "date_trunc('hour', ts AT TIME ZONE 'UTC' AT TIME ZONE 'Australia/Lord_Howe')",
    // Clocks put back at one minute past midnight: some windows hold instants of several values.
    "date_trunc('day', ts AT TIME ZONE 'UTC' AT TIME ZONE 'America/St_Johns')",
    "date_trunc('week', ts AT TIME ZONE '+05:45')",
    "to_timestamp_seconds(to_unixtime(ts) / 600 * 600)",
];

/// Aggregates whose values can be merged.
const MERGED: &[&str] = &[
    "count(*) AS n",
    "count(v) AS n_v",
    "sum(v) AS sum_v",
    "sum(v) FILTER (WHERE b) AS sum_if_b",
    "min(v) AS min_v",
    "max(v) AS max_v",
    "min(x) AS min_x",
    "max(x) AS max_x",
    "sum(d) AS sum_d",
    "min(s) AS first_s",
    "max(s) AS last_s",
    "bool_and(b) AS all_b",
    "bool_or(b) AS any_b",
    "bit_xor(v) AS bits",
    "sum(x) AS sum_x",
];

/// Aggregates and expressions for which windows are recomputed.
const RECOMPUTED: &[&str] = &[
    "avg(x) AS avg_x",
    "count(DISTINCT v) AS distinct_v",
    "sum(v) + count(*) AS sum_and_count",
    "stddev_samp(v) AS spread",
];

#[derive(Debug, Clone)]
struct FlowShape {
    window: &'static str,
    keys: Vec<&'static str>,
    merged: Vec<&'static str>,
    recomputed: Vec<&'static str>,
    filter: &'static str,
    having: &'static str,
    subquery: bool,
    refresh: &'static str,
}

impl FlowShape {
    fn sql(&self, name: &str) -> String {
        let mut columns = vec![format!("{} AS \"The Window\"", self.window)];
        columns.extend(self.keys.iter().map(ToString::to_string));
        columns.extend(self.merged.iter().chain(&self.recomputed).map(ToString::to_string));
        let from =
            if self.subquery { format!("(SELECT * FROM src {}) q", self.filter) } else { "src".into() };
        let filter = if self.subquery { "" } else { self.filter };
        let group: Vec<String> = (1..=1 + self.keys.len()).map(|position| position.to_string()).collect();
        format!(
            "CREATE FLOW {name} SINK TO {name}_sink \
             WITH ('refresh' = '{}', 'windows_per_query' = '5', 'max_filters_per_query' = '3') \
             AS SELECT {} FROM {from} {filter} GROUP BY {} {}",
            self.refresh,
            columns.join(", "),
            group.join(", "),
            self.having
        )
    }
}

fn flow_shape() -> impl Strategy<Value = FlowShape> {
    let columns = (
        select(WINDOWS),
        subsequence(vec!["host", "zone"], 0..=2),
        subsequence(MERGED.to_vec(), 0..=6),
        prop_oneof![3 => Just(vec![]), 1 => subsequence(RECOMPUTED.to_vec(), 1..=2)],
    );
    let rest = (
        select(vec!["", "", "WHERE v > 0", "WHERE host IS NOT NULL OR b"]),
        prop_oneof![4 => Just(""), 1 => Just("HAVING count(*) > 1")],
        any::<bool>(),
        select(vec!["auto", "auto", "recompute"]),
    );
    (columns, rest).prop_map(|((window, keys, merged, recomputed), (filter, having, subquery, refresh))| {
        FlowShape { window, keys, merged, recomputed, filter, having, subquery, refresh }
    })
}

#[derive(Debug, Clone)]
struct Row {
    /// Seconds since 1970.
    at: i64,
    host: Option<&'static str>,
    zone: Option<i64>,
    v: Option<i64>,
    x: Option<f64>,
    b: Option<bool>,
}

fn row() -> impl Strategy<Value = Row> {
    // Around a few places in time, so that windows are hit again: now, the epoch, 1900 and 2200, a leap day, clocks being
    // put back in New York and in St John's.
    let place = select(vec![
        1_700_000_000_i64,
        1_700_000_000,
        1_700_000_000,
        0,
        -2_208_988_800,
        7_258_118_400,
        951_782_400,
        1_383_458_400,
        1_257_042_660,
    ]);
    let offset = prop_oneof![4 => -20..20_i64, 2 => -20_000..20_000_i64, 1 => -5_000_000..5_000_000_i64];
    (
        (place, offset),
        select(vec![None, Some("a"), Some("b"), Some("ü \"q\"")]),
        prop::option::of(0..3_i64),
        prop::option::of(prop_oneof![5 => -100..100_i64, 1 => Just(1_i64 << 60)]),
        prop::option::of(prop_oneof![5 => (-1000..1000_i64).prop_map(|n| n as f64 / 8.0), 1 => Just(0.0)]),
        any::<Option<bool>>(),
    )
        .prop_map(|((place, offset), host, zone, v, x, b)| Row {
            at: place + offset,
            host,
            zone,
            v,
            x,
            b,
        })
}

#[derive(Debug, Clone)]
enum Step {
    Insert(Vec<Row>),
    DeleteHost(&'static str),
    DeleteBefore(i64),
    /// Several commits before the flows are refreshed.
    InsertTwice(Vec<Row>, Vec<Row>),
    /// Someone else removes rows of the first flow's sink.
    Tamper,
}

fn step() -> impl Strategy<Value = Step> {
    let rows = || prop::collection::vec(row(), 0..12);
    prop_oneof![
        6 => rows().prop_map(Step::Insert),
        2 => (rows(), rows()).prop_map(|(first, second)| Step::InsertTwice(first, second)),
        1 => select(vec!["host = 'a'", "host IS NULL", "v < 0"]).prop_map(Step::DeleteHost),
        1 => (1_699_990_000..1_700_010_000_i64).prop_map(Step::DeleteBefore),
        1 => Just(Step::Tamper),
    ]
}

#[derive(Debug, Clone)]
struct Case {
    digits: u8,
    keyed: bool,
    flows: Vec<FlowShape>,
    steps: Vec<Step>,
}

fn case() -> impl Strategy<Value = Case> {
    let flows = prop::collection::vec(flow_shape(), 1..=2);
    let steps = prop::collection::vec(step(), 1..7);
    (select(vec![0_u8, 3, 6]), prop::bool::weighted(0.3), flows, steps)
        .prop_map(|(digits, keyed, flows, steps)| Case { digits, keyed, flows, steps })
}

async fn insert(engine: &Engine, rows: &[Row]) {
    let table = engine.table("src").expect("the source");
    let spec = table.spec();
    let times = |scale: i64| rows.iter().map(move |row| row.at * scale).collect::<Vec<_>>();
    let ts: ArrayRef = match spec.time_unit().map(TimeUnit::from) {
        Some(TimeUnit::Second) => Arc::new(TimestampSecondArray::from(times(1))),
        Some(TimeUnit::Millisecond) => Arc::new(TimestampMillisecondArray::from(times(1_000))),
        _ => Arc::new(TimestampMicrosecondArray::from(times(1_000_000))),
    };
    let d = rows.iter().map(|row| row.v.map(|v| i128::from(v % 10_000))).collect::<Decimal128Array>();
    let s = rows.iter().map(|row| row.host.map(|host| format!("{host}{}", row.at % 5)));
    let columns: Vec<ArrayRef> = vec![
        ts,
        Arc::new(rows.iter().map(|row| row.host).collect::<StringArray>()),
        Arc::new(rows.iter().map(|row| row.zone).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| row.v).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| row.x).collect::<Float64Array>()),
        Arc::new(rows.iter().map(|row| row.b).collect::<BooleanArray>()),
        Arc::new(d.with_precision_and_scale(12, 2).expect("it fits")),
        Arc::new(s.collect::<StringArray>()),
    ];
    let batch = RecordBatch::try_new(Arc::clone(spec.schema()), columns).expect("rows");
    let rows =
        Box::pin(MemoryStream::try_new(vec![batch], Arc::clone(spec.schema()), None).expect("a stream"));
    let write = spec.row_key().map_or(Write::Append, |key| Write::Upsert { key });
    table.commit(Commit { write, rows, progress: None, expected: None }).await.expect("a commit");
}

async fn every_sink_equals_its_query(kind: Kind, case: &Case) {
    let Fixture { engine, dir } = engine(kind).await;
    let key = if case.keyed { ", PRIMARY KEY (host, zone)" } else { "" };
    run(
        &engine,
        &format!(
            "CREATE TABLE src (ts TIMESTAMP({}) TIME INDEX, host STRING, zone BIGINT, v BIGINT, x DOUBLE, b BOOLEAN, \
             d DECIMAL(12, 2), s STRING{key})",
            case.digits
        ),
    )
    .await;
    // The second flow is created when there are rows already.
    run(&engine, &case.flows[0].sql("f0")).await;
    for (number, step) in case.steps.iter().enumerate() {
        match step {
            Step::Insert(rows) => insert(&engine, rows).await,
            Step::InsertTwice(first, second) => {
                insert(&engine, first).await;
                insert(&engine, second).await;
            }
            Step::DeleteHost(condition) => {
                drop(run(&engine, &format!("DELETE FROM src WHERE {condition}")).await)
            }
            Step::DeleteBefore(at) => {
                drop(run(&engine, &format!("DELETE FROM src WHERE ts < to_timestamp_seconds({at})")).await);
            }
            Step::Tamper => {
                drop(run(&engine, "DELETE FROM f0_sink WHERE \"The Window\" > '2000-01-01'").await)
            }
        }
        if number == 0 && case.flows.len() > 1 {
            run(&engine, &case.flows[1].sql("f1")).await;
        }
        engine.refresh_until_idle().await.unwrap_or_else(|error| panic!("{error}"));
        for flow in 0..case.flows.len() {
            assert_exact(&engine, &format!("f{flow}"), &format!("after step {number}, {step:?}")).await;
        }
    }
    drop(dir);
}

fn check(kind: Kind, case: &Case) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(every_sink_equals_its_query(kind, case));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]
    #[test]
    fn every_sink_in_memory_equals_its_query(case in case()) {
        check(Kind::Memory, &case);
    }
}

#[cfg(feature = "delta")]
proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 50, ..ProptestConfig::default() })]
    #[test]
    fn every_delta_sink_equals_its_query(case in case()) {
        check(Kind::Delta, &case);
    }
}

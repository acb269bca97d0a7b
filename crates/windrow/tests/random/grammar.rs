//! Random queries, and random histories of the table that they read, as SQL.
#![allow(unreachable_pub)]

use std::fmt;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::common::Kind;

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

const KEYS: &[&str] = &["host", "zone", "b", "v % 3", "coalesce(host, '-')", "upper(s)", "d", "x > 0"];

/// Keys of types that a Delta table has no keys of.
const MEMORY_KEYS: &[&str] = &[
    "named_struct('h', host, 'z', zone)",
    "arrow_cast(host, 'Dictionary(Int32, Utf8)')",
    "arrow_cast(s, 'Utf8View')",
    "arrow_cast(zone, 'Duration(Second)')",
];

const INTEGERS: &[&str] = &[
    "count(*)",
    "count(1)",
    "count(v)",
    "sum(v)",
    "min(v)",
    "max(v)",
    "bit_xor(v)",
    "bit_and(v)",
    "count(DISTINCT v)",
    "sum(DISTINCT v)",
    "count(DISTINCT s)",
    "sum(v) FILTER (WHERE b)",
    "count(*) FILTER (WHERE v > 0)",
    "first_value(v ORDER BY v, s)",
    "nth_value(v, 2 ORDER BY v DESC)",
];

const FLOATS: &[&str] = &[
    "sum(x)",
    "avg(x)",
    "avg(v)",
    "min(x)",
    "max(x)",
    "avg(x) FILTER (WHERE host = 'a')",
    "avg(DISTINCT v)",
    "median(x)",
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY x)",
];

const OTHERS: &[&str] = &[
    "min(s)",
    "max(s)",
    "sum(d)",
    "avg(d)",
    "max(d)",
    "bool_and(b)",
    "bool_or(b)",
    "max(ts)",
    "var_pop(v)",
    "covar_pop(x, v)",
    "approx_distinct(s)",
    "regr_count(x, v)",
    "string_agg(s, ',' ORDER BY s)",
    "array_agg(v ORDER BY v)",
    "last_value(s ORDER BY v, s)",
];

/// Aggregates with results that a Delta table cannot store.
const MEMORY_AGGREGATES: &[&str] =
    &["max(ts) - min(ts)", "min(arrow_cast(v, 'Duration(Second)'))", "max(arrow_cast(s, 'Utf8View'))"];

const FILTERS: &[&str] =
    &["", "", "", "WHERE v > 0", "WHERE host IS NOT NULL OR b", "WHERE s LIKE 'a%'", "WHERE v % 7 <> 0"];

const HAVINGS: &[&str] = &["", "", "", "", "HAVING count(*) > 1", "HAVING sum(v) > 0", "HAVING min(s) < 'b'"];

/// A flow's query.
#[derive(Debug, Clone)]
pub struct Query {
    columns: Vec<String>,
    filter: &'static str,
    subquery: bool,
    grouping: Grouping,
    refresh: &'static str,
    max_state_bytes: Option<u32>,
}

#[derive(Debug, Clone)]
enum Grouping {
    /// By the first columns, so many.
    By(usize, &'static str),
    Distinct,
    None,
}

impl Query {
    pub fn sql(&self) -> String {
        let (filter, from) = match self.subquery {
            true => ("", format!("(SELECT * FROM src {}) \"Q.q\"", self.filter)),
            false => (self.filter, "src".to_owned()),
        };
        let distinct = if matches!(self.grouping, Grouping::Distinct) { "DISTINCT " } else { "" };
        let mut sql = format!("SELECT {distinct}{} FROM {from} {filter}", self.columns.join(", "));
        if let Grouping::By(keys, having) = self.grouping {
            let keys: Vec<String> = (1..=keys).map(|key| key.to_string()).collect();
            sql.push_str(&format!(" GROUP BY {} {having}", keys.join(", ")));
        }
        sql
    }

    fn create(&self) -> String {
        let limit = self.max_state_bytes.map(|limit| format!(", 'max_state_bytes' = '{limit}'"));
        format!(
            "CREATE FLOW f SINK TO sink WITH ('refresh' = '{}', 'windows_per_query' = '5', \
             'max_filters_per_query' = '3'{}) AS {}",
            self.refresh,
            limit.unwrap_or_default(),
            self.sql()
        )
    }
}

fn output(kind: Kind) -> impl Strategy<Value = String> {
    let integer = || select(INTEGERS);
    let float = || select(FLOATS);
    let in_memory = matches!(kind, Kind::Memory);
    let others: Vec<&str> =
        OTHERS.iter().chain(MEMORY_AGGREGATES.iter().filter(|_| in_memory)).copied().collect();
    prop_oneof![
        6 => integer().prop_map(str::to_owned),
        4 => float().prop_map(str::to_owned),
        4 => select(others).prop_map(str::to_owned),
        1 => (integer(), integer()).prop_map(|(a, b)| format!("{a} + {b}")),
        1 => (integer(), integer()).prop_map(|(a, b)| format!("CASE WHEN {a} > 1 THEN {b} END")),
        1 => integer().prop_map(|a| format!("coalesce({a}, -1) * 2")),
        1 => integer().prop_map(|a| format!("CAST({a} AS VARCHAR)")),
        1 => (float(), integer()).prop_map(|(a, b)| format!("{a} / {b}")),
        1 => float().prop_map(|a| format!("round({a}, 2)")),
        1 => select(vec!["1", "'x'", "NULL", "sum(100 / w)", "count(*) > 2"]).prop_map(str::to_owned),
    ]
}

fn grouped(kind: Kind) -> impl Strategy<Value = Query> {
    let in_memory = matches!(kind, Kind::Memory);
    let keys: Vec<&str> = KEYS.iter().chain(MEMORY_KEYS.iter().filter(|_| in_memory)).copied().collect();
    let columns = (select(WINDOWS), subsequence(keys, 0..=2), prop::collection::vec(output(kind), 0..5));
    let rest = (select(FILTERS), select(HAVINGS), any::<bool>());
    let refresh =
        (select(vec!["auto", "merge", "merge", "recompute"]), prop::option::weighted(0.1, 10..60_u32));
    (columns, rest, refresh).prop_map(
        |((window, keys, outputs), (filter, having, subquery), (refresh, max_state_bytes))| {
            let mut columns = vec![format!("{window} AS \"The Window\"")];
            columns.extend(keys.iter().enumerate().map(|(index, key)| format!("{key} AS \"k.{index}\"")));
            let by = columns.len();
            columns.extend(outputs.iter().enumerate().map(|(index, output)| format!("{output} AS o{index}")));
            // What cannot be merged must not be asked to.
            let refresh = if having.is_empty() { refresh } else { "auto" };
            Query { columns, filter, subquery, grouping: Grouping::By(by, having), refresh, max_state_bytes }
        },
    )
}

fn selecting(kind: Kind) -> impl Strategy<Value = Query> {
    let all = vec!["host", "zone + 1", "v * 2", "x", "d", "upper(s)", "b", "CASE WHEN b THEN s END"];
    let columns = (prop::option::weighted(0.8, select(WINDOWS)), subsequence(all, 1..5), any::<bool>());
    let refresh = select(vec!["auto", "merge", "recompute"]);
    (columns, select(FILTERS), any::<bool>(), refresh).prop_map(
        move |((window, outputs, distinct), filter, subquery, refresh)| {
            let window = window.or((distinct || !matches!(kind, Kind::Memory)).then_some("ts"));
            let mut columns: Vec<String> = window.iter().map(|window| format!("{window} AS w")).collect();
            columns.extend(outputs.iter().enumerate().map(|(index, output)| format!("{output} AS o{index}")));
            let grouping = if distinct { Grouping::Distinct } else { Grouping::None };
            Query { columns, filter, subquery, grouping, refresh, max_state_bytes: None }
        },
    )
}

/// A row of the source.
#[derive(Debug, Clone)]
pub struct Row {
    /// Seconds since 1970.
    at: i64,
    host: Option<&'static str>,
    zone: Option<i64>,
    v: Option<i64>,
    x: Option<f64>,
    b: Option<bool>,
}

impl Row {
    fn sql(&self, scale: i64) -> String {
        fn or_null<T: ToString>(value: Option<T>) -> String {
            value.map_or_else(|| "NULL".to_owned(), |value| value.to_string())
        }
        let text = |text: String| format!("'{text}'");
        format!(
            "({}, {}, {}, {}, {}, {}, {}, {}, {})",
            self.at * scale,
            or_null(self.host.map(|host| text(host.to_owned()))),
            or_null(self.zone),
            or_null(self.v),
            or_null(self.x.map(|x| format!("{x:?}"))),
            or_null(self.b),
            or_null(self.v.map(|v| format!("{}.{:02}", v % 100, self.at.rem_euclid(100)))),
            or_null(self.host.map(|host| text(format!("{host}{}", self.at.rem_euclid(5))))),
            self.at.rem_euclid(3) + 1,
        )
    }
}

fn row() -> impl Strategy<Value = Row> {
    // Around a few places in time, so that windows are hit again: now, the epoch, 1900 and 2200, a leap day, clocks being
    // put back in New York and in St John's.
    let place = select(vec![
        1_700_000_000_i64,
        1_700_000_000,
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
        prop::option::of(-100..100_i64),
        // Sums of eighths are exact, in any order.
        prop::option::of((-1000..1000_i64).prop_map(|n| n as f64 / 8.0)),
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

/// Where a refresh goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Before anything is done.
    Before,
    /// After the commit, so that its answer is lost.
    AfterCommit,
}

/// What happens to the table, or is done about it.
#[derive(Debug, Clone)]
pub enum Step {
    Insert(Vec<Row>),
    DeleteBefore(i64),
    /// A statement on the source.
    Source(&'static str),
    /// A statement on the sink.
    Sink(&'static str),
    Refresh,
    FailingRefresh(Fault),
    /// A row that some queries cannot be computed over, a refresh, and the row's end.
    Poison(i64),
}

/// What is done, in turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Sql(String),
    Refresh,
    FailingRefresh(Option<Fault>),
}

impl Step {
    fn actions(&self, scale: i64) -> Vec<Action> {
        let sql = |text: String| vec![Action::Sql(text)];
        match self {
            Self::Insert(rows) => {
                let rows: Vec<String> = rows.iter().map(|row| row.sql(scale)).collect();
                sql(format!("INSERT INTO src VALUES {}", rows.join(", ")))
            }
            Self::DeleteBefore(at) => sql(format!("DELETE FROM src WHERE ts < to_timestamp_seconds({at})")),
            Self::Source(text) | Self::Sink(text) => sql((*text).to_owned()),
            Self::Refresh => vec![Action::Refresh],
            Self::FailingRefresh(fault) => vec![Action::FailingRefresh(Some(*fault))],
            Self::Poison(at) => vec![
                Action::Sql(format!(
                    "INSERT INTO src (ts, host, v, w) VALUES ({}, 'poison', 1, 0)",
                    at * scale
                )),
                Action::FailingRefresh(None),
                Action::Sql("DELETE FROM src WHERE w = 0".into()),
            ],
        }
    }

    fn needs_flow(&self) -> bool {
        matches!(self, Self::Sink(_) | Self::Refresh | Self::FailingRefresh(_))
    }
}

fn step() -> impl Strategy<Value = Step> {
    let near = || 1_699_999_980..1_700_000_020_i64;
    prop_oneof![
        8 => prop::collection::vec(row(), 1..9).prop_map(Step::Insert),
        6 => Just(Step::Refresh),
        1 => select(vec![
            "DELETE FROM src WHERE host = 'a'",
            "DELETE FROM src WHERE host IS NULL",
            "DELETE FROM src WHERE v < 0",
            "DELETE FROM src WHERE b",
            "DELETE FROM src",
        ]).prop_map(Step::Source),
        1 => near().prop_map(Step::DeleteBefore),
        1 => Just(Step::Source("ADMIN COMPACT_TABLE('src')")),
        1 => Just(Step::Sink("ADMIN COMPACT_TABLE('sink')")),
        1 => Just(Step::Sink("DELETE FROM sink WHERE update_at IS NOT NULL")),
        2 => select(vec![Fault::Before, Fault::AfterCommit]).prop_map(Step::FailingRefresh),
        1 => near().prop_map(Step::Poison),
    ]
}

/// A flow and what happens to it.
#[derive(Clone)]
pub struct Case {
    digits: u8,
    keyed: bool,
    query: Query,
    /// So many steps are before the flow is created.
    head_start: usize,
    steps: Vec<Step>,
}

impl Case {
    /// All that is done, to the last refresh.
    pub fn actions(&self) -> Vec<Action> {
        let scale = 10_i64.pow(self.digits.into());
        let mut actions = vec![Action::Sql(self.create_table())];
        let (before, after) = self.steps.split_at(self.head_start.min(self.steps.len()));
        let without_flow = before.iter().filter(|step| !step.needs_flow());
        actions.extend(without_flow.flat_map(|step| step.actions(scale)).filter(|action| {
            // There is nothing to be refreshed yet.
            !matches!(action, Action::FailingRefresh(_))
        }));
        actions.push(Action::Sql(self.query.create()));
        actions.extend(after.iter().flat_map(|step| step.actions(scale)));
        actions.push(Action::Refresh);
        actions
    }

    fn create_table(&self) -> String {
        let (key, mode) = match self.keyed {
            true => (", PRIMARY KEY (host, zone)", ""),
            false => ("", " WITH ('append_mode' = 'true')"),
        };
        format!(
            "CREATE TABLE src (ts TIMESTAMP({}) TIME INDEX, host STRING, zone BIGINT, v BIGINT, x DOUBLE, b BOOLEAN, \
             d DECIMAL(12, 2), s STRING, w BIGINT{key}){mode}",
            self.digits
        )
    }
}

/// The case as a script that `windrow run --manual` runs.
impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n-- windrow run --manual FILE")?;
        for action in self.actions() {
            match action {
                Action::Sql(sql) => writeln!(f, "{sql};")?,
                Action::Refresh => writeln!(f, "ADMIN FLUSH_FLOW('f');\nADMIN CHECK_FLOW('f');")?,
                Action::FailingRefresh(Some(fault)) => writeln!(f, "-- a refresh fails here: {fault:?}")?,
                Action::FailingRefresh(None) => writeln!(f, "-- a refresh may fail here")?,
            }
        }
        Ok(())
    }
}

/// Any case for tables of this kind.
pub fn case(kind: Kind) -> impl Strategy<Value = Case> {
    let digits: Vec<u8> = if matches!(kind, Kind::Memory) { vec![0, 3, 6, 9] } else { vec![0, 3, 6] };
    let query = prop_oneof![4 => grouped(kind).boxed(), 1 => selecting(kind).boxed()];
    let steps = prop::collection::vec(step(), 2..9);
    (select(digits), prop::bool::weighted(0.3), query, 0..3_usize, steps).prop_map(
        |(digits, keyed, query, head_start, steps)| Case { digits, keyed, query, head_start, steps },
    )
}

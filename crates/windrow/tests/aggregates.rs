//! Every aggregate function there is, merged, against the plain query; and the table of them in `docs/aggregates.md`.

mod common;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use common::{Fixture, KINDS, Kind, assert_exact, engine, run, table};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use expect_test::expect_file;
use windrow::Engine;
use windrow::plan::{Kept, Merge};

/// Calls of each function; each stands for the way in which it is kept.
const CALLS: &[&str] = &[
    "any_value(v)",
    "approx_distinct(v)",
    "approx_distinct(s)",
    "approx_median(x)",
    "approx_percentile_cont(0.9) WITHIN GROUP (ORDER BY x)",
    "approx_percentile_cont_with_weight(v, 0.5) WITHIN GROUP (ORDER BY x)",
    "array_agg(v)",
    "array_agg(v ORDER BY v, x)",
    "array_agg(DISTINCT v ORDER BY v)",
    "avg(v)",
    "avg(d)",
    "avg(DISTINCT v)",
    "bit_and(v)",
    "bit_or(v)",
    "bit_xor(v)",
    "bit_xor(DISTINCT v)",
    "bool_and(b)",
    "bool_or(b)",
    "corr(x, y)",
    "count(*)",
    "count(1)",
    "count(v)",
    "count(v, x)",
    "count(DISTINCT v)",
    "count(DISTINCT s)",
    "count(DISTINCT b)",
    "covar_pop(x, y)",
    "covar_samp(x, y)",
    "first_value(v)",
    "first_value(v ORDER BY x, v)",
    "first_value(s ORDER BY x DESC, s)",
    "first_value(v ORDER BY x, v) IGNORE NULLS",
    "last_value(v)",
    "last_value(v ORDER BY x, v)",
    "max(v)",
    "max(s)",
    "max(DISTINCT d)",
    "median(v)",
    "median(DISTINCT x)",
    "min(v)",
    "min(b)",
    "min(s)",
    "nth_value(v, 2)",
    "nth_value(v, 2 ORDER BY x, v)",
    "percentile_cont(0.25) WITHIN GROUP (ORDER BY x)",
    "regr_avgx(y, x)",
    "regr_avgy(y, x)",
    "regr_count(y, x)",
    "regr_intercept(y, x)",
    "regr_r2(y, x)",
    "regr_slope(y, x)",
    "regr_sxx(y, x)",
    "regr_sxy(y, x)",
    "regr_syy(y, x)",
    "stddev(x)",
    "stddev_pop(x)",
    "string_agg(s, ',')",
    "string_agg(s, ',' ORDER BY s)",
    "string_agg(DISTINCT s, ',' ORDER BY s)",
    "sum(v)",
    "sum(x)",
    "sum(d)",
    "sum(DISTINCT v)",
    "var_pop(x)",
    "var(x)",
];

/// `grouping` says which grouping set a row is of; it has none of its own.
const IN_GROUPING_SETS: &str = "grouping";

async fn source(engine: &Engine) {
    run(
        engine,
        "CREATE TABLE src (ts TIMESTAMP(3) TIME INDEX, k STRING, v BIGINT, x DOUBLE, y DOUBLE, d DECIMAL(12, 2),
           s STRING, b BOOLEAN) WITH ('append_mode' = 'true')",
    )
    .await;
}

/// Rows of one batch: three windows, three keys, all kinds of values.
async fn insert(engine: &Engine, batch: i64) {
    let mut sql = String::from("INSERT INTO src VALUES ");
    for row in 0..24_i64 {
        let number = batch * 31 + row * 7;
        let text = |value: String, missing: bool| if missing { "NULL".to_owned() } else { value };
        let _ = write!(
            sql,
            "{}('2024-01-0{}T0{}:00:00', {}, {}, {}, {}, {}, {}, {})",
            if row == 0 { "" } else { ", " },
            1 + row % 3,
            number % 10,
            text(format!("'k{}'", number % 2), number % 5 == 0),
            text((number % 13 - 6).to_string(), number % 11 == 0),
            text(format!("{:.3}", (number * 37 % 101) as f64 / 8.0 - 5.0), number % 17 == 0),
            text(format!("{:.3}", (number * 53 % 89) as f64 / 4.0), number % 19 == 0),
            text(format!("{}.{:02}", number % 23, number % 100), number % 7 == 0),
            text(format!("'s{} ü'", number % 6), number % 13 == 0),
            text((number % 3 == 0).to_string(), number % 4 == 0),
        );
    }
    run(engine, &sql).await;
}

fn flow_of(call: &str, name: usize, refresh: &str) -> String {
    format!(
        "CREATE FLOW f{name} SINK TO t{name} WITH ('refresh' = '{refresh}') AS
           SELECT date_trunc('day', ts) AS w, k, {call} AS a FROM src GROUP BY 1, 2"
    )
}

/// What is kept of the one call of the flow, or why nothing is.
fn kept(engine: &Engine, flow: usize) -> std::result::Result<String, String> {
    let flow = engine.flow(&format!("f{flow}")).expect("the flow");
    match &flow.definition().merge {
        Ok(merge @ Merge::Groups(_)) => Ok(match merge.calls().as_slice() {
            [call] => match &call.kept {
                Kept::Value { .. } => "direct".to_owned(),
                Kept::State { types, .. } => {
                    let types: Vec<_> = types.iter().map(ToString::to_string).collect();
                    format!("state | {}", types.join(", ").replace('|', "\\|"))
                }
            },
            calls => panic!("one call, not {calls:?}"),
        }),
        Ok(Merge::Append) => panic!("the query has groups"),
        Err(reasons) => Err(reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}

/// What has one right value is what the check says; of several right ones, it is one.
async fn assert_right(engine: &Engine, call: &str, flow: usize, when: &str) {
    assert_exact(engine, &format!("f{flow}"), &format!("{call}, {when}")).await;
    let same_group = format!("t{flow}.w = q.w AND coalesce(t{flow}.k, '') = coalesce(q.k, '')");
    let ordered = call.contains("ORDER BY");
    let wrong = match call.split('(').next().unwrap_or_default() {
        "approx_median" | "approx_percentile_cont" | "approx_percentile_cont_with_weight" => {
            format!("(t{flow}.a IS NULL) <> (q.a IS NULL) OR abs(t{flow}.a - q.a) > 1.0")
        }
        "array_agg" if !ordered => format!("array_sort(t{flow}.a) <> array_sort(q.a)"),
        "string_agg" if !ordered => format!("length(t{flow}.a) <> length(q.a)"),
        "any_value" | "first_value" | "last_value" | "nth_value" if !ordered => {
            format!("t{flow}.a IS NOT NULL AND NOT array_has(q.a, t{flow}.a)")
        }
        _ => return,
    };
    let call = if wrong.contains("array_has") { "array_agg(v)" } else { call };
    let query = format!(
        "SELECT count(*) FROM t{flow} JOIN (SELECT date_trunc('day', ts) AS w, k, {call} AS a FROM src GROUP BY 1, 2) q
           ON {same_group} WHERE {wrong}"
    );
    assert_eq!(common::number(engine, &query).await, 0, "{call}, {when}");
}

#[tokio::test]
async fn every_aggregate_merges_or_says_why_not() {
    for &kind in KINDS {
        let Fixture { engine, dir } = engine(kind).await;
        source(&engine).await;
        let mut found = String::from(
            "# Aggregate functions, and how they are merged\n\n\
             Written by `crates/windrow/tests/aggregates.rs`, which merges each of these calls and compares the result \
             with the plain query. *direct*: the value in the sink says all that merging needs. *state*: the sink has a \
             hidden column with DataFusion's partial state of these types. *recompute*: windows are recomputed, for the \
             reason given. Functions that users register are merged by their `state_fields`.\n\n\
             | call | kept | state or reason |\n|---|---|---|\n",
        );
        let mut functions = BTreeSet::new();
        for (flow, call) in CALLS.iter().enumerate() {
            run(&engine, &flow_of(call, flow, "auto")).await;
            functions.extend(call.split('(').next().map(str::to_owned));
            match kept(&engine, flow) {
                Ok(kept) if kept == "direct" => _ = writeln!(found, "| `{call}` | direct | |"),
                Ok(kept) => _ = writeln!(found, "| `{call}` | {kept} |"),
                Err(reason) => _ = writeln!(found, "| `{call}` | recompute | {reason} |"),
            }
            // Where it can be merged, it has to be.
            if kept(&engine, flow).is_ok() {
                run(&engine, &format!("DROP FLOW f{flow}; DROP TABLE t{flow}")).await;
                run(&engine, &flow_of(call, flow, "merge")).await;
            }
        }
        let grouping = "SELECT ts AS w, k, grouping(k) AS a FROM src GROUP BY GROUPING SETS ((ts, k), (ts))";
        let refused = common::fails(&engine, &format!("CREATE FLOW g SINK TO tg AS {grouping}")).await;
        assert!(refused.contains("grouping sets"), "{refused}");
        _ = writeln!(
            found,
            "| `grouping(k)` | recompute | it says which grouping set a row is of, and a query with these has no time window |"
        );
        functions.insert(IN_GROUPING_SETS.to_owned());

        for batch in 0..3 {
            insert(&engine, batch).await;
            let reports = engine.refresh_until_idle().await.expect("refreshes");
            for (flow, call) in CALLS.iter().enumerate() {
                let moves: Vec<_> =
                    reports.iter().filter(|report| report.flow == format!("f{flow}")).collect();
                let expected = if kept(&engine, flow).is_ok() && batch > 0 { "merge" } else { "repair" };
                assert_eq!(
                    moves.last().map(|report| report.kind.as_str()),
                    Some(expected),
                    "{call} {kind:?}"
                );
                assert_right(&engine, call, flow, &format!("batch {batch} {kind:?}")).await;
            }
        }
        if matches!(kind, Kind::Memory) {
            let registered: BTreeSet<String> =
                datafusion::functions_aggregate::all_default_aggregate_functions()
                    .iter()
                    .map(|function| function.name().to_owned())
                    .collect();
            // Some are called by another of their names here.
            let known: BTreeSet<String> = functions.iter().map(|name| name_of(&engine, name)).collect();
            assert_eq!(known, registered, "the table names every function");
            expect_file!["../../../docs/aggregates.md"].assert_eq(&found);
        }
        drop(dir);
    }
}

fn name_of(engine: &Engine, called: &str) -> String {
    let state = engine.session().state();
    state.aggregate_functions().get(called).map(|function| function.name().to_owned()).unwrap_or_default()
}

/// The geometric mean: a function that nobody has told the engine anything about.
#[derive(Debug, PartialEq, Eq, Hash)]
struct GeometricMean(Signature);

impl AggregateUDFImpl for GeometricMean {
    fn name(&self) -> &str {
        "geo_mean"
    }
    fn signature(&self) -> &Signature {
        &self.0
    }
    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }
    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Logarithms { sum: 0.0, count: 0 }))
    }
    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(vec![
            Arc::new(Field::new(format!("{}[sum]", args.name), DataType::Float64, true)),
            Arc::new(Field::new(format!("{}[count]", args.name), DataType::UInt64, true)),
        ])
    }
}

#[derive(Debug)]
struct Logarithms {
    sum: f64,
    count: u64,
}

impl Accumulator for Logarithms {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for value in values[0].as_primitive::<Float64Type>().iter().flatten() {
            self.sum += value.ln();
            self.count += 1;
        }
        Ok(())
    }
    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let counts = states[1].as_primitive::<arrow::datatypes::UInt64Type>();
        for row in 0..counts.len() {
            self.sum += states[0].as_primitive::<Float64Type>().value(row);
            self.count += counts.value(row);
        }
        Ok(())
    }
    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::from(self.sum), ScalarValue::from(self.count)])
    }
    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mean = (self.count > 0).then(|| (self.sum / self.count as f64).exp());
        Ok(ScalarValue::from(mean))
    }
    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

#[tokio::test]
async fn a_function_that_a_user_registers_merges_by_its_state() {
    for &kind in KINDS {
        let Fixture { engine, dir } = engine(kind).await;
        let mean = GeometricMean(Signature::exact(vec![DataType::Float64], Volatility::Immutable));
        engine.session().register_udaf(AggregateUDF::from(mean));
        source(&engine).await;
        run(&engine, &flow_of("geo_mean(y + 1) FILTER (WHERE v > 0)", 0, "merge")).await;
        for batch in 0..3 {
            insert(&engine, batch).await;
            let reports = engine.refresh_until_idle().await.expect("refreshes");
            let expected = if batch > 0 { "merge" } else { "repair" };
            assert_eq!(reports.last().map(|report| report.kind.as_str()), Some(expected), "{kind:?}");
            assert_exact(&engine, "f0", "after a batch").await;
        }
        let explained = table(&engine, "EXPLAIN FLOW f0").await;
        assert!(explained.contains("__state_0"), "{explained}");
        drop(dir);
    }
}

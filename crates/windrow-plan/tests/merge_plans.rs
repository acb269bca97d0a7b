//! The plans of a merge are small: what they read, by what they join, and which columns go through them.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use expect_test::expect;
use windrow_plan::{
    Groups, Merge, SinkMatch, derive_sink, find_time_window, in_ranges, keep_values, limit_to_ranges,
    normalise,
};
use windrow_time::InstantRange;

fn empty(schema: SchemaRef) -> Arc<MemTable> {
    let rows = RecordBatch::new_empty(Arc::clone(&schema));
    Arc::new(MemTable::try_new(schema, vec![vec![rows]]).expect("a table"))
}

fn source() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("ts", DataType::Timestamp(TimeUnit::Millisecond, None), false),
        Field::new("host", DataType::Utf8, true),
        Field::new("a.b \"c\"", DataType::Float64, true),
        Field::new("v", DataType::Int64, true),
        Field::new("unused", DataType::Utf8, true),
    ]))
}

async fn planned(query: &str) -> (SessionContext, LogicalPlan) {
    let config = SessionConfig::new().with_target_partitions(2);
    let session = SessionContext::new_with_config(config);
    session.register_table("src", empty(source())).expect("a new name");
    let state = session.state();
    let plan = state.create_logical_plan(query).await.expect("a query");
    (session, normalise(plan, &state).expect("a plan"))
}

fn groups(plan: &LogicalPlan, session: &SessionContext) -> Groups {
    match Merge::analyse(plan, &session.state()).expect("a plan") {
        Ok(Merge::Groups(groups)) => groups,
        other => panic!("{other:?}"),
    }
}

async fn shown(session: &SessionContext, plan: &LogicalPlan) -> String {
    let physical = session.state().create_physical_plan(plan).await.expect("a physical plan");
    let mut shown = displayable(physical.as_ref()).indent(false).to_string();
    let mut waiting = vec![physical];
    while let Some(node) = waiting.pop() {
        if node.children().is_empty() {
            let schema = node.schema();
            let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
            shown.push_str(&format!("reads {}\n", columns.join(", ")));
        }
        waiting.extend(node.children().into_iter().cloned());
    }
    // When rows are written is another time each time.
    let digits = |word: &str| word.len() == 13 && word.bytes().all(|byte| byte.is_ascii_digit());
    let words = shown.split(' ').map(|word| if digits(word) { "NOW" } else { word });
    words.collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn a_merge_reads_new_rows_and_touched_windows_and_only_the_columns_it_needs() {
    let (session, plan) = planned(
        "SELECT date_bin(INTERVAL '1 hour', ts) AS w, host, sum(v) AS total, avg(\"a.b \"\"c\"\"\") AS mean,
           max(v) - min(v) AS span FROM src WHERE v > 0 GROUP BY 1, 2",
    )
    .await;
    let state = session.state();
    let window = find_time_window(&plan, &state, |_| Some("ts".into())).expect("a plan").expect("a window");
    let groups = groups(&plan, &session);
    let columns = derive_sink(&plan, Some(&window), Merge::Groups(groups.clone()).states());
    let matched = SinkMatch::new(plan.schema().as_arrow(), Some(&window), &columns, false).expect("a match");
    let sink = provider_as_source(empty(Arc::clone(&columns.schema)));
    let hour = [InstantRange::new(3_600_000, 7_200_000)];
    let rows = LogicalPlanBuilder::scan("sink", sink, None).expect("a scan");
    let column = datafusion::common::Column::new(Some("sink"), "w");
    let touched = in_ranges(column, columns.schema.field(0).data_type(), &hour).expect("a condition");
    let rows = rows.filter(touched).expect("a filter").build().expect("a plan");
    let all = [InstantRange::new(0, i64::MAX)];
    let merged = groups.merged("ts", &all, rows, &matched, 1000).expect("a plan");
    let merged = matched.align(merged).expect("the sink's columns");
    // One hash aggregate by all keys puts both sides together; of `src` and `sink`, `unused` and `update_at` are not read.
    expect![[r#"
        ProjectionExec: expr=[key_0@0 as w, key_1@1 as host, call_0@2 as total, finish(avg)(call_1@3) as mean, finish(max)(call_2@4) - finish(min)(call_3@5) as span, NOW as update_at, encode(avg)(call_1@3) as __state_0, encode(max)(call_2@4) as __state_1, encode(min)(call_3@5) as __state_2]
          AggregateExec: mode=FinalPartitioned, gby=[key_0@0 as key_0, key_1@1 as key_1], aggr=[merge(sum)(call_0) as call_0, merge(avg)(call_1) as call_1, merge(max)(call_2) as call_2, merge(min)(call_3) as call_3]
            RepartitionExec: partitioning=Hash([key_0@0, key_1@1], 2), input_partitions=2
              AggregateExec: mode=Partial, gby=[key_0@0 as key_0, key_1@1 as key_1], aggr=[merge(sum)(call_0) as call_0, merge(avg)(call_1) as call_1, merge(max)(call_2) as call_2, merge(min)(call_3) as call_3]
                UnionExec
                  ProjectionExec: expr=[CAST(w@0 AS Timestamp(ms)) as key_0, host@1 as key_1, total@2 as call_0, decode(avg)(__state_0@3) as call_1, decode(max)(__state_1@4) as call_2, decode(min)(__state_2@5) as call_3]
                    FilterExec: w@0 >= 3600000 AND w@0 < 7200000
                      DataSourceExec: partitions=1, partition_sizes=[1]
                  ProjectionExec: expr=[date_bin(IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: NOW }"),src.ts)@0 as key_0, host@1 as key_1, call_0@2 as call_0, call_1@3 as call_1, call_2@4 as call_2, call_3@5 as call_3]
                    AggregateExec: mode=SinglePartitioned, gby=[date_bin(IntervalMonthDayNano { months: 0, days: 0, nanoseconds: NOW }, ts@0) as date_bin(IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: NOW }"),src.ts), host@1 as host], aggr=[sum(src.v) as call_0, state(avg)(src.a.b "c") as call_1, state(max)(src.v) as call_2, state(min)(src.v) as call_3]
                      FilterExec: ts@0 >= 0 AND v@3 > 0
                        DataSourceExec: partitions=1, partition_sizes=[1]
        reads ts, host, a.b "c", v
        reads w, host, total, __state_0, __state_1, __state_2
    "#]].assert_eq(&shown(&session, &merged).await);
    let repaired = groups.repaired("ts", &hour, 1000).expect("a plan");
    expect![[r#"
        ProjectionExec: expr=[date_bin(IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: NOW }"),src.ts)@0 as w, host@1 as host, call_0@2 as total, finish(avg)(call_1@3) as mean, finish(max)(call_2@4) - finish(min)(call_3@5) as span, NOW as update_at, encode(avg)(call_1@3) as __state_0, encode(max)(call_2@4) as __state_1, encode(min)(call_3@5) as __state_2]
          AggregateExec: mode=SinglePartitioned, gby=[date_bin(IntervalMonthDayNano { months: 0, days: 0, nanoseconds: NOW }, ts@0) as date_bin(IntervalMonthDayNano("IntervalMonthDayNano { months: 0, days: 0, nanoseconds: NOW }"),src.ts), host@1 as host], aggr=[sum(src.v) as call_0, state(avg)(src.a.b "c") as call_1, state(max)(src.v) as call_2, state(min)(src.v) as call_3]
            FilterExec: ts@0 >= 3600000 AND ts@0 < 7200000 AND v@3 > 0
              DataSourceExec: partitions=1, partition_sizes=[1]
        reads ts, host, a.b "c", v
    "#]].assert_eq(&shown(&session, &matched.align(repaired).expect("columns")).await);
}

#[tokio::test]
async fn what_is_kept_is_joined_by_hash_on_all_keys() {
    let (session, _) = planned("SELECT 1").await;
    let scan = |name: &str| {
        LogicalPlanBuilder::scan(name, provider_as_source(empty(source())), None).expect("a scan").build()
    };
    let plan = keep_values(scan("x").expect("new"), scan("y").expect("old"), &[1, 0], &[4]).expect("a plan");
    expect![[r#"
        ProjectionExec: expr=[ts@0 as ts, host@1 as host, a.b "c"@2 as a.b "c", v@3 as v, CASE WHEN unused@4 IS NOT NULL THEN unused@4 ELSE unused@7 END as unused]
          RepartitionExec: partitioning=RoundRobinBatch(2), input_partitions=1
            HashJoinExec: mode=CollectLeft, join_type=Right, on=[(host@1, host@1), (ts@0, ts@0)], projection=[ts@3, host@4, a.b "c"@5, v@6, unused@7, ts@0, host@1, unused@2], NullsEqual: true
              DataSourceExec: partitions=1, partition_sizes=[1]
              DataSourceExec: partitions=1, partition_sizes=[1]
        reads ts, host, a.b "c", v, unused
        reads ts, host, unused
    "#]].assert_eq(&shown(&session, &plan).await);
}

#[tokio::test]
async fn names_are_full_and_columns_keep_theirs() {
    let (_, plan) = planned(
        "SELECT DISTINCT ts, q.\"a.b \"\"c\"\"\" FROM (SELECT * FROM src s WHERE v = (SELECT max(v) FROM public.src)) q",
    )
    .await;
    expect![[r#"
        Aggregate: groupBy=[[q.ts, q.a.b "c"]], aggr=[[]]
          Projection: q.ts, q.a.b "c"
            SubqueryAlias: q
              Projection: s.ts, s.host, s.a.b "c", s.v, s.unused
                Filter: s.v = (<subquery>)
                  Subquery:
                    Projection: max(public.src.v)
                      Aggregate: groupBy=[[]], aggr=[[max(public.src.v)]]
                        SubqueryAlias: public.src
                          TableScan: datafusion.public.src
                  SubqueryAlias: s
                    SubqueryAlias: src
                      TableScan: datafusion.public.src"#]]
    .assert_eq(&plan.display_indent().to_string());
    let limited = limit_to_ranges(&plan, "ts", &[InstantRange::new(0, 1)]);
    assert!(limited.is_ok(), "{limited:?}");
}

//! `CREATE FLOW`.

use expect_test::expect;

use super::{errors, parse, show_again, shown};
use crate::sql::{CreateFlow, Interval, Statement, TableName};

fn flow(text: &str) -> CreateFlow {
    match parse(text) {
        Statement::CreateFlow(flow) => flow,
        other => panic!("{text} is {other:?}"),
    }
}

const HOUR: i128 = 3_600_000_000_000;

#[test]
fn a_flow_has_a_name_a_sink_and_a_query() {
    let flow = flow("CREATE FLOW Hourly SINK TO Db.\"Hourly\" AS\n  SELECT 1;");
    assert_eq!(flow.name, "hourly");
    let sink = TableName { catalog: None, schema: Some("db".to_owned()), table: "Hourly".to_owned() };
    assert_eq!(flow.sink, sink);
    assert_eq!(flow.query_text, "SELECT 1");
    assert_eq!(flow.query.to_string(), "SELECT 1");
    assert_eq!((flow.or_replace, flow.if_not_exists), (false, false));
    assert_eq!((flow.expire_after, flow.eval_interval, flow.comment), (None, None, None));
}

#[test]
fn clauses_come_in_any_order() {
    let expected = flow(
        "CREATE OR REPLACE FLOW f SINK TO t EXPIRE AFTER '2 hours' EVAL INTERVAL '1 hour' COMMENT 'it''s' \
         WITH (k = 'v') AS SELECT 1",
    );
    assert!(expected.or_replace);
    assert_eq!(expected.expire_after, Some(Interval::new(0, 2 * HOUR)));
    assert_eq!(expected.eval_interval, Some(Interval::new(0, HOUR)));
    assert_eq!(expected.comment.as_deref(), Some("it's"));
    assert_eq!(expected.options.get("k").map(String::as_str), Some("v"));
    let other = flow(
        "create or replace flow f sink to t with ('k' 'v') comment 'it''s' eval interval interval '1' hour \
         expire after interval 2 hours as SELECT 1",
    );
    assert_eq!(other, expected);
}

#[test]
fn the_query_is_kept_as_it_was_written() {
    let query = "WITH x AS ( -- all of them; really\n  SELECT *\r\n  FROM \"Ünïcode\" /* here */\n)\nSELECT 'a;b' FROM x";
    let script = format!("-- first\nCREATE FLOW f SINK TO t /* as */ AS -- the query\n  {query} -- end\n ;");
    assert_eq!(flow(&script).query_text, query);
    assert_eq!(show_again(&script), format!("CREATE FLOW f\nSINK TO t\nAS\n{query}"));
}

#[test]
fn a_flow_is_shown_as_sql() {
    expect![[r#"
        CREATE FLOW IF NOT EXISTS "My Flow"
        SINK TO a.b.c
        EXPIRE AFTER '1 hour 30 minutes'
        COMMENT ''
        AS
        values (1)

        CREATE OR REPLACE FLOW f
        SINK TO t
        EXPIRE AFTER '1 day'
        EVAL INTERVAL '30 seconds'
        COMMENT 'say ''when'''
        WITH ('A' = 'b', 'max_filters_per_query' = '20')
        AS
        (SELECT 1)

    "#]].assert_eq(&shown(&[
        "create flow if not exists \"My Flow\" sink to a.b.c expire after '90 minutes' comment '' as values (1)",
        "CREATE OR REPLACE FLOW f SINK TO t EXPIRE AFTER '1d' EVAL INTERVAL '30 s' COMMENT 'say ''when''' \
         WITH (max_filters_per_query = 20, 'A' = 'b') AS (SELECT 1)",
    ]));
}

#[test]
fn mistakes_in_a_flow() {
    expect![[r#"
        CREATE FLOW
          syntax: line 1, column 12: expected a flow name, found the end of the statement
        CREATE FLOW a.b SINK TO t AS SELECT 1
          invalid: line 1, column 13: a flow name has one part, without dots
        CREATE FLOW f AS SELECT 1
          syntax: line 1, column 15: expected SINK TO, found `AS`
        CREATE FLOW f SINK t AS SELECT 1
          syntax: line 1, column 15: expected SINK TO, found `SINK`
        CREATE FLOW f SINK TO t SELECT 1
          syntax: line 1, column 25: expected EXPIRE AFTER, EVAL INTERVAL, COMMENT, WITH or AS, found `SELECT`
        CREATE FLOW f SINK TO t AS
          syntax: line 1, column 27: expected a query (SELECT, WITH or VALUES), found the end of the statement
        CREATE FLOW f SINK TO t AS DELETE FROM t
          syntax: line 1, column 28: expected a query (SELECT, WITH or VALUES), found `DELETE`
        CREATE FLOW f SINK TO t AS SELECT 1 SELECT 2
          syntax: line 1, column 37: expected the end of the flow, which has exactly one query, found `SELECT`
        CREATE FLOW f SINK TO t AS
        SELECT a
        FROM t GROUP a
          syntax: line 3, column 8: expected the end of the flow, which has exactly one query, found `GROUP`
        CREATE FLOW f SINK TO t AS WITH x AS (DELETE FROM u) SELECT 1
          invalid: line 1, column 28: a query may not contain a DELETE
        CREATE FLOW f SINK TO t AS TQL EVAL (0, 10, '5s') up
          not supported: line 1, column 28: flows in PromQL (TQL) are not supported yet; write the query in SQL
        CREATE OR REPLACE FLOW IF NOT EXISTS f SINK TO t AS SELECT 1
          invalid: line 1, column 24: OR REPLACE and IF NOT EXISTS exclude each other; write one of them
        CREATE FLOW f SINK TO t COMMENT 'a' COMMENT 'b' AS SELECT 1
          invalid: line 1, column 37: COMMENT is given twice
        CREATE FLOW f SINK TO t EXPIRE AFTER '1 h' COMMENT 'a' EXPIRE AFTER '2 h' AS SELECT 1
          invalid: line 1, column 56: EXPIRE AFTER is given twice
        CREATE FLOW f SINK TO t COMMENT words AS SELECT 1
          syntax: line 1, column 33: expected a comment in quotes, found `words`
        CREATE FLOW f SINK TO t WITH (a = 1, A = 2) AS SELECT 1
          invalid: line 1, column 38: the option `a` is given twice
        CREATE FLOW f SINK TO t EXPIRE AFTER 1 hour AS SELECT 1
          syntax: line 1, column 38: expected an interval in quotes, '1 hour' say, found `1`
        CREATE FLOW f SINK TO t EXPIRE AFTER INTERVAL AS SELECT 1
          syntax: line 1, column 47: expected an interval in quotes, '1 hour' say, found `AS`
        CREATE FLOW f SINK TO t EXPIRE AFTER '1 month' AS SELECT 1
          invalid: line 1, column 38: EXPIRE AFTER '1 month': a month has no fixed length, nor has a year; write days, `30 days` say
        CREATE FLOW f SINK TO t EXPIRE AFTER INTERVAL '1' YEAR AS SELECT 1
          invalid: line 1, column 38: EXPIRE AFTER '1 YEAR': a month has no fixed length, nor has a year; write days, `30 days` say
        CREATE FLOW f SINK TO t EXPIRE AFTER '0 s' AS SELECT 1
          invalid: line 1, column 38: EXPIRE AFTER '0 s': the interval must be longer than zero
        CREATE FLOW f SINK TO t EVAL INTERVAL '-1 hour' AS SELECT 1
          invalid: line 1, column 39: EVAL INTERVAL '-1 hour': the interval must be longer than zero
        CREATE FLOW f SINK TO t EVAL INTERVAL '10' AS SELECT 1
          invalid: line 1, column 39: EVAL INTERVAL '10': `10` has no unit; write `10 s` or another one
        CREATE FLOW f SINK TO t EVAL INTERVAL '1M' AS SELECT 1
          invalid: line 1, column 39: EVAL INTERVAL '1M': `M` could be minutes or months; write `m` or `minutes`, or `months`
        CREATE FLOW f SINK TO t EVAL INTERVAL 'soon' AS SELECT 1
          invalid: line 1, column 39: EVAL INTERVAL 'soon': expected a number and a unit, `1 hour 30 minutes` say, found `soon`
        CREATE FLOW f SINK TO t EVAL INTERVAL '' AS SELECT 1
          invalid: line 1, column 39: EVAL INTERVAL '': expected a number and a unit, `1 hour` say, found nothing
        CREATE FLOW f SINK TO t EVAL INTERVAL '99999999999999999999999 weeks' AS SELECT 1
          invalid: line 1, column 39: EVAL INTERVAL '99999999999999999999999 weeks': the interval is too long
    "#]].assert_eq(&errors(&[
        "CREATE FLOW",
        "CREATE FLOW a.b SINK TO t AS SELECT 1",
        "CREATE FLOW f AS SELECT 1",
        "CREATE FLOW f SINK t AS SELECT 1",
        "CREATE FLOW f SINK TO t SELECT 1",
        "CREATE FLOW f SINK TO t AS",
        "CREATE FLOW f SINK TO t AS DELETE FROM t",
        "CREATE FLOW f SINK TO t AS SELECT 1 SELECT 2",
        "CREATE FLOW f SINK TO t AS\nSELECT a\nFROM t GROUP a",
        "CREATE FLOW f SINK TO t AS WITH x AS (DELETE FROM u) SELECT 1",
        "CREATE FLOW f SINK TO t AS TQL EVAL (0, 10, '5s') up",
        "CREATE OR REPLACE FLOW IF NOT EXISTS f SINK TO t AS SELECT 1",
        "CREATE FLOW f SINK TO t COMMENT 'a' COMMENT 'b' AS SELECT 1",
        "CREATE FLOW f SINK TO t EXPIRE AFTER '1 h' COMMENT 'a' EXPIRE AFTER '2 h' AS SELECT 1",
        "CREATE FLOW f SINK TO t COMMENT words AS SELECT 1",
        "CREATE FLOW f SINK TO t WITH (a = 1, A = 2) AS SELECT 1",
        "CREATE FLOW f SINK TO t EXPIRE AFTER 1 hour AS SELECT 1",
        "CREATE FLOW f SINK TO t EXPIRE AFTER INTERVAL AS SELECT 1",
        "CREATE FLOW f SINK TO t EXPIRE AFTER '1 month' AS SELECT 1",
        "CREATE FLOW f SINK TO t EXPIRE AFTER INTERVAL '1' YEAR AS SELECT 1",
        "CREATE FLOW f SINK TO t EXPIRE AFTER '0 s' AS SELECT 1",
        "CREATE FLOW f SINK TO t EVAL INTERVAL '-1 hour' AS SELECT 1",
        "CREATE FLOW f SINK TO t EVAL INTERVAL '10' AS SELECT 1",
        "CREATE FLOW f SINK TO t EVAL INTERVAL '1M' AS SELECT 1",
        "CREATE FLOW f SINK TO t EVAL INTERVAL 'soon' AS SELECT 1",
        "CREATE FLOW f SINK TO t EVAL INTERVAL '' AS SELECT 1",
        "CREATE FLOW f SINK TO t EVAL INTERVAL '99999999999999999999999 weeks' AS SELECT 1",
    ]));
}

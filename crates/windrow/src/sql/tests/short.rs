//! The statements of a line, and those that are none of ours.

use expect_test::expect;

use super::{error, errors, kind, parse};
use crate::sql::{Insert, Statement, TableName};
use datafusion::sql::sqlparser::ast::{self, SetExpr};

fn name(text: &str) -> String {
    text.to_owned()
}

fn flow(text: &str) -> Statement {
    Statement::ShowCreateFlow { name: name(text) }
}

#[test]
fn each_statement_is_what_it_says_in_any_case() {
    let t = || TableName::bare("t");
    let cases = [
        ("DROP FLOW f", Statement::DropFlow { if_exists: false, name: name("f") }),
        ("drop flow if exists f", Statement::DropFlow { if_exists: true, name: name("f") }),
        ("DROP TABLE t", Statement::DropTable { if_exists: false, name: t() }),
        ("Drop Table If Exists t", Statement::DropTable { if_exists: true, name: t() }),
        ("SHOW TABLES", Statement::ShowTables),
        ("show flows", Statement::ShowFlows { like: None }),
        ("SHOW FLOWS LIKE 'a%'", Statement::ShowFlows { like: Some(name("a%")) }),
        ("SHOW CREATE FLOW f", flow("f")),
        ("Show Create Table t", Statement::ShowCreateTable { name: t() }),
        ("DESCRIBE t", Statement::Describe { name: t() }),
        ("desc TABLE t", Statement::Describe { name: t() }),
        ("explain flow f", Statement::ExplainFlow { name: name("f") }),
        ("ADMIN FLUSH_FLOW('f')", Statement::FlushFlow { name: name("f") }),
        ("admin flush_flow ( 'Mixed Case' )", Statement::FlushFlow { name: name("Mixed Case") }),
        ("ADMIN CHECK_FLOW('f')", Statement::CheckFlow { name: name("f") }),
        ("ADMIN COMPACT_TABLE('t')", Statement::CompactTable { name: name("t") }),
        ("ADMIN VACUUM_TABLE('t')", Statement::VacuumTable { name: name("t") }),
        ("DELETE FROM t", Statement::Delete { table: t(), predicate: None }),
        // A quoted name is never a word of the dialect.
        ("DESCRIBE \"TABLE\"", Statement::Describe { name: TableName::bare("TABLE") }),
        ("DROP FLOW \"IF\"", Statement::DropFlow { if_exists: false, name: name("IF") }),
        // Comments between words are no words.
        ("DROP /* the */ FLOW -- named\n f", Statement::DropFlow { if_exists: false, name: name("f") }),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text), expected, "{text}");
    }
}

#[test]
fn queries_are_what_the_parser_of_datafusion_makes_of_them() {
    let queries = [
        "SELECT 1",
        "select date_bin(INTERVAL '1 hour', ts) AS hour, max(v) FROM t GROUP BY hour",
        "SELECT ts::timestamp(3), \"Quoted.name\" FROM a.b.c",
        "SELECT count(*) FILTER (WHERE v > 0) FROM t",
        "WITH x AS (SELECT 1) SELECT * FROM x",
        "VALUES (1, 'a'), (2, 'b')",
        "(SELECT 1) UNION ALL (SELECT 2) ORDER BY 1",
        "FROM t SELECT a",
        "SELECT arrow_cast(a, 'Timestamp(Second, None)') FROM t WHERE a BETWEEN now() - INTERVAL '1 day' AND now()",
        "SELECT a, row_number() OVER (PARTITION BY b ORDER BY c) FROM t LIMIT 3",
        "SELECT CASE WHEN a THEN 1 ELSE 2 END, CAST(a AS BIGINT), [1, 2][1], {a: 1}, struct(1), r'raw' FROM t",
    ];
    for text in queries {
        let expected = super::hostile::parse_generic(text).unwrap();
        assert_eq!(parse(text), Statement::Query(expected), "{text}");
    }
}

#[test]
fn an_insert_has_a_table_columns_and_rows() {
    let Statement::Insert(insert) = parse("INSERT INTO s.T (A, \"B\") VALUES (1, DEFAULT), (2, \"default\")")
    else {
        panic!("an insert")
    };
    assert_eq!(insert.table.to_string(), "s.t");
    assert_eq!(insert.columns, ["a", "B"]);
    let SetExpr::Values(values) = &*insert.source.body else { panic!("values") };
    let defaults: Vec<bool> =
        values.rows.iter().flat_map(|row| &row.content).map(Insert::is_default).collect();
    assert_eq!(defaults, [false, true, false, false]);

    for (text, columns) in [
        ("INSERT INTO t SELECT * FROM u", 0),
        ("INSERT INTO t (SELECT * FROM u)", 0),
        ("INSERT INTO t (a) (SELECT * FROM u)", 1),
        ("INSERT INTO t WITH x AS (SELECT 1) SELECT * FROM x", 0),
    ] {
        let Statement::Insert(insert) = parse(text) else { panic!("an insert: {text}") };
        assert_eq!(insert.columns.len(), columns, "{text}");
    }
}

#[test]
fn a_delete_may_have_a_predicate() {
    let Statement::Delete { table, predicate } = parse("delete from t where a > 1 AND b IS NULL") else {
        panic!("a delete")
    };
    assert_eq!(table, TableName::bare("t"));
    assert_eq!(predicate.unwrap().to_string(), "a > 1 AND b IS NULL");
}

#[test]
fn explain_and_set_are_left_to_datafusion() {
    for (text, shown) in [
        ("EXPLAIN SELECT 1", "EXPLAIN SELECT 1"),
        ("explain analyze verbose select 1", "EXPLAIN ANALYZE VERBOSE SELECT 1"),
        ("EXPLAIN FORMAT TREE SELECT 1", "EXPLAIN FORMAT tree SELECT 1"),
        ("EXPLAIN FORMAT 'pgjson' SELECT 1", "EXPLAIN FORMAT pgjson SELECT 1"),
        ("EXPLAIN (ANALYZE, VERBOSE) SELECT 1", "EXPLAIN ANALYZE VERBOSE SELECT 1"),
        ("EXPLAIN (SELECT 1)", "EXPLAIN (SELECT 1)"),
    ] {
        let Statement::Explain(explain) = parse(text) else { panic!("an explain: {text}") };
        assert_eq!(explain.to_string(), shown, "{text}");
        assert!(matches!(*explain, datafusion::sql::parser::Statement::Explain(_)), "{text}");
    }
    for text in [
        "SET datafusion.execution.batch_size = 100",
        "set datafusion.execution.time_zone TO 'UTC'",
        "SET TIME ZONE 'Europe/Berlin'",
    ] {
        let Statement::SetVariable(set) = parse(text) else { panic!("a set: {text}") };
        assert!(matches!(*set, ast::Statement::Set(_)), "{text}");
    }
}

#[test]
fn what_is_not_supported_says_so_and_what_is() {
    let texts = [
        "UPDATE t SET a = 1",
        "COPY t TO 'x.parquet'",
        "ALTER TABLE t ADD COLUMN a INT",
        "MERGE INTO t USING u ON a = b WHEN MATCHED THEN DELETE",
        "TQL EVAL (0, 10, '5s') up",
        "ADMIN REFRESH_FLOW('f')",
        "SHOW FLOW STATUS",
        "CREATE VIEW v AS SELECT 1",
        "CREATE OR REPLACE TABLE t (a INT)",
        "CREATE UNBOUNDED EXTERNAL TABLE t",
        "DROP VIEW v",
        "SHOW COLUMNS FROM t",
        "TRUNCATE t",
        "BEGIN",
        "GRANT SELECT ON t TO u",
    ];
    let all: String = texts
        .iter()
        .map(|text| {
            let error = error(text);
            let message = error.to_string();
            let (before, after) = message.split_once("; ").unwrap();
            assert!(after.starts_with("the statements are CREATE TABLE, "), "{message}");
            format!("{}: {before}\n", kind(&error))
        })
        .collect();
    expect![[r#"
        not supported: line 1, column 1: UPDATE is not supported yet
        not supported: line 1, column 1: COPY is not supported yet
        not supported: line 1, column 1: ALTER is not supported yet
        not supported: line 1, column 1: MERGE is not supported yet
        not supported: line 1, column 1: TQL is not supported yet
        not supported: line 1, column 1: ADMIN REFRESH_FLOW is not supported yet
        not supported: line 1, column 1: SHOW FLOW STATUS is not supported yet
        not supported: line 1, column 1: CREATE VIEW is not supported
        not supported: line 1, column 1: CREATE OR REPLACE TABLE is not supported
        not supported: line 1, column 1: CREATE UNBOUNDED EXTERNAL TABLE is not supported
        not supported: line 1, column 1: DROP VIEW is not supported
        not supported: line 1, column 1: SHOW COLUMNS is not supported
        not supported: line 1, column 1: TRUNCATE is not supported
        not supported: line 1, column 1: BEGIN is not supported
        not supported: line 1, column 1: GRANT is not supported
    "#]]
    .assert_eq(&all);
}

#[test]
fn mistakes_in_short_statements() {
    expect![[r#"
        SELEC 1
          syntax: line 1, column 1: expected a statement, found `SELEC`; the statements are CREATE TABLE, CREATE EXTERNAL TABLE, CREATE FLOW, DROP TABLE, DROP FLOW, SHOW TABLES, SHOW FLOWS, SHOW CREATE TABLE, SHOW CREATE FLOW, DESCRIBE, ADMIN FLUSH_FLOW, ADMIN CHECK_FLOW, ADMIN COMPACT_TABLE, ADMIN VACUUM_TABLE, INSERT, DELETE, SELECT, EXPLAIN, EXPLAIN FLOW and SET
        )
          syntax: line 1, column 1: expected a statement, found `)`; the statements are CREATE TABLE, CREATE EXTERNAL TABLE, CREATE FLOW, DROP TABLE, DROP FLOW, SHOW TABLES, SHOW FLOWS, SHOW CREATE TABLE, SHOW CREATE FLOW, DESCRIBE, ADMIN FLUSH_FLOW, ADMIN CHECK_FLOW, ADMIN COMPACT_TABLE, ADMIN VACUUM_TABLE, INSERT, DELETE, SELECT, EXPLAIN, EXPLAIN FLOW and SET
        'text'
          syntax: line 1, column 1: expected a statement, found `'text'`; the statements are CREATE TABLE, CREATE EXTERNAL TABLE, CREATE FLOW, DROP TABLE, DROP FLOW, SHOW TABLES, SHOW FLOWS, SHOW CREATE TABLE, SHOW CREATE FLOW, DESCRIBE, ADMIN FLUSH_FLOW, ADMIN CHECK_FLOW, ADMIN COMPACT_TABLE, ADMIN VACUUM_TABLE, INSERT, DELETE, SELECT, EXPLAIN, EXPLAIN FLOW and SET
        DROP FLOW
          syntax: line 1, column 10: expected a flow name, found the end of the statement
        DROP FLOW a.b
          invalid: line 1, column 11: a flow name has one part, without dots
        DROP FLOW IF EXIST f
          syntax: line 1, column 11: expected a flow name (a keyword is a name only in quotes: "IF"), found `IF`
        DROP TABLE a, b
          syntax: line 1, column 13: expected the end of the statement, found `,`
        DROP TABLE a.b.c.d
          invalid: line 1, column 12: a table name has at most three parts: catalog.schema.table
        DROP TABLE SELECT
          syntax: line 1, column 12: expected a table name (a keyword is a name only in quotes: "SELECT"), found `SELECT`
        DROP TABLE a.
          syntax: line 1, column 14: expected a table name, found the end of the statement
        SHOW FLOWS LIKE a
          syntax: line 1, column 17: expected a pattern in quotes, found `a`
        SHOW TABLES IN x
          syntax: line 1, column 13: expected the end of the statement, found `IN`
        DESCRIBE
          syntax: line 1, column 9: expected a table name, found the end of the statement
        DESCRIBE SELECT 1
          syntax: line 1, column 10: expected a table name (a keyword is a name only in quotes: "SELECT"), found `SELECT`
        ADMIN FLUSH_FLOW(f)
          syntax: line 1, column 18: expected the name of a flow in quotes, found `f`
        ADMIN FLUSH_FLOW 'f'
          syntax: line 1, column 18: expected `(`, found `'f'`
        INSERT t VALUES (1)
          syntax: line 1, column 8: expected INTO, found `t`
        INSERT INTO t
          syntax: line 1, column 14: expected a query (SELECT, WITH or VALUES), found the end of the statement
        INSERT INTO VALUES (1)
          syntax: line 1, column 13: expected a table name (a keyword is a name only in quotes: "VALUES"), found `VALUES`
        INSERT INTO t (a, a) VALUES (1, 2)
          invalid: line 1, column 19: the column `a` is given twice
        INSERT INTO t () VALUES (1)
          syntax: line 1, column 16: expected a column name, found `)`
        INSERT INTO t DEFAULT VALUES
          syntax: line 1, column 15: expected a query (SELECT, WITH or VALUES), found `DEFAULT`
        INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING
          syntax: line 1, column 26: expected the end of the statement, found `ON`
        INSERT INTO t VALUES (1
          syntax: line 1, column 24: expected `)`, found the end of the statement
        DELETE t
          syntax: line 1, column 8: expected FROM, found `t`
        DELETE FROM t a = 1
          syntax: line 1, column 15: expected the end of the statement, found `a`
        DELETE FROM t WHERE
          syntax: line 1, column 20: expected an expression, found the end of the statement
        EXPLAIN DROP TABLE t
          syntax: line 1, column 9: expected a query (SELECT, WITH or VALUES), found `DROP`
        EXPLAIN FORMAT nonsense SELECT 1
          invalid: line 1, column 16: Invalid explain format. Expected 'indent', 'tree', 'pgjson' or 'graphviz'. Got 'nonsense'
        EXPLAIN (NONSENSE) SELECT 1
          invalid: line 1, column 9: unknown EXPLAIN option: NONSENSE
        SET
          syntax: line 1, column 4: expected identifier, found the end of the statement
        SELECT 1 SELECT 2
          syntax: line 1, column 10: expected the end of the statement, found `SELECT`
        SELECT (1
          syntax: line 1, column 10: expected `)`, found the end of the statement
        SELECT a FROM
          syntax: line 1, column 14: expected identifier, found the end of the statement
        SELECT CAST(a AS) FROM t
          syntax: line 1, column 17: expected a data type name, found `)`
    "#]].assert_eq(&errors(&[
        "SELEC 1",
        ")",
        "'text'",
        "DROP FLOW",
        "DROP FLOW a.b",
        "DROP FLOW IF EXIST f",
        "DROP TABLE a, b",
        "DROP TABLE a.b.c.d",
        "DROP TABLE SELECT",
        "DROP TABLE a.",
        "SHOW FLOWS LIKE a",
        "SHOW TABLES IN x",
        "DESCRIBE",
        "DESCRIBE SELECT 1",
        "ADMIN FLUSH_FLOW(f)",
        "ADMIN FLUSH_FLOW 'f'",
        "INSERT t VALUES (1)",
        "INSERT INTO t",
        "INSERT INTO VALUES (1)",
        "INSERT INTO t (a, a) VALUES (1, 2)",
        "INSERT INTO t () VALUES (1)",
        "INSERT INTO t DEFAULT VALUES",
        "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
        "INSERT INTO t VALUES (1",
        "DELETE t",
        "DELETE FROM t a = 1",
        "DELETE FROM t WHERE",
        "EXPLAIN DROP TABLE t",
        "EXPLAIN FORMAT nonsense SELECT 1",
        "EXPLAIN (NONSENSE) SELECT 1",
        "SET",
        "SELECT 1 SELECT 2",
        "SELECT (1",
        "SELECT a FROM",
        "SELECT CAST(a AS) FROM t",
    ]));
}

#[test]
fn a_query_that_changes_something_is_no_query() {
    expect![[r#"
        WITH x AS (SELECT 1) DELETE FROM t
          invalid: line 1, column 1: a query may not contain a DELETE
        WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * FROM x
          invalid: line 1, column 1: a query may not contain an INSERT
        SELECT * FROM (UPDATE t SET a = 1)
          invalid: line 1, column 1: a query may not contain an UPDATE
        SELECT a INTO u FROM t
          invalid: line 1, column 1: a query may not contain an INTO
        EXPLAIN WITH x AS (SELECT 1) DELETE FROM t
          invalid: line 1, column 9: a query may not contain a DELETE
        INSERT INTO t WITH x AS (DELETE FROM u) SELECT 1
          invalid: line 1, column 15: a query may not contain a DELETE
        DELETE FROM t WHERE a IN (WITH x AS (DELETE FROM u) SELECT 1)
          invalid: line 1, column 21: a query may not contain a DELETE
    "#]]
    .assert_eq(&errors(&[
        "WITH x AS (SELECT 1) DELETE FROM t",
        "WITH x AS (INSERT INTO t VALUES (1) RETURNING a) SELECT * FROM x",
        "SELECT * FROM (UPDATE t SET a = 1)",
        "SELECT a INTO u FROM t",
        "EXPLAIN WITH x AS (SELECT 1) DELETE FROM t",
        "INSERT INTO t WITH x AS (DELETE FROM u) SELECT 1",
        "DELETE FROM t WHERE a IN (WITH x AS (DELETE FROM u) SELECT 1)",
    ]));
}

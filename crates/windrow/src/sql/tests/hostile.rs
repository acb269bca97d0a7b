//! Texts that are meant to exhaust the parser: each is answered, soon, with a statement or an error.

use std::time::{Duration, Instant};

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::{error, kind};
use crate::sql::statements;

/// A query as DataFusion's dialect reads it.
pub(super) fn parse_generic(text: &str) -> Option<Box<ast::Query>> {
    match Parser::parse_sql(&GenericDialect {}, text).ok()?.pop()? {
        ast::Statement::Query(query) => Some(query),
        _ => None,
    }
}

/// Parses on a stack of the size that threads have, and says how it went.
fn outcome(text: String) -> String {
    let parse = move || {
        let start = Instant::now();
        let outcome = statements(&text).next().map_or_else(
            || "nothing".to_owned(),
            |statement| statement.map_or_else(|error| kind(&error).to_owned(), |_| "a statement".to_owned()),
        );
        (outcome, start.elapsed())
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(parse).unwrap();
    let (outcome, elapsed) = thread.join().unwrap();
    assert!(elapsed < Duration::from_secs(20), "it took {elapsed:?}");
    outcome
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    let opened = [
        "(",
        "[",
        "{",
        "((SELECT ",
        "f(",
        "NOT ",
        "NOT (",
        "- ",
        "CASE WHEN ",
        "CASE (",
        "- CASE ",
        "CAST(",
        "ARRAY[",
        "ARRAY<",
        "STRUCT<a ",
        "MAP(INT, ",
        "NESTED(a ",
        "TUPLE(a ",
        "TABLE(a ",
        "NULLABLE(",
        "INTERVAL ",
        "INTERVAL - ",
        "INTERVAL DATE (",
        "POSITION(",
        "SUBSTRING(",
        "EXISTS (SELECT ",
        "WITH a AS (",
        "(a) -> ",
        "a.",
        "EXTRACT(DAY FROM ",
        "f() OVER (PARTITION BY ",
        "a IN (",
        "LATERAL (SELECT * FROM ",
        "EXPLAIN ",
        "1 = ANY (",
    ];
    let before = [
        "",
        "SELECT ",
        "SELECT * FROM ",
        "CREATE TABLE t (a ",
        "CREATE TABLE t (a INT DEFAULT ",
        "DELETE FROM t WHERE ",
        "INSERT INTO t ",
        "INSERT INTO t VALUES (",
        "CREATE FLOW f SINK TO t AS SELECT ",
        "SET a = ",
        "EXPLAIN (",
        "SELECT CAST(a AS ",
    ];
    for before in before {
        for opened in opened {
            for depth in [45, 1000] {
                let outcome = outcome(format!("{before}{}", opened.repeat(depth)));
                assert_ne!(outcome, "nothing", "{before} {opened}");
            }
        }
    }
    assert_eq!(
        error(&format!("SELECT\n {}1{}", "(".repeat(1000), ")".repeat(1000))).to_string(),
        "line 2, column 52: this is nested too deeply; divide it, with WITH for example"
    );
}

#[test]
fn what_people_nest_is_not_too_deep() {
    for text in [
        format!("SELECT {}1{}", "f(".repeat(20), ")".repeat(20)),
        format!("SELECT {}1{}", "(".repeat(20), ")".repeat(20)),
        format!("SELECT * FROM {}t{}", "(SELECT * FROM ".repeat(12), ")".repeat(12)),
        format!("SELECT {}a{}", "CASE WHEN b THEN ".repeat(20), " END".repeat(20)),
        format!("SELECT {}a{}", "CAST(".repeat(20), " AS INT)".repeat(20)),
        format!("SELECT {}a{}", "NOT (".repeat(20), ")".repeat(20)),
        format!("CREATE TABLE t (a {}INT{})", "ARRAY<".repeat(6), ">".repeat(6)),
        format!("SELECT {}", "ts + INTERVAL '1 day' > ts - INTERVAL '1' HOUR AND ".repeat(30) + "true"),
        "SELECT \"interval\", t.interval FROM t WHERE t.interval > 5 AND t.interval < INTERVAL '1 day'"
            .to_owned(),
    ] {
        assert_eq!(outcome(text.clone()), "a statement", "{text}");
    }
}

#[test]
fn long_chains_are_an_error_and_not_a_crash() {
    let chains = [
        ("SELECT 1", " + 1"),
        ("SELECT a", " IS NULL"),
        ("SELECT a", "::int"),
        ("SELECT a", "[1]"),
        ("SELECT a", ".a"),
        ("SELECT a", " OR a = 1 AND a = 2"),
        ("SELECT 1, 2", " UNION ALL SELECT 1, 2"),
        ("SELECT * FROM t", " PIVOT (sum(a) FOR b IN (1))"),
        ("CREATE TABLE t (a INT", "[]"),
        ("CREATE TABLE t (a INT DEFAULT 1", " + 1"),
    ];
    for (start, link) in chains {
        for times in [100, 1000, 50_000] {
            let outcome = outcome(format!("{start}{}", link.repeat(times)));
            assert!(
                times < 1000 || outcome == "invalid" || link == "[1]" || link == "[]",
                "{link}: {outcome}"
            );
        }
    }
}

#[test]
fn what_is_long_but_not_deep_is_fine() {
    for text in [
        format!("INSERT INTO t VALUES {}", vec!["(1, 'a', -2.0)"; 20_000].join(", ")),
        format!("SELECT * FROM t WHERE a IN ({})", vec!["1"; 20_000].join(", ")),
        format!("SELECT {} FROM t", vec!["a + b AS c"; 5000].join(", ")),
        format!("SELECT * FROM t WHERE {}", vec!["a = 1"; 400].join(" OR ")),
        format!("SELECT 1 {}", vec!["UNION ALL SELECT 1, 2"; 250].join(" ")),
        format!(
            "CREATE TABLE t ({})",
            (0..2000).map(|i| format!("c{i} DOUBLE")).collect::<Vec<_>>().join(", ")
        ),
    ] {
        assert_eq!(outcome(text), "a statement");
    }
}

#[test]
fn a_long_script_takes_time_in_proportion() {
    let script = "SELECT 1;\n".repeat(20_000);
    let start = Instant::now();
    let last = statements(&script).last().unwrap().unwrap();
    assert_eq!(last.line, 20_000);
    assert!(start.elapsed() < Duration::from_secs(20));
}

//! Whatever the text is, it is answered: with statements that can be shown and read back, or with an error.

use proptest::prelude::*;

use super::hostile::parse_generic;
use super::{parse, show};
use crate::sql::{Statement, statements};

/// A word that means something somewhere in the dialect.
fn word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "CREATE",
        "OR",
        "REPLACE",
        "TABLE",
        "EXTERNAL",
        "FLOW",
        "IF",
        "NOT",
        "EXISTS",
        "SINK",
        "TO",
        "EXPIRE",
        "AFTER",
        "EVAL",
        "INTERVAL",
        "COMMENT",
        "WITH",
        "AS",
        "DROP",
        "SHOW",
        "FLOWS",
        "TABLES",
        "LIKE",
        "DESCRIBE",
        "ADMIN",
        "FLUSH_FLOW",
        "INSERT",
        "INTO",
        "VALUES",
        "DELETE",
        "FROM",
        "WHERE",
        "SELECT",
        "EXPLAIN",
        "ANALYZE",
        "FORMAT",
        "SET",
        "TIME",
        "INDEX",
        "PRIMARY",
        "KEY",
        "NULL",
        "DEFAULT",
        "STORED",
        "DELTA",
        "LOCATION",
        "OPTIONS",
        "INT",
        "TIMESTAMP",
        "STRING",
        "ARRAY",
        "GROUP",
        "BY",
        "CASE",
        "WHEN",
        "END",
        "CAST",
        "UNION",
        "JOIN",
        "ON",
        "DATE",
        "a",
        "b",
        "t",
        "ts",
        "\"Q\"",
        "`b`",
        "1",
        "2.5",
        "'x'",
        "'1 hour'",
        "'it''s'",
        "E'\\n'",
        "$$d$$",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        ",",
        ".",
        ";",
        ":",
        "::",
        "=",
        "+",
        "-",
        "*",
        "/",
        "->",
        "'",
        "\"",
        "/*",
        "*/",
        "--",
        "\n",
        "ü",
        "🌾",
        "\u{feff}",
        "\0",
    ])
}

fn soup() -> impl Strategy<Value = String> {
    prop::collection::vec((word(), prop::sample::select(vec!["", " ", " ", " "])), 0..40)
        .prop_map(|words| words.into_iter().map(|(word, space)| format!("{word}{space}")).collect())
}

/// A statement that is nearly right: parts that may follow each other, one of which may be missing or twice.
fn nearly() -> impl Strategy<Value = String> {
    let table = vec![
        "CREATE TABLE ",
        "IF NOT EXISTS ",
        "t ",
        "(",
        "a INT ",
        "NOT NULL ",
        "DEFAULT 1 ",
        ", ts TIMESTAMP ",
        "TIME INDEX ",
        ", TIME INDEX (ts)",
        ", PRIMARY KEY (a)",
        ")",
        " WITH (k = 'v')",
    ];
    let external = vec![
        "CREATE EXTERNAL TABLE ",
        "t ",
        "(a INT) ",
        "STORED AS ",
        "CSV ",
        "LOCATION ",
        "'x' ",
        "OPTIONS ('a' 'b') ",
    ];
    let flow = vec![
        "CREATE ",
        "OR REPLACE ",
        "FLOW ",
        "f ",
        "SINK TO ",
        "t ",
        "EXPIRE AFTER '1 h' ",
        "EVAL INTERVAL '1 s' ",
        "COMMENT 'c' ",
        "WITH (k 'v') ",
        "AS ",
        "SELECT 1 ",
        "-- end",
    ];
    prop::sample::select(vec![table, external, flow]).prop_flat_map(|parts| {
        prop::collection::vec(prop::sample::select(vec![0_usize, 1, 1, 1, 1, 1, 1, 2]), parts.len())
            .prop_map(move |times| parts.iter().zip(times).map(|(part, times)| part.repeat(times)).collect())
    })
}

fn answered(text: &str) -> Result<(), TestCaseError> {
    let count = text.lines().count() as u64;
    for statement in statements(text) {
        match statement {
            Ok(statement) => {
                prop_assert!(statement.line <= count);
                prop_assert!(text.contains(&statement.text));
                if let Some(shown) = show(&statement.statement) {
                    prop_assert_eq!(parse(&shown), statement.statement, "{}", shown);
                }
            }
            Err(error) => {
                prop_assert!(error.place().line <= count, "{error}");
                prop_assert!(text.contains(&error.place().statement), "{error}");
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn words_in_any_order(text in soup()) {
        answered(&text)?;
    }

    #[test]
    fn statements_that_are_nearly_right(text in nearly()) {
        answered(&text)?;
    }

    #[test]
    fn characters_in_any_order(text in "\\PC{0,60}|[ -~\n]{0,80}") {
        answered(&text)?;
    }

    /// The bounded dialect is DataFusion's own in every other way.
    #[test]
    fn a_query_is_what_datafusion_reads(words in prop::collection::vec(word(), 1..12)) {
        let text = format!("SELECT {}", words.join(" "));
        if text.contains(['/', ';']) {
            return Ok(());
        }
        if let Some(Ok(Statement::Query(query))) = statements(&text).next().map(|s| s.map(|s| s.statement)) {
            prop_assert_eq!(Some(query), parse_generic(&text));
        }
    }
}

//! `CREATE TABLE` and `CREATE EXTERNAL TABLE`.

use expect_test::expect;
use proptest::prelude::*;

use super::{errors, parse, show_again, shown};
use crate::sql::{CreateTable, Statement, quote_name, quote_string};

fn table(text: &str) -> CreateTable {
    match parse(text) {
        Statement::CreateTable(table) => table,
        other => panic!("{text} is {other:?}"),
    }
}

#[test]
fn both_forms_of_the_time_index_and_of_the_key_are_the_same() {
    let columns = table("CREATE TABLE t (ts TIMESTAMP(3) TIME INDEX, host STRING PRIMARY KEY)");
    let list = table("create table t (ts timestamp(3), host string, time index (ts), primary key (host))");
    assert_eq!(columns, list);
    assert_eq!(columns.time_index.as_deref(), Some("ts"));
    assert_eq!(columns.primary_key, ["host"]);
    let nullable: Vec<bool> = columns.columns.iter().map(|column| column.nullable).collect();
    assert_eq!(nullable, [false, true]);
}

#[test]
fn the_options_of_a_column_come_in_any_order() {
    let expected = table("CREATE TABLE t (a BIGINT NOT NULL DEFAULT 1 + 2 PRIMARY KEY, b INT NULL)");
    assert!(!expected.columns[0].nullable);
    assert!(expected.columns[1].nullable);
    assert_eq!(expected.columns[0].default.as_ref().unwrap().to_string(), "1 + 2");
    for text in [
        "CREATE TABLE t (a BIGINT DEFAULT 1 + 2 NOT NULL PRIMARY KEY, b INT)",
        "CREATE TABLE t (a BIGINT PRIMARY KEY DEFAULT 1 + 2 NOT NULL, b INT NULL)",
        "CREATE TABLE t (a BIGINT PRIMARY KEY NOT NULL DEFAULT 1 + 2, b INT)",
    ] {
        assert_eq!(table(text), expected, "{text}");
    }
    let index = table("CREATE TABLE t (ts TIMESTAMP DEFAULT now() TIME INDEX)");
    assert_eq!(index, table("CREATE TABLE t (ts TIMESTAMP TIME INDEX NOT NULL DEFAULT now())"));
}

#[test]
fn a_timestamp_has_its_precision_made_explicit() {
    let types = [
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("timestamp(0)", "TIMESTAMP(0)"),
        ("TIMESTAMP(9)", "TIMESTAMP(9)"),
        ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP(6) WITH TIME ZONE"),
        ("TIMESTAMP(3) WITHOUT TIME ZONE", "TIMESTAMP(3) WITHOUT TIME ZONE"),
        ("TIMESTAMPTZ", "TIMESTAMPTZ(6)"),
        ("TIMESTAMP_S", "TIMESTAMP(0)"),
        ("timestamp_ms", "TIMESTAMP(3)"),
        ("TIMESTAMP_US", "TIMESTAMP(6)"),
        ("Timestamp_NS", "TIMESTAMP(9)"),
        ("TIMESTAMP[]", "TIMESTAMP(6)[]"),
        ("ARRAY<TIMESTAMP_MS>", "ARRAY<TIMESTAMP(3)>"),
    ];
    for (written, read) in types {
        let text = format!("CREATE TABLE t (a {written})");
        assert_eq!(table(&text).columns[0].data_type.to_string(), read, "{written}");
        show_again(&text);
    }
}

#[test]
fn the_usual_types_are_read_and_shown_again() {
    let types = [
        "STRING",
        "TEXT",
        "VARCHAR",
        "VARCHAR(20)",
        "CHAR(3)",
        "INT",
        "INTEGER",
        "TINYINT",
        "SMALLINT",
        "BIGINT",
        "INT UNSIGNED",
        "TINYINT UNSIGNED",
        "SMALLINT UNSIGNED",
        "BIGINT UNSIGNED",
        "INT8",
        "INT64",
        "UINT8",
        "UINT64",
        "FLOAT",
        "REAL",
        "DOUBLE",
        "DOUBLE PRECISION",
        "FLOAT64",
        "BOOLEAN",
        "BOOL",
        "DECIMAL",
        "DECIMAL(10)",
        "DECIMAL(10, 2)",
        "NUMERIC(20,0)",
        "DATE",
        "TIME",
        "BYTEA",
        "BINARY",
        "VARBINARY",
        "INTERVAL",
        "INT[]",
        "ARRAY<INT>",
        "ARRAY<ARRAY<VARCHAR>>",
        "JSON",
        "UUID",
    ];
    for data_type in types {
        show_again(&format!(
            "CREATE TABLE t (a {data_type} NOT NULL, b {data_type} DEFAULT NULL TIME INDEX)"
        ));
    }
}

#[test]
fn words_of_the_dialect_are_names_where_names_stand() {
    let text = "CREATE TABLE flow (time TIMESTAMP TIME INDEX, index INT, key INT, sink INT, primary INT, \
                open DOUBLE, value INT, \"PRIMARY KEY\" INT, PRIMARY KEY (key, index))";
    let table = table(text);
    let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, ["time", "index", "key", "sink", "primary", "open", "value", "PRIMARY KEY"]);
    show_again(text);
}

#[test]
fn options_are_texts() {
    let text = "CREATE TABLE t (a INT) WITH (Append_Mode = TRUE, 'Merge_Mode' = 'last_non_null', ttl 30, \
                 a.b.c = -1.5, \"Q\" 'it''s', mode = Fast, e = E'tab\\t', d = $$dollar$$)";
    let options = table(text).options;
    let options: Vec<(&str, &str)> =
        options.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let expected = [
        ("Merge_Mode", "last_non_null"),
        ("Q", "it's"),
        ("a.b.c", "-1.5"),
        ("append_mode", "true"),
        ("d", "dollar"),
        ("e", "tab\t"),
        ("mode", "fast"),
        ("ttl", "30"),
    ];
    assert_eq!(options, expected);
    show_again(text);
}

#[test]
fn a_table_is_shown_as_sql() {
    expect![[r#"
        CREATE TABLE IF NOT EXISTS weather."Stations" (
          ts TIMESTAMP(6) NOT NULL,
          station STRING NOT NULL,
          "Wind m/s" DOUBLE DEFAULT 0.0,
          note TEXT DEFAULT 'it''s '' ''''',
          TIME INDEX (ts),
          PRIMARY KEY (station, "Wind m/s")
        )
        WITH ('append_mode' = 'true', 'k' = 'v')

        CREATE TABLE t (
          a INT
        )

        CREATE EXTERNAL TABLE t
        STORED AS DELTA
        LOCATION 's3://bucket/it''s'

        CREATE EXTERNAL TABLE IF NOT EXISTS a.t (
          ts TIMESTAMP(6) NOT NULL,
          v DOUBLE
        )
        STORED AS CSV
        LOCATION './x.csv'
        OPTIONS ('format.has_header' 'true', 'time_index' 'ts')

    "#]].assert_eq(&shown(&[
        "create table if not exists Weather.\"Stations\" (TS timestamp time index, Station string not null, \
         \"Wind m/s\" double default 0.0, note text default 'it''s '' ''''', primary key (station, \"Wind m/s\")) \
         with (append_mode = true, 'k' = 'v')",
        "CREATE TABLE t (a INT)",
        "CREATE EXTERNAL TABLE t STORED AS DELTA LOCATION 's3://bucket/it''s'",
        "create external table if not exists a.t (ts timestamp not null, v double) options (time_index 'ts', \
         'format.has_header' = true) location './x.csv' stored as csv",
    ]));
}

#[test]
fn mistakes_in_a_table() {
    expect![[r#"
        CREATE TABLE t
          syntax: line 1, column 15: expected `(`, found the end of the statement
        CREATE TABLE t ()
          syntax: line 1, column 17: expected a column name, found `)`
        CREATE TABLE t (a)
          syntax: line 1, column 18: expected a data type name, found `)`
        CREATE TABLE t (a INT
          syntax: line 1, column 22: expected NULL, NOT NULL, DEFAULT, TIME INDEX, PRIMARY KEY, `,` or `)`, found the end of the statement
        CREATE TABLE t (a INT,)
          syntax: line 1, column 23: expected a column name, found `)`
        CREATE TABLE t (a INT b INT)
          syntax: line 1, column 23: expected NULL, NOT NULL, DEFAULT, TIME INDEX, PRIMARY KEY, `,` or `)`, found `b`
        CREATE TABLE t (a INT) ENGINE = x
          syntax: line 1, column 24: expected the end of the statement, found `ENGINE`
        CREATE TABLE t (a INT) WITH ()
          syntax: line 1, column 30: expected the name of an option, found `)`
        CREATE TABLE t (a INT) WITH (k)
          syntax: line 1, column 31: expected the value of an option (a string, a number or a word), found `)`
        CREATE TABLE t (a INT) WITH (k = NULL)
          syntax: line 1, column 34: expected the value of an option (a string, a number or a word), found `NULL`
        CREATE TABLE t (a INT) WITH (k = 1 + 1)
          syntax: line 1, column 36: expected `)`, found `+`
        CREATE TABLE t (a INT) WITH (k = -x)
          syntax: line 1, column 35: expected a number, found `x`
        CREATE TABLE t (a INT) WITH (k = 1, 'k' = 2)
          invalid: line 1, column 37: the option `k` is given twice
        CREATE TABLE t (a INT, b INT, A TEXT)
          invalid: line 1, column 31: there are two columns `a`
        CREATE TABLE t ("" INT)
          invalid: line 1, column 17: a column name may not be empty
        CREATE TABLE t (a INT NULL NOT NULL)
          invalid: line 1, column 28: the column `a` is NULL or NOT NULL already
        CREATE TABLE t (a INT DEFAULT 1 DEFAULT 2)
          invalid: line 1, column 33: the column `a` has a DEFAULT already
        CREATE TABLE t (a INT DEFAULT)
          syntax: line 1, column 30: expected an expression, found `)`
        CREATE TABLE t (a INT UNIQUE)
          syntax: line 1, column 23: expected NULL, NOT NULL, DEFAULT, TIME INDEX, PRIMARY KEY, `,` or `)`, found `UNIQUE`
        CREATE TABLE t (a INT CHECK (a > 0))
          syntax: line 1, column 23: expected NULL, NOT NULL, DEFAULT, TIME INDEX, PRIMARY KEY, `,` or `)`, found `CHECK`
        CREATE TABLE t (a INT, UNIQUE (a))
          not supported: line 1, column 24: UNIQUE is not supported; the constraints are TIME INDEX and PRIMARY KEY
        CREATE TABLE t (a INT, CONSTRAINT c PRIMARY KEY (a))
          not supported: line 1, column 24: CONSTRAINT is not supported; the constraints are TIME INDEX and PRIMARY KEY
        CREATE TABLE t (a TIMESTAMP TIME INDEX, b TIMESTAMP TIME INDEX)
          invalid: line 1, column 53: a table has one time index, and `a` is it already
        CREATE TABLE t (a TIMESTAMP TIME INDEX, TIME INDEX (a))
          invalid: line 1, column 53: a table has one time index, and `a` is it already
        CREATE TABLE t (a TIMESTAMP, TIME INDEX (b))
          invalid: line 1, column 42: the time index `b` is not a column of the table
        CREATE TABLE t (a TIMESTAMP, b TIMESTAMP, TIME INDEX (a, b))
          syntax: line 1, column 56: expected `)`, found `,`
        CREATE TABLE t (a TIMESTAMP NULL TIME INDEX)
          invalid: line 1, column 34: the time index `a` cannot be NULL
        CREATE TABLE t (a TIMESTAMP NULL, TIME INDEX (a))
          invalid: line 1, column 47: the time index `a` cannot be NULL
        CREATE TABLE t (a INT, PRIMARY KEY (b))
          invalid: line 1, column 37: the primary key has no column `b` in the table
        CREATE TABLE t (a INT, PRIMARY KEY (a, a))
          invalid: line 1, column 40: the primary key names the column `a` twice
        CREATE TABLE t (a INT, PRIMARY KEY ())
          syntax: line 1, column 37: expected a column name, found `)`
        CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)
          invalid: line 1, column 42: a table has one primary key; to make it of several columns, write PRIMARY KEY (a, b)
        CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))
          invalid: line 1, column 36: a table has one primary key; to make it of several columns, write PRIMARY KEY (a, b)
        CREATE TABLE t (a SHAPE('a b'))
          not supported: line 1, column 19: the type SHAPE(a b) is not supported
        CREATE TABLE t (a INT DEFAULT b'it''s')
          not supported: line 1, column 23: this default cannot be stored; write it in another way
        CREATE TABLE t AS SELECT 1
          not supported: line 1, column 16: CREATE TABLE takes a list of columns; to fill the table from a query, INSERT INTO it
        CREATE TABLE t LIKE u
          not supported: line 1, column 16: CREATE TABLE takes a list of columns; to fill the table from a query, INSERT INTO it
        CREATE TABLE IF EXISTS t (a INT)
          syntax: line 1, column 14: expected a table name (a keyword is a name only in quotes: "IF"), found `IF`
        CREATE TABLE 't' (a INT)
          syntax: line 1, column 14: expected a table name, found `'t'`
    "#]].assert_eq(&errors(&[
        "CREATE TABLE t",
        "CREATE TABLE t ()",
        "CREATE TABLE t (a)",
        "CREATE TABLE t (a INT",
        "CREATE TABLE t (a INT,)",
        "CREATE TABLE t (a INT b INT)",
        "CREATE TABLE t (a INT) ENGINE = x",
        "CREATE TABLE t (a INT) WITH ()",
        "CREATE TABLE t (a INT) WITH (k)",
        "CREATE TABLE t (a INT) WITH (k = NULL)",
        "CREATE TABLE t (a INT) WITH (k = 1 + 1)",
        "CREATE TABLE t (a INT) WITH (k = -x)",
        "CREATE TABLE t (a INT) WITH (k = 1, 'k' = 2)",
        "CREATE TABLE t (a INT, b INT, A TEXT)",
        "CREATE TABLE t (\"\" INT)",
        "CREATE TABLE t (a INT NULL NOT NULL)",
        "CREATE TABLE t (a INT DEFAULT 1 DEFAULT 2)",
        "CREATE TABLE t (a INT DEFAULT)",
        "CREATE TABLE t (a INT UNIQUE)",
        "CREATE TABLE t (a INT CHECK (a > 0))",
        "CREATE TABLE t (a INT, UNIQUE (a))",
        "CREATE TABLE t (a INT, CONSTRAINT c PRIMARY KEY (a))",
        "CREATE TABLE t (a TIMESTAMP TIME INDEX, b TIMESTAMP TIME INDEX)",
        "CREATE TABLE t (a TIMESTAMP TIME INDEX, TIME INDEX (a))",
        "CREATE TABLE t (a TIMESTAMP, TIME INDEX (b))",
        "CREATE TABLE t (a TIMESTAMP, b TIMESTAMP, TIME INDEX (a, b))",
        "CREATE TABLE t (a TIMESTAMP NULL TIME INDEX)",
        "CREATE TABLE t (a TIMESTAMP NULL, TIME INDEX (a))",
        "CREATE TABLE t (a INT, PRIMARY KEY (b))",
        "CREATE TABLE t (a INT, PRIMARY KEY (a, a))",
        "CREATE TABLE t (a INT, PRIMARY KEY ())",
        "CREATE TABLE t (a INT PRIMARY KEY, b INT PRIMARY KEY)",
        "CREATE TABLE t (a INT PRIMARY KEY, PRIMARY KEY (a))",
        "CREATE TABLE t (a SHAPE('a b'))",
        "CREATE TABLE t (a INT DEFAULT b'it''s')",
        "CREATE TABLE t AS SELECT 1",
        "CREATE TABLE t LIKE u",
        "CREATE TABLE IF EXISTS t (a INT)",
        "CREATE TABLE 't' (a INT)",
    ]));
}

#[test]
fn mistakes_in_an_external_table() {
    expect![[r#"
        CREATE EXTERNAL TABLE t
          syntax: line 1, column 24: expected STORED AS, found the end of the statement
        CREATE EXTERNAL TABLE t STORED AS DELTA
          syntax: line 1, column 40: expected LOCATION, found the end of the statement
        CREATE EXTERNAL TABLE t LOCATION 'x'
          syntax: line 1, column 37: expected STORED AS, found the end of the statement
        CREATE EXTERNAL TABLE t STORED AS NDJSON LOCATION 'x'
          syntax: line 1, column 35: expected DELTA, PARQUET or CSV, found `NDJSON`
        CREATE EXTERNAL TABLE t STORED AS CSV LOCATION x
          syntax: line 1, column 48: expected a path or a URL in quotes, found `x`
        CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x' LOCATION 'y'
          invalid: line 1, column 52: this clause is given twice
        CREATE EXTERNAL TABLE t STORED AS CSV PARTITIONED BY (a) LOCATION 'x'
          not supported: line 1, column 39: this clause is not supported; the clauses are STORED AS, LOCATION and OPTIONS
        CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x' WITH ORDER (a)
          not supported: line 1, column 52: this clause is not supported; the clauses are STORED AS, LOCATION and OPTIONS
        CREATE EXTERNAL TABLE t (a TIMESTAMP TIME INDEX) STORED AS CSV LOCATION 'x'
          invalid: line 1, column 38: the time index of an external table is an option: OPTIONS ('time_index' 'a')
        CREATE EXTERNAL TABLE t (a INT PRIMARY KEY) STORED AS CSV LOCATION 'x'
          not supported: line 1, column 26: an external table has no primary key
        CREATE EXTERNAL TABLE t (a INT DEFAULT 1) STORED AS CSV LOCATION 'x'
          not supported: line 1, column 26: a column of an external table has no DEFAULT
        CREATE EXTERNAL TABLE t (a INT, a INT) STORED AS CSV LOCATION 'x'
          invalid: line 1, column 33: there are two columns `a`
    "#]].assert_eq(&errors(&[
        "CREATE EXTERNAL TABLE t",
        "CREATE EXTERNAL TABLE t STORED AS DELTA",
        "CREATE EXTERNAL TABLE t LOCATION 'x'",
        "CREATE EXTERNAL TABLE t STORED AS NDJSON LOCATION 'x'",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION x",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x' LOCATION 'y'",
        "CREATE EXTERNAL TABLE t STORED AS CSV PARTITIONED BY (a) LOCATION 'x'",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x' WITH ORDER (a)",
        "CREATE EXTERNAL TABLE t (a TIMESTAMP TIME INDEX) STORED AS CSV LOCATION 'x'",
        "CREATE EXTERNAL TABLE t (a INT PRIMARY KEY) STORED AS CSV LOCATION 'x'",
        "CREATE EXTERNAL TABLE t (a INT DEFAULT 1) STORED AS CSV LOCATION 'x'",
        "CREATE EXTERNAL TABLE t (a INT, a INT) STORED AS CSV LOCATION 'x'",
    ]));
}

proptest! {
    /// Whatever the names, strings and options are, what is shown is what was written.
    #[test]
    fn names_and_strings_of_any_kind_are_shown_as_they_were_written(
        names in prop::collection::hash_set("[a-zA-Z_'\"\\\\ü; -]{1,6}|select|time|primary", 1..4),
        text in "['\"\\\\a;\n-]{0,8}",
        key in "\\PC{1,6}",
    ) {
        let columns: Vec<String> = names
            .iter()
            .map(|name| format!("{} TEXT DEFAULT {}", quote_name(name), quote_string(&text)))
            .collect();
        let create = format!(
            "CREATE TABLE {} ({}) WITH ({} = {})",
            quote_name(&key), columns.join(", "), quote_string(&key), quote_string(&text),
        );
        let table = table(&create);
        prop_assert!(table.columns.iter().all(|column| names.contains(&column.name)));
        prop_assert_eq!(&table.name.table, &key);
        prop_assert_eq!(table.options.get(&key), Some(&text));
        show_again(&create);
    }
}

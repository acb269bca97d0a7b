//! The program, as a user runs it.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use expect_test::expect;

fn windrow(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windrow"));
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).args(arguments);
    command
}

fn run(arguments: &[&str]) -> Output {
    windrow(arguments).stdin(Stdio::null()).output().expect("the program runs")
}

fn run_with_input(arguments: &[&str], input: &str) -> Output {
    let mut command = windrow(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program runs");
    child.stdin.take().expect("its input").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

#[test]
fn the_example_merges_repairs_and_is_exact() {
    let output = run(&["run", "examples/flights.sql"]);
    let out = text(&output.stdout);
    assert!(output.status.success(), "{out}{}", text(&output.stderr));
    let lines =
        |what: &[&str]| out.lines().filter(|line| what.iter().all(|word| line.contains(word))).count();
    for flow in ["hourly", "daily", "monthly"] {
        let merged = lines(&[flow, "merge", "incremental_delta"]);
        assert_eq!(merged, 12, "every batch of {flow} but the first is merged\n{out}");
    }
    assert_eq!(lines(&["| equal"]), 3, "{out}");
    assert_eq!(lines(&["DIFFERENT"]), 0, "{out}");
    // The late rows touch few windows, and not many more rows than they are.
    let numbers = |line: &str| -> Vec<u64> {
        let parts = line.split("  ").filter(|part| !part.trim().is_empty());
        parts.skip(3).take(3).map(|part| part.replace(' ', "").parse().expect("a number")).collect()
    };
    let late = out.lines().rfind(|line| line.contains("daily") && line.contains("merge")).expect("a line");
    let [windows, read, _] = numbers(late)[..] else { panic!("{late}") };
    assert_eq!(windows, 6, "six days are merged into: {late}");
    assert!(read < 6_000, "the late rows, and those of the sink near them: {late}");
    // What is deleted is recomputed, and little else.
    let deleted =
        out.lines().rfind(|line| line.contains("hourly") && line.contains("repair")).expect("a line");
    let [windows, read, _] = numbers(deleted)[..] else { panic!("{deleted}") };
    assert!(windows < 40 && read < 100_000, "of 336 776 rows, only those near the deleted ones: {deleted}");
}

#[test]
fn rows_are_printed_as_table_csv_and_json() {
    let sql = "SELECT 1 AS n, 'a,\"b\"' AS text, TIMESTAMP '2024-01-01' AS t; SELECT 2 AS n WHERE false";
    let printed = |format: &str| text(&run(&["sql", "-c", sql, "--output", format]).stdout);
    expect![[r#"
        +---+-------+---------------------+
        | n | text  | t                   |
        +---+-------+---------------------+
        | 1 | a,"b" | 2024-01-01T00:00:00 |
        +---+-------+---------------------+
        +---+
        | n |
        +---+
        +---+
    "#]]
    .assert_eq(&printed("table"));
    expect![[r#"
        n,text,t
        1,"a,""b""",2024-01-01T00:00:00
        n
    "#]]
    .assert_eq(&printed("csv"));
    expect![[r#"
        {"n":1,"text":"a,\"b\"","t":"2024-01-01T00:00:00"}
    "#]]
    .assert_eq(&printed("json"));
}

#[test]
fn statements_are_read_from_standard_input_and_flows_follow_them() {
    let sql = "CREATE TABLE t (ts TIMESTAMP(3) TIME INDEX, v INT) WITH ('append_mode' = 'true');
        CREATE FLOW f SINK TO s AS SELECT date_trunc('day', ts) AS day, sum(v) AS v FROM t GROUP BY day;
        INSERT INTO t VALUES ('2024-01-01 10:00:00', 1), ('2024-01-01 11:00:00', 2);
        SELECT day, v FROM s;";
    let output = run_with_input(&["sql", "--output", "csv"], sql);
    expect![[r#"
        day,v
        2024-01-01T00:00:00,3
    "#]]
    .assert_eq(&text(&output.stdout));
    expect![[r#"
        created table t
        created flow f into s
        inserted 2 rows
    "#]]
    .assert_eq(&text(&output.stderr));
}

#[test]
fn a_mistake_in_the_middle_is_told_with_its_line_and_ends_with_code_1() {
    let sql = "SELECT 'first' AS word;\n\n-- a comment\nSELECT\n  FROM WHERE;\nSELECT 'last' AS word;";
    let output = run_with_input(&["sql", "--output", "csv"], sql);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "word\nfirst\n");
    let said = text(&output.stderr);
    assert!(said.starts_with("error: line 4: "), "{said}");
    assert!(said.contains("in: SELECT FROM WHERE"), "{said}");
}

#[test]
fn what_is_not_there_or_cannot_be_written_is_told_with_its_name() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let under_file = file.path().join("data").display().to_string();
    let cases: [(&[&str], &str, i32); 4] = [
        (&["run", "no/such/file.sql"], "no/such/file.sql", 1),
        (&["sql", "-c", "SELECT 1", "--data-dir", &under_file], &under_file, 1),
        (&["sql", "-c", "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'nope.csv'"], "nope.csv", 1),
        (&["sweep"], "sweep", 2),
    ];
    for (arguments, named, code) in cases {
        let output = run(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(named), "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
}

#[test]
fn a_data_directory_is_gone_on_with() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().display().to_string();
    let sql = |command: &str| {
        let output = run(&["sql", "--output", "csv", "--data-dir", &dir, "-c", command]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    sql("CREATE TABLE t (ts TIMESTAMP(3) TIME INDEX, v INT) WITH ('append_mode' = 'true');
         CREATE FLOW f SINK TO s AS SELECT date_trunc('day', ts) AS day, sum(v) AS v FROM t GROUP BY day;
         INSERT INTO t VALUES ('2024-01-01 10:00:00', 1)");
    sql("INSERT INTO t VALUES ('2024-01-01 11:00:00', 2)");
    let last = "SELECT last_move, mode, rows_written FROM information_schema.flows";
    let answer =
        sql(&format!("INSERT INTO t VALUES ('2024-01-02', 4); {last}; SELECT day, v FROM s ORDER BY day"));
    expect![[r#"
        last_move,mode,rows_written
        merge,incremental,1
        day,v
        2024-01-01T00:00:00,3
        2024-01-02T00:00:00,4
    "#]]
    .assert_eq(&answer);
}

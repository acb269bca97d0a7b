//! What the tests of the engine share.
#![allow(dead_code, unreachable_pub, missing_docs)]

use std::path::{Path, PathBuf};

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use tempfile::TempDir;
use windrow::{Answer, Engine};

/// The kinds of table that every test of results runs on.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Memory,
    #[cfg(feature = "delta")]
    Delta,
}

pub const KINDS: &[Kind] = &[
    Kind::Memory,
    #[cfg(feature = "delta")]
    Kind::Delta,
];

/// An engine, with the directory that it lives in.
pub struct Fixture {
    pub engine: Engine,
    pub dir: Option<TempDir>,
}

pub async fn engine(kind: Kind) -> Fixture {
    match kind {
        Kind::Memory => Fixture { engine: Engine::in_memory(), dir: None },
        #[cfg(feature = "delta")]
        Kind::Delta => {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let engine = Engine::open(dir.path()).await.expect("an engine");
            Fixture { engine, dir: Some(dir) }
        }
    }
}

pub fn data(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(file)
}

pub fn expected(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected").join(file)
}

pub async fn run(engine: &Engine, sql: &str) -> Vec<Answer> {
    engine.sql(sql).await.unwrap_or_else(|error| panic!("{error}"))
}

/// The error of a script that must fail.
pub async fn fails(engine: &Engine, sql: &str) -> String {
    match engine.sql(sql).await {
        Ok(answers) => panic!("{sql} must fail, and gave {answers:?}"),
        Err(error) => error.to_string(),
    }
}

pub async fn rows(engine: &Engine, query: &str) -> Vec<RecordBatch> {
    run(engine, query).await.pop().and_then(|a| a.rows().map(<[_]>::to_vec)).expect("rows")
}

/// The rows of a query, formatted as a table.
pub async fn table(engine: &Engine, query: &str) -> String {
    arrow::util::pretty::pretty_format_batches(&rows(engine, query).await).expect("a table").to_string()
}

/// The one integer that a query gives.
pub async fn number(engine: &Engine, query: &str) -> i64 {
    let batches = rows(engine, query).await;
    let column = cast(batches[0].column(0), &DataType::Int64).expect("a number");
    column.as_primitive::<Int64Type>().value(0)
}

/// Panics unless the sink of `flow` holds exactly what its query gives.
pub async fn assert_exact(engine: &Engine, flow: &str, when: &str) {
    let report = engine.check_flow(flow).await.unwrap_or_else(|error| panic!("{error}"));
    assert!(report.is_equal(), "{when}: {report:?}");
}

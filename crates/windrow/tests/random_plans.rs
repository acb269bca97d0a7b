//! Random queries over random histories, refreshed at random points, of which some fail: every sink equals its query.
//!
//! The oracle is the plain query, run over all rows by DataFusion. The cases are the same each time, unless
//! `WINDROW_FUZZ_CASES` says how many others to make; `cargo xtask fuzz plans` sets it.

mod common;
#[path = "random/grammar.rs"]
mod grammar;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use common::Kind;
use grammar::{Action, Case, Fault, case};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use windrow::Engine;
use windrow::transport::{ExecuteError, Executor, FlowOutcome, FlowQuery};

/// An executor that fails when it is told to.
#[derive(Debug)]
struct Faulty {
    inner: Arc<dyn Executor>,
    next: Arc<Mutex<Option<Fault>>>,
}

#[async_trait]
impl Executor for Faulty {
    async fn execute(&self, query: FlowQuery) -> Result<FlowOutcome, ExecuteError> {
        let failure = || ExecuteError::Query(datafusion::error::DataFusionError::Execution("a fault".into()));
        let fault = self.next.lock().expect("no panic").take();
        match fault {
            None => self.inner.execute(query).await,
            Some(Fault::Before) => Err(failure()),
            Some(Fault::AfterCommit) => {
                self.inner.execute(query).await?;
                Err(failure())
            }
        }
    }
}

struct Running {
    engine: Engine,
    next_fault: Arc<Mutex<Option<Fault>>>,
}

impl Running {
    async fn sql(&self, sql: &str) -> Result<(), TestCaseError> {
        let answer = self.engine.sql(sql).await;
        answer.map(drop).map_err(|error| TestCaseError::fail(format!("{error}")))
    }

    async fn refresh_and_check(&self, when: &str) -> Result<(), TestCaseError> {
        let failed = |error: windrow::EngineError| TestCaseError::fail(format!("{when}: {error}"));
        self.engine.refresh_until_idle().await.map_err(failed)?;
        let report = self.engine.check_flow("f").await.map_err(failed)?;
        prop_assert!(report.is_equal(), "{}: {:?}", when, report);
        Ok(())
    }
}

async fn the_sink_equals_the_query(kind: Kind, case: &Case) -> Result<(), TestCaseError> {
    let next_fault = Arc::new(Mutex::new(None));
    let next = Arc::clone(&next_fault);
    let builder = Engine::builder().executor(move |inner| Arc::new(Faulty { inner, next }));
    let dir = tempfile::tempdir().expect("a directory");
    let engine = match kind {
        Kind::Memory => builder.in_memory(),
        #[cfg(feature = "delta")]
        Kind::Delta => builder.open(dir.path()).await.expect("an engine"),
    };
    let running = Running { engine, next_fault };
    for (index, action) in case.actions().into_iter().enumerate() {
        match action {
            Action::Sql(sql) => match running.sql(&sql).await {
                // DataFusion sorts the rows of a query in one way only.
                Err(TestCaseError::Fail(why)) if why.message().contains("Conflicting ordering") => {
                    return Ok(());
                }
                done => done?,
            },
            Action::Refresh => running.refresh_and_check(&format!("action {index}")).await?,
            Action::FailingRefresh(fault) => {
                *running.next_fault.lock().expect("no panic") = fault;
                let _ = running.engine.refresh_until_idle().await;
                *running.next_fault.lock().expect("no panic") = None;
            }
        }
    }
    Ok(())
}

/// Runs so many of all cases, or as large a share of those that `WINDROW_FUZZ_CASES` asks for.
fn check(kind: Kind, cases: u32, seed: u8) {
    let asked = std::env::var("WINDROW_FUZZ_CASES").ok().and_then(|asked| asked.parse::<u64>().ok());
    let cases = asked.map_or(cases, |asked| (asked * u64::from(cases) / u64::from(ALL)).max(1) as u32);
    let config = Config { cases, max_shrink_iters: 400, failure_persistence: None, ..Config::default() };
    let mut runner = match asked {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32])),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let outcome = runner.run(&case(kind), |case| runtime.block_on(the_sink_equals_the_query(kind, &case)));
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// How many cases there are in all.
const ALL: u32 = 2_040;

#[test]
fn every_sink_in_memory_equals_its_query() {
    check(Kind::Memory, 1_000, 1);
}

/// As the one above, beside it on another processor.
#[test]
fn every_other_sink_in_memory_equals_its_query() {
    check(Kind::Memory, 1_000, 2);
}

/// A case that fails is printed as a script, which has to be one.
#[tokio::test]
async fn the_script_of_a_case_runs() {
    let config = Config { failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &[4; 32]));
    for _ in 0..20 {
        let case = case(Kind::Memory).new_tree(&mut runner).expect("a case").current();
        let script = format!("{case:?}");
        let engine = Engine::in_memory();
        let answers = match engine.sql(&script).await {
            Err(error) if error.to_string().contains("Conflicting ordering") => continue,
            answers => answers.unwrap_or_else(|error| panic!("{error} in {script}")),
        };
        let verdict = answers.last().and_then(|answer| answer.rows()).expect("a check").to_vec();
        let verdict = arrow::util::pretty::pretty_format_batches(&verdict).expect("a table").to_string();
        assert!(verdict.contains("| equal"), "{verdict} in {script}");
    }
}

#[cfg(feature = "delta")]
#[test]
fn every_delta_sink_equals_its_query() {
    check(Kind::Delta, 40, 3);
}

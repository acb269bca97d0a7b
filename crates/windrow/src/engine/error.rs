//! What can go wrong with a statement.

use datafusion::error::DataFusionError;
use windrow_plan::PlanError;
use windrow_runner::RefreshError;
use windrow_table::{SpecError, TableError};

use crate::sql::{IntervalError, SqlError};

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The text is no statement.
    #[error(transparent)]
    Sql(#[from] SqlError),
    /// There is no table of that name.
    #[error("there is no table {0}")]
    NoTable(String),
    /// There is no flow of that name.
    #[error("there is no flow {0}")]
    NoFlow(String),
    /// The name is taken.
    #[error("{kind} {name} is there already")]
    Exists {
        /// A table or a flow.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// The query has no time window and nothing says when it is to run.
    #[error(
        "the query has no time window: {reason}. Group by an expression such as date_bin(INTERVAL '1 hour', \
         <time index>) and put it in the SELECT list, or run the whole query on a schedule with EVAL INTERVAL"
    )]
    NoTimeWindow {
        /// Why it has none.
        reason: String,
    },
    /// An option is not known, or its value means nothing.
    #[error("{0}")]
    Option(String),
    /// The statement asks for what cannot be.
    #[error("{0}")]
    Refused(String),
    /// An interval cannot be used here.
    #[error("{clause}: {source}")]
    Interval {
        /// Where it was written.
        clause: &'static str,
        /// What is wrong with it.
        #[source]
        source: IntervalError,
    },
    /// A table's declaration does not hold together.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The query does not fit the sink.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// What a check needs to know about the flow's windows cannot be found.
    #[error(transparent)]
    Windows(#[from] RefreshError),
    /// A refresh failed.
    #[error("flow {flow}: {source}")]
    Refresh {
        /// The flow.
        flow: String,
        /// Why.
        #[source]
        source: Box<RefreshError>,
    },
    /// A table could not be read or written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A Delta table cannot be made or opened as declared.
    #[cfg(feature = "delta")]
    #[error(transparent)]
    Delta(#[from] windrow_delta::DeltaError),
    /// The query cannot be planned or run.
    #[error("{}", without_prefixes(.0))]
    Query(#[from] DataFusionError),
    /// The data directory cannot be used.
    #[error("the data directory {path}: {source}")]
    DataDir {
        /// The directory, or the file in it.
        path: String,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The catalog in the data directory cannot be understood.
    #[error("the catalog {path} cannot be read: {message}")]
    Catalog {
        /// The file.
        path: String,
        /// What is wrong with it.
        message: String,
    },
}

impl From<arrow::error::ArrowError> for EngineError {
    fn from(error: arrow::error::ArrowError) -> Self {
        Self::Query(error.into())
    }
}

/// DataFusion's message without the layers that it came through, which say nothing to a user.
fn without_prefixes(error: &DataFusionError) -> String {
    match error {
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => without_prefixes(inner),
        DataFusionError::Shared(inner) => without_prefixes(inner),
        DataFusionError::Collection(all) if !all.is_empty() => {
            all.iter().map(without_prefixes).collect::<Vec<_>>().join("; ")
        }
        other => other.message().into_owned(),
    }
}

/// A script that failed at one of its statements. What the statements before it did stands.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {source}\n  in: {statement}")]
pub struct ScriptError {
    /// The line of the statement's first word, from 1.
    pub line: u64,
    /// The statement, shortened.
    pub statement: String,
    /// Why it failed.
    #[source]
    pub source: Box<EngineError>,
}

impl ScriptError {
    /// An error in the statement that begins on `line` with `text`.
    #[must_use]
    pub fn new(line: u64, text: &str, source: EngineError) -> Self {
        const SHOWN: usize = 100;
        let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut statement: String = one_line.chars().take(SHOWN).collect();
        if one_line.chars().nth(SHOWN).is_some() {
            statement.push('…');
        }
        Self { line, statement, source: Box::new(source) }
    }
}

impl From<EngineError> for ScriptError {
    fn from(source: EngineError) -> Self {
        Self::new(0, "", source)
    }
}

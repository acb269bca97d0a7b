//! The engine: tables and flows, and the statements on them.
//!
//! | file | what is in it |
//! |---|---|
//! | `mod.rs`, `builder.rs` | opening an engine, running statements, refreshing flows |
//! | `registry.rs` | which tables and flows there are |
//! | `declaration.rs`, `store.rs`, `recover.rs` | how they are declared, kept in a data directory, and brought back |
//! | `tables.rs`, `external.rs` | `CREATE TABLE`, `CREATE EXTERNAL TABLE`, `DROP TABLE` |
//! | `flows.rs`, `flow_query.rs`, `flow_options.rs` | `CREATE FLOW`, `DROP FLOW`: from a statement to a flow that can run |
//! | `rows.rs`, `upsert.rs` | `INSERT`, `DELETE`, `SELECT` |
//! | `show.rs`, `information_schema.rs` | what can be asked about tables and flows |
//! | `check.rs` | `ADMIN CHECK_FLOW`: does the sink equal the query? |

mod answer;
mod builder;
mod check;
mod declaration;
mod error;
mod explain;
mod external;
mod flow_options;
mod flow_query;
mod flows;
mod information_schema;
#[cfg(feature = "delta")]
mod recover;
mod registry;
mod rows;
mod show;
mod store;
mod tables;
mod upsert;

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use datafusion::prelude::{SessionConfig, SessionContext};
use windrow_runner::{Flow, FlowTask, MoveKind, RefreshListener, RefreshReport};
use windrow_table::SinkTable;
use windrow_transport::{EmbeddedExecutor, Executor, TableResolver};

pub use self::answer::Answer;
pub use self::builder::EngineBuilder;
pub use self::check::CheckReport;
pub use self::error::{EngineError, ScriptError};
use self::information_schema::InformationSchema;
use self::registry::{CATALOG, FlowEntry, Registry, SCHEMA};
use self::store::Store;
use crate::sql::{Statement, statements};

/// Is told how many rows an `INSERT` has taken in so far.
pub type RowsLoadedListener = Arc<dyn Fn(u64) + Send + Sync>;

/// Tables, flows, and SQL on them.
///
/// An engine is a handle: clones of it are the same engine.
#[derive(Clone)]
pub struct Engine(Arc<Inner>);

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("registry", &self.0.registry).finish_non_exhaustive()
    }
}

struct Inner {
    session: SessionContext,
    registry: Arc<Registry>,
    executor: Arc<dyn Executor>,
    store: Option<Store>,
    /// One change of the catalog at a time.
    changing: tokio::sync::Mutex<()>,
    refreshed: OnceLock<RefreshListener>,
    rows_loaded: OnceLock<RowsLoadedListener>,
}

impl Engine {
    /// An engine whose tables are in memory.
    #[must_use]
    pub fn in_memory() -> Self {
        EngineBuilder::default().in_memory()
    }

    /// An engine that differs from the ordinary one.
    #[must_use]
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    fn new(store: Option<Store>, builder: EngineBuilder) -> Self {
        let config = SessionConfig::new()
            .with_default_catalog_and_schema(CATALOG, SCHEMA)
            .with_create_default_catalog_and_schema(true)
            // Tables store plain strings; a view of strings is a matter of one query.
            .set_bool("datafusion.sql_parser.map_string_types_to_utf8view", false)
            .set_bool("datafusion.execution.parquet.pushdown_filters", true);
        let session = SessionContext::new_with_config(config);
        let registry = Arc::new(Registry::default());
        InformationSchema::register(&session, Arc::clone(&registry));
        let tables = Arc::clone(&registry) as Arc<dyn TableResolver>;
        let embedded: Arc<dyn Executor> = Arc::new(EmbeddedExecutor::new(session.clone(), tables));
        let executor = match builder.executor {
            Some(around) => around(embedded),
            None => embedded,
        };
        Self(Arc::new(Inner {
            session,
            registry,
            executor,
            store,
            changing: tokio::sync::Mutex::default(),
            refreshed: OnceLock::new(),
            rows_loaded: OnceLock::new(),
        }))
    }

    /// The DataFusion session that queries run in; functions registered here can be used in flows.
    #[must_use]
    pub fn session(&self) -> &SessionContext {
        &self.0.session
    }

    /// Has `listener` told of every refresh. Only the first listener counts.
    pub fn on_refresh(&self, listener: RefreshListener) {
        let _ = self.0.refreshed.set(listener);
    }

    /// Has `listener` told of the rows that a running `INSERT` has taken in. Only the first listener counts.
    pub fn on_rows_loaded(&self, listener: RowsLoadedListener) {
        let _ = self.0.rows_loaded.set(listener);
    }

    /// Runs the statements of `script`, one after the other.
    ///
    /// # Errors
    /// At the first statement that fails, with its line. What the statements before it did stands.
    pub async fn sql(&self, script: &str) -> Result<Vec<Answer>, ScriptError> {
        let mut answers = Vec::new();
        for statement in statements(script) {
            let statement = statement.map_err(|error| {
                let place = error.place();
                ScriptError::new(place.statement_line, &place.statement.clone(), error.into())
            })?;
            let answer = self.execute(&statement.statement).await;
            answers.push(answer.map_err(|e| ScriptError::new(statement.line, &statement.text, e))?);
        }
        Ok(answers)
    }

    /// Runs one statement.
    ///
    /// # Errors
    /// See [`EngineError`]; nothing of the statement was done.
    pub async fn execute(&self, statement: &Statement) -> Result<Answer, EngineError> {
        let inner = self.0.as_ref();
        match statement {
            Statement::CreateTable(create) => inner.create_table(create).await,
            Statement::CreateExternalTable(create) => inner.create_external_table(create).await,
            Statement::DropTable { if_exists, name } => inner.drop_table(name, *if_exists).await,
            Statement::CreateFlow(create) => inner.create_flow(create).await,
            Statement::DropFlow { if_exists, name } => inner.drop_flow(name, *if_exists).await,
            Statement::FlushFlow { name } => {
                let rows = self.flush(name).await?;
                show::one_number("rows_written", rows)
            }
            Statement::ExplainFlow { name } => inner.explain_flow(name).await,
            Statement::CheckFlow { name } => inner.check_flow(name).await?.to_answer(),
            Statement::CompactTable { name } => inner.compact(name).await,
            Statement::VacuumTable { name } => inner.vacuum(name).await,
            Statement::ShowFlows { like } => inner.show_flows(like.as_deref()).await,
            Statement::ShowTables => inner.show_tables(),
            Statement::ShowCreateFlow { name } => inner.show_create_flow(name),
            Statement::ShowCreateTable { name } => inner.show_create_table(name),
            Statement::Describe { name } => inner.describe(name),
            Statement::Insert(insert) => inner.insert(insert).await,
            Statement::Delete { table, predicate } => inner.delete(table, predicate.as_ref()).await,
            Statement::Query(query) => inner.select(query).await,
            Statement::Explain(explain) => inner.datafusion_statement(explain.as_ref().clone()).await,
            Statement::SetVariable(set) => inner.set_variable(set).await,
        }
    }

    /// The flow of that name.
    #[must_use]
    pub fn flow(&self, name: &str) -> Option<Arc<Flow>> {
        self.0.registry.read().flow(name).map(|entry| Arc::clone(&entry.flow))
    }

    /// The table of that name, of those that Windrow writes.
    #[must_use]
    pub fn table(&self, name: &str) -> Option<Arc<dyn SinkTable>> {
        self.0.registry.read().tables.get(name).and_then(|entry| entry.own().cloned())
    }

    /// Inserts rows into a table, as `INSERT` does: columns are matched by name and cast, those left out get their
    /// default, a keyed table keeps the last row of each key. All batches have the columns of the first, and are one
    /// commit. The answer is the number of rows.
    ///
    /// # Errors
    /// When there is no such table, or the rows do not fit it.
    pub async fn insert(
        &self,
        table: &str,
        rows: impl IntoIterator<Item = RecordBatch>,
    ) -> Result<u64, EngineError> {
        self.0.insert_batches(table, rows.into_iter().collect()).await
    }

    /// Refreshes a flow until everything that was in its sources when this was called is in its sink; the flows that
    /// it stands on come first. The answer is the number of rows written into its sink.
    ///
    /// # Errors
    /// When there is no such flow, or a refresh fails.
    pub async fn flush(&self, flow: &str) -> Result<u64, EngineError> {
        if self.flow(flow).is_none() {
            return Err(EngineError::NoFlow(flow.to_owned()));
        }
        let mut rows = 0;
        for name in self.0.upstream_first(flow) {
            rows = 0;
            let Some(entry) = self.flow(&name) else { continue };
            loop {
                let report = self.refresh(&entry).await?;
                rows += report.rows_written;
                if !report.more {
                    break;
                }
            }
        }
        Ok(rows)
    }

    /// Refreshes every flow that has something to do, until none has: flows without a schedule whenever their sources
    /// changed, flows with one when a time of it has come. Flows on flows are followed.
    ///
    /// # Errors
    /// At the first refresh that fails.
    pub async fn refresh_until_idle(&self) -> Result<Vec<RefreshReport>, EngineError> {
        let mut reports = Vec::new();
        loop {
            let before = reports.len();
            for flow in self.0.due_flows() {
                loop {
                    let report = self.refresh(&flow).await?;
                    let more = report.more;
                    if report.kind != MoveKind::Idle {
                        reports.push(report);
                    }
                    if !more {
                        break;
                    }
                }
            }
            if reports.len() == before {
                return Ok(reports);
            }
        }
    }

    /// Keeps the flows that there are now fresh in the background, until their tasks are stopped or dropped.
    #[must_use]
    pub fn spawn_flows(&self) -> Vec<FlowTask> {
        let flows = self.0.registry.read().flows.clone();
        let spawn = |entry: FlowEntry| {
            let engine = Arc::downgrade(&self.0);
            let sink = entry.create.sink.table.clone();
            let listener: RefreshListener = Arc::new(move |result| {
                let Some(engine) = engine.upgrade() else { return };
                if result.as_ref().is_ok_and(|report| report.kind != MoveKind::Idle) {
                    engine.notify_readers_of_sink(&sink);
                }
                if let Some(listener) = engine.refreshed.get() {
                    listener(result);
                }
            });
            FlowTask::spawn(entry.flow, listener)
        };
        flows.into_iter().map(spawn).collect()
    }

    /// The names of all tables.
    #[must_use]
    pub fn table_names(&self) -> Vec<String> {
        self.0.registry.read().tables.keys().cloned().collect()
    }

    async fn refresh(&self, flow: &Arc<Flow>) -> Result<RefreshReport, EngineError> {
        let result = flow.refresh().await;
        if let Some(listener) = self.0.refreshed.get() {
            listener(&result);
        }
        result.map_err(|error| EngineError::Refresh {
            flow: flow.definition().name.clone(),
            source: Box::new(error),
        })
    }
}

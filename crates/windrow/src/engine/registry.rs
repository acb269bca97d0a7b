//! Which tables and flows there are.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use windrow_plan::is_hidden;
use windrow_runner::Flow;
use windrow_table::{LatestRows, SelectedColumns, SinkTable, SourceTable};
use windrow_transport::TableResolver;

use super::EngineError;
use super::declaration::{ExternalDeclaration, FlowDeclaration, TableDeclaration};
use crate::sql::{CreateFlow, TableName};

pub(super) const CATALOG: &str = "windrow";
pub(super) const SCHEMA: &str = "public";

/// A table, and what it can do.
#[derive(Debug, Clone)]
pub(super) enum TableEntry {
    /// One that Windrow writes.
    Own { table: Arc<dyn SinkTable>, declaration: Arc<TableDeclaration> },
    /// One that others write and that reports its changes.
    Followed { table: Arc<dyn SinkTable>, declaration: Arc<ExternalDeclaration> },
    /// Files that can only be queried.
    Files { provider: Arc<dyn TableProvider>, declaration: Arc<ExternalDeclaration> },
}

impl TableEntry {
    pub(super) fn source(&self) -> Option<Arc<dyn SourceTable>> {
        match self {
            Self::Own { table, .. } | Self::Followed { table, .. } => {
                Some(Arc::clone(table) as Arc<dyn SourceTable>)
            }
            Self::Files { .. } => None,
        }
    }

    pub(super) fn own(&self) -> Option<&Arc<dyn SinkTable>> {
        match self {
            Self::Own { table, .. } => Some(table),
            _ => None,
        }
    }

    pub(super) fn provider(&self) -> Arc<dyn TableProvider> {
        match self {
            Self::Own { table, .. } | Self::Followed { table, .. } => {
                let all = Arc::new(LatestRows::of(Arc::clone(table)));
                SelectedColumns::of(all, |column| !is_hidden(column))
            }
            Self::Files { provider, .. } => Arc::clone(provider),
        }
    }
}

/// A flow, with what was written to create it.
#[derive(Debug, Clone)]
pub(super) struct FlowEntry {
    pub(super) flow: Arc<Flow>,
    pub(super) create: Arc<CreateFlow>,
    pub(super) declaration: FlowDeclaration,
    /// The table names that the query reads.
    pub(super) reads: Vec<String>,
    /// The last time of its schedule that it ran for.
    pub(super) last_tick: Option<i64>,
}

/// The tables and flows of an engine, by name.
#[derive(Debug, Default)]
pub(super) struct Registry {
    inner: RwLock<Entries>,
}

#[derive(Debug, Default, Clone)]
pub(super) struct Entries {
    pub(super) tables: BTreeMap<String, TableEntry>,
    /// In the order of creation.
    pub(super) flows: Vec<FlowEntry>,
}

impl Entries {
    pub(super) fn flow(&self, name: &str) -> Option<&FlowEntry> {
        self.flows.iter().find(|entry| entry.declaration.name == name)
    }

    /// The flow that keeps the table `sink`.
    pub(super) fn flow_into(&self, sink: &str) -> Option<&FlowEntry> {
        self.flows.iter().find(|entry| entry.create.sink.table == sink)
    }

    /// The names of flows that read or keep `table`.
    pub(super) fn users_of(&self, table: &str) -> Vec<&str> {
        self.flows
            .iter()
            .filter(|entry| entry.create.sink.table == table || entry.reads.iter().any(|name| name == table))
            .map(|entry| entry.declaration.name.as_str())
            .collect()
    }
}

impl Registry {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Entries> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Entries> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn table(&self, name: &TableName) -> Result<TableEntry, EngineError> {
        local_name(name)?;
        self.read().tables.get(&name.table).cloned().ok_or_else(|| EngineError::NoTable(name.to_string()))
    }

    pub(super) fn table_at(&self, reference: &TableReference) -> Option<TableEntry> {
        let name = local_reference(reference)?;
        self.read().tables.get(name).cloned()
    }
}

/// The name of a table in the one schema that holds tables.
pub(super) fn local_reference(reference: &TableReference) -> Option<&str> {
    let here = reference.catalog().is_none_or(|catalog| catalog == CATALOG)
        && reference.schema().is_none_or(|schema| schema == SCHEMA);
    here.then(|| reference.table())
}

pub(super) fn local_name(name: &TableName) -> Result<(), EngineError> {
    match local_reference(&TableReference::from(name)) {
        Some(_) => Ok(()),
        None => Err(EngineError::Refused(format!(
            "tables are in the schema {SCHEMA} of the catalog {CATALOG}; there is no other for {name}"
        ))),
    }
}

pub(super) fn full_reference(table: &str) -> TableReference {
    TableReference::full(CATALOG, SCHEMA, table)
}

impl TableResolver for Registry {
    fn source(&self, table: &TableReference) -> Option<Arc<dyn SourceTable>> {
        self.table_at(table)?.source()
    }

    fn sink(&self, table: &TableReference) -> Option<Arc<dyn SinkTable>> {
        self.table_at(table)?.own().cloned()
    }
}

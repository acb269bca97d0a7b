//! Opening a data directory.

use std::path::Path;
use std::sync::Arc;

use windrow_delta::DeltaTable;

use super::external::absolute;
use super::registry::TableEntry;
use super::store::{CatalogFile, Store};
use super::{Engine, EngineBuilder, EngineError};
use crate::sql::{Statement, statements};

impl Engine {
    /// An engine whose tables and flows are kept in a directory, as Delta Lake tables and a catalog; what is there
    /// already goes on where it was. One process at a time can hold a directory.
    ///
    /// # Errors
    /// When the directory cannot be written, another process holds it, or what is in it cannot be read.
    pub async fn open(data_dir: impl AsRef<Path>) -> Result<Self, EngineError> {
        Self::open_with(data_dir.as_ref(), EngineBuilder::default()).await
    }

    pub(super) async fn open_with(data_dir: &Path, builder: EngineBuilder) -> Result<Self, EngineError> {
        let mut store = Store::open(data_dir)?;
        let catalog = store.load()?;
        store.tables_at = match &builder.tables_at {
            Some(location) => Some(absolute(location)?),
            None => catalog.tables_at.clone(),
        };
        let engine = Self::new(Some(store), builder);
        engine.recover(catalog).await?;
        Ok(engine)
    }

    /// Brings back what a data directory declares.
    async fn recover(&self, catalog: CatalogFile) -> Result<(), EngineError> {
        let inner = self.0.as_ref();
        let Some(store) = &inner.store else { return Ok(()) };
        for declaration in catalog.tables {
            let table = DeltaTable::open(store.location_of(&declaration), declaration.spec()?).await?;
            let name = declaration.name.clone();
            let entry = TableEntry::Own { table: Arc::new(table), declaration: Arc::new(declaration) };
            inner.know_table(&name, entry)?;
        }
        for declaration in catalog.external_tables {
            let Statement::CreateExternalTable(create) = only_statement(&declaration.sql)? else {
                return Err(EngineError::NoTable(declaration.name));
            };
            inner.know_table(&declaration.name, inner.open_external(&create).await?)?;
        }
        let mut changed = false;
        for declaration in catalog.flows {
            let Statement::CreateFlow(create) = only_statement(&declaration.sql)? else {
                return Err(EngineError::NoFlow(declaration.name));
            };
            let id = declaration.id.clone();
            let (entry, _) = inner.build_flow(&create, declaration).await?;
            changed |= entry.declaration.id != id;
            inner.put_flow(entry);
        }
        if changed {
            inner.save_catalog()?;
        }
        Ok(())
    }
}

fn only_statement(sql: &str) -> Result<Statement, EngineError> {
    match statements(sql).next() {
        Some(statement) => Ok(statement?.statement),
        None => Err(EngineError::Refused("the catalog has an empty statement".into())),
    }
}

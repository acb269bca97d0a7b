//! `CREATE TABLE` and `DROP TABLE`.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use datafusion::sql::parser::{DFParserBuilder, Statement as DataFusionStatement};
use windrow_plan::{STATE_PREFIX, is_hidden};
use windrow_table::{MemoryTable, SinkTable};

use super::declaration::TableDeclaration;
use super::flow_options::length;
use super::registry::{TableEntry, full_reference, local_name};
use super::store::CatalogFile;
use super::{Answer, EngineError, Inner};
use crate::sql::{ColumnSpec, CreateTable, TableName, quote_name};

impl Inner {
    pub(super) async fn create_table(&self, create: &CreateTable) -> Result<Answer, EngineError> {
        let _changing = self.changing.lock().await;
        local_name(&create.name)?;
        if self.registry.read().tables.contains_key(&create.name.table) {
            return exists(create.if_not_exists, "table", &create.name.table);
        }
        let declaration = self.declare(create).await?;
        let entry = self.make_table(declaration).await?;
        self.add_table(&create.name.table, entry)?;
        Ok(Answer::done(format!("created table {}", create.name)))
    }

    async fn declare(&self, create: &CreateTable) -> Result<TableDeclaration, EngineError> {
        let (mut append_mode, mut last_non_null, mut retention) = (false, false, None);
        for (key, value) in &create.options {
            match (key.as_str(), value.to_ascii_lowercase().as_str()) {
                ("append_mode", "true") => append_mode = true,
                ("append_mode", "false") | ("merge_mode", "last_row") => {}
                ("merge_mode", "last_non_null") => last_non_null = true,
                ("retention", _) => {
                    length(key, value)?;
                    retention = Some(value.clone());
                }
                _ => {
                    return Err(EngineError::Option(format!(
                        "a table has no option {key} = {value}; there are append_mode = true | false, \
                         merge_mode = last_row | last_non_null, and retention"
                    )));
                }
            }
        }
        if last_non_null && (append_mode || create.primary_key.is_empty()) {
            return Err(EngineError::Option(
                "merge_mode = last_non_null needs a PRIMARY KEY, and no append_mode: without a key, there are no rows \
                 to be merged"
                    .into(),
            ));
        }
        if let Some(column) = create.columns.iter().find(|column| is_hidden(&column.name)) {
            return Err(EngineError::Refused(format!(
                "the column name {} begins with {STATE_PREFIX}, which is for the states of aggregates",
                column.name
            )));
        }
        let schema = self.arrow_schema(&create.columns).await?;
        let mut defaults = BTreeMap::new();
        for column in &create.columns {
            if let Some(default) = &column.default {
                let sql = default.to_string();
                self.default_value(&sql)?;
                defaults.insert(column.name.clone(), sql);
            }
        }
        Ok(TableDeclaration {
            name: create.name.table.clone(),
            schema,
            time_index: create.time_index.clone(),
            primary_key: create.primary_key.clone(),
            append_mode,
            last_non_null,
            defaults,
            retention,
            at: None,
            folder: None,
        })
    }

    /// The Arrow types of declared columns, by DataFusion's own mapping.
    pub(super) async fn arrow_schema(&self, columns: &[ColumnSpec]) -> Result<Schema, EngineError> {
        let declared: Vec<String> = columns
            .iter()
            .map(|column| format!("{} {}", quote_name(&column.name), column.data_type))
            .collect();
        let sql = format!("CREATE TABLE t ({})", declared.join(", "));
        let statement = DFParserBuilder::new(sql.as_str()).build()?.parse_statement()?;
        let plan = self.session.state().statement_to_plan(statement).await?;
        let datafusion::logical_expr::LogicalPlan::Ddl(ddl) = plan else {
            return Err(EngineError::Refused("the column types are not understood".into()));
        };
        let inputs = ddl.inputs();
        let planned =
            inputs.first().map(|input| input.schema().as_arrow().clone()).unwrap_or_else(Schema::empty);
        let fields = planned
            .fields()
            .iter()
            .zip(columns)
            .map(|(field, column)| Field::new(field.name(), field.data_type().clone(), column.nullable));
        Ok(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// A new table as declared: in the data directory, where there is one, else in memory.
    pub(super) async fn make_table(&self, declaration: TableDeclaration) -> Result<TableEntry, EngineError> {
        let spec = declaration.spec()?;
        #[cfg(feature = "delta")]
        if let Some(store) = &self.store {
            windrow_delta::check_types(spec.schema())?;
            let folder = Some(folder_name(&declaration.name));
            let declaration = TableDeclaration { folder, at: store.tables_at.clone(), ..declaration };
            let location = store.location_of(&declaration);
            let table = match &declaration.retention {
                None => windrow_delta::DeltaTable::create(location, spec).await?,
                Some(retention) => {
                    let retention = length("retention", retention)?;
                    windrow_delta::DeltaTable::create_with_retention(location, spec, retention).await?
                }
            };
            return Ok(TableEntry::Own { table: Arc::new(table), declaration: Arc::new(declaration) });
        }
        let table: Arc<dyn SinkTable> = Arc::new(MemoryTable::new(spec));
        Ok(TableEntry::Own { table, declaration: Arc::new(declaration) })
    }

    /// Makes the table known and durable.
    pub(super) fn add_table(&self, name: &str, entry: TableEntry) -> Result<(), EngineError> {
        self.know_table(name, entry)?;
        let saved = self.save_catalog();
        if saved.is_err() {
            self.forget_table(name)?;
        }
        saved
    }

    /// Makes the table known.
    pub(super) fn know_table(&self, name: &str, entry: TableEntry) -> Result<(), EngineError> {
        self.session.register_table(full_reference(name), entry.provider())?;
        self.registry.write().tables.insert(name.to_owned(), entry);
        Ok(())
    }

    pub(super) fn forget_table(&self, name: &str) -> Result<(), EngineError> {
        self.registry.write().tables.remove(name);
        self.session.deregister_table(full_reference(name))?;
        Ok(())
    }

    pub(super) async fn drop_table(&self, name: &TableName, if_exists: bool) -> Result<Answer, EngineError> {
        let _changing = self.changing.lock().await;
        let entry = match self.registry.table(name) {
            Ok(entry) => entry,
            Err(EngineError::NoTable(_)) if if_exists => {
                return Ok(Answer::done(format!("there is no table {name}")));
            }
            Err(error) => return Err(error),
        };
        {
            let entries = self.registry.read();
            let users = entries.users_of(&name.table);
            if !users.is_empty() {
                return Err(EngineError::Refused(format!(
                    "table {name} is used by the flow {}; drop that first",
                    users.join(", ")
                )));
            }
        }
        self.forget_table(&name.table)?;
        if let Err(error) = self.save_catalog() {
            self.know_table(&name.table, entry)?;
            return Err(error);
        }
        // The catalog no longer names the files, so that a failure here leaves only files that nobody reads.
        #[cfg(feature = "delta")]
        if let (Some(store), TableEntry::Own { declaration, .. }) = (&self.store, &entry) {
            store.location_of(declaration).delete().await?;
        }
        Ok(Answer::done(format!("dropped table {name}")))
    }

    /// Writes the declarations into the data directory, where there is one.
    pub(super) fn save_catalog(&self) -> Result<(), EngineError> {
        let Some(store) = &self.store else { return Ok(()) };
        let mut catalog = CatalogFile::default();
        {
            let entries = self.registry.read();
            for entry in entries.tables.values() {
                match entry {
                    TableEntry::Own { declaration, .. } => catalog.tables.push(declaration.as_ref().clone()),
                    TableEntry::Followed { declaration, .. } | TableEntry::Files { declaration, .. } => {
                        catalog.external_tables.push(declaration.as_ref().clone());
                    }
                }
            }
            catalog.flows = entries.flows.iter().map(|entry| entry.declaration.clone()).collect();
        }
        store.save(catalog)
    }

    /// One statement of DataFusion's own dialect.
    pub(super) async fn datafusion_statement(
        &self,
        statement: DataFusionStatement,
    ) -> Result<Answer, EngineError> {
        let plan = self.session.state().statement_to_plan(statement).await?;
        self.collect(plan).await
    }
}

pub(super) fn exists(if_not_exists: bool, kind: &'static str, name: &str) -> Result<Answer, EngineError> {
    if if_not_exists {
        return Ok(Answer::done(format!("{kind} {name} is there already")));
    }
    Err(EngineError::Exists { kind, name: name.to_owned() })
}

/// A folder name that no earlier table of the same name had, with what of the name is plain.
#[cfg(feature = "delta")]
fn folder_name(table: &str) -> String {
    let plain: String =
        table.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).take(40).collect();
    format!("{plain}-{}", uuid::Uuid::new_v4().simple())
}

//! `CREATE EXTERNAL TABLE`: tables that others write.

use std::path::Path;
use std::sync::Arc;

use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};

use super::declaration::ExternalDeclaration;
use super::registry::{TableEntry, local_name};
use super::tables::exists;
use super::{Answer, EngineError, Inner};
use crate::sql::{CreateExternalTable, ExternalFormat};

impl Inner {
    pub(super) async fn create_external_table(
        &self,
        create: &CreateExternalTable,
    ) -> Result<Answer, EngineError> {
        let _changing = self.changing.lock().await;
        local_name(&create.name)?;
        if self.registry.read().tables.contains_key(&create.name.table) {
            return exists(create.if_not_exists, "table", &create.name.table);
        }
        // The catalog may be read from another working directory.
        if create.format != ExternalFormat::Delta && create.location.contains("://") {
            return Err(EngineError::Refused(format!(
                "{}: only Delta tables can be outside of the file system",
                create.location
            )));
        }
        let location = absolute(&create.location)?;
        #[cfg(feature = "delta")]
        self.refuse_own(&location)?;
        let create = CreateExternalTable { location, if_not_exists: false, ..create.clone() };
        let entry = self.open_external(&create).await?;
        self.add_table(&create.name.table, entry)?;
        Ok(Answer::done(format!("created external table {}", create.name)))
    }

    /// The table behind a declaration with an absolute location.
    pub(super) async fn open_external(
        &self,
        create: &CreateExternalTable,
    ) -> Result<TableEntry, EngineError> {
        let declaration =
            Arc::new(ExternalDeclaration { name: create.name.table.clone(), sql: create.to_string() });
        match create.format {
            ExternalFormat::Delta => self.open_delta(create, declaration).await,
            ExternalFormat::Parquet => {
                refuse_options(create, &[])?;
                let format = ParquetFormat::default().with_enable_pruning(true);
                self.open_files(create, Arc::new(format), ".parquet", declaration).await
            }
            ExternalFormat::Csv => {
                refuse_options(create, &["has_header", "delimiter"])?;
                let format = csv_format(create)?;
                self.open_files(create, Arc::new(format), ".csv", declaration).await
            }
        }
    }

    /// A table has one name: under a second one, a flow could read its own sink, and what it has not consumed yet would
    /// not be kept for it.
    #[cfg(feature = "delta")]
    fn refuse_own(&self, location: &str) -> Result<(), EngineError> {
        let Some(store) = &self.store else { return Ok(()) };
        let location = windrow_delta::Location::from(location);
        for entry in self.registry.read().tables.values() {
            if let TableEntry::Own { declaration, .. } = entry
                && store.location_of(declaration).is_same_place(&location)
            {
                let name = &declaration.name;
                return Err(EngineError::Refused(format!("{location} is the table {name} already")));
            }
        }
        Ok(())
    }

    async fn open_files(
        &self,
        create: &CreateExternalTable,
        format: Arc<dyn FileFormat>,
        extension: &str,
        declaration: Arc<ExternalDeclaration>,
    ) -> Result<TableEntry, EngineError> {
        let is_folder = Path::new(&create.location).is_dir();
        let url = ListingTableUrl::parse(&create.location)?;
        // A file that is named is read whatever it is called; of a folder, the files of the format.
        let extension = if is_folder { extension } else { "" };
        let options = ListingOptions::new(format).with_file_extension(extension);
        let state = self.session.state();
        let schema = if create.columns.is_empty() {
            options.infer_schema(&state, &url).await?
        } else {
            Arc::new(self.arrow_schema(&create.columns).await?)
        };
        let config = ListingTableConfig::new(url).with_listing_options(options).with_schema(schema);
        let provider = Arc::new(ListingTable::try_new(config)?);
        Ok(TableEntry::Files { provider, declaration })
    }

    #[cfg(feature = "delta")]
    async fn open_delta(
        &self,
        create: &CreateExternalTable,
        declaration: Arc<ExternalDeclaration>,
    ) -> Result<TableEntry, EngineError> {
        refuse_options(create, &["time_index"])?;
        if !create.columns.is_empty() {
            return Err(EngineError::Refused(
                "a Delta table has its columns in its log; leave the column list out".into(),
            ));
        }
        let time_index = create.options.get("time_index").map(String::as_str);
        let table = windrow_delta::DeltaTable::discover(create.location.as_str(), time_index, &[]).await?;
        Ok(TableEntry::Followed { table: Arc::new(table), declaration })
    }

    #[cfg(not(feature = "delta"))]
    async fn open_delta(
        &self,
        _: &CreateExternalTable,
        _: Arc<ExternalDeclaration>,
    ) -> Result<TableEntry, EngineError> {
        Err(EngineError::Refused("this program was built without Delta Lake".into()))
    }
}

/// The location, if it is a path, as one that does not depend on the working directory.
pub(super) fn absolute(location: &str) -> Result<String, EngineError> {
    let missing = |source| EngineError::DataDir { path: location.to_owned(), source };
    if location.contains("://") {
        return Ok(location.to_owned());
    }
    let path = std::fs::canonicalize(location).map_err(missing)?;
    let path = path.to_str().ok_or_else(|| EngineError::Refused(format!("{location} is not valid UTF-8")))?;
    Ok(path.to_owned())
}

fn refuse_options(create: &CreateExternalTable, known: &[&str]) -> Result<(), EngineError> {
    match create.options.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) if key == "time_index" => Err(EngineError::Option(
            "time_index is for tables that report their changes, and files do not: load them into a table \
             with INSERT INTO … SELECT"
                .into(),
        )),
        Some(key) if known.is_empty() => Err(EngineError::Option(format!("there is no option {key} here"))),
        Some(key) => {
            Err(EngineError::Option(format!("there is no option {key} here; there are {}", known.join(", "))))
        }
    }
}

fn csv_format(create: &CreateExternalTable) -> Result<CsvFormat, EngineError> {
    let mut format = CsvFormat::default().with_has_header(true);
    for (key, value) in &create.options {
        format = match (key.as_str(), value.to_ascii_lowercase().as_str(), value.as_bytes()) {
            ("has_header", "true", _) => format.with_has_header(true),
            ("has_header", "false", _) => format.with_has_header(false),
            ("delimiter", _, [byte]) => format.with_delimiter(*byte),
            _ => return Err(EngineError::Option(format!("{key} cannot be {value}"))),
        };
    }
    Ok(format)
}

//! Reading data files: one way for queries and for the table's own needs.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use chrono::DateTime;
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::config::TableParquetOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{
    CachedParquetFileReaderFactory, ParquetFileReaderFactory, ParquetRowSelection,
};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::execution::cache::default_cache::DefaultCache;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionConfig;
use datafusion::scalar::ScalarValue;
use deltalake_core::logstore::LogStoreRef;
use object_store::{ObjectMeta, ObjectStore};
use parquet::arrow::arrow_reader::RowSelection;
use roaring::RoaringTreemap;
use uuid::Uuid;
use windrow_table::{TableError, TableSpec};

use crate::DeltaError;
use crate::adapter::StoredTypes;
use crate::convert::convert;
use crate::deletions::{only, without};
use crate::file::DataFile;
use crate::snapshot::Declared;

/// How much memory the footers of a table's files may take.
const FOOTERS: usize = 16 << 20;

/// Some rows of a data file.
#[derive(Debug, Clone)]
pub(crate) struct FileRows {
    pub(crate) file: Arc<DataFile>,
    /// Which of those that are in it; all if `None`.
    pub(crate) selection: Option<RowSelection>,
}

/// Reads files of a table as rows of the declared columns.
#[derive(Debug)]
pub(crate) struct Reader {
    spec: TableSpec,
    url: ObjectStoreUrl,
    log: LogStoreRef,
    store: Arc<dyn ObjectStore>,
    // A file's path is unique in its table only, so that tables cannot share this.
    footers: Arc<FileMetadataCache>,
    /// The columns that are in files, then the ones that partition the table.
    columns: TableSchema,
    /// The names that the log has values of the latter under.
    partition_keys: Vec<String>,
    stored_types: Arc<StoredTypes>,
    own_context: Arc<TaskContext>,
}

/// What of some files is to be read, and how.
#[derive(Debug, Default)]
pub(crate) struct Request<'a> {
    /// The positions of the declared columns wanted; all if `None`.
    pub(crate) columns: Option<&'a [usize]>,
    /// A condition over [`Reader::columns`] that rows need not be given for if it does not hold.
    pub(crate) predicate: Option<Arc<dyn PhysicalExpr>>,
    /// How many rows are enough.
    pub(crate) limit: Option<usize>,
    pub(crate) options: TableParquetOptions,
    pub(crate) partitions: usize,
}

impl Reader {
    pub(crate) fn new(log: LogStoreRef, declared: &Declared) -> Result<Self, DeltaError> {
        let store = log.object_store(None);
        let failed = |error| DeltaError::storage("reading the Delta table", error);
        let spec = declared.spec.clone();
        // The storage is known to DataFusion by the scheme and host of a URL: one for each handle, as two handles
        // on one place may have different credentials.
        let url = ObjectStoreUrl::parse(format!("windrow-delta://{}", Uuid::new_v4())).map_err(failed)?;
        let own_context = Arc::new(TaskContext::default().with_session_config(SessionConfig::new()));
        own_context.runtime_env().register_object_store(url.as_ref(), Arc::clone(&store));

        let (mut partitions, mut partition_keys) = (Vec::new(), Vec::new());
        let (mut columns, mut in_files) = (Vec::new(), Vec::new());
        for (field, stored) in spec.schema().fields().iter().zip(&declared.in_files) {
            if declared.partition_columns.contains(field.name()) {
                partitions.push(Arc::clone(field));
                partition_keys.push(stored.name().clone());
            } else {
                columns.push(Arc::clone(field));
                in_files.push(Arc::clone(stored));
            }
        }
        Ok(Self {
            spec,
            url,
            log,
            store,
            footers: Arc::new(DefaultCache::new(FOOTERS)),
            columns: TableSchema::builder(Arc::new(Schema::new(columns)))
                .with_table_partition_cols(partitions)
                .build(),
            partition_keys,
            stored_types: Arc::new(StoredTypes::new(in_files)),
            own_context,
        })
    }

    pub(crate) fn spec(&self) -> &TableSpec {
        &self.spec
    }

    /// The columns that a [`Request`]'s predicate speaks of.
    pub(crate) fn columns(&self) -> &Schema {
        self.columns.table_schema()
    }

    /// Makes the files readable in another runtime than the table's own.
    pub(crate) fn register(&self, runtime: &datafusion::execution::runtime_env::RuntimeEnv) {
        runtime.register_object_store(self.url.as_ref(), Arc::clone(&self.store));
    }

    /// The rows of the table that are in the files.
    pub(crate) async fn rows_of(&self, files: Vec<Arc<DataFile>>) -> Result<Vec<FileRows>, TableError> {
        let mut rows = Vec::with_capacity(files.len());
        for file in files {
            let selection = match &file.deletions {
                None => None,
                Some(deletions) => {
                    let deleted = deletions.rows(&self.log).await?;
                    Some(without(deleted, self.stored_rows(&file).await?)?)
                }
            };
            rows.push(FileRows { file, selection });
        }
        Ok(rows)
    }

    /// The rows of one file that two versions of the table do not have both.
    pub(crate) async fn difference(
        &self,
        before: &DataFile,
        after: &Arc<DataFile>,
    ) -> Result<FileRows, TableError> {
        let none = RoaringTreemap::new();
        let mut deleted = [&none, &none];
        for (rows, file) in deleted.iter_mut().zip([before, after]) {
            if let Some(deletions) = &file.deletions {
                *rows = deletions.rows(&self.log).await?;
            }
        }
        let selection = only(&(deleted[0] ^ deleted[1]), self.stored_rows(after).await?)?;
        Ok(FileRows { file: Arc::clone(after), selection: Some(selection) })
    }

    /// How many rows are in the file: by the log, or by its footer.
    async fn stored_rows(&self, file: &DataFile) -> Result<u64, TableError> {
        if let Some(rows) = file.stored_rows {
            return Ok(rows);
        }
        let footers = self.footers();
        let metrics = ExecutionPlanMetricsSet::new();
        let mut reader =
            footers.create_reader(0, PartitionedFile::new_from_meta(meta_of(file)), None, &metrics)?;
        let footer = reader
            .get_metadata(None)
            .await
            .map_err(|error| TableError::storage(format!("the file {}", file.path()), error))?;
        Ok(footer.file_metadata().num_rows().unsigned_abs())
    }

    fn footers(&self) -> CachedParquetFileReaderFactory {
        CachedParquetFileReaderFactory::new(Arc::clone(&self.store), Arc::clone(&self.footers))
    }

    /// A plan that gives these rows.
    pub(crate) fn plan(&self, files: &[FileRows], request: Request<'_>) -> Result<Arc<dyn ExecutionPlan>> {
        let declared = self.spec.schema();
        let wanted: Vec<usize> = match request.columns {
            Some(columns) => columns.to_vec(),
            None => (0..declared.fields().len()).collect(),
        };
        if files.is_empty() {
            return Ok(Arc::new(EmptyExec::new(Arc::new(declared.project(&wanted)?))));
        }
        let mut options = request.options;
        // Delta has microseconds; read as nanoseconds, dates of other centuries would overflow.
        options.global.coerce_int96 = Some("us".into());
        let hint = options.global.metadata_size_hint;
        let mut source = ParquetSource::new(self.columns.clone())
            .with_table_parquet_options(options)
            .with_parquet_file_reader_factory(Arc::new(self.footers()));
        if let Some(bytes) = hint {
            source = source.with_metadata_size_hint(bytes);
        }
        if let Some(predicate) = request.predicate {
            source = source.with_predicate(predicate);
        }
        let positions = wanted
            .iter()
            .map(|&index| self.columns().index_of(declared.field(index).name()))
            .collect::<Result<_, _>>()?;
        let groups =
            FileGroup::new(files.iter().map(|file| self.partitioned_file(file)).collect::<Result<_>>()?)
                .split_files(request.partitions.max(1));
        let config = FileScanConfigBuilder::new(self.url.clone(), Arc::new(source))
            .with_file_groups(groups)
            .with_statistics(statistics(self.columns(), files.iter().map(|rows| &rows.file)))
            .with_expr_adapter(Some(Arc::clone(&self.stored_types) as _))
            .with_limit(request.limit)
            .with_projection_indices(Some(positions))?
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    fn partitioned_file(&self, rows: &FileRows) -> Result<PartitionedFile> {
        let partitions = self.columns.table_partition_cols().iter().zip(&self.partition_keys);
        let values = partitions.map(|(field, key)| partition_value(&rows.file, key, field));
        let file = PartitionedFile::new_from_meta(meta_of(&rows.file))
            .with_partition_values(values.collect::<Result<_>>()?);
        Ok(match &rows.selection {
            None => file,
            Some(selection) => file.with_extension(ParquetRowSelection::new(selection.clone())),
        })
    }

    /// The time index of all rows of a file, where it partitions the table.
    pub(crate) fn partition_instant(&self, file: &DataFile) -> Option<i64> {
        let time_index = self.spec.time_index_name()?;
        let partitions = self.columns.table_partition_cols().iter().zip(&self.partition_keys);
        let (field, key) = partitions.into_iter().find(|(field, _)| field.name() == time_index)?;
        let instant = partition_value(file, key, field).ok()?.cast_to(&DataType::Int64).ok()?;
        match instant {
            ScalarValue::Int64(instant) => instant,
            _ => None,
        }
    }

    /// These rows, with these of the declared columns.
    pub(crate) async fn read(
        &self,
        files: &[FileRows],
        columns: Option<&[usize]>,
    ) -> Result<Vec<RecordBatch>, TableError> {
        let partitions = self.own_context.session_config().target_partitions();
        let plan = self.plan(files, Request { columns, partitions, ..Request::default() })?;
        Ok(collect(plan, Arc::clone(&self.own_context)).await?)
    }

    /// The time index of these rows; nothing where the table has none.
    pub(crate) async fn instants(&self, files: &[FileRows]) -> Result<Vec<ArrayRef>, TableError> {
        let Some(index) = self.spec.time_index() else { return Ok(Vec::new()) };
        let batches = self.read(files, Some(&[index])).await?;
        Ok(batches.iter().map(|batch| Arc::clone(batch.column(0))).collect())
    }
}

/// What is known of the files without reading them.
pub(crate) fn statistics<'a>(
    columns: &Schema,
    files: impl IntoIterator<Item = &'a Arc<DataFile>>,
) -> Statistics {
    let rows = files.into_iter().map(|file| file.rows()).sum::<Option<u64>>();
    let rows = rows.and_then(|rows| usize::try_from(rows).ok());
    Statistics::new_unknown(columns).with_num_rows(rows.map_or(Precision::Absent, Precision::Exact))
}

fn meta_of(file: &DataFile) -> ObjectMeta {
    ObjectMeta {
        location: file.location().clone(),
        last_modified: DateTime::from_timestamp_millis(file.modified).unwrap_or_default(),
        size: file.size,
        e_tag: None,
        version: None,
    }
}

/// The value of a column that is in the log instead of in the file; no text is NULL.
fn partition_value(file: &DataFile, key: &str, field: &Field) -> Result<ScalarValue> {
    let text = file.partition_values.get(key).and_then(Option::as_deref).filter(|text| !text.is_empty());
    let Some(text) = text else { return ScalarValue::try_from(field.data_type()) };
    let name = field.name();
    let failed = |error: DataFusionError| error.context(format!("the partition {name}={text}"));
    let stored = crate::types::stored_type(field.data_type())
        .map_err(|_| DataFusionError::Plan(format!("column {name} cannot partition a table")))?;
    let value = ScalarValue::try_from_string(text.to_owned(), &stored).map_err(failed)?;
    let value = convert(&value.to_array()?, field.data_type())?;
    ScalarValue::try_from_array(&value, 0)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::TimeUnit;
    use deltalake_core::kernel::AddCDCFile;

    use super::*;

    fn partition(text: Option<&str>) -> DataFile {
        let values = [("p".to_owned(), text.map(str::to_owned))].into();
        let rows = AddCDCFile {
            path: "x.parquet".into(),
            size: 0,
            partition_values: values,
            data_change: false,
            tags: None,
        };
        DataFile::of_change_feed(&rows).unwrap()
    }

    #[test]
    fn a_partition_is_read_in_the_declared_type() {
        let utc = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
        let millis = |instant| ScalarValue::TimestampMillisecond(Some(instant), Some("UTC".into()));
        for (data_type, text, expected) in [
            (DataType::Utf8View, Some("a b"), ScalarValue::Utf8View(Some("a b".into()))),
            (DataType::Utf8, Some(""), ScalarValue::Utf8(None)),
            (DataType::UInt8, None, ScalarValue::UInt8(None)),
            (DataType::UInt8, Some("255"), ScalarValue::UInt8(Some(255))),
            (DataType::Boolean, Some("true"), ScalarValue::Boolean(Some(true))),
            (DataType::Date32, Some("1969-12-31"), ScalarValue::Date32(Some(-1))),
            (DataType::Decimal128(5, 2), Some("-1.50"), ScalarValue::Decimal128(Some(-150), 5, 2)),
            (utc.clone(), Some("1970-01-01T00:00:01.5Z"), millis(1_500)),
            (utc, Some("1970-01-01 00:00:01"), millis(1_000)),
        ] {
            let field = Field::new("p", data_type, true);
            let file = partition(text);
            assert_eq!(partition_value(&file, "p", &field).unwrap(), expected, "{text:?}");
        }
        let field = Field::new("p", DataType::UInt8, true);
        assert!(partition_value(&partition(Some("-1")), "p", &field).is_err());
    }
}

//! Writing rows into data files.
//!
//! Rows are collected until there are enough for a file, sorted by the time index, and written: files and row groups
//! then hold neighbouring instants, which is what pruning lives on. No more than one file's rows are in memory.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array, RecordBatch};
use arrow::compute::{cast, interleave_record_batch};
use arrow::datatypes::{DataType, Float32Type, Float64Type, Int64Type, Schema, SchemaRef};
use chrono::Utc;
use deltalake_core::kernel::Add;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;
use uuid::Uuid;
use windrow_table::{RowStream, TableError, TableSpec};

use crate::DeltaError;
use crate::convert::convert_batch;
use crate::stats::{NewFile, TimeBounds};
use crate::types::stored_schema;

/// Rows in a row group.
pub(crate) const ROW_GROUP: usize = 128 << 10;
/// Rows in a file, at most.
pub(crate) const ROWS_PER_FILE: usize = 1 << 20;
/// Bytes in memory of the rows in a file, about.
const BYTES_PER_FILE: usize = 128 << 20;

/// How a table's files are written.
#[derive(Debug)]
pub(crate) struct Layout {
    spec: TableSpec,
    stored: SchemaRef,
    properties: WriterProperties,
}

impl Layout {
    pub(crate) fn new(spec: &TableSpec) -> Result<Self, DeltaError> {
        let level =
            ZstdLevel::try_new(1).map_err(|error| DeltaError::storage("the Parquet writer", error))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_max_row_group_row_count(Some(ROW_GROUP))
            .set_created_by(format!("windrow {}", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self { spec: spec.clone(), stored: stored_schema(spec.schema())?, properties })
    }

    fn options_for(&self, batches: &[RecordBatch]) -> ArrowWriterOptions {
        let mut properties = self.properties.clone();
        for (index, field) in self.stored.fields().iter().enumerate() {
            // A Parquet file's statistics are silent about NaN, which is greater than any number here: by them, a
            // file with a NaN would be left out of what is greater than its greatest number.
            if batches.iter().any(|batch| has_nan(batch.column(index))) {
                let column = ColumnPath::new(vec![field.name().clone()]);
                let builder = properties.into_builder();
                properties = builder.set_column_statistics_enabled(column, EnabledStatistics::None).build();
            }
        }
        // Every reader gets the types from the Delta schema; a second one in each footer only costs.
        ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true)
    }

    /// The rows, if they fit the table, with exactly its declared columns.
    pub(crate) fn fit(&self, batch: &RecordBatch) -> Result<RecordBatch, TableError> {
        let declared = self.spec.schema();
        if batch.num_columns() != declared.fields().len() {
            let (found, wanted) = (batch.num_columns(), declared.fields().len());
            return Err(TableError::Schema(format!("they have {found} columns, not {wanted}")));
        }
        for (index, (field, column)) in declared.fields().iter().zip(batch.columns()).enumerate() {
            let name = field.name();
            if column.data_type() != field.data_type() {
                let (found, wanted) = (column.data_type(), field.data_type());
                return Err(TableError::Schema(format!("column {name} is {wanted}, not {found}")));
            }
            if field.is_nullable() || column.null_count() == 0 {
                continue;
            }
            let column = name.clone();
            return Err(match self.spec.time_index() == Some(index) {
                true => TableError::NullTimeIndex { column },
                false => TableError::Schema(format!("column {column} cannot be NULL")),
            });
        }
        Ok(RecordBatch::try_new(Arc::clone(declared), batch.columns().to_vec())?)
    }
}

fn has_nan(column: &dyn Array) -> bool {
    match column.data_type() {
        DataType::Float32 => column.as_primitive::<Float32Type>().iter().flatten().any(f32::is_nan),
        DataType::Float64 => column.as_primitive::<Float64Type>().iter().flatten().any(f64::is_nan),
        _ => false,
    }
}

/// Files that were written and are not in the log yet.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    pub(crate) adds: Vec<Add>,
    pub(crate) rows: u64,
}

impl Staged {
    /// Deletes the files, as far as that is possible: what remains is in nobody's way.
    pub(crate) async fn discard(&self, store: &dyn ObjectStore) {
        for add in &self.adds {
            if let Err(error) = store.delete(&Path::from(add.path.as_str())).await {
                tracing::debug!(%error, path = add.path, "a file that is not needed was not deleted");
            }
        }
    }
}

/// Writes rows into files of at most so many rows.
#[derive(Debug)]
pub(crate) struct FileWriter {
    layout: Arc<Layout>,
    store: Arc<dyn ObjectStore>,
    rows_per_file: usize,
    pending: Vec<RecordBatch>,
    pending_rows: usize,
    pending_bytes: usize,
    staged: Staged,
}

impl FileWriter {
    pub(crate) fn new(layout: Arc<Layout>, store: Arc<dyn ObjectStore>, rows_per_file: usize) -> Self {
        Self {
            layout,
            store,
            rows_per_file,
            pending: Vec::new(),
            pending_rows: 0,
            pending_bytes: 0,
            staged: Staged::default(),
        }
    }

    /// Writes all rows of the stream. When that fails, no file is left behind.
    pub(crate) async fn write_all(mut self, mut rows: RowStream) -> Result<Staged, TableError> {
        let written = async {
            while let Some(batch) = rows.try_next().await? {
                self.push(&batch).await?;
            }
            Ok(())
        };
        let written = written.await;
        self.finish(written).await
    }

    /// Adds rows of the declared columns.
    pub(crate) async fn push(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        let stored = convert_batch(&self.layout.fit(batch)?, &self.layout.stored)?;
        let mut offset = 0;
        while offset < stored.num_rows() {
            let length = (stored.num_rows() - offset).min(self.rows_per_file - self.pending_rows);
            let part = stored.slice(offset, length);
            offset += length;
            self.pending_rows += length;
            self.pending_bytes += part
                .columns()
                .iter()
                .map(|column| column.to_data().get_slice_memory_size().unwrap_or_default())
                .sum::<usize>();
            self.pending.push(part);
            if self.pending_rows >= self.rows_per_file || self.pending_bytes >= BYTES_PER_FILE {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// The files, if `written` went well; otherwise they are deleted.
    pub(crate) async fn finish(mut self, written: Result<(), TableError>) -> Result<Staged, TableError> {
        let flushed = match written {
            Ok(()) => self.flush().await,
            Err(error) => Err(error),
        };
        match flushed {
            Ok(()) => Ok(self.staged),
            Err(error) => {
                self.staged.discard(self.store.as_ref()).await;
                Err(error)
            }
        }
    }

    async fn flush(&mut self) -> Result<(), TableError> {
        let batches = std::mem::take(&mut self.pending);
        let rows = std::mem::take(&mut self.pending_rows);
        self.pending_bytes = 0;
        if rows == 0 {
            return Ok(());
        }
        let path = format!("part-{:05}-{}.zstd.parquet", self.staged.adds.len(), Uuid::new_v4());
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
            TableError::storage(format!("writing the file {path}"), error)
        };
        // Sorting and encoding a file takes long enough to be in the way of other tasks.
        let layout = Arc::clone(&self.layout);
        let (bytes, facts) = tokio::task::spawn_blocking(move || encode(&layout, &batches))
            .await
            .map_err(|error| failed(error.into()))?
            .map_err(|error| failed(error.into()))?;
        let size = bytes.len();
        let stats = facts.to_json().map_err(|error| failed(error.into()))?;
        self.store
            .put(&Path::from(path.as_str()), bytes.into())
            .await
            .map_err(|error| failed(error.into()))?;
        self.staged.rows += rows as u64;
        self.staged.adds.push(Add {
            path,
            size: size as i64,
            modification_time: Utc::now().timestamp_millis(),
            data_change: true,
            stats: Some(stats),
            ..Add::default()
        });
        Ok(())
    }
}

/// The Parquet file of the rows, sorted by the time index, and what is in it.
fn encode(layout: &Layout, batches: &[RecordBatch]) -> Result<(Vec<u8>, NewFile), ParquetError> {
    let times = layout.spec.time_index().map(|index| instants(batches, index)).transpose()?;
    let options = layout.options_for(batches);
    let mut writer = ArrowWriter::try_new_with_options(Vec::new(), Arc::clone(&layout.stored), options)?;
    match times.as_deref().and_then(order) {
        Some(order) => {
            let sources: Vec<&RecordBatch> = batches.iter().collect();
            for rows in order.chunks(ROW_GROUP) {
                writer.write(&interleave_record_batch(&sources, rows)?)?;
            }
        }
        None => {
            for batch in batches {
                writer.write(batch)?;
            }
        }
    }
    let facts = facts(layout, batches, times.as_deref());
    Ok((writer.into_inner()?, facts))
}

/// The instants of each batch, in microseconds.
fn instants(batches: &[RecordBatch], index: usize) -> Result<Vec<Int64Array>, ParquetError> {
    let instants = batches.iter().map(|batch| {
        let instants = cast(batch.column(index), &DataType::Int64)?;
        Ok(instants.as_primitive::<Int64Type>().clone())
    });
    instants.collect()
}

/// The rows (batch, row) by instant, those without at the end; `None` where they are in order already.
fn order(times: &[Int64Array]) -> Option<Vec<(usize, usize)>> {
    let key = |instant: Option<i64>| (instant.is_none(), instant);
    if times.iter().flatten().map(key).is_sorted() {
        return None;
    }
    let mut rows: Vec<_> = times
        .iter()
        .enumerate()
        .flat_map(|(batch, instants)| {
            instants.iter().enumerate().map(move |(row, instant)| (key(instant), (batch, row)))
        })
        .collect();
    // By batch and row too, so that equal instants stay in the order that they came in.
    rows.sort_unstable();
    Some(rows.into_iter().map(|(_, row)| row).collect())
}

fn facts(layout: &Layout, batches: &[RecordBatch], times: Option<&[Int64Array]>) -> NewFile {
    let schema: &Schema = &layout.stored;
    let nulls = schema.fields().iter().enumerate().filter(|(_, field)| !field.data_type().is_nested());
    let nulls = nulls.map(|(index, field)| {
        let count: usize = batches.iter().map(|batch| batch.column(index).null_count()).sum();
        (field.name().clone(), count as u64)
    });
    let bounds = times.zip(layout.spec.time_index()).and_then(|(times, index)| {
        let field = schema.field(index);
        let instants = || times.iter().flatten().flatten();
        Some(TimeBounds {
            column: field.name().clone(),
            zoned: matches!(field.data_type(), DataType::Timestamp(_, Some(_))),
            first: instants().min()?,
            last: instants().max()?,
        })
    });
    NewFile {
        rows: batches.iter().map(|batch| batch.num_rows() as u64).sum(),
        nulls: nulls.collect(),
        times: bounds,
    }
}

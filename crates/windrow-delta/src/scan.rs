//! Some files of a table, as a provider for queries.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Statistics};
use datafusion::config::TableParquetOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use windrow_table::TimeSpans;

use crate::file::DataFile;
use crate::reader::{Reader, Request, statistics};

/// The rows of some files. Files that no row of can pass the filters, by the time index, are left out; of the
/// others, row groups and pages are, by the statistics that they have.
#[derive(Debug)]
pub(crate) struct FileScan {
    reader: Arc<Reader>,
    files: Vec<Arc<DataFile>>,
}

impl FileScan {
    pub(crate) fn new(reader: Arc<Reader>, files: Vec<Arc<DataFile>>) -> Self {
        Self { reader, files }
    }

    fn files_for(&self, state: &dyn Session, filters: &[Expr]) -> Result<Vec<Arc<DataFile>>> {
        let spans = TimeSpans::new(self.reader.spec(), self.files.iter().map(|file| file.span));
        let wanted = spans.may_pass(state, filters)?;
        let kept = self.files.iter().zip(wanted).filter(|(_, wanted)| *wanted);
        Ok(kept.map(|(file, _)| Arc::clone(file)).collect())
    }
}

#[async_trait]
impl TableProvider for FileScan {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.reader.spec().schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.reader.register(state.runtime_env());
        let files = self.files_for(state, filters)?;
        let files =
            self.reader.rows_of(files).await.map_err(|error| DataFusionError::External(Box::new(error)))?;
        let columns = DFSchema::try_from(self.reader.columns().clone())?;
        let predicate = conjunction(filters.iter().cloned())
            .map(|filter| state.create_physical_expr(filter, &columns))
            .transpose()?;
        let mut options = TableParquetOptions::new();
        options.global = state.config_options().execution.parquet.clone();
        let request = Request {
            columns: projection.map(Vec::as_slice),
            // The filters are applied again above: what stops early must not count rows that they will take out.
            limit: limit.filter(|_| filters.is_empty()),
            predicate,
            options,
            partitions: state.config().target_partitions(),
        };
        self.reader.plan(&files, request)
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(statistics(self.reader.spec().schema(), &self.files))
    }
}

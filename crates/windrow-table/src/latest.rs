//! A table as a query's session sees it.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use crate::{ReadBounds, SourceTable};

/// The rows that a table has when a scan of it opens: what a session's catalog holds for a [`SourceTable`].
#[derive(Debug)]
pub struct LatestRows<T: ?Sized>(Arc<T>);

impl<T: SourceTable + ?Sized> LatestRows<T> {
    /// The newest rows of `table`.
    #[must_use]
    pub fn of(table: Arc<T>) -> Self {
        Self(table)
    }
}

#[async_trait]
impl<T: SourceTable + ?Sized + 'static> TableProvider for LatestRows<T> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.0.spec().schema())
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
        let rows = self
            .0
            .scan(&ReadBounds::Latest)
            .await
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        rows.scan(state, projection, filters, limit).await
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}

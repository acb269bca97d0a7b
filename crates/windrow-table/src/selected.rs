//! Some of a table's columns.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

/// A provider with some of the columns of another one.
#[derive(Debug)]
pub struct SelectedColumns {
    provider: Arc<dyn TableProvider>,
    columns: Vec<usize>,
    schema: SchemaRef,
}

impl SelectedColumns {
    /// The columns of `provider` whose names are `wanted`, in the provider's order; the provider itself, where that is
    /// all of them.
    #[must_use]
    pub fn of(provider: Arc<dyn TableProvider>, wanted: impl Fn(&str) -> bool) -> Arc<dyn TableProvider> {
        let all = provider.schema();
        let columns: Vec<usize> =
            (0..all.fields().len()).filter(|&index| wanted(all.field(index).name())).collect();
        if columns.len() == all.fields().len() {
            return provider;
        }
        let fields: Vec<_> = columns.iter().map(|&index| Arc::clone(&all.fields()[index])).collect();
        let schema = Arc::new(Schema::new_with_metadata(fields, all.metadata().clone()));
        Arc::new(Self { provider, columns, schema })
    }
}

#[async_trait]
impl TableProvider for SelectedColumns {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        self.provider.table_type()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = match projection {
            Some(wanted) => wanted.iter().map(|&index| self.columns[index]).collect(),
            None => self.columns.clone(),
        };
        self.provider.scan(state, Some(&columns), filters, limit).await
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.provider.supports_filters_pushdown(filters)
    }
}

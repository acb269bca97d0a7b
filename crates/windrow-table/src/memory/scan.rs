//! Reading segments in memory.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use super::history::Segment;
use crate::{TableSpec, TimeSpans};

/// Some segments of a table, as a provider; the segments that no row of can pass the filters are left out.
#[derive(Debug)]
pub(super) struct MemoryScan {
    spec: TableSpec,
    segments: Vec<Arc<Segment>>,
}

impl MemoryScan {
    pub(super) fn new(spec: TableSpec, segments: Vec<Arc<Segment>>) -> Self {
        Self { spec, segments }
    }
}

#[async_trait]
impl TableProvider for MemoryScan {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.spec.schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let spans = TimeSpans::new(&self.spec, self.segments.iter().map(|segment| segment.span()));
        let wanted = spans.may_pass(state, filters)?;
        let batches: Vec<_> = self
            .segments
            .iter()
            .zip(wanted)
            .filter(|(_, wanted)| *wanted)
            .map(|(segment, _)| segment.batch().clone())
            .collect();
        let partitions = state.config().target_partitions().clamp(1, batches.len().max(1));
        let size = batches.len().div_ceil(partitions).max(1);
        let partitions: Vec<_> = batches.chunks(size).map(<[_]>::to_vec).collect();
        let partitions = if partitions.is_empty() { vec![Vec::new()] } else { partitions };
        let plan = MemorySourceConfig::try_new_exec(&partitions, self.schema(), projection.cloned())?;
        Ok(plan)
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    fn statistics(&self) -> Option<Statistics> {
        let rows = self.segments.iter().map(|segment| segment.batch().num_rows()).sum();
        Some(Statistics::new_unknown(self.spec.schema()).with_num_rows(Precision::Exact(rows)))
    }
}

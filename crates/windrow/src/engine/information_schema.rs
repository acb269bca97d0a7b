//! `information_schema`: DataFusion's tables, and `flows`.

use std::sync::{Arc, Weak};

use arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampMillisecondArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use async_trait::async_trait;
use datafusion::catalog::information_schema::{INFORMATION_SCHEMA, InformationSchemaProvider};
use datafusion::catalog::{CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::datasource::MemTable;
use datafusion::error::{DataFusionError, Result};
use datafusion::prelude::SessionContext;

use super::flows::sink_name;
use super::registry::{CATALOG, FlowEntry, Registry};

const FLOWS: &str = "flows";

/// The schema; it holds the session's catalogs weakly, because it is in one of them.
#[derive(Debug)]
pub(super) struct InformationSchema {
    catalogs: Weak<dyn CatalogProviderList>,
    registry: Arc<Registry>,
}

impl InformationSchema {
    /// Puts the schema into the session's catalog.
    pub(super) fn register(session: &SessionContext, registry: Arc<Registry>) {
        let state = session.state_ref();
        let catalogs = Arc::clone(state.read().catalog_list());
        let schema = Arc::new(Self { catalogs: Arc::downgrade(&catalogs), registry });
        if let Some(catalog) = catalogs.catalog(CATALOG)
            && let Err(error) = catalog.register_schema(INFORMATION_SCHEMA, schema)
        {
            tracing::error!(%error, "the information schema cannot be registered");
        }
    }

    fn others(&self) -> Option<InformationSchemaProvider> {
        Some(InformationSchemaProvider::new(self.catalogs.upgrade()?))
    }
}

#[async_trait]
impl SchemaProvider for InformationSchema {
    fn table_names(&self) -> Vec<String> {
        let mut names = self.others().map(|others| others.table_names()).unwrap_or_default();
        names.push(FLOWS.to_owned());
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        if name == FLOWS {
            let batch = flows(&self.registry.read().flows)?;
            return Ok(Some(Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?)));
        }
        match self.others() {
            Some(others) => others.table(name).await,
            None => Ok(None),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        name == FLOWS || self.others().is_some_and(|others| others.table_exist(name))
    }
}

fn flows_schema() -> SchemaRef {
    let text = |name| Field::new(name, DataType::Utf8, true);
    Arc::new(Schema::new(vec![
        text("flow_catalog"),
        text("flow_schema"),
        text("flow_name"),
        text("source_tables"),
        text("sink_table"),
        text("flow_definition"),
        text("comment"),
        text("expire_after"),
        text("eval_interval"),
        text("options"),
        Field::new("created_time", DataType::Timestamp(TimeUnit::Millisecond, None), true),
        text("refresh"),
        text("not_mergeable"),
        text("mode"),
        text("checkpoint"),
        Field::new("dirty_ranges", DataType::UInt64, true),
        text("last_move"),
        text("last_decision"),
        text("last_reason"),
        text("last_error"),
        Field::new("refreshes", DataType::UInt64, true),
        Field::new("failures", DataType::UInt64, true),
        Field::new("rows_written", DataType::UInt64, true),
    ]))
}

fn flows(entries: &[FlowEntry]) -> Result<RecordBatch> {
    let status: Vec<_> = entries.iter().map(|entry| entry.flow.status()).collect();
    let text = |value: &dyn Fn(usize, &FlowEntry) -> Option<String>| -> ArrayRef {
        let values = entries.iter().enumerate().map(|(index, entry)| value(index, entry));
        Arc::new(values.collect::<StringArray>())
    };
    let number = |value: &dyn Fn(usize) -> u64| -> ArrayRef {
        Arc::new((0..entries.len()).map(|index| Some(value(index))).collect::<UInt64Array>())
    };
    let created = entries.iter().map(|entry| Some(entry.declaration.created_millis));
    let columns: Vec<ArrayRef> = vec![
        text(&|_, _| Some(CATALOG.to_owned())),
        text(&|_, _| Some(super::SCHEMA.to_owned())),
        text(&|_, entry| Some(entry.declaration.name.clone())),
        text(&|_, entry| Some(entry.reads.join(", "))),
        text(&|_, entry| Some(sink_name(&entry.create).to_string())),
        text(&|_, entry| Some(entry.create.query_text.clone())),
        text(&|_, entry| entry.create.comment.clone()),
        text(&|_, entry| entry.create.expire_after.map(|interval| interval.to_string())),
        text(&|_, entry| entry.create.eval_interval.map(|interval| interval.to_string())),
        text(&|_, entry| {
            let options = entry.create.options.iter().map(|(key, value)| format!("{key} = {value}"));
            Some(options.collect::<Vec<_>>().join(", "))
        }),
        Arc::new(created.collect::<TimestampMillisecondArray>()),
        text(&|_, entry| Some(refresh_kind(entry).to_owned())),
        text(&|_, entry| {
            let reasons = entry.flow.definition().merge.as_ref().err()?;
            Some(reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        }),
        text(&|index, _| Some(status[index].mode().to_string())),
        text(&|index, _| Some(status[index].progress.as_ref()?.checkpoint().to_string())),
        number(&|index| {
            status[index].progress.as_ref().map_or(0, |progress| progress.dirty().ranges().len() as u64)
        }),
        text(&|index, _| Some(status[index].last.as_ref()?.kind.to_string())),
        text(&|index, _| Some(status[index].last.as_ref()?.decision.to_string())),
        text(&|index, _| Some(status[index].last.as_ref()?.reason.to_string())),
        text(&|index, _| status[index].error.clone()),
        number(&|index| status[index].refreshes),
        number(&|index| status[index].failures),
        number(&|index| status[index].rows_written),
    ];
    Ok(RecordBatch::try_new(flows_schema(), columns)?)
}

/// How a flow is kept: by merging where that pays, by recomputing windows, or by running the whole query.
fn refresh_kind(entry: &FlowEntry) -> &'static str {
    let definition = entry.flow.definition();
    match (&definition.window, &definition.merge) {
        (None, _) => "full",
        (Some(_), Ok(_)) if definition.options.approach != windrow_state::Approach::Recompute => "merge",
        (Some(_), _) => "recompute",
    }
}

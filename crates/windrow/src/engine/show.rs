//! `SHOW` and `DESCRIBE`.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Schema};

use super::declaration::sql_type;
use super::registry::{Entries, TableEntry};
use super::{Answer, EngineError, Inner};
use crate::sql::{TableName, quote_string};

impl Inner {
    pub(super) async fn show_flows(&self, like: Option<&str>) -> Result<Answer, EngineError> {
        let condition = like.map(|pattern| format!(" WHERE flow_name LIKE {}", quote_string(pattern)));
        let sql = format!(
            "SELECT flow_name, source_tables, sink_table, refresh, mode FROM information_schema.flows{} \
             ORDER BY flow_name",
            condition.unwrap_or_default()
        );
        let plan = self.session.state().create_logical_plan(&sql).await?;
        self.collect(plan).await
    }

    pub(super) fn show_tables(&self) -> Result<Answer, EngineError> {
        let entries = self.registry.read();
        let kinds = entries.tables.iter().map(|(name, entry)| kind(&entries, name, entry));
        text_rows(&[
            ("table_name", entries.tables.keys().cloned().collect()),
            ("kind", kinds.map(ToOwned::to_owned).collect()),
        ])
    }

    pub(super) fn show_create_flow(&self, name: &str) -> Result<Answer, EngineError> {
        let entries = self.registry.read();
        let entry = entries.flow(name).ok_or_else(|| EngineError::NoFlow(name.to_owned()))?;
        text_rows(&[
            ("flow_name", vec![name.to_owned()]),
            ("create_flow", vec![entry.declaration.sql.clone()]),
        ])
    }

    pub(super) fn show_create_table(&self, name: &TableName) -> Result<Answer, EngineError> {
        let sql = match self.registry.table(name)? {
            TableEntry::Own { declaration, .. } => declaration.to_sql(),
            TableEntry::Followed { declaration, .. } | TableEntry::Files { declaration, .. } => {
                declaration.sql.clone()
            }
        };
        text_rows(&[("table_name", vec![name.table.clone()]), ("create_table", vec![sql])])
    }

    pub(super) fn describe(&self, name: &TableName) -> Result<Answer, EngineError> {
        let entry = self.registry.table(name)?;
        let schema = entry.provider().schema();
        let source = entry.source();
        let time_index = source.as_ref().and_then(|table| table.spec().time_index());
        let key = source.as_ref().map(|table| table.spec().primary_key().to_vec()).unwrap_or_default();
        let default = |column: &String| match &entry {
            TableEntry::Own { declaration, .. } => declaration.defaults.get(column).cloned(),
            _ => None,
        };
        let fields = || schema.fields().iter().enumerate();
        text_rows(&[
            ("column_name", fields().map(|(_, field)| field.name().clone()).collect()),
            ("data_type", fields().map(|(_, field)| sql_type(field.data_type())).collect()),
            ("nullable", fields().map(|(_, f)| if f.is_nullable() { "YES" } else { "NO" }.into()).collect()),
            (
                "key",
                fields()
                    .map(|(index, _)| match (time_index == Some(index), key.contains(&index)) {
                        (true, _) => "TIME INDEX".into(),
                        (false, true) => "PRIMARY KEY".into(),
                        (false, false) => String::new(),
                    })
                    .collect(),
            ),
            ("default", fields().map(|(_, field)| default(field.name()).unwrap_or_default()).collect()),
        ])
    }
}

fn kind(entries: &Entries, name: &str, entry: &TableEntry) -> &'static str {
    match entry {
        TableEntry::Own { .. } if entries.flow_into(name).is_some() => "sink",
        TableEntry::Own { .. } => "table",
        TableEntry::Followed { .. } | TableEntry::Files { .. } => "external",
    }
}

/// Columns of text, as an answer.
pub(super) fn text_rows(columns: &[(&str, Vec<String>)]) -> Result<Answer, EngineError> {
    let columns = columns
        .iter()
        .map(|(name, values)| (*name, Arc::new(StringArray::from(values.clone())) as ArrayRef, false));
    let batch = RecordBatch::try_from_iter_with_nullable(columns)?;
    Ok(Answer::Rows { schema: batch.schema(), batches: vec![batch] })
}

/// One number, as an answer.
pub(super) fn one_number(name: &str, value: u64) -> Result<Answer, EngineError> {
    let schema = Arc::new(Schema::new(vec![arrow::datatypes::Field::new(name, DataType::UInt64, false)]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(UInt64Array::from(vec![value]))])?;
    Ok(Answer::Rows { schema, batches: vec![batch] })
}

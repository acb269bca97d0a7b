//! Tables and flows as they are declared, and as the catalog keeps them.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, Schema, TimeUnit};
use serde::{Deserialize, Serialize};
use windrow_plan::is_hidden;
use windrow_table::{MergeMode, SpecError, TableSpec};

use super::EngineError;
use crate::sql::{quote_name, quote_string};

/// A table of Windrow's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TableDeclaration {
    pub(super) name: String,
    pub(super) schema: Schema,
    pub(super) time_index: Option<String>,
    pub(super) primary_key: Vec<String>,
    pub(super) append_mode: bool,
    /// Whether an insert on an existing key keeps what the new row has no value for.
    #[serde(default)]
    pub(super) last_non_null: bool,
    /// Default expressions by column, as SQL.
    pub(super) defaults: BTreeMap<String, String>,
    /// How long older versions are kept, as an interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) retention: Option<String>,
    /// Where the folder is, if that is not in the data directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) at: Option<String>,
    /// The folder of the table; `None` in memory.
    pub(super) folder: Option<String>,
}

/// A table that others write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ExternalDeclaration {
    pub(super) name: String,
    /// The `CREATE EXTERNAL TABLE`, with an absolute location.
    pub(super) sql: String,
}

/// A flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FlowDeclaration {
    pub(super) name: String,
    /// The `CREATE FLOW`, without its conditions.
    pub(super) sql: String,
    /// The name that its progress is under.
    pub(super) id: String,
    pub(super) created_millis: i64,
    /// What the aggregate states in its sink are of; see [`windrow_plan::Merge::state_format`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) state_format: Option<String>,
}

impl TableDeclaration {
    /// The columns that statements can name.
    pub(super) fn column_names(&self) -> Vec<String> {
        let names = self.schema.fields().iter().map(|field| field.name());
        names.filter(|name| !is_hidden(name)).cloned().collect()
    }

    /// Refuses columns that the table does not have, and such that are named twice.
    pub(super) fn check_columns(&self, columns: &[String]) -> Result<(), EngineError> {
        for (index, column) in columns.iter().enumerate() {
            if !self.column_names().contains(column) {
                return Err(EngineError::Refused(format!(
                    "table {} has no column {column}; it has {}",
                    self.name,
                    self.column_names().join(", ")
                )));
            }
            if columns[..index].contains(column) {
                return Err(EngineError::Refused(format!("column {column} is named twice")));
            }
        }
        Ok(())
    }

    pub(super) fn spec(&self) -> Result<TableSpec, SpecError> {
        let spec = TableSpec::new(self.schema.clone().into())?;
        let spec = match &self.time_index {
            Some(column) => spec.with_time_index(column)?,
            None => spec,
        };
        let merge_mode = if self.last_non_null { MergeMode::LastNonNull } else { MergeMode::LastRow };
        let spec = spec.with_primary_key(&self.primary_key)?;
        Ok(spec.with_append_mode(self.append_mode).with_merge_mode(merge_mode))
    }

    /// The `CREATE TABLE` that makes this table.
    pub(super) fn to_sql(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for field in self.schema.fields().iter().filter(|field| !is_hidden(field.name())) {
            let mut part = format!("{} {}", quote_name(field.name()), sql_type(field.data_type()));
            if !field.is_nullable() {
                part.push_str(" NOT NULL");
            }
            if let Some(default) = self.defaults.get(field.name()) {
                part.push_str(&format!(" DEFAULT {default}"));
            }
            parts.push(part);
        }
        if let Some(time_index) = &self.time_index {
            parts.push(format!("TIME INDEX ({})", quote_name(time_index)));
        }
        if !self.primary_key.is_empty() {
            let key: Vec<_> = self.primary_key.iter().map(|column| quote_name(column)).collect();
            parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
        }
        let mut sql = format!("CREATE TABLE {} (\n  {}\n)", quote_name(&self.name), parts.join(",\n  "));
        let mut options = Vec::new();
        match (self.append_mode, self.last_non_null) {
            (true, _) => options.push(("append_mode", "true")),
            (false, true) => options.push(("merge_mode", "last_non_null")),
            (false, false) => {}
        }
        options.extend(self.retention.as_deref().map(|retention| ("retention", retention)));
        if !options.is_empty() {
            let options =
                options.iter().map(|(key, value)| format!("{} = {}", quote_string(key), quote_string(value)));
            sql.push_str(&format!(" WITH ({})", options.collect::<Vec<_>>().join(", ")));
        }
        sql
    }
}

/// The name of a type in SQL; Arrow's own name where SQL has none.
pub(super) fn sql_type(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Boolean => "BOOLEAN",
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INT",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "TINYINT UNSIGNED",
        DataType::UInt16 => "SMALLINT UNSIGNED",
        DataType::UInt32 => "INT UNSIGNED",
        DataType::UInt64 => "BIGINT UNSIGNED",
        DataType::Float32 => "REAL",
        DataType::Float64 => "DOUBLE",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "STRING",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BYTEA",
        DataType::Date32 => "DATE",
        DataType::Decimal128(precision, scale) => return format!("DECIMAL({precision}, {scale})"),
        DataType::Timestamp(unit, zone) => {
            let zone = if zone.is_some() { " WITH TIME ZONE" } else { "" };
            return format!("TIMESTAMP({}){zone}", digits(*unit));
        }
        other => return other.to_string(),
    };
    name.to_owned()
}

fn digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

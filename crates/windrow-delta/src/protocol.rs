//! What of the Delta protocol is honoured, and what a table's log declares.

use std::collections::HashMap;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use delta_kernel::table_features::ColumnMappingMode;
use deltalake_core::kernel::engine::arrow_conversion::TryIntoArrow;
use deltalake_core::kernel::{Metadata, Protocol, StructType};
use serde::Deserialize;
use windrow_table::TableSpec;

use crate::DeltaError;
use crate::types::stored_schema;

/// Reader features that are honoured.
const READER_FEATURES: [&str; 5] =
    ["columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"];

/// Writer features that need nothing more than what is done anyway, as long as the table's metadata does not make
/// use of them: [`obstacles`] looks.
const WRITER_FEATURES: [&str; 12] = [
    "appendOnly",
    "changeDataFeed",
    "checkConstraints",
    "columnMapping",
    "deletionVectors",
    "domainMetadata",
    "generatedColumns",
    "identityColumns",
    "invariants",
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
];

/// What a version of the log declares of the table.
#[derive(Debug)]
pub(crate) struct TableFacts {
    protocol: Protocol,
    metadata: Metadata,
    schema: Schema,
    in_files: Schema,
    checkpoint_interval: u64,
    /// Why no rows can be added.
    no_append: Option<String>,
    /// Why rows can be added, but not removed.
    no_removal: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Versions {
    min_reader_version: i64,
    min_writer_version: i64,
    #[serde(default)]
    reader_features: Vec<String>,
    #[serde(default)]
    writer_features: Vec<String>,
}

impl TableFacts {
    /// # Errors
    /// When the table cannot be read rightly.
    pub(crate) fn new(protocol: &Protocol, metadata: &Metadata) -> Result<Self, DeltaError> {
        let failed = |error| DeltaError::storage("the protocol of the Delta table", error);
        let versions: Versions = serde_json::to_value(protocol)
            .and_then(serde_json::from_value)
            .map_err(|e| failed(Box::new(e)))?;
        check_readable(&versions)?;
        let mapping = column_mapping(metadata)?;
        let columns = metadata
            .parse_schema()
            .map_err(|error| DeltaError::storage("the columns of the Delta table", error))?;
        let schema = without_metadata(&arrow_schema(&columns)?);
        let in_files = columns
            .make_physical(mapping)
            .map_err(|error| DeltaError::Unreadable(format!("column mapping that is not valid: {error}")))?;
        let in_files = arrow_schema(&in_files)?;
        if mapping == ColumnMappingMode::Id
            && let Some(field) = schema.fields().iter().find(|field| has_struct(field.data_type()))
        {
            let reason =
                format!("column mapping by ids that are in files, for the nested column {}", field.name());
            return Err(DeltaError::Unreadable(reason));
        }
        let (no_append, no_removal) = obstacles(&versions, metadata, &columns);
        let interval = property(metadata, "delta.checkpointInterval").and_then(|text| text.parse().ok());
        Ok(Self {
            protocol: protocol.clone(),
            metadata: metadata.clone(),
            schema,
            in_files,
            checkpoint_interval: interval.filter(|&commits| commits > 0).unwrap_or(100),
            no_append,
            no_removal,
        })
    }

    /// The identity of the table, which one made anew at the same place does not share.
    pub(crate) fn id(&self) -> &str {
        self.metadata.id()
    }

    /// What the log has.
    pub(crate) fn declarations(&self) -> (&Protocol, &Metadata) {
        (&self.protocol, &self.metadata)
    }

    /// The columns, in the types that they are stored in.
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// A column as files have it: under the name that they have it by, and in mapped tables with its id.
    pub(crate) fn in_files(&self, column: &str) -> Option<&FieldRef> {
        self.schema.index_of(column).ok().map(|index| &self.in_files.fields()[index])
    }

    pub(crate) fn partition_columns(&self) -> &[String] {
        self.metadata.partition_columns()
    }

    /// After how many commits the log gets a checkpoint.
    pub(crate) fn checkpoint_interval(&self) -> u64 {
        self.checkpoint_interval
    }

    /// Whether the declared columns are there. Columns of the log that are not declared are not read.
    pub(crate) fn check_columns(&self, spec: &TableSpec) -> Result<(), DeltaError> {
        let stored = stored_schema(spec.schema())?;
        for field in stored.fields() {
            let name = field.name();
            let Ok(found) = self.schema.field_with_name(name) else {
                return Err(DeltaError::Columns(format!("there is no column {name}")));
            };
            if !found.data_type().equals_datatype(field.data_type()) {
                let (found, wanted) = (found.data_type(), field.data_type());
                return Err(DeltaError::Columns(format!("column {name} is {found}, not {wanted}")));
            }
            if found.is_nullable() != field.is_nullable() {
                let not = if found.is_nullable() { "can" } else { "cannot" };
                return Err(DeltaError::Columns(format!("column {name} {not} be NULL")));
            }
        }
        Ok(())
    }

    /// Whether rows can be added, and (`removing`) be taken away too.
    pub(crate) fn check_writable(&self, spec: &TableSpec, removing: bool) -> Result<(), DeltaError> {
        let undeclared = self.schema.fields().iter().find(|f| spec.schema().index_of(f.name()).is_err());
        if let Some(field) = undeclared {
            let name = field.name();
            return Err(DeltaError::Unwritable(format!("its column {name} is not declared")));
        }
        let obstacle = self.no_append.as_ref().or(self.no_removal.as_ref().filter(|_| removing));
        obstacle.map_or(Ok(()), |reason| Err(DeltaError::Unwritable(reason.clone())))
    }
}

fn property<'a>(metadata: &'a Metadata, key: &str) -> Option<&'a str> {
    metadata.configuration().get(key).map(String::as_str)
}

fn is_on(metadata: &Metadata, key: &str) -> bool {
    property(metadata, key).is_some_and(|value| value.eq_ignore_ascii_case("true"))
}

fn check_readable(versions: &Versions) -> Result<(), DeltaError> {
    if versions.min_reader_version > 3 {
        return Err(DeltaError::Unreadable(format!("reader version {}", versions.min_reader_version)));
    }
    if let Some(feature) = versions.reader_features.iter().find(|f| !READER_FEATURES.contains(&f.as_str())) {
        return Err(DeltaError::Unreadable(format!("the feature {feature}")));
    }
    Ok(())
}

fn column_mapping(metadata: &Metadata) -> Result<ColumnMappingMode, DeltaError> {
    match property(metadata, "delta.columnMapping.mode") {
        None | Some("none") => Ok(ColumnMappingMode::None),
        Some("name") => Ok(ColumnMappingMode::Name),
        Some("id") => Ok(ColumnMappingMode::Id),
        Some(mode) => Err(DeltaError::Unreadable(format!("column mapping by {mode}"))),
    }
}

/// Why rows cannot be added, and why they cannot be removed.
fn obstacles(
    versions: &Versions,
    metadata: &Metadata,
    columns: &StructType,
) -> (Option<String>, Option<String>) {
    let unknown = versions.writer_features.iter().find(|f| !WRITER_FEATURES.contains(&f.as_str()));
    let constraint = metadata.configuration().keys().find(|key| key.starts_with("delta.constraints."));
    let rule = columns.fields().find_map(|field| {
        let text = serde_json::to_string(field).unwrap_or_default();
        ["delta.invariants", "delta.generationExpression", "delta.identity."]
            .into_iter()
            .find(|key| text.contains(&format!("\"{key}")))
            .map(|key| format!("its column {} has {key}", field.name()))
    });
    let no_append = if versions.min_writer_version > 7 {
        Some(format!("it uses writer version {}", versions.min_writer_version))
    } else if let Some(feature) = unknown {
        Some(format!("it uses the feature {feature}"))
    } else if let Some(constraint) = constraint {
        Some(format!("it has the constraint {constraint}"))
    } else if property(metadata, "delta.columnMapping.mode").is_some_and(|mode| mode != "none") {
        Some("it has column mapping".into())
    } else if !metadata.partition_columns().is_empty() {
        Some("it is partitioned".into())
    } else {
        rule
    };
    let no_removal = ["delta.appendOnly", "delta.enableChangeDataFeed"]
        .into_iter()
        .find(|key| is_on(metadata, key))
        .map(|key| format!("no rows can be removed, as it has {key}"));
    (no_append, no_removal)
}

fn arrow_schema(columns: &StructType) -> Result<Schema, DeltaError> {
    columns.try_into_arrow().map_err(|error| DeltaError::storage("the columns of the Delta table", error))
}

fn without_metadata(schema: &Schema) -> Schema {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_metadata(HashMap::new()));
    Schema::new(fields.collect::<Vec<Field>>())
}

fn has_struct(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(_) => true,
        DataType::List(item) => has_struct(item.data_type()),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => fields.iter().any(|field| has_struct(field.data_type())),
            _ => false,
        },
        _ => false,
    }
}

/// The protocol that a table of these stored columns needs.
pub(crate) fn protocol_for(stored: &Schema) -> Result<Protocol, DeltaError> {
    let value = if stored.fields().iter().any(|field| has_local_timestamps(field.data_type())) {
        serde_json::json!({
            "minReaderVersion": 3, "minWriterVersion": 7,
            "readerFeatures": ["timestampNtz"], "writerFeatures": ["timestampNtz"],
        })
    } else {
        serde_json::json!({ "minReaderVersion": 1, "minWriterVersion": 2 })
    };
    serde_json::from_value(value)
        .map_err(|error| DeltaError::storage("the protocol of the Delta table", error))
}

fn has_local_timestamps(data_type: &DataType) -> bool {
    match data_type {
        DataType::Timestamp(_, None) => true,
        DataType::List(field) | DataType::Map(field, _) => has_local_timestamps(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_local_timestamps(field.data_type())),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::TimeUnit;
    use serde_json::{Value, json};

    use super::*;

    fn facts(protocol: Value, configuration: Value, field: Value) -> Result<TableFacts, DeltaError> {
        let columns = json!({"type": "struct", "fields": [field]}).to_string();
        let metadata = json!({
            "id": "x", "name": null, "description": null, "format": {"provider": "parquet", "options": {}},
            "schemaString": columns, "partitionColumns": [], "configuration": configuration, "createdTime": 0,
        });
        TableFacts::new(
            &serde_json::from_value(protocol).unwrap(),
            &serde_json::from_value(metadata).unwrap(),
        )
    }

    fn plain() -> Value {
        json!({"minReaderVersion": 1, "minWriterVersion": 2})
    }

    fn with_features(reader: &[&str], writer: &[&str]) -> Value {
        json!({"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": reader, "writerFeatures": writer})
    }

    fn column() -> Value {
        json!({"name": "a", "type": "long", "nullable": true, "metadata": {}})
    }

    fn spec() -> TableSpec {
        TableSpec::new(Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]))).unwrap()
    }

    #[test]
    fn what_cannot_be_honoured_is_not_read() {
        for (protocol, configuration, word) in [
            (with_features(&["variantType"], &["variantType"]), json!({}), "variantType"),
            (with_features(&["typeWidening"], &["typeWidening"]), json!({}), "typeWidening"),
            (
                json!({"minReaderVersion": 2, "minWriterVersion": 5}),
                json!({"delta.columnMapping.mode": "magic"}),
                "column mapping by magic",
            ),
            (
                json!({"minReaderVersion": 2, "minWriterVersion": 5}),
                // A column without the annotations that this asks for.
                json!({"delta.columnMapping.mode": "name"}),
                "column mapping that is not valid",
            ),
        ] {
            let message = facts(protocol, configuration, column()).unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        }
        let features = READER_FEATURES;
        facts(with_features(&features, &features), json!({}), column()).unwrap();
    }

    #[test]
    fn what_cannot_be_honoured_is_not_written() {
        let invariant = json!({"name": "a", "type": "long", "nullable": true,
            "metadata": {"delta.invariants": "{\"expression\": {\"expression\": \"a > 3\"}}"}});
        for (protocol, configuration, field, word) in [
            (with_features(&[], &["rowTracking"]), json!({}), column(), "rowTracking"),
            (plain(), json!({"delta.constraints.positive": "a > 0"}), column(), "positive"),
            (plain(), json!({}), invariant, "delta.invariants"),
        ] {
            let facts = facts(protocol, configuration, field).unwrap();
            let message = facts.check_writable(&spec(), false).unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        }
        for key in ["delta.appendOnly", "delta.enableChangeDataFeed"] {
            let facts = facts(plain(), json!({key: "TRUE"}), column()).unwrap();
            facts.check_writable(&spec(), false).unwrap();
            assert!(facts.check_writable(&spec(), true).unwrap_err().to_string().contains(key));
        }
    }

    #[test]
    fn other_columns_than_declared_are_refused() {
        let check = |field: Field| {
            let spec = TableSpec::new(Arc::new(Schema::new(vec![field]))).unwrap();
            facts(plain(), json!({}), column()).unwrap().check_columns(&spec).map_err(|e| e.to_string())
        };
        check(Field::new("a", DataType::Int64, true)).unwrap();
        check(Field::new("a", DataType::UInt32, true)).unwrap();
        assert!(check(Field::new("b", DataType::Int64, true)).unwrap_err().contains("no column b"));
        assert!(check(Field::new("a", DataType::Utf8, true)).unwrap_err().contains("Utf8"));
        assert!(check(Field::new("a", DataType::Int64, false)).unwrap_err().contains("NULL"));
    }

    #[test]
    fn only_local_timestamps_need_a_table_feature() {
        let local = DataType::Timestamp(TimeUnit::Microsecond, None);
        let map = DataType::Map(
            Arc::new(Field::new_struct(
                "key_value",
                vec![Field::new("key", DataType::Utf8, false), Field::new("value", local, true)],
                false,
            )),
            false,
        );
        let needs = |data_type| {
            let protocol = protocol_for(&Schema::new(vec![Field::new("a", data_type, true)])).unwrap();
            serde_json::to_value(protocol).unwrap()["minReaderVersion"] == 3
        };
        assert!(needs(map));
        assert!(!needs(DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))));
    }
}

//! A data file of a table, as the log names it.

use std::collections::HashMap;

use deltalake_core::kernel::{Add, Remove};
use object_store::ObjectMeta;
use object_store::path::Path;
use windrow_table::{TableSpec, TimeSpan};

use crate::{DeltaError, stats};

/// A Parquet file with rows of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DataFile {
    path: String,
    location: Path,
    pub(crate) size: u64,
    /// When it was written, in milliseconds.
    pub(crate) modified: i64,
    /// The columns that are not in the file.
    pub(crate) partition_values: HashMap<String, Option<String>>,
    /// How many rows it has, if that is known.
    pub(crate) rows: Option<u64>,
    /// The time index of its rows, if that is known.
    pub(crate) span: Option<TimeSpan>,
}

impl DataFile {
    /// # Errors
    /// When rows of the file are marked as removed, or it lies outside of the table.
    pub(crate) fn added(add: &Add, spec: &TableSpec) -> Result<Self, DeltaError> {
        if add.deletion_vector.is_some() {
            return Err(DeltaError::Unreadable(format!("a deletion vector (for the file {})", add.path)));
        }
        let facts = stats::parse(add.stats.as_deref(), spec);
        Ok(Self {
            location: location_of(&add.path)?,
            path: add.path.clone(),
            size: add.size.try_into().unwrap_or(0),
            modified: add.modification_time,
            partition_values: add.partition_values.clone(),
            rows: facts.rows,
            span: facts.span,
        })
    }

    /// The file that a `remove` action names. Its size may be missing there: the storage has to be asked.
    ///
    /// # Errors
    /// When the file lies outside of the table.
    pub(crate) fn removed(remove: &Remove) -> Result<Self, DeltaError> {
        Ok(Self {
            location: location_of(&remove.path)?,
            path: remove.path.clone(),
            size: remove.size.and_then(|size| size.try_into().ok()).unwrap_or(0),
            modified: 0,
            partition_values: remove.partition_values.clone().unwrap_or_default(),
            rows: None,
            span: None,
        })
    }

    /// The file as the storage has it.
    pub(crate) fn found(&self, meta: &ObjectMeta) -> Self {
        Self { size: meta.size, modified: meta.last_modified.timestamp_millis(), ..self.clone() }
    }

    /// The name in the log, decoded.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Where it is, from the table's root.
    pub(crate) fn location(&self) -> &Path {
        &self.location
    }

    /// Whether a `remove` action would name the file exactly as its `add` action did. The log has names encoded, and
    /// writers differ in what they encode; a name that is spelt differently would not be removed.
    pub(crate) fn has_plain_name(&self) -> bool {
        self.path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./=".contains(&byte))
    }
}

fn location_of(path: &str) -> Result<Path, DeltaError> {
    if path.starts_with('/') || path.contains("://") {
        return Err(DeltaError::Unreadable(format!(
            "the file {path}, which is not below the table's location"
        )));
    }
    // A path of another writer may hold percent signs that belong to the name.
    Ok(Path::parse(path).unwrap_or_else(|_| Path::from(path)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{DataType, Field, Schema};
    use deltalake_core::kernel::DeletionVectorDescriptor;

    use super::*;

    fn file(path: &str) -> Result<DataFile, DeltaError> {
        let spec =
            TableSpec::new(Arc::new(Schema::new(vec![Field::new("a", DataType::Int8, true)]))).unwrap();
        DataFile::added(&Add { path: path.into(), size: 1, ..Add::default() }, &spec)
    }

    #[test]
    fn a_file_outside_of_the_table_is_refused() {
        assert!(file("s3://other/part.parquet").is_err());
        assert!(file("/tmp/part.parquet").is_err());
        assert_eq!(file("x=A%2FA/part.parquet").unwrap().location().as_ref(), "x=A%2FA/part.parquet");
    }

    #[test]
    fn only_a_plain_name_is_spelt_in_one_way() {
        assert!(file("day=1/part-00000-aB.zstd.parquet").unwrap().has_plain_name());
        for path in ["a b.parquet", "ä.parquet", "x=A%2FA/part.parquet"] {
            assert!(!file(path).unwrap().has_plain_name(), "{path}");
        }
    }

    #[test]
    fn a_file_with_a_deletion_vector_is_refused() {
        let spec =
            TableSpec::new(Arc::new(Schema::new(vec![Field::new("a", DataType::Int8, true)]))).unwrap();
        let vector: DeletionVectorDescriptor = serde_json::from_value(serde_json::json!({
            "storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L",
            "sizeInBytes": 40, "cardinality": 6,
        }))
        .unwrap();
        let add = Add { path: "a.parquet".into(), deletion_vector: Some(vector), ..Add::default() };
        assert!(DataFile::added(&add, &spec).unwrap_err().to_string().contains("deletion vector"));
    }
}

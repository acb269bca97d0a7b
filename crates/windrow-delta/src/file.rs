//! A data file of a table, as the log names it.

use std::collections::HashMap;
use std::sync::Arc;

use deltalake_core::kernel::{Add, AddCDCFile, DeletionVectorDescriptor, Remove};
use object_store::ObjectMeta;
use object_store::path::Path;
use windrow_table::TimeSpan;

use crate::deletions::DeletionVector;
use crate::snapshot::Declared;
use crate::{DeltaError, stats};

/// A Parquet file with rows of a table.
#[derive(Debug, Clone)]
pub(crate) struct DataFile {
    path: String,
    location: Path,
    pub(crate) size: u64,
    /// When it was written, in milliseconds.
    pub(crate) modified: i64,
    /// The columns that are not in the file, by the names that files have them by.
    pub(crate) partition_values: HashMap<String, Option<String>>,
    /// How many rows are in it, if that is known, whether or not they are rows of the table.
    pub(crate) stored_rows: Option<u64>,
    /// The time index of what is in it, if that is known.
    pub(crate) span: Option<TimeSpan>,
    /// Which of them are not rows of the table.
    pub(crate) deletions: Option<Arc<DeletionVector>>,
}

impl DataFile {
    /// # Errors
    /// When the file, or its deletion vector, lies outside of the table.
    pub(crate) fn added(add: &Add, declared: &Declared) -> Result<Self, DeltaError> {
        let facts = stats::parse(add.stats.as_deref(), declared);
        Ok(Self {
            location: location_of(&add.path)?,
            path: add.path.clone(),
            size: add.size.try_into().unwrap_or(0),
            modified: add.modification_time,
            partition_values: add.partition_values.clone(),
            stored_rows: facts.rows,
            span: facts.span,
            deletions: deletions(add.deletion_vector.as_ref(), &add.path)?,
        })
    }

    /// The file that a `remove` action names. Its size may be missing there: the storage has to be asked.
    ///
    /// # Errors
    /// As [`DataFile::added`].
    pub(crate) fn removed(remove: &Remove) -> Result<Self, DeltaError> {
        Ok(Self {
            size: remove.size.and_then(|size| size.try_into().ok()).unwrap_or(0),
            partition_values: remove.partition_values.clone().unwrap_or_default(),
            deletions: deletions(remove.deletion_vector.as_ref(), &remove.path)?,
            ..Self::named(&remove.path)?
        })
    }

    /// A file of the change data feed.
    ///
    /// # Errors
    /// When the file lies outside of the table.
    pub(crate) fn of_change_feed(rows: &AddCDCFile) -> Result<Self, DeltaError> {
        let partition_values = rows.partition_values.clone();
        Ok(Self { size: rows.size.try_into().unwrap_or(0), partition_values, ..Self::named(&rows.path)? })
    }

    fn named(path: &str) -> Result<Self, DeltaError> {
        Ok(Self {
            location: location_of(path)?,
            path: path.to_owned(),
            size: 0,
            modified: 0,
            partition_values: HashMap::new(),
            stored_rows: None,
            span: None,
            deletions: None,
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

    /// What a version of the table has once: a file, as far as its rows are there.
    pub(crate) fn key(&self) -> (&str, Option<&str>) {
        (&self.path, self.deletions.as_ref().map(|deletions| deletions.id()))
    }

    /// Where it is, from the table's root.
    pub(crate) fn location(&self) -> &Path {
        &self.location
    }

    /// Everything that has to be there for its rows to be read.
    pub(crate) fn locations(&self) -> impl Iterator<Item = Path> {
        let deletions = self.deletions.as_ref().and_then(|deletions| deletions.location());
        std::iter::once(self.location.clone()).chain(deletions)
    }

    /// How many rows of the table it has, if that is known.
    pub(crate) fn rows(&self) -> Option<u64> {
        let deleted = self.deletions.as_ref().map_or(0, |deletions| deletions.len());
        self.stored_rows?.checked_sub(deleted)
    }

    /// Whether a `remove` action would name the file exactly as its `add` action did. The log has names encoded, and
    /// writers differ in what they encode; a name that is spelt differently would not be removed.
    pub(crate) fn has_plain_name(&self) -> bool {
        self.path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./=".contains(&byte))
    }
}

fn deletions(
    action: Option<&DeletionVectorDescriptor>,
    path: &str,
) -> Result<Option<Arc<DeletionVector>>, DeltaError> {
    action.map(|action| DeletionVector::new(action, path).map(Arc::new)).transpose()
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
    use super::*;

    fn file(path: &str) -> Result<DataFile, DeltaError> {
        DataFile::named(path)
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
}

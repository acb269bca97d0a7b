//! Deletion vectors: rows of a data file that are no longer there, although the file is as it was.

use std::ops::Range;
use std::sync::Arc;

use delta_kernel::actions::deletion_vector::DeletionVectorDescriptor;
use deltalake_core::kernel as actions;
use deltalake_core::logstore::LogStoreRef;
use object_store::path::Path;
use parquet::arrow::arrow_reader::RowSelection;
use roaring::RoaringTreemap;
use tokio::sync::OnceCell;
use windrow_table::TableError;

use crate::DeltaError;

/// A deletion vector of a data file. Its rows are read once, and kept as long as it.
#[derive(Debug)]
pub(crate) struct DeletionVector {
    action: actions::DeletionVectorDescriptor,
    descriptor: DeletionVectorDescriptor,
    id: String,
    rows: OnceCell<RoaringTreemap>,
}

impl DeletionVector {
    /// # Errors
    /// When the action is not a valid one, or the vector lies outside of the table.
    pub(crate) fn new(action: &actions::DeletionVectorDescriptor, file: &str) -> Result<Self, DeltaError> {
        if matches!(action.storage_type, actions::StorageType::AbsolutePath) {
            let reason = format!("a deletion vector for {file} that is not below the table's location");
            return Err(DeltaError::Unreadable(reason));
        }
        let descriptor = DeletionVectorDescriptor::try_from(action.clone())
            .map_err(|error| DeltaError::storage(format!("the deletion vector for {file}"), error))?;
        let id = descriptor.unique_id();
        Ok(Self { action: action.clone(), descriptor, id, rows: OnceCell::new() })
    }

    /// What tells it from the other vectors of its file.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// As the log has it.
    pub(crate) fn action(&self) -> &actions::DeletionVectorDescriptor {
        &self.action
    }

    /// How many rows it takes away.
    pub(crate) fn len(&self) -> u64 {
        self.descriptor.cardinality.unsigned_abs()
    }

    /// The file that it is in, from the table's root; `None` if it is in the log.
    pub(crate) fn location(&self) -> Option<Path> {
        let root = url::Url::parse("table:///").ok()?;
        let path = self.descriptor.absolute_path(&root).ok()??;
        Path::from_url_path(path.path()).ok()
    }

    /// The positions in the file of the rows that are not there.
    pub(crate) async fn rows(&self, store: &LogStoreRef) -> Result<&RoaringTreemap, TableError> {
        self.rows.get_or_try_init(|| self.read(store)).await
    }

    async fn read(&self, store: &LogStoreRef) -> Result<RoaringTreemap, TableError> {
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
            TableError::storage(format!("the deletion vector {}", self.id), error)
        };
        let (descriptor, store) = (self.descriptor.clone(), Arc::clone(store));
        let root = store.root_url().clone();
        let rows =
            tokio::task::spawn_blocking(move || descriptor.read(store.engine(None).storage_handler(), &root))
                .await
                .map_err(|error| failed(error.into()))?
                .map_err(|error| failed(error.into()))?;
        if rows.len() != self.len() {
            let reason = format!("it has {} rows, and the log says {}", rows.len(), self.len());
            return Err(failed(reason.into()));
        }
        Ok(rows)
    }
}

/// Exactly these rows of a file with so many.
///
/// # Errors
/// When the file does not have them all.
pub(crate) fn only(rows: &RoaringTreemap, of: u64) -> Result<RowSelection, TableError> {
    select(runs(rows), of)
}

/// All rows of a file with so many, but for these.
///
/// # Errors
/// When the file does not have them all.
pub(crate) fn without(rows: &RoaringTreemap, of: u64) -> Result<RowSelection, TableError> {
    let mut kept = Vec::new();
    let mut next = 0;
    for gone in runs(rows) {
        if gone.start > next {
            kept.push(next..gone.start);
        }
        next = gone.end;
    }
    if next > of {
        return Err(beyond(next, of));
    }
    kept.push(next..of);
    select(kept.into_iter(), of)
}

/// The rows as ranges that neither touch nor overlap, in order.
fn runs(rows: &RoaringTreemap) -> impl Iterator<Item = Range<u64>> {
    let mut rows = rows.iter().peekable();
    std::iter::from_fn(move || {
        let start = rows.next()?;
        let mut end = start + 1;
        while rows.next_if_eq(&end).is_some() {
            end += 1;
        }
        Some(start..end)
    })
}

fn select(ranges: impl Iterator<Item = Range<u64>>, of: u64) -> Result<RowSelection, TableError> {
    let total = usize::try_from(of).map_err(|_| beyond(of, of))?;
    let ranges = ranges.map(|range| match range.end <= of {
        true => Ok(range.start as usize..range.end as usize),
        false => Err(beyond(range.end, of)),
    });
    let ranges: Vec<Range<usize>> = ranges.collect::<Result<_, _>>()?;
    Ok(RowSelection::from_consecutive_ranges(ranges.into_iter().filter(|range| !range.is_empty()), total))
}

fn beyond(row: u64, of: u64) -> TableError {
    TableError::storage("a deletion vector", format!("it names row {row} of a file with {of}"))
}

#[cfg(test)]
mod tests {
    use parquet::arrow::arrow_reader::RowSelector;

    use super::*;

    fn selectors(selection: RowSelection) -> Vec<(usize, bool)> {
        let selectors: Vec<RowSelector> = selection.into();
        selectors.into_iter().map(|selector| (selector.row_count, !selector.skip)).collect()
    }

    #[test]
    fn rows_are_selected_or_left_out() {
        for (rows, selected, left) in [
            (vec![], vec![(5, false)], vec![(5, true)]),
            (vec![0], vec![(1, true), (4, false)], vec![(1, false), (4, true)]),
            (
                vec![1, 2, 4],
                vec![(1, false), (2, true), (1, false), (1, true)],
                vec![(1, true), (2, false), (1, true), (1, false)],
            ),
            (vec![0, 1, 2, 3, 4], vec![(5, true)], vec![(5, false)]),
        ] {
            let rows: RoaringTreemap = rows.into_iter().collect();
            assert_eq!(selectors(only(&rows, 5).unwrap()), selected, "{rows:?}");
            assert_eq!(selectors(without(&rows, 5).unwrap()), left, "{rows:?}");
        }
        let beyond: RoaringTreemap = [5].into_iter().collect();
        assert!(only(&beyond, 5).is_err() && without(&beyond, 5).is_err());
    }

    #[test]
    fn a_vector_outside_of_the_table_is_refused() {
        let vector = |kind: &str, text: &str| {
            let action = serde_json::json!({
                "storageType": kind, "pathOrInlineDv": text, "sizeInBytes": 40, "cardinality": 6,
            });
            DeletionVector::new(&serde_json::from_value(action).unwrap(), "a.parquet")
        };
        assert!(vector("p", "file:///tmp/x.bin").unwrap_err().to_string().contains("not below"));
        assert!(vector("u", "too short").is_err());
        let inline = vector("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L").unwrap();
        assert_eq!((inline.location(), inline.len()), (None, 6));
        let named = vector("u", "ab^-aqEH.-t@S}K{vb[*k^").unwrap();
        let path = "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin";
        assert_eq!(named.location().unwrap().as_ref(), path);
    }
}

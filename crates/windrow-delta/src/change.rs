//! A change of a table, and what it says in the log.

use std::collections::HashMap;
use std::sync::Arc;

use chrono::Utc;
use deltalake_core::kernel::{Action, Add, CommitInfo, Remove, Transaction};
use serde_json::Value;
use uuid::Uuid;
use windrow_state::Progress;
use windrow_table::{Removal, Write};

use crate::file::DataFile;
use crate::progress;
use crate::snapshot::{COMMIT_ID, KEPT, Snapshot};
use crate::writer::{ROW_GROUP, ROWS_PER_FILE, Staged};

/// The files that a compaction puts together.
pub(crate) fn small_files(base: &Snapshot, pieces: Pieces) -> impl Iterator<Item = &Arc<DataFile>> {
    let is_small = move |file: &&Arc<DataFile>| file.rows().is_none_or(|rows| rows < pieces.below as u64);
    base.files().iter().filter(is_small).filter(|file| file.has_plain_name())
}

/// A change whose rows are written, and that can be tried on one version after another.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    pub(crate) write: &'a Write,
    pub(crate) removal: Removal<'a>,
    pub(crate) new_files: Staged,
    pub(crate) progress: Option<(String, Progress)>,
    /// What a compaction makes of which files.
    pub(crate) pieces: Pieces,
}

/// Which files a compaction puts together, and how large the new ones are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pieces {
    /// Files of fewer rows.
    pub(crate) below: usize,
    pub(crate) rows_per_file: usize,
}

impl Pieces {
    /// When somebody asks for it.
    pub(crate) const LARGE: Self = Self { below: ROWS_PER_FILE / 2, rows_per_file: ROWS_PER_FILE };
    /// Now and then: small enough that the rewrite of a few windows copies little, and never much at once.
    pub(crate) const SMALL: Self = Self { below: ROW_GROUP / 4, rows_per_file: ROW_GROUP };
}

/// With so many small files, a commit puts them together.
pub(crate) const FILES_TO_COMPACT: usize = 64;

impl Change<'_> {
    /// How many rows the file has, if all of them go, by what is known without reading it.
    pub(crate) fn whole(&self, file: &DataFile) -> Option<u64> {
        match self.write {
            Write::ReplaceAll => file.rows(),
            Write::Replace { ranges } => {
                let span = file.span.filter(|span| span.nulls == 0)?;
                ranges
                    .iter()
                    .any(|range| range.contains(span.first) && range.contains(span.last))
                    .then(|| file.rows())?
            }
            _ => None,
        }
    }

    pub(crate) fn actions(&self, prepared: &Prepared, base: &Snapshot) -> Vec<Action> {
        let now = Utc::now().timestamp_millis();
        let taken = &prepared.taken;
        // No two entries are the same text: a storage that is in doubt can be asked whose a commit is.
        let id = Uuid::new_v4().to_string();
        let mut actions = vec![Action::CommitInfo(self.info(&id, now, base))];
        if let (Some((flow, _)), Some(number)) = (&self.progress, prepared.progress) {
            actions.push(Action::Txn(Transaction::new(progress::app_id(flow), number)));
        }
        let data_change = !matches!(self.write, Write::Compact);
        actions.extend(taken.files.iter().map(|file| {
            Action::Remove(Remove {
                path: file.path().to_owned(),
                data_change,
                deletion_timestamp: Some(now),
                extended_file_metadata: Some(true),
                partition_values: Some(file.partition_values.clone()),
                size: i64::try_from(file.size).ok(),
                deletion_vector: file.deletions.as_ref().map(|deletions| deletions.action().clone()),
                ..Remove::default()
            })
        }));
        let kept = Some(HashMap::from([(KEPT.to_owned(), Some(id))])).filter(|_| data_change);
        let survivors = taken.survivors.adds.iter().map(|add| Add { tags: kept.clone(), ..add.clone() });
        let adds = survivors.chain(self.new_files.adds.iter().cloned());
        actions.extend(adds.map(|add| Action::Add(Add { data_change, ..add })));
        actions
    }

    fn info(&self, id: &str, now: i64, base: &Snapshot) -> CommitInfo {
        let (operation, mode) = match self.write {
            Write::Append => ("WRITE", "Append"),
            Write::Upsert { .. } => ("MERGE", "Upsert"),
            Write::Replace { .. } => ("WRITE", "Replace"),
            Write::ReplaceAll => ("WRITE", "Overwrite"),
            Write::Delete { .. } => ("DELETE", "Delete"),
            Write::Compact => ("OPTIMIZE", "Compact"),
        };
        CommitInfo {
            timestamp: Some(now),
            operation: Some(operation.into()),
            operation_parameters: Some(HashMap::from([("mode".into(), Value::from(mode))])),
            read_version: Some(base.version()),
            is_blind_append: Some(matches!(self.write, Write::Append)),
            engine_info: Some(concat!("windrow ", env!("CARGO_PKG_VERSION")).into()),
            info: HashMap::from([(COMMIT_ID.into(), Value::from(id))]),
            ..CommitInfo::default()
        }
    }
}

/// What a write takes away from a version of the table.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    pub(crate) files: Vec<Arc<DataFile>>,
    pub(crate) rows: u64,
    /// The rows of those files that stay.
    pub(crate) survivors: Staged,
}

/// What was written for a commit right after one version.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) taken: Taken,
    /// What names the file of the progress.
    pub(crate) progress: Option<i64>,
}

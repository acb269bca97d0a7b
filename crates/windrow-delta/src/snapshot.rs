//! A version of a table, and the commit that leads from one version to the next, as immutable values.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use deltalake_core::kernel::{Action, EagerSnapshot, Metadata, Protocol};
use windrow_state::{Sequence, Watermarks};
use windrow_table::TableSpec;

use crate::DeltaError;
use crate::file::DataFile;
use crate::protocol::TableFacts;

/// The one region of a Delta table.
pub(crate) const REGION: u64 = 0;

/// The sequence of a version: sequence 0 is before the table was made, by version 0.
pub(crate) const fn sequence_of(version: u64) -> Sequence {
    version + 1
}

/// The watermarks of a version.
pub(crate) fn watermarks_of(version: u64) -> Watermarks {
    Watermarks::of(REGION, sequence_of(version))
}

/// What a table is declared to be, as every version of it has to be.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) spec: TableSpec,
    pub(crate) partition_columns: Vec<String>,
}

impl Declared {
    /// # Errors
    /// When the facts are those of another table than declared.
    pub(crate) fn check(&self, facts: &TableFacts) -> Result<(), DeltaError> {
        if facts.partition_columns() != self.partition_columns {
            return Err(DeltaError::Columns("the table is now partitioned in another way".into()));
        }
        facts.check_columns(&self.spec)
    }
}

/// Which version of a flow's progress is current, as far as the log was read.
///
/// `txn` actions are the only part of a version that is not read when it is loaded: they are looked up one by one,
/// and the ones of later commits go over them.
#[derive(Debug, Default)]
pub(crate) struct LoadedTxns(Mutex<HashMap<String, Option<i64>>>);

impl LoadedTxns {
    pub(crate) fn get(&self, app_id: &str) -> Option<Option<i64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(app_id).copied()
    }

    pub(crate) fn remember(&self, app_id: &str, version: Option<i64>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(app_id.to_owned(), version);
    }
}

/// A version of a table.
#[derive(Debug)]
pub(crate) struct Snapshot {
    version: u64,
    facts: Arc<TableFacts>,
    files: Vec<Arc<DataFile>>,
    /// The `txn` actions of the commits after the version that was loaded.
    later_txns: Arc<BTreeMap<String, i64>>,
    loaded_txns: Arc<LoadedTxns>,
}

impl Snapshot {
    /// The version that `loaded` is.
    pub(crate) fn loaded(loaded: &EagerSnapshot, declared: &Declared) -> Result<Self, DeltaError> {
        let facts = TableFacts::new(loaded.protocol(), loaded.metadata())?;
        declared.check(&facts)?;
        let log_data = loaded
            .try_log_data()
            .map_err(|error| DeltaError::storage("the files of the Delta table", error))?;
        let mut files = Vec::with_capacity(log_data.num_files());
        for view in log_data.iter() {
            // The action as the log has it, so that there is one way from an action to a file.
            let add = deltalake_core::kernel::Add {
                path: view.path().into_owned(),
                size: view.size(),
                modification_time: view.modification_time(),
                partition_values: view.partition_values_map(),
                stats: view.stats(),
                deletion_vector: view.deletion_vector_descriptor(),
                ..Default::default()
            };
            files.push(Arc::new(DataFile::added(&add, &declared.spec)?));
        }
        Ok(Self {
            version: loaded.version(),
            facts: Arc::new(facts),
            files,
            later_txns: Arc::default(),
            loaded_txns: Arc::default(),
        })
    }

    /// The version that `commit`, of the next one, makes of this.
    pub(crate) fn apply(&self, commit: &LogCommit, declared: &Declared) -> Result<Self, DeltaError> {
        let facts = match (&commit.protocol, &commit.metadata) {
            (None, None) => Arc::clone(&self.facts),
            (protocol, metadata) => {
                let (own_protocol, own_metadata) = self.facts.declarations();
                let facts = TableFacts::new(
                    protocol.as_ref().unwrap_or(own_protocol),
                    metadata.as_ref().unwrap_or(own_metadata),
                )?;
                declared.check(&facts)?;
                Arc::new(facts)
            }
        };
        let mut files = self.files.clone();
        // An `add` of a file that is there already takes its place.
        let gone: HashSet<&str> =
            commit.removed.iter().chain(&commit.added).map(|changed| changed.file.path()).collect();
        if !gone.is_empty() {
            files.retain(|file| !gone.contains(file.path()));
        }
        files.extend(commit.added.iter().map(|added| Arc::clone(&added.file)));
        let mut later_txns = Arc::clone(&self.later_txns);
        if !commit.txns.is_empty() {
            Arc::make_mut(&mut later_txns).extend(commit.txns.iter().cloned());
        }
        let loaded_txns = Arc::clone(&self.loaded_txns);
        Ok(Self { version: commit.version, facts, files, later_txns, loaded_txns })
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn sequence(&self) -> Sequence {
        sequence_of(self.version)
    }

    pub(crate) fn watermarks(&self) -> Watermarks {
        watermarks_of(self.version)
    }

    pub(crate) fn facts(&self) -> &TableFacts {
        &self.facts
    }

    pub(crate) fn files(&self) -> &[Arc<DataFile>] {
        &self.files
    }

    /// The version of the newest `txn` action with this id among the commits since the table was loaded.
    pub(crate) fn later_txn(&self, app_id: &str) -> Option<i64> {
        self.later_txns.get(app_id).copied()
    }

    pub(crate) fn loaded_txns(&self) -> &LoadedTxns {
        &self.loaded_txns
    }
}

/// A file that a commit adds or removes.
#[derive(Debug, Clone)]
pub(crate) struct Changed {
    pub(crate) file: Arc<DataFile>,
    /// Whether the commit changes rows by it, rather than putting the same rows into another file.
    pub(crate) data: bool,
}

/// What a commit says.
#[derive(Debug)]
pub(crate) struct LogCommit {
    version: u64,
    added: Vec<Changed>,
    removed: Vec<Changed>,
    txns: Vec<(String, i64)>,
    protocol: Option<Protocol>,
    metadata: Option<Metadata>,
}

impl LogCommit {
    pub(crate) fn new(
        version: u64,
        actions: impl IntoIterator<Item = Action>,
        spec: &TableSpec,
    ) -> Result<Self, DeltaError> {
        let mut commit = Self {
            version,
            added: Vec::new(),
            removed: Vec::new(),
            txns: Vec::new(),
            protocol: None,
            metadata: None,
        };
        for action in actions {
            match action {
                Action::Add(add) => {
                    let file = Arc::new(DataFile::added(&add, spec)?);
                    commit.added.push(Changed { file, data: add.data_change });
                }
                Action::Remove(remove) => {
                    let file = Arc::new(DataFile::removed(&remove)?);
                    commit.removed.push(Changed { file, data: remove.data_change });
                }
                Action::Txn(txn) => commit.txns.push((txn.app_id, txn.version)),
                Action::Protocol(protocol) => commit.protocol = Some(protocol),
                Action::Metadata(metadata) => commit.metadata = Some(metadata),
                Action::Cdc(_) | Action::CommitInfo(_) | Action::DomainMetadata(_) => {}
            }
        }
        Ok(commit)
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The files with rows that are new.
    pub(crate) fn data_added(&self) -> impl Iterator<Item = &Arc<DataFile>> {
        self.added.iter().filter(|added| added.data).map(|added| &added.file)
    }

    /// The files with rows that are no longer there, or no longer as they were.
    pub(crate) fn data_removed(&self) -> impl Iterator<Item = &Arc<DataFile>> {
        self.removed.iter().filter(|removed| removed.data).map(|removed| &removed.file)
    }

    /// Whether the commit does no more than to add rows; moving rows to other files is nothing.
    pub(crate) fn is_append(&self) -> bool {
        self.data_removed().next().is_none()
    }
}

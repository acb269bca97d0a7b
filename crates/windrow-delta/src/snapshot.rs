//! A version of a table, and the commit that leads from one version to the next, as immutable values.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::FieldRef;
use deltalake_core::kernel::{Action, EagerSnapshot, Metadata, Protocol};
use windrow_state::{RegionId, Sequence, Watermarks};
use windrow_table::{TableError, TableSpec};

use crate::DeltaError;
use crate::file::DataFile;
use crate::protocol::TableFacts;

/// The one region of a Delta table: its identity, so that no sequence of it is taken for one of a table that was made anew
/// at the same place. Where the log turns out to be another one under the same identity, `fork` tells the two apart.
pub(crate) fn region_of(table_id: &str, fork: Option<u64>) -> RegionId {
    let fork = fork.map(u64::to_le_bytes);
    fnv(table_id.as_bytes().iter().chain(fork.as_ref().into_iter().flatten())) >> 32
}

/// The hash FNV-1a, which is the same everywhere and always.
pub(crate) fn fnv<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> u64 {
    bytes
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The sequence of a version: sequence 0 is before the table was made, by version 0.
pub(crate) const fn sequence_of(version: u64) -> Sequence {
    version + 1
}

/// What a table is declared to be, as every version of it has to be.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(crate) spec: TableSpec,
    pub(crate) partition_columns: Vec<String>,
    /// The declared columns as files have them, in the same order.
    pub(crate) in_files: Vec<FieldRef>,
}

impl Declared {
    /// What `spec` declares, of a table with these facts.
    ///
    /// # Errors
    /// When they are those of another table.
    pub(crate) fn new(spec: TableSpec, facts: &TableFacts) -> Result<Self, DeltaError> {
        facts.check_columns(&spec)?;
        let in_files =
            spec.schema().fields().iter().filter_map(|field| facts.in_files(field.name()).cloned());
        let in_files = in_files.collect();
        Ok(Self { spec, partition_columns: facts.partition_columns().to_vec(), in_files })
    }

    /// The time index: its name in files, and what it is declared to be.
    pub(crate) fn time_index(&self) -> Option<(&str, &FieldRef)> {
        let index = self.spec.time_index()?;
        Some((self.in_files[index].name(), &self.spec.schema().fields()[index]))
    }

    /// # Errors
    /// When the facts are those of another table than declared.
    pub(crate) fn check(&self, facts: &TableFacts) -> Result<(), DeltaError> {
        if facts.partition_columns() != self.partition_columns {
            return Err(DeltaError::Columns("the table is now partitioned in another way".into()));
        }
        facts.check_columns(&self.spec)?;
        for (field, in_files) in self.spec.schema().fields().iter().zip(&self.in_files) {
            let name = field.name();
            if facts.in_files(name).is_none_or(|found| found.name() != in_files.name()) {
                let reason = format!("the column {name} was dropped, and another one has its name now");
                return Err(DeltaError::Columns(reason));
            }
        }
        Ok(())
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
    region: RegionId,
    version: u64,
    facts: Arc<TableFacts>,
    files: Vec<Arc<DataFile>>,
    /// The `txn` actions of the commits after the version that was loaded.
    later_txns: Arc<BTreeMap<String, i64>>,
    loaded_txns: Arc<LoadedTxns>,
}

impl Snapshot {
    /// The version that `loaded` is, in the region of the table unless another one is given.
    pub(crate) fn loaded(
        loaded: &EagerSnapshot,
        declared: &Declared,
        region: Option<RegionId>,
    ) -> Result<Self, DeltaError> {
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
            files.push(Arc::new(DataFile::added(&add, declared)?));
        }
        Ok(Self {
            region: region.unwrap_or_else(|| region_of(facts.id(), None)),
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
        let replaced: HashSet<&str> = commit.added.iter().map(|added| added.file.path()).collect();
        let removed: HashSet<_> = commit.removed.iter().map(|removed| removed.file.key()).collect();
        if !replaced.is_empty() || !removed.is_empty() {
            files.retain(|file| !replaced.contains(file.path()) && !removed.contains(&file.key()));
        }
        files.extend(commit.added.iter().map(|added| Arc::clone(&added.file)));
        let mut later_txns = Arc::clone(&self.later_txns);
        if !commit.txns.is_empty() {
            Arc::make_mut(&mut later_txns).extend(commit.txns.iter().cloned());
        }
        let loaded_txns = Arc::clone(&self.loaded_txns);
        Ok(Self { region: self.region, version: commit.version, facts, files, later_txns, loaded_txns })
    }

    pub(crate) fn in_region(self, region: RegionId) -> Self {
        Self { region, ..self }
    }

    pub(crate) fn region(&self) -> RegionId {
        self.region
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// The sequence that watermarks name; 0 where they name nothing.
    ///
    /// # Errors
    /// [`TableError::Stale`] when they are those of another table.
    pub(crate) fn sequence_at(&self, watermarks: &Watermarks) -> Result<Sequence, TableError> {
        match watermarks.iter().find(|(region, _)| *region != self.region) {
            None => Ok(watermarks.get(self.region)),
            Some((region, asked)) => Err(TableError::Stale { region, asked, oldest: self.sequence() }),
        }
    }

    pub(crate) fn sequence(&self) -> Sequence {
        sequence_of(self.version)
    }

    pub(crate) fn watermarks(&self) -> Watermarks {
        Watermarks::of(self.region, self.sequence())
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

/// What a file that is added or removed does to the rows of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeOf {
    /// They are there now, or no longer.
    Rows,
    /// It has, unchanged, what stays of files that the same commit removes. Only Windrow says so, see [`KEPT`].
    KeptRows,
    /// Nothing: the same rows are in other files.
    Nothing,
}

impl ChangeOf {
    fn of(data_change: bool, kept: bool) -> Self {
        match (data_change, kept) {
            (false, _) => Self::Nothing,
            (true, true) => Self::KeptRows,
            (true, false) => Self::Rows,
        }
    }
}

/// The tag of an `add` action whose rows are the ones that stay of removed files. Commits that rewrite large files for few
/// rows then touch no more windows than they have to; other readers take the rows as new ones.
///
/// Its value is the commit's [`COMMIT_ID`]: writers copy tags when they add the file again, as a `RESTORE` does, and what it
/// has is then something else.
pub(crate) const KEPT: &str = "windrow.kept";

/// What in a commit's information no other commit has.
pub(crate) const COMMIT_ID: &str = "txnId";

/// A file that a commit adds or removes.
#[derive(Debug, Clone)]
pub(crate) struct Changed {
    pub(crate) file: Arc<DataFile>,
    pub(crate) is: ChangeOf,
}

fn commit_id(action: &Action) -> Option<&str> {
    match action {
        Action::CommitInfo(commit) => commit.info.get(COMMIT_ID)?.as_str(),
        _ => None,
    }
}

/// What a commit says.
#[derive(Debug)]
pub(crate) struct LogCommit {
    version: u64,
    /// The hash of its text.
    pub(crate) text: u64,
    added: Vec<Changed>,
    removed: Vec<Changed>,
    change_feed: Vec<Arc<DataFile>>,
    txns: Vec<(String, i64)>,
    protocol: Option<Protocol>,
    metadata: Option<Metadata>,
}

impl LogCommit {
    pub(crate) fn new(
        version: u64,
        text: u64,
        actions: Vec<Action>,
        declared: &Declared,
    ) -> Result<Self, DeltaError> {
        let id = actions.iter().find_map(commit_id).map(str::to_owned);
        let mut commit = Self {
            version,
            text,
            added: Vec::new(),
            removed: Vec::new(),
            change_feed: Vec::new(),
            txns: Vec::new(),
            protocol: None,
            metadata: None,
        };
        for action in actions {
            match action {
                Action::Add(add) => {
                    let file = Arc::new(DataFile::added(&add, declared)?);
                    let kept = add.tags.as_ref().and_then(|tags| tags.get(KEPT)?.as_ref());
                    let kept = kept.is_some() && kept == id.as_ref();
                    commit.added.push(Changed { file, is: ChangeOf::of(add.data_change, kept) });
                }
                Action::Remove(remove) => {
                    let file = Arc::new(DataFile::removed(&remove)?);
                    commit.removed.push(Changed { file, is: ChangeOf::of(remove.data_change, false) });
                }
                Action::Txn(txn) => commit.txns.push((txn.app_id, txn.version)),
                Action::Protocol(protocol) => commit.protocol = Some(protocol),
                Action::Metadata(metadata) => commit.metadata = Some(metadata),
                Action::Cdc(rows) => commit.change_feed.push(Arc::new(DataFile::of_change_feed(&rows)?)),
                Action::CommitInfo(_) | Action::DomainMetadata(_) => {}
            }
        }
        Ok(commit)
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// All files that the commit names.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Arc<DataFile>> {
        let changed = self.added.iter().chain(&self.removed).map(|changed| &changed.file);
        changed.chain(&self.change_feed)
    }

    /// The files with rows that are new.
    pub(crate) fn data_added(&self) -> impl Iterator<Item = &Arc<DataFile>> {
        self.added.iter().filter(|added| added.is == ChangeOf::Rows).map(|added| &added.file)
    }

    /// The files with what stays of the rows of removed files.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &Arc<DataFile>> {
        self.added.iter().filter(|added| added.is == ChangeOf::KeptRows).map(|added| &added.file)
    }

    /// The files with rows that are no longer there, or no longer as they were.
    pub(crate) fn data_removed(&self) -> impl Iterator<Item = &Arc<DataFile>> {
        self.removed.iter().filter(|removed| removed.is == ChangeOf::Rows).map(|removed| &removed.file)
    }

    /// The files with every row that the commit adds, removes or changes, as it was and as it is; none where the writer
    /// leaves it to the other files to say.
    pub(crate) fn change_feed(&self) -> &[Arc<DataFile>] {
        &self.change_feed
    }

    /// Whether the commit does no more than to add rows; moving rows to other files is nothing.
    pub(crate) fn is_append(&self) -> bool {
        self.data_removed().next().is_none() && self.kept().next().is_none()
    }
}

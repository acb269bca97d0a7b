//! The log of a table: what it was read to say, and how a commit is added to it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use deltalake_core::DeltaTable;
use deltalake_core::checkpoints::create_checkpoint;
use deltalake_core::kernel::transaction::TransactionError;
use deltalake_core::kernel::{Action, EagerSnapshot};
use deltalake_core::logstore::{
    CommitOrBytes, LogStoreRef, commit_uri_from_version, extract_version_from_filename, get_actions,
};
use futures::TryStreamExt;
use object_store::{ObjectStore, ObjectStoreExt};
use uuid::Uuid;
use windrow_state::{RegionId, Sequence};
use windrow_table::{TableError, TableSpec};

use crate::DeltaError;
use crate::cleanup::{self, Holds};
use crate::crash::crash_point;
use crate::protocol::TableFacts;
use crate::snapshot::{Declared, LogCommit, Snapshot, fnv, region_of, sequence_of};

/// How many versions back a version is at hand without reading the log.
const RECENT_VERSIONS: usize = 16;
/// How many commits back a commit is at hand without reading the log.
const RECENT_COMMITS: usize = 256;

/// The log of one table.
///
/// The newest version that was read is kept as a value and moved forward by the commits after it, so that neither
/// reading nor committing gets slower as the log grows.
#[derive(Debug)]
pub(crate) struct DeltaLog {
    store: LogStoreRef,
    declared: Declared,
    holds: Holds,
    // Held only to look at or to exchange values, never while the storage is asked.
    recent: Mutex<Recent>,
}

#[derive(Debug)]
struct Recent {
    newest: Arc<Snapshot>,
    /// The entry of the newest version, to tell whether it is still the same; `None` if it was never read.
    entry: Option<SeenEntry>,
    older: VecDeque<Arc<Snapshot>>,
    commits: VecDeque<Arc<LogCommit>>,
}

/// An entry of the log, as it was when it was seen last.
#[derive(Debug, Clone)]
struct SeenEntry {
    /// The hash of its text.
    text: u64,
    /// Its size, time and tag in the storage: with these as they were, it is not read again.
    file: Option<(u64, i64, Option<String>)>,
}

/// What became of an entry of the log.
enum Entry {
    AsItWas,
    /// It is gone, as it is when the log is cut off before a checkpoint.
    Gone,
    /// There is another text.
    Other,
}

impl Recent {
    fn of(newest: Arc<Snapshot>, text: Option<u64>) -> Self {
        let entry = text.map(|text| SeenEntry { text, file: None });
        Self { newest, entry, older: VecDeque::new(), commits: VecDeque::new() }
    }

    fn advance(&mut self, next: &Arc<Snapshot>, commit: Arc<LogCommit>) {
        if next.version() != self.newest.version() + 1 {
            return; // Somebody else was faster.
        }
        self.entry = Some(SeenEntry { text: commit.text, file: None });
        let before = std::mem::replace(&mut self.newest, Arc::clone(next));
        self.older.push_back(before);
        self.commits.push_back(commit);
        if self.older.len() > RECENT_VERSIONS {
            self.older.pop_front();
        }
        if self.commits.len() > RECENT_COMMITS {
            self.commits.pop_front();
        }
    }
}

/// What became of a commit.
#[derive(Debug)]
pub(crate) enum Published {
    /// It is in the log; the table is now this.
    At(Arc<Snapshot>),
    /// Another commit has that version; nothing was written.
    Taken,
}

impl DeltaLog {
    /// Reads the newest version of a table that is, by what the log says, declared to be `declare`.
    pub(crate) async fn open(
        store: LogStoreRef,
        declare: impl FnOnce(&TableFacts) -> Result<TableSpec, DeltaError>,
    ) -> Result<Self, DeltaError> {
        let loaded = read_version(&store, None).await?;
        let facts = TableFacts::new(loaded.protocol(), loaded.metadata())?;
        let declared = Declared::new(declare(&facts)?, &facts)?;
        let newest = Arc::new(Snapshot::loaded(&loaded, &declared, None)?);
        let text = text_of(&store, newest.version()).await?;
        Ok(Self { store, declared, holds: Holds::default(), recent: Mutex::new(Recent::of(newest, text)) })
    }

    pub(crate) fn declared(&self) -> &Declared {
        &self.declared
    }

    /// What clean-up has to leave.
    pub(crate) fn holds(&self) -> &Holds {
        &self.holds
    }

    /// The table's own part of the storage.
    pub(crate) fn object_store(&self) -> Arc<dyn ObjectStore> {
        self.store.object_store(None)
    }

    pub(crate) fn store(&self) -> &LogStoreRef {
        &self.store
    }

    /// The newest version that was read.
    pub(crate) fn newest(&self) -> Arc<Snapshot> {
        Arc::clone(&self.recent().newest)
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        // What the lock protects is replaced by whole values: no panic leaves it half done.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the commits after the newest version that was read.
    pub(crate) async fn refresh(&self) -> Result<Arc<Snapshot>, TableError> {
        let (mut newest, entry) = {
            let recent = self.recent();
            (Arc::clone(&recent.newest), recent.entry.clone())
        };
        // What was read last tells a log that goes on from one that was cut, or replaced.
        match self.look_at(&newest, entry).await? {
            Entry::AsItWas => {}
            Entry::Gone => return self.reload(&newest, true).await,
            Entry::Other => return self.reload(&newest, false).await,
        }
        while let Some(commit) = self.read_commit(newest.version() + 1).await? {
            let next = Arc::new(newest.apply(&commit, &self.declared)?);
            self.recent().advance(&next, Arc::new(commit));
            newest = next;
        }
        Ok(newest)
    }

    /// Looks at the entry of a version.
    async fn look_at(&self, snapshot: &Snapshot, seen: Option<SeenEntry>) -> Result<Entry, TableError> {
        let version = snapshot.version();
        let meta = match self.object_store().head(&commit_uri_from_version(Some(version))).await {
            Ok(meta) => meta,
            Err(object_store::Error::NotFound { .. }) => return Ok(Entry::Gone),
            Err(error) => return Err(TableError::storage("the log of the Delta table", error)),
        };
        let Some(seen) = seen else { return Ok(Entry::AsItWas) };
        let file = Some((meta.size, meta.last_modified.timestamp_micros(), meta.e_tag));
        if seen.file == file {
            return Ok(Entry::AsItWas);
        }
        match text_of(&self.store, version).await? {
            None => Ok(Entry::Gone),
            Some(text) if text == seen.text => {
                let mut recent = self.recent();
                if recent.newest.version() == version && recent.newest.region() == snapshot.region() {
                    recent.entry = Some(SeenEntry { text, file });
                }
                Ok(Entry::AsItWas)
            }
            Some(_) => Ok(Entry::Other),
        }
    }

    /// Reads the newest version anew. If that is not one that can have come after `known`, what is known of the table's
    /// past is of another one.
    async fn reload(&self, known: &Snapshot, may_be_cut: bool) -> Result<Arc<Snapshot>, TableError> {
        let newest = load(&self.store, None, &self.declared, None).await?;
        let text = text_of(&self.store, newest.version()).await?;
        let (id, known_id) = (newest.facts().id(), known.facts().id());
        let newest = if id != known_id {
            newest
        } else if may_be_cut && newest.version() >= known.version() {
            newest.in_region(known.region())
        } else {
            let region = region_of(id, text);
            newest.in_region(region)
        };
        if newest.region() != known.region() {
            let at = self.store.root_url();
            tracing::warn!(%at, "another Delta table is in the place of the one that was there");
        }
        let newest = Arc::new(newest);
        *self.recent() = Recent::of(Arc::clone(&newest), text);
        Ok(newest)
    }

    /// A version of the table.
    ///
    /// # Errors
    /// [`TableError::Stale`] when the log does not have what leads to it.
    pub(crate) async fn version(&self, version: u64) -> Result<Arc<Snapshot>, TableError> {
        if let Some(snapshot) = self.recent_version(version) {
            return Ok(snapshot);
        }
        let newest = self.refresh().await?;
        if version > newest.version() {
            return Err(self.stale(sequence_of(version)).await);
        }
        let region = newest.region();
        if let Some(snapshot) = self.recent_version(version) {
            return Ok(snapshot);
        }
        match load(&self.store, Some(version), &self.declared, Some(region)).await {
            Ok(snapshot) => Ok(Arc::new(snapshot)),
            Err(_) if self.oldest().await? > sequence_of(version) => {
                Err(self.stale(sequence_of(version)).await)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn recent_version(&self, version: u64) -> Option<Arc<Snapshot>> {
        let recent = self.recent();
        let found = recent.older.iter().chain([&recent.newest]).find(|s| s.version() == version);
        found.map(Arc::clone)
    }

    /// A commit; `None` where the log no longer has it.
    pub(crate) async fn commit(&self, version: u64) -> Result<Option<Arc<LogCommit>>, TableError> {
        let known = self.recent().commits.iter().find(|commit| commit.version() == version).map(Arc::clone);
        match known {
            Some(commit) => Ok(Some(commit)),
            None => Ok(self.read_commit(version).await?.map(Arc::new)),
        }
    }

    async fn read_commit(&self, version: u64) -> Result<Option<LogCommit>, TableError> {
        let context = || format!("the commit {version} of the Delta table");
        let bytes = self.store.read_commit_entry(version).await;
        let Some(bytes) = bytes.map_err(|error| TableError::storage(context(), error))? else {
            return Ok(None);
        };
        let actions = get_actions(version, &bytes).map_err(|error| TableError::storage(context(), error))?;
        Ok(Some(LogCommit::new(version, fnv(&bytes), actions, &self.declared)?))
    }

    /// That what was asked for is not, or no longer, there.
    pub(crate) async fn stale(&self, asked: Sequence) -> TableError {
        match self.oldest().await {
            Ok(oldest) => TableError::Stale { region: self.newest().region(), asked, oldest },
            Err(error) => error,
        }
    }

    /// The oldest sequence that can be read: the first version of the log, or its first checkpoint.
    async fn oldest(&self) -> Result<Sequence, TableError> {
        let store = self.object_store();
        let names = store.list(Some(self.store.log_path())).map_ok(|entry| entry.location);
        let names: Vec<_> = names
            .try_collect()
            .await
            .map_err(|error| TableError::storage("the log of the Delta table", error))?;
        let starts = names.iter().filter_map(|path| {
            let name = path.filename()?;
            let version = extract_version_from_filename(name)?;
            (version == 0 || name.contains(".checkpoint")).then_some(version)
        });
        Ok(starts.min().map_or(self.newest().sequence(), sequence_of))
    }

    /// Adds a commit right after `base`, or not at all.
    ///
    /// # Errors
    /// When the storage failed. The commit may be in the log all the same: files that it names must not be deleted.
    pub(crate) async fn publish(
        &self,
        base: &Snapshot,
        actions: Vec<Action>,
    ) -> Result<Published, TableError> {
        let version = base.version() + 1;
        let context = || format!("the commit {version} of the Delta table");
        let entry = entry_of(&actions).map_err(|error| TableError::storage(context(), error))?;
        let bytes = CommitOrBytes::LogBytes(entry.clone());
        crash_point!("delta::log-entry-is-to-be-written");
        if let Err(error) = self.store.write_commit_entry(version, bytes, Uuid::new_v4()).await {
            // A storage that tries again by itself may find its own first try.
            let found = self.store.read_commit_entry(version).await;
            match (found.map_err(|error| TableError::storage(context(), error))?, error) {
                (Some(found), _) if found == entry => {}
                (_, TransactionError::VersionAlreadyExists(_)) | (Some(_), _) => return Ok(Published::Taken),
                (None, error) => return Err(TableError::storage(context(), error)),
            }
        }
        crash_point!("delta::log-entry-is-there");
        let commit = LogCommit::new(version, fnv(&entry), actions, &self.declared)?;
        let next = Arc::new(base.apply(&commit, &self.declared)?);
        self.recent().advance(&next, Arc::new(commit));
        // That one of these fails costs only time and space.
        if next.version().is_multiple_of(next.facts().checkpoint_interval())
            && let Err(error) = self.checkpoint(&next).await
        {
            tracing::warn!(%error, version, "the log has no new checkpoint, or what is old was not deleted");
        }
        Ok(Published::At(next))
    }

    /// Writes a checkpoint of a version, and deletes what is no longer needed.
    async fn checkpoint(&self, snapshot: &Snapshot) -> Result<(), TableError> {
        crash_point!("delta::checkpoint-is-to-be-written");
        let context = || format!("the checkpoint of version {}", snapshot.version());
        let table = self.loaded(snapshot).await?;
        let old = cleanup::plan(self, &table, snapshot, &self.holds).await;
        create_checkpoint(&table, None).await.map_err(|error| TableError::storage(context(), error))?;
        crash_point!("delta::old-files-are-to-be-deleted");
        cleanup::carry_out(self, old?).await?;
        Ok(())
    }

    /// Deletes what is no longer needed. The answer is the number of data files.
    pub(crate) async fn clean_up(&self) -> Result<u64, TableError> {
        let snapshot = self.refresh().await?;
        let table = self.loaded(&snapshot).await?;
        let old = cleanup::plan(self, &table, &snapshot, &self.holds).await?;
        cleanup::carry_out(self, old).await
    }

    async fn loaded(&self, snapshot: &Snapshot) -> Result<DeltaTable, TableError> {
        let mut table = DeltaTable::new(Arc::clone(&self.store));
        let loaded = table.load_version(snapshot.version()).await;
        loaded.map_err(|error| TableError::storage("the log of the Delta table", error))?;
        Ok(table)
    }

    /// The version of the newest `txn` action of this id.
    pub(crate) async fn txn(&self, snapshot: &Snapshot, app_id: &str) -> Result<Option<i64>, TableError> {
        if let Some(version) = snapshot.later_txn(app_id) {
            return Ok(Some(version));
        }
        let loaded = snapshot.loaded_txns();
        if let Some(version) = loaded.get(app_id) {
            return Ok(version);
        }
        let failed = |error| TableError::storage("the transactions of the Delta table", error);
        let store = self.store.as_ref();
        let base = read_version(&self.store, Some(snapshot.version())).await?;
        let version = base.transaction_version(store, app_id).await.map_err(failed)?;
        loaded.remember(app_id, version);
        Ok(version)
    }
}

async fn load(
    store: &LogStoreRef,
    version: Option<u64>,
    declared: &Declared,
    region: Option<RegionId>,
) -> Result<Snapshot, DeltaError> {
    Snapshot::loaded(&read_version(store, version).await?, declared, region)
}

/// The hash of the text of a version's entry; `None` if the log no longer has it.
async fn text_of(store: &LogStoreRef, version: u64) -> Result<Option<u64>, DeltaError> {
    let entry = store.read_commit_entry(version).await;
    let entry = entry.map_err(|error| DeltaError::storage("the log of the Delta table", error))?;
    Ok(entry.map(|text| fnv(&text)))
}

async fn read_version(store: &LogStoreRef, version: Option<u64>) -> Result<EagerSnapshot, DeltaError> {
    EagerSnapshot::try_new(store.as_ref(), version)
        .await
        .map_err(|error| DeltaError::storage("the log of the Delta table", error))
}

/// The text of a commit: an action in each line.
pub(crate) fn entry_of(actions: &[Action]) -> Result<Bytes, serde_json::Error> {
    let mut lines = Vec::new();
    for action in actions {
        serde_json::to_writer(&mut lines, action)?;
        lines.push(b'\n');
    }
    Ok(lines.into())
}

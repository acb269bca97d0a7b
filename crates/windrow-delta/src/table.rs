//! A Delta table as a source and a sink.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use datafusion::catalog::TableProvider;
use deltalake_core::kernel::engine::arrow_conversion::TryIntoKernel;
use deltalake_core::kernel::transaction::TransactionError;
use deltalake_core::kernel::{Action, CommitInfo, StructType, new_metadata};
use deltalake_core::logstore::CommitOrBytes;
use uuid::Uuid;
use windrow_state::{RegionId, SequenceRange, Watermarks};
use windrow_table::{
    Changes, Commit, Committed, CommittedProgress, InOneWindow, ReadBounds, SinkTable, SourceTable,
    TableError, TableSpec, overlapping_rows,
};
use windrow_time::InstantRange;

use crate::changes::{appended_files, changes, snapshot_files};
use crate::commit::Committer;
use crate::log::{DeltaLog, entry_of};
use crate::protocol::protocol_for;
use crate::reader::Reader;
use crate::scan::FileScan;
use crate::types::stored_schema;
use crate::writer::Layout;
use crate::{DeltaError, Location, progress};

/// A Delta Lake table.
///
/// It has one region, which stands for its identity, and a version is a sequence: version 0, which makes the table, is
/// sequence 1. Others may read and write the table at the same time, with Windrow or with anything else that writes
/// Delta. A table that takes the place of this one, made anew or put back from a backup, is noticed: what is asked of
/// it by watermarks from before is [stale](TableError::Stale).
///
/// A handle keeps what it has read of the log; it is cheap to ask again and again, and to commit with.
#[derive(Debug)]
pub struct DeltaTable {
    log: DeltaLog,
    reader: Arc<Reader>,
    layout: Arc<Layout>,
    // One commit at a time: the commits of one handle do not get in each other's way.
    turn: tokio::sync::Mutex<()>,
}

impl DeltaTable {
    /// Makes an empty table; a folder on disk is made if it is not there. What is removed from it stays for a day
    /// ([`DeltaTable::create_with_retention`]).
    ///
    /// # Errors
    /// [`DeltaError::Type`] or [`DeltaError::Columns`] when Delta cannot have such columns, [`DeltaError::Exists`]
    /// when there is a table, [`DeltaError::NotWritable`] when nothing can be written there.
    pub async fn create(location: impl Into<Location>, spec: TableSpec) -> Result<Self, DeltaError> {
        Self::create_with_retention(location, spec, Duration::from_secs(24 * 60 * 60)).await
    }

    /// Makes an empty table whose older versions can be read for at least so long; then their files are deleted, when the
    /// log gets a checkpoint next (every 100 commits) or by [`SinkTable::clean_up`]. Readers that are slower than that,
    /// and not known to this handle ([`SourceTable::hold`]), fail, and flows in other processes start over.
    ///
    /// # Errors
    /// As [`DeltaTable::create`].
    pub async fn create_with_retention(
        location: impl Into<Location>,
        spec: TableSpec,
        retention: Duration,
    ) -> Result<Self, DeltaError> {
        let location = location.into();
        let retention = format!("interval {} milliseconds", retention.as_millis());
        let stored = stored_schema(spec.schema())?;
        let columns: StructType =
            stored.as_ref().try_into_kernel().map_err(|error| DeltaError::Columns(error.to_string()))?;
        let no_partitions: [&str; 0] = [];
        let properties = [
            ("delta.checkpointInterval", "100"),
            ("delta.deletedFileRetentionDuration", retention.as_str()),
            ("delta.logRetentionDuration", retention.as_str()),
        ];
        let metadata = new_metadata(&columns, no_partitions, properties)
            .map_err(|error| DeltaError::Columns(error.to_string()))?;
        let info = CommitInfo {
            timestamp: Some(chrono::Utc::now().timestamp_millis()),
            operation: Some("CREATE TABLE".into()),
            engine_info: Some(concat!("windrow ", env!("CARGO_PKG_VERSION")).into()),
            ..CommitInfo::default()
        };
        let actions =
            [Action::CommitInfo(info), Action::Protocol(protocol_for(&stored)?), Action::Metadata(metadata)];

        let exists = || DeltaError::Exists { location: location.to_string() };
        let not_writable = |error: Box<dyn std::error::Error + Send + Sync>| DeltaError::NotWritable {
            location: location.to_string(),
            source: error,
        };
        let store = location.make()?;
        if store.is_delta_table_location().await.map_err(|error| not_writable(error.into()))? {
            return Err(exists());
        }
        let entry = entry_of(&actions).map_err(|error| not_writable(error.into()))?;
        match store.write_commit_entry(0, CommitOrBytes::LogBytes(entry), Uuid::new_v4()).await {
            Ok(()) => {}
            Err(TransactionError::VersionAlreadyExists(_)) => return Err(exists()),
            Err(error) => return Err(not_writable(error.into())),
        }
        Self::of(DeltaLog::open(store, |_| Ok(spec)).await?)
    }

    /// Opens a table that is declared to be `spec`.
    ///
    /// # Errors
    /// [`DeltaError::Missing`] and [`DeltaError::NotATable`] when there is none, [`DeltaError::Columns`] when it has
    /// other columns, [`DeltaError::Unreadable`] when it uses something that is not honoured.
    pub async fn open(location: impl Into<Location>, spec: TableSpec) -> Result<Self, DeltaError> {
        let store = location.into().find().await?;
        Self::of(DeltaLog::open(store, |_| Ok(spec)).await?)
    }

    /// Opens a table with the columns that its log says it has; `time_index` and `primary_key` are names of some.
    ///
    /// # Errors
    /// As for [`DeltaTable::open`], and [`DeltaError::Spec`] when there is no such column, or the time index is not a
    /// timestamp.
    pub async fn discover(
        location: impl Into<Location>,
        time_index: Option<&str>,
        primary_key: &[&str],
    ) -> Result<Self, DeltaError> {
        let store = location.into().find().await?;
        let log = DeltaLog::open(store, |facts| {
            let mut spec = TableSpec::new(Arc::new(facts.schema().clone()))?;
            if let Some(column) = time_index {
                spec = spec.with_time_index(column)?;
            }
            Ok(spec.with_primary_key(primary_key)?)
        });
        Self::of(log.await?)
    }

    fn of(log: DeltaLog) -> Result<Self, DeltaError> {
        let reader = Arc::new(Reader::new(Arc::clone(log.store()), log.declared())?);
        let layout = Arc::new(Layout::new(reader.spec())?);
        Ok(Self { log, reader, layout, turn: tokio::sync::Mutex::default() })
    }

    /// The region that the table's watermarks are of.
    #[must_use]
    pub fn region(&self) -> RegionId {
        self.log.newest().region()
    }

    /// Where the table is.
    #[must_use]
    pub fn url(&self) -> &url::Url {
        self.log.store().root_url()
    }
}

#[async_trait]
impl SourceTable for DeltaTable {
    fn spec(&self) -> &TableSpec {
        self.reader.spec()
    }

    async fn watermarks(&self) -> Result<Watermarks, TableError> {
        Ok(self.log.refresh().await?.watermarks())
    }

    async fn changes(
        &self,
        range: &SequenceRange,
        in_one_window: InOneWindow<'_>,
    ) -> Result<Changes, TableError> {
        changes(&self.log, &self.reader, range, in_one_window).await
    }

    async fn scan(&self, bounds: &ReadBounds) -> Result<Arc<dyn TableProvider>, TableError> {
        let files = match bounds {
            ReadBounds::Latest => self.log.refresh().await?.files().to_vec(),
            ReadBounds::Snapshot(at) => {
                let at = self.log.newest().sequence_at(at)?;
                snapshot_files(&self.log, at).await?
            }
            ReadBounds::Appended(range) => appended_files(&self.log, range).await?,
        };
        Ok(Arc::new(FileScan::new(Arc::clone(&self.reader), files)))
    }

    async fn mark(&self, at: &Watermarks) -> Result<Option<u64>, TableError> {
        let Some(version) = self.log.newest().sequence_at(at)?.checked_sub(1) else { return Ok(None) };
        Ok(self.log.commit(version).await?.map(|commit| commit.text))
    }

    fn hold(&self, reader: &str, after: Option<&Watermarks>) {
        self.log.holds().set(reader, after);
    }

    async fn estimate_rows(&self, ranges: &[InstantRange]) -> Result<u64, TableError> {
        let newest = self.log.newest();
        // A file of which not even the number of rows is known counts as a full one.
        let unknown = crate::writer::ROWS_PER_FILE as u64;
        let spans = newest.files().iter().map(|file| (file.span, file.rows().unwrap_or(unknown)));
        Ok(overlapping_rows(spans, ranges))
    }
}

#[async_trait]
impl SinkTable for DeltaTable {
    async fn progress(&self, flow: &str) -> Result<Option<CommittedProgress>, TableError> {
        progress::read(&self.log, flow).await
    }

    async fn commit(&self, commit: Commit) -> Result<Committed, TableError> {
        let committer =
            Committer { log: &self.log, reader: &self.reader, layout: &self.layout, turn: &self.turn };
        committer.commit(commit).await
    }

    async fn clean_up(&self) -> Result<u64, TableError> {
        let _turn = self.turn.lock().await;
        self.log.clean_up().await
    }
}

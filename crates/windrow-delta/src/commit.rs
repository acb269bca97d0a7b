//! Changing a table: copy on write, and one commit for everything.

use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::TryStreamExt;
use windrow_table::{Commit, Committed, Removal, RowStream, Survivors, TableError, Write, concat};

use crate::DeltaError;
use crate::change::{Change, FILES_TO_COMPACT, Pieces, Prepared, Taken, small_files};
use crate::crash::crash_point;
use crate::file::DataFile;
use crate::log::{DeltaLog, Published};
use crate::progress;
use crate::reader::Reader;
use crate::snapshot::Snapshot;
use crate::writer::{FileWriter, Layout, ROW_GROUP, ROWS_PER_FILE, Staged};

/// How many other commits may come in between before a commit that can be on any state gives up.
const TRIES: usize = 100;

/// What a commit needs of its table.
#[derive(Debug)]
pub(crate) struct Committer<'a> {
    pub(crate) log: &'a DeltaLog,
    pub(crate) reader: &'a Reader,
    pub(crate) layout: &'a Arc<Layout>,
    pub(crate) turn: &'a tokio::sync::Mutex<()>,
}

impl Committer<'_> {
    pub(crate) async fn commit(&self, commit: Commit) -> Result<Committed, TableError> {
        let Commit { write, rows, progress, expected } = commit;
        let spec = self.reader.spec();
        let base = self.log.refresh().await?;
        base.facts().check_writable(spec, !matches!(write, Write::Append))?;
        if let Some(expected) = expected.as_ref().filter(|expected| **expected != base.watermarks()) {
            return Err(TableError::Conflict { expected: expected.clone(), found: base.watermarks() });
        }
        let expected = expected.map(|_| Arc::clone(&base));
        if matches!(write, Write::Compact) && small_files(&base, Pieces::LARGE).count() < 2 {
            return Ok(Committed { at: base.watermarks(), rows_added: 0, rows_removed: 0 });
        }

        // A stream gives its rows once: they are written once, whatever becomes of the commit.
        let (removal, new_files) = match &write {
            Write::Upsert { .. } => {
                let (removal, last_rows) = Removal::new(spec, &write, self.collect(rows).await?)?;
                let mut writer = self.writer(ROWS_PER_FILE);
                let pushed = writer.push(&last_rows).await;
                (removal, writer.finish(pushed).await?)
            }
            _ => {
                let none = RecordBatch::new_empty(Arc::clone(spec.schema()));
                let (removal, _) = Removal::new(spec, &write, none)?;
                (removal, self.writer(ROWS_PER_FILE).write_all(rows).await?)
            }
        };
        crash_point!("delta::new-files-are-written");
        let change = Change { write: &write, removal, new_files, progress, pieces: Pieces::LARGE };
        self.land(&change, expected.as_deref()).await
    }

    /// Brings the change into the log: on exactly the version expected, or on whatever is there.
    async fn land(&self, change: &Change<'_>, expected: Option<&Snapshot>) -> Result<Committed, TableError> {
        let store = self.log.object_store();
        let _turn = self.turn.lock().await;
        // Whether this is still the newest version, the storage says in the end.
        let mut base = Ok(self.log.newest());
        for _ in 0..TRIES {
            let attempt = match base {
                Ok(base) => self.attempt(change, &base, expected).await,
                Err(error) => Attempt::Failed(error),
            };
            match attempt {
                Attempt::Landed(committed) => {
                    self.compact_if_due().await;
                    return Ok(committed);
                }
                Attempt::Lost if expected.is_none() => {}
                Attempt::Lost => break,
                Attempt::InDoubt(error) => return Err(error),
                Attempt::Failed(error) => {
                    change.new_files.discard(store.as_ref()).await;
                    return Err(error);
                }
            }
            base = self.log.refresh().await;
        }
        change.new_files.discard(store.as_ref()).await;
        let found = self.log.refresh().await?.watermarks();
        let expected = expected.map_or_else(|| found.clone(), Snapshot::watermarks);
        Err(TableError::Conflict { expected, found })
    }

    /// Puts small files together once there are many, so that neither the log nor a scan grows with the number of commits.
    /// That it fails costs only time.
    async fn compact_if_due(&self) {
        let base = self.log.newest();
        let removable = base.facts().check_writable(self.reader.spec(), true).is_ok();
        if !removable || small_files(&base, Pieces::SMALL).count() < FILES_TO_COMPACT {
            return;
        }
        let spec = self.reader.spec();
        let write = Write::Compact;
        let none = RecordBatch::new_empty(Arc::clone(spec.schema()));
        let Ok((removal, _)) = Removal::new(spec, &write, none) else { return };
        let new_files = Staged::default();
        let change = Change { write: &write, removal, new_files, progress: None, pieces: Pieces::SMALL };
        match self.attempt(&change, &base, None).await {
            Attempt::Landed(_) | Attempt::Lost => {}
            Attempt::Failed(error) | Attempt::InDoubt(error) => {
                tracing::warn!(%error, "small files were not put together");
            }
        }
    }

    async fn attempt(&self, change: &Change<'_>, base: &Snapshot, expected: Option<&Snapshot>) -> Attempt {
        if expected.is_some_and(|expected| expected.watermarks() != base.watermarks()) {
            return Attempt::Lost;
        }
        let prepared = match self.prepare(change, base).await {
            Ok(prepared) => prepared,
            Err(error) => return Attempt::Failed(error),
        };
        match self.log.publish(base, change.actions(&prepared, base)).await {
            Ok(Published::At(now)) => {
                self.sweep(change, &prepared, base).await;
                Attempt::Landed(Committed {
                    at: now.watermarks(),
                    rows_added: change.new_files.rows,
                    rows_removed: prepared.taken.rows,
                })
            }
            Ok(Published::Taken) => {
                let store = self.log.object_store();
                prepared.taken.survivors.discard(store.as_ref()).await;
                if let (Some((flow, _)), Some(number)) = (&change.progress, prepared.progress) {
                    progress::discard(store.as_ref(), flow, number).await;
                }
                Attempt::Lost
            }
            Err(error) => Attempt::InDoubt(error),
        }
    }

    /// Writes what the commit after `base` is to name, besides the new rows.
    async fn prepare(&self, change: &Change<'_>, base: &Snapshot) -> Result<Prepared, TableError> {
        let removing = !matches!(change.write, Write::Append);
        base.facts().check_writable(self.reader.spec(), removing)?;
        let taken = self.take(change, base).await?;
        crash_point!("delta::kept-rows-are-written");
        let Some((flow, progress)) = &change.progress else { return Ok(Prepared { taken, progress: None }) };
        let store = self.log.object_store();
        match progress::write(store.as_ref(), flow, progress, base.version() + 1).await {
            Ok(number) => {
                crash_point!("delta::progress-is-written");
                Ok(Prepared { taken, progress: Some(number) })
            }
            Err(error) => {
                taken.survivors.discard(store.as_ref()).await;
                Err(error)
            }
        }
    }

    /// Deletes old progress of the flow, once in a while.
    async fn sweep(&self, change: &Change<'_>, prepared: &Prepared, base: &Snapshot) {
        if let (Some((flow, _)), Some(number)) = (&change.progress, prepared.progress)
            && progress::sweep_is_due(base.later_txn(&progress::app_id(flow)), number)
        {
            crash_point!("delta::old-progress-is-to-be-deleted");
            progress::sweep(self.log.object_store().as_ref(), flow, number).await;
        }
    }

    /// Finds the files that lose rows, and writes what stays of them into new ones.
    async fn take(&self, change: &Change<'_>, base: &Snapshot) -> Result<Taken, TableError> {
        let mut taken = Taken::default();
        if matches!(change.write, Write::Compact) {
            taken.files = small_files(base, change.pieces).cloned().collect();
            // In the order of time, so that each new file has neighbouring instants.
            taken.files.sort_by_key(|file| file.span.map(|span| span.first));
            taken.survivors = self.together(&taken.files, change.pieces.rows_per_file).await?;
            return Ok(taken);
        }
        // Small files, so that the next rewrite of a few windows does not have to copy many others.
        let mut writer = self.writer(ROW_GROUP);
        let mut copied = Ok(());
        for file in base.files() {
            if !change.removal.may_touch(file.span) {
                continue;
            }
            copied = self.take_from(change, file, &mut taken, &mut writer).await;
            if copied.is_err() {
                break;
            }
        }
        taken.survivors = writer.finish(copied).await?;
        Ok(taken)
    }

    /// The rows of the files in few new ones.
    async fn together(&self, files: &[Arc<DataFile>], rows_per_file: usize) -> Result<Staged, TableError> {
        let mut writer = self.writer(rows_per_file);
        let mut copied = Ok(());
        for file in files {
            copied = async {
                for batch in self.read(file).await? {
                    writer.push(&batch).await?;
                }
                Ok(())
            }
            .await;
            if copied.is_err() {
                break;
            }
        }
        writer.finish(copied).await
    }

    async fn take_from(
        &self,
        change: &Change<'_>,
        file: &Arc<DataFile>,
        taken: &mut Taken,
        writer: &mut FileWriter,
    ) -> Result<(), TableError> {
        if !file.has_plain_name() {
            let reason = format!("the file {} has a name that can be spelt in several ways", file.path());
            return Err(DeltaError::Unwritable(reason).into());
        }
        if let Some(rows) = change.whole(file) {
            taken.rows += rows;
            taken.files.push(Arc::clone(file));
            return Ok(());
        }
        let mut kept_rows = Vec::new();
        let mut lost = 0;
        for batch in self.read(file).await? {
            match change.removal.survivors(&batch)? {
                Survivors::All => kept_rows.push(batch),
                Survivors::Some { kept, removed } => {
                    lost += removed.num_rows() as u64;
                    kept_rows.push(kept);
                }
            }
        }
        if lost > 0 {
            taken.rows += lost;
            taken.files.push(Arc::clone(file));
            for batch in kept_rows {
                writer.push(&batch).await?;
            }
        }
        Ok(())
    }

    async fn collect(&self, rows: RowStream) -> Result<RecordBatch, TableError> {
        let batches = rows.map_err(TableError::from).and_then(async |batch| self.layout.fit(&batch));
        let batches: Vec<RecordBatch> = batches.try_collect().await?;
        concat(self.reader.spec().schema(), &batches)
    }

    async fn read(&self, file: &Arc<DataFile>) -> Result<Vec<RecordBatch>, TableError> {
        let rows = self.reader.rows_of(vec![Arc::clone(file)]).await?;
        self.reader.read(&rows, None).await
    }

    fn writer(&self, rows_per_file: usize) -> FileWriter {
        FileWriter::new(Arc::clone(self.layout), self.log.object_store(), rows_per_file)
    }
}

/// What became of trying to commit on the newest version.
enum Attempt {
    Landed(Committed),
    /// Another commit was faster.
    Lost,
    /// Nothing was committed.
    Failed(TableError),
    /// The storage failed in the act: the files that were written may be in the log.
    InDoubt(TableError),
}

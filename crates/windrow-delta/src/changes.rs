//! What the commits of a range of sequences did.

use std::collections::HashSet;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStore, ObjectStoreExt};
use windrow_state::{Sequence, SequenceRange};
use windrow_table::{Changes, TableError};

use crate::file::DataFile;
use crate::log::DeltaLog;
use crate::reader::Reader;
use crate::snapshot::{LogCommit, REGION};

/// How many files are asked for at once.
const AT_ONCE: usize = 8;

/// The time index of what the commits in the range changed.
pub(crate) async fn changes(
    log: &DeltaLog,
    reader: &Reader,
    range: &SequenceRange,
) -> Result<Changes, TableError> {
    let (after, upto) = range.of_region(REGION);
    if after == 0 {
        let files = snapshot_files(log, upto).await?;
        return Ok(Changes { appended: reader.instants(&files).await?, rewritten: Vec::new() });
    }
    let (mut appended, mut rewritten) = (Vec::new(), Vec::new());
    for commit in commits(log, after, upto).await? {
        if commit.is_append() {
            appended.extend(commit.data_added().cloned());
        } else {
            rewritten.extend(commit.data_removed().chain(commit.data_added()).cloned());
        }
    }
    let appended = present(log, appended, after).await?;
    let rewritten = present(log, rewritten, after).await?;
    Ok(Changes { appended: reader.instants(&appended).await?, rewritten: reader.instants(&rewritten).await? })
}

/// The files that the commits in the range, all of them appends, added.
pub(crate) async fn appended_files(
    log: &DeltaLog,
    range: &SequenceRange,
) -> Result<Vec<Arc<DataFile>>, TableError> {
    let (after, upto) = range.of_region(REGION);
    if after == 0 {
        return snapshot_files(log, upto).await;
    }
    let commits = commits(log, after, upto).await?;
    if !commits.iter().all(|commit| commit.is_append()) {
        return Err(TableError::NotAppends { after, upto });
    }
    let files = commits.iter().flat_map(|commit| commit.data_added().cloned()).collect();
    present(log, files, after).await
}

/// The files of the table at a sequence; before the first there are none.
pub(crate) async fn snapshot_files(log: &DeltaLog, at: Sequence) -> Result<Vec<Arc<DataFile>>, TableError> {
    match at.checked_sub(1) {
        None => Ok(Vec::new()),
        Some(version) => {
            let snapshot = log.version(version).await?;
            present(log, snapshot.files().to_vec(), at).await
        }
    }
}

/// The commits of the sequences `after < sequence <= upto`.
async fn commits(log: &DeltaLog, after: Sequence, upto: Sequence) -> Result<Vec<Arc<LogCommit>>, TableError> {
    let newest = log.newest().sequence();
    if upto > newest && upto > log.refresh().await?.sequence() {
        return Err(log.stale(upto).await);
    }
    let mut commits = Vec::new();
    // The commit of the sequence s is the version s - 1.
    for version in after..upto {
        match log.commit(version).await? {
            Some(commit) => commits.push(commit),
            None => return Err(log.stale(after).await),
        }
    }
    Ok(commits)
}

/// The files, when all of them can be read. What the table no longer has may have been deleted for good, and the log
/// may not say how large it is.
async fn present(
    log: &DeltaLog,
    files: Vec<Arc<DataFile>>,
    asked: Sequence,
) -> Result<Vec<Arc<DataFile>>, TableError> {
    let newest = log.newest();
    let active: HashSet<&str> = newest.files().iter().map(|file| file.path()).collect();
    let (there, doubtful): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| active.contains(file.path()));
    let store = log.object_store();
    let found: Vec<Option<Arc<DataFile>>> =
        stream::iter(doubtful).map(|file| look_for(&store, file)).buffered(AT_ONCE).try_collect().await?;
    let mut files = there;
    for file in found {
        match file {
            Some(file) => files.push(file),
            None => return Err(TableError::Stale { region: REGION, asked, oldest: newest.sequence() }),
        }
    }
    Ok(files)
}

async fn look_for(
    store: &Arc<dyn ObjectStore>,
    file: Arc<DataFile>,
) -> Result<Option<Arc<DataFile>>, TableError> {
    match store.head(file.location()).await {
        Ok(meta) => Ok(Some(Arc::new(file.found(&meta)))),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(TableError::storage(format!("the file {}", file.path()), error)),
    }
}

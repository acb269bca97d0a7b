//! What the commits of a range of sequences did.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use windrow_state::{Sequence, SequenceRange};
use windrow_table::{Changes, InOneWindow, TableError};
use windrow_time::InstantRange;

use crate::file::DataFile;
use crate::log::DeltaLog;
use crate::reader::Reader;
use crate::snapshot::LogCommit;

/// How many files are asked for at once.
const AT_ONCE: usize = 8;

/// The time index of what the commits in the range changed.
pub(crate) async fn changes(
    log: &DeltaLog,
    reader: &Reader,
    range: &SequenceRange,
    in_one_window: InOneWindow<'_>,
) -> Result<Changes, TableError> {
    let (after, upto) = bounds(log, range)?;
    let touched = Touched { log, reader, after, in_one_window };
    if after == 0 {
        let (appended, appended_rows) = touched.rows(snapshot_files(log, upto).await?).await?;
        return Ok(Changes { appended, appended_rows, rewritten: Vec::new() });
    }
    let (mut new_files, mut rewritten) = (Vec::new(), Vec::new());
    for commit in commits(log, after, upto).await? {
        match commit.is_append() {
            true => new_files.extend(commit.data_added().cloned()),
            false => rewritten.extend(touched.by_rewrite(&commit).await?),
        }
    }
    let (appended, appended_rows) = touched.rows(touched.present(new_files).await?).await?;
    Ok(Changes { appended, appended_rows, rewritten })
}

/// What finds the instants that commits touched.
struct Touched<'a> {
    log: &'a DeltaLog,
    reader: &'a Reader,
    /// What was asked for.
    after: Sequence,
    in_one_window: InOneWindow<'a>,
}

impl Touched<'_> {
    async fn present(&self, files: Vec<Arc<DataFile>>) -> Result<Vec<Arc<DataFile>>, TableError> {
        present(self.log, files, self.after).await
    }

    /// The time index of the rows of the files, and how many these are. Where statistics say as much, files are not read.
    async fn rows(&self, files: Vec<Arc<DataFile>>) -> Result<(Vec<ArrayRef>, u64), TableError> {
        let Some(index) = self.reader.spec().time_index() else { return Ok((Vec::new(), 0)) };
        let time_index = self.reader.spec().schema().field(index);
        let (mut ends, mut rows, mut unknown) = (Vec::new(), 0, Vec::new());
        for file in files {
            match self.ends(&file) {
                Some((first, last, count)) => {
                    ends.extend([first, last]);
                    rows += count;
                }
                None => unknown.push(file),
            }
        }
        let mut instants = self.reader.instants(&self.reader.rows_of(unknown).await?).await?;
        rows += instants.iter().map(|array| array.len() as u64).sum::<u64>();
        if !ends.is_empty() {
            instants.push(cast(&Int64Array::from(ends), time_index.data_type())?);
        }
        Ok((instants, rows))
    }

    /// The earliest and the latest instant of a file, if they are in one window, which it then has a row in.
    fn ends(&self, file: &DataFile) -> Option<(i64, i64, u64)> {
        let rows = file.rows().filter(|rows| *rows > 0)?;
        if let Some(instant) = self.reader.partition_instant(file) {
            return Some((instant, instant, rows));
        }
        let span = file.span?;
        let range = InstantRange::new(span.first, span.last.checked_add(1)?);
        (span.nulls < rows && (self.in_one_window)(range)).then_some((span.first, span.last, rows))
    }

    /// The time index of the rows that a commit removed, added or changed.
    async fn by_rewrite(&self, commit: &LogCommit) -> Result<Vec<ArrayRef>, TableError> {
        if !commit.change_feed().is_empty() {
            return Ok(self.rows(self.present(commit.change_feed().to_vec()).await?).await?.0);
        }
        let mut added: HashMap<&str, &Arc<DataFile>> =
            commit.data_added().map(|file| (file.path(), file)).collect();
        let (mut removed, mut instants) = (Vec::new(), Vec::new());
        for before in commit.data_removed() {
            match added.remove(before.path()) {
                None => removed.push(Arc::clone(before)),
                // The same file, with another deletion vector.
                Some(now) => {
                    let files = self.present(vec![Arc::clone(before), Arc::clone(now)]).await?;
                    let rows = self.reader.difference(&files[0], &files[1]).await?;
                    instants.extend(self.reader.instants(&[rows]).await?);
                }
            }
        }
        let kept: Vec<_> = commit.kept().cloned().collect();
        let mut whole: Vec<_> = added.into_values().cloned().collect();
        if kept.is_empty() {
            whole.extend(removed);
        } else {
            instants.extend(self.difference(removed, kept).await?);
        }
        instants.extend(self.rows(self.present(whole).await?).await?.0);
        Ok(instants)
    }

    /// The time index of the rows that only one of the two has.
    async fn difference(
        &self,
        removed: Vec<Arc<DataFile>>,
        kept: Vec<Arc<DataFile>>,
    ) -> Result<Option<ArrayRef>, TableError> {
        let Some(index) = self.reader.spec().time_index() else { return Ok(None) };
        // By instant, how many more rows one has.
        let mut balance: HashMap<Option<i64>, i64> = HashMap::new();
        for (files, by) in [(removed, 1), (kept, -1)] {
            let rows = self.reader.rows_of(self.present(files).await?).await?;
            for array in self.reader.instants(&rows).await? {
                for instant in cast(&array, &DataType::Int64)?.as_primitive::<Int64Type>() {
                    *balance.entry(instant).or_default() += by;
                }
            }
        }
        let touched = balance.into_iter().filter(|(_, count)| *count != 0).map(|(instant, _)| instant);
        let touched: Int64Array = touched.collect();
        Ok(Some(cast(&touched, self.reader.spec().schema().field(index).data_type())?))
    }
}

fn bounds(log: &DeltaLog, range: &SequenceRange) -> Result<(Sequence, Sequence), TableError> {
    let newest = log.newest();
    Ok((newest.sequence_at(&range.after)?, newest.sequence_at(&range.upto)?))
}

/// The files that the commits in the range, all of them appends, added.
pub(crate) async fn appended_files(
    log: &DeltaLog,
    range: &SequenceRange,
) -> Result<Vec<Arc<DataFile>>, TableError> {
    let (after, upto) = bounds(log, range)?;
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
    let active: HashSet<_> = newest.files().iter().map(|file| file.key()).collect();
    let store = log.object_store();
    let look = async |file: Arc<DataFile>| match active.contains(&file.key()) {
        true => Ok(Some(file)),
        false => look_for(&store, file).await,
    };
    let found: Vec<Option<Arc<DataFile>>> =
        stream::iter(files).map(look).buffered(AT_ONCE).try_collect().await?;
    let found: Option<Vec<_>> = found.into_iter().collect();
    found.ok_or_else(|| TableError::Stale { region: newest.region(), asked, oldest: newest.sequence() })
}

async fn look_for(
    store: &Arc<dyn ObjectStore>,
    file: Arc<DataFile>,
) -> Result<Option<Arc<DataFile>>, TableError> {
    let head = async |location: &Path| match store.head(location).await {
        Ok(meta) => Ok(Some(meta)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(TableError::storage(format!("the file {location}"), error)),
    };
    if let Some(location) = file.deletions.as_ref().and_then(|deletions| deletions.location())
        && head(&location).await?.is_none()
    {
        return Ok(None);
    }
    Ok(head(file.location()).await?.map(|meta| Arc::new(file.found(&meta))))
}

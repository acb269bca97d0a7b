//! A flow's progress, committed with the rows it speaks of.
//!
//! A Delta commit can carry a number for an application (a `txn` action), but no text. So the progress itself is in
//! a file of its own, written before the commit, and the number names the file:
//!
//! - the `txn` has the id `windrow/<flow>` and the number `target << 24 | random`, where `target` is the version
//!   that the commit is going to be;
//! - the file is `_windrow/progress/<flow>/<number>.json`, put there only if there is none of that name. (A folder
//!   whose name begins with `_` is left alone by tools that clean up Delta tables.)
//!
//! Since a name is given once, the number in the log names exactly the bytes that its writer wrote: of two writers
//! that race for a version, one commits, and the file of the other is never named. Since a commit is made at its
//! target version or not at all, the number also says which commit carried it. And since versions are taken once,
//! every file whose target is not after the table's version, and that the log does not name, is garbage for sure.

use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use windrow_state::{Progress, Sequence, Watermarks};
use windrow_table::{CommittedProgress, TableError};

use crate::log::DeltaLog;
use crate::snapshot::{fnv, sequence_of};

/// Bits of a number that tell the writers of one version apart.
const RANDOM_BITS: u32 = 24;
/// How many names are tried before giving up; that even the second is needed is a matter of millions of writers.
const TRIES: usize = 8;
/// In how many versions old files are looked for once.
const SWEEP_EVERY: u64 = 8;
/// How many files of a flow are kept, for readers that have just read an older version of the log.
const KEPT: usize = 4;

/// What is in a file.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    flow: String,
    sequence: Sequence,
    progress: Progress,
}

/// The id of a flow's `txn` actions.
pub(crate) fn app_id(flow: &str) -> String {
    format!("windrow/{flow}")
}

/// The progress that the newest commit says is a flow's.
pub(crate) async fn read(log: &DeltaLog, flow: &str) -> Result<Option<CommittedProgress>, TableError> {
    let store = log.object_store();
    let mut tries = 0;
    loop {
        let snapshot = log.refresh().await?;
        let Some(number) = log.txn(&snapshot, &app_id(flow)).await? else { return Ok(None) };
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
            TableError::storage(format!("the progress of the flow {flow}"), error)
        };
        let bytes = match store.get(&path(flow, number)).await {
            Ok(file) => file.bytes().await,
            Err(error) => Err(error),
        };
        match bytes {
            Ok(bytes) => {
                let record: Record = serde_json::from_slice(&bytes).map_err(|error| failed(error.into()))?;
                let sequence = sequence_of(target_of(number));
                if record.flow != flow || record.sequence != sequence {
                    return Err(failed("its file is that of another commit".into()));
                }
                let at = Watermarks::of(snapshot.region(), sequence);
                return Ok(Some(CommittedProgress { progress: record.progress, at }));
            }
            // Later commits may have made it superfluous since the log was read.
            Err(object_store::Error::NotFound { .. }) if tries < TRIES => tries += 1,
            Err(error) => return Err(failed(error.into())),
        }
    }
}

/// Writes the progress for a commit that is going to be the version `target`. The number is what its `txn` has to
/// have.
pub(crate) async fn write(
    store: &dyn ObjectStore,
    flow: &str,
    progress: &Progress,
    target: u64,
) -> Result<i64, TableError> {
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        TableError::storage(format!("the progress of the flow {flow}"), error)
    };
    let record = Record { flow: flow.to_owned(), sequence: sequence_of(target), progress: progress.clone() };
    let text = serde_json::to_vec(&record).map_err(|error| failed(error.into()))?;
    for _ in 0..TRIES {
        let number = number_of(target).ok_or_else(|| failed("the table has too many versions".into()))?;
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        match store.put_opts(&path(flow, number), text.clone().into(), options).await {
            Ok(_) => return Ok(number),
            Err(object_store::Error::AlreadyExists { .. }) => {}
            Err(error) => return Err(failed(error.into())),
        }
    }
    Err(failed("every name that was tried is taken".into()))
}

/// Deletes the file of a commit that was not made.
pub(crate) async fn discard(store: &dyn ObjectStore, flow: &str, number: i64) {
    if let Err(error) = store.delete(&path(flow, number)).await {
        tracing::debug!(%error, flow, "a progress file that is not needed was not deleted");
    }
}

/// Whether it is time to look for old files, with the commit of `number` after that of `before` (`None` if that is not
/// known).
pub(crate) fn sweep_is_due(before: Option<i64>, number: i64) -> bool {
    before.is_none_or(|before| target_of(before) / SWEEP_EVERY != target_of(number) / SWEEP_EVERY)
}

/// Deletes the files that came before the current one, but for the last few.
pub(crate) async fn sweep(store: &dyn ObjectStore, flow: &str, current: i64) {
    let swept = async {
        let folder = folder(flow);
        let entries: Vec<Path> =
            store.list(Some(&folder)).map_ok(|entry| entry.location).try_collect().await?;
        let mut older: Vec<(i64, Path)> = entries
            .into_iter()
            .filter_map(|path| Some((path.filename()?.strip_suffix(".json")?.parse().ok()?, path)))
            .filter(|(number, _)| target_of(*number) < target_of(current))
            .collect();
        older.sort_unstable();
        older.truncate((older.len() + 1).saturating_sub(KEPT));
        for (_, path) in older {
            store.delete(&path).await?;
        }
        Ok::<_, object_store::Error>(())
    };
    if let Err(error) = swept.await {
        tracing::debug!(%error, flow, "old progress files were not deleted");
    }
}

fn number_of(target: u64) -> Option<i64> {
    let random = Uuid::new_v4().as_u128() as u64 & ((1 << RANDOM_BITS) - 1);
    if target >> (i64::BITS - 1 - RANDOM_BITS) != 0 {
        return None;
    }
    i64::try_from((target << RANDOM_BITS) | random).ok()
}

const fn target_of(number: i64) -> u64 {
    number as u64 >> RANDOM_BITS
}

fn path(flow: &str, number: i64) -> Path {
    folder(flow).join(format!("{number}.json"))
}

fn folder(flow: &str) -> Path {
    Path::from_iter(["_windrow", "progress", &folder_name(flow)])
}

/// A name for the folder of a flow that any storage takes as it is, also one that does not tell `A` from `a`.
fn folder_name(flow: &str) -> String {
    const LONGEST: usize = 160;
    let mut name = String::new();
    for byte in flow.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => name.push(char::from(byte)),
            _ => name.push_str(&format!("={byte:02x}")),
        }
    }
    if name.len() > LONGEST {
        // A name says which flow a file is of only together with what is in it.
        name.truncate(LONGEST);
        name.push_str(&format!("={:016x}", fnv(flow.as_bytes())));
    }
    name
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;

    use super::*;

    #[test]
    fn a_number_says_which_version_it_is_of() {
        for target in [0, 1, 77, (1 << 39) - 1] {
            assert_eq!(target_of(number_of(target).unwrap()), target);
        }
        assert_eq!(number_of(1 << 39), None);
        assert_ne!(number_of(5), number_of(5));
    }

    #[test]
    fn names_of_folders_are_plain_and_differ() {
        assert_eq!(folder_name("hourly-2_a"), "hourly-2_a");
        assert_eq!(folder_name("A b/é"), "=41=20b=2f=c3=a9");
        assert_ne!(folder_name("a"), folder_name("A"));
        let (one, two) = (folder_name(&"x".repeat(500)), folder_name(&"x".repeat(501)));
        assert!(one != two && one.len() < 200);
    }

    #[tokio::test]
    async fn only_older_files_are_swept() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let mut numbers = Vec::new();
        for target in 1..=10 {
            numbers.push(write(store.as_ref(), "f", &Progress::start(), target).await.unwrap());
        }
        let of_another = write(store.as_ref(), "g", &Progress::start(), 1).await.unwrap();
        sweep(store.as_ref(), "f", numbers[7]).await;
        for (index, number) in numbers.iter().enumerate() {
            let there = store.head(&path("f", *number)).await.is_ok();
            assert_eq!(there, index >= 4, "file {index}");
        }
        assert!(store.head(&path("g", of_another)).await.is_ok());
    }
}

//! Deleting what no version has that anybody may still ask for.
//!
//! - Files that were removed longer ago than `delta.deletedFileRetentionDuration` says, a week if the table does not say.
//! - Files that no version has, left behind by writers that were interrupted, once they are a day old (or as old as
//!   that, if it is more): a younger one may be about to be committed.
//! - Entries of the log before its newest checkpoint that are older than `delta.logRetentionDuration`.
//!
//! What a reader that is known ([`Holds`]) has not got to yet stays, however old it is.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, PoisonError};

use chrono::{TimeDelta, Utc};
use deltalake_core::DeltaTable;
use deltalake_core::checkpoints::cleanup_expired_logs_for;
use deltalake_core::operations::vacuum::VacuumMode;
use deltalake_core::table::config::TablePropertiesExt;
use object_store::ObjectStoreExt;
use object_store::path::Path;
use windrow_state::{Sequence, Watermarks};
use windrow_table::TableError;

use crate::log::DeltaLog;
use crate::snapshot::Snapshot;

/// How old a file that no version has must be.
const ABANDONED: TimeDelta = TimeDelta::days(1);

/// Whoever is further behind has everything kept: what exactly, would take long to find out.
const MOST_HELD: u64 = 1_000;

/// After which sequence readers are going to read.
#[derive(Debug, Default)]
pub(crate) struct Holds(Mutex<HashMap<String, Watermarks>>);

impl Holds {
    pub(crate) fn set(&self, reader: &str, after: Option<&Watermarks>) {
        let mut holds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match after {
            Some(after) => holds.insert(reader.to_owned(), after.clone()),
            None => holds.remove(reader),
        };
    }

    /// The first sequence that somebody may still ask for, of a table that is at `newest`.
    fn oldest(&self, newest: &Snapshot) -> Sequence {
        let holds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Who is at another table will start over, with the newest version.
        let held = holds.values().filter_map(|after| newest.sequence_at(after).ok());
        held.min().map_or(newest.sequence(), |held| held.min(newest.sequence()))
    }
}

/// What is to be deleted.
#[derive(Debug)]
pub(crate) struct Plan {
    files: Vec<Path>,
    /// Entries of the log before this version.
    log_before: u64,
    /// … and before this time, in milliseconds.
    log_until: i64,
}

/// Finds what can be deleted as of a version that is loaded. The log's next checkpoint forgets when files were removed, so
/// that this has to come before it.
pub(crate) async fn plan(
    log: &DeltaLog,
    table: &DeltaTable,
    snapshot: &Snapshot,
    holds: &Holds,
) -> Result<Plan, TableError> {
    let failed = |error| TableError::storage("what the Delta table no longer needs", error);
    let state = table.snapshot().map_err(failed)?;
    let properties = state.table_config();
    let retention = |duration: std::time::Duration| TimeDelta::from_std(duration).unwrap_or(TimeDelta::MAX);
    let removed_for = retention(properties.deleted_file_retention_duration());
    let log_for = retention(properties.log_retention_duration());
    let oldest = holds.oldest(snapshot);
    if snapshot.sequence() - oldest > MOST_HELD {
        return Ok(Plan { files: Vec::new(), log_before: 0, log_until: 0 });
    }
    let kept = needed_since(log, snapshot, oldest).await?;

    let removed = table.clone().vacuum().with_dry_run(true).with_mode(VacuumMode::Lite);
    let (_, removed) = removed.await.map_err(failed)?;
    let abandoned = table
        .clone()
        .vacuum()
        .with_dry_run(true)
        .with_mode(VacuumMode::Full)
        .with_enforce_retention_duration(false)
        .with_retention_period(removed_for.max(ABANDONED));
    let (_, abandoned) = abandoned.await.map_err(failed)?;
    let files: HashSet<String> = removed.files_deleted.into_iter().chain(abandoned.files_deleted).collect();
    let files = files.iter().map(|file| Path::parse(file).unwrap_or_else(|_| Path::from(file.as_str())));
    Ok(Plan {
        files: files.filter(|file| is_ours(file) && !kept.contains(file)).collect(),
        log_before: oldest.saturating_sub(1),
        log_until: Utc::now().checked_sub_signed(log_for).map_or(0, |until| until.timestamp_millis()),
    })
}

/// The files that the versions since a sequence have, or had: what they have all of, and what their commits removed.
async fn needed_since(
    log: &DeltaLog,
    newest: &Snapshot,
    oldest: Sequence,
) -> Result<HashSet<Path>, TableError> {
    let mut needed: HashSet<Path> = newest.files().iter().flat_map(|file| file.locations()).collect();
    for version in oldest..newest.sequence() {
        // What the log no longer has cannot be asked for.
        if let Some(commit) = log.commit(version).await? {
            needed.extend(commit.files().flat_map(|file| file.locations()));
        }
    }
    Ok(needed)
}

/// Whether a file can be one of a table, rather than something that somebody put there.
fn is_ours(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "parquet" || extension == "bin")
}

/// Deletes what was planned. The answer is the number of data files.
pub(crate) async fn carry_out(log: &DeltaLog, plan: Plan) -> Result<u64, TableError> {
    let failed = |error: Box<dyn std::error::Error + Send + Sync>| {
        TableError::storage("deleting what the Delta table no longer needs", error)
    };
    let store = log.object_store();
    let mut deleted = 0;
    for file in plan.files {
        match store.delete(&file).await {
            Ok(()) => deleted += 1,
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(failed(error.into())),
        }
    }
    cleanup_expired_logs_for(plan.log_before, log.store().as_ref(), plan.log_until, None)
        .await
        .map_err(|error| failed(error.into()))?;
    Ok(deleted)
}

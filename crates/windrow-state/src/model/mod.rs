//! Every interleaving of a flow with its source, its executor and its sink, as far as small numbers go.
//!
//! The model drives the real [`FlowState`] and [`Notifications`](crate::Notifications) through a world of one source with two
//! regions and three windows. What can happen in it, in any order: appends and deletes; notifications that are delayed and
//! reordered; answers that are lost, late, stale or partial, that prove nothing, or prove another snapshot; crashes that leave
//! only what is committed; a manual flush; expiry; a source that forgets old snapshots and what changed since.
//!
//! In every state that can be reached:
//!
//! - for every window that is not expired and not in the committed `D`, the sink holds exactly what the source has up to the
//!   committed `C`: no commit too few, and none twice. So no mark is lost, and the checkpoint is never beyond what the sink
//!   holds;
//! - while nothing is under way, the flow's own idea of its progress is the committed one;
//! - what was pending under a fence and what came after it are each in `D` or after `C`: if nothing more happens, the flow comes
//!   to rest within [`REFRESHES`] refreshes, with `D` empty, `C` at the end of the source and every window right. That a flush
//!   which was asked for is then done follows.
//!
//! What is left out: a sink that stores rows and progress apart, and an executor that still writes after its flow has given it
//! up. Nothing can tell such a write from a new one; those sinks need an executor that is known to have stopped.

mod event;
mod explore;
mod world;

use expect_test::expect;

use self::event::Step;
use self::explore::{Explored, explore};
use self::world::{Setup, Source};
use crate::SinkCommits;
use crate::flow::Fault;

/// At most so many refreshes from any state to rest: a chunk for each window that is pending under a fence that is gone, and
/// one for each at a new one, and a merge of what came meanwhile.
const REFRESHES: usize = 8;

/// Commits to two regions, in windows that overlap.
const SCRIPTS: [&[Step]; 4] = [
    // Only appends, to windows that the others touch too.
    &[(0, true, 0b001), (0, true, 0b101), (1, true, 0b010)],
    // A delete after an append to the same window, and one to a region that is new by then.
    &[(0, true, 0b011), (1, true, 0b001), (0, false, 0b001)],
    // The same window three times.
    &[(0, true, 0b010), (1, true, 0b010), (0, true, 0b010)],
    // Much to repair at first.
    &[(0, true, 0b111), (0, true, 0b100), (1, false, 0b100)],
];

/// A few, for sources whose notifications arrive in any order: that alone multiplies the states.
const SHORT_SCRIPTS: [&[Step]; 3] = [
    &[(0, true, 0b011), (0, true, 0b011)],
    &[(0, true, 0b101), (0, false, 0b100)],
    &[(0, true, 0b010), (1, true, 0b110)],
];

const DEEP_SCRIPTS: [&[Step]; 3] = [
    &[(0, true, 0b001), (1, true, 0b101), (0, true, 0b011), (1, true, 0b110)],
    &[(0, true, 0b111), (1, true, 0b001), (0, false, 0b011), (0, true, 0b001)],
    &[(1, true, 0b010), (0, true, 0b110), (1, false, 0b010), (0, false, 0b100)],
];

fn setups(source: Source, scripts: &[&'static [Step]]) -> Vec<Setup> {
    let mut setups = Vec::new();
    for &script in scripts {
        for sink in [SinkCommits::RowsWithProgress, SinkCommits::RowsAndProgressApart] {
            for merges in [true, false] {
                setups.push(Setup { source, sink, merges, script, fault: None });
            }
        }
    }
    setups
}

/// How many states there are.
fn explore_all(setups: &[Setup]) -> usize {
    let mut visited = 0;
    for &setup in setups {
        let Explored { states, depth, refreshes, labels } =
            explore(setup).unwrap_or_else(|violation| panic!("{violation}"));
        println!(
            "{setup}: {states} states, {depth} events deep, at rest after at most {refreshes} refreshes"
        );
        println!("  {}", labels.into_iter().collect::<Vec<_>>().join(", "));
        visited += states;
    }
    println!("{visited} states in all");
    visited
}

#[test]
fn every_reachable_state_is_true_with_a_source_that_tells_what_changed() {
    let visited = explore_all(&setups(Source::TellsChanges, &SCRIPTS));
    assert!(visited >= 1_000_000, "{visited} states are not enough to speak of");
}

#[test]
fn every_reachable_state_is_true_with_a_source_that_only_notifies() {
    let visited = explore_all(&setups(Source::Notifies, &SHORT_SCRIPTS));
    assert!(visited >= 100_000, "{visited} states are not enough to speak of");
}

/// `cargo xtask model --deep`
#[test]
#[ignore = "many minutes of work, and gigabytes of memory"]
fn every_reachable_state_is_true_far_down() {
    explore_all(&setups(Source::Notifies, &SCRIPTS));
    explore_all(&setups(Source::TellsChanges, &DEEP_SCRIPTS));
}

/// The shortest way to a violation that a fault makes possible.
fn shortest(fault: Fault, source: Source, script: &'static [Step]) -> String {
    let faulty = setups(source, &[script]).into_iter().map(|setup| Setup { fault: Some(fault), ..setup });
    let violation =
        faulty.filter_map(|setup| explore(setup).err()).min_by_key(|violation| violation.trace.len());
    violation.unwrap_or_else(|| panic!("{fault:?} is not found")).to_string()
}

#[test]
fn progress_that_is_committed_before_its_proof_is_found() {
    expect![[r#"
        a source that tells what changed, a sink that commits rows and progress apart, a query that merges, 2 commits:
          1. rows of window 0 and 1 are appended to region 0
          2. a refresh begins (scoped_base_repair)
             window 0 has commit 1 0 times instead of 1, with checkpoint (0:1) and dirty windows ([1, 3))"#]].assert_eq(&shortest(Fault::AdvanceBeforeProof, Source::TellsChanges, SHORT_SCRIPTS[0]));
}

#[test]
fn a_chunk_that_is_taken_before_its_commit_is_found() {
    expect![[r#"
        a source that tells what changed, a sink that commits rows and progress apart, a query that merges, 2 commits:
          1. rows of window 0 and 1 are appended to region 0
          2. a refresh begins (scoped_base_repair)
          3. the executor reads and writes what it was asked to
             window 0 has commit 1 1 times instead of 0, with checkpoint () and dirty windows ([1, 3))"#]].assert_eq(&shortest(Fault::TakeChunkBeforeCommit, Source::TellsChanges, SHORT_SCRIPTS[0]));
}

#[test]
fn a_chunk_that_was_read_below_its_fence_and_is_trusted_is_found() {
    expect![[r#"
        a source that tells what changed, a sink that commits rows and progress apart, a query that merges, 2 commits:
          1. rows of window 0 and 1 are appended to region 0
          2. rows of window 0 and 1 are appended to region 0
          3. a refresh begins (scoped_base_repair)
          4. the executor reads and writes what it was asked to
          5. the answer arrives (full_snapshot continue_repair dirty_backlog_pending)
          6. a refresh begins (fenced_repair_chunk)
          7. the executor reads an older snapshot, and says so
             left to itself, window 1 has commit 2 0 times instead of 1, with checkpoint (0:2) and dirty windows ()"#]].assert_eq(&shortest(Fault::TrustChunkBelowFence, Source::TellsChanges, SHORT_SCRIPTS[0]));
}

#[test]
fn a_late_notification_that_a_checkpoint_has_overtaken_is_found() {
    // The third commit is heard of before the second.
    const SCRIPT: &[Step] = &[(0, true, 0b001), (0, true, 0b010), (0, true, 0b100)];
    expect![[r#"
        a source that only notifies, a sink that commits rows with progress, a query that merges, 3 commits:
          1. rows of window 0 are appended to region 0
          2. rows of window 1 are appended to region 0
          3. rows of window 2 are appended to region 0
          4. the notification of commit 1 arrives
          5. window 0 expires
          6. a refresh begins (scoped_base_repair)
          7. the notification of commit 3 arrives
          8. the flow gives the query up
          9. a refresh begins (scoped_base_repair)
         10. the query that was given up commits
         11. the answer arrives (full_snapshot fallback query_failure)
         12. a refresh begins (scoped_base_repair)
             left to itself, window 1 has commit 2 0 times instead of 1, with checkpoint (0:3) and dirty windows ()"#]].assert_eq(&shortest(Fault::IgnoreSequenceOfNotification, Source::Notifies, SCRIPT));
}

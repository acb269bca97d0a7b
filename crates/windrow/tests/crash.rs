//! A process that is killed again and again, at random moments and at every named place of a commit, loses nothing, does
//! nothing twice, and goes on where it was.
//!
//! The killed process is this test binary, run again for [`child`]. `WINDROW_CRASH_KILLS` sets how often it is killed;
//! `cargo xtask crash --kills N` sets that.
#![cfg(all(feature = "delta", feature = "crash-points", unix))]

mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{assert_exact, number, run};
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};
use windrow::Engine;

/// Where a commit can be cut off.
const PLACES: &[&str] = &[
    "delta::new-files-are-written",
    "delta::kept-rows-are-written",
    "delta::progress-is-written",
    "delta::log-entry-is-to-be-written",
    "delta::log-entry-is-there",
    "delta::old-progress-is-to-be-deleted",
    "delta::checkpoint-is-to-be-written",
    "delta::old-files-are-to-be-deleted",
];

/// Where a change of the catalog can be.
const CATALOG_PLACES: &[&str] = &["catalog::new-one-is-written", "catalog::new-one-is-there"];

const PIPELINE: &str = "
    CREATE TABLE IF NOT EXISTS src (ts TIMESTAMP(3) TIME INDEX, host STRING, v BIGINT, batch BIGINT)
      WITH ('append_mode' = 'true', 'retention' = '1 ms');
    CREATE FLOW IF NOT EXISTS minutes SINK TO minutes WITH ('sink_retention' = '1 ms') AS
      SELECT date_bin(INTERVAL '1 minute', ts) AS minute, host, count(*) AS n, sum(v) AS total, avg(v) AS mean,
        count(DISTINCT v) AS kinds FROM src GROUP BY 1, 2;
    CREATE FLOW IF NOT EXISTS hours SINK TO hours WITH ('sink_retention' = '1 ms') AS
      SELECT date_bin(INTERVAL '1 hour', minute) AS hour, sum(n) AS n, sum(total) AS total FROM minutes GROUP BY 1;
    CREATE FLOW IF NOT EXISTS days SINK TO days WITH ('refresh' = 'recompute') AS
      SELECT date_trunc('day', ts) AS day, host, max(v) AS highest, median(v) AS middle FROM src GROUP BY 1, 2;
    CREATE FLOW IF NOT EXISTS chosen SINK TO chosen AS SELECT ts, host, v FROM src WHERE v > 90;";

const FLOWS: &[&str] = &["minutes", "hours", "days", "chosen"];

const ROWS: i64 = 40;

/// Row `row` of a batch: its instant, host and value. Every third is late.
fn row(batch: i64, row: i64) -> (i64, String, i64) {
    let late = if row % 3 == 0 { (batch * 13 + row * 7) % 600 } else { 0 };
    let minute = batch * 9 + row % 10 - late;
    (1_700_000_000_000 + minute * 60_000 + row, format!("h{}", row % 4), (batch * 31 + row * 17) % 101)
}

fn insert(batch: i64) -> String {
    let mut sql = String::from("INSERT INTO src VALUES ");
    for index in 0..ROWS {
        let (ts, host, v) = row(batch, index);
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(sql, "{comma}({ts}, '{host}', {v}, {batch})");
    }
    sql
}

/// What follows a batch; doing it again changes nothing.
fn afterwards(batch: i64) -> Option<String> {
    match batch % 10 {
        5 => Some(format!("DELETE FROM src WHERE batch = {} AND v % 2 = 0", batch - 4)),
        8 => Some("ADMIN COMPACT_TABLE('src')".to_owned()),
        9 => Some("ADMIN COMPACT_TABLE('minutes')".to_owned()),
        _ => None,
    }
}

/// The rows of the source once the batches up to `last` are done.
fn expected(last: i64) -> (i64, i64) {
    let deleted = |batch: i64| batch % 10 == 1 && batch + 4 <= last;
    let rows = (0..=last).flat_map(|batch| (0..ROWS).map(move |index| (batch, row(batch, index).2)));
    let values = rows.filter(|(batch, v)| !(deleted(*batch) && v % 2 == 0)).map(|(_, v)| v);
    values.fold((0, 0), |(count, sum), v| (count + 1, sum + v))
}

async fn last_batch(engine: &Engine) -> i64 {
    number(engine, "SELECT coalesce(max(batch), -1) FROM src").await
}

/// Goes on with the pipeline: first with what is left of the step that was cut off, then step by step.
#[test]
#[ignore = "run by the tests of this file, which kill it"]
fn child() {
    let Ok(dir) = std::env::var("WINDROW_CRASH_DIR") else { return };
    if let Ok(place) = std::env::var("WINDROW_CRASH_AT") {
        let (name, actions) = place.split_once('=').expect("a place");
        fail::cfg(name, actions).expect("a known action");
    }
    let steps: i64 = std::env::var("WINDROW_CRASH_STEPS").expect("steps").parse().expect("a number");
    let mut log =
        File::options().create(true).append(true).open(Path::new(&dir).join("refreshes")).expect("the log");
    log.write_all(b"start\n").expect("a line");
    let catching_up = Arc::new(AtomicBool::new(true));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let engine = Engine::open(Path::new(&dir).join("data")).await.expect("the directory opens");
        run(&engine, PIPELINE).await;
        let phase = Arc::clone(&catching_up);
        let log = std::sync::Mutex::new(log.try_clone().expect("the log"));
        engine.on_refresh(Arc::new(move |result| {
            let report = result.as_ref().expect("a refresh");
            let phase = if phase.load(Ordering::Relaxed) { "first" } else { "later" };
            let line = format!("{phase} {} {} {}\n", report.flow, report.kind, report.rows_read);
            log.lock().expect("no panic").write_all(line.as_bytes()).expect("a line");
        }));
        let mut next = last_batch(&engine).await;
        if let Some(sql) = afterwards(next).filter(|_| next >= 0) {
            run(&engine, &sql).await;
        }
        for _ in 0..=steps {
            engine.refresh_until_idle().await.expect("refreshes");
            catching_up.store(false, Ordering::Relaxed);
            if steps == 0 {
                break;
            }
            next += 1;
            run(&engine, &insert(next)).await;
            if let Some(sql) = afterwards(next) {
                run(&engine, &sql).await;
            }
        }
    });
    log.flush().expect("the log");
}

fn start(dir: &Path, steps: i64, place: Option<&str>) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "child", "--ignored", "--nocapture"]).stdout(Stdio::null());
    let errors = File::create(dir.join("errors")).expect("a file");
    command.env("WINDROW_CRASH_DIR", dir).env("WINDROW_CRASH_STEPS", steps.to_string()).stderr(errors);
    if let Some(place) = place {
        command.env("WINDROW_CRASH_AT", place);
    }
    command.spawn().expect("the child starts")
}

/// Panics if the child failed rather than was killed.
fn check_end(status: ExitStatus, dir: &Path) {
    let killed = [Some(9), Some(6)].contains(&status.signal());
    assert!(
        status.success() || killed,
        "{status}: {}",
        fs::read_to_string(dir.join("errors")).unwrap_or_default()
    );
}

fn finish(child: Child, dir: &Path) -> ExitStatus {
    let mut child = child;
    let status = child.wait().expect("the child ends");
    check_end(status, dir);
    status
}

/// Every sink equals its query, and the source has each batch once.
fn check_all(dir: &Path) {
    check_end(finish(start(dir, 0, None), dir), dir);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let engine = Engine::open(dir.join("data")).await.expect("the directory opens");
        let last = last_batch(&engine).await;
        println!("{last} batches are in the source");
        let found = (
            number(&engine, "SELECT count(*) FROM src").await,
            number(&engine, "SELECT sum(v) FROM src").await,
        );
        assert_eq!(found, expected(last), "after batch {last}");
        let reports = engine.refresh_until_idle().await.expect("refreshes");
        assert!(reports.is_empty(), "everything was done: {reports:?}");
        for flow in FLOWS {
            assert_exact(&engine, flow, "at the end").await;
        }
    });
}

fn kills() -> u64 {
    std::env::var("WINDROW_CRASH_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(100)
}

#[test]
fn a_process_that_is_killed_at_any_moment_goes_on_where_it_was() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    // How long the machine takes to start it says how long to wait.
    let begun = Instant::now();
    finish(start(dir.path(), 2, None), dir.path());
    let life = begun.elapsed().as_micros() as u64;
    for _ in 0..kills() {
        let mut child = start(dir.path(), i64::MAX / 2, None);
        std::thread::sleep(Duration::from_micros(random.next_u64() % (life * 3)));
        child.kill().expect("it is killed");
        finish(child, dir.path());
    }
    check_all(dir.path());
    check_reads(dir.path());
}

/// What a process reads before its first step is what the one before it left undone: no more than what a refresh reads that
/// was not interrupted.
fn check_reads(dir: &Path) {
    let lines = fs::read_to_string(dir.join("refreshes")).expect("the log");
    // By flow: the most that a process has read for it before its first step, and the most that one refresh has read.
    let (mut again, mut usual) = (BTreeMap::<&str, u64>::new(), BTreeMap::<&str, u64>::new());
    let mut refreshes = 0;
    for process in lines.split("start\n") {
        let mut first = BTreeMap::<&str, u64>::new();
        for line in process.lines() {
            let [phase, flow, _, read] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let read: u64 = read.parse().expect("a number");
            refreshes += 1;
            match phase {
                "first" => *first.entry(flow).or_default() += read,
                _ => {
                    let most = usual.entry(flow).or_default();
                    *most = read.max(*most);
                }
            }
        }
        for (flow, read) in first {
            let most = again.entry(flow).or_default();
            *most = read.max(*most);
        }
    }
    println!(
        "{refreshes} refreshes; rows read after a restart {again:?}, and by a refresh otherwise {usual:?}"
    );
    assert!(refreshes > kills(), "the processes live long enough to do something");
    for (flow, read) in again {
        // A flow that is always recomputed reads more as the source grows.
        assert!(
            read <= 2 * usual[flow],
            "{flow} has read {read} rows after a restart, and {} otherwise",
            usual[flow]
        );
    }
}

#[test]
fn a_process_that_ends_at_any_place_of_a_commit_goes_on_where_it_was() {
    let dir = tempfile::tempdir().expect("a directory");
    for (number, place) in PLACES.iter().enumerate() {
        for skipped in [0, 1, 4] {
            let place = format!("{place}={}*off->return", skipped + number);
            let status = finish(start(dir.path(), 400, Some(&place)), dir.path());
            assert_eq!(status.signal(), Some(6), "{place} was reached");
            // Which come once in a hundred commits.
            if place.contains("checkpoint") || place.contains("old-files") {
                break;
            }
        }
    }
    check_all(dir.path());
}

#[test]
fn a_process_that_ends_while_the_catalog_is_changed_has_the_old_or_the_new_one() {
    for place in CATALOG_PLACES {
        let dir = tempfile::tempdir().expect("a directory");
        for skipped in [0, 0, 1, 0, 1] {
            let place = format!("{place}={skipped}*off->return");
            finish(start(dir.path(), 1, Some(&place)), dir.path());
        }
        finish(start(dir.path(), 3, None), dir.path());
        check_all(dir.path());
    }
}

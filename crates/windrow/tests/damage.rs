//! A data directory that something happened to: a clear error, no further damage, and all is well once it is undone.
#![cfg(feature = "delta")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{assert_exact, fails, number, run};
use windrow::Engine;

const PIPELINE: &str = "
    CREATE TABLE src (ts TIMESTAMP(3) TIME INDEX, v BIGINT) WITH ('append_mode' = 'true');
    CREATE FLOW f SINK TO sink AS SELECT date_trunc('day', ts) AS day, sum(v) AS v, avg(v) AS mean FROM src GROUP BY 1;
    INSERT INTO src VALUES (0, 1), (1, 2), (86400000, 3)";

/// The files of this ending under the table.
fn files(dir: &Path, table: &str, ending: &str) -> Vec<PathBuf> {
    let tables = fs::read_dir(dir.join("tables")).expect("the tables");
    let folder = tables
        .map(|entry| entry.expect("an entry").path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(table)))
        .expect("the table");
    let (files, log) =
        (fs::read_dir(&folder).expect("files"), fs::read_dir(folder.join("_delta_log")).expect("a log"));
    let mut found: Vec<PathBuf> = files
        .chain(log)
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().ends_with(ending))
        .collect();
    found.sort();
    found
}

async fn filled(dir: &Path) -> Engine {
    let engine = Engine::open(dir).await.expect("an engine");
    run(&engine, PIPELINE).await;
    engine.refresh_until_idle().await.expect("refreshes");
    engine
}

/// What opening the directory and refreshing its flows fails with.
async fn failure(dir: &Path) -> String {
    match Engine::open(dir).await {
        Err(error) => error.to_string(),
        Ok(engine) => {
            let error = engine.refresh_until_idle().await.expect_err("something is wrong");
            format!(
                "{error}: {}",
                std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default()
            )
        }
    }
}

async fn goes_on(dir: &Path, total: i64) {
    let engine = Engine::open(dir).await.expect("it opens again");
    run(&engine, "INSERT INTO src VALUES (5, 10)").await;
    engine.refresh_until_idle().await.expect("refreshes");
    assert_exact(&engine, "f", "after recovery").await;
    assert_eq!(number(&engine, "SELECT CAST(sum(v) AS BIGINT) FROM sink").await, total);
}

#[tokio::test]
async fn a_torn_log_entry_is_an_error_and_then_is_not() {
    for table in ["src", "sink"] {
        let dir = tempfile::tempdir().expect("a directory");
        drop(filled(dir.path()).await);
        let entry = files(dir.path(), table, ".json").pop().expect("a log entry");
        let whole = fs::read(&entry).expect("the entry");
        fs::write(&entry, &whole[..whole.len() / 2]).expect("half of it");
        let error = failure(dir.path()).await;
        assert!(error.contains("log") || error.contains("commit"), "{table}: {error}");
        fs::write(&entry, &whole).expect("all of it");
        goes_on(dir.path(), 16).await;
    }
}

#[tokio::test]
async fn a_missing_data_file_is_named_and_nothing_is_written_in_its_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let engine = filled(dir.path()).await;
    run(&engine, "DELETE FROM src WHERE v = 1").await;
    drop(engine);
    // What is left after the delete has to be read again for the day.
    let kept = files(dir.path(), "src", ".parquet");
    let away: Vec<_> =
        kept.iter().map(|file| (file.clone(), dir.path().join(file.file_name().expect("a name")))).collect();
    for (file, elsewhere) in &away {
        fs::rename(file, elsewhere).expect("it is moved");
    }
    let error = failure(dir.path()).await;
    let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(kept.iter().any(|file| error.contains(&name(file))) || error.contains("no longer"), "{error}");
    for (file, elsewhere) in &away {
        fs::rename(elsewhere, file).expect("it is moved back");
    }
    goes_on(dir.path(), 15).await;
}

#[tokio::test]
async fn a_catalog_of_a_newer_version_is_refused() {
    let dir = tempfile::tempdir().expect("a directory");
    drop(filled(dir.path()).await);
    let catalog = dir.path().join("catalog.json");
    let text = fs::read_to_string(&catalog).expect("the catalog");
    fs::write(&catalog, text.replacen("\"version\": 1", "\"version\": 99", 1)).expect("a newer one");
    let error = failure(dir.path()).await;
    assert!(error.contains("version 99"), "{error}");
    fs::write(&catalog, r#"{"version": 2, "tables": {"are": "elsewhere"}}"#).expect("another one");
    let error = failure(dir.path()).await;
    assert!(error.contains("version 2"), "{error}");
    fs::write(&catalog, text).expect("the old one");
    goes_on(dir.path(), 16).await;
}

#[tokio::test]
async fn what_the_catalog_cannot_be_told_is_not_done() {
    let dir = tempfile::tempdir().expect("a directory");
    let engine = filled(dir.path()).await;
    run(&engine, "CREATE TABLE spare (ts TIMESTAMP TIME INDEX); INSERT INTO spare VALUES (1)").await;
    let in_the_way = dir.path().join("catalog.json.new");
    fs::create_dir(&in_the_way).expect("a folder");
    for statement in [
        "DROP TABLE spare",
        "DROP FLOW f",
        "CREATE TABLE other (ts TIMESTAMP TIME INDEX)",
        "CREATE FLOW g SINK TO g AS SELECT date_bin(INTERVAL '1 day', ts) AS day FROM spare GROUP BY day",
    ] {
        let error = fails(&engine, statement).await;
        assert!(error.contains("catalog.json"), "{statement}: {error}");
    }
    let there = async |engine: &Engine| {
        assert_eq!(number(engine, "SELECT count(*) FROM spare").await, 1);
        let tables = "SELECT count(*) FROM information_schema.tables WHERE table_name IN ('other', 'g')";
        assert_eq!(number(engine, tables).await, 0);
        assert_exact(engine, "f", "which was not dropped").await;
    };
    there(&engine).await;
    fs::remove_dir(&in_the_way).expect("it goes away");
    drop(engine);
    let engine = Engine::open(dir.path()).await.expect("it opens again");
    there(&engine).await;
    run(&engine, "DROP TABLE spare").await;
    fails(&engine, "SELECT * FROM spare").await;
}

#[tokio::test]
async fn a_table_gets_no_second_name() {
    let dir = tempfile::tempdir().expect("a directory");
    let engine = filled(dir.path()).await;
    let sink = folder(dir.path(), "sink");
    let mut names = vec![sink.display().to_string(), format!("file://{}/", sink.display())];
    #[cfg(unix)]
    {
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&sink, &link).expect("a link");
        names.push(link.display().to_string());
    }
    for name in names {
        let error =
            fails(&engine, &format!("CREATE EXTERNAL TABLE again STORED AS DELTA LOCATION '{name}'")).await;
        assert!(error.contains("is the table sink"), "{error}");
    }
    // Another engine may follow it.
    let other = Engine::in_memory();
    let location = sink.display();
    run(&other, &format!("CREATE EXTERNAL TABLE again STORED AS DELTA LOCATION '{location}'")).await;
    assert_eq!(
        number(&other, "SELECT count(*) FROM again").await,
        number(&engine, "SELECT count(*) FROM sink").await
    );
}

fn folder(dir: &Path, table: &str) -> PathBuf {
    files(dir, table, ".json")[0].parent().and_then(Path::parent).expect("a folder").to_owned()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let to = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).expect("a copy");
        }
    }
}

#[tokio::test]
async fn a_source_that_was_put_back_and_has_gone_on_since_is_read_anew() {
    let dir = tempfile::tempdir().expect("a directory");
    let (data, backup) = (dir.path().join("data"), dir.path().join("backup"));
    let engine = filled(&data).await;
    run(&engine, "CREATE FLOW rows SINK TO rows AS SELECT v FROM src WHERE v > 1").await;
    engine.refresh_until_idle().await.expect("refreshes");
    copy(&data, &backup);
    run(&engine, "INSERT INTO src VALUES (20, 20)").await;
    run(&engine, "INSERT INTO src VALUES (21, 21)").await;
    engine.refresh_until_idle().await.expect("refreshes");
    drop(engine);
    // Elsewhere, the backup goes on otherwise, and comes at least as far.
    let elsewhere = Engine::open(&backup).await.expect("an engine");
    for value in 30..34 {
        run(&elsewhere, &format!("INSERT INTO src VALUES ({value}, {value})")).await;
    }
    drop(elsewhere);
    fs::remove_dir_all(folder(&data, "src")).expect("it goes");
    copy(
        &folder(&backup, "src"),
        &data.join("tables").join(folder(&backup, "src").file_name().expect("a name")),
    );
    let engine = Engine::open(&data).await.expect("it opens again");
    engine.refresh_until_idle().await.expect("refreshes");
    assert_exact(&engine, "f", "after the source went another way").await;
    assert_exact(&engine, "rows", "after the source went another way").await;
    assert_eq!(number(&engine, "SELECT CAST(sum(v) AS BIGINT) FROM sink").await, 132);
    run(&engine, "INSERT INTO src VALUES (5, 10)").await;
    let reports = engine.refresh_until_idle().await.expect("refreshes");
    assert!(reports.iter().all(|report| report.kind.as_str() == "merge"), "only once: {reports:?}");
    assert_exact(&engine, "f", "later").await;
}

#[tokio::test]
async fn a_table_that_is_put_back_from_a_backup_is_followed() {
    // While the engine runs, and while it does not.
    for (table, running) in [("src", true), ("sink", true), ("src", false), ("sink", false)] {
        let dir = tempfile::tempdir().expect("a directory");
        let engine = filled(dir.path()).await;
        run(&engine, "CREATE FLOW rows SINK TO rows AS SELECT ts, v FROM src WHERE v > 1").await;
        engine.refresh_until_idle().await.expect("refreshes");
        let path = folder(dir.path(), table);
        let backup = dir.path().join("backup");
        copy(&path, &backup);
        for value in 20..23 {
            run(&engine, &format!("INSERT INTO src VALUES ({value}, {value})")).await;
            engine.refresh_until_idle().await.expect("refreshes");
        }
        let still_running = Some(engine).filter(|_| running);
        fs::remove_dir_all(&path).expect("it goes");
        copy(&backup, &path);
        let engine = match still_running {
            Some(engine) => engine,
            None => Engine::open(dir.path()).await.expect("it opens again"),
        };
        engine.refresh_until_idle().await.expect("refreshes");
        for sql in ["INSERT INTO src VALUES (30, 300)", "DELETE FROM src WHERE v = 2"] {
            for flow in ["f", "rows"] {
                assert_exact(
                    &engine,
                    flow,
                    &format!("{table} was put back, running: {running}, before {sql}"),
                )
                .await;
            }
            run(&engine, sql).await;
            engine.refresh_until_idle().await.expect("refreshes");
        }
        let total = if table == "src" { 304 } else { 367 };
        assert_eq!(number(&engine, "SELECT CAST(sum(v) AS BIGINT) FROM sink").await, total);
        assert_exact(&engine, "f", "at the end").await;
        assert_exact(&engine, "rows", "at the end").await;
    }
}

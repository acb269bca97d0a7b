//! A disk that takes no more, and directories that cannot be written: a clear error, no damage, and all goes on once the
//! cause is gone.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PIPELINE: &str = "
    CREATE TABLE src (ts TIMESTAMP(3) TIME INDEX, v BIGINT) WITH ('append_mode' = 'true');
    CREATE FLOW daily SINK TO daily AS SELECT date_trunc('day', ts) AS day, count(*) AS n, sum(v) AS total FROM src GROUP BY 1;
    CREATE FLOW chosen SINK TO chosen AS SELECT ts, v FROM src WHERE v % 3 <> 0;
    INSERT INTO src VALUES (0, 1), (1, 2), (86400000, 3);";

/// More than a file of 64 kilobytes can have: values that are hard to compress.
const MANY: &str = "INSERT INTO src SELECT arrow_cast(value * 1000, 'Timestamp(Millisecond, None)'), \
    (value * 7919 * 7919) % 1000003 FROM generate_series(1, 100000)";

struct Fixture {
    dir: tempfile::TempDir,
    windrow: PathBuf,
    /// An ordinary user, if this one is not.
    user: Option<u32>,
}

impl Fixture {
    /// A filled data directory, of an ordinary user: the superuser can write everywhere.
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let windrow = dir.path().join("windrow");
        fs::copy(env!("CARGO_BIN_EXE_windrow"), &windrow).expect("the program");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
        let user = (fs::metadata(dir.path()).expect("the directory").uid() == 0).then_some(65_534);
        let fixture = Self { dir, windrow, user };
        fs::create_dir(fixture.data()).expect("a directory");
        fixture.own(&fixture.data());
        fixture.succeeds(PIPELINE);
        fixture
    }

    fn own(&self, path: &Path) {
        chown(path, self.user, self.user).expect("the user is another one");
    }

    fn data(&self) -> PathBuf {
        self.dir.path().join("data")
    }

    /// The folder of a table.
    fn table(&self, name: &str) -> PathBuf {
        let tables = fs::read_dir(self.data().join("tables")).expect("the tables");
        let mut paths = tables.map(|entry| entry.expect("an entry").path());
        let is = |path: &PathBuf| {
            path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&format!("{name}-")))
        };
        paths.find(is).expect("the table")
    }

    fn command(&self, before: &str, sql: &str) -> Output {
        let script = format!("{before} exec \"$0\" sql --data-dir \"$1\" --output csv -c \"$2\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).arg(&self.windrow).arg(self.data()).arg(sql).env_remove("WINDROW_LOG");
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command.output().expect("the program runs")
    }

    fn succeeds(&self, sql: &str) -> String {
        let output = self.command("", sql);
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The error of what fails, with this before it.
    fn fails(&self, before: &str, sql: &str) -> String {
        let output = self.command(before, sql);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{sql}: {error}");
        assert!(!error.contains("panicked"), "{error}");
        error
    }

    fn check(&self, rows: &str) {
        let found =
            self.succeeds("ADMIN CHECK_FLOW('daily'); ADMIN CHECK_FLOW('chosen'); SELECT count(*) FROM src");
        assert!(found.trim_end().ends_with(&format!("\n{rows}")), "{found}");
    }
}

#[test]
fn a_disk_that_takes_no_more() {
    let fixture = Fixture::new();
    // A write beyond 64 kilobytes of a file fails.
    let full = "trap '' XFSZ; ulimit -f 128;";
    let error = fixture.fails(full, MANY);
    assert!(error.contains("writing the file") && error.contains("large"), "{error}");
    fixture.check("3");
    let left = |table: &str| {
        let files = fs::read_dir(fixture.table(table)).expect("the table");
        files.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_file())).count()
    };
    assert_eq!(left("src"), 1, "what was written in part is gone");

    // The source has the rows, and the flow has no space for its own.
    let script = fixture.dir.path().join("many.sql");
    fs::write(&script, MANY).expect("a script");
    let mut command = Command::new(&fixture.windrow);
    command.args(["run", "--manual", "--data-dir"]).arg(fixture.data()).arg(&script);
    if let Some(user) = fixture.user {
        command.uid(user).gid(user);
    }
    // (Opening the directory refreshes, so that a full disk has to be met by the next process.)
    assert!(command.output().expect("it runs").status.success());
    let error = fixture.fails(full, "SELECT 1");
    assert!(error.contains("chosen") && error.contains("large"), "{error}");
    fixture.check("100003");
}

#[test]
fn directories_that_cannot_be_written() {
    let fixture = Fixture::new();
    let set = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
    };
    let insert = "INSERT INTO src VALUES (5, 10)";
    // The whole: not even the lock can be made by someone who has no right to.
    let lock = fixture.data().join("lock");
    set(&lock, 0o444);
    let error = fixture.fails("", insert);
    assert!(error.contains("lock") && error.contains("denied"), "{error}");
    set(&lock, 0o644);
    fixture.check("3");

    // A sink: the row is in the source, and the flow follows when it can. (The second time it has not, and is first to try.)
    for folder in [fixture.table("daily"), fixture.table("daily").join("_delta_log")] {
        set(&folder, 0o555);
        let error = fixture.fails("", insert);
        assert!(error.contains("daily") && error.contains("denied"), "{error}");
        set(&folder, 0o755);
    }
    fixture.check("4");

    // The source: the statement fails, and nothing else.
    let source = fixture.table("src");
    set(&source, 0o555);
    let error = fixture.fails("", insert);
    assert!(error.contains("writing the file") && error.contains("denied"), "{error}");
    set(&source, 0o755);
    fixture.check("4");

    // The catalog.
    set(&fixture.data(), 0o555);
    let error = fixture.fails("", "CREATE TABLE other (v BIGINT)");
    assert!(error.contains("catalog") && error.contains("denied"), "{error}");
    set(&fixture.data(), 0o755);
    assert_eq!(fixture.succeeds("SHOW TABLES").lines().filter(|line| line.contains("other")).count(), 0);
    fixture.succeeds("CREATE TABLE other (v BIGINT)");
    fixture.check("4");
}

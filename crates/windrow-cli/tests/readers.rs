//! Other programs write the source and read the sinks: delta-rs' Python package and DuckDB, in a virtual environment that
//! the test makes.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What is installed from PyPI.
const PACKAGES: &[&str] = &["deltalake==1.6.6", "duckdb==2.0.1", "pyarrow"];

/// A Python with the packages; made once for a build directory.
fn python() -> PathBuf {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readers");
    let python = environment.join("bin/python");
    let complete = environment.join(PACKAGES.join(" "));
    if !complete.exists() {
        let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment).status();
        assert!(made.is_ok_and(|status| status.success()), "python3 with venv is needed");
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES);
        assert!(install.status().is_ok_and(|status| status.success()), "PyPI is needed");
        std::fs::write(complete, "").expect("the environment is ours");
    }
    python
}

#[test]
fn other_writers_are_followed_and_other_readers_find_what_they_compute() {
    let dir = tempfile::tempdir().expect("a directory");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers/pipeline.py");
    let output = Command::new(python())
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_windrow"))
        .arg(dir.path())
        .output()
        .expect("Python runs");
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{errors}");
    assert_eq!(out.lines().filter(|line| line.ends_with(": equal")).count(), 15, "{out}");
}

//! Python for tests: virtual environments with packages from PyPI, and scripts that check for themselves.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A Python with the packages; made once for a build directory.
fn environment(name: &str, packages: &[&str]) -> PathBuf {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let python = environment.join("bin/python");
    let complete = environment.join(packages.join(" "));
    if !complete.exists() {
        let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment).status();
        assert!(made.is_ok_and(|status| status.success()), "python3 with venv is needed");
        let mut install = Command::new(&python);
        install.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(packages);
        assert!(install.status().is_ok_and(|status| status.success()), "PyPI is needed");
        std::fs::write(complete, "").expect("the environment is ours");
    }
    python
}

/// Runs a script of `tests/readers` with the program and a new directory as its first arguments. The answer is how many
/// of its lines end with `: equal`, which it says after each of its checks.
pub(crate) fn checks(name: &str, packages: &[&str], script: &str, more: &[&str]) -> usize {
    let dir = tempfile::tempdir().expect("a directory");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers").join(script);
    let output = Command::new(environment(name, packages))
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_windrow"))
        .arg(dir.path())
        .args(more)
        .output()
        .expect("Python runs");
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{errors}");
    out.lines().filter(|line| line.ends_with(": equal")).count()
}

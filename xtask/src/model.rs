//! `cargo xtask model`: the exhaustive search of the states of a refresh, with what it has visited.

use crate::cargo::Cargo;
use crate::error::{Error, Result};

/// Optimised, as the search is nearly all of it; `--deep` adds what takes many minutes.
pub(crate) fn run(args: &[String]) -> Result {
    let deep = match args {
        [] => false,
        [deep] if deep == "--deep" => true,
        _ => return Err(Error::Usage("`model` takes no arguments but `--deep`".into())),
    };
    let tests =
        ["--release", "-p", "windrow-state", "--lib", "model::", "--", "--nocapture", "--test-threads=1"];
    Cargo::new("test").args(tests).args(deep.then_some("--include-ignored")).run()
}

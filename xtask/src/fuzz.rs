//! `cargo xtask fuzz`: the tests that make up their cases, with more of them and other ones each time.

use crate::cargo::Cargo;
use crate::error::{Error, Result};

const USAGE: &str = "`fuzz` takes the name of a test (plans), and how many cases: `--cases N`";

/// Cases, unless their number is given.
const CASES: u32 = 10_000;

pub(crate) fn run(args: &[String]) -> Result {
    let usage = || Error::Usage(USAGE.into());
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let cases = match args.as_slice() {
        ["plans"] => CASES,
        ["plans", "--cases", cases] | ["--cases", cases, "plans"] => cases.parse().map_err(|_| usage())?,
        _ => return Err(usage()),
    };
    // The same build as that of `test`, which takes minutes to make.
    Cargo::new("test")
        .args(["--workspace", "--all-features", "--test", "random_plans"])
        .env("WINDROW_FUZZ_CASES", cases.to_string())
        .run()
}

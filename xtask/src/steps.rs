//! The steps of CI that are one cargo command each.

use crate::cargo::{Cargo, args_for_cargo, packages_in};
use crate::error::Result;
use crate::progress;

pub(crate) fn fmt(_: &[String]) -> Result {
    Cargo::new("fmt").args(["--all", "--check"]).run()
}

pub(crate) fn clippy(_: &[String]) -> Result {
    let everything = ["--workspace", "--all-targets", "--all-features"];
    let clippy = Cargo::new("clippy").args(everything).args(["--", "-D", "warnings"]);
    progress::compile(&clippy).map(drop)
}

pub(crate) fn doc(_: &[String]) -> Result {
    let doc = Cargo::new("doc")
        .args(["--workspace", "--no-deps", "--all-features"])
        .env("RUSTDOCFLAGS", "-D warnings");
    progress::compile(&doc).map(drop)
}

/// All tests. Without `--all-targets`, which would leave the doc tests out.
pub(crate) fn test(args: &[String]) -> Result {
    // In a log, build first: there cargo's output is filtered, while the tests' own output must pass untouched.
    if !progress::on_terminal() && can_build_first(args) {
        progress::compile(&cargo_test(&["--no-run"], args))?;
    }
    cargo_test(&[], args).run()
}

fn cargo_test(first: &[&str], args: &[String]) -> Cargo {
    // Cargo takes `--workspace -p CRATE` for the whole workspace.
    let scope = packages_in(args).is_empty().then_some("--workspace");
    Cargo::new("test")
        .args(first.iter().copied())
        .args(scope)
        .args(["--all-features"])
        .args(args.iter().cloned())
}

/// Whether `--no-run` may be added; with these cargo refuses it.
fn can_build_first(args: &[String]) -> bool {
    !args_for_cargo(args).any(|arg| ["--no-run", "--doc", "--help", "-h"].contains(&arg))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(args: &[&str]) -> String {
        cargo_test(&[], &strings(args)).line()
    }

    fn strings(args: &[&str]) -> Vec<String> {
        args.iter().map(|&arg| arg.to_owned()).collect()
    }

    #[test]
    fn all_tests_run_unless_a_package_is_named() {
        assert_eq!(line(&[]), "cargo test --workspace --all-features");
        assert_eq!(line(&["-p", "windrow-time"]), "cargo test --all-features -p windrow-time");
        assert_eq!(line(&["window", "--", "-p"]), "cargo test --workspace --all-features window -- -p");
    }

    #[test]
    fn doc_tests_cannot_be_built_first() {
        assert!(can_build_first(&strings(&["window", "--", "--nocapture"])));
        assert!(!can_build_first(&strings(&["--doc"])));
    }
}

//! Cargo as a child process, and what it knows of the workspace.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use cargo_metadata::{CargoOpt, Metadata, MetadataCommand};

use crate::error::{Error, Result};

/// The root of the workspace.
///
/// Cargo tells at run time; the path known at compile time can be another clone's when clones share a target
/// directory.
pub(crate) fn root() -> PathBuf {
    let manifest_dir = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest_dir.parent().map_or(manifest_dir.clone(), Path::to_path_buf)
}

/// A cargo command that has not run yet.
#[derive(Debug, Clone)]
pub(crate) struct Cargo {
    subcommand: &'static str,
    args: Vec<String>,
    envs: Vec<(&'static str, String)>,
}

impl Cargo {
    pub(crate) fn new(subcommand: &'static str) -> Self {
        Self { subcommand, args: Vec::new(), envs: Vec::new() }
    }

    #[must_use]
    pub(crate) fn args<I>(mut self, args: I) -> Self
    where
        I: IntoIterator<Item: Into<String>>,
    {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    #[must_use]
    pub(crate) fn env(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.envs.push((name, value.into()));
        self
    }

    /// The command as a person would type it.
    pub(crate) fn line(&self) -> String {
        let mut words = vec!["cargo", self.subcommand];
        words.extend(self.args.iter().map(String::as_str));
        words.join(" ")
    }

    /// The packages that the arguments choose; none stands for the whole workspace.
    pub(crate) fn packages(&self) -> Vec<&str> {
        packages_in(&self.args)
    }

    /// The process, with `first` before the other arguments (those may end in `-- …`).
    pub(crate) fn command(&self, first: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.current_dir(root()).arg(self.subcommand).args(first).args(&self.args);
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(is_left_by_cargo_run) {
                command.env_remove(name);
            }
        }
        // Substrait and Flight compile `.proto` files, and a fresh machine has no `protoc`. On a platform that
        // none is vendored for, their build scripts say what to install.
        if env::var_os("PROTOC").is_none()
            && let Ok(protoc) = protoc_bin_vendored::protoc_bin_path()
        {
            command.env("PROTOC", protoc);
        }
        command.envs(self.envs.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs to the end on the terminal of this process.
    pub(crate) fn run(&self) -> Result {
        let status = self.command(&[]).status().map_err(Error::io(format!("start `{}`", self.line())))?;
        self.check(status)
    }

    /// Turns a bad exit status into an error.
    pub(crate) fn check(&self, status: ExitStatus) -> Result {
        if status.success() { Ok(()) } else { Err(Error::Failed { line: self.line(), status }) }
    }
}

/// The values of `-p` and `--package` among arguments of cargo.
pub(crate) fn packages_in(args: &[String]) -> Vec<&str> {
    let mut packages = Vec::new();
    let mut args = args_for_cargo(args);
    while let Some(arg) = args.next() {
        match arg {
            "-p" | "--package" => packages.extend(args.next()),
            _ => packages.extend(arg.strip_prefix("--package=").or(arg.strip_prefix("-p"))),
        }
    }
    packages
}

/// The arguments that are cargo's own, and not those of the programs that it runs.
pub(crate) fn args_for_cargo(args: &[String]) -> impl Iterator<Item = &str> {
    args.iter().map(String::as_str).take_while(|arg| *arg != "--")
}

/// Which platforms' dependencies to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Platforms {
    /// What is compiled on this machine.
    Host,
    /// All that `Cargo.lock` holds.
    All,
}

/// The workspace with all features, as `cargo metadata` describes it.
pub(crate) fn metadata(platforms: Platforms) -> Result<Metadata> {
    let mut command = MetadataCommand::new();
    command
        .cargo_path(program())
        .current_dir(root())
        .features(CargoOpt::AllFeatures)
        // On a fresh machine this downloads every dependency: let cargo say so.
        .verbose(true);
    if platforms == Platforms::Host {
        command.other_options(["--filter-platform".to_owned(), "host-tuple".to_owned()]);
    }
    command.exec().map_err(Error::Metadata)
}

/// The cargo that started this program.
fn program() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from)
}

/// Whether a variable describes xtask, because `cargo run` set it.
///
/// Some build scripts (ring's, for one) run again when such a variable changes, so with them in the environment
/// `cargo xtask test` and `cargo test` would take turns in rebuilding half of the workspace.
fn is_left_by_cargo_run(name: &str) -> bool {
    ["CARGO_MANIFEST_", "CARGO_PKG_"].iter().any(|prefix| name.starts_with(prefix))
        || ["CARGO_BIN_NAME", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "OUT_DIR"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_where_the_workspace_manifest_is() {
        assert!(root().join("Cargo.toml").is_file());
        assert!(root().join("xtask").is_dir());
    }

    #[test]
    fn variables_of_the_user_are_passed_on_and_those_of_cargo_run_are_not() {
        for name in ["CARGO_PKG_NAME", "CARGO_MANIFEST_DIR", "CARGO_MANIFEST_PATH"] {
            assert!(is_left_by_cargo_run(name), "{name}");
        }
        for name in ["CARGO_TARGET_DIR", "CARGO_HOME", "RUSTFLAGS", "CARGO_TERM_COLOR"] {
            assert!(!is_left_by_cargo_run(name), "{name}");
        }
    }

    #[test]
    fn first_arguments_come_before_the_ones_for_the_tool() {
        let cargo = Cargo::new("clippy").args(["--workspace", "--", "-D", "warnings"]);
        let command = cargo.command(&["--message-format=json"]);
        let args: Vec<_> = command.get_args().collect();
        assert_eq!(args, ["clippy", "--message-format=json", "--workspace", "--", "-D", "warnings"]);
        assert_eq!(cargo.line(), "cargo clippy --workspace -- -D warnings");
    }

    #[test]
    fn packages_are_found_in_every_notation() {
        let cargo = Cargo::new("test").args(["-p", "a", "-pb", "--package", "c", "--package=d", "e"]);
        assert_eq!(cargo.packages(), ["a", "b", "c", "d"]);
        let cargo = Cargo::new("test").args(["--workspace", "--profile", "demo", "--", "-p", "a"]);
        assert!(cargo.packages().is_empty());
    }

    #[test]
    fn every_cargo_finds_a_protoc() {
        let command = Cargo::new("build").command(&[]);
        let set = command.get_envs().any(|(name, _)| name == "PROTOC");
        assert!(set || env::var_os("PROTOC").is_some());
    }
}

//! `cargo xtask demo`: from a fresh clone to a continuous aggregate on the screen.

use std::path::PathBuf;
use std::process::Command;
use std::thread;

use crate::cargo::{self, Cargo};
use crate::error::{Error, Result};
use crate::progress;

const SCRIPT: &str = "examples/flights.sql";

/// What the first build costs, roughly: DataFusion is most of it.
const FIRST_BUILD_CORE_MINUTES: usize = 9;

pub(crate) fn run(args: &[String]) -> Result {
    eprintln!("{}", announcement(cores()));
    let build = Cargo::new("build").args(["--profile", "demo", "-p", "windrow-cli"]);
    let program = progress::compile(&build)?
        .into_iter()
        .find(|path| path.file_stem().is_some_and(|stem| stem == "windrow"))
        .ok_or(Error::NoProgram)?;
    show(&program, args)
}

fn announcement(cores: usize) -> String {
    let minutes = FIRST_BUILD_CORE_MINUTES.div_ceil(cores);
    let (minute_s, core_s) = (plural(minutes), plural(cores));
    format!(
        "Building `windrow`, then running {SCRIPT} with it. The first build compiles DataFusion too: \
         about {minutes} minute{minute_s} on {cores} core{core_s}. Later ones take seconds."
    )
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Runs the example from the root of the workspace, where the paths in it start.
fn show(program: &PathBuf, args: &[String]) -> Result {
    eprintln!("     Running windrow run {SCRIPT} {}", args.join(" "));
    let mut windrow = Command::new(program);
    windrow.current_dir(cargo::root()).args(["run", SCRIPT]).args(args);
    replace_this_process(windrow)
}

/// Hands the terminal over, so that Ctrl-C reaches `windrow` alone and its exit code is the one that is seen.
#[cfg(unix)]
fn replace_this_process(mut windrow: Command) -> Result {
    use std::os::unix::process::CommandExt;

    Err(Error::io("start `windrow`")(windrow.exec()))
}

#[cfg(not(unix))]
fn replace_this_process(mut windrow: Command) -> Result {
    let status = windrow.status().map_err(Error::io("start `windrow`"))?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::Failed { line: format!("windrow run {SCRIPT}"), status })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announcement_estimates_by_the_number_of_cores() {
        assert!(announcement(2).contains("about 5 minutes on 2 cores"));
        assert!(announcement(64).contains("about 1 minute on 64 cores"));
        assert!(announcement(1).contains("about 9 minutes on 1 core."));
    }
}

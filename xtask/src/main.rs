//! Automation for the Windrow workspace, in Rust so that it is the same on every machine.
//!
//! `cargo xtask` lists the commands. Everything that CI does is one of them and runs by hand too.
//!
//! Invariant: this crate depends on no crate of the workspace, so that it builds in seconds and can look at
//! them even while they do not compile.

mod bench;
mod cargo;
mod ci;
mod crash;
mod demo;
mod error;
mod fuzz;
mod model;
mod progress;
mod steps;
mod tidy;

use std::env;
use std::process::ExitCode;

use error::{Error, Result};

/// One `cargo xtask` command.
struct Task {
    name: &'static str,
    /// How the help names the arguments that are passed on, if the command takes any.
    args: Option<&'static str>,
    help: &'static str,
    run: fn(&[String]) -> Result,
}

/// Every command: the dispatch and the help are both made from this table.
const TASKS: &[Task] = &[
    Task {
        name: "demo",
        args: Some("[windrow args…]"),
        help: "build the program and run examples/flights.sql with it",
        run: demo::run,
    },
    Task {
        name: "ci",
        args: None,
        help: "fmt, tidy, clippy, test and doc; stops at the first that fails",
        run: ci::run,
    },
    Task {
        name: "fmt",
        args: None,
        help: "check that the code is formatted (`cargo fmt --all` formats it)",
        run: steps::fmt,
    },
    Task {
        name: "tidy",
        args: None,
        help: "check layers, file sizes, manifests, licences, docs and sources",
        run: tidy::run,
    },
    Task { name: "clippy", args: None, help: "lint everything; a warning is an error", run: steps::clippy },
    Task {
        name: "test",
        args: Some("[cargo test args…]"),
        help: "run all tests, doc tests too (`-p CRATE`: only those of one crate)",
        run: steps::test,
    },
    Task {
        name: "bench",
        args: Some("[windows | merger]…"),
        help: "run the benches named, or all, and compare them with their targets",
        run: bench::run,
    },
    Task {
        name: "model",
        args: Some("[--deep]"),
        help: "search all states of a refresh, and say how many there are",
        run: model::run,
    },
    Task {
        name: "fuzz",
        args: Some("plans [--cases N]"),
        help: "random queries over random histories, against the plain query; prints a failing case as a script",
        run: fuzz::run,
    },
    Task {
        name: "crash",
        args: Some("[--kills N]"),
        help: "kill a process that keeps flows at random moments and at every place of a commit",
        run: crash::run,
    },
    Task {
        name: "doc",
        args: None,
        help: "build the API documentation; a warning is an error",
        run: steps::doc,
    },
];

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            error.exit_code()
        }
    }
}

fn dispatch(args: &[String]) -> Result {
    let Some((name, rest)) = args.split_first() else {
        print!("{}", help());
        return Ok(());
    };
    if ["help", "--help", "-h"].contains(&name.as_str()) {
        print!("{}", help());
        return Ok(());
    }
    let task = find(name, rest)?;
    (task.run)(rest)
}

fn find(name: &str, args: &[String]) -> Result<&'static Task> {
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        return Err(Error::Usage(format!("there is no command `{name}`\n\n{}", help())));
    };
    match (task.args, args) {
        (None, [unexpected, ..]) => {
            Err(Error::Usage(format!("`{name}` takes no arguments, but got `{unexpected}`")))
        }
        _ => Ok(task),
    }
}

fn help() -> String {
    let usages: Vec<String> = TASKS
        .iter()
        .map(|task| match task.args {
            Some(args) => format!("{} {args}", task.name),
            None => task.name.to_owned(),
        })
        .collect();
    let width = usages.iter().map(|u| u.chars().count()).max().unwrap_or(0);
    let mut text = String::from("Usage: cargo xtask COMMAND\n\nCommands:\n");
    for (usage, task) in usages.iter().zip(TASKS) {
        text += &format!("  {usage:width$}  {}\n", task.help);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_every_command() {
        let help = help();
        for task in TASKS {
            assert!(help.contains(&format!("\n  {}", task.name)), "{help}");
        }
    }

    #[test]
    fn unknown_command_is_a_usage_error_with_the_help() {
        let Err(error) = find("frobnicate", &[]) else {
            panic!("found a command that does not exist");
        };
        assert!(matches!(&error, Error::Usage(_)));
        assert!(error.to_string().contains("Commands:"));
    }

    #[test]
    fn arguments_are_refused_where_they_would_be_ignored() {
        let args = ["--fix".to_owned()];
        assert!(find("tidy", &args).is_err());
        assert!(find("test", &args).is_ok());
    }
}

//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Continuous aggregates on tables: exact, incremental, restartable.
#[derive(Debug, Parser)]
#[command(name = "windrow", version, about)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// The arguments of this process; wrong usage ends it with exit code 2.
    pub(crate) fn read() -> Self {
        Self::parse()
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the statements of a file, refreshing the flows after each one that changes rows.
    Run(RunArguments),
    /// Run statements from -c, from standard input, or from a prompt.
    Sql(SqlArguments),
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArguments {
    /// The file with the statements.
    pub(crate) file: PathBuf,
    /// Keep tables, flows and their progress in this directory, and go on from what is there; else all is in memory.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Make new tables in this folder, or under this URL of an object store, and not in the data directory.
    #[arg(long, value_name = "LOCATION", requires = "data_dir")]
    pub(crate) tables: Option<String>,
    /// End once every flow has nothing left to do (this is the default).
    #[arg(long, conflicts_with = "watch")]
    pub(crate) until_idle: bool,
    /// Afterwards, keep the flows fresh until Ctrl-C.
    #[arg(long)]
    pub(crate) watch: bool,
    /// Refresh flows only where the file says ADMIN FLUSH_FLOW('name').
    #[arg(long, conflicts_with = "watch")]
    pub(crate) manual: bool,
    /// How rows are printed; with csv and json, only rows go to standard output.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SqlArguments {
    /// The statements, separated by semicolons.
    #[arg(short, long, value_name = "SQL")]
    pub(crate) command: Option<String>,
    /// Keep tables, flows and their progress in this directory, and go on from what is there; else all is in memory.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// Make new tables in this folder, or under this URL of an object store, and not in the data directory.
    #[arg(long, value_name = "LOCATION", requires = "data_dir")]
    pub(crate) tables: Option<String>,
    /// How rows are printed; with csv and json, only rows go to standard output.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: Output,
}

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Output {
    /// A table for people.
    #[default]
    Table,
    /// Comma-separated values, with a header for each result.
    Csv,
    /// One JSON object a row.
    Json,
}

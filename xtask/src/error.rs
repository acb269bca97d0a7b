//! What can go wrong in a command.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

pub(crate) type Result<T = ()> = std::result::Result<T, Error>;

#[derive(Debug)]
pub(crate) enum Error {
    /// The command line makes no sense.
    Usage(String),
    /// A program could not be started, or a file could not be read.
    Io { what: String, source: io::Error },
    /// A program ran and reported a failure; it has said why on its own.
    Failed { line: String, status: ExitStatus },
    /// Cargo does not understand the workspace.
    Metadata(cargo_metadata::Error),
    /// A build succeeded without making the program that was asked for.
    NoProgram,
    /// A bench has left no median in this file.
    NoMedian(PathBuf),
    /// Tidy found this many violations.
    Untidy(usize),
    /// A step of ci failed.
    Step(&'static str),
}

impl Error {
    /// For use in `map_err`: `what` says what was being done.
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) => f.write_str(message.trim_end()),
            Self::Io { what, source } => write!(f, "could not {what}: {source}"),
            Self::Failed { line, status } => write!(f, "`{line}` failed ({status})"),
            Self::Metadata(source) => write!(f, "could not read the workspace: {source}"),
            Self::NoProgram => f.write_str("the build made no program `windrow`"),
            Self::NoMedian(file) => write!(f, "the bench has left no median in {}", file.display()),
            Self::Untidy(1) => f.write_str("tidy found 1 violation"),
            Self::Untidy(count) => write!(f, "tidy found {count} violations"),
            Self::Step(name) => write!(f, "the step `{name}` failed; run it alone with `cargo xtask {name}`"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Metadata(source) => Some(source),
            _ => None,
        }
    }
}

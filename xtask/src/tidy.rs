//! `cargo xtask tidy`: the rules of the house that no compiler checks.
//!
//! Each check is a function from a value to its findings: the value is read here, and a test makes one up. All
//! checks run and all violations are printed, so that one run is enough to mend everything.

mod docs;
mod files;
mod graph;
mod layers;
mod licences;
mod manifest;
mod manifests;
mod sizes;
mod sources;

use std::fmt;

use crate::cargo::{self, Platforms};
use crate::error::{Error, Result};
use files::SourceFile;
use graph::Graph;

pub(crate) fn run(_: &[String]) -> Result {
    let root = cargo::root();
    let graph = Graph::read(&cargo::metadata(Platforms::All)?);
    let files = files::read(&root)?;

    let findings: Vec<Finding> = [
        layers::check(&graph),
        licences::check(graph.external()),
        manifests::check(&files),
        sizes::check(&files),
        docs::check(&files, graph.members(), |path| root.join(path).exists()),
        sources::check(&files),
    ]
    .into_iter()
    .flatten()
    .collect();

    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.iter().filter(|finding| finding.is_violation()).count() {
        0 => Ok(()),
        count => Err(Error::Untidy(count)),
    }
}

/// Something that tidy has to say.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Finding {
    /// A broken rule.
    Violation(String),
    /// Not broken, but soon.
    Note(String),
}

impl Finding {
    fn violation(place: impl fmt::Display, what: impl fmt::Display) -> Self {
        Self::Violation(format!("{place}: {what}"))
    }

    fn note(place: impl fmt::Display, what: impl fmt::Display) -> Self {
        Self::Note(format!("{place}: {what}"))
    }

    /// A violation on one line of a file; `index` counts from zero.
    fn on_line(file: &SourceFile, index: usize, what: impl fmt::Display) -> Self {
        Self::violation(format_args!("{}:{}", file.path, index + 1), what)
    }

    fn is_violation(&self) -> bool {
        matches!(self, Self::Violation(_))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Violation(text) => write!(f, "violation  {text}"),
            Self::Note(text) => write!(f, "note       {text}"),
        }
    }
}

/// The texts of findings, for tests to compare.
#[cfg(test)]
fn texts(findings: Vec<Finding>) -> Vec<String> {
    findings.iter().map(Finding::to_string).collect()
}

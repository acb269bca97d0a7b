//! What can be wrong with a script, and where.

use std::fmt;

/// What is wrong with a statement.
///
/// The message begins with the line and the column in the script, and is a sentence without a full stop. The
/// statement itself is in [`SqlError::place`], for whoever wants to show it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The text does not divide into words: a string, a quoted name or a comment is not closed, or a
    /// character has no meaning. Nothing after it can be read.
    #[error("{place}: {message}")]
    Unreadable {
        /// What could not be read.
        message: String,
        /// Where it begins.
        place: Box<Place>,
    },
    /// Something else was expected.
    #[error("{place}: {message}")]
    Syntax {
        /// What was expected, and what was found.
        message: String,
        /// Where.
        place: Box<Place>,
    },
    /// The statement can be read, but contradicts itself or asks for what cannot be.
    #[error("{place}: {message}")]
    Invalid {
        /// What is wrong, and what to do.
        message: String,
        /// Where.
        place: Box<Place>,
    },
    /// The dialect does not have this.
    #[error("{place}: {message}")]
    NotSupported {
        /// What is not supported, and what is.
        message: String,
        /// Where.
        place: Box<Place>,
    },
}

impl SqlError {
    /// Where the error is.
    #[must_use]
    pub fn place(&self) -> &Place {
        match self {
            Self::Unreadable { place, .. }
            | Self::Syntax { place, .. }
            | Self::Invalid { place, .. }
            | Self::NotSupported { place, .. } => place,
        }
    }
}

/// A place in a script, and the statement that it is in.
///
/// Lines and columns count from 1; a column is a character, not a byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The line in the script.
    pub line: u64,
    /// The column in that line.
    pub column: u64,
    /// The line on which the statement begins: its first word, not the comments before it.
    pub statement_line: u64,
    /// The statement as it was written.
    pub statement: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

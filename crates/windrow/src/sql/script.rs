//! A script into pieces, one for each statement.
//!
//! The whole text is divided into tokens at once, since only that tells a `;` between statements from one
//! inside a string. Everything else waits until the statement is reached.

use std::iter;
use std::vec;

use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, TokenizerError};

use super::dialect::Bounded;
use super::error::{Place, SqlError};
use super::reader::Source;
use super::statement::Statement;
use super::{limits, parser};

/// A statement, and where it stands in the script.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceStatement {
    /// The line of its first word, from 1; comments before it are not part of it.
    pub line: u64,
    /// The statement as it was written, without the `;` and without comments around it.
    pub text: String,
    /// What it says.
    pub statement: Statement,
}

/// The statements of a script, each parsed when it is reached.
///
/// Statements are separated by `;`, which does not count inside strings, quoted names and comments. Empty
/// ones are skipped. A byte order mark at the start is ignored.
///
/// # Errors
///
/// A statement that cannot be parsed gives an error, and the iteration goes on with the next one; whoever
/// runs the script will stop there. Where the text itself cannot be read any further (a string that is not
/// closed, say), the statements before are given, then [`SqlError::Unreadable`], then nothing.
///
/// ```
/// use windrow::sql::{SqlError, statements};
///
/// let mut script = statements("SHOW TABLES; SHOW FLOWS LIKE 'a;b'; SELECT 'oops");
/// assert_eq!(script.next().unwrap()?.text, "SHOW TABLES");
/// assert_eq!(script.next().unwrap()?.text, "SHOW FLOWS LIKE 'a;b'");
/// assert!(matches!(script.next(), Some(Err(SqlError::Unreadable { .. }))));
/// assert!(script.next().is_none());
/// # Ok::<(), SqlError>(())
/// ```
pub fn statements(text: &str) -> impl Iterator<Item = Result<SourceStatement, SqlError>> {
    let mut pieces = Pieces::new(text);
    iter::from_fn(move || pieces.next()).map(|piece| piece.and_then(Piece::parse))
}

/// What stands between two `;`.
struct Piece<'a> {
    source: Source<'a>,
    tokens: Vec<TokenWithSpan>,
}

impl Piece<'_> {
    fn parse(self) -> Result<SourceStatement, SqlError> {
        let (line, text) = (self.source.start.line, self.source.text.to_owned());
        limits::check(&self.source, &self.tokens)?;
        let statement = parser::parse(self.source, self.tokens)?;
        Ok(SourceStatement { line, text, statement })
    }
}

struct Pieces<'a> {
    tokens: vec::IntoIter<TokenWithSpan>,
    /// Why the tokens end before the text does; taken when it was reported.
    failure: Option<TokenizerError>,
    cursor: Cursor<'a>,
}

impl<'a> Pieces<'a> {
    fn new(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut tokens = Vec::new();
        let failure =
            Tokenizer::new(&Bounded::new(0), text).tokenize_with_location_into_buf(&mut tokens).err();
        Self { tokens: tokens.into_iter(), failure, cursor: Cursor::new(text) }
    }

    fn next(&mut self) -> Option<Result<Piece<'a>, SqlError>> {
        loop {
            let mut tokens = Vec::new();
            let closed = loop {
                match self.tokens.next() {
                    Some(token) if token.token == Token::SemiColon => break true,
                    Some(token) => tokens.push(token),
                    None => break false,
                }
            };
            if !closed && let Some(failure) = self.failure.take() {
                return Some(Err(self.unreadable(&tokens, failure)));
            }
            match self.piece(tokens) {
                None if closed => {}
                piece => return piece.map(Ok),
            }
        }
    }

    /// The piece that the tokens make up, if there is more to them than white space and comments.
    fn piece(&mut self, mut tokens: Vec<TokenWithSpan>) -> Option<Piece<'a>> {
        let last = tokens.iter().rposition(is_word)?;
        tokens.truncate(last + 1);
        let first = tokens.iter().position(is_word).unwrap_or(last);
        let (start, end) = (tokens[first].span.start, tokens[last].span.end);
        let from = self.cursor.advance(start);
        let text = &self.cursor.text[from..self.cursor.advance(end)];
        Some(Piece { source: Source { text, start, end }, tokens })
    }

    /// The error of a script whose last statement begins with the tokens and then cannot be read.
    fn unreadable(&mut self, tokens: &[TokenWithSpan], failure: TokenizerError) -> SqlError {
        // The token that failed begins where the last one ends.
        let failed = tokens.last().map_or(self.cursor.at, |token| token.span.end);
        let start = tokens.iter().find(|token| is_word(token)).map_or(failed, |token| token.span.start);
        let from = self.cursor.advance(start);
        let rest = &self.cursor.text[self.cursor.advance(failed)..];
        let to = self.cursor.offset + rest.find('\n').unwrap_or(rest.len());
        let text = self.cursor.text[from..to].trim_end();
        SqlError::Unreadable {
            message: explain(&failure.message),
            place: Box::new(Place {
                line: failed.line,
                column: failed.column,
                statement_line: start.line,
                statement: text.to_owned(),
            }),
        }
    }
}

/// What the tokenizer's message means to whoever wrote the script.
fn explain(message: &str) -> String {
    let unclosed = |what: &str| format!("{what} begins here and is not closed");
    match message {
        "Unexpected EOF while in a multi-line comment" => unclosed("a comment"),
        _ if message.starts_with("Unterminated") => unclosed("a string"),
        _ if message.starts_with("Expected close delimiter") => unclosed("a quoted name"),
        _ => format!("this cannot be read: {}", message.trim_end_matches('.')),
    }
}

fn is_word(token: &TokenWithSpan) -> bool {
    !matches!(token.token, Token::Whitespace(_))
}

/// A place in a text, which only moves forward.
///
/// The tokenizer counts lines and characters; this turns them into bytes, in one pass over the text.
pub(super) struct Cursor<'a> {
    text: &'a str,
    offset: usize,
    at: Location,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Self::from(text, Location::new(1, 1))
    }

    /// A cursor at the start of a text that stands at a place of the script.
    pub(super) fn from(text: &'a str, at: Location) -> Self {
        Self { text, offset: 0, at }
    }

    /// Goes to a place and gives its offset in bytes; stays where it is if the place is behind.
    pub(super) fn advance(&mut self, to: Location) -> usize {
        for c in self.text[self.offset..].chars() {
            if self.at >= to {
                break;
            }
            self.offset += c.len_utf8();
            self.at = match c {
                '\n' => Location::new(self.at.line + 1, 1),
                _ => Location::new(self.at.line, self.at.column + 1),
            };
        }
        self.offset
    }
}

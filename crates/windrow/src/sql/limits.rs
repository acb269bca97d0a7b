//! What is refused before it is parsed, because the parser could exhaust the stack over it.
//!
//! The parser below this module bounds how deep expressions and queries are nested, but neither types, nor
//! intervals of intervals, nor how long a chain of operators becomes: `1 + 1 + … + 1` is a tree as deep as it
//! is long, and takes as much stack when it is dropped. So brackets and words are counted here first. The
//! limits are far above what anybody writes.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use super::error::SqlError;
use super::reader::Source;

/// How deep brackets, expressions and queries may be nested: DataFusion's own default.
pub(super) const MAX_DEPTH: usize = 50;

/// How deep types may be nested, or intervals of intervals.
const MAX_UNBOUNDED: usize = 8;

/// How many words may stand between two commas inside the same brackets. A tree takes two words for each
/// level, and one of a thousand levels can be cloned, compared and dropped on two megabytes of stack in a
/// release build.
const MAX_STRETCH: usize = 2000;

/// How many times `UNION`, `EXCEPT` and `INTERSECT` may stand inside the same brackets.
const MAX_SET_OPERATIONS: usize = 300;

/// Types that have types inside.
const NESTING_TYPES: &[Keyword] = &[
    Keyword::ARRAY,
    Keyword::LOWCARDINALITY,
    Keyword::MAP,
    Keyword::NESTED,
    Keyword::NULLABLE,
    Keyword::STRUCT,
    Keyword::TABLE,
    Keyword::TUPLE,
    Keyword::UNION,
];

/// Refuses a statement that passes a limit.
pub(super) fn check(source: &Source<'_>, tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    let (mut level, mut around) = (Level::default(), Vec::new());
    let mut before = Keyword::NoKeyword;
    for TokenWithSpan { token, span } in tokens {
        let word = match token {
            Token::Whitespace(_) => continue,
            Token::Word(word) => word.keyword,
            _ => Keyword::NoKeyword,
        };
        level.stretch += 1;
        level.intervals += usize::from(before == Keyword::INTERVAL && may_nest(token));
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                around.push(level);
                level = level.inside(before, false);
            }
            Token::Lt if matches!(before, Keyword::ARRAY | Keyword::STRUCT | Keyword::MAP) => {
                around.push(level);
                level = level.inside(before, true);
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                while level.angle {
                    level = around.pop().unwrap_or_default();
                }
                level = around.pop().unwrap_or(level);
            }
            Token::Gt if level.angle => level = around.pop().unwrap_or_default(),
            Token::ShiftRight if level.angle => {
                level = around.pop().unwrap_or_default();
                if level.angle {
                    level = around.pop().unwrap_or_default();
                }
            }
            Token::Comma => level = Level { stretch: 0, intervals: 0, ..level },
            _ => level.set_operations += usize::from(is_set_operation(word)),
        }
        if around.len() > MAX_DEPTH || level.unbounded + level.intervals > MAX_UNBOUNDED {
            return Err(too_deep(source, span.start));
        }
        if level.stretch > MAX_STRETCH || level.set_operations > MAX_SET_OPERATIONS {
            return Err(too_long(source, span.start));
        }
        before = word;
    }
    Ok(())
}

/// What is open at a place of the statement: the brackets around it, and what was read inside them.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    /// Whether it was opened by the `<` of a type.
    angle: bool,
    /// How many types and intervals are around.
    unbounded: usize,
    /// Words since the last comma.
    stretch: usize,
    /// Intervals since the last comma that could be of what follows.
    intervals: usize,
    /// Set operations, commas or not.
    set_operations: usize,
}

impl Level {
    /// The level inside brackets that come after a word.
    fn inside(self, word: Keyword, angle: bool) -> Self {
        let unbounded = self.unbounded + self.intervals + usize::from(NESTING_TYPES.contains(&word));
        Self { angle, unbounded, ..Self::default() }
    }
}

/// Whether an `INTERVAL` before the token may be of something that has another one inside.
fn may_nest(token: &Token) -> bool {
    !matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::Number(..)
            | Token::Comma
            | Token::RParen
            | Token::Eq
            | Token::Neq
            | Token::Lt
            | Token::LtEq
            | Token::Gt
            | Token::GtEq
    )
}

fn is_set_operation(word: Keyword) -> bool {
    matches!(word, Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS)
}

/// The error for what is nested deeper than the limits.
pub(super) fn too_deep(source: &Source<'_>, at: Location) -> SqlError {
    let message = "this is nested too deeply; divide it, with WITH for example".to_owned();
    SqlError::Invalid { message, place: source.place(at) }
}

fn too_long(source: &Source<'_>, at: Location) -> SqlError {
    let message =
        "this is too long for one expression; write lists with IN (…), or divide the statement".to_owned();
    SqlError::Invalid { message, place: source.place(at) }
}

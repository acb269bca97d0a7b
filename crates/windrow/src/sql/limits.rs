//! What is refused before it is parsed, because it could exhaust the stack.

use datafusion::sql::sqlparser::tokenizer::{Location, TokenWithSpan};

use super::error::SqlError;
use super::reader::Source;

/// How deep expressions and queries may be nested: DataFusion's own default.
pub(super) const MAX_DEPTH: usize = 50;

pub(super) fn check(_source: &Source<'_>, _tokens: &[TokenWithSpan]) -> Result<(), SqlError> {
    Ok(())
}

pub(super) fn too_deep(source: &Source<'_>, at: Location) -> SqlError {
    let message = format!("the statement is nested too deeply: more than {MAX_DEPTH} levels");
    SqlError::Invalid { message, place: source.place(at) }
}

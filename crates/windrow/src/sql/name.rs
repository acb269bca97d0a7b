//! Names of tables, and how a name or a string is written so that it is read back as it is.

use std::borrow::Cow;
use std::fmt;

use datafusion::common::TableReference;
use datafusion::sql::sqlparser::keywords::{
    Keyword, RESERVED_FOR_COLUMN_ALIAS, RESERVED_FOR_IDENTIFIER, RESERVED_FOR_TABLE_ALIAS,
};
use datafusion::sql::sqlparser::tokenizer::Token;

/// The name of a table: `table`, `schema.table` or `catalog.schema.table`.
///
/// An unquoted part was folded to lower case when it was read, as DataFusion does; a quoted part is as it was
/// written.
///
/// ```
/// use windrow::sql::TableName;
///
/// let name = TableName { catalog: None, schema: Some("public".into()), table: "Room 1".into() };
/// assert_eq!(name.to_string(), r#"public."Room 1""#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    /// The catalog; never there without a schema when the name was parsed.
    pub catalog: Option<String>,
    /// The schema.
    pub schema: Option<String>,
    /// The table itself.
    pub table: String,
}

impl TableName {
    /// A name of one part.
    pub fn bare(table: impl Into<String>) -> Self {
        Self { catalog: None, schema: None, table: table.into() }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [&self.catalog, &self.schema].into_iter().flatten() {
            write!(f, "{}.", quote_name(part))?;
        }
        f.write_str(&quote_name(&self.table))
    }
}

impl From<TableName> for TableReference {
    fn from(name: TableName) -> Self {
        match (name.catalog, name.schema) {
            (Some(catalog), Some(schema)) => Self::full(catalog, schema, name.table),
            (_, Some(schema)) => Self::partial(schema, name.table),
            (_, None) => Self::bare(name.table),
        }
    }
}

impl From<&TableName> for TableReference {
    fn from(name: &TableName) -> Self {
        name.clone().into()
    }
}

/// A name as it is written in SQL: in double quotes, unless it is plain.
///
/// Plain are lower-case ASCII letters, digits and `_`, not beginning with a digit, and not a reserved word.
///
/// ```
/// use windrow::sql::quote_name;
///
/// assert_eq!(quote_name("host"), "host");
/// assert_eq!(quote_name("Host"), r#""Host""#);
/// assert_eq!(quote_name("select"), r#""select""#);
/// assert_eq!(quote_name(r#"5" pipe"#), r#""5"" pipe""#);
/// ```
#[must_use]
pub fn quote_name(name: &str) -> Cow<'_, str> {
    if is_plain(name) && !is_reserved(name) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(format!("\"{}\"", name.replace('"', "\"\"")))
    }
}

/// A string as it is written in SQL: in single quotes, with those inside doubled.
#[must_use]
pub fn quote_string(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Words that are written in quotes when they are names: they could be taken for something else somewhere in
/// a query.
fn is_reserved(name: &str) -> bool {
    let Token::Word(word) = Token::make_word(name, None) else { return false };
    [
        RESERVED_FOR_TABLE_ALIAS,
        RESERVED_FOR_COLUMN_ALIAS,
        RESERVED_FOR_IDENTIFIER,
        RESERVED_HERE,
        NEVER_A_NAME,
    ]
    .iter()
    .any(|words| words.contains(&word.keyword))
}

/// Words that begin an expression, a constraint or a column option.
const RESERVED_HERE: &[Keyword] = &[
    Keyword::ALL,
    Keyword::ANY,
    Keyword::BETWEEN,
    Keyword::CASE,
    Keyword::CAST,
    Keyword::CHECK,
    Keyword::CONSTRAINT,
    Keyword::DEFAULT,
    Keyword::DISTINCT,
    Keyword::EXTRACT,
    Keyword::FALSE,
    Keyword::FOREIGN,
    Keyword::IN,
    Keyword::IS,
    Keyword::LIKE,
    Keyword::PRIMARY,
    Keyword::TRUE,
    Keyword::UNIQUE,
];

/// Words that are no names without quotes: where one of them stands, a name was forgotten.
const NEVER_A_NAME: &[Keyword] = &[
    Keyword::AND,
    Keyword::AS,
    Keyword::CREATE,
    Keyword::DELETE,
    Keyword::DROP,
    Keyword::FROM,
    Keyword::IF,
    Keyword::INSERT,
    Keyword::INTO,
    Keyword::NOT,
    Keyword::NULL,
    Keyword::OR,
    Keyword::SELECT,
    Keyword::TABLE,
    Keyword::UPDATE,
    Keyword::VALUES,
    Keyword::WHERE,
    Keyword::WITH,
];

/// Whether an unquoted word can be a name.
pub(super) fn can_be_a_name(word: Keyword) -> bool {
    !NEVER_A_NAME.contains(&word)
}

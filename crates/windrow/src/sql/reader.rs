//! Reading a piece of a script: words, names, strings, and what goes wrong with them.

use std::borrow::Cow;

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};

use super::dialect::Bounded;
use super::error::{Place, SqlError};
use super::name::{TableName, can_be_a_name};
use super::script::Cursor;
use super::{limits, parser};

/// The text of one statement, and where in the script it stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) text: &'a str,
    pub(super) start: Location,
    pub(super) end: Location,
}

impl Source<'_> {
    pub(super) fn place(&self, at: Location) -> Box<Place> {
        Box::new(Place {
            line: at.line,
            column: at.column,
            statement_line: self.start.line,
            statement: self.text.to_owned(),
        })
    }
}

/// A name, and where it stands.
#[derive(Debug, Clone)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) at: Location,
}

/// A statement that is being read, word by word.
///
/// Methods named `accept` go on if the next words are those, and say whether they were; the others give an
/// error when something else stands there. Words are compared without regard to case, and a quoted name is
/// never a word.
pub(super) struct Reader<'a> {
    parser: Parser<'a>,
    source: Source<'a>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(source: Source<'a>, dialect: &'a Bounded, tokens: Vec<TokenWithSpan>) -> Self {
        let parser =
            Parser::new(dialect).with_tokens_with_locations(tokens).with_recursion_limit(limits::MAX_DEPTH);
        Self { parser, source }
    }

    /// The next token, without taking it.
    pub(super) fn peek(&self) -> &Token {
        self.peek_nth(0)
    }

    /// The token that comes after `n` others.
    pub(super) fn peek_nth(&self, n: usize) -> &Token {
        &self.parser.peek_nth_token_ref(n).token
    }

    /// Where the next token stands; at the end, where the statement ends.
    pub(super) fn here(&self) -> Location {
        match self.parser.peek_token_ref() {
            TokenWithSpan { token: Token::EOF, .. } => self.source.end,
            token => token.span.start,
        }
    }

    /// The text of the statement from a place on.
    pub(super) fn text_from(&self, at: Location) -> &'a str {
        let text = self.source.text;
        &text[Cursor::from(text, self.source.start).advance(at)..]
    }

    // What may come next.

    /// Whether the next words are these, which are separated by single spaces.
    pub(super) fn is_next(&self, words: &str) -> bool {
        words.split(' ').enumerate().all(|(n, word)| is_word(self.peek_nth(n), word))
    }

    pub(super) fn accept(&mut self, words: &str) -> bool {
        let found = self.is_next(words);
        if found {
            words.split(' ').for_each(|_| self.parser.advance_token());
        }
        found
    }

    /// Accepts words and the parenthesis after them, if both are there.
    pub(super) fn accept_call(&mut self, words: &str) -> bool {
        let called = *self.peek_nth(words.split(' ').count()) == Token::LParen && self.accept(words);
        called && self.accept_token(&Token::LParen)
    }

    pub(super) fn expect(&mut self, words: &str) -> Result<(), SqlError> {
        if self.accept(words) { Ok(()) } else { Err(self.expected(words)) }
    }

    pub(super) fn accept_token(&mut self, token: &Token) -> bool {
        self.parser.consume_token(token)
    }

    pub(super) fn expect_token(&mut self, token: &Token) -> Result<(), SqlError> {
        if self.accept_token(token) { Ok(()) } else { Err(self.expected(&format!("`{token}`"))) }
    }

    /// Takes the next token.
    pub(super) fn next(&mut self) -> Token {
        self.parser.next_token().token
    }

    /// Nothing more.
    pub(super) fn end(&self) -> Result<(), SqlError> {
        match self.peek() {
            Token::EOF => Ok(()),
            _ => Err(self.expected("the end of the statement")),
        }
    }

    // Names and strings.

    /// A name: folded to lower case unless it is quoted, as DataFusion does.
    pub(super) fn name(&mut self, what: &str) -> Result<Named, SqlError> {
        let at = self.here();
        let name = match self.peek() {
            Token::Word(Word { value, quote_style: Some(_), .. }) if value.is_empty() => {
                return Err(self.invalid(at, format!("{what} may not be empty")));
            }
            Token::Word(Word { value, quote_style: Some(_), .. }) => value.clone(),
            Token::Word(word) if can_be_a_name(word.keyword) => word.value.to_ascii_lowercase(),
            Token::Word(word) => {
                let hint = format!("{what} (a keyword is a name only in quotes: \"{}\")", word.value);
                return Err(self.expected(&hint));
            }
            _ => return Err(self.expected(what)),
        };
        self.parser.advance_token();
        Ok(Named { name, at })
    }

    /// A name of one part.
    pub(super) fn simple_name(&mut self, what: &str) -> Result<String, SqlError> {
        let Named { name, at } = self.name(what)?;
        match self.peek() {
            Token::Period => Err(self.invalid(at, format!("{what} has one part, without dots"))),
            _ => Ok(name),
        }
    }

    /// The name of a table, of up to three parts.
    pub(super) fn table_name(&mut self) -> Result<TableName, SqlError> {
        let first = self.name("a table name")?;
        let mut parts = vec![first.name];
        while self.accept_token(&Token::Period) {
            parts.push(self.name("a table name")?.name);
        }
        let mut parts = parts.into_iter().rev();
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(table), schema, catalog, None) => Ok(TableName { catalog, schema, table }),
            _ => {
                let message = "a table name has at most three parts: catalog.schema.table";
                Err(self.invalid(first.at, message))
            }
        }
    }

    /// A string.
    pub(super) fn string(&mut self, what: &str) -> Result<String, SqlError> {
        match string_of(self.peek()) {
            Some(text) => {
                self.parser.advance_token();
                Ok(text)
            }
            None => Err(self.expected(what)),
        }
    }

    /// One or more of something, separated by commas.
    pub(super) fn comma_separated<T>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Result<T, SqlError>,
    ) -> Result<Vec<T>, SqlError> {
        let mut all = vec![one(self)?];
        while self.accept_token(&Token::Comma) {
            all.push(one(self)?);
        }
        Ok(all)
    }

    // What DataFusion's own parser reads.

    /// Whatever the parser reads.
    pub(super) fn parse<T>(
        &mut self,
        read: impl FnOnce(&mut Parser<'a>) -> Result<T, ParserError>,
    ) -> Result<T, SqlError> {
        read(&mut self.parser).map_err(|error| self.parser_error(error))
    }

    /// What the parser reads, unless it is so long that it cannot safely be compared and written out.
    pub(super) fn parse_short<T>(
        &mut self,
        read: impl FnOnce(&mut Parser<'a>) -> Result<T, ParserError>,
    ) -> Result<T, SqlError> {
        const LONGEST: usize = 200;
        let (at, before) = (self.here(), self.parser.get_current_index());
        let value = self.parse(read)?;
        let read = before..self.parser.get_current_index();
        let words = read.filter(|&index| !matches!(self.parser.token_at(index).token, Token::Whitespace(_)));
        match words.count() {
            0..=LONGEST => Ok(value),
            _ => Err(self.not_supported(at, "this is too long for the declaration of a column")),
        }
    }

    /// A query that changes nothing.
    pub(super) fn query(&mut self) -> Result<Box<ast::Query>, SqlError> {
        let at = self.here();
        if !parser::begins_query(self.peek()) {
            return Err(self.expected("a query (SELECT, WITH or VALUES)"));
        }
        let query = self.parse(Parser::parse_query)?;
        self.unless_changing(at, query)
    }

    /// An expression that changes nothing, whatever queries are inside it.
    pub(super) fn expression(&mut self) -> Result<ast::Expr, SqlError> {
        let at = self.here();
        let expression = self.parse(Parser::parse_expr)?;
        self.unless_changing(at, expression)
    }

    fn unless_changing<T: ast::Visit>(&self, at: Location, query: T) -> Result<T, SqlError> {
        match parser::change_in(&query) {
            None => Ok(query),
            Some(change) => Err(self.invalid(at, format!("a query may not contain {change}"))),
        }
    }

    // What goes wrong.

    /// Something else was expected where the reader is.
    pub(super) fn expected(&self, what: &str) -> SqlError {
        self.syntax(format!("expected {what}, found {}", describe(self.peek())))
    }

    /// A syntax error where the reader is.
    pub(super) fn syntax(&self, message: impl Into<String>) -> SqlError {
        SqlError::Syntax { message: message.into(), place: self.source.place(self.here()) }
    }

    pub(super) fn invalid(&self, at: Location, message: impl Into<String>) -> SqlError {
        SqlError::Invalid { message: message.into(), place: self.source.place(at) }
    }

    pub(super) fn not_supported(&self, at: Location, message: impl Into<String>) -> SqlError {
        SqlError::NotSupported { message: message.into(), place: self.source.place(at) }
    }

    fn parser_error(&self, error: ParserError) -> SqlError {
        let message = match error {
            ParserError::ParserError(message) | ParserError::TokenizerError(message) => message,
            ParserError::RecursionLimitExceeded => return limits::too_deep(&self.source, self.here()),
        };
        let (message, at) = split_location(&message);
        let at = at.unwrap_or_else(|| self.here());
        let (message, at) =
            match message.strip_prefix("Expected: ").and_then(|rest| rest.split_once(", found: ")) {
                Some((expected, "EOF")) => {
                    (format!("expected {}, found {END}", in_quotes(expected)), self.source.end)
                }
                Some((expected, found)) => {
                    (format!("expected {}, found `{}`", in_quotes(expected), shorten(found)), at)
                }
                None => (format!("this cannot be parsed: {message}"), at),
            };
        SqlError::Syntax { message, place: self.source.place(at) }
    }
}

fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// What is found where nothing is left.
const END: &str = "the end of the statement";

/// The text of a token that is a string, however it is quoted.
pub(super) fn string_of(token: &Token) -> Option<String> {
    match token {
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text) => Some(text.clone()),
        Token::DollarQuotedString(quoted) => Some(quoted.value.clone()),
        _ => None,
    }
}

/// A token as an error names it.
pub(super) fn describe(token: &Token) -> String {
    match token {
        Token::EOF => END.to_owned(),
        token => format!("`{}`", shorten(&token.to_string())),
    }
}

/// What a parser expected, in quotes if it is a sign.
fn in_quotes(expected: &str) -> Cow<'_, str> {
    match expected.contains(char::is_alphabetic) {
        true => expected.into(),
        false => format!("`{expected}`").into(),
    }
}

/// The start of a text that may be long.
fn shorten(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Takes the place off the end of a parser's message, where it writes it.
fn split_location(message: &str) -> (&str, Option<Location>) {
    let split = || {
        let (before, place) = message.rsplit_once(" at Line: ")?;
        let (line, column) = place.split_once(", Column: ")?;
        Some((before, Location::new(line.parse().ok()?, column.parse().ok()?)))
    };
    match split() {
        Some((before, at)) => (before, Some(at)),
        None => (message, None),
    }
}

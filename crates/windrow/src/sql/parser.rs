//! Which statement it is, and the short statements.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::str::FromStr;

use datafusion::common::format::{ExplainFormat, ExplainStatementOptions};
use datafusion::error::DataFusionError;
use datafusion::sql::parser::{ExplainStatement, Statement as DataFusionStatement};
use datafusion::sql::sqlparser::ast::{self, Visit, Visitor};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};

use super::dialect::Bounded;
use super::error::SqlError;
use super::reader::{Reader, Source, describe, string_of};
use super::statement::{Insert, Statement};
use super::{create_flow, create_table};

/// What an error offers instead.
const SUPPORTED: &str = "\
     the statements are CREATE TABLE, CREATE EXTERNAL TABLE, CREATE FLOW, DROP TABLE, DROP FLOW, SHOW TABLES, \
     SHOW FLOWS, SHOW CREATE TABLE, SHOW CREATE FLOW, DESCRIBE, ADMIN FLUSH_FLOW, ADMIN CHECK_FLOW, ADMIN COMPACT_TABLE, \
     ADMIN VACUUM_TABLE, INSERT, \
     DELETE, SELECT, EXPLAIN, EXPLAIN FLOW and SET";

/// Statements that are to come.
const NOT_YET: &[&str] =
    &["ADMIN REFRESH_FLOW", "ALTER", "COPY", "MERGE", "SHOW FLOW STATUS", "TQL", "UPDATE"];

/// Parses the tokens of one statement, all of them.
pub(super) fn parse(source: Source<'_>, tokens: Vec<TokenWithSpan>) -> Result<Statement, SqlError> {
    let dialect = Bounded::new(tokens.len());
    let mut reader = Reader::new(source, &dialect, tokens);
    let statement = statement(&mut reader)?;
    reader.end()?;
    Ok(statement)
}

fn statement(r: &mut Reader<'_>) -> Result<Statement, SqlError> {
    let at = r.here();
    if let Some(words) = NOT_YET.iter().find(|words| r.is_next(words)) {
        return Err(r.not_supported(at, format!("{words} is not supported yet; {SUPPORTED}")));
    }
    Ok(if begins_query(r.peek()) {
        Statement::Query(r.query()?)
    } else if r.accept("CREATE TABLE") {
        Statement::CreateTable(create_table::create_table(r)?)
    } else if r.accept("CREATE EXTERNAL TABLE") {
        Statement::CreateExternalTable(create_table::create_external_table(r)?)
    } else if r.accept("CREATE FLOW") {
        Statement::CreateFlow(create_flow::create_flow(r, false)?)
    } else if r.accept("CREATE OR REPLACE FLOW") {
        Statement::CreateFlow(create_flow::create_flow(r, true)?)
    } else if r.accept("DROP FLOW") {
        Statement::DropFlow { if_exists: r.accept("IF EXISTS"), name: r.simple_name("a flow name")? }
    } else if r.accept("DROP TABLE") {
        Statement::DropTable { if_exists: r.accept("IF EXISTS"), name: r.table_name()? }
    } else if r.accept("SHOW FLOWS") {
        let like = if r.accept("LIKE") { Some(r.string("a pattern in quotes")?) } else { None };
        Statement::ShowFlows { like }
    } else if r.accept("SHOW CREATE FLOW") {
        Statement::ShowCreateFlow { name: r.simple_name("a flow name")? }
    } else if r.accept("SHOW CREATE TABLE") {
        Statement::ShowCreateTable { name: r.table_name()? }
    } else if r.accept("SHOW TABLES") {
        Statement::ShowTables
    } else if r.accept("DESCRIBE") || r.accept("DESC") {
        let _ = r.accept("TABLE");
        Statement::Describe { name: r.table_name()? }
    } else if r.accept("ADMIN FLUSH_FLOW") {
        Statement::FlushFlow { name: only_argument(r, "the name of a flow in quotes")? }
    } else if r.accept("ADMIN CHECK_FLOW") {
        Statement::CheckFlow { name: only_argument(r, "the name of a flow in quotes")? }
    } else if r.accept("ADMIN COMPACT_TABLE") {
        Statement::CompactTable { name: only_argument(r, "the name of a table in quotes")? }
    } else if r.accept("ADMIN VACUUM_TABLE") {
        Statement::VacuumTable { name: only_argument(r, "the name of a table in quotes")? }
    } else if r.accept("INSERT") {
        Statement::Insert(insert(r)?)
    } else if r.accept("DELETE") {
        delete(r)?
    } else if r.accept("EXPLAIN FLOW") {
        Statement::ExplainFlow { name: r.simple_name("a flow name")? }
    } else if r.accept("EXPLAIN") {
        Statement::Explain(Box::new(explain(r)?))
    } else if r.is_next("SET") {
        Statement::SetVariable(Box::new(r.parse(Parser::parse_statement)?))
    } else {
        return Err(unsupported(r, at));
    })
}

/// `('name')`
fn only_argument(r: &mut Reader<'_>, what: &'static str) -> Result<String, SqlError> {
    r.expect_token(&Token::LParen)?;
    let name = r.string(what)?;
    r.expect_token(&Token::RParen)?;
    Ok(name)
}

fn insert(r: &mut Reader<'_>) -> Result<Insert, SqlError> {
    r.expect("INTO")?;
    let table = r.table_name()?;
    let (mut columns, mut seen) = (Vec::new(), HashSet::new());
    if *r.peek() == Token::LParen && !begins_query(r.peek_nth(1)) {
        r.expect_token(&Token::LParen)?;
        for column in r.comma_separated(|r| r.name("a column name"))? {
            if !seen.insert(column.name.clone()) {
                return Err(r.invalid(column.at, format!("the column `{}` is given twice", column.name)));
            }
            columns.push(column.name);
        }
        r.expect_token(&Token::RParen)?;
    }
    Ok(Insert { table, columns, source: r.query()? })
}

fn delete(r: &mut Reader<'_>) -> Result<Statement, SqlError> {
    r.expect("FROM")?;
    let table = r.table_name()?;
    let predicate = if r.accept("WHERE") { Some(r.expression()?) } else { None };
    Ok(Statement::Delete { table, predicate })
}

/// What follows `EXPLAIN`, as DataFusion reads it but for queries only.
fn explain(r: &mut Reader<'_>) -> Result<DataFusionStatement, SqlError> {
    let options = if *r.peek() == Token::LParen && !begins_query(r.peek_nth(1)) {
        let at = r.here();
        let options = r.parse(Parser::parse_utility_options)?;
        ExplainStatementOptions::from_utility_options(&options).map_err(|error| bad_option(r, at, &error))?
    } else {
        let (analyze, verbose) = (r.accept("ANALYZE"), r.accept("VERBOSE"));
        let format = if r.accept("FORMAT") { Some(explain_format(r)?) } else { None };
        ExplainStatementOptions { analyze, verbose, format, ..Default::default() }
    };
    let query = Box::new(ast::Statement::Query(r.query()?));
    let statement = Box::new(DataFusionStatement::Statement(query));
    Ok(DataFusionStatement::Explain(ExplainStatement { options, statement }))
}

fn explain_format(r: &mut Reader<'_>) -> Result<ExplainFormat, SqlError> {
    let at = r.here();
    let format = match r.peek() {
        Token::Word(word) => word.value.clone(),
        token => string_of(token).ok_or_else(|| r.expected("a format of plans, TREE say"))?,
    };
    r.next();
    ExplainFormat::from_str(&format).map_err(|error| bad_option(r, at, &error))
}

fn bad_option(r: &Reader<'_>, at: Location, error: &DataFusionError) -> SqlError {
    r.invalid(at, error.message())
}

/// The error for a statement that is none of ours.
fn unsupported(r: &Reader<'_>, at: Location) -> SqlError {
    // Words that say little without the word after them.
    const FIRST: &str = "ADMIN CREATE DROP EXTERNAL GLOBAL LOCAL MATERIALIZED OR REPLACE SHOW TEMP TEMPORARY \
         UNBOUNDED UNIQUE";
    let mut words = Vec::new();
    while let Token::Word(Word { value, quote_style: None, keyword }) = r.peek_nth(words.len()) {
        if words.is_empty() && *keyword == Keyword::NoKeyword {
            break;
        }
        words.push(value.to_ascii_uppercase());
        if !FIRST.split(' ').any(|first| value.eq_ignore_ascii_case(first)) {
            break;
        }
    }
    match words.is_empty() {
        true => r.syntax(format!("expected a statement, found {}; {SUPPORTED}", describe(r.peek()))),
        false => r.not_supported(at, format!("{} is not supported; {SUPPORTED}", words.join(" "))),
    }
}

/// Whether a query may begin with the token.
pub(super) fn begins_query(token: &Token) -> bool {
    match token {
        Token::LParen => true,
        Token::Word(word) => {
            matches!(word.keyword, Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::FROM)
        }
        _ => false,
    }
}

/// What a query changes, or an expression with queries in it, if it changes anything.
///
/// `WITH x AS (DELETE …) SELECT …` parses as a query.
pub(super) fn change_in(query: &impl Visit) -> Option<&'static str> {
    struct Changes;

    impl Visitor for Changes {
        type Break = &'static str;

        fn pre_visit_statement(&mut self, statement: &ast::Statement) -> ControlFlow<Self::Break> {
            ControlFlow::Break(match statement {
                ast::Statement::Insert(_) => "an INSERT",
                ast::Statement::Update(_) => "an UPDATE",
                ast::Statement::Delete(_) => "a DELETE",
                ast::Statement::Merge(_) => "a MERGE",
                _ => "another statement",
            })
        }

        fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<Self::Break> {
            match select.into {
                Some(_) => ControlFlow::Break("an INTO"),
                None => ControlFlow::Continue(()),
            }
        }
    }

    match query.visit(&mut Changes) {
        ControlFlow::Break(change) => Some(change),
        ControlFlow::Continue(()) => None,
    }
}

//! What the parser makes of texts, good and bad.

#![allow(clippy::unwrap_used)]

mod any_text;
mod create_flow;
mod create_table;
mod hostile;
mod interval;
mod name;
mod script;
mod short;

use super::{SourceStatement, SqlError, Statement, statements};

/// The only statement of a text.
#[track_caller]
fn parse(text: &str) -> Statement {
    let mut all = statements(text);
    let statement = all.next().expect("a statement").unwrap_or_else(|error| panic!("{text}\n{error}"));
    assert!(all.next().is_none(), "one statement: {text}");
    statement.statement
}

/// The error of a text of one statement.
#[track_caller]
fn error(text: &str) -> SqlError {
    let mut all = statements(text);
    let error = all.next().expect("a statement").expect_err(text);
    assert!(all.next().is_none(), "one statement: {text}");
    error
}

/// A table of texts and what is wrong with them, for a snapshot.
#[track_caller]
fn errors(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{text}\n  {}: {}\n", kind(&error(text)), error(text))).collect()
}

/// A table of texts and their SQL as it is shown, each of which is parsed again.
#[track_caller]
fn shown(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{}\n\n", show_again(text))).collect()
}

/// A statement as it is shown, which must parse to an equal one.
#[track_caller]
fn show_again(text: &str) -> String {
    let statement = parse(text);
    let shown = show(&statement).expect("a statement that is shown");
    assert_eq!(parse(&shown), statement, "{text}\n{shown}");
    shown
}

fn show(statement: &Statement) -> Option<String> {
    match statement {
        Statement::CreateTable(table) => Some(table.to_string()),
        Statement::CreateExternalTable(table) => Some(table.to_string()),
        Statement::CreateFlow(flow) => Some(flow.to_string()),
        _ => None,
    }
}

fn kind(error: &SqlError) -> &'static str {
    match error {
        SqlError::Unreadable { .. } => "unreadable",
        SqlError::Syntax { .. } => "syntax",
        SqlError::Invalid { .. } => "invalid",
        SqlError::NotSupported { .. } => "not supported",
    }
}

/// Every statement of a text as `line: text`, or its error, for a snapshot.
fn lines(text: &str) -> String {
    let line = |statement: Result<SourceStatement, SqlError>| match statement {
        Ok(statement) => format!("{}: {}\n", statement.line, statement.text),
        Err(error) => {
            format!("! {}: {error}; begins on line {}\n", kind(&error), error.place().statement_line)
        }
    };
    statements(text).map(line).collect()
}

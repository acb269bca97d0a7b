//! The statements that are shown and stored, as SQL.

use std::fmt::{self, Formatter};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Value, ValueWithSpan, VisitMut, VisitorMut};

use super::name::{quote_name, quote_string};
use super::statement::{ColumnSpec, CreateExternalTable, CreateFlow, CreateTable, ExternalFormat, Options};

impl fmt::Display for CreateTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "CREATE TABLE {}{} (", if_not_exists(self.if_not_exists), self.name)?;
        let mut elements: Vec<String> = self.columns.iter().map(ColumnSpec::to_string).collect();
        elements.extend(self.time_index.iter().map(|name| format!("TIME INDEX ({})", quote_name(name))));
        if !self.primary_key.is_empty() {
            let key: Vec<_> = self.primary_key.iter().map(|name| quote_name(name)).collect();
            elements.push(format!("PRIMARY KEY ({})", key.join(", ")));
        }
        write!(f, "\n  {}\n)", elements.join(",\n  "))?;
        write_options(f, "WITH", " = ", &self.options)
    }
}

impl fmt::Display for CreateExternalTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "CREATE EXTERNAL TABLE {}{}", if_not_exists(self.if_not_exists), self.name)?;
        if !self.columns.is_empty() {
            let columns: Vec<String> = self.columns.iter().map(ColumnSpec::to_string).collect();
            write!(f, " (\n  {}\n)", columns.join(",\n  "))?;
        }
        write!(f, "\nSTORED AS {}\nLOCATION {}", self.format.keyword(), quote_string(&self.location))?;
        write_options(f, "OPTIONS", " ", &self.options)
    }
}

impl fmt::Display for CreateFlow {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let or_replace = if self.or_replace { "OR REPLACE " } else { "" };
        write!(f, "CREATE {or_replace}FLOW {}{}", if_not_exists(self.if_not_exists), quote_name(&self.name))?;
        write!(f, "\nSINK TO {}", self.sink)?;
        if let Some(interval) = &self.expire_after {
            write!(f, "\nEXPIRE AFTER '{interval}'")?;
        }
        if let Some(interval) = &self.eval_interval {
            write!(f, "\nEVAL INTERVAL '{interval}'")?;
        }
        if let Some(comment) = &self.comment {
            write!(f, "\nCOMMENT {}", quote_string(comment))?;
        }
        write_options(f, "WITH", " = ", &self.options)?;
        write!(f, "\nAS\n{}", self.query_text)
    }
}

/// The column as it stands in the list of a table.
impl fmt::Display for ColumnSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", quote_name(&self.name), self.data_type)?;
        if !self.nullable {
            f.write_str(" NOT NULL")?;
        }
        match &self.default {
            Some(default) => write!(f, " DEFAULT {}", restated(default)),
            None => Ok(()),
        }
    }
}

impl ExternalFormat {
    /// The word after `STORED AS`.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Delta => "DELTA",
            Self::Parquet => "PARQUET",
            Self::Csv => "CSV",
        }
    }
}

fn if_not_exists(given: bool) -> &'static str {
    if given { "IF NOT EXISTS " } else { "" }
}

/// Writes a list of options; DataFusion has a sign between key and value in `WITH`, and none in `OPTIONS`.
fn write_options(f: &mut Formatter<'_>, word: &str, sign: &str, options: &Options) -> fmt::Result {
    if options.is_empty() {
        return Ok(());
    }
    let options: Vec<String> = options
        .iter()
        .map(|(key, value)| format!("{}{sign}{}", quote_string(key), quote_string(value)))
        .collect();
    write!(f, "\n{word} ({})", options.join(", "))
}

/// An expression as SQL that parses to an equal expression.
///
/// The parser's own `Display` takes two quotes side by side in a string for one that is escaped already. It
/// is right once all of them are escaped.
pub(super) fn restated(expr: &Expr) -> String {
    struct Escape;

    impl VisitorMut for Escape {
        type Break = ();

        fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
            if let Value::SingleQuotedString(text) | Value::NationalStringLiteral(text) = &mut value.value {
                *text = text.replace('\'', "''");
            }
            ControlFlow::Continue(())
        }
    }

    let mut expr = expr.clone();
    let _ = expr.visit(&mut Escape);
    expr.to_string()
}

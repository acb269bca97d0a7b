//! The statements, as values.

use std::collections::BTreeMap;

use datafusion::sql::parser::Statement as DataFusionStatement;
use datafusion::sql::sqlparser::ast;

use super::{Interval, TableName};

/// The options of a table or a flow: `WITH ('key' = 'value', …)`.
///
/// A quoted key or string is as it was written; a bare word is folded to lower case; a number is the text of
/// it.
pub type Options = BTreeMap<String, String>;

/// One statement of the dialect.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Statement {
    /// `CREATE TABLE …`
    CreateTable(CreateTable),
    /// `CREATE EXTERNAL TABLE …`
    CreateExternalTable(CreateExternalTable),
    /// `CREATE FLOW …`
    CreateFlow(CreateFlow),
    /// `DROP FLOW [IF EXISTS] name`
    DropFlow {
        /// A flow that does not exist is no error.
        if_exists: bool,
        /// The flow.
        name: String,
    },
    /// `DROP TABLE [IF EXISTS] name`
    DropTable {
        /// A table that does not exist is no error.
        if_exists: bool,
        /// The table.
        name: TableName,
    },
    /// `SHOW FLOWS [LIKE 'pattern']`
    ShowFlows {
        /// The pattern that names must match, in the syntax of `LIKE`.
        like: Option<String>,
    },
    /// `SHOW CREATE FLOW name`
    ShowCreateFlow {
        /// The flow.
        name: String,
    },
    /// `SHOW CREATE TABLE name`
    ShowCreateTable {
        /// The table.
        name: TableName,
    },
    /// `SHOW TABLES`
    ShowTables,
    /// `DESCRIBE [TABLE] name`, or `DESC`
    Describe {
        /// The table.
        name: TableName,
    },
    /// `EXPLAIN FLOW name`
    ExplainFlow {
        /// The flow.
        name: String,
    },
    /// `ADMIN FLUSH_FLOW('name')`
    FlushFlow {
        /// The flow: the string exactly as it was written, not folded to lower case.
        name: String,
    },
    /// `ADMIN CHECK_FLOW('name')`
    CheckFlow {
        /// The flow: the string exactly as it was written, not folded to lower case.
        name: String,
    },
    /// `ADMIN COMPACT_TABLE('name')`
    CompactTable {
        /// The table: the string exactly as it was written, not folded to lower case.
        name: String,
    },
    /// `ADMIN VACUUM_TABLE('name')`
    VacuumTable {
        /// The table: the string exactly as it was written, not folded to lower case.
        name: String,
    },
    /// `INSERT INTO …`
    Insert(Insert),
    /// `DELETE FROM table [WHERE predicate]`
    Delete {
        /// The table.
        table: TableName,
        /// Which rows; all of them when there is none.
        predicate: Option<ast::Expr>,
    },
    /// A query: `SELECT`, `WITH … SELECT`, `VALUES`, `FROM … SELECT`. It changes nothing, nor does any query
    /// inside it.
    Query(Box<ast::Query>),
    /// `EXPLAIN [ANALYZE] [VERBOSE] [FORMAT …] query`, as DataFusion takes it:
    /// `SessionState::statement_to_plan` plans it. What is explained is always a query.
    Explain(Box<DataFusionStatement>),
    /// `SET variable = value`: always an [`ast::Statement::Set`], for DataFusion to carry out.
    SetVariable(Box<ast::Statement>),
}

/// `CREATE TABLE [IF NOT EXISTS] name (column TYPE …, [TIME INDEX (ts)], [PRIMARY KEY (a, b)]) [WITH (…)]`
///
/// When it was parsed: no two columns have the same name; the time index and the primary key name columns of
/// the table, each at most once; and the time index is not nullable.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTable {
    /// A table that exists is no error.
    pub if_not_exists: bool,
    /// The table.
    pub name: TableName,
    /// The columns, in order. There is at least one.
    pub columns: Vec<ColumnSpec>,
    /// The column of event time.
    pub time_index: Option<String>,
    /// The columns of the primary key, in order; empty when there is no key.
    pub primary_key: Vec<String>,
    /// The options.
    pub options: Options,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnSpec {
    /// The name.
    pub name: String,
    /// The type as it was declared, but with the precision made explicit: `TIMESTAMP` is `TIMESTAMP(6)` here,
    /// and `TIMESTAMP_MS` is `TIMESTAMP(3)`.
    pub data_type: ast::DataType,
    /// Whether it may hold nulls. A column may, unless it is declared `NOT NULL` or is the time index.
    pub nullable: bool,
    /// The value of the column in a row that does not give one.
    pub default: Option<ast::Expr>,
}

/// `CREATE EXTERNAL TABLE [IF NOT EXISTS] name [(columns)] STORED AS format LOCATION '…' [OPTIONS (…)]`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateExternalTable {
    /// A table that exists is no error.
    pub if_not_exists: bool,
    /// The table.
    pub name: TableName,
    /// The columns, or none when they are the files' own. They have no defaults.
    pub columns: Vec<ColumnSpec>,
    /// What the files are.
    pub format: ExternalFormat,
    /// A path or a URL, as it was written.
    pub location: String,
    /// The options, `time_index` among them if there is one.
    pub options: Options,
}

/// The format of an external table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExternalFormat {
    /// A Delta Lake table.
    Delta,
    /// Parquet files.
    Parquet,
    /// Files of comma-separated values.
    Csv,
}

/// `CREATE [OR REPLACE] FLOW [IF NOT EXISTS] name SINK TO table … AS query`
///
/// When it was parsed, `or_replace` and `if_not_exists` are not both true.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateFlow {
    /// A flow of the same name makes way.
    pub or_replace: bool,
    /// A flow of the same name stays, and this is no error.
    pub if_not_exists: bool,
    /// The flow.
    pub name: String,
    /// Where its result is kept.
    pub sink: TableName,
    /// Windows older than this are not updated any more. Positive and of fixed length when it was parsed.
    pub expire_after: Option<Interval>,
    /// How often the whole query runs. Positive and of fixed length when it was parsed.
    pub eval_interval: Option<Interval>,
    /// What its author says about it.
    pub comment: Option<String>,
    /// The options.
    pub options: Options,
    /// The query. It changes nothing, nor does any query inside it.
    pub query: Box<ast::Query>,
    /// The same query as it was written, comments inside it and all.
    pub query_text: String,
}

/// `INSERT INTO table [(columns)] query`
///
/// The source may be `VALUES` in which a value is the word `DEFAULT`. That is an [`ast::Expr::Identifier`]
/// without quotes: [`Insert::is_default`] knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Insert {
    /// The table.
    pub table: TableName,
    /// The columns that are given, in order; none means all, in the table's order.
    pub columns: Vec<String>,
    /// The rows.
    pub source: Box<ast::Query>,
}

impl Insert {
    /// Whether a value in `VALUES` asks for the column's default.
    ///
    /// ```
    /// use datafusion::sql::sqlparser::ast::SetExpr;
    /// use windrow::sql::{Insert, Statement, statements};
    ///
    /// let insert = statements("INSERT INTO t VALUES (1, DEFAULT)").next().unwrap()?;
    /// let Statement::Insert(insert) = insert.statement else { panic!("an insert was written") };
    /// let SetExpr::Values(values) = &*insert.source.body else { panic!("values were written") };
    /// let row = &values.rows[0].content;
    /// assert!(!Insert::is_default(&row[0]));
    /// assert!(Insert::is_default(&row[1]));
    /// # Ok::<(), windrow::sql::SqlError>(())
    /// ```
    #[must_use]
    pub fn is_default(value: &ast::Expr) -> bool {
        matches!(value, ast::Expr::Identifier(word)
            if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("default"))
    }
}

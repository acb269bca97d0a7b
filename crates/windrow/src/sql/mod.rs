//! The SQL dialect: from text to statements.
//!
//! This module is the parser only. It knows no catalog and runs nothing; what comes out are values, and what
//! a value means is for the engine to decide. The dialect is DataFusion's (its default, `GenericDialect`),
//! plus tables with a time index, flows, and a few statements to look after them.
//!
//! ```
//! use windrow::sql::{Statement, statements};
//!
//! let script = "
//!     -- one row per reading
//!     CREATE TABLE readings (ts TIMESTAMP TIME INDEX, sensor STRING PRIMARY KEY, celsius DOUBLE);
//!
//!     CREATE FLOW hourly SINK TO hourly_readings EXPIRE AFTER '30 days' AS
//!     SELECT sensor, date_bin(INTERVAL '1 hour', ts) AS hour, max(celsius) AS high
//!     FROM readings GROUP BY sensor, hour;
//! ";
//! let parsed = statements(script).collect::<Result<Vec<_>, _>>()?;
//! assert_eq!(parsed[0].line, 3);
//! let Statement::CreateFlow(flow) = &parsed[1].statement else { panic!("a flow was written") };
//! assert_eq!(flow.sink.table, "hourly_readings");
//! assert!(flow.query_text.starts_with("SELECT sensor"));
//! # Ok::<(), windrow::sql::SqlError>(())
//! ```
//!
//! # What holds
//!
//! - **One at a time.** [`statements`] parses a statement when it is reached. A mistake late in a script
//!   leaves the statements before it to be run.
//! - **Any text is fine.** No input panics, overflows the stack or runs for ever; bad input is an error with
//!   the line and the column where it is bad.
//! - **What is stored can be read back.** The `Display` of a [`CreateTable`], a [`CreateExternalTable`] and a
//!   [`CreateFlow`] is SQL that parses to an equal value. `SHOW CREATE` and the durable catalog stand on
//!   this.
//!
//! # How it is laid out
//!
//! | file | what is in it |
//! |---|---|
//! | `script.rs` | a script into pieces, one for each statement |
//! | `limits.rs` | what is refused before it is parsed, because it could exhaust the stack |
//! | `reader.rs` | reading a piece: words, names, strings, and what goes wrong with them |
//! | `parser.rs` | which statement it is, and the short statements |
//! | `create_table.rs`, `create_flow.rs`, `options.rs` | the long ones |
//! | `statement.rs`, `display.rs`, `name.rs`, `interval.rs` | the values, and their SQL |
//! | `error.rs` | what can be wrong, and where |

#![deny(clippy::unwrap_used)]

mod create_flow;
mod create_table;
mod dialect;
mod display;
mod error;
mod interval;
mod limits;
mod name;
mod options;
mod parser;
mod reader;
mod script;
mod statement;
#[cfg(test)]
mod tests;

pub use error::{Place, SqlError};
pub use interval::{Interval, IntervalError};
pub use name::{TableName, quote_name, quote_string};
pub use script::{SourceStatement, statements};
pub use statement::{
    ColumnSpec, CreateExternalTable, CreateFlow, CreateTable, ExternalFormat, Insert, Options, Statement,
};

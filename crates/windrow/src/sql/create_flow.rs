//! `CREATE FLOW`.

use super::error::SqlError;
use super::interval::Interval;
use super::options::{length_of_time, options};
use super::reader::Reader;
use super::statement::{CreateFlow, Options};

/// What follows `CREATE FLOW` or `CREATE OR REPLACE FLOW`.
pub(super) fn create_flow(r: &mut Reader<'_>, or_replace: bool) -> Result<CreateFlow, SqlError> {
    let at = r.here();
    let if_not_exists = r.accept("IF NOT EXISTS");
    if or_replace && if_not_exists {
        return Err(r.invalid(at, "OR REPLACE and IF NOT EXISTS exclude each other; write one of them"));
    }
    let name = r.simple_name("a flow name")?;
    r.expect("SINK TO")?;
    let sink = r.table_name()?;
    let Clauses { expire_after, eval_interval, comment, options } = Clauses::read(r)?;

    let at = r.here();
    if r.is_next("TQL") {
        return Err(
            r.not_supported(at, "flows in PromQL (TQL) are not supported yet; write the query in SQL")
        );
    }
    let query = r.query()?;
    if r.end().is_err() {
        return Err(r.expected("the end of the flow, which has exactly one query"));
    }
    Ok(CreateFlow {
        or_replace,
        if_not_exists,
        name,
        sink,
        expire_after,
        eval_interval,
        comment,
        options: options.unwrap_or_default(),
        query,
        query_text: r.text_from(at).to_owned(),
    })
}

/// What may stand between the sink and the query, in any order.
#[derive(Default)]
struct Clauses {
    expire_after: Option<Interval>,
    eval_interval: Option<Interval>,
    comment: Option<String>,
    options: Option<Options>,
}

impl Clauses {
    /// Reads them up to the query, `AS` included.
    fn read(r: &mut Reader<'_>) -> Result<Self, SqlError> {
        let mut clauses = Self::default();
        loop {
            let at = r.here();
            let (clause, repeated) = if r.accept("AS") {
                return Ok(clauses);
            } else if r.accept("EXPIRE AFTER") {
                ("EXPIRE AFTER", clauses.expire_after.replace(length_of_time(r, "EXPIRE AFTER")?).is_some())
            } else if r.accept("EVAL INTERVAL") {
                (
                    "EVAL INTERVAL",
                    clauses.eval_interval.replace(length_of_time(r, "EVAL INTERVAL")?).is_some(),
                )
            } else if r.accept("COMMENT") {
                ("COMMENT", clauses.comment.replace(r.string("a comment in quotes")?).is_some())
            } else if r.accept("WITH") {
                ("WITH", clauses.options.replace(options(r)?).is_some())
            } else {
                return Err(r.expected("EXPIRE AFTER, EVAL INTERVAL, COMMENT, WITH or AS"));
            };
            if repeated {
                return Err(r.invalid(at, format!("{clause} is given twice")));
            }
        }
    }
}

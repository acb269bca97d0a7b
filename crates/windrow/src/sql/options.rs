//! Lists of options, and intervals.

use datafusion::sql::sqlparser::tokenizer::{Token, Word};

use super::error::SqlError;
use super::interval::{Interval, is_unit};
use super::reader::{Reader, string_of};
use super::statement::Options;

/// `('key' = 'value', key value, …)`: what follows `WITH` or `OPTIONS`.
pub(super) fn options(r: &mut Reader<'_>) -> Result<Options, SqlError> {
    let mut options = Options::new();
    r.expect_token(&Token::LParen)?;
    r.comma_separated(|r| {
        let at = r.here();
        let key = key(r)?;
        r.accept_token(&Token::Eq);
        let value = value(r)?;
        match options.insert(key.clone(), value) {
            None => Ok(()),
            Some(_) => Err(r.invalid(at, format!("the option `{key}` is given twice"))),
        }
    })?;
    r.expect_token(&Token::RParen)?;
    Ok(options)
}

/// A string, or words with dots between them.
fn key(r: &mut Reader<'_>) -> Result<String, SqlError> {
    if string_of(r.peek()).is_some() {
        return r.string("the name of an option");
    }
    let mut key = r.name("the name of an option")?.name;
    while r.accept_token(&Token::Period) {
        key.push('.');
        key.push_str(&r.name("the name of an option")?.name);
    }
    Ok(key)
}

/// A string, a number, or a word such as TRUE.
fn value(r: &mut Reader<'_>) -> Result<String, SqlError> {
    const VALUE: &str = "the value of an option (a string, a number or a word)";
    let sign = if r.accept_token(&Token::Minus) { "-" } else { "" };
    let value = match r.peek() {
        Token::Number(number, _) => format!("{sign}{number}"),
        _ if !sign.is_empty() => return Err(r.expected("a number")),
        Token::Word(Word { value, quote_style: None, keyword }) if super::name::can_be_a_name(*keyword) => {
            value.to_ascii_lowercase()
        }
        token => string_of(token).ok_or_else(|| r.expected(VALUE))?,
    };
    r.next();
    Ok(value)
}

/// The length of time that a clause asks for: positive, and without months.
///
/// It is written `'1 hour'`, `INTERVAL '1 hour'`, `INTERVAL '1' HOUR` or `INTERVAL 1 HOUR`.
pub(super) fn length_of_time(r: &mut Reader<'_>, clause: &str) -> Result<Interval, SqlError> {
    let at = r.here();
    let with_keyword = r.accept("INTERVAL");
    let mut text = match r.peek() {
        Token::Number(number, _) if with_keyword => number.clone(),
        token => string_of(token).ok_or_else(|| r.expected("an interval in quotes, '1 hour' say"))?,
    };
    r.next();
    if with_keyword
        && let Token::Word(Word { value, quote_style: None, .. }) = r.peek()
        && is_unit(value)
    {
        text = format!("{text} {value}");
        r.next();
    }
    let interval = text.parse::<Interval>().and_then(|interval| interval.to_duration().map(|_| interval));
    interval.map_err(|error| r.invalid(at, format!("{clause} '{text}': {error}")))
}

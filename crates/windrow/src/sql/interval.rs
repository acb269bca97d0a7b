//! Lengths of time, as people write them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A length of time: months, which vary, and nanoseconds, which do not.
///
/// A day is 24 hours and a week is seven days; a year is twelve months. Either part may be negative.
///
/// ```
/// use std::time::Duration;
/// use windrow::sql::{Interval, IntervalError};
///
/// let interval: Interval = "1h30m".parse()?;
/// assert_eq!(interval, "1.5 hours".parse()?);
/// assert_eq!(interval.to_string(), "1 hour 30 minutes");
/// assert_eq!(interval.to_duration()?, Duration::from_secs(5400));
///
/// let interval: Interval = "1 month".parse()?;
/// assert_eq!(interval.to_duration(), Err(IntervalError::Calendar));
/// # Ok::<(), IntervalError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interval {
    months: i32,
    nanos: i128,
}

/// Why a text is no interval, or an interval is not what is needed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IntervalError {
    /// There is nothing in the text.
    #[error("expected a number and a unit, `1 hour` say, found nothing")]
    Empty,
    /// Something stands where a number should.
    #[error("expected a number and a unit, `1 hour 30 minutes` say, found `{found}`")]
    Number {
        /// What stands there.
        found: String,
    },
    /// A number without a unit.
    #[error("`{number}` has no unit; write `{number} s` or another one")]
    MissingUnit {
        /// The number.
        number: String,
    },
    /// A word that is no unit of time.
    #[error(
        "`{unit}` is no unit of time; the units are ns, us, ms, s, min, hours, days, weeks, months and years"
    )]
    Unit {
        /// The word.
        unit: String,
    },
    /// `M`, which some read as minutes and some as months.
    #[error("`M` could be minutes or months; write `m` or `minutes`, or `months`")]
    Ambiguous,
    /// Part of a month, or of a nanosecond.
    #[error("`{number}` is too fine for its unit: a nanosecond and a month have no parts")]
    Fraction {
        /// The number.
        number: String,
    },
    /// Longer than can be counted.
    #[error("the interval is too long")]
    Overflow,
    /// Zero or less, where time has to pass.
    #[error("the interval must be longer than zero")]
    NotPositive,
    /// Months or years, where a fixed length is needed.
    #[error("a month has no fixed length, nor has a year; write days, `30 days` say")]
    Calendar,
}

impl Interval {
    /// An interval of its two parts.
    #[must_use]
    pub fn new(months: i32, nanos: i128) -> Self {
        Self { months, nanos }
    }

    /// The months in it, years included.
    #[must_use]
    pub fn months(self) -> i32 {
        self.months
    }

    /// The nanoseconds in it beside the months.
    #[must_use]
    pub fn nanos(self) -> i128 {
        self.nanos
    }

    /// The interval as a length of time that has to pass.
    ///
    /// # Errors
    ///
    /// [`IntervalError::Calendar`] if there are months in it, [`IntervalError::NotPositive`] if it is not
    /// longer than zero, and [`IntervalError::Overflow`] if it is longer than a [`Duration`] can be.
    pub fn to_duration(self) -> Result<Duration, IntervalError> {
        if self.months != 0 {
            return Err(IntervalError::Calendar);
        }
        if self.nanos <= 0 {
            return Err(IntervalError::NotPositive);
        }
        let seconds = u64::try_from(self.nanos / SECOND).map_err(|_| IntervalError::Overflow)?;
        let nanos = u32::try_from(self.nanos % SECOND).map_err(|_| IntervalError::Overflow)?;
        Ok(Duration::new(seconds, nanos))
    }
}

const SECOND: i128 = 1_000_000_000;
const DAY: i128 = 24 * 60 * 60 * SECOND;

/// What one of a unit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Months(i32),
    Nanos(i128),
}

/// The unit that a word names, in any case. `M` alone names none.
fn unit(word: &str) -> Option<Unit> {
    if word == "M" {
        return None;
    }
    Some(match word.to_lowercase().as_str() {
        "ns" | "nsec" | "nanos" | "nanosecond" | "nanoseconds" => Unit::Nanos(1),
        // Both the micro sign and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" | "usec" | "micros" | "microsecond" | "microseconds" => {
            Unit::Nanos(1000)
        }
        "ms" | "msec" | "millis" | "millisecond" | "milliseconds" => Unit::Nanos(1_000_000),
        "s" | "sec" | "secs" | "second" | "seconds" => Unit::Nanos(SECOND),
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Nanos(60 * SECOND),
        "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Nanos(60 * 60 * SECOND),
        "d" | "day" | "days" => Unit::Nanos(DAY),
        "w" | "week" | "weeks" => Unit::Nanos(7 * DAY),
        "mon" | "mons" | "month" | "months" => Unit::Months(1),
        "y" | "yr" | "yrs" | "year" | "years" => Unit::Months(12),
        _ => return None,
    })
}

/// Whether a word names a unit of time.
pub(super) fn is_unit(word: &str) -> bool {
    unit(word).is_some()
}

/// Reads numbers with their units, which are added up: `1 hour 30 minutes`, `1h30m`, `-2 days`, `0.5 s`.
impl FromStr for Interval {
    type Err = IntervalError;

    fn from_str(text: &str) -> Result<Self, IntervalError> {
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(IntervalError::Empty);
        }
        let mut sum = Self::new(0, 0);
        while !rest.is_empty() {
            let (number, after) = take_while(rest, |c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+'));
            let (word, after) = take_while(after.trim_start(), char::is_alphabetic);
            sum = sum.plus(number, word, rest)?;
            rest = after.trim_start();
        }
        Ok(sum)
    }
}

impl Interval {
    /// Adds a number of a unit; `text` is where they stand.
    fn plus(self, number: &str, word: &str, text: &str) -> Result<Self, IntervalError> {
        let (digits, decimals) = decimal(number).ok_or_else(|| {
            let found = if number.is_empty() { text } else { number };
            IntervalError::Number { found: found.chars().take(20).collect() }
        })?;
        if word.is_empty() {
            return Err(IntervalError::MissingUnit { number: number.to_owned() });
        }
        let unit = unit(word).ok_or_else(|| match word {
            "M" => IntervalError::Ambiguous,
            _ => IntervalError::Unit { unit: word.to_owned() },
        })?;
        let of = |one: i128| {
            let scale = 10_i128.checked_pow(decimals).ok_or(IntervalError::Overflow)?;
            let count =
                digits.ok_or(IntervalError::Overflow)?.checked_mul(one).ok_or(IntervalError::Overflow)?;
            match count % scale {
                0 => Ok(count / scale),
                _ => Err(IntervalError::Fraction { number: number.to_owned() }),
            }
        };
        let (months, nanos) = match unit {
            Unit::Months(one) => (i32::try_from(of(one.into())?).map_err(|_| IntervalError::Overflow)?, 0),
            Unit::Nanos(one) => (0, of(one)?),
        };
        Ok(Self {
            months: self.months.checked_add(months).ok_or(IntervalError::Overflow)?,
            nanos: self.nanos.checked_add(nanos).ok_or(IntervalError::Overflow)?,
        })
    }
}

/// A decimal number as its digits, if there are not too many, and how many of them are behind the point.
fn decimal(number: &str) -> Option<(Option<i128>, u32)> {
    let (sign, unsigned) = match number.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all_digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    Some((format!("{sign}0{whole}{fraction}").parse().ok(), u32::try_from(fraction.len()).ok()?))
}

fn take_while(text: &str, keep: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !keep(c)).unwrap_or(text.len()))
}

/// Writes whole numbers of units, the largest first, so that parsing them gives the interval back.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u128); 7] = [
            ("day", DAY.unsigned_abs()),
            ("hour", 3_600_000_000_000),
            ("minute", 60_000_000_000),
            ("second", 1_000_000_000),
            ("millisecond", 1_000_000),
            ("microsecond", 1000),
            ("nanosecond", 1),
        ];
        let mut parts = Vec::new();
        let mut part = |negative: bool, count: u128, unit: &str| {
            if count != 0 {
                let (sign, plural) = (if negative { "-" } else { "" }, if count == 1 { "" } else { "s" });
                parts.push(format!("{sign}{count} {unit}{plural}"));
            }
        };
        let months = u128::from(self.months.unsigned_abs());
        part(self.months < 0, months / 12, "year");
        part(self.months < 0, months % 12, "month");
        let mut nanos = self.nanos.unsigned_abs();
        for (unit, one) in UNITS {
            part(self.nanos < 0, nanos / one, unit);
            nanos %= one;
        }
        match parts.is_empty() {
            true => f.write_str("0 seconds"),
            false => f.write_str(&parts.join(" ")),
        }
    }
}

//! Time zones: the difference between local time and UTC.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::timezone::Tz;
use chrono::{DateTime, MappedLocalTime, NaiveDateTime, Offset, TimeZone};

/// No rule in use before or after this many seconds differs from the one in use there: what chrono can represent.
const FURTHEST: i64 = 8_000_000_000_000;
/// Seconds in which no offset changes by more than this, and no zone changes its offset twice.
pub(crate) const LONGEST_SHIFT: i64 = 26 * 3_600;

/// A time zone, with the rules that Arrow (and so DataFusion) has for its name.
///
/// A name is one of the IANA database (`America/New_York`) or a fixed offset (`+05:45`).
///
/// ```
/// let zone: windrow_time::Zone = "Asia/Kathmandu".parse()?;
/// assert_eq!(zone.offset_at(1_700_000_000), 5 * 3_600 + 45 * 60);
/// assert!("Mars/Olympus".parse::<windrow_time::Zone>().is_err());
/// # Ok::<(), windrow_time::ZoneError>(())
/// ```
#[derive(Clone)]
pub struct Zone {
    name: Arc<str>,
    rules: Tz,
}

/// A name that is no time zone's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a time zone: a name such as Europe/Paris or an offset such as +05:45 is")]
pub struct ZoneError(String);

/// The offsets from UTC at which a local time occurs, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalOffsets {
    /// Clocks were put forward over it.
    None,
    /// Once.
    One(i64),
    /// Twice, as clocks were put back: with the offset before that, and with the one after.
    Two(i64, i64),
}

impl FromStr for Zone {
    type Err = ZoneError;

    fn from_str(name: &str) -> Result<Self, ZoneError> {
        let rules = name.parse().map_err(|_| ZoneError(name.to_owned()))?;
        Ok(Self { name: name.into(), rules })
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

impl Zone {
    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether this is UTC, under one of its names.
    #[must_use]
    pub fn is_utc(&self) -> bool {
        matches!(
            &*self.name,
            "UTC" | "Etc/UTC" | "Z" | "Zulu" | "Etc/Zulu" | "UCT" | "Etc/UCT" | "Universal" | "Etc/Universal"
        ) || self.fixed_offset() == Some(0)
    }

    /// The offset from UTC in seconds, where the name itself is an offset.
    #[must_use]
    pub fn fixed_offset(&self) -> Option<i64> {
        let is_offset = self.name.starts_with(['+', '-']);
        is_offset.then(|| self.offset_at(0))
    }

    /// Local time minus UTC, in seconds, at `second` seconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub fn offset_at(&self, second: i64) -> i64 {
        self.rules.offset_from_utc_datetime(&date_time(second)).fix().local_minus_utc().into()
    }

    /// The offsets at which it is `local` seconds after 1970-01-01T00:00:00 in local time.
    #[must_use]
    pub fn offsets_of_local(&self, local: i64) -> LocalOffsets {
        let seconds = |offset: &arrow_array::timezone::TzOffset| offset.fix().local_minus_utc().into();
        match self.rules.offset_from_local_datetime(&date_time(local)) {
            MappedLocalTime::None => LocalOffsets::None,
            MappedLocalTime::Single(offset) => LocalOffsets::One(seconds(&offset)),
            MappedLocalTime::Ambiguous(before, after) => LocalOffsets::Two(seconds(&before), seconds(&after)),
        }
    }

    /// The first second after `second`, and not after `until`, at which another offset begins.
    ///
    /// Two changes within 26 hours of each other would not be seen; no zone has such.
    #[must_use]
    pub fn next_change(&self, second: i64, until: i64) -> Option<i64> {
        let mut from = second;
        while from < until {
            let to = from.saturating_add(LONGEST_SHIFT).min(until);
            let (before, after) = (self.offset_at(from), self.offset_at(to));
            if before != after {
                let (mut low, mut high) = (from, to);
                while high - low > 1 {
                    let middle = low.midpoint(high);
                    if self.offset_at(middle) == before { low = middle } else { high = middle }
                }
                return Some(high);
            }
            from = to;
        }
        None
    }
}

fn date_time(second: i64) -> NaiveDateTime {
    DateTime::from_timestamp(second.clamp(-FURTHEST, FURTHEST), 0).unwrap_or_default().naive_utc()
}

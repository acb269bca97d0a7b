//! The unit of an instant.

use arrow_schema::TimeUnit as ArrowUnit;
use serde::{Deserialize, Serialize};

/// The unit that an `i64` instant counts, since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeUnit {
    /// Seconds.
    Second,
    /// Milliseconds.
    Millisecond,
    /// Microseconds.
    Microsecond,
    /// Nanoseconds.
    Nanosecond,
}

impl TimeUnit {
    /// How many of this unit a second has.
    #[must_use]
    pub const fn per_second(self) -> i64 {
        match self {
            Self::Second => 1,
            Self::Millisecond => 1_000,
            Self::Microsecond => 1_000_000,
            Self::Nanosecond => 1_000_000_000,
        }
    }

    /// How many nanoseconds one of this unit has.
    #[must_use]
    pub const fn nanos(self) -> i64 {
        1_000_000_000 / self.per_second()
    }

    /// How many of this unit a day of 24 hours has.
    #[must_use]
    pub const fn per_day(self) -> i64 {
        86_400 * self.per_second()
    }
}

impl From<ArrowUnit> for TimeUnit {
    fn from(unit: ArrowUnit) -> Self {
        match unit {
            ArrowUnit::Second => Self::Second,
            ArrowUnit::Millisecond => Self::Millisecond,
            ArrowUnit::Microsecond => Self::Microsecond,
            ArrowUnit::Nanosecond => Self::Nanosecond,
        }
    }
}

impl From<TimeUnit> for ArrowUnit {
    fn from(unit: TimeUnit) -> Self {
        match unit {
            TimeUnit::Second => Self::Second,
            TimeUnit::Millisecond => Self::Millisecond,
            TimeUnit::Microsecond => Self::Microsecond,
            TimeUnit::Nanosecond => Self::Nanosecond,
        }
    }
}

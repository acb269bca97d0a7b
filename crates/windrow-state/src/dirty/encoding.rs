//! How a dirty set is stored.

use serde::{Deserialize, Serialize};
use windrow_time::InstantRange;

use super::DirtySet;

/// The version that is written.
const VERSION: u32 = 1;

/// A set as the start of its first range and then, in turn, the length of a range and of the gap after it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename = "DirtySet")]
pub(super) struct Encoded {
    version: u32,
    start: i64,
    lengths: Vec<u64>,
}

/// Why a stored set is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum EncodingError {
    #[error("the dirty windows were stored by a later version ({0}; this one reads {VERSION})")]
    LaterVersion(u32),
    #[error("the dirty windows are damaged: {0}")]
    Damaged(&'static str),
}

impl From<DirtySet> for Encoded {
    fn from(set: DirtySet) -> Self {
        let ranges = set.ranges();
        let mut lengths = Vec::with_capacity(2 * ranges.len());
        for (index, range) in ranges.iter().enumerate() {
            lengths.push(range.end().abs_diff(range.start()));
            lengths.extend(ranges.get(index + 1).map(|next| next.start().abs_diff(range.end())));
        }
        Self { version: VERSION, start: ranges.first().map_or(0, |range| range.start()), lengths }
    }
}

impl TryFrom<Encoded> for DirtySet {
    type Error = EncodingError;

    fn try_from(encoded: Encoded) -> Result<Self, EncodingError> {
        if encoded.version != VERSION {
            return Err(EncodingError::LaterVersion(encoded.version));
        }
        let mut ranges = Vec::with_capacity(encoded.lengths.len().div_ceil(2));
        let mut at = encoded.start;
        for (index, &length) in encoded.lengths.iter().enumerate() {
            let next = at
                .checked_add_unsigned(length)
                .ok_or(EncodingError::Damaged("a range ends beyond all instants"))?;
            // The range of the last instant alone has no length.
            if next == at && next != i64::MAX {
                return Err(EncodingError::Damaged("a range or a gap is empty"));
            }
            if index % 2 == 0 {
                ranges.push(InstantRange::new(at, next));
            }
            at = next;
        }
        if encoded.lengths.len().is_multiple_of(2) && !encoded.lengths.is_empty() {
            return Err(EncodingError::Damaged("there is a gap after the last range"));
        }
        Ok(Self::of_runs(ranges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(text: &str) -> Result<DirtySet, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_set_is_stored_as_lengths_and_read_again() {
        for (ranges, text) in [
            (vec![], r#"{"version":1,"start":0,"lengths":[]}"#),
            (vec![(-5, 10), (20, 30)], r#"{"version":1,"start":-5,"lengths":[15,10,10]}"#),
            (
                vec![(i64::MIN, i64::MAX)],
                r#"{"version":1,"start":-9223372036854775808,"lengths":[18446744073709551615]}"#,
            ),
            (
                vec![(i64::MIN, 0), (i64::MAX, i64::MAX)],
                r#"{"version":1,"start":-9223372036854775808,"lengths":[9223372036854775808,9223372036854775807,0]}"#,
            ),
        ] {
            let set: DirtySet = ranges.iter().map(|&(start, end)| InstantRange::new(start, end)).collect();
            assert_eq!(serde_json::to_string(&set).unwrap(), text);
            assert_eq!(stored(text).unwrap(), set);
        }
    }

    #[test]
    fn what_is_damaged_or_from_a_later_version_is_refused() {
        for (text, said) in [
            (r#"{"version":2,"start":0,"lengths":[1]}"#, "later version (2; this one reads 1)"),
            (r#"{"version":1,"start":0,"lengths":[1,1]}"#, "a gap after the last range"),
            (r#"{"version":1,"start":0,"lengths":[1,0,1]}"#, "a range or a gap is empty"),
            (r#"{"version":1,"start":1,"lengths":[9223372036854775807]}"#, "beyond all instants"),
            (r#"{"version":1,"start":0,"lengths":[-1]}"#, "invalid value"),
        ] {
            let error = stored(text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}

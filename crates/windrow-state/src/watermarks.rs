//! Sequence numbers per region.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

/// A shard of a source that has its own sequence.
pub type RegionId = u64;

/// The number of a commit in a region; 0 is before the first.
pub type Sequence = u64;

/// A sequence for each region of a source: what was read, or what is there to read.
///
/// ```
/// use windrow_state::Watermarks;
///
/// let seen = Watermarks::of(0, 7);
/// assert_eq!(seen.get(0), 7);
/// assert_eq!(seen.get(1), 0, "nothing of an unknown region was read");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Watermarks(BTreeMap<RegionId, Sequence>);

impl Watermarks {
    /// Nothing of any region.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// One region's sequence.
    #[must_use]
    pub fn of(region: RegionId, sequence: Sequence) -> Self {
        Self(BTreeMap::from([(region, sequence)]))
    }

    /// The sequence of `region`; 0 where it is not named.
    #[must_use]
    pub fn get(&self, region: RegionId) -> Sequence {
        self.0.get(&region).copied().unwrap_or(0)
    }

    /// Whether no region is named.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    /// The regions and their sequences, by region.
    pub fn iter(&self) -> impl Iterator<Item = (RegionId, Sequence)> + '_ {
        self.0.iter().map(|(&region, &sequence)| (region, sequence))
    }

    /// The regions that are named.
    #[must_use]
    pub fn regions(&self) -> BTreeSet<RegionId> {
        self.0.keys().copied().collect()
    }

    /// These watermarks, with those of `regions` as `newer` has them.
    #[must_use]
    pub fn advanced(&self, newer: &Self, regions: &BTreeSet<RegionId>) -> Self {
        let of = |region: &RegionId| newer.0.get(region).map(|&sequence| (*region, sequence));
        let mut advanced = self.clone();
        advanced.0.extend(regions.iter().filter_map(of));
        advanced
    }

    /// Whether every region that `earlier` names is here, at or past its sequence there.
    #[must_use]
    pub fn covers(&self, earlier: &Self) -> bool {
        earlier.0.iter().all(|(region, sequence)| self.0.get(region).is_some_and(|own| own >= sequence))
    }
}

impl FromIterator<(RegionId, Sequence)> for Watermarks {
    fn from_iter<T: IntoIterator<Item = (RegionId, Sequence)>>(iter: T) -> Self {
        Self(iter.into_iter().collect())
    }
}

impl fmt::Display for Watermarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (region, sequence) in self.iter() {
            write!(f, "{separator}{region}:{sequence}")?;
            separator = ", ";
        }
        Ok(())
    }
}

/// The commits `after < sequence <= upto` of each region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SequenceRange {
    /// Exclusive lower bounds.
    pub after: Watermarks,
    /// Inclusive upper bounds.
    pub upto: Watermarks,
}

impl SequenceRange {
    /// The bounds of one region.
    #[must_use]
    pub fn of_region(&self, region: RegionId) -> (Sequence, Sequence) {
        (self.after.get(region), self.upto.get(region))
    }

    /// Whether there is nothing in the range.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.upto.iter().all(|(region, upto)| self.after.get(region) >= upto)
    }
}

//! Breadth-first search of the worlds that can be reached, so that what is found is found by the shortest way.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::REFRESHES;
use super::world::{Setup, World};

/// What a search has seen.
pub(super) struct Explored {
    pub(super) states: usize,
    /// The greatest number of events on the shortest way to a state.
    pub(super) depth: usize,
    /// The greatest number of refreshes from a state to rest.
    pub(super) refreshes: usize,
    /// What refreshes led to.
    pub(super) labels: BTreeSet<String>,
}

/// A state that must not be, and the shortest way to it.
#[derive(Debug)]
pub(super) struct Violation {
    setup: Setup,
    pub(super) trace: Vec<String>,
    what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}:", self.setup)?;
        for (number, event) in self.trace.iter().enumerate() {
            writeln!(f, "{:3}. {event}", number + 1)?;
        }
        write!(f, "     {}", self.what)
    }
}

/// Two hashes of a world stand for it: among 10⁹ of 128 bits, the chance that any two are the same is below 10⁻²⁰.
type Fingerprint = (u64, u64);

fn fingerprint(world: &World) -> Fingerprint {
    let of = |seed: u64| {
        let mut hasher = DefaultHasher::new();
        seed.hash(&mut hasher);
        world.hash(&mut hasher);
        hasher.finish()
    };
    (of(1), of(2))
}

/// The way a state was first reached: from which, and by its how-manieth event.
type Origins = HashMap<Fingerprint, Option<(Fingerprint, u16)>>;

/// Visits all states of a setup, nearest first.
pub(super) fn explore(setup: Setup) -> Result<Explored, Violation> {
    let mut origins = Origins::new();
    let mut explored = Explored { states: 0, depth: 0, refreshes: 0, labels: BTreeSet::new() };
    let first = World::new(setup);
    origins.insert(fingerprint(&first), None);
    let mut level = vec![first];
    while !level.is_empty() {
        let mut next_level = Vec::new();
        for world in level {
            let here = fingerprint(&world);
            let fail = |what: String, origins: &Origins| Violation {
                setup,
                trace: trace(setup, origins, here),
                what,
            };
            if let Err(what) = world.check() {
                return Err(fail(what, &origins));
            }
            match world.rest() {
                Ok(refreshes) if refreshes <= REFRESHES => {
                    explored.refreshes = explored.refreshes.max(refreshes)
                }
                Ok(refreshes) => {
                    return Err(fail(format!("it takes {refreshes} refreshes to come to rest"), &origins));
                }
                Err(what) => return Err(fail(format!("left to itself, {what}"), &origins)),
            }
            for (number, event) in world.events().into_iter().enumerate() {
                let (next, label) = world.after(&event);
                explored.labels.extend(label);
                let there = fingerprint(&next);
                if let std::collections::hash_map::Entry::Vacant(entry) = origins.entry(there) {
                    entry.insert(Some((here, number as u16)));
                    next_level.push(next);
                }
            }
        }
        explored.depth += 1;
        level = next_level;
    }
    explored.states = origins.len();
    Ok(explored)
}

/// The events on the way to a state.
fn trace(setup: Setup, origins: &Origins, mut at: Fingerprint) -> Vec<String> {
    let mut numbers = Vec::new();
    while let Some(Some((before, number))) = origins.get(&at) {
        numbers.push(*number);
        at = *before;
    }
    let mut world = World::new(setup);
    let mut events = Vec::new();
    for number in numbers.into_iter().rev() {
        let event = world.events().swap_remove(number.into());
        let (next, label) = world.after(&event);
        events.push(match label {
            Some(label) => format!("{event} ({label})"),
            None => event.to_string(),
        });
        world = next;
    }
    events
}

//! What the values of a window expression tell about it.

use windrow_time::{InstantRange, TimeUnit, Window, Zone};

use crate::label::Label;

/// The years 1700 and 2200, in seconds.
const YEARS: std::ops::Range<i64> = -8_520_336_000..7_258_118_400;
/// The instants around which probes lie at all scales: new year 1970, leap days and ends of years far apart, in seconds.
const CENTRES: [i64; 5] = [0, 1_709_210_096, -1, -2_203_891_200, 7_258_118_399];

/// Instants at which an expression that does not grow with time shows it, sorted.
///
/// They are the ends of what the unit can hold; from each of some centres, steps of 1 to 9 times every power of ten, so
/// that a function of any period is seen to fall back; every quarter of an hour of a leap year; every month from 1700 to
/// 2200; both sides of all changes of clocks in the zones, as instants and as local times; and those that are `named`.
pub(crate) fn probes(unit: TimeUnit, zones: &[Zone], named: &[i64]) -> Vec<i64> {
    let new_year_2024 = 1_704_067_200;
    let mut probes = vec![i64::MIN, i64::MAX];
    let in_unit = |second: i64| second.checked_mul(unit.per_second());
    probes.extend((0..366 * 96).filter_map(|k| in_unit(new_year_2024 + k * 900)));
    probes.extend(YEARS.step_by(2_592_001).filter_map(in_unit));
    for centre in CENTRES.into_iter().filter_map(in_unit) {
        let steps =
            (0..19).flat_map(|power| (0..10_i64).filter_map(move |k| k.checked_mul(10_i64.pow(power))));
        probes.extend(steps.flat_map(|step| [centre.saturating_add(step), centre.saturating_sub(step)]));
    }
    probes.extend(clock_changes(unit, zones));
    probes.extend(named.iter().flat_map(|&t| [t.saturating_sub(1), t, t.saturating_add(1)]));
    probes.sort_unstable();
    probes.dedup();
    probes
}

/// Instants on both sides of the changes of clocks.
fn clock_changes(unit: TimeUnit, zones: &[Zone]) -> Vec<i64> {
    let mut found = Vec::new();
    for zone in zones {
        let mut at = YEARS.start;
        while let Some(change) = zone.next_change(at, YEARS.end) {
            let (before, after) = (zone.offset_at(change - 1), zone.offset_at(change));
            for second in [change, change + before, change + after] {
                let Some(instant) = second.checked_mul(unit.per_second()) else { continue };
                found.extend([instant.saturating_sub(1), instant, instant.saturating_add(unit.per_second())]);
            }
            at = change;
        }
    }
    found
}

/// What the values at the probes show.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// They never decrease, and there is one from the first instant that has one to the last.
    Monotone,
    Decreasing,
    /// There is none at some instant between two that have one.
    Hole,
    /// There is none at all.
    Nothing,
}

pub(crate) fn shown(label: &Label, probes: &[i64]) -> Shown {
    let labels = label.at_all(probes);
    let defined: Vec<i64> = labels.iter().copied().flatten().collect();
    let first = labels.iter().position(Option::is_some);
    let last = labels.iter().rposition(Option::is_some);
    let (Some(first), Some(last)) = (first, last) else { return Shown::Nothing };
    if !defined.is_sorted() {
        Shown::Decreasing
    } else if labels[first..=last].iter().any(Option::is_none) {
        Shown::Hole
    } else {
        Shown::Monotone
    }
}

/// Whether the values agree with the windows, at all changes of clocks and some other probes: those in a window are from
/// that at its begin on, and before that at its end.
pub(crate) fn agrees(window: &Window, label: &Label, probes: &[i64], zones: &[Zone]) -> bool {
    let some = probes.iter().copied().step_by(29);
    let ranges: Vec<(i64, InstantRange)> = some
        .chain(clock_changes(label.unit(), zones))
        .map(|instant| (instant, window.range_of(instant)))
        // What is beyond the ends of the unit has no value.
        .filter(|(_, range)| !range.is_saturated())
        .collect();
    let asked: Vec<i64> = ranges
        .iter()
        .flat_map(|&(instant, range)| [range.start() - 1, range.start(), instant, range.last(), range.end()])
        .collect();
    let labels = label.at_all(&asked);
    labels.as_chunks::<5>().0.iter().all(|&[before, start, inside, last, after]| {
        let inside = [start, inside, last].into_iter().flatten();
        // Where local times do not occur, the begin of a window may have no value, but then no row has it.
        let least = start.or(inside.clone().min());
        before.is_none_or(|before| least.is_none_or(|least| before < least))
            && inside.clone().all(|value| least.is_none_or(|least| least <= value))
            && after.is_none_or(|after| inside.clone().all(|value| value < after))
    })
}

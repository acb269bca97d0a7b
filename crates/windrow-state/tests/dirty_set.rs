//! The dirty set does what its operations say: against a naive set of window numbers, and nothing that was marked is lost.

use std::collections::BTreeSet;

use proptest::prelude::*;
use windrow_state::{ChunkLimits, DirtySet};
use windrow_time::{InstantRange, TimeUnit, Window};

fn set(ranges: &[(i64, i64)]) -> DirtySet {
    ranges.iter().map(|&(start, end)| InstantRange::new(start, end)).collect()
}

#[test]
fn the_last_instant_can_be_marked_and_subtracted() {
    for last in
        [InstantRange::new(i64::MAX - 10, i64::MAX), InstantRange::new(i64::MAX, i64::MAX), InstantRange::ALL]
    {
        let mut dirty = DirtySet::default();
        dirty.mark(last);
        assert_eq!(dirty.ranges(), [last]);
        assert!(!dirty.is_empty());
        dirty.subtract(&DirtySet::from(vec![last]));
        assert!(dirty.is_empty(), "{dirty}");
    }
}

#[test]
fn too_many_ranges_are_joined_smallest_gap_first_and_only_as_needed() {
    let window = Window::fixed(0, 1).unwrap();
    let dirty = set(&[(0, 1), (3, 4), (5, 6), (20, 21)]);
    let limits = ChunkLimits { max_filters_per_query: 3, windows_per_query: 100, merge_gap_windows: 3 };
    assert_eq!(dirty.choose_chunk(&window, limits).unwrap(), set(&[(0, 1), (3, 6), (20, 21)]));
    let narrow = ChunkLimits { max_filters_per_query: 1, ..limits };
    assert_eq!(dirty.choose_chunk(&window, narrow).unwrap(), set(&[(0, 6)]));
    let never = ChunkLimits { merge_gap_windows: 0, ..narrow };
    assert_eq!(dirty.choose_chunk(&window, never).unwrap(), set(&[(0, 1)]));
}

#[test]
fn of_very_many_ranges_all_gaps_that_may_be_are_closed() {
    let window = Window::fixed(0, 1).unwrap();
    let dirty: DirtySet = (0..1_000).map(|k| InstantRange::new(10 * k, 10 * k + 1 + 6 * (k % 2))).collect();
    let limits = ChunkLimits { max_filters_per_query: 2, windows_per_query: 100, merge_gap_windows: 3 };
    // After every odd range there are three clean windows, after every even one nine.
    assert_eq!(dirty.choose_chunk(&window, limits).unwrap(), set(&[(0, 1), (10, 21)]));
}

#[test]
fn ten_years_of_seconds_are_one_range_and_are_handed_out_in_chunks() {
    let window = Window::fixed(0, 1).unwrap();
    let mut dirty = set(&[(0, 315_360_000)]);
    let limits = ChunkLimits { windows_per_query: 10_000_000, ..ChunkLimits::default() };
    let mut chunks = 0;
    while !dirty.is_empty() {
        let chunk = dirty.choose_chunk(&window, limits).unwrap();
        dirty.subtract(&chunk);
        chunks += 1;
    }
    assert_eq!(chunks, 32);
}

#[test]
fn a_chunk_of_calendar_windows_is_cut_at_the_begin_of_a_month() {
    let month = Window::months(1, TimeUnit::Second).unwrap();
    let year = month.align_outwards(InstantRange::new(0, 365 * 86_400)).unwrap();
    let dirty = DirtySet::from(vec![year]);
    let limits = ChunkLimits { windows_per_query: 5, ..ChunkLimits::default() };
    let chunk = dirty.choose_chunk(&month, limits).unwrap();
    assert_eq!(chunk.ranges(), [InstantRange::new(0, 151 * 86_400)], "January to May");
}

#[test]
fn a_clone_is_not_changed_by_what_happens_to_the_other() {
    let first = set(&[(0, 10), (20, 30), (40, 50)]);
    let mut second = first.clone();
    second.subtract(&set(&[(0, 25)]));
    second.mark(InstantRange::new(60, 70));
    assert_eq!(first, set(&[(0, 10), (20, 30), (40, 50)]));
    assert_eq!(second, set(&[(25, 30), (40, 50), (60, 70)]));
}

#[derive(Debug, Clone)]
enum Operation {
    Mark(i64, i64),
    MarkAll(Vec<(i64, i64)>),
    Join(Vec<(i64, i64)>),
    Subtract(Vec<(i64, i64)>),
    TakeChunk { filters: usize, windows: u64, gap: u64 },
    Keep(i64, i64),
    Store,
}

fn operation() -> impl Strategy<Value = Operation> {
    let range = || (0..300_i64, 1..12_i64);
    let ranges = || prop::collection::vec(range(), 0..12);
    prop_oneof![
        8 => range().prop_map(|(start, length)| Operation::Mark(start, length)),
        2 => ranges().prop_map(Operation::MarkAll),
        2 => ranges().prop_map(Operation::Join),
        3 => ranges().prop_map(Operation::Subtract),
        6 => (1..5_usize, 1..20_u64, 0..4_u64)
            .prop_map(|(filters, windows, gap)| Operation::TakeChunk { filters, windows, gap }),
        1 => (0..150_i64, 100..300_i64).prop_map(|(start, length)| Operation::Keep(start, start + length)),
        1 => Just(Operation::Store),
    ]
}

const WIDTH: i64 = 10;

fn range(start: i64, length: i64) -> InstantRange {
    InstantRange::new(start * WIDTH, (start + length) * WIDTH)
}

fn ranges(list: &[(i64, i64)]) -> Vec<InstantRange> {
    list.iter().map(|&(start, length)| range(start, length)).collect()
}

fn numbers(ranges: &[InstantRange]) -> BTreeSet<i64> {
    ranges.iter().flat_map(|range| range.start() / WIDTH..range.end() / WIDTH).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Every operation does to the set of window numbers what its name says, and marked = taken + remaining + expired.
    #[test]
    fn the_set_equals_a_naive_set_of_window_numbers(operations in prop::collection::vec(operation(), 1..3_000)) {
        let window = Window::fixed(0, WIDTH).unwrap();
        let mut dirty = DirtySet::default();
        let mut naive: BTreeSet<i64> = BTreeSet::new();
        for operation in operations {
            let before = naive.clone();
            match operation {
                Operation::Mark(start, length) => {
                    dirty.mark(range(start, length));
                    naive.extend(start..start + length);
                }
                Operation::MarkAll(list) => {
                    dirty.mark_all(ranges(&list));
                    naive.extend(numbers(&ranges(&list)));
                }
                Operation::Join(list) => {
                    dirty.join(&DirtySet::from(ranges(&list)));
                    naive.extend(numbers(&ranges(&list)));
                    prop_assert!(naive.is_superset(&before), "a join never shrinks");
                }
                Operation::Subtract(list) => {
                    dirty.subtract(&DirtySet::from(ranges(&list)));
                    naive.retain(|number| !numbers(&ranges(&list)).contains(number));
                }
                Operation::TakeChunk { filters, windows, gap } => {
                    let limits = ChunkLimits {
                        max_filters_per_query: filters, windows_per_query: windows, merge_gap_windows: gap,
                    };
                    let chunk = dirty.choose_chunk(&window, limits).unwrap();
                    let taken = numbers(chunk.ranges());
                    prop_assert!(chunk.ranges().len() <= filters);
                    prop_assert!(taken.len() as u64 <= windows);
                    prop_assert_eq!(taken.is_empty(), naive.is_empty());
                    // Clean windows are only those of short gaps, and the earliest windows come first.
                    let clean: BTreeSet<i64> = taken.difference(&naive).copied().collect();
                    prop_assert!(clean.iter().all(|&number| (number - gap as i64..number + gap as i64 + 1)
                        .any(|near| naive.contains(&near))));
                    let end = taken.last().copied().unwrap_or(0);
                    prop_assert!(naive.iter().filter(|&&number| number <= end).all(|number| taken.contains(number)));
                    dirty.subtract(&chunk);
                    naive.retain(|number| !taken.contains(number));
                    let remaining = numbers(dirty.ranges());
                    prop_assert_eq!(&before, &remaining.union(&taken).copied()
                        .filter(|number| before.contains(number)).collect::<BTreeSet<_>>());
                }
                Operation::Keep(start, end) => {
                    dirty.keep(InstantRange::new(start * WIDTH, end * WIDTH));
                    naive.retain(|&number| start <= number && number < end);
                }
                Operation::Store => {
                    let text = serde_json::to_string(&dirty).unwrap();
                    dirty = serde_json::from_str(&text).unwrap();
                }
            }
            prop_assert_eq!(&numbers(dirty.ranges()), &naive);
            prop_assert!(dirty.ranges().windows(2).all(|pair| pair[0].end() < pair[1].start()));
            prop_assert_eq!(dirty.is_empty(), naive.is_empty());
            prop_assert_eq!(dirty.windows(&window, u64::MAX).unwrap(), naive.len() as u64);
            let span = dirty.span().map(|span| (span.start() / WIDTH, span.end() / WIDTH - 1));
            prop_assert_eq!(span, naive.first().copied().zip(naive.last().copied()));
            let cover = numbers(dirty.cover(3).ranges());
            prop_assert!(dirty.cover(3).ranges().len() <= 3 && cover.is_superset(&naive));
            let other = DirtySet::from(vec![range(100, 20)]);
            prop_assert_eq!(dirty.overlaps(&other), naive.range(100..120).next().is_some());
        }
    }

    /// Windows of a calendar are taken whole, and all of them, in chunks of any size.
    #[test]
    fn calendar_windows_are_handed_out_whole(
        days in prop::collection::vec(0..3_000_i64, 1..40), windows in 1..6_u64, filters in 1..4_usize,
    ) {
        let zone = "Australia/Lord_Howe".parse().unwrap();
        let window = Window::calendar(windrow_time::CalendarStep::Months(1), zone, TimeUnit::Second).unwrap();
        let marked: BTreeSet<InstantRange> = days.iter().map(|day| window.range_of(day * 86_400)).collect();
        let mut dirty: DirtySet = marked.iter().copied().collect();
        let limits = ChunkLimits { max_filters_per_query: filters, windows_per_query: windows, merge_gap_windows: 2 };
        let mut taken = BTreeSet::new();
        while !dirty.is_empty() {
            let chunk = dirty.choose_chunk(&window, limits).unwrap();
            let months: Vec<InstantRange> = chunk.ranges().iter()
                .flat_map(|&range| window.windows_in(range)).map(|month| month.unwrap()).collect();
            prop_assert!(months.len() as u64 <= windows && !months.is_empty());
            prop_assert!(chunk.ranges().iter().all(|&range| window.align_outwards(range).unwrap() == range));
            taken.extend(months);
            dirty.subtract(&chunk);
        }
        prop_assert!(taken.is_superset(&marked));
    }
}

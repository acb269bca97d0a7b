//! A million single-window marks in random order, merged into ranges and taken in chunks until nothing is left: against
//! sorting the same numbers and passing over them once, and against a B-tree that is cloned for every chunk.
//!
//! `cargo bench -p windrow-state`; `cargo xtask bench merger` also compares the medians with their targets.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, criterion_group, criterion_main};
use windrow_state::{ChunkLimits, DirtyMarks, DirtySet};
use windrow_time::{InstantRange, Window};

const WIDTH: i64 = 60_000;
/// Windows to a mark: most ranges have one window or two.
const SPARSENESS: u64 = 10;

/// The begins of windows, in random order.
fn marks(count: u64) -> Vec<i64> {
    // A linear congruential generator modulo 2⁶⁴ (D. Knuth: "The Art of Computer Programming", volume 2).
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % (count * SPARSENESS)
    };
    (0..count).map(|_| next() as i64 * WIDTH).collect()
}

/// How many chunks the dirty set is taken in.
fn ours(marks: &[i64], window: &Window) -> usize {
    let mut collected = DirtyMarks::default();
    for &start in marks {
        collected.push(InstantRange::new(start, start + WIDTH));
    }
    let mut dirty = collected.into_set();
    let mut chunks = 0;
    while !dirty.is_empty() {
        let chunk = dirty.choose_chunk(window, ChunkLimits::default()).expect("a fixed grid");
        dirty.subtract(&chunk);
        chunks += 1;
    }
    chunks
}

/// How many ranges the marks are.
fn sort_and_pass(mut marks: Vec<i64>) -> usize {
    marks.sort_unstable();
    let mut ranges = 0;
    let mut end = i64::MIN;
    for start in marks {
        ranges += usize::from(start > end);
        end = start + WIDTH;
    }
    ranges
}

/// The same operations on a B-tree, of which a refresh works on a copy.
fn b_tree(marks: &[i64]) -> usize {
    let mut dirty: BTreeMap<i64, i64> = BTreeMap::new();
    for &start in marks {
        let (mut from, mut to) = (start, start + WIDTH);
        if let Some((&before, &end)) = dirty.range(..=from).next_back().filter(|&(_, &end)| end >= from) {
            (from, to) = (before, to.max(end));
        }
        while let Some((&next, &end)) = dirty.range(from..=to).next() {
            dirty.remove(&next);
            to = to.max(end);
        }
        dirty.insert(from, to);
    }
    let limits = ChunkLimits::default();
    let mut chunks = 0;
    while !dirty.is_empty() {
        let mut copy = dirty.clone();
        let mut filters = 0;
        let mut end = i64::MIN;
        while let Some(first) = copy.first_entry() {
            let gap = first.key().saturating_sub(end) / WIDTH;
            filters += usize::from(gap > limits.merge_gap_windows as i64);
            if filters > limits.max_filters_per_query {
                break;
            }
            end = *first.get();
            first.remove();
        }
        dirty = copy;
        chunks += 1;
    }
    chunks
}

/// A bit for each window from the first to the last, and chunks by walking over it.
fn bitmap(marks: &[i64]) -> usize {
    let limits = ChunkLimits::default();
    let windows = marks.iter().max().map_or(0, |last| last / WIDTH + 1) as usize;
    let mut bits = vec![0_u64; windows.div_ceil(64)];
    for start in marks {
        let number = (start / WIDTH) as usize;
        bits[number / 64] |= 1 << (number % 64);
    }
    let (mut chunks, mut filters, mut last) = (0, limits.max_filters_per_query, None);
    for (index, &word) in bits.iter().enumerate() {
        let mut word = word;
        while word != 0 {
            let number = index * 64 + word.trailing_zeros() as usize;
            word &= word - 1;
            if last.is_none_or(|last| number - last > limits.merge_gap_windows as usize + 1) {
                filters += 1;
                if filters > limits.max_filters_per_query {
                    chunks += 1;
                    filters = 1;
                }
            }
            last = Some(number);
        }
    }
    chunks
}

/// Marks inserted one by one into the sorted ranges.
fn insert_in_place(marks: &[i64]) -> usize {
    let mut dirty = DirtySet::default();
    for &start in marks {
        dirty.mark(InstantRange::new(start, start + WIDTH));
    }
    dirty.ranges().len()
}

fn merger(criterion: &mut Criterion) {
    let window = Window::fixed(0, WIDTH).expect("a width");
    let mut group = criterion.benchmark_group("merger");
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    let million = marks(1_000_000);
    group.bench_function(BenchmarkId::new("dirty_set", 1000000), |bencher| {
        bencher.iter(|| ours(black_box(&million), &window))
    });
    group.bench_function(BenchmarkId::new("sort_and_pass", 1000000), |bencher| {
        bencher.iter_batched(|| million.clone(), sort_and_pass, BatchSize::LargeInput);
    });
    let few = marks(20_000);
    assert_eq!(ours(&few, &window), b_tree(&few), "all take the same chunks");
    assert_eq!(ours(&few, &window), bitmap(&few), "all take the same chunks");
    group.bench_function(BenchmarkId::new("dirty_set", 20000), |bencher| {
        bencher.iter(|| ours(black_box(&few), &window))
    });
    group.bench_function(BenchmarkId::new("bitmap", 1000000), |bencher| {
        bencher.iter(|| bitmap(black_box(&million)))
    });
    group.bench_function(BenchmarkId::new("insert_in_place", 20000), |bencher| {
        bencher.iter(|| insert_in_place(black_box(&few)))
    });
    group.bench_function(BenchmarkId::new("b_tree", 20000), |bencher| {
        bencher.iter(|| b_tree(black_box(&few)))
    });
    group.finish();
}

criterion_group!(benches, merger);
criterion_main!(benches);

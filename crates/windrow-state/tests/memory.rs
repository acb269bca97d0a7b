//! What marks and a dirty set take in memory: some bytes a range, however many windows a range has.

use windrow_state::{ChunkLimits, DirtyMarks};
use windrow_time::{InstantRange, Window};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

#[test]
fn a_range_takes_at_most_64_bytes_from_mark_to_chunk() {
    let window = Window::fixed(0, 1).unwrap();
    // Single windows, ranges of a million windows each, and one range of most windows that there are.
    for (count, windows, stride) in
        [(1_000_000, 1, 2), (300_000, 1_000_000, 7_000_001), (100, 1 << 54, 1 << 55)]
    {
        let profiler = dhat::Profiler::builder().testing().build();
        let mut marks = DirtyMarks::default();
        // In no order: 7 919 has no divisor in common with the counts.
        for mark in 0..count {
            let start = (mark * 7_919 % count) * stride;
            marks.push(InstantRange::new(start, start + windows));
        }
        let mut dirty = marks.into_set();
        assert_eq!(dirty.ranges().len(), count as usize);
        for _ in 0..1_000 {
            let chunk = dirty.choose_chunk(&window, ChunkLimits::default()).unwrap();
            dirty.subtract(&chunk);
        }
        let peak = dhat::HeapStats::get().max_bytes;
        drop(profiler);
        assert!(peak <= 64 * count as usize, "{peak} bytes for {count} ranges of {windows} windows");
    }
}

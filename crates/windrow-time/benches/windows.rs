//! Marking ten million instants: against summing the same array, and a calendar in a time zone against the fixed grid.
//!
//! `cargo bench -p windrow-time`; `cargo xtask bench windows` also compares the medians with their targets.

use std::hint::black_box;
use std::time::Duration;

use arrow_arith::aggregate::sum;
use arrow_array::TimestampMillisecondArray;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use windrow_time::{CalendarStep, TimeUnit, Window};

const INSTANTS: usize = 10_000_000;
const YEAR_MILLIS: i64 = 365 * 86_400_000;
/// 2013-01-01T00:00:00Z.
const START: i64 = 1_356_998_400_000;
const DAY: i64 = 86_400_000;

/// The same instants of a year in order and shuffled, and instants of three days in any order.
fn arrays() -> [(&'static str, TimestampMillisecondArray); 3] {
    let step = YEAR_MILLIS / INSTANTS as i64;
    let in_order: Vec<i64> = (0..INSTANTS as i64).map(|k| START + k * step).collect();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut shuffled = in_order.clone();
    for last in (1..shuffled.len()).rev() {
        shuffled.swap(last, random.below(last as u64 + 1) as usize);
    }
    let three = (0..INSTANTS)
        .map(|_| START + random.below(3) as i64 * DAY + random.below(DAY as u64) as i64)
        .collect();
    [("in_order", in_order), ("shuffled", shuffled), ("three_windows", three)]
        .map(|(name, values)| (name, TimestampMillisecondArray::from(values)))
}

/// Xorshift (G. Marsaglia: "Xorshift RNGs", 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn windows(criterion: &mut Criterion) {
    let fixed = |width| Window::fixed(0, width).expect("a width");
    let zone = "America/New_York".parse().expect("a zone");
    let kinds = [
        // Hardly two instants in one window.
        ("fixed_seconds", fixed(1_000)),
        ("fixed_hours", fixed(3_600_000)),
        ("fixed_days", fixed(DAY)),
        ("zoned_days", Window::calendar(CalendarStep::Days(1), zone, TimeUnit::Millisecond).expect("a step")),
    ];
    let mut group = criterion.benchmark_group("windows");
    group
        .throughput(Throughput::Elements(INSTANTS as u64))
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(3));
    for (order, array) in arrays() {
        group.bench_with_input(BenchmarkId::new("sum", order), &array, |bencher, array| {
            bencher.iter(|| sum(black_box(array)));
        });
        for (name, window) in &kinds {
            group.bench_with_input(BenchmarkId::new(*name, order), &array, |bencher, array| {
                bencher.iter(|| window.mark(black_box(array)).expect("timestamps"));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, windows);
criterion_main!(benches);

//! The windows found for an expression are those that DataFusion evaluates it to: the window of an instant contains it, all
//! instants in it have one value, the instants just outside have others, and the value is the window's first instant.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, TimeUnit as ArrowUnit};
use datafusion::prelude::SessionContext;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use windrow_plan::{TimeWindow, find_time_window};
use windrow_time::{InstantRange, TimeUnit, Window, Zone};

/// The years 1700 to 2200, in seconds.
const YEARS: std::ops::Range<i64> = -8_520_336_000..7_258_118_400;

const UNITS: [ArrowUnit; 4] =
    [ArrowUnit::Second, ArrowUnit::Millisecond, ArrowUnit::Microsecond, ArrowUnit::Nanosecond];

/// Zones in which every hour, day, week, month and year has one value.
const ZONES: [&str; 16] = [
    "UTC",
    "+05:45",
    "-09:30",
    "America/New_York",
    "Europe/Paris",
    "Europe/London",
    "Asia/Kathmandu",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "America/Sao_Paulo",
    "America/Havana",
    "Africa/Monrovia",
    "Asia/Manila",
    "Asia/Gaza",
    "Antarctica/Troll",
];

/// Zones whose clocks were put back into the hour, day or year before.
const ODD_ZONES: [&str; 5] =
    ["America/St_Johns", "America/Phoenix", "America/Anchorage", "Asia/Macau", "Pacific/Chatham"];

/// Window expressions of a column without a zone, and whether their value is the first instant of the window.
const OF_NAIVE: [(&str, bool); 37] = [
    ("ts", true),
    ("date_bin(INTERVAL '1 second', ts)", true),
    ("date_bin(INTERVAL '7 seconds', ts)", true),
    ("date_bin(INTERVAL '15 minutes', ts)", true),
    ("date_bin(INTERVAL '1 hour', ts)", true),
    ("date_bin(INTERVAL '36 hours', ts)", true),
    ("date_bin(INTERVAL '1 week', ts)", true),
    ("date_bin(INTERVAL '90 minutes', ts, TIMESTAMP '2150-06-15T12:34:56')", true),
    ("date_bin(INTERVAL '11 days', ts, TIMESTAMP '1750-01-01T00:10:00')", true),
    ("date_bin(INTERVAL '1 month', ts)", true),
    ("date_bin(INTERVAL '5 months', ts)", true),
    ("date_bin(INTERVAL '1 year', ts)", true),
    ("date_bin(INTERVAL '1 month', ts, TIMESTAMP '2000-01-31T10:00:00')", true),
    ("date_bin(INTERVAL '3 months', ts, TIMESTAMP '2150-02-28T23:59:59')", true),
    ("date_bin(INTERVAL '250 milliseconds', ts)", false),
    ("date_trunc('second', ts)", true),
    ("date_trunc('minute', ts)", true),
    ("date_trunc('hour', ts)", true),
    ("date_trunc('day', ts)", true),
    ("date_trunc('week', ts)", true),
    ("date_trunc('month', ts)", true),
    ("date_trunc('quarter', ts)", true),
    ("date_trunc('year', ts)", true),
    ("date_trunc('hour', ts)::timestamp(0)", true),
    ("date_bin(INTERVAL '1 hour', ts::timestamp(9))", true),
    ("date_trunc('day', ts::timestamp(0))", false),
    ("date_bin(INTERVAL '1 hour', ts) + INTERVAL '1 hour'", false),
    ("date_trunc('day', ts) - INTERVAL '1 millisecond'", false),
    ("date_trunc('month', ts + INTERVAL '6 hours')", false),
    ("INTERVAL '2 days' + date_trunc('week', ts - INTERVAL '2 days')", true),
    ("date_trunc('month', date_bin(INTERVAL '1 hour', ts))", true),
    ("date_bin(INTERVAL '7 minutes', date_trunc('hour', ts))", false),
    ("date_trunc('day', ts AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York')", true),
    ("date_trunc('hour', ts AT TIME ZONE '+05:45')", false),
    ("to_timestamp_seconds(to_unixtime(ts) / 600 * 600)", false),
    ("to_timestamp_seconds(to_unixtime(ts) - to_unixtime(ts) % 3600)", false),
    ("to_timestamp_millis(CAST(ts AS BIGINT) / 86400)", false),
];

const OF_ZONED: [(&str, bool); 13] = [
    ("ts", true),
    ("date_bin(INTERVAL '1 day', ts)", true),
    ("date_bin(INTERVAL '1 month', ts)", true),
    ("date_trunc('minute', ts)", true),
    ("date_trunc('hour', ts)", true),
    ("date_trunc('day', ts)", true),
    ("date_trunc('week', ts)", true),
    ("date_trunc('month', ts)", true),
    ("date_trunc('quarter', ts)", true),
    ("date_trunc('year', ts)", true),
    ("date_trunc('day', ts AT TIME ZONE 'Australia/Lord_Howe')", true),
    ("date_trunc('week', ts - INTERVAL '6 hours')", false),
    ("date_trunc('month', to_local_time(ts))", false),
];

struct Case {
    session: SessionContext,
    schema: Arc<Schema>,
    expr: String,
    window: TimeWindow,
}

impl Case {
    async fn new(expr: &str, unit: ArrowUnit, zone: Option<&str>) -> Self {
        let column = Field::new("ts", DataType::Timestamp(unit, zone.map(Into::into)), true);
        let schema = Arc::new(Schema::new(vec![column]));
        let session = SessionContext::new();
        session.register_batch("t", RecordBatch::new_empty(Arc::clone(&schema))).expect("a new table");
        let query = format!("SELECT {expr} AS w, count(*) FROM t GROUP BY {expr}");
        let plan = session.state().create_logical_plan(&query).await.expect("a query");
        let window = find_time_window(&plan, &session.state(), |_| Some("ts".into())).expect("a plan");
        let window = window.unwrap_or_else(|reason| panic!("{expr} of {unit:?} in {zone:?}: {reason}"));
        Self { session, schema, expr: expr.to_owned(), window }
    }

    /// What DataFusion evaluates the expression to, in nanoseconds.
    async fn values(&self, instants: &[i64]) -> Vec<Option<i128>> {
        let instants =
            cast(&Int64Array::from(instants.to_vec()), self.schema.field(0).data_type()).expect("instants");
        let rows = RecordBatch::try_new(Arc::clone(&self.schema), vec![instants]).expect("rows");
        self.session.deregister_table("t").expect("a table");
        self.session.register_batch("t", rows).expect("a new table");
        let frame = self.session.sql(&format!("SELECT {} AS w FROM t", self.expr)).await.expect("a query");
        let schema = Arc::clone(frame.schema().inner());
        let rows = concat_batches(&schema, &frame.collect().await.expect("values")).expect("one schema");
        let values = rows.column(0);
        let DataType::Timestamp(unit, _) = values.data_type() else { panic!("a timestamp") };
        let nanos = i128::from(TimeUnit::from(*unit).nanos());
        let values = cast(values, &DataType::Int64).expect("numbers");
        values
            .as_primitive::<Int64Type>()
            .iter()
            .map(|value| value.map(|value| i128::from(value) * nanos))
            .collect()
    }

    fn unit(&self) -> TimeUnit {
        match self.schema.field(0).data_type() {
            DataType::Timestamp(unit, _) => (*unit).into(),
            other => panic!("{other} is no timestamp"),
        }
    }

    /// Checks the windows of these instants; in `odd` zones some hold instants of more than one value.
    async fn check(&self, instants: &[i64], inside: &[Index], names_start: bool, odd: bool) {
        let domain = self.window.domain();
        // Where the expression has no value (too far from the origin of its bins), rows are in no window.
        let (instants, beyond): (Vec<i64>, Vec<i64>) =
            instants.iter().partition(|&&instant| domain.contains(instant));
        assert!(self.values(&beyond).await.iter().all(Option::is_none), "{} beyond {domain}", self.expr);
        let ranges: Vec<InstantRange> =
            instants.iter().map(|&instant| self.window.window().range_of(instant)).collect();
        let mut asked = Vec::new();
        for (index, (&instant, range)) in instants.iter().zip(&ranges).enumerate() {
            assert!(range.contains(instant), "{}: {instant} in {range}", self.expr);
            let width = usize::try_from(range.width().expect("a short window")).expect("a positive width");
            let anywhere = range.start() + inside[index % inside.len()].index(width) as i64;
            asked.extend([range.start() - 1, range.start(), instant, anywhere, range.last(), range.end()]);
        }
        let values: Vec<i128> =
            self.values(&asked).await.into_iter().map(|value| value.expect("a value")).collect();
        let nanos = i128::from(self.unit().nanos());
        for ((range, values), asked) in ranges.iter().zip(values.chunks(6)).zip(asked.chunks(6)) {
            let [before, start, at, anywhere, last, after] = values else { panic!("six values") };
            let context =
                format!("{} over {:?}: {asked:?} in {range}: {values:?}", self.expr, self.schema.field(0));
            let inside = [start, at, anywhere, last];
            assert!(inside.iter().all(|&value| before < value && value < after), "{context}");
            assert!(inside.iter().all(|&value| value >= start), "{context}");
            if !odd {
                assert!(inside.iter().all(|&value| value == start), "{context}");
                let put_forward = *start > i128::from(range.start()) * nanos;
                if names_start && !(put_forward && self.clocks_change_at(range.start())) {
                    assert_eq!(*start, i128::from(range.start()) * nanos, "{context}");
                }
            }
            let labels = self.window.labels_of(*range).expect("labels");
            assert_eq!(self.window.window_labelled(labels.start()).expect("a window"), *range, "{context}");
        }
    }

    fn clocks_change_at(&self, instant: i64) -> bool {
        let DataType::Timestamp(_, Some(zone)) = self.schema.field(0).data_type() else { return false };
        let zone = Zone::from_str(zone).expect("a zone");
        let second = instant.div_euclid(self.unit().per_second());
        zone.offset_at(second - 1) != zone.offset_at(second)
    }
}

/// Instants at and around changes of clocks in the zone.
fn changes(zone: &str, unit: TimeUnit) -> Vec<i64> {
    let zone = Zone::from_str(zone).expect("a zone");
    let mut found = Vec::new();
    let mut at = YEARS.start;
    while let Some(change) = zone.next_change(at, YEARS.end) {
        found.extend(
            [-86_400, -3_600, -1, 0, 60, 1_800, 3_600, 90_000].map(|by| (change + by) * unit.per_second()),
        );
        at = change;
    }
    found
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn windows_of_instants_without_zone_are_what_the_expression_evaluates_to(
        (expr, names_start) in prop::sample::select(OF_NAIVE.to_vec()),
        unit in prop::sample::select(UNITS.to_vec()),
        seconds in prop::collection::vec(YEARS, 40),
        subs in prop::collection::vec(0..1_000_000_000_i64, 40),
        inside in prop::collection::vec(any::<Index>(), 7),
    ) {
        block_on(async {
            let case = Case::new(expr, unit, None).await;
            let per_second = case.unit().per_second();
            let instants: Vec<i64> = seconds.iter().zip(&subs)
                .map(|(second, sub)| second * per_second + sub % per_second)
                .chain([-1, 0, 1, 951_782_399 * per_second, 951_782_400 * per_second])
                .collect();
            case.check(&instants, &inside, names_start, false).await;
        });
    }

    #[test]
    fn windows_of_instants_in_a_zone_are_what_the_expression_evaluates_to(
        (expr, names_start) in prop::sample::select(OF_ZONED.to_vec()),
        unit in prop::sample::select(UNITS.to_vec()),
        zone in prop::sample::select(ZONES.to_vec()),
        seconds in prop::collection::vec(YEARS, 40),
        around in prop::collection::vec(any::<Index>(), 40),
        inside in prop::collection::vec(any::<Index>(), 7),
    ) {
        block_on(async {
            let case = Case::new(expr, unit, Some(zone)).await;
            let per_second = case.unit().per_second();
            let changes = changes(zone, case.unit());
            let around = around.iter().filter(|_| !changes.is_empty()).map(|index| *index.get(&changes));
            let instants: Vec<i64> = seconds.iter().map(|second| second * per_second).chain(around).collect();
            case.check(&instants, &inside, names_start, false).await;
        });
    }
}

#[tokio::test]
async fn windows_keep_values_apart_where_clocks_are_put_back_into_them() {
    for zone in ODD_ZONES {
        for granularity in ["hour", "day", "month", "year"] {
            let case =
                Case::new(&format!("date_trunc('{granularity}', ts)"), ArrowUnit::Second, Some(zone)).await;
            let instants = changes(zone, TimeUnit::Second);
            assert!(matches!(case.window.window(), Window::Calendar(_)), "{granularity} in {zone}");
            case.check(&instants, &some_places(), true, true).await;
        }
    }
}

/// Some places in a window, the same in every run.
fn some_places() -> Vec<Index> {
    let mut runner = TestRunner::deterministic();
    prop::collection::vec(any::<Index>(), 11).new_tree(&mut runner).expect("places").current()
}

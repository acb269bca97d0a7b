//! What every kind of table must do, as checks that each kind's tests run.
//!
//! ```
//! use std::sync::Arc;
//! use windrow_table::{MemoryTable, SinkTable, conformance};
//!
//! # tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
//! conformance::check(async |spec| Arc::new(MemoryTable::new(spec)) as Arc<dyn SinkTable>).await;
//! # });
//! ```

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch, StringArray, TimestampMillisecondArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type, Schema, TimeUnit};
use datafusion::logical_expr::{Operator, col, lit};
use datafusion::physical_expr::expressions::{binary, col as physical_col, lit as physical_lit};
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;
use windrow_state::{DirtySet, Progress, SequenceRange, Watermarks};
use windrow_time::InstantRange;

use crate::{Commit, Committed, ReadBounds, SinkTable, TableError, TableSpec, Write};

type Row = (i64, Option<&'static str>);

/// Runs every check on tables that `make` makes, each of them new and empty.
///
/// # Panics
/// When a table does not do what it must; the message says which check failed.
pub async fn check(make: impl AsyncFn(TableSpec) -> Arc<dyn SinkTable>) {
    let table = async || Fixture(make(spec(false)).await);
    an_empty_table_has_no_rows(table().await).await;
    appended_rows_are_read_and_named_as_appends(table().await).await;
    a_filter_on_the_time_index_gives_the_rows_in_range(table().await).await;
    an_upsert_keeps_the_last_row_of_each_key(table().await).await;
    a_replace_removes_whole_windows(table().await).await;
    a_delete_removes_what_the_condition_holds_for(table().await).await;
    replace_all_leaves_only_the_new_rows(table().await).await;
    a_compaction_changes_nothing(table().await).await;
    an_older_state_is_read_exactly(table().await).await;
    progress_is_committed_with_the_rows(table().await).await;
    a_commit_on_another_state_changes_nothing(table().await).await;
    a_failing_stream_changes_nothing(table().await).await;
    a_row_without_time_index_is_refused(table().await).await;
}

fn spec(append_mode: bool) -> TableSpec {
    let schema = Schema::new(vec![
        Field::new("ts", DataType::Timestamp(TimeUnit::Millisecond, None), false),
        Field::new("Host \"a.b\"", DataType::Utf8, true),
    ]);
    TableSpec::new(Arc::new(schema))
        .and_then(|spec| spec.with_time_index("ts"))
        .and_then(|spec| spec.with_primary_key(&["Host \"a.b\""]))
        .expect("the columns are there")
        .with_append_mode(append_mode)
}

const KEY: [usize; 2] = [1, 0];

struct Fixture(Arc<dyn SinkTable>);

impl Fixture {
    fn commit_of(&self, write: Write, rows: &[Row]) -> Commit {
        let schema = Arc::clone(self.0.spec().schema());
        let times = TimestampMillisecondArray::from_iter_values(rows.iter().map(|row| row.0));
        let hosts = StringArray::from_iter(rows.iter().map(|row| row.1));
        let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(times), Arc::new(hosts)])
            .expect("the columns fit");
        let stream = MemoryStream::try_new(vec![batch], schema, None).expect("a stream");
        Commit { write, rows: Box::pin(stream), progress: None, expected: None }
    }

    async fn write(&self, write: Write, rows: &[Row]) -> Committed {
        self.0.commit(self.commit_of(write, rows)).await.expect("the commit succeeds")
    }

    async fn now(&self) -> Watermarks {
        self.0.watermarks().await.expect("watermarks")
    }

    async fn read(&self, bounds: ReadBounds) -> Vec<(i64, Option<String>)> {
        self.read_where(bounds, None).await
    }

    async fn read_where(&self, bounds: ReadBounds, range: Option<(i64, i64)>) -> Vec<(i64, Option<String>)> {
        let provider = self.0.scan(&bounds).await.expect("a scan");
        let mut frame = SessionContext::new().read_table(provider).expect("a table");
        if let Some((start, end)) = range {
            let instant = |t| lit(ScalarValue::TimestampMillisecond(Some(t), None));
            frame = frame
                .filter(col("ts").gt_eq(instant(start)).and(col("ts").lt(instant(end))))
                .expect("a filter");
        }
        let mut rows = Vec::new();
        for batch in frame.collect().await.expect("rows") {
            assert_eq!(batch.schema().field(0), self.0.spec().schema().field(0), "the declared type is kept");
            let times = cast(batch.column(0), &DataType::Int64).expect("instants");
            let hosts = cast(batch.column(1), &DataType::Utf8).expect("strings");
            let hosts = hosts.as_string::<i32>();
            for (index, time) in times.as_primitive::<Int64Type>().iter().enumerate() {
                let host = hosts.is_valid(index).then(|| hosts.value(index).to_owned());
                rows.push((time.expect("an instant"), host));
            }
        }
        rows.sort();
        rows
    }

    async fn expect(&self, check: &str, rows: &[Row]) {
        assert_eq!(self.read(ReadBounds::Latest).await, owned(rows), "{check}");
    }

    /// The instants that the commits in the range touched: of appends, and of others.
    async fn touched(&self, after: &Watermarks) -> (Vec<i64>, Vec<i64>) {
        let range = SequenceRange { after: after.clone(), upto: self.now().await };
        let changes = self.0.changes(&range, &|_| false).await.expect("changes");
        let instants = |arrays: &[Arc<dyn Array>]| {
            let mut found: Vec<i64> = arrays
                .iter()
                .flat_map(|array| {
                    let array = cast(array, &DataType::Int64).expect("instants");
                    array.as_primitive::<Int64Type>().values().to_vec()
                })
                .collect();
            found.sort_unstable();
            found.dedup();
            found
        };
        (instants(&changes.appended), instants(&changes.rewritten))
    }
}

fn owned(rows: &[Row]) -> Vec<(i64, Option<String>)> {
    let mut rows: Vec<_> = rows.iter().map(|&(t, host)| (t, host.map(str::to_owned))).collect();
    rows.sort();
    rows
}

async fn an_empty_table_has_no_rows(table: Fixture) {
    table.expect("an empty table", &[]).await;
    assert_eq!(table.0.estimate_rows(&[InstantRange::ALL]).await.expect("an estimate"), 0);
    assert_eq!(table.touched(&Watermarks::none()).await, (vec![], vec![]));
}

async fn appended_rows_are_read_and_named_as_appends(table: Fixture) {
    let rows = [(-86_400_000, Some("a")), (5, None), (5, None), (4_000_000_000_000, Some("b"))];
    let first = table.write(Write::Append, &rows[..2]).await;
    let second = table.write(Write::Append, &rows[2..]).await;
    assert_eq!((second.rows_added, second.rows_removed), (2, 0));
    table.expect("appends keep equal rows", &rows).await;
    assert_eq!(table.touched(&first.at).await, (vec![5, 4_000_000_000_000], vec![]));
    let all = table.touched(&Watermarks::none()).await;
    assert_eq!(all, (vec![-86_400_000, 5, 4_000_000_000_000], vec![]));
    let range = SequenceRange { after: first.at, upto: second.at };
    assert_eq!(table.read(ReadBounds::Appended(range)).await, owned(&rows[2..]));
    let estimate = table.0.estimate_rows(&[InstantRange::ALL]).await.expect("an estimate");
    assert_eq!(estimate, 4);
}

async fn a_filter_on_the_time_index_gives_the_rows_in_range(table: Fixture) {
    for start in 0..10 {
        table.write(Write::Append, &[(start * 10, Some("a")), (start * 10 + 9, None)]).await;
    }
    let found = table.read_where(ReadBounds::Latest, Some((19, 31))).await;
    assert_eq!(found, owned(&[(19, None), (20, Some("a")), (29, None), (30, Some("a"))]));
}

async fn an_upsert_keeps_the_last_row_of_each_key(table: Fixture) {
    let upsert = || Write::Upsert { key: KEY.to_vec() };
    let first = table.write(upsert(), &[(1, Some("a")), (2, None), (3, Some("c"))]).await;
    let second = table.write(upsert(), &[(2, None), (2, Some("b")), (2, None)]).await;
    assert_eq!((second.rows_added, second.rows_removed), (2, 1), "NULL agrees with NULL");
    let rows = [(1, Some("a")), (2, None), (2, Some("b")), (3, Some("c"))];
    table.expect("one row for each key", &rows).await;
    let (_, rewritten) = table.touched(&first.at).await;
    assert_eq!(rewritten, [2], "a replaced row is a rewrite, and its neighbours are not");
    let third = table.write(upsert(), &[(9, None)]).await;
    assert_eq!(table.touched(&second.at).await, (vec![9], vec![]), "new keys are appends");
    let range = SequenceRange { after: first.at, upto: third.at };
    let scan = table.0.scan(&ReadBounds::Appended(range)).await;
    assert!(matches!(scan, Err(TableError::NotAppends { .. })), "{scan:?}");
}

async fn a_replace_removes_whole_windows(table: Fixture) {
    let rows = [(0, Some("a")), (10, Some("a")), (19, None), (20, Some("a"))];
    let before = table.write(Write::Append, &rows).await;
    let ranges = vec![InstantRange::new(-5, 0), InstantRange::new(10, 20)];
    let done = table.write(Write::Replace { ranges }, &[(10, Some("new"))]).await;
    assert_eq!(table.touched(&before.at).await, (vec![], vec![10, 19]), "the rows that went or came");
    assert_eq!((done.rows_added, done.rows_removed), (1, 2));
    table.expect("a replace", &[(0, Some("a")), (10, Some("new")), (20, Some("a"))]).await;
    table.write(Write::Replace { ranges: vec![InstantRange::new(20, i64::MAX)] }, &[]).await;
    table.expect("a replace with nothing", &[(0, Some("a")), (10, Some("new"))]).await;
}

async fn a_delete_removes_what_the_condition_holds_for(table: Fixture) {
    let before = table.write(Write::Append, &[(1, Some("a")), (2, None), (3, Some("b"))]).await;
    let schema = table.0.spec().schema();
    let host = physical_col("Host \"a.b\"", schema).expect("a column");
    let predicate = binary(host, Operator::NotEq, physical_lit("b"), schema).expect("a condition");
    let done = table.write(Write::Delete { predicate }, &[]).await;
    assert_eq!(done.rows_removed, 1, "a condition that is NULL does not hold");
    table.expect("a delete", &[(2, None), (3, Some("b"))]).await;
    let (_, rewritten) = table.touched(&before.at).await;
    assert_eq!(rewritten, [1], "the row that went");
}

async fn a_compaction_changes_nothing(table: Fixture) {
    let rows = [(1, Some("a")), (2, None), (3, Some("b")), (-4, None)];
    let first = table.write(Write::Append, &rows[..1]).await;
    table.write(Write::Append, &rows[1..2]).await;
    let before = table.write(Write::Append, &rows[2..3]).await;
    let done = table.write(Write::Compact, &[]).await;
    assert_eq!((done.rows_added, done.rows_removed), (0, 0));
    table.expect("a compaction", &rows[..3]).await;
    assert_eq!(table.touched(&before.at).await, (vec![], vec![]), "nothing is touched");
    let last = table.write(Write::Append, &rows[3..]).await;
    let range = SequenceRange { after: first.at.clone(), upto: last.at };
    assert_eq!(table.read(ReadBounds::Appended(range)).await, owned(&[rows[3], rows[1], rows[2]]));
    assert_eq!(table.touched(&first.at).await, (vec![-4, 2, 3], vec![]));
    assert_eq!(table.read(ReadBounds::Snapshot(before.at)).await, owned(&rows[..3]), "older states stay");
    // What is deleted later is deleted from the compacted rows.
    table.write(Write::Replace { ranges: vec![InstantRange::new(2, 3)] }, &[]).await;
    table.expect("a replace after a compaction", &[rows[3], rows[0], rows[2]]).await;
    table.write(Write::Compact, &[]).await;
    table.write(Write::Compact, &[]).await;
    table.expect("compactions", &[rows[3], rows[0], rows[2]]).await;
}

async fn replace_all_leaves_only_the_new_rows(table: Fixture) {
    table.write(Write::Append, &[(1, Some("a")), (2, None)]).await;
    table.write(Write::ReplaceAll, &[(7, None)]).await;
    table.expect("replace all", &[(7, None)]).await;
}

async fn an_older_state_is_read_exactly(table: Fixture) {
    let rows = [(1, Some("a")), (2, Some("b"))];
    let old = table.write(Write::Append, &rows).await.at;
    table.write(Write::Append, &[(3, None)]).await;
    table.write(Write::Replace { ranges: vec![InstantRange::new(0, 2)] }, &[]).await;
    assert_eq!(table.read(ReadBounds::Snapshot(old)).await, owned(&rows));
    let (region, newest) = table.now().await.iter().next().expect("a region");
    let future = Watermarks::of(region, newest + 1);
    let scan = table.0.scan(&ReadBounds::Snapshot(future)).await;
    assert!(matches!(scan, Err(TableError::Stale { .. })), "what is not there yet cannot be read: {scan:?}");
}

async fn progress_is_committed_with_the_rows(table: Fixture) {
    assert_eq!(table.0.progress("f").await.expect("progress"), None);
    let dirty = DirtySet::from(vec![InstantRange::new(-10, 20)]);
    let progress = Progress::start().observe(&Watermarks::of(3, u64::MAX), &dirty).expect("progress");
    let name = "flow \"α\"/1";
    let mut commit = table.commit_of(Write::Append, &[(1, None)]);
    commit.progress = Some((name.into(), progress.clone()));
    let done = table.0.commit(commit).await.expect("a commit");
    table.write(Write::Append, &[(2, None)]).await;
    let found = table.0.progress(name).await.expect("progress").expect("it was committed");
    assert_eq!((found.progress, found.at), (progress, done.at));
    assert_eq!(table.0.progress("another").await.expect("progress"), None);
}

async fn a_commit_on_another_state_changes_nothing(table: Fixture) {
    let old = table.write(Write::Append, &[(1, None)]).await.at;
    table.write(Write::Append, &[(2, None)]).await;
    let mut commit = table.commit_of(Write::ReplaceAll, &[]);
    commit.expected = Some(old);
    let result = table.0.commit(commit).await;
    assert!(matches!(result, Err(TableError::Conflict { .. })), "{result:?}");
    table.expect("after a conflict", &[(1, None), (2, None)]).await;
    let mut commit = table.commit_of(Write::Append, &[(3, None)]);
    commit.expected = Some(table.now().await);
    table.0.commit(commit).await.expect("a commit on the newest state");
}

async fn a_failing_stream_changes_nothing(table: Fixture) {
    use datafusion::error::DataFusionError;
    use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
    use futures::{StreamExt, stream};

    table.write(Write::Append, &[(1, None)]).await;
    let before = table.now().await;
    let good = table.commit_of(Write::ReplaceAll, &[(5, None)]);
    let failure = stream::iter([Err(DataFusionError::Execution("lost".into()))]);
    let rows = RecordBatchStreamAdapter::new(Arc::clone(table.0.spec().schema()), good.rows.chain(failure));
    let result = table.0.commit(Commit { rows: Box::pin(rows), ..good_without_rows(&table) }).await;
    assert!(matches!(result, Err(TableError::Query(_))), "{result:?}");
    table.expect("after a failure", &[(1, None)]).await;
    assert_eq!(table.now().await, before);
}

fn good_without_rows(table: &Fixture) -> Commit {
    table.commit_of(Write::ReplaceAll, &[])
}

async fn a_row_without_time_index_is_refused(table: Fixture) {
    let schema = Arc::new(Schema::new(
        table
            .0
            .spec()
            .schema()
            .fields()
            .iter()
            .map(|f| f.as_ref().clone().with_nullable(true))
            .collect::<Vec<_>>(),
    ));
    let times = TimestampMillisecondArray::from(vec![None, Some(1)]);
    let hosts = StringArray::from(vec![Some("a"), None]);
    let batch =
        RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(times), Arc::new(hosts)]).expect("rows");
    let rows = Box::pin(MemoryStream::try_new(vec![batch], schema, None).expect("a stream"));
    let commit = Commit { rows, ..table.commit_of(Write::Append, &[]) };
    let result = table.0.commit(commit).await;
    assert!(result.is_err(), "a NULL time index must be refused");
    table.expect("after a refusal", &[]).await;
}

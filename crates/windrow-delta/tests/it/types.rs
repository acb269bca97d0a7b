//! A value read back equals the value written.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Date64Array, Decimal128Array, FixedSizeBinaryArray,
    Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, ListBuilder, MapBuilder,
    RecordBatch, StringArray, StringBuilder, StructArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampSecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
    UInt64Builder,
};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::logical_expr::{col, lit};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::scalar::ScalarValue;
use windrow_delta::{DeltaError, DeltaTable};
use windrow_table::{ReadBounds, SinkTable, SourceTable, TableError, TableSpec, Write};

use crate::fixture::{Table, commit_of};

/// 1900-01-01 and 2200-01-01, in days.
const OLD: i64 = -25_567;
const FAR: i64 = 84_006;
const DAY: i64 = 86_400;

fn columns() -> Vec<(&'static str, ArrayRef)> {
    let times = [Some(OLD * DAY), None, Some(-1), Some(FAR * DAY), Some(0)];
    let seconds = || TimestampSecondArray::from_iter(times);
    let millis = || TimestampMillisecondArray::from_iter(times.iter().map(|t| t.map(|t| t * 1_000 + 1)));
    let micros = || TimestampMicrosecondArray::from_iter(times.iter().map(|t| t.map(|t| t * 1_000_000 - 1)));
    let words =
        || StringArray::from(vec![Some(""), None, Some("ü \"quoted\", 名"), Some("\u{0}x"), Some("a")]);
    let bytes: Vec<Option<&[u8]>> = vec![Some(b""), None, Some(b"\xff\x00"), Some(b"ab"), Some(b"c")];
    let halves =
        Float32Array::from(vec![Some(65504.0), None, Some(-0.0), Some(f32::NEG_INFINITY), Some(6e-8)]);

    let mut lists = ListBuilder::new(UInt64Builder::new());
    for list in [Some(vec![Some(u64::MAX), None]), None, Some(vec![]), Some(vec![Some(0)]), Some(vec![None])]
    {
        lists.append_option(list);
    }
    let mut maps = MapBuilder::new(None, StringBuilder::new(), UInt64Builder::new());
    for row in 0..5 {
        for key in 0..row {
            maps.keys().append_value(format!("k{key}"));
            maps.values().append_option((key != 1).then_some(u64::MAX - key));
        }
        maps.append(row != 2).unwrap();
    }
    let structs = StructArray::try_new(
        vec![Field::new("a.b", DataType::UInt8, true), Field::new("When", seconds_type(), true)].into(),
        vec![Arc::new(UInt8Array::from(vec![Some(255), None, Some(0), Some(1), None])), Arc::new(seconds())],
        Some(vec![true, false, true, true, true].into()),
    );
    let decimals = |precision, scale| {
        let most = 10_i128.pow(u32::from(precision)) - 1;
        let values = Decimal128Array::from(vec![Some(most), None, Some(-most), Some(0), Some(-1)]);
        values.with_precision_and_scale(precision, scale).unwrap()
    };
    vec![
        ("Boolean", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), None, Some(true)]))),
        ("Int8", Arc::new(Int8Array::from(vec![Some(i8::MIN), None, Some(i8::MAX), Some(0), Some(-1)]))),
        ("Int16", Arc::new(Int16Array::from(vec![Some(i16::MIN), None, Some(i16::MAX), Some(0), Some(-1)]))),
        ("Int32", Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(i32::MAX), Some(0), Some(-1)]))),
        ("Int64", Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX), Some(0), Some(-1)]))),
        ("UInt8", Arc::new(UInt8Array::from(vec![Some(u8::MIN), None, Some(u8::MAX), Some(1), Some(9)]))),
        ("UInt16", Arc::new(UInt16Array::from(vec![Some(u16::MIN), None, Some(u16::MAX), Some(1), Some(9)]))),
        ("UInt32", Arc::new(UInt32Array::from(vec![Some(u32::MIN), None, Some(u32::MAX), Some(1), Some(9)]))),
        ("UInt64", Arc::new(UInt64Array::from(vec![Some(u64::MIN), None, Some(u64::MAX), Some(1), Some(9)]))),
        ("Float16", cast(&halves, &DataType::Float16).unwrap()),
        (
            "Float32",
            Arc::new(Float32Array::from(vec![Some(f32::MIN), None, Some(f32::NAN), Some(-0.0), Some(0.1)])),
        ),
        (
            "Float64",
            Arc::new(Float64Array::from(vec![Some(f64::MIN), None, Some(f64::NAN), Some(-0.0), Some(0.1)])),
        ),
        ("Decimal small", Arc::new(decimals(5, 2))),
        ("Decimal", Arc::new(decimals(38, 38))),
        ("Decimal64", cast(&decimals(18, 3), &DataType::Decimal64(18, 3)).unwrap()),
        (
            "Date32",
            Arc::new(Date32Array::from(vec![Some(OLD as i32), None, Some(FAR as i32), Some(-1), Some(0)])),
        ),
        (
            "Date64",
            Arc::new(Date64Array::from_iter(
                [Some(OLD), None, Some(FAR), Some(-1), Some(0)].map(|d| d.map(|d| d * DAY * 1_000)),
            )),
        ),
        ("seconds", Arc::new(seconds())),
        ("millis", Arc::new(millis())),
        ("micros", Arc::new(micros())),
        ("seconds, zoned", Arc::new(seconds().with_timezone("Europe/Rome"))),
        ("millis, zoned", Arc::new(millis().with_timezone("+05:30"))),
        ("micros, zoned", Arc::new(micros().with_timezone("UTC"))),
        ("Utf8", Arc::new(words())),
        ("LargeUtf8", cast(&words(), &DataType::LargeUtf8).unwrap()),
        ("Utf8View", cast(&words(), &DataType::Utf8View).unwrap()),
        ("Binary", Arc::new(BinaryArray::from(bytes.clone()))),
        ("LargeBinary", cast(&BinaryArray::from(bytes.clone()), &DataType::LargeBinary).unwrap()),
        ("BinaryView", cast(&BinaryArray::from(bytes), &DataType::BinaryView).unwrap()),
        (
            "FixedSizeBinary",
            Arc::new(
                FixedSizeBinaryArray::try_from_sparse_iter_with_size(
                    [Some(b"ab"), None, Some(b"\xff\0"), Some(b"zz"), None].into_iter(),
                    2,
                )
                .unwrap(),
            ),
        ),
        ("List", Arc::new(lists.finish())),
        ("LargeList", cast(&lists_of_words(), &large_list_of_views()).unwrap()),
        ("Map", Arc::new(maps.finish())),
        ("Struct", Arc::new(structs.unwrap())),
    ]
}

fn seconds_type() -> DataType {
    DataType::Timestamp(arrow::datatypes::TimeUnit::Second, None)
}

fn lists_of_words() -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for list in [Some(vec![Some("a"), None]), None, Some(vec![]), Some(vec![Some("ü")]), Some(vec![None])] {
        lists.append_option(list);
    }
    Arc::new(lists.finish())
}

fn large_list_of_views() -> DataType {
    DataType::LargeList(Arc::new(Field::new("item", DataType::Utf8View, true)))
}

fn batch_of(columns: &[(&str, ArrayRef)]) -> RecordBatch {
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let arrays = columns.iter().map(|(_, array)| Arc::clone(array)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

async fn read(table: &DeltaTable) -> RecordBatch {
    let provider = table.scan(&ReadBounds::Latest).await.unwrap();
    let batches = SessionContext::new().read_table(provider).unwrap().collect().await.unwrap();
    concat_batches(table.spec().schema(), &batches).unwrap()
}

#[tokio::test]
async fn every_value_of_every_type_is_read_as_it_was_written() {
    let written = batch_of(&columns());
    let spec = TableSpec::new(written.schema()).unwrap();
    let table = Table::of(spec.clone()).await;
    table.delta.commit(commit_of(Write::Append, written.clone())).await.unwrap();
    let found = read(&table.delta).await;
    for (field, (found, written)) in
        spec.schema().fields().iter().zip(found.columns().iter().zip(written.columns()))
    {
        assert_eq!(found, written, "{}", field.name());
    }
    // A rewrite copies them.
    let first = datafusion::physical_expr::expressions::col("Int32", spec.schema()).unwrap();
    let predicate = datafusion::physical_expr::expressions::is_null(first).unwrap();
    let none = RecordBatch::new_empty(written.schema());
    let opened = table.open_again().await;
    let done = opened.commit(commit_of(Write::Delete { predicate }, none)).await.unwrap();
    assert_eq!(done.rows_removed, 1);
    let kept = concat_batches(spec.schema(), &[written.slice(0, 1), written.slice(2, 3)]).unwrap();
    for (field, (found, kept)) in
        spec.schema().fields().iter().zip(read(&opened).await.columns().iter().zip(kept.columns()))
    {
        assert_eq!(found, kept, "{} after a rewrite", field.name());
    }
}

#[tokio::test]
async fn a_filter_on_a_converted_column_finds_each_value() {
    let mut in_the_decoder = SessionConfig::new();
    in_the_decoder.options_mut().execution.parquet.pushdown_filters = true;
    let contexts = [SessionContext::new(), SessionContext::new_with_config(in_the_decoder)];
    for (name, array) in columns() {
        if array.data_type().is_nested() {
            continue;
        }
        let written = batch_of(&[(name, array)]);
        let table = Table::of(TableSpec::new(written.schema()).unwrap()).await;
        table.delta.commit(commit_of(Write::Append, written.clone())).await.unwrap();
        let column = || datafusion::common::Column::from_name(name);
        for row in 0..written.num_rows() {
            let value = ScalarValue::try_from_array(written.column(0), row).unwrap();
            if value.is_null() {
                continue;
            }
            for (index, context) in contexts.iter().enumerate() {
                // In the decoder, one filter shows that they get there.
                let some = if index == 0 { 4 } else { 1 };
                for filter in [
                    col(column()).lt_eq(lit(value.clone())).and(col(column()).gt_eq(lit(value.clone()))),
                    col(column()).eq(lit(value.clone())),
                    col(column()).gt(lit(value.clone())).or(col(column()).is_null()),
                    col(column()).lt(lit(value.clone())),
                ]
                .into_iter()
                .take(some)
                {
                    let all = context.read_batch(written.clone()).unwrap();
                    let expected = all.filter(filter.clone()).unwrap().collect().await.unwrap();
                    let provider = table.delta.scan(&ReadBounds::Latest).await.unwrap();
                    let found = context.read_table(provider).unwrap().filter(filter.clone()).unwrap();
                    let found = concat_batches(&written.schema(), &found.collect().await.unwrap()).unwrap();
                    assert_eq!(found, concat_batches(&written.schema(), &expected).unwrap(), "{filter}");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_refused_before_anything_is_written() {
    let written =
        batch_of(&[("ts", Arc::new(TimestampSecondArray::from(vec![0, i64::MAX / 1_000_000 + 1])))]);
    let table = Table::of(TableSpec::new(written.schema()).unwrap().with_time_index("ts").unwrap()).await;
    let result = table.delta.commit(commit_of(Write::Append, written)).await;
    assert!(matches!(&result, Err(TableError::Schema(text)) if text.contains("ts")), "{result:?}");
    assert_eq!((table.data_files().len(), read(&table.delta).await.num_rows()), (0, 0));
}

#[tokio::test]
async fn a_value_of_another_writer_that_is_not_of_the_declared_type_is_an_error() {
    let declared = |array: ArrayRef| TableSpec::new(batch_of(&[("ts", array)]).schema()).unwrap();
    let written = batch_of(&[("ts", Arc::new(TimestampMicrosecondArray::from(vec![1_000_000, 1_500_000])))]);
    let table = Table::of(TableSpec::new(written.schema()).unwrap()).await;
    table.delta.commit(commit_of(Write::Append, written)).await.unwrap();
    let seconds = declared(Arc::new(TimestampSecondArray::from(vec![0])));
    let seconds = DeltaTable::open(table.folder.path(), seconds).await.unwrap();
    let provider = seconds.scan(&ReadBounds::Latest).await.unwrap();
    let error = SessionContext::new().read_table(provider).unwrap().collect().await.unwrap_err();
    assert!(error.to_string().contains("1500000"), "{error}");
}

#[tokio::test]
async fn a_type_that_delta_lacks_is_refused_when_the_table_is_made() {
    let nanos = DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, None);
    let schema =
        Arc::new(Schema::new(vec![Field::new("n", DataType::Int8, true), Field::new("ts", nanos, true)]));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let error = DeltaTable::create(path.as_path(), TableSpec::new(schema).unwrap()).await.unwrap_err();
    assert!(matches!(&error, DeltaError::Type { column, .. } if column == "ts"), "{error}");
    assert!(!path.exists(), "nothing is left of a table that was refused");
}

#[tokio::test]
async fn columns_of_any_name_are_columns() {
    let names =
        ["a.b", "A", "with space", "say \"hi\"", "it's", "größe", "名前", "x,y;z=1{}()", "back`tick", "a"];
    let columns: Vec<(&str, ArrayRef)> = names
        .iter()
        .filter(|name| **name != "a")
        .enumerate()
        .map(|(index, name)| {
            let array: ArrayRef = Arc::new(UInt32Array::from(vec![index as u32, 100]));
            (*name, array)
        })
        .collect();
    let written = batch_of(&columns);
    let table = Table::of(TableSpec::new(written.schema()).unwrap()).await;
    table.delta.commit(commit_of(Write::Append, written.clone())).await.unwrap();
    let opened = DeltaTable::discover(table.folder.path(), None, &["名前"]).await.unwrap();
    assert_eq!(opened.spec().primary_key().len(), 1);
    let table = table.open_again().await;
    assert_eq!(read(&table).await, written);
    for (index, (name, _)) in columns.iter().enumerate() {
        let provider = table.scan(&ReadBounds::Latest).await.unwrap();
        let column = col(datafusion::common::Column::from_name(*name));
        let frame = SessionContext::new().read_table(provider).unwrap().filter(column.eq(lit(index as u32)));
        assert_eq!(frame.unwrap().count().await.unwrap(), 1, "{name}");
    }
}

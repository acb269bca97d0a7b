//! Windrow inside a program: a table and a flow in memory, rows from Arrow, an alert from the sink.
//!
//! `cargo run --example embed`

use std::sync::Arc;

use arrow::array::{Float64Array, RecordBatch, StringArray, TimestampMillisecondArray};
use datafusion::physical_plan::memory::MemoryStream;
use windrow::prelude::*;
use windrow::table::{Commit, Write};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::in_memory();
    engine
        .sql(
            "CREATE TABLE load (ts TIMESTAMP(3) TIME INDEX, host STRING, usage DOUBLE) WITH ('append_mode' = 'true');
             CREATE FLOW per_minute SINK TO load_per_minute AS
               SELECT date_bin(INTERVAL '1 minute', ts) AS minute, host, max(usage) AS highest, count(*) AS samples
               FROM load GROUP BY minute, host",
        )
        .await?;
    let table = engine.table("load").ok_or("the table was just made")?;
    for (time, usage) in [(1_700_000_000_000, 0.4), (1_700_000_061_000, 0.7), (1_700_000_002_000, 0.97)] {
        let schema = Arc::clone(table.spec().schema());
        let times = Arc::new(TimestampMillisecondArray::from(vec![time]));
        let hosts = Arc::new(StringArray::from(vec!["web-1"]));
        let batch = RecordBatch::try_new(
            schema.clone(),
            vec![times, hosts, Arc::new(Float64Array::from(vec![usage]))],
        )?;
        let rows = Box::pin(MemoryStream::try_new(vec![batch], schema, None)?);
        table.commit(Commit { write: Write::Append, rows, progress: None, expected: None }).await?;
        for report in engine.refresh_until_idle().await? {
            println!(
                "{}: {} of {} windows, {} rows",
                report.flow, report.kind, report.windows, report.rows_written
            );
        }
    }
    let answers = engine.sql("SELECT minute, host, highest FROM load_per_minute ORDER BY minute").await?;
    println!("{}", arrow::util::pretty::pretty_format_batches(answers[0].rows().unwrap_or_default())?);
    Ok(())
}

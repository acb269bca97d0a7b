//! Windrow inside a program: a table and a flow in memory, rows from Arrow, an alert from the sink.
//!
//! `cargo run --profile demo --example embed`

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampMillisecondArray};
use windrow::prelude::*;

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
    // The third sample is a minute late.
    for (time, usage) in [(1_700_000_000_000, 0.4), (1_700_000_061_000, 0.7), (1_700_000_002_000, 0.97)] {
        let columns: [(_, ArrayRef); 3] = [
            ("ts", Arc::new(TimestampMillisecondArray::from(vec![time]))),
            ("host", Arc::new(StringArray::from(vec!["web-1"]))),
            ("usage", Arc::new(Float64Array::from(vec![usage]))),
        ];
        engine.insert("load", [RecordBatch::try_from_iter(columns)?]).await?;
        for report in engine.refresh_until_idle().await? {
            println!("{}: {} of {} windows", report.flow, report.kind, report.windows);
        }
    }
    let alerts = engine.sql("SELECT minute, host, highest FROM load_per_minute WHERE highest > 0.9").await?;
    println!("{}", arrow::util::pretty::pretty_format_batches(alerts[0].rows().unwrap_or_default())?);
    Ok(())
}

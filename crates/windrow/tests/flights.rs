//! The results that another engine computed over the flights and the weather equal what the sinks hold, after loads in
//! several batches out of order, in every kind of table.

mod common;

use common::{KINDS, Kind, assert_exact, data, engine, expected, number, run};
use windrow::runner::MoveKind;
use windrow::{Engine, RefreshReport};

const FLIGHTS: &str = "
    CREATE TABLE flights (
      sched_dep TIMESTAMP(3) TIME INDEX, carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING,
      dep_delay INT, arr_delay INT, air_time INT, distance INT, cancelled BOOLEAN
    ) WITH ('append_mode' = 'true');
    CREATE FLOW hourly SINK TO hourly_by_origin AS
      SELECT date_bin(INTERVAL '1 hour', sched_dep) AS time_window, origin, count(*) AS flights,
        count(dep_delay) AS departed, sum(dep_delay) AS delay_sum, min(dep_delay) AS delay_min,
        max(dep_delay) AS delay_max, avg(dep_delay) AS delay_avg
      FROM flights GROUP BY time_window, origin;
    CREATE FLOW hourly_merged SINK TO hourly_merged AS
      SELECT date_bin(INTERVAL '1 hour', sched_dep) AS time_window, origin, count(*) AS flights,
        count(dep_delay) AS departed, sum(dep_delay) AS delay_sum, min(dep_delay) AS delay_min,
        max(dep_delay) AS delay_max
      FROM flights GROUP BY time_window, origin;
    CREATE FLOW daily SINK TO daily_by_carrier AS
      SELECT date_trunc('day', sched_dep) AS time_window, carrier, count(*) AS flights, sum(distance) AS miles,
        count(DISTINCT dest) AS dests, stddev_samp(arr_delay) AS arr_delay_stddev, bool_or(cancelled) AS any_cancelled
      FROM flights GROUP BY time_window, carrier;
    CREATE FLOW monthly SINK TO monthly AS
      SELECT date_trunc('month', sched_dep) AS time_window, count(*) AS flights, sum(air_time) AS air_time_sum,
        avg(distance) AS distance_avg, avg(CASE WHEN cancelled THEN 1.0 ELSE 0.0 END) AS cancel_rate
      FROM flights GROUP BY time_window;
    CREATE FLOW local_days SINK TO local_days AS
      SELECT date_trunc('day', sched_dep AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York') AS day, count(*) AS flights
      FROM flights GROUP BY day;
    CREATE FLOW local_months SINK TO local_months AS
      SELECT date_trunc('month', sched_dep AT TIME ZONE 'UTC' AT TIME ZONE 'America/New_York') AS month,
        count(*) AS flights
      FROM flights GROUP BY month;
";

/// The flights of each month of 2013 by the calendar of New York, as published with the data.
const FLIGHTS_OF_MONTHS: [i64; 12] =
    [27_004, 24_951, 28_834, 28_330, 28_796, 28_243, 29_425, 29_327, 27_574, 28_889, 27_268, 28_135];

/// Loads `input` into `table` in batches out of order: the later half of the year, then a sprinkling of rows from
/// everywhere, then what is left.
async fn load_out_of_order(
    engine: &Engine,
    table: &str,
    input: &str,
    time: &str,
    sprinkle: &str,
) -> Vec<RefreshReport> {
    let batches = [
        format!("{time} >= '2013-07-01' AND NOT ({sprinkle})"),
        sprinkle.to_owned(),
        format!("{time} < '2013-03-05' AND NOT ({sprinkle})"),
        format!("{time} >= '2013-03-05' AND {time} < '2013-07-01' AND NOT ({sprinkle})"),
    ];
    let mut reports = Vec::new();
    for batch in batches {
        run(engine, &format!("INSERT INTO {table} SELECT * FROM {input} WHERE {batch}")).await;
        reports.extend(engine.refresh_until_idle().await.unwrap_or_else(|error| panic!("{error}")));
    }
    reports
}

/// Panics unless the days and months of New York have the flights that were counted with its calendar.
async fn assert_local_calendar(engine: &Engine) {
    let days = expected("daily_new_york.csv");
    let sql = format!("CREATE EXTERNAL TABLE expected_days STORED AS CSV LOCATION '{}'", days.display());
    run(engine, &sql).await;
    let sql = "SELECT count(*) FROM local_days s
        FULL JOIN expected_days e ON CAST(to_local_time(s.day) AS DATE) = CAST(e.day AS DATE)
        WHERE s.flights IS DISTINCT FROM e.flights";
    assert_eq!(number(engine, sql).await, 0, "days that differ");
    assert_eq!(number(engine, "SELECT count(*) FROM local_days").await, 365);
    for (month, flights) in (1..).zip(FLIGHTS_OF_MONTHS) {
        let sql = format!(
            "SELECT flights FROM local_months WHERE date_part('month', to_local_time(month)) = {month}"
        );
        assert_eq!(number(engine, &sql).await, flights, "month {month}");
    }
    assert_eq!(number(engine, "SELECT count(*) FROM local_months").await, 12);
}

/// Panics unless `sink` has the rows of the expected file: the keys and exact columns the same, the others within a
/// billionth.
async fn assert_expected(
    engine: &Engine,
    sink: &str,
    file: &str,
    keys: &[&str],
    exact: &[&str],
    near: &[&str],
) {
    let location = expected(file);
    run(
        engine,
        &format!("CREATE EXTERNAL TABLE expected_{sink} STORED AS CSV LOCATION '{}'", location.display()),
    )
    .await;
    let on: Vec<String> = keys.iter().map(|key| format!("s.{key} = e.{key}")).collect();
    let mut wrong: Vec<String> =
        exact.iter().map(|column| format!("(s.{column} IS DISTINCT FROM e.{column})")).collect();
    wrong.extend(near.iter().map(|column| {
        format!(
            "((s.{column} IS NULL) <> (e.{column} IS NULL)) \
             OR abs(s.{column} - e.{column}) > 0.000000001 * greatest(abs(e.{column}), 0.000001)"
        )
    }));
    wrong.extend(keys.iter().flat_map(|key| [format!("s.{key} IS NULL"), format!("e.{key} IS NULL")]));
    let sql = format!(
        "SELECT count(*) FROM {sink} s FULL JOIN expected_{sink} e ON {} WHERE {}",
        on.join(" AND "),
        wrong.join(" OR ")
    );
    assert_eq!(number(engine, &sql).await, 0, "rows of {sink} that differ from {file}");
    let rows = number(engine, &format!("SELECT count(*) FROM {sink}")).await;
    let lines = std::fs::read_to_string(location).expect("the expected file").lines().count() as i64;
    assert_eq!(rows, lines - 1, "rows of {sink}");
}

async fn flights_equal_the_expected_results(kind: Kind) {
    let fixture = engine(kind).await;
    let engine = &fixture.engine;
    let parquet = data("flights.parquet");
    run(
        engine,
        &format!("CREATE EXTERNAL TABLE recorded STORED AS PARQUET LOCATION '{}'", parquet.display()),
    )
    .await;
    run(engine, FLIGHTS).await;
    let reports = load_out_of_order(engine, "flights", "recorded", "sched_dep", "flight % 17 = 3").await;

    let counts = ["flights", "departed", "delay_sum", "delay_min", "delay_max"];
    let keys = ["time_window", "origin"];
    assert_expected(engine, "hourly_by_origin", "hourly_by_origin.csv", &keys, &counts, &["delay_avg"]).await;
    assert_expected(engine, "hourly_merged", "hourly_by_origin.csv", &keys, &counts, &[]).await;
    let keys = ["time_window", "carrier"];
    let exact = ["flights", "miles", "dests", "any_cancelled"];
    assert_expected(engine, "daily_by_carrier", "daily_by_carrier.csv", &keys, &exact, &["arr_delay_stddev"])
        .await;
    let near = ["distance_avg", "cancel_rate"];
    assert_expected(engine, "monthly", "monthly.csv", &["time_window"], &["flights", "air_time_sum"], &near)
        .await;

    assert_local_calendar(engine).await;

    for flow in ["hourly", "hourly_merged", "daily", "monthly", "local_days", "local_months"] {
        assert_exact(engine, flow, "after the load").await;
    }
    let kinds = |flow: &str| -> Vec<MoveKind> {
        reports.iter().filter(|report| report.flow == flow).map(|report| report.kind).collect()
    };
    assert!(kinds("hourly_merged").contains(&MoveKind::Merge), "few new rows among many are merged");
    assert!(kinds("daily").contains(&MoveKind::Merge), "so is a standard deviation, by its state");
}

#[tokio::test]
async fn flights_in_memory_equal_the_expected_results() {
    flights_equal_the_expected_results(Kind::Memory).await;
}

#[cfg(feature = "delta")]
#[tokio::test]
async fn flights_in_delta_tables_equal_the_expected_results() {
    flights_equal_the_expected_results(Kind::Delta).await;
}

#[tokio::test]
async fn weather_equals_the_expected_results() {
    for &kind in KINDS {
        let fixture = engine(kind).await;
        let engine = &fixture.engine;
        let parquet = data("weather.parquet");
        run(
            engine,
            &format!("CREATE EXTERNAL TABLE recorded STORED AS PARQUET LOCATION '{}'", parquet.display()),
        )
        .await;
        run(
            engine,
            "CREATE TABLE weather (
               time_hour TIMESTAMP(3) TIME INDEX, origin STRING, temp DOUBLE, dewp DOUBLE, humid DOUBLE, wind_dir INT,
               wind_speed DOUBLE, wind_gust DOUBLE, precip DOUBLE, pressure DOUBLE, visib DOUBLE
             ) WITH ('append_mode' = 'true');
             CREATE FLOW weather_6h SINK TO weather_6h AS
               SELECT date_bin(INTERVAL '6 hours', time_hour) AS time_window, origin, min(temp) AS temp_min,
                 max(temp) AS temp_max, avg(wind_speed) AS wind_avg, sum(precip) AS precip_sum,
                 count(wind_gust) AS gusts
               FROM weather GROUP BY time_window, origin;",
        )
        .await;
        load_out_of_order(engine, "weather", "recorded", "time_hour", "wind_dir > 300").await;
        // A comparison with a missing wind direction is neither true nor false: those rows come last.
        run(engine, "INSERT INTO weather SELECT * FROM recorded WHERE wind_dir IS NULL").await;
        engine.refresh_until_idle().await.unwrap_or_else(|error| panic!("{error}"));
        let (exact, near) = (["gusts"], ["temp_min", "temp_max", "wind_avg", "precip_sum"]);
        let keys = ["time_window", "origin"];
        assert_expected(engine, "weather_6h", "weather_6h.csv", &keys, &exact, &near).await;
        assert_exact(engine, "weather_6h", "after the load").await;
    }
}

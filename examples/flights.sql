-- All flights from New York City in 2013, loaded month by month into a table that three flows read.
-- 5 000 flights of January and March are held back and come last, as late rows do.

CREATE EXTERNAL TABLE recorded STORED AS PARQUET LOCATION 'examples/data/flights.parquet';

CREATE TABLE flights (
  sched_dep TIMESTAMP(3) TIME INDEX,
  carrier   STRING,
  flight    INT,
  tailnum   STRING,
  origin    STRING,
  dest      STRING,
  dep_delay INT,
  arr_delay INT,
  air_time  INT,
  distance  INT,
  cancelled BOOLEAN
) WITH ('append_mode' = 'true');

-- The aggregate of new rows is merged into what the sink has: counts, sums, minima and maxima by their values …
CREATE FLOW hourly SINK TO hourly_by_origin AS
SELECT date_bin(INTERVAL '1 hour', sched_dep) AS time_window, origin,
       count(*) AS flights, count(dep_delay) AS departed,
       sum(dep_delay) AS delay_sum, min(dep_delay) AS delay_min, max(dep_delay) AS delay_max
FROM flights GROUP BY time_window, origin;

-- … a standard deviation, a distinct count or a mean by its state, which the sink keeps in a hidden column.
CREATE FLOW daily SINK TO daily_by_carrier AS
SELECT date_trunc('day', sched_dep) AS time_window, carrier,
       count(*) AS flights, sum(distance) AS miles, count(DISTINCT dest) AS dests,
       stddev_samp(arr_delay) AS arr_delay_stddev, bool_or(cancelled) AS any_cancelled
FROM flights GROUP BY time_window, carrier;

-- Calendar months, of 28 to 31 days.
CREATE FLOW monthly SINK TO monthly AS
SELECT date_trunc('month', sched_dep) AS time_window,
       count(*) AS flights, sum(air_time) AS air_time_sum, avg(distance) AS distance_avg,
       avg(CASE WHEN cancelled THEN 1.0 ELSE 0.0 END) AS cancel_rate
FROM flights GROUP BY time_window;

CREATE TABLE held_back (
  sched_dep TIMESTAMP(3) TIME INDEX, carrier STRING, flight INT, origin STRING
) WITH ('append_mode' = 'true');

INSERT INTO held_back
  (SELECT sched_dep, carrier, flight, origin FROM recorded WHERE sched_dep >= '2013-01-14'
   ORDER BY sched_dep, carrier, flight, origin LIMIT 2500)
  UNION ALL
  (SELECT sched_dep, carrier, flight, origin FROM recorded WHERE sched_dep >= '2013-03-11'
   ORDER BY sched_dep, carrier, flight, origin LIMIT 2500);

-- January
INSERT INTO flights SELECT r.* FROM recorded r
  LEFT ANTI JOIN held_back h
    ON r.sched_dep = h.sched_dep AND r.carrier = h.carrier AND r.flight = h.flight AND r.origin = h.origin
  WHERE sched_dep >= '2013-01-01'
  AND sched_dep < '2013-02-01';

-- February
INSERT INTO flights SELECT r.* FROM recorded r
  LEFT ANTI JOIN held_back h
    ON r.sched_dep = h.sched_dep AND r.carrier = h.carrier AND r.flight = h.flight AND r.origin = h.origin
  WHERE sched_dep >= '2013-02-01'
  AND sched_dep < '2013-03-01';

-- March
INSERT INTO flights SELECT r.* FROM recorded r
  LEFT ANTI JOIN held_back h
    ON r.sched_dep = h.sched_dep AND r.carrier = h.carrier AND r.flight = h.flight AND r.origin = h.origin
  WHERE sched_dep >= '2013-03-01'
  AND sched_dep < '2013-04-01';

-- April
INSERT INTO flights SELECT r.* FROM recorded r
  LEFT ANTI JOIN held_back h
    ON r.sched_dep = h.sched_dep AND r.carrier = h.carrier AND r.flight = h.flight AND r.origin = h.origin
  WHERE sched_dep >= '2013-04-01'
  AND sched_dep < '2013-05-01';

-- May
INSERT INTO flights SELECT r.* FROM recorded r
  LEFT ANTI JOIN held_back h
    ON r.sched_dep = h.sched_dep AND r.carrier = h.carrier AND r.flight = h.flight AND r.origin = h.origin
  WHERE sched_dep >= '2013-05-01'
  AND sched_dep < '2013-06-01';

-- June
INSERT INTO flights SELECT r.* FROM recorded r
  LEFT ANTI JOIN held_back h
    ON r.sched_dep = h.sched_dep AND r.carrier = h.carrier AND r.flight = h.flight AND r.origin = h.origin
  WHERE sched_dep >= '2013-06-01'
  AND sched_dep < '2013-07-01';

-- July
INSERT INTO flights SELECT r.* FROM recorded r
  LEFT ANTI JOIN held_back h
    ON r.sched_dep = h.sched_dep AND r.carrier = h.carrier AND r.flight = h.flight AND r.origin = h.origin
  WHERE sched_dep >= '2013-07-01'
  AND sched_dep < '2013-08-01';

-- August
INSERT INTO flights SELECT r.* FROM recorded r
  LEFT ANTI JOIN held_back h
    ON r.sched_dep = h.sched_dep AND r.carrier = h.carrier AND r.flight = h.flight AND r.origin = h.origin
  WHERE sched_dep >= '2013-08-01'
  AND sched_dep < '2013-09-01';

-- September
INSERT INTO flights SELECT r.* FROM recorded r
  LEFT ANTI JOIN held_back h
    ON r.sched_dep = h.sched_dep AND r.carrier = h.carrier AND r.flight = h.flight AND r.origin = h.origin
  WHERE sched_dep >= '2013-09-01'
  AND sched_dep < '2013-10-01';

-- October
INSERT INTO flights SELECT r.* FROM recorded r
  LEFT ANTI JOIN held_back h
    ON r.sched_dep = h.sched_dep AND r.carrier = h.carrier AND r.flight = h.flight AND r.origin = h.origin
  WHERE sched_dep >= '2013-10-01'
  AND sched_dep < '2013-11-01';

-- November
INSERT INTO flights SELECT r.* FROM recorded r
  LEFT ANTI JOIN held_back h
    ON r.sched_dep = h.sched_dep AND r.carrier = h.carrier AND r.flight = h.flight AND r.origin = h.origin
  WHERE sched_dep >= '2013-11-01'
  AND sched_dep < '2013-12-01';

-- December
INSERT INTO flights SELECT r.* FROM recorded r
  LEFT ANTI JOIN held_back h
    ON r.sched_dep = h.sched_dep AND r.carrier = h.carrier AND r.flight = h.flight AND r.origin = h.origin
  WHERE sched_dep >= '2013-12-01';

-- The late rows: they touch a few days of two months, and only those are worked on.
INSERT INTO flights SELECT r.* FROM recorded r
  LEFT SEMI JOIN held_back h
    ON r.sched_dep = h.sched_dep AND r.carrier = h.carrier AND r.flight = h.flight AND r.origin = h.origin;

-- Rows that go away cannot be merged out again: the windows that they were in are recomputed.
DELETE FROM flights WHERE carrier = 'OO';

SELECT * FROM hourly_by_origin ORDER BY time_window, origin LIMIT 5;
SELECT * FROM daily_by_carrier ORDER BY time_window, carrier LIMIT 5;
SELECT * FROM monthly ORDER BY time_window LIMIT 5;

-- Each sink against its query, run once over all rows.
ADMIN CHECK_FLOW('hourly');
ADMIN CHECK_FLOW('daily');
ADMIN CHECK_FLOW('monthly');

"""Commits by other writers while `windrow run --watch` keeps flows, and what other readers find in the sinks.

Usage: pipeline.py WINDROW DIRECTORY plain|feed
"""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import TableNotFoundError

WINDROW, DIRECTORY, VARIANT = sys.argv[1:]
SOURCE = os.path.join(DIRECTORY, "source")
DATA = os.path.join(DIRECTORY, "data")
START = datetime(2024, 3, 30, 20)
SECONDS_TO_FOLLOW = 60

# Each flow's sink, the columns to compare, and DuckDB's own query over the source.
FLOWS = {
    "hourly": (
        "hour, host, n, total, mean",
        "SELECT date_trunc('hour', ts) AS hour, host, count(*) AS n, CAST(sum(v) AS BIGINT) AS total, avg(v) AS mean"
        " FROM source GROUP BY 1, 2",
    ),
    "daily": (
        "day, kinds, lowest, highest",
        "SELECT date_trunc('day', ts) AS day, count(DISTINCT host) AS kinds, min(v) AS lowest, max(v) AS highest"
        " FROM source GROUP BY 1",
    ),
    "large": ("ts, host, v", "SELECT ts, host, v FROM source WHERE v > 70"),
}

PIPELINE = f"""
CREATE EXTERNAL TABLE source STORED AS DELTA LOCATION '{SOURCE}' OPTIONS ('time_index' 'ts');
CREATE FLOW hourly SINK TO hourly WITH ('min_refresh' = '100 ms') AS
  SELECT date_bin(INTERVAL '1 hour', ts) AS hour, host, count(*) AS n, sum(v) AS total, avg(v) AS mean
  FROM source GROUP BY 1, 2;
CREATE FLOW daily SINK TO daily WITH ('min_refresh' = '100 ms') AS
  SELECT date_trunc('day', ts) AS day, count(DISTINCT host) AS kinds, min(v) AS lowest, max(v) AS highest
  FROM source GROUP BY 1;
CREATE FLOW large SINK TO large WITH ('min_refresh' = '100 ms') AS SELECT ts, host, v FROM source WHERE v > 70;
"""


def rows(count, seed, minutes=3, **more):
    """Rows around the start, late ones among them."""
    late = [(seed * 7 + i * 13) % 2000 if i % 5 == 0 else 0 for i in range(count)]
    columns = {
        "ts": pa.array(
            [START + timedelta(minutes=seed * 60 + i * minutes - late[i]) for i in range(count)], pa.timestamp("us")
        ),
        "host": pa.array([None if i % 11 == 0 else f"h{(i + seed) % 4}" for i in range(count)], pa.string()),
        "v": pa.array([None if i % 7 == 3 else (i * 37 + seed) % 101 for i in range(count)], pa.int64()),
    }
    for name, value in more.items():
        columns[name] = pa.array([value] * count, pa.string())
    return pa.table(columns)


def append():
    write_deltalake(SOURCE, rows(200, 1), mode="append", schema_mode="merge")


def append_twice():
    write_deltalake(SOURCE, rows(50, 2), mode="append")
    write_deltalake(SOURCE, rows(70, 3), mode="append")


def delete():
    DeltaTable(SOURCE).delete("host = 'h1' AND v > 20")


def update():
    DeltaTable(SOURCE).update(updates={"v": "v + 1000"}, predicate="host = 'h2'")


def merge():
    table = DeltaTable(SOURCE)
    result = table.merge(rows(80, 1), "t.ts = s.ts AND t.host = s.host", source_alias="s", target_alias="t")
    # Rows that would match twice are no longer there once they are matched by one.
    result.when_not_matched_insert_all().execute()


def compact():
    DeltaTable(SOURCE).optimize.compact()


def vacuum():
    DeltaTable(SOURCE).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def overwrite_part():
    write_deltalake(SOURCE, rows(30, 9).filter(pa.compute.equal(rows(30, 9)["host"], "h3")), mode="overwrite",
                    predicate="host = 'h3'")


def add_column():
    write_deltalake(SOURCE, rows(40, 4, note="new"), mode="append", schema_mode="merge")


def constrain():
    DeltaTable(SOURCE).alter.add_constraint({"small": "v IS NULL OR v < 1000000"})


def overwrite():
    write_deltalake(SOURCE, rows(60, 5, note="all"), mode="overwrite")


def restore():
    table = DeltaTable(SOURCE)
    table.restore(table.version() - 1)


COMMITS = [append, append_twice, compact, delete, update, merge, compact, vacuum, append, overwrite_part, add_column,
           constrain, append, overwrite, restore, append]


def comparable(relation):
    """The rows as text, floats to nine digits."""

    def text(value):
        if isinstance(value, float):
            return f"{value:.9g}"
        if isinstance(value, datetime):
            return value.replace(tzinfo=None).isoformat()
        return str(value)

    return sorted(tuple(text(value) for value in row) for row in relation.fetchall())


def sink(name):
    folder = next(f for f in os.listdir(os.path.join(DATA, "tables")) if f.startswith(name + "-"))
    return os.path.join(DATA, "tables", folder)


def expected(name):
    source = DeltaTable(SOURCE).to_pyarrow_table()  # noqa: F841, DuckDB finds it by its name
    return comparable(duckdb.sql(FLOWS[name][1]))


def found(name):
    """The sink by deltalake, and by DuckDB from the files that the log names."""
    columns = FLOWS[name][0]
    table = DeltaTable(sink(name))
    held = table.to_pyarrow_table()  # noqa: F841
    by_deltalake = comparable(duckdb.sql(f"SELECT {columns} FROM held"))
    files = table.file_uris()
    if not files:
        return by_deltalake, []
    listed = ", ".join(f"'{file}'" for file in files)
    return by_deltalake, comparable(duckdb.sql(f"SELECT {columns} FROM read_parquet([{listed}])"))


def wait_until_equal(after, process):
    end = time.time() + SECONDS_TO_FOLLOW
    while True:
        assert process.poll() is None, f"windrow has ended with {process.returncode} after {after}"
        wrong = None
        for name in FLOWS:
            want = expected(name)
            try:
                got = found(name)
            except (StopIteration, OSError, TableNotFoundError) as error:  # It is about to be made.
                got = (repr(error),)
            if any(one != want for one in got):
                wrong = (name, [set(want) ^ set(one) if isinstance(one, list) else one for one in got])
        if wrong is None:
            return
        assert time.time() < end, f"after {after}: {wrong[0]} differs in {json.dumps(wrong[1], default=str)[:2000]}"
        time.sleep(0.1)


def main():
    feed = {"configuration": {"delta.enableChangeDataFeed": "true"}, "partition_by": ["host"]}
    write_deltalake(SOURCE, rows(300, 0), **(feed if VARIANT == "feed" else {}))
    script = os.path.join(DIRECTORY, "pipeline.sql")
    with open(script, "w") as file:
        file.write(PIPELINE)
    process = subprocess.Popen([WINDROW, "run", script, "--data-dir", DATA, "--watch"], stdout=subprocess.DEVNULL)
    try:
        wait_until_equal("the start", process)
        for commit in COMMITS:
            commit()
            wait_until_equal(commit.__name__, process)
            print(f"{commit.__name__}: equal", flush=True)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0, f"windrow has ended with {process.returncode}"
    finally:
        process.kill()


main()

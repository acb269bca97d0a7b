"""Random commits by Windrow and by others, to a source and to the sinks of its flows, and after each few of them what DuckDB
makes of the source, which every sink has to hold.

Usage: random_writers.py WINDROW DIRECTORY own|plain|feed SEED STEPS
"""

import os
import random
import subprocess
import sys
from datetime import datetime, timedelta

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

WINDROW, DIRECTORY, VARIANT, SEED, STEPS = sys.argv[1:]
DATA = os.path.join(DIRECTORY, "data")
START = datetime(2024, 3, 30, 20)
HOURS = 60
CHOICE = random.Random(int(SEED))

SCHEMA = pa.schema([
    pa.field("ts", pa.timestamp("us"), nullable=VARIANT != "own"),
    pa.field("host", pa.string()),
    pa.field("v", pa.int64()),
])

# Each flow, the columns to compare, its query, and the same one for DuckDB.
FLOWS = {
    "merged": ("hour, host, n, total",
               "date_bin(INTERVAL '1 hour', ts) AS hour, host, count(*) AS n, sum(v) AS total",
               "date_trunc('hour', ts) AS hour, host, count(*) AS n, CAST(sum(v) AS BIGINT) AS total", "GROUP BY 1, 2"),
    "stated": ("day, kinds, mean, lowest",
               "date_trunc('day', ts) AS day, count(DISTINCT host) AS kinds, avg(v) AS mean, min(v) AS lowest",
               "date_trunc('day', ts) AS day, count(DISTINCT host) AS kinds, avg(v) AS mean, min(v) AS lowest",
               "GROUP BY 1"),
    "selected": ("ts, host, v", "ts, host, v", "ts, host, v", "WHERE v > 70"),
}


def windrow(sql):
    done = subprocess.run([WINDROW, "sql", "-c", sql, "--data-dir", DATA], capture_output=True, text=True)
    assert done.returncode == 0, f"{sql}\n{done.stdout}\n{done.stderr}"


def folder(name):
    tables = os.path.join(DATA, "tables")
    return os.path.join(tables, next(f for f in os.listdir(tables) if f.startswith(name + "-")))


def source():
    return folder("source") if VARIANT == "own" else os.path.join(DIRECTORY, "source")


def rows(count):
    """Of few instants, so that there are several in one and other writers' keys meet."""
    some = [(START + timedelta(minutes=CHOICE.randrange(HOURS * 6) * 10),
             CHOICE.choice([None, "h0", "h1", "h2", "h3"]), CHOICE.choice([None, *range(100)])) for _ in range(count)]
    return pa.table([pa.array(column, field.type) for column, field in zip(zip(*some), SCHEMA)], schema=SCHEMA)


def instant(hours):
    """As delta-rs compares it with a column."""
    return f"arrow_cast('{(START + timedelta(hours=hours)).isoformat()}', 'Timestamp(Microsecond, None)')"


def condition():
    start = CHOICE.randrange(HOURS)
    between = f"ts >= {instant(start)} AND ts < {instant(start + CHOICE.choice([1, 3, 30]))}"
    return CHOICE.choice([
        f"host = 'h{CHOICE.randrange(4)}'",
        f"v % {CHOICE.choice([2, 7, 31])} = 0",
        between,
        f"{between} AND v < {CHOICE.randrange(100)}",
    ])


def insert():
    values = ", ".join(
        "(" + ", ".join("NULL" if value is None else f"'{value}'" for value in row.values()) + ")"
        for row in rows(CHOICE.choice([1, 5, 40])).to_pylist())
    windrow(f"INSERT INTO source VALUES {values}")


def delete_own():
    windrow(f"DELETE FROM source WHERE {condition()}")


def compact_own():
    windrow("ADMIN COMPACT_TABLE('source')")


def append():
    for _ in range(CHOICE.choice([1, 1, 3])):
        write_deltalake(source(), rows(CHOICE.choice([1, 10, 100])), mode="append")


def delete():
    DeltaTable(source()).delete(condition())


def update():
    DeltaTable(source()).update(updates={"v": "v + 7"}, predicate=condition())


def move_in_time():
    DeltaTable(source()).update(updates={"ts": "ts + INTERVAL '2 hours'"}, predicate=condition())


def merge():
    new = rows(20).group_by(["ts", "host"]).aggregate([("v", "max")]).rename_columns(["ts", "host", "v"])
    new = new.cast(SCHEMA)
    merge = DeltaTable(source()).merge(new, "t.ts = s.ts AND t.host = s.host", source_alias="s", target_alias="t")
    merge = merge.when_matched_update({"v": "s.v"}).when_not_matched_insert_all()
    if CHOICE.random() < 0.3:
        merge = merge.when_not_matched_by_source_delete("t.v > 90")
    merge.execute()


def compact():
    DeltaTable(source()).optimize.compact()


def sort():
    DeltaTable(source()).optimize.z_order(["v"])


def overwrite_part():
    new = rows(60)
    write_deltalake(source(), new.filter(pc.equal(new["host"], "h3")), mode="overwrite", predicate="host = 'h3'")


def overwrite():
    write_deltalake(source(), rows(100), mode="overwrite")


def restore():
    go_back(DeltaTable(source()))


def go_back(table):
    if table.version() > 4:
        try:
            table.restore(table.version() - CHOICE.randrange(1, 4))
        except DeltaError as error:
            assert "missing file" in str(error), error  # It was vacuumed.


def checkpoint():
    DeltaTable(source()).create_checkpoint()


def vacuum():
    DeltaTable(source()).vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)


def sink():
    return DeltaTable(folder(CHOICE.choice(list(FLOWS))))


def delete_from_sink():
    table = sink()
    table.delete(f"{table.schema().fields[0].name} > {instant(CHOICE.randrange(HOURS))}")


def restore_sink():
    go_back(sink())


def compact_sink():
    sink().optimize.compact()


OWN = [insert, insert, insert, delete_own, compact_own]
THEIRS = [append, append, append, delete, update, move_in_time, merge, compact, sort, overwrite_part, overwrite, restore,
          checkpoint, vacuum, delete_from_sink, restore_sink, compact_sink]


def comparable(relation):
    """The rows as text, floats to nine digits."""

    def text(value):
        return f"{value:.9g}" if isinstance(value, float) else str(value)

    return sorted(tuple(text(value) for value in row) for row in relation.fetchall())


def check(after):
    windrow("; ".join(f"ADMIN FLUSH_FLOW('{name}')" for name in FLOWS))
    source_rows = DeltaTable(source()).to_pyarrow_table()  # noqa: F841, DuckDB finds it by its name
    for name, (columns, _, query, clause) in FLOWS.items():
        want = comparable(duckdb.sql(f"SELECT {columns} FROM (SELECT {query} FROM source_rows {clause})"))
        held = DeltaTable(folder(name)).to_pyarrow_table()  # noqa: F841
        got = comparable(duckdb.sql(f"SELECT {columns} FROM held"))
        assert want == got, f"{after}: {name} has {sorted(set(got) - set(want))}, not {sorted(set(want) - set(got))}"


def main():
    if VARIANT == "own":
        windrow("CREATE TABLE source (ts TIMESTAMP(6) TIME INDEX, host STRING, v BIGINT, PRIMARY KEY (host))")
    else:
        feed = {"configuration": {"delta.enableChangeDataFeed": "true"}, "partition_by": ["host"]}
        write_deltalake(source(), rows(300), **(feed if VARIANT == "feed" else {}))
        windrow(f"CREATE EXTERNAL TABLE source STORED AS DELTA LOCATION '{source()}' OPTIONS ('time_index' 'ts')")
    for name, (_, query, _, clause) in FLOWS.items():
        windrow(f"CREATE FLOW {name} SINK TO {name} AS SELECT {query} FROM source {clause}")
    steps = (OWN * 4 if VARIANT == "own" else []) + THEIRS
    done = []
    for number in range(int(STEPS)):
        step = CHOICE.choice(steps)
        print(f"{number}: {step.__name__}", flush=True)
        step()
        done.append(step.__name__)
        if CHOICE.random() < 0.6:
            check(f"seed {SEED}, step {number}, after {done}")
            done = []
            print(f"{number}: equal", flush=True)
    check(f"seed {SEED}, at the end, after {done}")


main()

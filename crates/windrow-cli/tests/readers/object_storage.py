"""Sources and sinks in S3: what `windrow` computes there, through other writers, restarts and kills.

Usage: object_storage.py WINDROW DIRECTORY
"""

import logging
import os
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta

import boto3
import duckdb
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from moto.server import ThreadedMotoServer

WINDROW, DIRECTORY = sys.argv[1], sys.argv[2]
DATA = os.path.join(DIRECTORY, "data")
SOURCE = "s3://lake/raw/source"
TABLES = "s3://lake/windrow tables"
START = datetime(2024, 3, 30, 20)
SECONDS = 60

FLOWS = {
    "hourly": "SELECT date_trunc('hour', ts) AS hour, host, count(*) AS n, avg(v) AS mean FROM source GROUP BY 1, 2",
    "daily": "SELECT date_trunc('day', ts) AS day, count(DISTINCT host) AS kinds, max(v) AS highest FROM source GROUP BY 1",
    "own": "SELECT date_trunc('day', ts) AS day, CAST(sum(v) AS BIGINT) AS total FROM here GROUP BY 1",
}

PIPELINE = f"""
CREATE EXTERNAL TABLE IF NOT EXISTS source STORED AS DELTA LOCATION '{SOURCE}' OPTIONS ('time_index' 'ts');
CREATE TABLE IF NOT EXISTS here (ts TIMESTAMP(6) TIME INDEX, v BIGINT) WITH ('append_mode' = 'true');
CREATE FLOW IF NOT EXISTS hourly SINK TO hourly WITH ('min_refresh' = '100 ms') AS
  SELECT date_bin(INTERVAL '1 hour', ts) AS hour, host, count(*) AS n, avg(v) AS mean FROM source GROUP BY 1, 2;
CREATE FLOW IF NOT EXISTS daily SINK TO daily WITH ('min_refresh' = '100 ms') AS
  SELECT date_trunc('day', ts) AS day, count(DISTINCT host) AS kinds, max(v) AS highest FROM source GROUP BY 1;
CREATE FLOW IF NOT EXISTS own SINK TO own WITH ('min_refresh' = '100 ms') AS
  SELECT date_trunc('day', ts) AS day, sum(v) AS total FROM here GROUP BY 1;
"""


def rows(count, seed):
    late = [(seed * 7 + i * 13) % 2000 if i % 5 == 0 else 0 for i in range(count)]
    return pa.table(
        {
            "ts": pa.array([START + timedelta(minutes=seed * 60 + i * 3 - late[i]) for i in range(count)], pa.timestamp("us")),
            "host": pa.array([None if i % 11 == 0 else f"h{(i + seed) % 4}" for i in range(count)], pa.string()),
            "v": pa.array([None if i % 7 == 3 else (i * 37 + seed) % 101 for i in range(count)], pa.int64()),
        }
    )


def start_server():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    os.environ.update(
        AWS_ENDPOINT=endpoint, AWS_ENDPOINT_URL=endpoint, AWS_ALLOW_HTTP="true", AWS_REGION="eu-south-1",
        AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing", NO_PROXY="127.0.0.1", no_proxy="127.0.0.1",
    )
    client = boto3.client("s3", endpoint_url=endpoint, region_name="eu-south-1")
    client.create_bucket(Bucket="lake", CreateBucketConfiguration={"LocationConstraint": "eu-south-1"})
    return server, client


OPTIONS = {"aws_conditional_put": "etag"}


def table(location):
    return DeltaTable(location, storage_options=OPTIONS)


def location_of(client, name):
    listed = client.list_objects_v2(Bucket="lake", Prefix=f"windrow tables/{name}-", Delimiter="/")
    folders = [folder["Prefix"] for folder in listed.get("CommonPrefixes", [])]
    assert len(folders) == 1, folders
    return f"s3://lake/{folders[0].rstrip('/')}"


def comparable(relation):
    def text(value):
        return f"{value:.9g}" if isinstance(value, float) else str(value)

    return sorted(tuple(text(value) for value in row) for row in relation.fetchall())


def differences(client):
    source = table(SOURCE).to_pyarrow_table()  # noqa: F841, DuckDB finds them by their names
    here = table(location_of(client, "here")).to_pyarrow_table()  # noqa: F841
    wrong = {}
    for name, query in FLOWS.items():
        columns = duckdb.sql(query).columns
        want = comparable(duckdb.sql(query))
        held = table(location_of(client, name)).to_pyarrow_table()  # noqa: F841
        got = comparable(duckdb.sql(f"SELECT {', '.join(columns)} FROM held"))
        if got != want:
            wrong[name] = set(want) ^ set(got)
    return wrong


def check(client, after):
    wrong = differences(client)
    assert not wrong, f"after {after}: {wrong}"
    print(f"{after}: equal", flush=True)


def wait(client, after, process):
    end = time.time() + SECONDS
    while True:
        assert process.poll() is None, f"windrow has ended with {process.returncode} after {after}"
        try:
            wrong = differences(client)
        except (AssertionError, OSError) as error:
            wrong = repr(error)
        if not wrong:
            print(f"{after}: equal", flush=True)
            return
        assert time.time() < end, f"after {after}: {wrong}"
        time.sleep(0.2)


def windrow(*arguments):
    result = subprocess.run([WINDROW, *arguments], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def main():
    server, client = start_server()
    write_deltalake(SOURCE, rows(300, 0), storage_options=OPTIONS)
    script = os.path.join(DIRECTORY, "pipeline.sql")
    with open(script, "w") as file:
        file.write(PIPELINE + "INSERT INTO here VALUES ('2024-01-01', 1), ('2024-01-02', 2);")
    windrow("run", script, "--data-dir", DATA, "--tables", TABLES)
    assert os.listdir(os.path.join(DATA, "tables")) == []
    check(client, "the start")

    # The directory knows where its tables are.
    windrow("sql", "--data-dir", DATA, "-c", "INSERT INTO here VALUES ('2024-01-01', 5); DELETE FROM here WHERE v = 2")
    check(client, "a restart")
    write_deltalake(SOURCE, rows(200, 1), mode="append", storage_options=OPTIONS)
    windrow("sql", "--data-dir", DATA, "-c", "SHOW FLOWS")
    check(client, "rows of another writer")
    table(SOURCE).delete("host = 'h1' AND v > 20")
    windrow("sql", "--data-dir", DATA, "-c", "ADMIN COMPACT_TABLE('hourly'); ADMIN VACUUM_TABLE('hourly')")
    check(client, "a delete and a compaction")

    # Killed at any moment, it goes on.
    with open(script, "w") as file:
        file.write(PIPELINE)
    for attempt in range(3):
        process = subprocess.Popen([WINDROW, "run", script, "--data-dir", DATA, "--watch"], stdout=subprocess.DEVNULL)
        try:
            write_deltalake(SOURCE, rows(60, 2 + attempt), mode="append", storage_options=OPTIONS)
            time.sleep(0.2 + 0.5 * attempt)
            process.kill()
            process.wait()
            process = subprocess.Popen([WINDROW, "run", script, "--data-dir", DATA, "--watch"], stdout=subprocess.DEVNULL)
            table(SOURCE).update(updates={"v": "v + 100"}, predicate=f"host = 'h{attempt}'")
            wait(client, f"kill {attempt}", process)
            # Someone else changes a sink.
            table(location_of(client, "daily")).delete("kinds > 1")
            wait_after = f"a change of a sink {attempt}"
            end = time.time() + SECONDS
            while differences(client):
                assert time.time() < end, wait_after
                time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            # It may have been stopped before it began to watch.
            assert process.wait(30) in (0, -signal.SIGINT), process.returncode
        finally:
            process.kill()
    check(client, "changes of sinks")

    # Once there is a checkpoint, the log before it is no longer needed.
    with open(script, "w") as file:
        file.write("".join(f"INSERT INTO here VALUES ('2024-01-03', {i});" for i in range(120)))
    windrow("run", script, "--data-dir", DATA, "--manual")
    log = location_of(client, "here").removeprefix("s3://lake/") + "/_delta_log/"
    for version in range(100):
        client.delete_object(Bucket="lake", Key=f"{log}{version:020}.json")
    windrow("sql", "--data-dir", DATA, "-c", "INSERT INTO here VALUES ('2024-01-03', 1)")
    check(client, "a checkpoint")

    windrow("sql", "--data-dir", DATA, "-c", "DROP FLOW own; DROP TABLE own")
    left = client.list_objects_v2(Bucket="lake", Prefix="windrow tables/own-")
    assert left["KeyCount"] == 0, left
    print("a dropped table: equal", flush=True)
    server.stop()


main()

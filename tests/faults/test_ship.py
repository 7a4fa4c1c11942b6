"""Workers without the package: an error before anything runs, and the package sent to them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys
from pyspark.sql import SparkSession
import latecomer as lc

folder, remote = sys.argv[1:]
builder = SparkSession.builder.config("spark.ui.enabled", "false")
builder = builder.config("spark.sql.streaming.stateStore.providerClass",
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
spark = (builder.remote("local[2]") if remote == "connect" else builder.master("local[2]")).getOrCreate()
df = spark.range(100).selectExpr("id", "TIMESTAMP_SECONDS(100 - id) AS ts")
result = lc.disordered(df, time="ts", shards=2).reorder("1 hour")
try:
    result.write(f"{folder}/out")
except lc.LatecomerError as error:
    print("refused:", error)
lc.ship(spark)
lc.ship(spark)
print("given:", result.write(f"{folder}/out")["given"])
"""

HIDE = """
import os, sys
sys.path[:] = [place for place in sys.path if not os.path.isdir(os.path.join(place, "latecomer"))]
"""


@pytest.mark.parametrize("way", ["classic", "connect"])
def test_the_package_is_shipped_to_workers_that_lack_it(tmp_path: Path, way: str) -> None:
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(HIDE)
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}/hidden:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    environment = {**os.environ, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), way],
        env={**environment, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    refused, given = done.stdout.strip().splitlines()[-2:]
    assert refused.startswith("refused: Spark's workers must be able to import latecomer; got ")
    assert "No module named 'latecomer'" in refused
    assert "lc.ship(spark)" in refused
    assert given == "given: 100"

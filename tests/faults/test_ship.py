"""Workers without the package: an error before anything runs, and the package sent to them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import latecomer as lc
from tests.faults.turns import connect_port

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
sys.path += {old!r}
"""
LACKS = "Spark's workers must be able to import latecomer; got \"ModuleNotFoundError: No module named 'latecomer'\""
OTHER = f"Spark's workers must have latecomer {lc.__version__}, as here; got '0.0.9'"


@pytest.mark.parametrize(
    ("way", "old", "said"), [("classic", False, LACKS), ("connect", False, LACKS), ("classic", True, OTHER)]
)
def test_the_package_is_shipped_to_workers_that_lack_it_or_have_another(
    tmp_path: Path, way: str, old: bool, said: str
) -> None:
    (tmp_path / "old" / "latecomer").mkdir(parents=True)
    (tmp_path / "old" / "latecomer" / "__init__.py").write_text("__version__ = '0.0.9'")
    (tmp_path / "hidden").mkdir()
    place = [str(tmp_path / "old")] if old else []
    (tmp_path / "hidden" / "sitecustomize.py").write_text(HIDE.format(old=place))
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH="{tmp_path}/hidden:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    environment = {**os.environ, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": sys.executable}
    with connect_port():
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
    assert refused.startswith(f"refused: {said}")
    assert "lc.ship(spark)" in refused
    assert given == "given: 100"

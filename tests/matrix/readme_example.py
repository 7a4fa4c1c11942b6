"""The first example of the README, run with nothing but the installed package, on the demo's readings."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

import latecomer as lc
from latecomer.spark.demo import SCHEMA, Demo, write_readings

text = Path(sys.argv[1]).read_text()
example = re.search(r"```python\n(.*?)```", text, re.DOTALL)
assert example is not None
with tempfile.TemporaryDirectory(prefix="latecomer-readme-", ignore_cleanup_errors=True) as folder:
    wanted = Demo(rows=100_000)
    write_readings(wanted, Path(folder) / "readings")
    spark = lc.session("readme")
    names: dict[str, Any] = {
        "F": F,
        "lc": lc,
        "readings": spark.readStream.schema(SCHEMA).parquet(f"{folder}/readings"),
    }
    exec(example[1], names)
    query = names["result"].start(f"{folder}/out", checkpoint=f"{folder}/checkpoint", available_now=True)
    query.awaitTermination()
    counters = lc.read_counters(query.lastProgress)
    assert counters is not None
    assert counters["seen"] == wanted.rows
    print(f"the README's first example, with Spark {spark.version}: {counters['given']:,} results")
    spark.stop()

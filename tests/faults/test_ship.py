"""Workers without the package, or with another version: an error before anything runs, and the package sent to them."""

from __future__ import annotations

from pathlib import Path

import latecomer as lc
from tests.faults.workers import run_without_package

PROGRAM = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
import latecomer as lc

folder = sys.argv[1]
provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
builder = SparkSession.builder.config("spark.ui.enabled", "false").master("local[2]")
spark = builder.config("spark.sql.streaming.stateStore.providerClass", provider).getOrCreate()
df = spark.range(100).selectExpr("id", "TIMESTAMP_SECONDS(100 - id) AS ts")
result = lc.disordered(df, time="ts", shards=2).reorder("1 hour")

def refused():
    try:
        result.write(f"{folder}/out")
    except lc.LatecomerError as error:
        print("refused:", error)

refused()
other = Path(folder, "old", "latecomer")
other.mkdir()
(other / "__init__.py").write_text("__version__ = '0.0.9'")
refused()
lc.ship(spark)
lc.ship(spark)
print("given:", result.write(f"{folder}/out")["given"])
"""

LACKS = "Spark's workers must be able to import latecomer; got \"ModuleNotFoundError: No module named 'latecomer'\""
OTHER = f"Spark's workers must have latecomer {lc.__version__}, as here; got '0.0.9'"


def test_the_package_is_shipped_to_workers_that_lack_it_or_have_another(tmp_path: Path) -> None:
    lacking, other, given = run_without_package(PROGRAM, tmp_path)[-3:]
    for refused, said in ((lacking, LACKS), (other, OTHER)):
        assert refused.startswith(f"refused: {said}")
        assert "lc.ship(spark)" in refused
    assert given == "given: 100"

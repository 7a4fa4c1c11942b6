"""Whether Spark's workers can run the operator, asked before a query starts; and sending them the package."""

from __future__ import annotations

import atexit
import json
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from latecomer._version import __version__
from latecomer.errors import LatecomerError, must
from latecomer.spark.compat import check_spark

if TYPE_CHECKING:
    import pyarrow as pa

_SHIP = "run lc.ship(spark), or spark.addArtifacts('latecomer.zip', pyfile=True), or install it where the workers run"
_checked = WeakSet[SparkSession]()


def check_workers(spark: SparkSession) -> None:
    """Refuse to start where a worker lacks the package, or has another version of it or of Python; once per session."""
    if spark in _checked:
        return
    check_spark(spark.version, "Spark")
    found = _asked(spark)
    if found["python"] != _python():
        advice = "set PYSPARK_PYTHON to the same Python before the session starts"
        raise LatecomerError(must("Python of Spark's workers", f"be {_python()}, as here", found["python"], advice))
    if found["error"] is not None:
        raise LatecomerError(must("Spark's workers", "be able to import latecomer", found["error"], _SHIP))
    if found["latecomer"] != __version__:
        rule = f"have latecomer {__version__}, as here"
        raise LatecomerError(must("Spark's workers", rule, found["latecomer"], _SHIP))
    _checked.add(spark)


def ship(spark: SparkSession) -> None:
    """Send this package to the workers of a session that lack it; numpy, numba, pandas and pyarrow must be there."""
    spark.addArtifacts(str(_archive()), pyfile=True)
    _checked.discard(spark)


@cache
def _archive() -> Path:
    """The package as a zip, which stays as long as this process: on classic Spark workers may fetch it at any time."""
    folder = Path(tempfile.mkdtemp(prefix="latecomer-ship-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    file = folder / f"latecomer-{__version__}.zip"
    root = Path(__file__).parents[1]
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in root.rglob("*") if path.suffix in (".py", ".typed", ".properties")):
            archive.write(path, path.relative_to(root.parent))
    return file


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _asked(spark: SparkSession) -> dict[str, Any]:
    """What a worker says of itself."""
    try:
        text = spark.range(1).mapInArrow(_question(), "found string").collect()[0][0]
    except PySparkException as error:
        if "PYTHON_VERSION_MISMATCH" not in str(error) and "different version" not in str(error):
            raise
        return {"python": "another", "error": None, "latecomer": None}
    found: dict[str, Any] = json.loads(text)
    return found


def _question() -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function that travels whole: a nested one, which uses nothing of this module."""

    def answer(batches: Iterator[Any]) -> Iterator[Any]:
        import json
        import sys

        import pyarrow as pa

        found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}", "error": None, "latecomer": None}
        try:
            from latecomer._version import __version__

            found["latecomer"] = __version__
        except Exception as error:
            found["error"] = f"{type(error).__name__}: {error}"
        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict({"found": [json.dumps(found)]})

    return answer

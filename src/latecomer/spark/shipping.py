"""Whether Spark's workers can run the operator, asked before a query starts; and sending them the package."""

from __future__ import annotations

import atexit
import json
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from latecomer._version import __version__
from latecomer.errors import InputError, LatecomerError, must
from latecomer.spark.compat import check_connect, check_spark
from latecomer.spark.failures import deepest

if TYPE_CHECKING:
    import pyarrow as pa

_SHIP = "run lc.ship(spark), or spark.addArtifacts('latecomer.zip', pyfile=True), or install it where the workers run"
_INSTALL = "install it where the workers run, or set PYSPARK_PYTHON to a Python that has it; lc.ship(spark) brings none"
_LIBRARIES = ("numpy", "numba", "pandas", "pyarrow")
_checked = WeakSet[SparkSession]()


def check_workers(spark: SparkSession) -> None:
    """Refuse to start where a worker lacks a package, or has another version of ours or of Python; once per session."""
    if spark in _checked:
        return
    check_spark(spark.version, "Spark")
    check_connect(spark)
    found = _asked(spark)
    if found.get("python", _python()) != _python():
        advice = "set PYSPARK_PYTHON to the same Python before the session starts"
        raise LatecomerError(must("Python of Spark's workers", f"be {_python()}, as here", found["python"], advice))
    missing = found.get("missing")
    if missing is not None:
        advice = _INSTALL if missing in _LIBRARIES else _SHIP
        raise LatecomerError(must("Spark's workers", f"be able to import {missing}", found["error"], advice))
    if found["latecomer"] != __version__:
        rule = f"have latecomer {__version__}, as here"
        raise LatecomerError(must("Spark's workers", rule, found["latecomer"], _SHIP))
    _checked.add(spark)


def ship(spark: SparkSession) -> None:
    """Send this package to the workers of a session that lack it; numpy, numba, pandas and pyarrow must be there."""
    if not hasattr(spark, "addArtifacts"):
        raise InputError(must("ship", "be given a Spark session", spark, "e.g. lc.ship(spark)"))
    spark.addArtifacts(str(_archive()), pyfile=True)
    _checked.discard(spark)


@contextmanager
def imported_by_server() -> Iterator[None]:
    """While a stream starts: over Connect its micro-batches end in a Python of the server's, out of reach of `ship`."""
    try:
        yield
    except PySparkException as error:
        if "No module named 'latecomer" not in str(error):
            raise
        where, advice = (
            "Python of the Spark Connect server",
            "install it where the server runs: ship reaches workers only",
        )
        got = "ModuleNotFoundError: No module named 'latecomer'"
        raise LatecomerError(must(where, "be able to import latecomer for a stream", got, advice)) from error


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
    """What a worker says of itself; what Spark says where it lacks pyarrow, or has another Python, and never runs."""
    try:
        text = spark.range(1).mapInArrow(_question(__version__, _LIBRARIES), "found string").collect()[0][0]
    except (PySparkException, Py4JError) as error:
        python = re.search(r"different (?:minor )?version:? \D*(\d+)\D+(\d+)", str(error))
        if python is not None:
            return {"python": f"{python[1]}.{python[2]}"}
        missing = re.search(r"(?:No module named|package_name.*?) '([\w.]+)'|PACKAGE_NOT_INSTALLED\] (\w+)", str(error))
        if missing is not None:
            name = (missing[1] or missing[2]).lower()
            return {"missing": name, "error": f"ModuleNotFoundError: No module named '{name}'"}
        advice = "set PYSPARK_PYTHON to a Python that has latecomer before the session starts"
        raise LatecomerError(must("Spark's workers", "run Python", deepest(error), advice)) from error
    found: dict[str, Any] = json.loads(text)
    return found


def _question(
    version: str, libraries: tuple[str, ...]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A function that travels whole: a nested one, which uses nothing of this module.

    A worker that has another version of ours forgets it, so that one that is shipped to it can take its place.
    """

    def answer(batches: Iterator[Any]) -> Iterator[Any]:
        import json
        import sys
        from importlib import import_module

        import pyarrow as pa

        found: dict[str, Any] = {"python": f"{sys.version_info.major}.{sys.version_info.minor}", "latecomer": None}
        for name in (*libraries, "latecomer"):
            try:
                found["latecomer"] = import_module(name).__version__
            except Exception as error:
                found |= {"missing": name, "error": f"{type(error).__name__}: {error}"}
                break
        if found["latecomer"] != version:
            for name in [name for name in sys.modules if name.partition(".")[0] == "latecomer"]:
                del sys.modules[name]
        for _ in batches:
            pass
        yield pa.RecordBatch.from_pydict({"found": [json.dumps(found)]})

    return answer

"""Small records beside data: each a JSON line in a file of its own, written whole and never changed.

On a disk of this machine they are plain files, which cost next to nothing in a micro-batch. Elsewhere Spark writes and
reads them, so any file system Spark knows will do, and a client over Connect needs none of them.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from weakref import WeakKeyDictionary

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from latecomer.errors import StateError, must
from latecomer.spark.compat import is_connect

Record = dict[str, Any]
_HERE = Path(__file__).with_name("log4j2.properties")  # a file that is there, whose name Spark does not hide
_default_is_local = WeakKeyDictionary[SparkSession, bool]()


@dataclass(frozen=True)
class Records:
    """Records in a folder and those below it; `local`: on a disk of this machine."""

    folder: str
    local: bool

    def append(self, spark: SparkSession, name: str, record: Record) -> None:
        """Write one record under a name that no other has."""
        text = json.dumps(record, sort_keys=True, default=str)
        if not self.local:
            frame = spark.createDataFrame([(text,)], "value string")
            frame.coalesce(1).write.mode("append").text(f"{self.folder}/{name}")
            return
        path = local_path(self.folder) / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name}")
        unfinished.write_text(text + "\n")
        unfinished.replace(path)

    def read(self, spark: SparkSession) -> list[Record]:
        """All records; one that is damaged is refused with a sentence."""
        if self.local:
            lines = [line for path in self._files() for line in path.read_text(errors="replace").splitlines()]
        else:
            lines = [row["value"] for row in _rows(self._lines(spark))]
        return [self._parsed(line) for line in lines]

    def paths(self, spark: SparkSession) -> list[str]:
        """The whole paths of all records' files, which have their names in them."""
        if self.local:
            return [f"file://{path}" for path in self._files()]
        return _inputs(self._lines(spark))

    def _files(self) -> list[Path]:
        """Files that Spark would not hide either."""
        found = []
        for folder, folders, names in os.walk(local_path(self.folder)):
            folders[:] = [name for name in folders if name[0] not in "._"]
            found += [Path(folder, name) for name in names if name[0] not in "._"]
        return sorted(found)

    def _lines(self, spark: SparkSession) -> DataFrame | None:
        return existing(lambda: spark.read.option("recursiveFileLookup", "true").text(self.folder))

    def _parsed(self, line: str) -> Record:
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            advice = "put back what was there, or begin anew elsewhere (nothing was changed)"
            raise StateError(must(f"records in {self.folder}", "be what latecomer wrote", line[:80], advice))
        return record


def records_at(spark: SparkSession, folder: str) -> Records:
    """Records in a folder as users name it."""
    return Records(folder.rstrip("/"), _is_local(spark, folder))


def whole(folder: str) -> Records:
    """Records in a folder whose path Spark has told us, seen from the process that writes the batches."""
    return Records(folder, folder.startswith("file:"))


def local_path(folder: str) -> Path:
    """A folder on this machine, named with its scheme or without."""
    return Path("/" + folder.removeprefix("file:").lstrip("/"))


def existing(read: Any) -> DataFrame | None:
    """What Spark is to read, None where there is no such path; any other error is an error."""
    try:
        frame: DataFrame = read()
        _ = frame.schema  # over Connect nothing has been looked at before
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise
    return frame


def whole_file(spark: SparkSession, path: str) -> list[str]:
    """The lines of a text file whose whole path is known, seen from the process that writes the batches."""
    if path.startswith("file:"):
        file = local_path(path)
        return file.read_text(errors="replace").splitlines() if file.exists() else []
    return [row["value"] for row in _rows(existing(lambda: spark.read.text(path)))]


def files_in(spark: SparkSession, folder: str) -> list[str]:
    """The whole paths of all files in a folder, and below it, that Spark does not hide."""
    if _is_local(spark, folder):
        return Records(folder, local=True).paths(spark)
    listed = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    return _inputs(existing(lambda: listed.load(folder)))


def _inputs(frame: DataFrame | None) -> list[str]:
    return [] if frame is None else [unquote(path) for path in frame.inputFiles()]


def _rows(frame: DataFrame | None) -> list[Any]:
    return [] if frame is None else frame.collect()


def _is_local(spark: SparkSession, folder: str) -> bool:
    """Whether Spark's files there can be opened from this process.

    Not over Connect, whose client may be elsewhere; nor below the working folder, which the JVM may have another of.
    """
    if is_connect(spark) or folder.startswith("file:"):
        return not is_connect(spark)
    if not folder.startswith("/"):
        return False
    if spark not in _default_is_local:
        found = existing(lambda: spark.read.text(str(_HERE)))
        _default_is_local[spark] = any(path.startswith("file:") for path in _inputs(found))
    return _default_is_local[spark]

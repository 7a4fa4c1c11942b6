"""A lane's files as a query writes them, batch by batch, and as `lc.read` reads them: see `lane_log.py`."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from latecomer.errors import InputError, LatecomerWarning, must
from latecomer.spark.lane_log import BATCH, LOG, LaneLog, is_void, standing
from latecomer.spark.records import existing, files_in
from latecomer.spark.sinks import Files


@dataclass(frozen=True)
class FileLane:
    """A lane's folder in the hands of one run.

    folder: its whole path. columns: of the lane, as JSON. again: up to this batch an earlier run may have left files.
    """

    folder: str
    format: str
    columns: str
    run: str
    again: int = -1

    @property
    def log(self) -> LaneLog:
        """The folder's records, seen from the process that writes the batches."""
        return LaneLog.at(self.folder)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Write a batch, which nobody reads before `publish`; a run that is no longer the latest stops here."""
        self.log.check_latest(rows.sparkSession, self.run)
        rows.write.mode("overwrite").format(self.format).save(self._place(batch, self.run))

    def publish(self, spark: SparkSession, batch: int) -> None:
        """Let a batch be read, and what earlier runs left of it no longer."""
        self.log.add(spark, batch, self.run)
        if batch <= self.again:
            for run in self._runs_of(spark, batch) - {self.run}:
                self.empty(spark, batch, run)

    def empty(self, spark: SparkSession, batch: int, run: str | None = None) -> None:
        """Take the rows out of a batch as one run wrote it, so that nobody reads them, with whatever reader."""
        nothing = spark.createDataFrame([], self._schema)
        nothing.write.mode("overwrite").format(self.format).save(self._place(batch, run or self.run))

    def set_aside(self, spark: SparkSession, log: LaneLog, through: int) -> FileLane:
        """Go on after batch `through`: what lies beyond it is moved to `_latecomer/aside/<run>`."""
        log.keep(spark, self.run, through)
        written = log.written(spark)
        before = {run: last for run, last in log.kept(spark).items() if run != self.run}
        for batch, run in written:
            if batch > through and not is_void(batch, run, before):
                self._move_aside(spark, batch, run)
        return replace(self, again=max([through, *(each.batch + 1 for each in written)]))

    def _move_aside(self, spark: SparkSession, batch: int, run: str) -> None:
        rows = _load(spark, self.format, self._schema, [self._place(batch, run)])
        if rows is not None:
            place = f"{self.folder}/{LOG}/aside/{self.run}/{BATCH}={batch}"
            rows.write.mode("overwrite").format(self.format).save(place)
            self.empty(spark, batch, run)

    @property
    def _schema(self) -> T.StructType:
        return T.StructType.fromJson(json.loads(self.columns))

    def _place(self, batch: int, run: str) -> str:
        return f"{self.folder}/{BATCH}={batch}/{run}"

    def _runs_of(self, spark: SparkSession, batch: int) -> set[str]:
        return {path.rsplit("/", 2)[1] for path in files_in(spark, f"{self.folder}/{BATCH}={batch}")}


def check_lanes(spark: SparkSession, owner: str, lanes: Iterable[Files]) -> None:
    """Refuse folders that another query has filled."""
    for files in lanes:
        LaneLog.of(spark, files.path).check_owner(spark, owner)


def claim_lane(spark: SparkSession, owner: str, files: Files, columns: T.StructType, again: int) -> FileLane:
    """Take a lane's folder for a run that is later than all others."""
    run, folder = LaneLog.of(spark, files.path).claim(spark, owner, columns.json(), files.format)
    return FileLane(folder, files.format, columns.json(), run, again)


def read(spark: SparkSession, path: str | os.PathLike[str], lane: str | None = None) -> DataFrame:
    """The rows of a lane that `.start` or `.write` wrote as files, each batch as a whole, once, with a column `batch`.

    path: what `.start` was given, with the name of the lane or view; or the folder of a lane's own sink alone.
    """
    folder = os.fspath(path).rstrip("/") + (f"/{lane}" if lane else "")
    log = LaneLog.of(spark, folder)
    runs = log.runs(spark)
    if not runs:
        advice = "name the lane, e.g. lc.read(spark, 'out', 'results'), or give the folder of its sink"
        raise InputError(must("folder", "be a lane that latecomer wrote", folder, advice))
    latest = list(runs.values())[-1]
    schema = T.StructType.fromJson(json.loads(latest["columns"]))
    ours = {run for run, each in runs.items() if each["owner"] == latest["owner"]}
    while True:
        chosen = _chosen(spark, log, ours)
        rows = _rows(spark, folder, latest["format"], schema, chosen)
        again = _chosen(spark, log, ours)
        if all(again.get(batch) == run for batch, run in chosen.items()):  # none was replaced while it was looked up
            return rows


def _chosen(spark: SparkSession, log: LaneLog, runs: set[str]) -> dict[int, str]:
    return standing((each for each in log.written(spark) if each.run in runs), log.kept(spark))


def _rows(spark: SparkSession, folder: str, format: str, schema: T.StructType, chosen: dict[int, str]) -> DataFrame:
    """The rows of the chosen batches; those that the user has deleted are left out, with a warning."""
    places = [f"{BATCH}={batch}/{run}" for batch, run in chosen.items()]
    rows = _load(spark, format, schema, [f"{folder}/{place}" for place in places], base=folder)
    if places and rows is None:
        there = {"/".join(path.rsplit("/", 3)[1:3]) for path in files_in(spark, folder)}
        left = [place for place in places if place in there]
        warnings.warn(f"{len(places) - len(left)} batches of {folder} were deleted", LatecomerWarning, stacklevel=3)
        rows = _load(spark, format, schema, [f"{folder}/{place}" for place in left], base=folder)
    return spark.createDataFrame([], schema.add(BATCH, T.IntegerType())) if rows is None else rows


def _load(
    spark: SparkSession, format: str, schema: T.StructType, places: list[str], base: str | None = None
) -> DataFrame | None:
    if not places:
        return None
    reader = spark.read.format(format).schema(schema)
    if base is not None:
        reader = reader.option("basePath", base)
    return existing(lambda: reader.load(places))

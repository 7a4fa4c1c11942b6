"""A lane's files as a query writes them, batch by batch, and as `lc.read` reads them: see `lane_log.py`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from latecomer.errors import InputError, LatecomerWarning, must
from latecomer.spark.lane_log import BATCH, LOG, Claim, LaneLog, Void, Written, standing
from latecomer.spark.records import existing, files_in
from latecomer.spark.sinks import Files, folder_of


@dataclass(frozen=True)
class FileLane:
    """A lane's folder in the hands of one run.

    folder: its whole path. again: up to this batch an earlier run may have left files.
    """

    folder: str
    claim: Claim
    run: str
    again: int = -1

    @property
    def log(self) -> LaneLog:
        """The folder's records, seen from the process that writes the batches."""
        return LaneLog.at(self.folder)

    def __call__(self, rows: DataFrame, batch: int) -> None:
        """Write a batch, which nobody reads before `publish`; a run that is no longer the latest stops here."""
        self.log.check_latest(rows.sparkSession, self.run)
        rows.write.mode("overwrite").format(self.claim.format).save(self._place(batch, self.run))

    def publish(self, spark: SparkSession, batch: int) -> None:
        """Let a batch be read, and what earlier runs left of it no longer."""
        self.log.add(spark, batch, self.run)
        if batch <= self.again:
            for run in self._runs_of(spark, batch) - {self.run}:
                self.empty(spark, batch, run)

    def empty(self, spark: SparkSession, batch: int, run: str | None = None) -> None:
        """Take the rows out of a batch as one run wrote it, so that nobody reads them, with whatever reader."""
        nothing = spark.createDataFrame([], self.claim.schema)
        nothing.write.mode("overwrite").format(self.claim.format).save(self._place(batch, run or self.run))

    def set_aside(self, spark: SparkSession, through: int) -> FileLane:
        """Go on after batch `through`: what lies beyond it is moved to `_latecomer/aside/<run>`."""
        log, void = self.log, Void(self.log.kept(spark))
        log.keep(spark, self.run, through)
        written = log.written(spark)
        for each in written:
            if each.batch > through and each not in void:
                self._move_aside(spark, each)
        return replace(self, again=max([through, *(each.batch + 1 for each in written)]))

    def _move_aside(self, spark: SparkSession, written: Written) -> None:
        rows = _load(spark, self.claim, [self._place(*written)])
        if rows is not None:
            place = f"{self.folder}/{LOG}/aside/{self.run}/{BATCH}={written.batch}"
            rows.write.mode("overwrite").format(self.claim.format).save(place)
            self.empty(spark, *written)

    def _place(self, batch: int, run: str) -> str:
        return f"{self.folder}/{BATCH}={batch}/{run}"

    def _runs_of(self, spark: SparkSession, batch: int) -> set[str]:
        return {path.rsplit("/", 2)[1] for path in files_in(spark, f"{self.folder}/{BATCH}={batch}")}


def check_lanes(spark: SparkSession, lanes: Mapping[str, Files], claims: Mapping[str, Claim]) -> None:
    """Refuse folders that another query, or another lane of this one, has filled."""
    for name, files in lanes.items():
        LaneLog.of(spark, files.path).check(spark, claims[name])


def announce_lane(spark: SparkSession, files: Files, claim: Claim) -> FileLane:
    """A lane's folder for a run that is later than all others, and has not begun."""
    run, folder = LaneLog.of(spark, files.path).announce(spark, claim)
    return FileLane(folder, claim, run)


def take_over(
    spark: SparkSession, lanes: Mapping[str, FileLane], planned: Callable[[], int] | None
) -> dict[str, FileLane]:
    """The folders of a run that begins: earlier ones stop, and what lies beyond the checkpoint is set aside.

    planned: the last batch that the checkpoint knows, None in a batch, which replaces what it wrote before.
    """
    for lane in lanes.values():
        lane.log.begin(spark, lane.run)
    for lane in lanes.values():
        lane.log.check_latest(spark, lane.run)
    if planned is None:
        return {name: replace(lane, again=0) for name, lane in lanes.items()}
    through = planned() if lanes else -1
    found = {name: lane.set_aside(spark, through) for name, lane in lanes.items()}
    again = max((lane.again for lane in found.values()), default=-1)  # one run may have left files in any of them
    return {name: replace(lane, again=again) for name, lane in found.items()}


def read(spark: SparkSession, path: str | os.PathLike[str], lane: str | None = None) -> DataFrame:
    """The rows of a lane that `.start` or `.write` wrote as files, each batch as a whole, once, with a column `batch`.

    path: what `.start` was given, with the name of the lane or view; or the folder of a lane's own sink alone.
    """
    folder = folder_of(path, "path").rstrip("/") + (f"/{lane}" if lane else "")
    log = LaneLog.of(spark, folder)
    runs = log.runs(spark)
    if not runs:
        advice = "name the lane, e.g. lc.read(spark, 'out', 'results'), or give the folder of its sink"
        raise InputError(must("folder", "be a lane that latecomer wrote", folder, advice))
    latest = runs.get(log.latest(spark) or "", list(runs.values())[-1])
    ours = {run for run, each in runs.items() if each.owner == latest.owner}
    while True:
        chosen = _chosen(spark, log, ours)
        rows = _rows(spark, folder, latest, chosen)
        again = _chosen(spark, log, ours)
        if all(again.get(batch) == run for batch, run in chosen.items()):  # none was replaced while it was looked up
            return rows


def _chosen(spark: SparkSession, log: LaneLog, runs: set[str]) -> dict[int, str]:
    return standing((each for each in log.written(spark) if each.run in runs), log.kept(spark))


def _rows(spark: SparkSession, folder: str, claim: Claim, chosen: dict[int, str]) -> DataFrame:
    """The rows of the chosen batches; those that the user has deleted are left out, with a warning."""
    places = [f"{BATCH}={batch}/{run}" for batch, run in chosen.items()]
    rows = _load(spark, claim, [f"{folder}/{place}" for place in places], base=folder)
    if places and rows is None:
        there = {"/".join(path.rsplit("/", 3)[1:3]) for path in files_in(spark, folder)}
        left = [place for place in places if place in there]
        warnings.warn(f"{len(places) - len(left)} batches of {folder} were deleted", LatecomerWarning, stacklevel=3)
        rows = _load(spark, claim, [f"{folder}/{place}" for place in left], base=folder)
    if rows is not None:
        return rows
    return spark.createDataFrame([], T.StructType([*claim.schema.fields, T.StructField(BATCH, T.IntegerType())]))


def _load(spark: SparkSession, claim: Claim, places: list[str], base: str | None = None) -> DataFrame | None:
    if not places:
        return None
    reader = spark.read.format(claim.format).schema(claim.schema)
    if base is not None:
        reader = reader.option("basePath", base)
    return existing(lambda: reader.load(places))

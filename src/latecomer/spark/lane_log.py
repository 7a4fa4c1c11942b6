"""Which files of a lane's folder are its rows: who owns the folder, which runs wrote to it, which batches are whole.

    <folder>/batch=<id>/<run>/...             the rows of a batch, as one run of the query wrote them
    <folder>/_latecomer/runs/<run>            a start: whose folder it is, columns, format
    <folder>/_latecomer/kept/<run>-through-<id>    the last batch that the checkpoint knew when the run started
    <folder>/_latecomer/batches/<n>/<id>-<run>     this run has written this batch as a whole

1. A run writes into folders of its own, and only while it is the latest: no run can harm the files of another.
2. A batch is there as a whole or not at all: its record is written when all its files are.
3. A run claims a folder before it asks how far its checkpoint has come. So whatever an earlier run, taken for dead, may
   still write is a batch that the checkpoint knows, with the same rows. The latest run's is read.
4. What lies beyond the last batch that a later run's checkpoint knew is void: it was restored from an older copy, and
   cuts its batches anew.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import SparkSession

from latecomer.errors import InputError, StateError, must
from latecomer.spark.records import Record, Records, files_in, records_at, whole

BATCH, LOG = "batch", "_latecomer"
_RUN = r"(run-\d+-[0-9a-f]+)"
_OF_A_RUN = ("run", "owner", "columns", "format")
_IN_ONE_FOLDER = 1_000  # records of batches


class Written(NamedTuple):
    """A batch, and the run that wrote it as a whole."""

    batch: int
    run: str


def new_run(runs: Iterable[str]) -> str:
    """A name that comes after all others."""
    last = max((int(run.split("-")[1]) for run in runs), default=0)
    return f"run-{last + 1:06d}-{uuid.uuid4().hex[:8]}"


def standing(written: Iterable[Written], kept: dict[str, int]) -> dict[int, str]:
    """Whose files are read for each batch; `kept`: the last batch that a run's checkpoint knew when it started.

    >>> standing([Written(0, "run-1"), Written(1, "run-1"), Written(1, "run-2"), Written(2, "run-1")], {"run-2": 1})
    {0: 'run-1', 1: 'run-2'}
    """
    return {batch: run for batch, run in sorted(written) if not is_void(batch, run, kept)}


def is_void(batch: int, run: str, kept: dict[str, int]) -> bool:
    """Whether a later run has begun anew before this batch."""
    return any(later > run and batch > through for later, through in kept.items())


@dataclass(frozen=True)
class LaneLog:
    """The records of one lane's folder."""

    folder: str
    records: Records

    @classmethod
    def of(cls, spark: SparkSession, folder: str) -> LaneLog:
        """Of a folder as users name it."""
        folder = folder.rstrip("/")
        return cls(folder, records_at(spark, f"{folder}/{LOG}"))

    @classmethod
    def at(cls, folder: str) -> LaneLog:
        """Of a folder whose whole path is known."""
        return cls(folder, whole(f"{folder}/{LOG}"))

    def runs(self, spark: SparkSession) -> dict[str, Record]:
        """What was written down of each run, the earliest first."""
        found = self._part("runs").read(spark)
        for record in found:
            if not all(isinstance(record.get(name), str) for name in _OF_A_RUN):
                advice = "put back what was there, or write to another folder (nothing was changed)"
                raise StateError(must(f"records in {self.records.folder}", "be what latecomer wrote", record, advice))
        return {record["run"]: record for record in sorted(found, key=lambda record: str(record["run"]))}

    def latest(self, spark: SparkSession) -> str | None:
        """The run that has claimed the folder last."""
        return max((found[1] for found in self._named(spark, "runs", _RUN)), default=None)

    def kept(self, spark: SparkSession) -> dict[str, int]:
        """The last batch that each run's checkpoint knew when it started."""
        return {found[1]: int(found[2]) for found in self._named(spark, "kept", _RUN + r"-through-(-?\d+)")}

    def written(self, spark: SparkSession) -> list[Written]:
        """All batches that are there as a whole."""
        return [Written(int(found[1]), found[2]) for found in self._named(spark, "batches", rf"\d+/(\d+)-{_RUN}")]

    def check_owner(self, spark: SparkSession, owner: str) -> None:
        """Refuse a folder with files that the query of another checkpoint has written, or nobody we know."""
        runs = self.runs(spark)
        if runs and list(runs.values())[-1]["owner"] == owner:
            return
        if files_in(spark, self.folder):
            advice = "choose another folder, empty this one, or go on with the checkpoint that filled it"
            raise InputError(must("output folder", "be empty, or filled by this very query", self.folder, advice))

    def claim(self, spark: SparkSession, owner: str, columns: str, format: str) -> tuple[str, str]:
        """Make a run that is later than all others; gives its name and the folder's whole path."""
        run = new_run(found[1] for found in self._named(spark, "runs", _RUN))
        record = {"run": run, "owner": owner, "columns": columns, "format": format}
        self._part("runs").append(spark, run, record)
        path = next(path for path in self._part("runs").paths(spark) if run in path)
        return run, path.split(f"/{LOG}/")[0]

    def keep(self, spark: SparkSession, run: str, through: int) -> None:
        """Write down how far a run's checkpoint has come, where it goes on: batches beyond it are void."""
        self._part("kept").append(spark, f"{run}-through-{through}", {"run": run, "through": through})

    def add(self, spark: SparkSession, batch: int, run: str) -> None:
        """Write down that a batch is there as a whole."""
        name = f"{batch // _IN_ONE_FOLDER}/{batch}-{run}"
        self._part("batches").append(spark, name, {"batch": batch, "run": run})

    def check_latest(self, spark: SparkSession, run: str) -> None:
        """Stop a run that is no longer the latest."""
        latest = self.latest(spark)
        if latest != run:
            advice = "let that one go on, or stop it and start again: both at once would write every row twice"
            raise StateError(must(f"query of {self.folder}", "be the last one that was started there", latest, advice))

    def _part(self, name: str) -> Records:
        return Records(f"{self.records.folder}/{name}", self.records.local)

    def _named(self, spark: SparkSession, part: str, pattern: str) -> list[re.Match[str]]:
        found = (re.search(f"/{LOG}/{part}/{pattern}", path) for path in self._part(part).paths(spark))
        return [each for each in found if each is not None]

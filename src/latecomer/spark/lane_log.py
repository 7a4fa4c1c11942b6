"""Which files of a lane's folder are its rows: who owns the folder, which runs wrote to it, which batches are whole.

    <folder>/batch=<id>/<run>/...             the rows of a batch, as one run of the query wrote them
    <folder>/_latecomer/runs/<run>            a start: whose folder it is, lane, columns, format, a batch's input
    <folder>/_latecomer/begun/<run>           the run has come to its first batch, and taken the folder
    <folder>/_latecomer/kept/<run>-through-<id>    the last batch that the checkpoint knew when the run took it
    <folder>/_latecomer/batches/<n>/<id>-<run>     this run has written this batch as a whole

1. A run writes into folders of its own, and only while it is the latest: no run can harm the files of another.
2. A batch is there as a whole or not at all: its record is written when all its files are.
3. A start takes nothing: whatever Spark refuses, be it at once or in the query's own thread, leaves the folder with the
   run that has it, which goes on. A run takes its folders with its first batch.
4. A run takes a folder before it asks how far its checkpoint has come. So whatever an earlier run, taken for dead, may
   still write is a batch that the checkpoint knows, with the same rows. The latest run's is read.
5. What lies beyond the last batch that a later run's checkpoint knew is void: it was restored from an older copy, and
   cuts its batches anew.
6. A folder belongs to one lane of one query, in one format, with one set of columns.
"""

from __future__ import annotations

import json
import re
import uuid
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql import types as T

from latecomer.errors import InputError, StateError, must
from latecomer.spark.records import Record, Records, files_in, records_at, whole

BATCH, LOG = "batch", "_latecomer"
_RUN = r"(run-\d+-[0-9a-f]+)"
_IN_ONE_FOLDER = 1_000  # records of batches


@dataclass(frozen=True)
class Claim:
    """What a start says of a lane's folder.

    owner: the checkpoint's id, or the question of a batch. columns: as JSON. input: the folders that a batch reads;
    None: a stream.
    """

    owner: str
    lane: str
    columns: str
    format: str
    input: tuple[str, ...] | None = None

    @property
    def schema(self) -> T.StructType:
        """The lane's columns."""
        return _schema(self.columns)


@lru_cache(maxsize=64)
def _schema(columns: str) -> T.StructType:
    """Columns that were written as JSON; those of all runs of a folder are mostly the same."""
    return T.StructType.fromJson(json.loads(columns))


class Written(NamedTuple):
    """A batch, and the run that wrote it as a whole."""

    batch: int
    run: str


def new_run(runs: Iterable[str]) -> str:
    """A name that comes after all others."""
    last = max((int(run.split("-")[1]) for run in runs), default=0)
    return f"run-{last + 1:06d}-{uuid.uuid4().hex[:8]}"


class Void:
    """Which batches are void, since a later run has begun anew before them.

    kept: the last batch that the checkpoint of each run knew when it took the folder.
    """

    def __init__(self, kept: dict[str, int]) -> None:
        self._runs, self._through = sorted(kept), [kept[run] for run in sorted(kept)]
        for place in range(len(self._through) - 2, -1, -1):  # the least of this run and of all later ones
            self._through[place] = min(self._through[place], self._through[place + 1])

    def __contains__(self, written: Written) -> bool:
        later = bisect_right(self._runs, written.run)
        return later < len(self._runs) and written.batch > self._through[later]


def standing(written: Iterable[Written], kept: dict[str, int]) -> dict[int, str]:
    """Whose files are read for each batch; `kept`: see `Void`.

    >>> standing([Written(0, "run-1"), Written(1, "run-1"), Written(1, "run-2"), Written(2, "run-1")], {"run-2": 1})
    {0: 'run-1', 1: 'run-2'}
    """
    void = Void(kept)
    return {each.batch: each.run for each in sorted(written) if each not in void}


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

    def runs(self, spark: SparkSession) -> dict[str, Claim]:
        """What was said of each run that was started, the earliest first."""
        found = {str(record.get("run")): self._claim_of(record) for record in self._part("runs").read(spark)}
        return {run: found[run] for run in sorted(found)}

    def latest(self, spark: SparkSession) -> str | None:
        """The run that has taken the folder last."""
        return max((found[1] for found in self._named(spark, "begun", _RUN)), default=None)

    def kept(self, spark: SparkSession) -> dict[str, int]:
        """The last batch that each run's checkpoint knew when it started."""
        return {found[1]: int(found[2]) for found in self._named(spark, "kept", _RUN + r"-through-(-?\d+)")}

    def written(self, spark: SparkSession) -> list[Written]:
        """All batches that are there as a whole."""
        return [Written(int(found[1]), found[2]) for found in self._named(spark, "batches", rf"\d+/(\d+)-{_RUN}")]

    def check(self, spark: SparkSession, claim: Claim) -> None:
        """Refuse a folder with files of another query, of another lane, or that cannot stand beside new ones."""
        runs = self.runs(spark)
        refused = self._refusal(runs.get(self.latest(spark) or ""), claim)
        if refused is None and claim.input is not None:
            refused = _other_input(self.folder, self._input(spark, runs, claim.owner), claim.input)
        if refused is not None and files_in(spark, self.folder):
            raise InputError(refused)

    def _input(self, spark: SparkSession, runs: dict[str, Claim], owner: str) -> tuple[str, ...] | None:
        """What the last batch that was written as a whole was read from; one that failed has filled nothing."""
        filled = {each.run for each in self.written(spark)}
        found = [each.input for run, each in runs.items() if run in filled and each.owner == owner]
        return found[-1] if found else None

    def _refusal(self, known: Claim | None, claim: Claim) -> str | None:
        if known is None or known.owner != claim.owner:
            advice = "choose another folder, empty this one, or go on with the checkpoint that filled it"
            return must("output folder", "be empty, or filled by this very query", self.folder, advice)
        return _other_rows(self.folder, known, claim)

    def announce(self, spark: SparkSession, claim: Claim) -> tuple[str, str]:
        """Name a run that is later than all others, and takes nothing yet; gives its name, the folder's whole path."""
        run = new_run(found[1] for found in self._named(spark, "runs", _RUN))
        self._part("runs").append(spark, run, {"run": run, **asdict(claim)})
        path = next(path for path in self._part("runs").paths(spark) if run in path)
        return run, path.split(f"/{LOG}/")[0]

    def begin(self, spark: SparkSession, run: str) -> None:
        """Take the folder from all earlier runs."""
        self._part("begun").append(spark, run, {"run": run})

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

    def _claim_of(self, record: Record) -> Claim:
        """A record of a run as it was said; one that is damaged is refused with a sentence."""
        try:
            texts = {name: record[name] for name in ("owner", "lane", "columns", "format")}
            read = record["input"]
            found = Claim(**texts, input=None if read is None else tuple(read))
            whole = all(isinstance(each, str) for each in (record["run"], *texts.values(), *(found.input or ())))
            if whole and found.schema is not None:
                return found
        except (KeyError, TypeError, ValueError, AttributeError):
            pass
        advice = "put back what was there, or write to another folder (nothing was changed)"
        raise StateError(must(f"records in {self.records.folder}", "be what latecomer wrote", record, advice))

    def _part(self, name: str) -> Records:
        return Records(f"{self.records.folder}/{name}", self.records.local)

    def _named(self, spark: SparkSession, part: str, pattern: str) -> list[re.Match[str]]:
        found = (re.search(f"/{LOG}/{part}/{pattern}", path) for path in self._part(part).paths(spark))
        return [each for each in found if each is not None]


def _other_rows(folder: str, known: Claim, claim: Claim) -> str | None:
    """Why rows cannot stand beside those that are there."""
    if known.lane != claim.lane:
        advice = "give each lane the folder that it had, or a new one"
        return must(f"folder of lane {claim.lane!r}", "be its own", f"{folder}, of lane {known.lane!r}", advice)
    if known.format != claim.format:
        return must(f"format of {folder}", f"stay {known.format!r}", claim.format, "or choose another folder")
    before, now = known.schema.simpleString(), claim.schema.simpleString()
    if before != now:
        advice = "set them back, or give the lane another folder from here on"
        return must(f"columns of {folder}", f"stay {before}", now, advice)
    return None


def _other_input(folder: str, known: tuple[str, ...] | None, now: tuple[str, ...]) -> str | None:
    """Why a batch is not one that was written before, maybe with less input."""
    if known is None or (set(known) <= set(now) and (known or not now)):
        return None
    rule = f"be what it was filled from ({_some(known)}), or that and more"
    return must(f"input of {folder}", rule, _some(now), "choose another folder, or empty this one")


def _some(folders: tuple[str, ...]) -> str:
    """The first of some folders."""
    more = f" and {len(folders) - 1} more" if len(folders) > 1 else ""
    return folders[0] + more if folders else "no files"

"""What was seen of one edge in one interval, and a history of it.

An edge is one input of one stage. An interval is a micro-batch; in simulations a second. A history is a table with a
row for each edge and interval, in one or several runs: what the models of the tuner learn from.

Invariants
1. Durations are microseconds. Slack, lag and `behind` are event time; latency, overhead and `lasted` are wall time;
   `speed` says how many microseconds of event time pass in one of wall time.
2. Where no row was read, latency and overhead are 0 and mean nothing.
3. Within a run the intervals of an edge are numbered one by one; a missing number is a gap over which nothing is
   learnt.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low
from typing import NamedTuple, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from latecomer.errors import InputError, must

Edge = tuple[str, str]  # a stage and one of its inputs: a source, or the stage before


class Observation(NamedTuple):
    """One interval of one edge.

    clock: event time of the last row read. lag: the mark less the merge time at the end, and as long as a declared
    source has not spoken, less the first time of the stream. behind: the mark less the latest time of this input.
    lag_slope: how much lag came in a unit of wall time. latency: the largest, from arrival at the gate to written.
    overhead: the largest part of it that was not waiting at the gate.
    """

    stage: str
    input: str
    interval: int
    lasted_us: int
    clock_us: int
    slack_us: int
    lag_us: int
    behind_us: int
    lag_slope: float
    speed: float
    rows: int
    slack_ready: int
    latency_us: int
    overhead_us: int
    threads: int = 1
    window_us: int = 0

    @property
    def edge(self) -> Edge:
        """The stage and the input."""
        return self.stage, self.input


_TYPES = {str: pa.string(), int: pa.int64(), float: pa.float64()}
RUN = pa.field("run", pa.int64())
SCHEMA = pa.schema([RUN] + [pa.field(name, _TYPES[of]) for name, of in get_type_hints(Observation).items()])


class Motion(NamedTuple):
    """How fast event time and the lag move."""

    speed: float = 1.0
    lag_slope: float = 0.0


class MotionMeter:
    """Follows the mark and the lag of one stage from interval to interval.

    The first interval, and one in which the mark stands still, says nothing: what was known holds on. A jump counts for
    no more than `FASTEST` times wall time: it is one row with a wrong clock, or a backlog. The speed is the median of
    the last three: where a micro-batch ends in the middle of a second, it has more of one source than of another.
    """

    FASTEST = 100.0
    SLOWEST = 0.01

    def __init__(self) -> None:
        self._before: tuple[int, int] | None = None
        self._known = Motion()
        self._speeds: deque[float] = deque(maxlen=3)

    def follow(self, mark_us: int, lag_us: int, lasted_us: int) -> Motion:
        """The motion in an interval that ended with this mark and this lag."""
        if self._before is not None and lasted_us > 0:
            passed_us, grown_us = mark_us - self._before[0], lag_us - self._before[1]
            speed = self._known.speed
            if passed_us > 0:
                speed = min(max(passed_us / lasted_us, self.SLOWEST), self.FASTEST)
                self._speeds.append(speed)
            slope = min(grown_us / lasted_us, speed)  # the merge time never goes back
            self._known = Motion(median_low(self._speeds) if self._speeds else speed, slope)
        self._before = mark_us, lag_us
        return self._known


@dataclass(frozen=True)
class History:
    """Observations of one or several runs, as a table."""

    table: pa.Table

    @classmethod
    def of(cls, *runs: Iterable[Observation]) -> History:
        """A history of some runs, each in the order of its intervals."""
        rows = [(number, *seen) for number, run in enumerate(runs) for seen in run]
        columns = list(zip(*rows, strict=True)) if rows else [()] * len(SCHEMA)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        return cls(pa.table(arrays, schema=SCHEMA))

    @classmethod
    def read(cls, path: str | Path) -> History:
        """Read a history from a Parquet file, and check that it is one."""
        try:
            return cls(checked(pq.read_table(path)))
        except (OSError, pa.ArrowInvalid) as error:
            advice = "name a file that History.write made, or leave it out to begin without one"
            raise InputError(must("history", "be a Parquet file that can be read", str(path), advice)) from error

    def write(self, path: str | Path) -> None:
        """Write it as a Parquet file."""
        pq.write_table(self.table, path)

    def __add__(self, other: History) -> History:
        """Both, the runs of the other after those of this one."""
        runs = int(np.max(self.table["run"].to_numpy(), initial=-1)) + 1
        moved = pa.array(other.table["run"].to_numpy() + runs, pa.int64())
        return History(pa.concat_tables([self.table, other.table.set_column(0, RUN, moved)]))

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def runs_of(self, edge: Edge) -> list[list[Observation]]:
        """The observations of an edge, run by run."""
        found: dict[int, list[Observation]] = {}
        columns = [column.to_pylist() for column in self.table.columns]
        for run, *fields in zip(*columns, strict=True):
            if (fields[0], fields[1]) == edge:
                found.setdefault(run, []).append(Observation(*fields))
        return list(found.values())


def checked(table: pa.Table) -> pa.Table:
    """A table with the columns of a history, in their order and types; refuse one that has others."""
    missing = [name for name in SCHEMA.names if name not in table.schema.names]
    if missing:
        advice = "give a file that History.write made"
        raise InputError(must("history", f"have the columns {', '.join(missing)}", table.schema.names, advice))
    return table.select(SCHEMA.names).cast(SCHEMA)


def latest_by_edge(observations: Sequence[Observation]) -> dict[Edge, Observation]:
    """The last observation of each edge."""
    return {seen.edge: seen for seen in observations}

"""A stream written as a small table, any question asked of it, and what is expected lane by lane and batch by batch.

The same scenario runs without Spark, in milliseconds, and on Spark, with the same expectations.

>>> import latecomer as lc
>>> scenario = Scenario('''
...     came   ts     meter  kwh
...     00:10  00:10  a      1
...     00:20  00:20  a      2
...     --
...     00:31  00:12  a      4
... ''', time="ts", arrival="came", key="meter")
>>> run = scenario.run(lambda events: events.tumbling("15 minutes").aggregate(lc.sum("kwh")).optimistic("1 hour"))
>>> run.expect("changes", '''
...     window_start  meter  sum_kwh  change
...     00:00         a      1        -1
...     00:00         a      5        1
... ''', batch=1)
>>> run.expect_standing('''
...     window_start  sum_kwh
...     00:00         5
...     00:15         2
... ''')
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isnan
from pathlib import Path
from typing import Any, Protocol, Unpack

import pyarrow as pa

from latecomer.errors import InputError, must
from latecomer.testing.chain_runs import Row, Spread, run_rows
from latecomer.testing.declared_rows import DeclaredRows, Question, Roled, as_rows, check_roles
from latecomer.testing.tables import Written, read_table, shown


class Given(Protocol):
    """What a run gave, wherever it ran."""

    def rows(self, name: str, batch: int | None = None) -> list[Row]:
        """The rows of a lane or view, of all micro-batches or one."""

    def columns(self, name: str) -> list[str]:
        """The columns of a lane or view; a name that is not one is refused."""

    def standing(self) -> list[Row]:
        """The results that stand in the end."""

    @property
    def counters(self) -> dict[str, int]:
        """The counters of the whole run."""


@dataclass(frozen=True)
class ScenarioRun:
    """What a scenario gave; micro-batches are counted from zero, and the last one is the end of the stream."""

    given: Given
    batches: int

    def rows(self, name: str, batch: int | str | None = None) -> list[Row]:
        """The rows of a lane (`late`, `quarantine`) or view (`changes`, `tier_1`, ...); batch: a number, or "end"."""
        number = self.batches if batch == "end" else batch
        if isinstance(number, str) or (number is not None and not 0 <= number <= self.batches):
            raise InputError(must("batch", f"be from 0 to {self.batches - 1}, or 'end'", batch, "count the cuts"))
        self.given.columns(name)
        return self.given.rows(name, number)

    def expect(self, name: str, table: str, *, batch: int | str | None = None, ordered: bool = False) -> None:
        """Compare a lane or view with a table, in the columns that the table has; `ordered`: the order counts too."""
        where = name if batch is None else f"{name} of micro-batch {batch}"
        _compare(self.rows(name, batch), self.given.columns(name), read_table(table), where, ordered=ordered)

    def expect_standing(self, table: str) -> None:
        """Compare what stands in the end with a table."""
        found = self.given.standing()
        columns = list(found[0]) if found else None
        _compare(found, columns, read_table(table), "what stands in the end", ordered=False)

    def expect_nothing(self, name: str, *, batch: int | str | None = None) -> None:
        """A lane or view has no rows."""
        found = self.rows(name, batch)
        assert not found, f"{name} must be empty; it has\n{shown(found, list(found[0]))}"

    @property
    def counters(self) -> dict[str, int]:
        """The counters of the whole run, as `lc.read_counters` names them."""
        return self.given.counters


class Scenario:
    """A stream: rows in the order of their arrival, cut into micro-batches where a line has only dashes."""

    def __init__(self, stream: str | pa.Table, cuts: Sequence[int] = (), **declared: Unpack[Roled]) -> None:
        """A table as text, or one of Arrow's with cuts; `declared`: as in `lc.disordered`, with `arrival`."""
        written = read_table(stream) if isinstance(stream, str) else Written(stream, tuple(cuts))
        check_roles(declared)
        if declared.get("arrival") is None:
            rule = "name the column that says when a row came: without it, what is late depends on the engine"
            raise InputError(must("arrival", rule, None, "e.g. arrival='came'"))
        self.table, self.cuts, self._declared = written.table, written.cuts, declared
        if not all(0 < cut < self.table.num_rows for cut in self.cuts):
            rule = f"be positions within the {self.table.num_rows} rows"
            raise InputError(must("cuts", rule, list(self.cuts), "the end is a micro-batch of its own"))

    def run(self, question: Question, *, spark: Any = None, shards: int = 1) -> ScenarioRun:
        """Ask the question, without Spark or, with a session of it, there; the end comes in a batch of its own."""
        cuts = (*self.cuts, self.table.num_rows)
        if spark is None:
            rows = DeclaredRows.of(self.table, self._declared)
            return ScenarioRun(run_rows(question, rows, Spread(shards, cuts)), len(cuts))
        from latecomer.testing.spark_runs import RecordedRows, run_on_spark

        recorded = RecordedRows(as_rows(self.table), cuts, self._declared)
        with tempfile.TemporaryDirectory(prefix="latecomer-scenario-", ignore_cleanup_errors=True) as folder:
            return ScenarioRun(run_on_spark(spark, question, recorded, Path(folder), shards), len(cuts))


def _compare(found: list[Row], columns: list[str] | None, wanted: Written, where: str, *, ordered: bool) -> None:
    names = wanted.table.schema.names
    lacking = [name for name in names if columns is not None and name not in columns]
    assert not lacking, f"{where} has no column {', '.join(lacking)}; it has {', '.join(columns or [])}"
    expected = wanted.table.to_pylist()
    one, other = ([tuple(_plain(row[name]) for name in names) for row in rows] for rows in (found, expected))
    same = one == other if ordered else Counter(one) == Counter(other)
    if not same:
        ours, theirs = (shown(rows, names) for rows in (found, expected))
        if ours == theirs:
            ours, theirs = ("\n".join(map(repr, rows)) for rows in (one, other))  # equal to look at, of other kinds
        raise AssertionError(f"{where} must be\n{theirs}\n\nit is\n{ours}")


def _plain(value: Any) -> Any:
    """A value as it is compared: times in UTC, numbers whatever their type and to twelve figures, lists as such."""
    if isinstance(value, datetime):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
    if isinstance(value, float):
        return "nan" if isnan(value) else float(f"{value:.12g}")
    return tuple(map(_plain, value)) if isinstance(value, list) else value

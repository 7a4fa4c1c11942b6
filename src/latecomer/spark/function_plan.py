"""What the plan of a user's function says: its windows, from the first to the last, and what cannot be repaired.

Spark shows the analysed plan as text, over Connect too. A window stands in it as arithmetic on a time: the size and the
advance as literals, and the column it is taken of.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from pyspark.sql import DataFrame

from latecomer.durations import duration_text
from latecomer.errors import InputError, must
from latecomer.spark.session import changed_settings
from latecomer.windows import Window

_WHOLE = {"spark.sql.debug.maxToStringFields": "100000"}
_OF = r"precisetimestampconversion\((?P<of>.+?), Timestamp(?:NTZ)?Type, LongType\)"
_SIZE = r"END\) - \d+\) \+ (?P<size>\d+)\), LongType"
_WINDOW = re.compile(rf"{_OF} - (?P<offset>-?\d+)\) % (?P<advance>\d+)\) < .*?{_SIZE}")
_LAST = r"\.end, Timestamp(?:NTZ)?Type, LongType\) - 1\), LongType, Timestamp(?:NTZ)?Type\)"
_NODE = re.compile(r"^[\s:+\-]*'?(\w+)")
_SEVERAL = {"Join", "Union"}  # of results, which need not be of one chain of windows
_NODES = {
    "GlobalLimit": ("limit", "results are those of a micro-batch, not of the stream"),
    "LocalLimit": ("limit", "results are those of a micro-batch, not of the stream"),
    "Tail": ("limit", "results are those of a micro-batch, not of the stream"),
    "Offset": ("offset", "results are those of a micro-batch, not of the stream"),
    "Deduplicate": ("dropDuplicates", "which of several rows stays depends on what else is there; distinct() may do"),
    "Sample": ("sample", "a replay would choose other rows"),
    "Window": ("functions over rows (over)", "how far they look is not known"),
}
_CALLS = (
    *("current_timestamp", "current_date", "current_time", "localtimestamp", "now", "uuid", "shuffle"),
    *("rand", "randn", "random", "randstr", "uniform"),
    *("monotonically_increasing_id", "spark_partition_id", "input_file_name"),
)


class Side(Enum):
    """Where in a window the time lies that is read of it."""

    START = "its start"
    LAST = "its last microsecond"  # window_time
    END = "its end"
    ANY = "anywhere"


_PARTS = {"start": Side.START, "end": Side.END}


class Planned(NamedTuple):
    """The windows of a function, and where in each, but for the last, the time lies that the next is taken of."""

    windows: tuple[Window, ...]
    sides: tuple[Side, ...]


def plan_text(given: DataFrame) -> str:
    """The analysed plan as text, with all its columns."""
    shown = io.StringIO()
    with changed_settings(given.sparkSession, dict(_WHOLE)), contextlib.redirect_stdout(shown):
        given.explain(extended=True)
    _, _, analysed = shown.getvalue().partition("== Analyzed Logical Plan ==")
    return analysed.partition("== Optimized Logical Plan ==")[0]


def check_plan(text: str, name: str) -> None:
    """Refuse what gives other results when it is called again, or at other times."""
    if re.search(r"\bAS session_window#", text):
        advice = "use F.window; sessions can be asked with .session(gap).aggregate(...).tiers(...)"
        raise InputError(must(name, "have windows of a known size", "a session window, which has none", advice))
    for node in _nodes(text):
        if node in _NODES:
            what, why = _NODES[node]
            raise InputError(must(name, f"have no {what}: {why}", f"{node} in its plan", "leave it out"))
    found = re.search(rf"(?<![\w.])({'|'.join(_CALLS)})\(", text)
    if found:
        advice = "compute it before, as a column of the events, or after, on what was written"
        raise InputError(must(name, "give the same whenever it is called", f"{found[1]}()", advice))


def windows_in(text: str, time: str, name: str) -> Planned | None:
    """The windows that stand in a plan; None if there are none."""
    found = [match for line in text.splitlines() if (match := _WINDOW.search(line))][::-1]
    if not found:
        return None
    first, *others = (match["of"].rpartition("precisetimestampconversion(")[2] for match in found)
    if _names_before(text, first)[-1].rpartition("#")[0] != time:
        advice = "take windows of the time column itself, and change times before"
        raise InputError(must(f"first window of {name}", f"be one of {time}", first, advice))
    windows = tuple(_window(match) for match in found)
    several = _SEVERAL.intersection(_nodes(text))
    sides = tuple(Side.ANY if several else side_of(text, each) for each in others)
    return Planned(windows, sides)


def side_of(text: str, column: str) -> Side:
    """Where in its window a time lies, by what the plan calls the column (`name#number`)."""
    for name in _names_before(text, column):
        if re.search(rf"{_LAST} AS {re.escape(name)}(?!\w)", text):
            return Side.LAST
        whole, _, part = name.rpartition(".")
        if part in _PARTS and any(re.fullmatch(r"window#\d+", each) for each in _names_before(text, whole)):
            return _PARTS[part]
    return Side.ANY


def output_name(text: str, column: str) -> str:
    """What the plan calls a column of its results: its name with a number."""
    found = re.search(rf"(?<![\w.])({re.escape(column)}#\d+L?)(?!\w)", text)
    return found[1] if found else column


def _nodes(text: str) -> Iterator[str]:
    for line in text.splitlines():
        found = _NODE.match(line)
        if found:
            yield found[1]


def _window(match: re.Match[str]) -> Window:
    return Window(*(duration_text(int(match[each])) for each in ("size", "advance", "offset")))


def _names_before(text: str, column: str) -> list[str]:
    """What a column of a plan is called, and was called before, the first last."""
    names: list[str] = []
    while column not in names:
        names.append(column)
        column = _before_alias(text, column)
    return names


def _before_alias(text: str, column: str) -> str:
    """What a column was called before it got its name; itself where it has no other."""
    found = re.search(rf"([^\s\[,]+#\d+L?(?:\.\w+)?) AS {re.escape(column)}(?!\w)", text)
    return found[1] if found else column

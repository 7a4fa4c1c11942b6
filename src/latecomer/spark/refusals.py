"""What a disordered stream refuses, and what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from pyspark.sql import DataFrame

from latecomer.contract import VERBS
from latecomer.errors import InputError, OrderSensitiveError, must

P = ParamSpec("P")
R = TypeVar("R")


def strategies() -> dict[str, str]:
    """How strategies are asked for and what each does; first the one that gives the rows themselves, in order."""
    verbs = [settings.verb for settings in VERBS.values() if settings.verb is not None]
    return {verb.call: verb.does for verb in sorted(verbs, key=lambda verb: (not verb.orders, verb.call))}


STEPS = ("where", "select", "with_columns", "tumbling", "hopping", "session")

_OF_RESULTS = ("results", "late", "quarantine", "changes", "tier", "view", "by", "start")
_OF_QUERIES = (
    "awaitTermination",
    "processAllAvailable",
    "stop",
    "isActive",
    "lastProgress",
    "recentProgress",
    "status",
)
_GROUPING = ("groupBy", "groupby", "group_by", "agg")

# What needs order, and how it is called on a result's `.results`.
_ORDER_SENSITIVE = {
    **dict.fromkeys(("drop_duplicates", "dropDuplicates"), "dropDuplicates(...)"),
    **dict.fromkeys(("rank", "row_number", "lag", "lead", "over"), "select(...)"),
    "pattern": "mapInArrow(...)",
    **{
        name: f"{name}(...)"
        for name in (
            *("count", "rollup", "cube", "pivot", "describe", "summary"),
            *("crossJoin", "lateralJoin", "union", "unionAll", "unionByName"),
            *("intersect", "intersectAll", "subtract", "exceptAll", "distinct", "dropDuplicatesWithinWatermark"),
            *("sort", "orderBy", "order_by", "sortWithinPartitions", "withWatermark"),
            *("limit", "offset", "first", "head", "take", "tail", "mapInArrow", "mapInPandas"),
        )
    },
}


def refusal(name: str) -> AttributeError:
    """The error for a name that a disordered stream does not have."""
    if name in _GROUPING:
        return OrderSensitiveError(must(name, "be asked of windows, by key", "a disordered stream", _grouping_advice()))
    if name in _ORDER_SENSITIVE:
        known = strategies()
        first, *others = known
        advice = f"call .{first} first, then .results.{_ORDER_SENSITIVE[name]}"
        advice += "".join(f"; or .{other} to {known[other]}" for other in others)
        return OrderSensitiveError(must(name, "be given events in order", "a disordered stream", advice))
    if name in _OF_RESULTS:
        calls = " or ".join(f".{call}" for call in strategies())
        return AttributeError(must(name, "be asked of a result", "events without a strategy", f"call {calls} first"))
    asked_of_others = [verb for verb in strategies() if verb.endswith(f").{name}(...)")]
    if asked_of_others:
        advice = f"call .{' or .'.join(asked_of_others)}"
        return AttributeError(must(name, "be asked of aggregates or an application", "events alone", advice))
    if name.startswith("_") or not hasattr(DataFrame, name):
        return AttributeError(f"'Events' object has no attribute {name!r}")
    calls = " or ".join(f".{call}" for call in strategies())
    rule = f"be called on a DataFrame; a disordered stream has {', '.join(STEPS)}"
    return AttributeError(must(name, rule, "a disordered stream", f"call {calls} first, then .results.{name}"))


def refusing_sparks_join(join: Callable[P, R]) -> Callable[P, R]:
    """The same call, which tells those who write Spark's `join(other, on, how)` what there is instead."""

    @wraps(join)
    def checked(*given: P.args, **named: P.kwargs) -> R:
        others = [f"a {type(each).__name__}" for each in given[1:] if not isinstance(each, str | int)]
        others += [f"{name}=" for name in ("other", "on", "how") if name in named]
        if others or "within" not in named:
            advice = "e.g. .join('bus', 'scats', within='5 s').slack(deadline='6 s'); with a DataFrame call "
            advice += f".{next(iter(strategies()))} first, then .results.join(...)"
            rule = "name two sources of the stream, and how far apart rows may be (within=)"
            raise InputError(must("join", rule, ", ".join(others) or "no within=", advice))
        return join(*given, **named)

    return checked


def _grouping_advice() -> str:
    """How rows are grouped here: by the key, in windows; or by Spark, after the sort."""
    asked = " or ".join(f".tumbling(size).{call}" for call in strategies() if call.startswith("aggregate("))
    first = next(iter(strategies()))
    return f"name the columns in disordered(key=...) and call {asked}; or .{first} first, then .results.groupBy(...)"


def stage_refusal(name: str) -> AttributeError:
    """The error for a name that the events of a further stage do not have."""
    if name in _GROUPING:
        advice = "name the columns in .by(...) and call .tumbling(size).aggregate(...)"
        return OrderSensitiveError(must(name, "be asked of windows, by key", "the events of a further stage", advice))
    if name in STEPS or (not name.startswith("_") and hasattr(DataFrame, name)):
        advice = "do it before the first strategy, or write the results and start a second query"
        return AttributeError(must(name, "be called on a DataFrame", "the events of a further stage", advice))
    return AttributeError(f"'StageEvents' object has no attribute {name!r}")


def result_refusal(name: str) -> AttributeError:
    """The error for a name that a result does not have."""
    if name in _OF_QUERIES:
        advice = "keep what .start(...) gives: query = result.start(...)"
        return AttributeError(must(name, "be asked of a query", "a result, which has not been started", advice))
    if not name.startswith("_") and hasattr(DataFrame, name):
        advice = f"call .results.{name}, or .start(...) to write all lanes of a stream, .write(...) of a batch"
        return AttributeError(must(name, "be called on a DataFrame", "a result, which has several lanes", advice))
    return AttributeError(f"'Result' object has no attribute {name!r}")


def question_refusal(name: str, word: str) -> AttributeError:
    """The error for a name that a question without a strategy, `aggregate(...)` or `app(...)`, does not have."""
    calls = " or ".join(f".{call}" for call in strategies() if call.startswith(f"{word}("))
    if not name.startswith("_"):
        advice = f"call {calls} first"
        return AttributeError(must(name, "be called on a result", f"{word}(...), which has no strategy yet", advice))
    return AttributeError(f"{word}(...) has no attribute {name!r}")

"""What a disordered stream refuses, and what to do instead."""

from __future__ import annotations

from pyspark.sql import DataFrame

from latecomer.contract import VERBS
from latecomer.errors import OrderSensitiveError, must


def strategies() -> dict[str, str]:
    """How strategies are asked for and what each does; first the one that gives the rows themselves, in order."""
    verbs = [settings.verb for settings in VERBS.values() if settings.verb is not None]
    return {verb.call: verb.does for verb in sorted(verbs, key=lambda verb: (not verb.orders, verb.call))}


STEPS = ("where", "select", "with_columns", "tumbling", "hopping", "session")

# What needs order, and how it is called on a result's `.results`.
_ORDER_SENSITIVE = {
    "agg": "groupBy(...).agg(...)",
    **dict.fromkeys(("groupBy", "groupby", "group_by"), "groupBy(...)"),
    **dict.fromkeys(("drop_duplicates", "dropDuplicates"), "dropDuplicates(...)"),
    **dict.fromkeys(("rank", "row_number", "lag", "lead", "over"), "select(...)"),
    **dict.fromkeys(("scan", "pattern"), "mapInArrow(...)"),
    **{
        name: f"{name}(...)"
        for name in (
            *("count", "rollup", "cube", "pivot", "describe", "summary"),
            *("join", "crossJoin", "lateralJoin", "union", "unionAll", "unionByName"),
            *("intersect", "intersectAll", "subtract", "exceptAll", "distinct", "dropDuplicatesWithinWatermark"),
            *("sort", "orderBy", "order_by", "sortWithinPartitions", "withWatermark"),
            *("limit", "offset", "first", "head", "take", "tail", "mapInArrow", "mapInPandas"),
        )
    },
}


def refusal(name: str) -> AttributeError:
    """The error for a name that a disordered stream does not have."""
    if name in _ORDER_SENSITIVE:
        known = strategies()
        first, *others = known
        advice = f"call .{first} first, then .results.{_ORDER_SENSITIVE[name]}"
        advice += "".join(f"; or .{other} to {known[other]}" for other in others)
        return OrderSensitiveError(must(name, "be given events in order", "a disordered stream", advice))
    asked_of_others = [verb for verb in strategies() if verb.endswith(f").{name}(...)")]
    if asked_of_others:
        advice = f"call .{' or .'.join(asked_of_others)}"
        return AttributeError(must(name, "be asked of aggregates or an application", "events alone", advice))
    if name.startswith("_") or not hasattr(DataFrame, name):
        return AttributeError(f"'Events' object has no attribute {name!r}")
    calls = " or ".join(f".{call}" for call in strategies())
    rule = f"be called on a DataFrame; a disordered stream has {', '.join(STEPS)}"
    return AttributeError(must(name, rule, "a disordered stream", f"call {calls} first, then .results.{name}"))


def stage_refusal(name: str) -> AttributeError:
    """The error for a name that the events of a further stage do not have."""
    if name in STEPS or (not name.startswith("_") and hasattr(DataFrame, name)):
        advice = "do it before the first strategy, or write the results and start a second query"
        return AttributeError(must(name, "be called on a DataFrame", "the events of a further stage", advice))
    return AttributeError(f"'StageEvents' object has no attribute {name!r}")

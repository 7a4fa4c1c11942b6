"""What a disordered stream refuses, and what to do instead."""

from __future__ import annotations

from pyspark.sql import DataFrame

from latecomer.errors import OrderSensitiveError, must

STRATEGIES = {
    "reorder(latency=...)": "wait, then give rows in event-time order",
    "aggregate(...).tiers(...)": "answer windowed questions early, and better later",
    "app(...).tiers(...)": "run operators on rows in order, per latency",
    "app(...).timetravel(...)": "give results at once, and repair them later",
    "pass_through()": "give rows as they come",
}
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
        first, *others = STRATEGIES
        advice = f"call .{first} first, then .results.{_ORDER_SENSITIVE[name]}"
        advice += "".join(f"; or .{other} to {STRATEGIES[other]}" for other in others)
        return OrderSensitiveError(must(name, "be given events in order", "a disordered stream", advice))
    if name == "timetravel":
        advice = "call .tumbling(size).aggregate(...) or .app(...) before"
        return AttributeError(must(name, "be asked of aggregates or an application", "events alone", advice))
    if name.startswith("_") or not hasattr(DataFrame, name):
        return AttributeError(f"'Events' object has no attribute {name!r}")
    strategies = " or ".join(f".{strategy}" for strategy in STRATEGIES)
    rule = f"be called on a DataFrame; a disordered stream has {', '.join(STEPS)}"
    return AttributeError(must(name, rule, "a disordered stream", f"call {strategies} first, then .results.{name}"))

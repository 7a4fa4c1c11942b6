"""What is asked of windows, looked at before anything runs: are these aggregates, and can they be computed?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from latecomer.errors import InputError, must
from latecomer.windows.aggregates import AggregateFunction


def as_aggregates(aggregates: Any) -> tuple[AggregateFunction, ...]:
    """Any sequence of aggregates as a tuple; refuses what is none, or cannot be merged."""
    if not isinstance(aggregates, Sequence):
        raise InputError(must("aggregates", "be a sequence of aggregates", aggregates, "e.g. (lc.count(),)"))
    if not aggregates:
        raise InputError(must("aggregate", "be given at least one aggregate", "none", "e.g. lc.count()"))
    for aggregate in aggregates:
        if not isinstance(aggregate, AggregateFunction):
            raise InputError(must("aggregate", "be given aggregates", aggregate, "e.g. lc.count(), lc.max('kwh')"))
        if not aggregate.mergeable:
            rule = "have a merge: windows are put together from parts"
            raise InputError(must(f"aggregate {aggregate.name}", rule, "none", "give merge="))
    return tuple(aggregates)


def check_aggregates(aggregates: Sequence[AggregateFunction], schema: pa.Schema, taken: Sequence[str]) -> None:
    """Refuse aggregates that cannot be computed, or whose results would have names that are taken."""
    names = [name.lower() for name in taken]
    for aggregate in aggregates:
        aggregate.check(schema)
        if aggregate.name.lower() in names:
            advice = f"give one of them another name: .alias('other_{aggregate.name}')"
            raise InputError(must("results", "have different names", aggregate.name, advice))
        names.append(aggregate.name.lower())

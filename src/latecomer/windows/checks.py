"""What is asked of operators, looked at before anything runs: aggregates that can be computed, values of a type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from latecomer.errors import InputError, must
from latecomer.windows.aggregates import AggregateFunction


def as_aggregates(aggregates: Any, *, in_parts: bool = True) -> tuple[AggregateFunction, ...]:
    """Any sequence of aggregates as a tuple; refuses what is none, or, where windows are in parts, has no merge."""
    if not isinstance(aggregates, Sequence):
        raise InputError(must("aggregates", "be a sequence of aggregates", aggregates, "e.g. (lc.count(),)"))
    if not aggregates:
        raise InputError(must("aggregate", "be given at least one aggregate", "none", "e.g. lc.count()"))
    for aggregate in aggregates:
        if not isinstance(aggregate, AggregateFunction):
            raise InputError(must("aggregate", "be given aggregates", aggregate, "e.g. lc.count(), lc.max('kwh')"))
        if in_parts and not aggregate.mergeable:
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


def scalar_of(value: Any, kind: pa.DataType, where: str) -> pa.Scalar:
    """A value as one of a column's type, which has no null and no nested values."""
    if pa.types.is_nested(kind):
        raise InputError(must(where, "be one of a column of plain values", f"a {kind}", "compute one before"))
    try:
        scalar = pa.scalar(value, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError, OverflowError):
        scalar = pa.scalar(None, kind)
    if value is None or scalar.as_py() != value:
        raise InputError(must(where, f"be of type {kind}", value, "give one that the column can have"))
    return scalar

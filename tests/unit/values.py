"""Values of all kinds for the tests of aggregates and groups, and their order in plain Python."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

NAN = float("nan")

eighths = st.integers(-64, 64).map(lambda number: number / 8) | st.sampled_from([-0.0, 0.0, NAN])
letters = st.text("abc", max_size=2)
VALUES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.int64(): st.integers(-50, 50),
    pa.int8(): st.integers(-128, 127),
    pa.float64(): eighths,
    pa.float32(): eighths,
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.string(): letters,
    pa.binary(): letters.map(str.encode),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(dt.date(1960, 1, 1), dt.date(1980, 1, 1)),
    pa.timestamp("us", "UTC"): st.datetimes(dt.datetime(2020, 1, 1), timezones=st.just(dt.UTC)),
    pa.decimal128(6, 2): st.integers(-999, 999).map(lambda cents: Decimal(cents).scaleb(-2)),
}
NUMBERS = [pa.int64(), pa.int8(), pa.float64(), pa.float32()]
NESTED = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])
SCHEMA = pa.schema([("s", pa.string()), ("n", NESTED)])
nested = st.tuples(st.none() | st.integers(0, 2), st.lists(letters, max_size=2)).map(
    lambda pair: dict(zip("ab", pair, strict=True))
)


def column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """An array in the middle of a longer one, so that its offset is not zero."""
    return pa.array([None, *values, None], kind).slice(1, len(values))


def ints(values: Sequence[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def same(value: Any) -> Any:
    """The value in a form in which NaN equals NaN."""
    if isinstance(value, list):
        return [same(item) for item in value]
    if isinstance(value, dict):
        return {name: same(item) for name, item in value.items()}
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def rank(value: Any) -> tuple[Any, ...]:
    """Sort key of the total order of values: nulls last, NaN after numbers, -0.0 before 0.0."""
    if value is None:
        return (2,)
    if isinstance(value, float):
        return (1,) if math.isnan(value) else (0, value, math.copysign(1, value))
    return (0, value)


def distinct(values: list[Any]) -> Counter[Any]:
    return Counter("NaN" if isinstance(value, float) and math.isnan(value) else value for value in values)


def most_frequent(values: list[Any]) -> list[dict[str, Any]]:
    def before(item: tuple[Any, int]) -> tuple[Any, ...]:
        return (-item[1], *rank(NAN if item[0] == "NaN" else item[0]))

    return [{"value": value, "count": count} for value, count in sorted(distinct(values).items(), key=before)[:2]]

"""What the benches of windows and tiers rest on: answers are compared, and ratios are of the same round."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from latecomer.errors import LatecomerError
from latecomer_lab.tiers import FORMS, QUERIES, Measured, Query, check_same, checksum, measure
from latecomer_lab.window import ratio

KIND = pa.list_(pa.struct([("value", pa.int32()), ("count", pa.int64())]))
TOPS = [[{"value": 1, "count": 3}], [{"value": 2, "count": 3}], [], [{"value": 1, "count": 2}]]


def _rows(starts: list[int], tops: list[list[dict[str, int]]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(starts), pa.array(tops, KIND)], names=["window_start", "top_k_group"])


def test_a_checksum_depends_on_all_values_but_not_on_the_order() -> None:
    whole = checksum(_rows([1, 2, 3, 4], TOPS))
    parts = checksum(_rows([4, 2], TOPS[3::-2])) + checksum(_rows([3, 1], TOPS[2::-2]))
    assert whole == parts % 2**64
    assert whole != checksum(_rows([1, 2, 3, 5], TOPS))
    assert whole != checksum(_rows([1, 2, 3, 4], TOPS[::-1]))
    assert whole != checksum(_rows([1, 2, 3], TOPS[:3]))


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_the_bench_of_tiers_is_void_where_answers_differ(query: Query) -> None:
    rng = np.random.default_rng(7)
    delay_us = rng.integers(0, 2, 30_000) * rng.integers(0, 3_000_000_000, 30_000)
    ts_us = np.sort(rng.integers(0, 7_200_000_000, 30_000)) - delay_us
    number = rng.integers(0, 5_000, 30_000)
    found = {form: [measure("cloudlog", query, form, ts_us, number)] for form in FORMS}
    assert len(set(found["advanced"][0].checksums)) == 3
    check_same("cloudlog", query, found)
    for form in FORMS[1:]:
        with pytest.raises(LatecomerError, match=f"advanced and {form} give different answers"):
            check_same("cloudlog", query, {**found, form: [*found[form], _wrong(found[form][0])]})


def _wrong(run: Measured) -> Measured:
    return run._replace(checksums=[*run.checksums[:-1], run.checksums[-1] ^ 1])


def test_ratios_are_of_the_same_round() -> None:
    assert ratio([2.0, 30.0, 3.0], [1.0, 15.0, 1.0]) == 2.0

"""Binary search in kernels against numpy's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from latecomer.search import lower_bound, lower_bound_descending

NUMBERS = st.integers(-(2**63), 2**63 - 1)


@given(st.lists(NUMBERS | st.integers(-3, 3), max_size=20), NUMBERS | st.integers(-3, 3), st.data())
def test_a_part_of_an_array_is_searched_in_either_order(values: list[int], wanted: int, data: st.DataObject) -> None:
    low = data.draw(st.integers(0, len(values)))
    high = data.draw(st.integers(low, len(values)))
    rising = np.sort(np.array(values, dtype=np.int64))
    assert lower_bound(rising, low, high, wanted) == low + np.searchsorted(rising[low:high], wanted)
    falling = rising[::-1].copy()
    above = int((falling[low:high] > wanted).sum())
    assert lower_bound_descending(falling, low, high, wanted) == low + above

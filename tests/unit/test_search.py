"""The binary search of the kernels, and the cache that must notice a change of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from latecomer import _jit
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


@pytest.mark.skipif(not _jit.COMPILED, reason="kernels are plain Python")
def test_the_cache_of_any_kernel_looks_at_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stamp() -> object:
        _jit._folder_stamp.cache_clear()
        compiled = type("Kernel", (), {"_cache": type("Cache", (), {"_cache_file": type("File", (), {})()})()})()
        compiled._cache._cache_file._version = 0
        _jit._stamp(compiled, str(tmp_path / "windows" / "kernel.py"))
        return compiled._cache._cache_file._version

    (tmp_path / "windows").mkdir()
    (tmp_path / "search.py").write_text("old")
    monkeypatch.setattr(_jit, "__file__", str(tmp_path / "_jit.py"))
    before = stamp()
    assert before == stamp()
    (tmp_path / "search.py").write_text("new code")
    assert before != stamp()
    _jit._folder_stamp.cache_clear()

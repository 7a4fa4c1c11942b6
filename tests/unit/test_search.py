"""The binary search of the kernels, and the cache that must notice a change of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from latecomer import _jit
from latecomer.search import lower_bound


@pytest.mark.parametrize(("low", "high"), [(0, 6), (1, 4), (2, 2), (0, 0)])
@pytest.mark.parametrize("wanted", [-1, 0, 3, 4, 5, 9, 10])
def test_lower_bound_finds_the_first_value_not_below(low: int, high: int, wanted: int) -> None:
    values = np.array([0, 3, 3, 5, 9, 9])
    assert lower_bound(values, low, high, wanted) == low + np.searchsorted(values[low:high], wanted)


@pytest.mark.skipif(not _jit.COMPILED, reason="kernels are plain Python")
def test_the_cache_of_any_kernel_looks_at_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stamp() -> object:
        _jit._folder_stamp.cache_clear()
        compiled = type("Kernel", (), {"_cache": type("Cache", (), {"_cache_file": type("File", (), {})()})()})()
        compiled._cache._cache_file._source_stamp = 0
        _jit._stamp(compiled, str(tmp_path / "windows" / "kernel.py"))
        return compiled._cache._cache_file._source_stamp

    (tmp_path / "windows").mkdir()
    (tmp_path / "search.py").write_text("old")
    monkeypatch.setattr(_jit, "__file__", str(tmp_path / "_jit.py"))
    before = stamp()
    assert before == stamp()
    (tmp_path / "search.py").write_text("new code")
    assert before != stamp()
    _jit._folder_stamp.cache_clear()
